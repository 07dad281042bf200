"""Records as bytes: whatever they hold comes back, few bytes a mention, and what is damaged is said."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError
from llama_index_advanced_rag.graph.record_codec import decode_record, encode_record
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention, Relation

characters = st.characters(codec=None) | st.sampled_from("\ud800\udfff\0é漢😀")
texts = st.text(characters, max_size=300)
kinds = st.sampled_from(["name", "number", "date", "identifier", "ORG", "PER", ""]) | texts
values = st.text(characters) | st.integers() | st.booleans() | st.floats(allow_nan=False)
relations = st.builds(Relation, texts, texts, texts, st.dictionaries(texts, values, max_size=2))


@st.composite
def records(draw: st.DrawFn) -> tuple[str, ExtractionRecord]:
    text = draw(texts)
    mentions: list[Mention] = []
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            start = draw(st.integers(0, len(text)))
            end = draw(st.integers(start, len(text)))
            mentions.append(Mention(text[start:end], draw(kinds), start, end))
        else:
            mentions.append(Mention(draw(texts), draw(kinds), draw(st.integers(-1, 400)), draw(st.integers(-1, 400))))
    ordered = draw(st.sampled_from([mentions, sorted(mentions, key=lambda one: one.start)]))
    return text, ExtractionRecord(tuple(ordered), tuple(draw(st.lists(relations, max_size=3))), tuple(draw(st.lists(texts, max_size=3))))


@given(records())
def test_what_was_written_comes_back_equal(case: tuple[str, ExtractionRecord]) -> None:
    text, record = case
    back = decode_record(encode_record(record, text), text)
    assert back == record
    assert [type(mention.start) for mention in back.mentions] == [int] * len(record.mentions)


@given(records(), st.data())
def test_bytes_that_are_cut_or_changed_are_an_error_of_ours_or_another_record(case: tuple[str, ExtractionRecord], data: st.DataObject) -> None:
    text, record = case
    body = bytearray(encode_record(record, text))
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (bytes(body), bytes(body[: data.draw(st.integers(0, len(body)))])):
        with suppress(IndexFormatError):
            assert isinstance(decode_record(damaged, text), ExtractionRecord)


def test_an_ordinary_mention_takes_three_bytes_and_an_empty_record_one() -> None:
    text = "Anna Berg met Carl Dahl on 3 May 2021. " * 100
    starts = range(0, len(text), len(text) // 100)
    mentions = [Mention(text[start + begin : start + end], "name", start + begin, start + end) for start in starts for begin, end in ((0, 9), (14, 23))]
    assert len(encode_record(ExtractionRecord(tuple(mentions)), text)) == 1 + 3 * len(mentions)
    assert encode_record(ExtractionRecord(), text) == b"\0"
    assert decode_record(b"\0", text) == ExtractionRecord()


def test_numbers_of_other_types_become_whole_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    record = ExtractionRecord((Mention("fox", "name", numpy.int64(4), numpy.int64(7)), Mention("sea", "name", numpy.int64(0), numpy.int64(3))))
    back = decode_record(encode_record(record, "the fox"), "the fox")
    assert back == ExtractionRecord((Mention("fox", "name", 4, 7), Mention("sea", "name", 0, 3)))


@pytest.mark.parametrize(
    "body", [b"", b"\x80", b"\x05{}", b"\0\1", b"\0\1\2", b"\0\x7f\x01\x01", b"\x02[]", b"\x04\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x09"]
)
def test_what_is_no_record_of_the_text_is_said(body: bytes) -> None:
    with pytest.raises(IndexFormatError, match=rf"{len(body)} bytes are not the record of a text of 7 characters .*verify\(repair=True\)"):
        decode_record(body, "the fox")


def test_another_text_is_noticed_where_a_mention_lies_behind_its_end() -> None:
    body = encode_record(ExtractionRecord((Mention("fox", "name", 4, 7),)), "the fox")
    with pytest.raises(IndexFormatError, match="a mention ends at 7"):
        decode_record(body, "the")


def test_what_is_not_json_is_refused() -> None:
    record = ExtractionRecord(relations=(Relation("a", "b", "c", {"when": object()}),))  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="cannot be stored: something in it is not JSON.*object.*Mend the extractor"):
        encode_record(record, "")


@pytest.mark.parametrize(
    "record",
    [
        ExtractionRecord(relations=(Relation("Acme", None, "Beta"),)),  # pyright: ignore[reportArgumentType]
        ExtractionRecord(mentions=(Mention("Acme", None, -1, -1),)),  # pyright: ignore[reportArgumentType]
        ExtractionRecord(names=(None,)),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_text_is_refused_when_it_is_written_not_when_it_is_asked_for(record: ExtractionRecord) -> None:
    with pytest.raises(ConfigurationError, match="cannot be stored: None is no text. Expected names"):
        encode_record(record, "Acme")
