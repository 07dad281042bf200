"""Records as bytes beside their text, and back: a mention that is written in the text takes about three bytes."""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError
from llama_index_advanced_rag.graph.records import NAME, ExtractionRecord, Mention, Relation

_KINDS = ("", NAME, "number", "date", "identifier")  # "" is no kind: the mention stands in the object. A change here is a new format version
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DAMAGES = (AttributeError, IndexError, KeyError, RecursionError, StopIteration, TypeError, ValueError)


def encode_record(record: ExtractionRecord, text: str) -> bytes:
    """A record of a text as bytes; `decode_record` with the same text gives back an equal one.

    They hold the length of a JSON object, the object, and numbers of seven bits a byte: for each mention the distance from the end of
    the one before and its length, and behind all of these the kind of each. The object holds relations, names, further kinds, and the
    mentions that are not written in the text where they say, or begin before the end of the one before; without any of that it is left out.

    Args:
        record: what is written; its relations' properties are text, numbers and booleans.
        text: the text that its mentions are in.

    Raises:
        ConfigurationError: something in it is not JSON, or a name or predicate is no text.

    Example:
        >>> record = ExtractionRecord((Mention("Anthropic", "name", 0, 9), Mention("Claude", "name", 18, 24)))
        >>> body = encode_record(record, "Anthropic created Claude.")
        >>> len(body), decode_record(body, "Anthropic created Claude.") == record
        (7, True)
    """
    places = {kind: place for place, kind in enumerate(_KINDS)}
    spans: list[int] = []
    kinds: list[int] = []
    apart: list[Mention] = []
    after = 0
    for mention in record.mentions:
        surface, kind, start, end = mention
        if kind and after <= start <= end <= len(text) and text[start:end] == surface:
            spans += (start - after, end - start)
            kinds.append(places.setdefault(kind, len(places)))
            after = end
        else:
            spans += (0, 0)
            kinds.append(0)
            apart.append(mention)
    rest = _rest(record, list(places)[len(_KINDS) :], apart)
    body = bytearray()
    _put(body, [len(rest)])
    body += rest
    _put(body, [*spans, *kinds])
    return bytes(body)


def _rest(record: ExtractionRecord, kinds: Sequence[str], apart: Sequence[Mention]) -> bytes:
    said = ((fact.subject, fact.predicate, fact.object) for fact in record.relations)
    parts: Iterable[object] = chain(record.names, chain.from_iterable(said), *(mention[:2] for mention in apart))
    wrong = [part for part in parts if not isinstance(part, str)]
    if wrong:
        raise _unfit(f"{wrong[0]!r:.200} is no text")
    relations = [[fact.subject, fact.predicate, fact.object, *([dict(fact.properties)] if fact.properties else [])] for fact in record.relations]
    mentions = [[surface, kind, int(start), int(end)] for surface, kind, start, end in apart]
    everything = {"relations": relations, "names": record.names, "kinds": kinds, "mentions": mentions}
    kept = {name: value for name, value in everything.items() if value}
    try:
        return _ENCODER.encode(kept).encode("utf-8", "surrogatepass") if kept else b""
    except (TypeError, ValueError, RecursionError) as error:
        raise _unfit(f"something in it is not JSON ({error})") from error


def _unfit(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"A record cannot be stored: {what}. Expected names, kinds and predicates as text, and text, numbers or booleans as properties. "
        "Mend the extractor that made it."
    )


def _put(body: bytearray, numbers: Sequence[int]) -> None:
    for given in numbers:
        number = int(given)
        while number > 127:
            body.append(number & 127 | 128)
            number >>= 7
        body.append(number)


def decode_record(body: bytes, text: str) -> ExtractionRecord:
    """The record that `encode_record` wrote for this text.

    Raises:
        IndexFormatError: it wrote no such bytes for this text.
    """
    try:
        return _decoded(body, text)
    except _DAMAGES as error:
        raise IndexFormatError(
            f"{len(body)} bytes are not the record of a text of {len(text)} characters ({type(error).__name__}: {error}). "
            "They are damaged, or the text is not the one they were written for: make the record again with verify(repair=True)."
        ) from error


def _decoded(body: bytes, text: str) -> ExtractionRecord:
    begin = next(place for place, byte in enumerate(body) if byte < 128) + 1
    end = begin + _numbers(body[:begin])[0]
    numbers = _numbers(body[end:])
    count, left = divmod(len(numbers), 3)
    if end > len(body) or left:
        raise ValueError("they end too soon")
    rest: dict[str, Any] = json.loads(body[begin:end].decode("utf-8", "surrogatepass")) if end > begin else {}
    spans, kinds = numbers[: 2 * count], numbers[2 * count :]
    mentions = _mentions(spans, kinds, text, (*_KINDS, *rest.get("kinds", ())))
    apart = [place for place, kind in enumerate(kinds) if not kind] if 0 in kinds else []
    for place, mention in zip(apart, rest.get("mentions", ()), strict=True):
        mentions[place] = Mention(*mention)
    return ExtractionRecord(tuple(mentions), tuple(Relation(*fact) for fact in rest.get("relations", ())), tuple(rest.get("names", ())))


def _mentions(spans: Sequence[int], kinds: Sequence[int], text: str, names: Sequence[str]) -> list[Mention]:
    """The mentions of these distances and lengths; no loop over them, since thousands of records are read at once."""
    places = list(accumulate(spans))
    if places and places[-1] > len(text):
        raise ValueError(f"a mention ends at {places[-1]}")
    starts, ends = places[::2], places[1::2]
    surfaces = map(text.__getitem__, map(slice, starts, ends))
    return list(map(Mention, surfaces, map(names.__getitem__, kinds), starts, ends))


def _numbers(body: bytes) -> list[int]:
    if body.isascii():
        return list(body)
    found: list[int] = []
    number = shift = 0
    for byte in body:
        number |= (byte & 127) << shift
        if byte < 128:
            found.append(number)
            number = shift = 0
        else:
            shift += 7
    if shift:
        raise ValueError("they end within a number")
    return found
