"""Names folded chunk by chunk are those of a fold from scratch, whatever came, went, and was settled in between."""

import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.graph.name_fold import ChunkText, NameFold
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention, Relation

NAMES = (
    *("Lake", "Lake District", "Lake District National Park", "District", "lake district", "The Lake", "LAKE"),
    *("Star (film)", "Star (film) (1990)", "Star", "Star film", "Q3 2022", "Q3 2023", "Q3", "2022"),
    *("Élan", "elan", "É", "日本", "日", "日本 (国)", "GPT-4", "GPT", "C++", "It", "—", "", "ﷺ", "Anthropic's", "A " * 20),
)
names = st.sampled_from(NAMES)
texts = st.lists(names | st.sampled_from(["of", "and", "by the", "."]), max_size=8).map(" ".join)
mentions = st.builds(Mention, names, st.sampled_from(["name", "number", "date"]), st.sampled_from([-1, 0]), st.just(1))
relations = st.builds(Relation, names, st.just("leads to"), names)
records = st.builds(
    ExtractionRecord,
    st.lists(mentions, max_size=3).map(tuple),
    st.lists(relations, max_size=2).map(tuple),
    st.lists(names, max_size=2).map(tuple),
)
chunks = st.builds(ChunkText, texts, records)
steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 4), chunks),
    st.tuples(st.just("remove"), st.integers(0, 4), st.none()),
    st.tuples(st.just("settle"), st.just(0), st.none()),
)


def fresh(said: Mapping[int, ChunkText]) -> NameFold:
    fold = NameFold()
    for number, chunk in said.items():
        fold.add(number, chunk)
    fold.settle(lambda _: {})
    return fold


def known(fold: NameFold) -> dict[str, str]:
    return {key: fold.spelling(key) for key in fold._spellings}


def said_of(fold: NameFold) -> dict[int, object]:
    parts = {number: (chunk.spellings, chunk.own, chunk.unwritten, chunk.facts, list(chunk.found.items())) for number, chunk in fold.chunks.items()}
    return dict(sorted(parts.items()))


def assert_same(one: NameFold, other: NameFold) -> None:
    assert said_of(one) == said_of(other)
    assert known(one) == known(other)
    assert len(one.names) == len(other.names)
    assert all(key in one.names for key in known(other))


def reader(said: Mapping[int, ChunkText]):
    return lambda numbers: {number: said[number].text for number in numbers}


def mention(surface: str, start: int = 0) -> Mention:
    return Mention(surface, "name", start, start + 1)


def names_only(*surfaces: str) -> ExtractionRecord:
    return ExtractionRecord(tuple(map(mention, surfaces)))


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=14))
def test_any_order_of_changes_is_a_fold_from_scratch(done: list[tuple[str, int, ChunkText | None]]) -> None:
    fold, said = NameFold(), dict[int, ChunkText]()
    for kind, number, chunk in done:
        if kind == "add" and chunk is not None:
            if number in said:
                fold.remove(number)
            fold.add(number, chunk)
            said[number] = chunk
        elif kind == "remove" and number in said:
            fold.remove(number)
            del said[number]
        elif kind == "settle":
            fold.settle(reader(said))
            assert_same(fold, fresh(said))
    fold.settle(reader(said))
    assert_same(fold, fresh(said))


@settings(max_examples=60, deadline=None)
@given(st.lists(chunks, max_size=4), st.lists(chunks, max_size=4))
def test_a_and_b_without_b_is_a(left: list[ChunkText], right: list[ChunkText]) -> None:
    both = dict(enumerate([*left, *right]))
    fold = fresh(both)
    for number in range(len(left), len(both)):
        fold.remove(number)
    fold.settle(reader(both))
    assert_same(fold, fresh(dict(enumerate(left))))


def test_a_name_that_one_chunk_makes_known_is_found_in_all() -> None:
    said = {1: ChunkText("The lake district is wet.", ExtractionRecord()), 2: ChunkText("A tour.", names_only("Lake District"))}
    fold = fresh({1: said[1]})
    assert fold.chunks[1].found == {}
    fold.add(2, said[2])
    fold.settle(reader(said))
    assert fold.chunks[1].found == {"lake district": 1}
    fold.remove(2)
    fold.settle(reader(said))
    assert fold.chunks[1].found == {}
    assert len(fold.names) == 0


