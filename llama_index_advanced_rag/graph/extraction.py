"""Choosing what reads names and facts, finding it again when an index is opened, and reading nodes with it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.graph.node_names import names_of
from llama_index_advanced_rag.graph.records import ExtractionRecord

SPANS: Literal["spans"] = "spans"
ExtractorType = Extractor | Literal["spans"]
_READ_AT_ONCE = 256
_OURS = re.compile(rf"{SPANS}-\d+:(?P<language>[a-z]+)")


def resolve_extractor(given: ExtractorType | None, *, language: str) -> Extractor | None:
    """The extractor that was asked for: "spans" is the one of this package, which needs no model.

    Args:
        given: an extractor, "spans", or None for none.
        language: of the texts, as an ISO code or "auto"; for "spans".

    Raises:
        ConfigurationError: it is something else.
    """
    if given == SPANS:
        from llama_index_advanced_rag.graph.span_extractor import SpanExtractor

        return SpanExtractor(language=language)
    if given is not None and (isinstance(given, (str, type)) or not isinstance(cast(object, given), Extractor)):
        raise ConfigurationError(f"extractor is {given!r}. It must be 'spans', None, or an object with an identity and a method extract(texts).")
    return given


def stored_extractor(identity: str | None, given: ExtractorType | None) -> Extractor | None:
    """The extractor that an index is changed with.

    Args:
        identity: that of the extractor its records come from; None when it has no records.
        given: what was passed, if anything.

    Returns:
        The one given, else ours where that is the one; None when there are no records.

    Raises:
        ConfigurationError: it cannot be found again without being passed, or another one was passed; the message says what to do.
    """
    ours = None if identity is None else _OURS.fullmatch(identity)
    language = "auto" if ours is None else ours["language"]
    extractor = resolve_extractor(given if given is not None or ours is None else SPANS, language=language)
    if extractor is None and identity is not None:
        raise ConfigurationError(
            f"The names and facts of this index were read by the extractor {identity!r}. It can be searched as it is; "
            "to change it, pass the same one: CorpusIndex.load(..., extractor=...)."
        )
    if extractor is not None and extractor.identity != identity:
        raise _other_extractor(identity, extractor.identity)
    return extractor


def _other_extractor(built: str | None, found: str) -> ConfigurationError:
    how, instead = ("without an extractor", "leave extractor out") if built is None else (f"with the extractor {built!r}", "pass the one it was built with")
    return ConfigurationError(
        f"This index was built {how}, and {found!r} would read other names and facts. It can be searched as it is; "
        f"to change it, {instead}, or build it again with CorpusIndex.from_documents(...) in another persist_dir."
    )


def read_records(extractor: Extractor, nodes: Sequence[BaseNode]) -> list[ExtractionRecord]:
    """What each node says, with the names that its metadata give it; an empty record for a node without text.

    Raises:
        ConfigurationError: the extractor gave another number of records than texts.
        Exception: that of the extractor, as it was.
    """
    texts = [node.get_content(MetadataMode.NONE) for node in nodes]
    records = [ExtractionRecord()] * len(nodes)
    places = [place for place, text in enumerate(texts) if text.strip()]
    for start in range(0, len(places), _READ_AT_ONCE):
        some = places[start : start + _READ_AT_ONCE]
        found = extractor.extract([texts[place] for place in some])
        if len(found) != len(some):
            raise ConfigurationError(
                f"The extractor {extractor.identity!r} gave {len(found)} records for {len(some)} texts. "
                "Expected one for each, in their order. Mend its extract()."
            )
        for place, record in zip(some, found, strict=True):
            records[place] = replace(record, names=names_of(nodes[place]))
    return records
