"""Facts and paths of the graph as sentences, English and French. Everything that comes from a document is data: it is cleaned and cut, never formatted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.properties import clean_name, is_date, property_clauses
from llama_index_advanced_rag.graph.records import Relation
from llama_index_advanced_rag.graph.templates import DATED, TEMPLATES, WORDS, predicate_key, readable_predicate
from llama_index_advanced_rag.usage import count_tokens as count_global_tokens

_PRESENT = ("is ", "is a ", "is an ", "is the ", "est ", "est un ", "est une ", "est le ", "est la ")
_PAST = ("was ", "has been ", "a été ")
_BY = ("by", "par")
_ARTICLES = ("a ", "an ", "the ")
_VOWELS = "aâàäeéèêëiîïoôöuùûüœæ"
_FIELDS = {"subject", "object"}
_SENTENCE_ENDS = (".", "!", "?", "…")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path, from one entity to the next.

    Attributes:
        start: name of the entity it comes from.
        end: name of the entity it goes to.
        fact: the fact that joins them, in whichever direction it is told; None = no fact is known.
        source: title of a chunk that names both, or whatever names it; it is said where there is no fact. "" = that chunk has no title; None = all that is
            known is that they are connected.
    """

    start: str
    end: str
    fact: Relation | None = None
    source: str | None = None


def fact_sentence(fact: Relation, *, language: str = "en", templates: Mapping[str, str] | None = None) -> str:
    """A fact as a sentence: the predicate first, then its properties (dates, amount, role, place, and the others as "(key: value)").

    A predicate without a template is told in its own words, made readable. Names, predicates and values are cut at 200
    characters; line ends and control characters in them become spaces.

    Args:
        fact: its properties may be numbers; empty ones, and ids of nodes that stores keep there, are not told.
        language: "en" or "fr"; any other is told in English.
        templates: sentences without the full stop for predicates in any spelling, with {subject} and {object}; they go before ours.

    Returns:
        "" for a fact without a subject, or with nothing but a subject.

    Raises:
        ConfigurationError: a template has other fields than {subject} and {object}, or lacks a brace.

    Example:
        >>> deal = Relation("Acme", "signed_contract_with", "GlobalTech", {"date": "2026-01-15", "amount": "2.5M EUR"})
        >>> print(fact_sentence(deal))
        Acme signed a contract with GlobalTech (on 2026-01-15) for 2.5M EUR.
        >>> print(fact_sentence(deal, language="fr"))
        Acme a signé un contrat avec GlobalTech (le 2026-01-15) pour 2.5M EUR.
    """
    return _ended(_Wording.of(language, templates).fact(fact))


def path_sentence(path: Sequence[Step], *, language: str = "en", templates: Mapping[str, str] | None = None) -> str:
    """A path as a sentence: each fact in its own direction, in the order of the path, each once.

    Args:
        path: steps, each from where the one before it ended.
        language: as for `fact_sentence`.
        templates: as for `fact_sentence`.

    Returns:
        "" for a path that says nothing.

    Raises:
        ConfigurationError: as `fact_sentence`.

    Example:
        >>> made, uses = Relation("Claude", "created_by", "Anthropic"), Relation("Claude", "uses", "Transformer")
        >>> print(path_sentence([Step("Anthropic", "Claude", made), Step("Claude", "Transformer", uses)]))
        Claude was created by Anthropic; Claude uses Transformer.
        >>> print(path_sentence([Step("Claude", "Transformer", source="Modèles")], language="fr"))
        Claude et Transformer sont nommés ensemble dans « Modèles ».
    """
    wording = _Wording.of(language, templates)
    return _ended(wording.words["then"].join(wording.path(path)))


def subgraph_text(
    facts: Sequence[Relation],
    paths: Sequence[Sequence[Step]] = (),
    *,
    language: str = "en",
    max_tokens: int = 1000,
    count_tokens: Callable[[str], int] = count_global_tokens,
    templates: Mapping[str, str] | None = None,
) -> str:
    r"""Paths, then facts that no path has told, a line for each, as far as the budget goes.

    Args:
        facts: most important first.
        paths: most important first.
        language: as for `fact_sentence`.
        max_tokens: most tokens of the text, at least 1; what does not fit ends it.
        count_tokens: counts the tokens of a text.
        templates: as for `fact_sentence`.

    Returns:
        "" when there is nothing to say, or no room for a first line.

    Raises:
        ConfigurationError: as `fact_sentence`, or `max_tokens` is below 1.

    Example:
        >>> made, uses = Relation("Claude", "created_by", "Anthropic"), Relation("Claude", "uses", "Transformer")
        >>> print(subgraph_text([made, uses], [[Step("Anthropic", "Claude", made)]]))
        How they are connected:
        - Claude was created by Anthropic.
        Facts:
        - Claude uses Transformer.
    """
    whole_number("max_tokens", max_tokens)
    lines: list[str] = []
    left = max_tokens
    for new in _groups(facts, paths, _Wording.of(language, templates)):
        left -= sum(count_tokens(f"{line}\n") for line in new)
        if left < 0:
            break
        lines += new
    return "\n".join(lines)