def test_only_chunks_that_hold_the_rarest_word_are_read_again() -> None:
    said = {number: ChunkText(f"A lake of number {number}." + (" Its district." if number == 7 else ""), ExtractionRecord()) for number in range(50)}
    fold, asked = fresh(said), list[int]()

    def texts_of(numbers: Sequence[int]) -> dict[int, str]:
        asked.extend(numbers)
        return {number: said[number].text for number in numbers}

    fold.add(50, ChunkText("", names_only("Lake District")))
    fold.settle(texts_of)
    assert asked == [7]
    fold.add(51, ChunkText("", names_only("Lake District")))
    fold.settle(texts_of)
    assert asked == [7], "a name that was known already makes no difference"
    fold.remove(51)
    fold.settle(texts_of)
    assert asked == [7]


def test_a_longer_name_takes_the_place_of_a_shorter_one_and_gives_it_back() -> None:
    said = {1: ChunkText("Lake District and Lake.", names_only("Lake")), 2: ChunkText("", names_only("Lake District"))}
    fold = fresh({1: said[1]})
    assert fold.chunks[1].found == {"lake": 2}
    fold.add(2, said[2])
    fold.settle(reader(said))
    assert fold.chunks[1].found == {"lake district": 1, "lake": 1}
    fold.remove(2)
    fold.settle(reader(said))
    assert fold.chunks[1].found == {"lake": 2}


def test_what_a_record_makes_known() -> None:
    number = Mention("1,250", "number", 0, 5)
    facts = (Relation("BERT", "by", "Google"), Relation("", "by", "Nobody"), Relation("Nobody", "by", "—"))
    record = ExtractionRecord((number, mention("GPT-4"), mention("OpenAI", -1)), facts, ("Models (2023)", "—"))
    fold = fresh({1: ChunkText("GPT-4 and 1,250.", record)})
    folded = fold.chunks[1]
    assert sorted(known(fold)) == ["bert", "google", "gpt 4", "models", "models 2023", "openai"]
    assert folded.own == (("models 2023", "models"),)
    assert folded.unwritten == ("bert", "google", "openai")
    assert folded.found == {"gpt 4": 1}
    assert [fact.relation for fact in folded.facts] == [facts[0]]


def test_the_usual_spelling_and_of_equals_the_first() -> None:
    fold = fresh({number: ChunkText("", names_only(*surfaces)) for number, surfaces in enumerate([("Élan", "ELAN"), ("ELAN",), ("Zed",), ("ZED",)])})
    assert fold.spelling("elan") == "ELAN"
    assert fold.spelling("zed") == "ZED"
    fold.remove(1)
    fold.settle(lambda numbers: dict.fromkeys(numbers, ""))
    assert fold.spelling("elan") == "ELAN"


def test_names_that_differ_by_a_digit_stay_two() -> None:
    fold = fresh({1: ChunkText("Q3 2022 was better than Q3 2023.", names_only("Q3 2022", "Q3 2023"))})
    assert fold.chunks[1].found == {"q3 2022": 1, "q3 2023": 1}


def test_texts_that_cannot_be_read_leave_the_fold_as_it_was() -> None:
    said = {1: ChunkText("Lake District", ExtractionRecord()), 2: ChunkText("", names_only("Lake District"))}
    fold = fresh({1: said[1]})
    fold.add(2, said[2])

    def fail(numbers: Sequence[int]) -> Mapping[int, str]:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        fold.settle(fail)
    fold.settle(reader(said))
    assert_same(fold, fresh(said))


def test_removing_what_is_not_there_is_an_error_and_changes_nothing() -> None:
    fold = fresh({1: ChunkText("", names_only("Lake"))})
    with pytest.raises(KeyError):
        fold.remove(2)
    assert_same(fold, fresh({1: ChunkText("", names_only("Lake"))}))


def test_an_empty_fold() -> None:
    fold = fresh({})
    fold.settle(lambda _: {})
    assert (fold.chunks, len(fold.names)) == ({}, 0)


def test_many_chunks_of_one_name_are_folded_and_changed_in_seconds() -> None:
    said = {number: ChunkText(f"Knott is a fell of number {number} in the Lake District.", names_only("Knott")) for number in range(20_000)}
    start = time.perf_counter()
    fold = fresh(said)
    fold.add(20_000, ChunkText("", names_only("Lake District")))
    fold.settle(reader(said))
    fold.remove(20_000)
    fold.settle(reader(said))
    assert time.perf_counter() - start < 60.0
    assert len(fold.names) == 1
