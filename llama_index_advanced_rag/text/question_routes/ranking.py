"""From what stands in a question to the ways of answering that it speaks for."""

from llama_index_advanced_rag.text.languages import AUTO
from llama_index_advanced_rag.text.question_routes.signals import QuestionSignals, read_question_signals

NONE, SIMPLE, MODERATE, COMPLEX, STRUCTURAL = "none", "simple", "moderate", "complex", "structural"

RankedRoute = tuple[str, str]
"""A kind of route, and why."""

_SEVERAL = 2


def rank_routes(signals: QuestionSignals) -> list[RankedRoute]:
    """The kinds of route that a question speaks for, best first, each with its reason; empty where nothing speaks for any.

    `none`, where the whole question needs no document; `structural` for places in documents and figures of reports; `complex` for what joins
    several things, and for two bridges or more; `moderate` for one bridge; `simple` where one thing is asked of one name or term. A question
    that shows none of this is not guessed at.

    Example:
        >>> rank_routes(read_question_signals("Where was the director of The Salt Ledger born?"))
        [('moderate', '"director of" describes one thing through another')]
        >>> rank_routes(read_question_signals("Bonjour, tu vas bien ?"))[0][0]
        'none'
        >>> rank_routes(read_question_signals("nordic quay ferries"))
        []
    """
    if signals.talk:
        return [(NONE, str(signals.talk[0]))]
    ranked: list[RankedRoute] = []
    if signals.places:
        ranked.append((STRUCTURAL, str(signals.places[0])))
    joins_names = signals.joins and len(signals.names) >= _SEVERAL
    if signals.figures and not joins_names:
        ranked.append((STRUCTURAL, str(signals.figures[0])))
    if signals.joins:
        ranked.append((COMPLEX, str(signals.joins[0])))
    if signals.figures:
        ranked.append((STRUCTURAL, str(signals.figures[0])))
    if len(signals.bridges) >= _SEVERAL:
        ranked.append((COMPLEX, " and ".join(map(str, signals.bridges[:_SEVERAL]))))
    if signals.bridges:
        ranked.append((MODERATE, str(signals.bridges[0])))
    if not ranked and signals.side_by_side:
        ranked.append((COMPLEX, str(signals.side_by_side[0])))
    if not ranked and len(set(signals.names)) > _SEVERAL:
        ranked.append((COMPLEX, f"the question has {len(set(signals.names))} names"))
    if not ranked and signals.single:
        ranked.append((SIMPLE, str(signals.single[0])))
    best: dict[str, str] = {}
    for kind, reason in ranked:
        best.setdefault(kind, reason)
    return list(best.items())


def asks_for_place(question: str, language: str = AUTO) -> bool:
    """Whether a place in a document is given or asked for; False for a figure of a report without its place.

    Raises:
        ConfigurationError: unknown language.

    Example:
        >>> asks_for_place("Dans quelle section parle-t-on du préavis ?"), asks_for_place("What was net income in the second quarter of 2022?")
        (True, False)
    """
    return bool(read_question_signals(question, language).places)
