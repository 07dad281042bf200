"""What a question names: names by their capitals, and titles in quotation marks."""

import re

from llama_index_advanced_rag.text.languages import FALLBACK
from llama_index_advanced_rag.text.question_routes.wording import Wording
from llama_index_advanced_rag.text.span_rules.word_list import words_of
from llama_index_advanced_rag.text.spans import find_spans

_TITLE = re.compile(r"«\s?([^«»]{2,80}?)\s?»|[“\"]([^“”\"]{2,80})[”\"]")
_NO_NAMES = words_of("""
    i ok us pdf faq cv hr rh pin url ai ia gdpr rgpd q1 q2 q3 q4 t1 t2 t3 t4 vat tva eps ebitda
    english french german spanish italian dutch portuguese breton latin chinese japanese
    anglais français allemand espagnol italien néerlandais portugais chinois japonais
    """)
_GOES_ON = re.compile(r"'s? ?\w|[,:] ?(?!please|s'il |svp|stp)\w|,? (?:and|or|et|ou|vs\.?|versus|&) (?:the |l[ae] |l'|les |d')?[A-ZÀ-Ý]")
_ENDS_SENTENCE = re.compile(r"[.!?] \Z")


def names_in(wording: Wording) -> list[tuple[int, int]]:
    """Start and end of each name in the written question, in order; none in a question all in capitals.

    A lone word at the beginning of a sentence counts only if something shows that it is no verb or noun of the question itself: capitals or
    figures within it, a possessive, a comma, or a second name joined to it.

    Example:
        >>> from llama_index_advanced_rag.text.question_routes.wording import read_wording
        >>> wording = read_wording('Compare "The Salt Ledger" with the first novel of Ada Quill')
        >>> [wording.written[start:end] for start, end in names_in(wording)]
        ['The Salt Ledger', 'Ada Quill']
    """
    if wording.written.isupper():
        return []
    language = wording.languages[0] if len(wording.languages) == 1 else FALLBACK
    titles = [span for span in map(_title, _TITLE.finditer(wording.written)) if wording.written[span[0]].isupper()]
    found = [(span.start, span.end) for span in find_spans(wording.written, language=language) if span.kind == "name"]
    kept = [span for span in found if _is_name(wording.written, *span) and not any(first < span[1] and span[0] < last for first, last in titles)]
    return sorted(titles + kept)


def _title(match: re.Match[str]) -> tuple[int, int]:
    return match.span(match.lastindex or 0)


def _is_name(written: str, start: int, end: int) -> bool:
    name = written[start:end]
    if end - start < 2 or name.lower() in _NO_NAMES:
        return False
    opens = start == 0 or _ENDS_SENTENCE.search(written, max(0, start - 2), start) is not None
    if not opens or " " in name or not name[1:].islower():
        return True
    return name.lower() not in _OPENERS and _GOES_ON.match(written, end) is not None


_OPENERS = words_of("""
    hi hello hey thanks thank please sorry ok okay yes no well so great good perfect nice bye dear
    bonjour bonsoir salut merci pardon désolé désolée oui non bien alors parfait génial bravo bon bonne
    """)