def _groups(facts: Sequence[Relation], paths: Sequence[Sequence[Step]], wording: "_Wording") -> Iterator[list[str]]:
    """The lines, those together that may not be parted: a head with its first line."""
    told: set[str] = set()
    head = [wording.words["paths"]]
    for path in paths:
        clauses = wording.path(path)
        sentence = _ended(wording.words["then"].join(clauses))
        if clauses and sentence not in told:
            told.update((sentence, *clauses))
            yield [*head, f"- {sentence}"]
            head = []
    head = [wording.words["facts"]]
    for fact in facts:
        clause = wording.fact(fact)
        if clause and clause not in told:
            told.add(clause)
            yield [*head, f"- {_ended(clause)}"]
            head = []


def naming_clause(name: str, source: str = "", *, language: str = "en") -> str:
    """That a passage names something, and which passage does so too; without a full stop.

    Example:
        >>> naming_clause("Claude"), naming_clause("Claude", "Models", language="fr")
        ('names Claude', 'nomme Claude, comme « Models »')
    """
    title = clean_name(source)
    return _Wording.of(language, None).words["names too" if title else "names"].format(object=clean_name(name), source=title)


class _Wording(NamedTuple):
    """How things are said in one language, with the templates of the caller."""

    language: str
    own: Mapping[str, str]
    words: Mapping[str, str]

    @classmethod
    def of(cls, language: str, templates: Mapping[str, str] | None) -> "_Wording":
        known = language if language in WORDS else "en"
        own = {predicate_key(clean_name(name)): _checked(name, template) for name, template in (templates or {}).items()}
        return cls(known, own, WORDS[known])

    def fact(self, fact: Relation) -> str:
        """The fact without a full stop; "" if there is nothing to say."""
        subject, other, predicate = clean_name(fact.subject), clean_name(fact.object), readable_predicate(clean_name(fact.predicate))
        if not subject or not (predicate or other):
            return ""
        said = self._said(subject, predicate, other) if other else f"{subject} {predicate}"
        return " ".join([said, *property_clauses(fact.properties, language=self.language)])

    def path(self, path: Sequence[Step]) -> list[str]:
        """What the steps say, each once."""
        return list(dict.fromkeys(clause for step in path if (clause := self._step(step))))

    def _step(self, step: Step) -> str:
        if step.fact is not None and (clause := self.fact(step.fact)):
            return clause
        start, end, source = clean_name(step.start), clean_name(step.end), clean_name(step.source or "")
        if not start or not end or start == end:
            return ""
        known = "together" if source else "connected" if step.source is None else "in one passage"
        return self.words[known].format(subject=start, object=end, source=source)

    def _said(self, subject: str, predicate: str, other: str) -> str:
        if not predicate:
            return self.words["related"].format(subject=subject, object=other)
        template = self._template(predicate_key(predicate), other)
        if template is None:
            return f"{subject} {self._readable(predicate)} {other}"
        return _fitted(template, self.language, subject, other).format(subject=subject, object=other)

    def _template(self, key: str, other: str) -> str | None:
        if key in self.own:
            return self.own[key]
        found = _known_key(key)
        if found is None:
            return None
        return DATED[self.language][found] if found in DATED[self.language] and is_date(other) else TEMPLATES[self.language][found]

    def _readable(self, predicate: str) -> str:
        words = predicate.split()
        auxiliary = ["est" if self.language == "fr" else "is"] if len(words) == 2 and words[1] in _BY else []
        return " ".join([*auxiliary, *words])


def _checked(name: str, template: str) -> str:
    expected = "Write a sentence with {subject} and {object}, and {{ or }} for a brace."
    try:
        fields = {field: conversion or form for _, field, form, conversion in Formatter().parse(template) if field is not None}
    except ValueError as error:
        raise ConfigurationError(f"The template of {name!r} is {template!r}: {error}. {expected}") from error
    if set(fields) != _FIELDS or any(fields.values()):
        raise ConfigurationError(f"The template of {name!r} is {template!r}, with the fields {sorted(fields)!r}. {expected}")
    return template


@lru_cache(maxsize=4096)
def _known_key(key: str) -> str | None:
    """The key that has a template; "is located in" is told as "located in", but "was located in" is not: that is another time."""
    known = TEMPLATES["en"]
    if key in known:
        return key
    bare = {key.removeprefix(auxiliary): ("{subject} is ", "{subject} was ") for auxiliary in _PRESENT if key.startswith(auxiliary)}
    past = {key.removeprefix(auxiliary): ("{subject} was ", "{subject} was ") for auxiliary in _PAST if key.startswith(auxiliary)}
    return next((name for name, begins in (bare | past).items() if name in known and known[name].startswith(begins)), None)


def _fitted(template: str, language: str, subject: str, other: str) -> str:
    """The template with the small words before a name as the name needs them."""
    if language == "fr":
        for field, name in (("{subject}", subject), ("{object}", other)):
            if name[0].casefold() in _VOWELS:
                template = template.replace(f" de {field}", f" d'{field}")
        return template
    if other.casefold().startswith(_ARTICLES):
        return template.replace(" a {object}", " {object}")
    return template.replace(" a {object}", " an {object}") if other[0] in "aeiouAEIOU" else template


def _ended(sentence: str) -> str:
    return sentence if not sentence or sentence.endswith(_SENTENCE_ENDS) else f"{sentence}."
