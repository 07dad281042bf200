"""Known names in texts: the longest at each place, whatever was added and forgotten before."""

import time

from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.text.gazetteer import Gazetteer
from llama_index_advanced_rag.text.name_words import name_key, name_words

LETTERS = ("a", "b", "c")
words = st.sampled_from(["Lake", "lake", "District", "district", "It", "2022", "日", "of", "Élan"])
names = st.lists(words, min_size=1, max_size=4).map(" ".join)
texts = st.lists(words, max_size=25).map(" ".join)


def found(gazetteer: Gazetteer, text: str, **options: bool) -> list[str]:
    return [name.key for name in gazetteer.find(name_words(text), **options)]


def longest_first(known: set[str], text: str, *, any_case: bool) -> list[tuple[str, int, int]]:
    """What should be found, by trying everything."""
    cut, place, expected = name_words(text), 0, list[tuple[str, int, int]]()
    while place < len(cut):
        for last in range(len(cut), place, -1):
            key = " ".join(word.key for word in cut[place:last])
            alone = last - place > 1 or ((any_case or cut[place].shown) and key not in ("it", "of"))
            if key in known and alone:
                expected.append((key, place, last))
                place = last
                break
        else:
            place += 1
    return expected


def test_the_longest_at_each_place_and_no_overlap() -> None:
    gazetteer = Gazetteer(["new york", "new york city", "york city hall", "city"])
    assert found(gazetteer, "In New York City Hall") == ["new york city"]
    assert found(gazetteer, "New York, York City Hall; City") == ["new york", "york city hall", "city"]


def test_one_word_must_begin_like_a_name_unless_asked_otherwise() -> None:
    gazetteer = Gazetteer(["apple", "it", "東", "4", "lake district"])
    assert found(gazetteer, "an apple, it is; Apple It 東京 4 in the lake district") == ["apple", "東", "4", "lake district"]
    assert found(gazetteer, "an apple, it is", any_case=True) == ["apple"]


def test_names_that_begin_alike() -> None:
    gazetteer = Gazetteer(["q3", "q3 2022", "q3 2023"])
    assert found(gazetteer, "Q3 2022, Q3 2023, Q3 2024") == ["q3 2022", "q3 2023", "q3"]


@given(st.lists(names), texts, st.booleans())
def test_as_if_everything_were_tried(known: list[str], text: str, any_case: bool) -> None:
    keys = {name_key(name) for name in known}
    assert [tuple(name) for name in Gazetteer(keys).find(name_words(text), any_case=any_case)] == longest_first(keys, text, any_case=any_case)


@given(st.lists(st.tuples(st.booleans(), names)), texts)
def test_what_was_forgotten_leaves_no_trace(steps: list[tuple[bool, str]], text: str) -> None:
    changed, kept = Gazetteer(), set[str]()
    for adds, name in steps:
        key = name_key(name)
        (changed.add if adds else changed.discard)(key)
        (kept.add if adds else kept.discard)(key)
    fresh = Gazetteer(kept)
    assert len(changed) == len(kept)
    assert all(key in changed for key in kept)
    assert changed.find(name_words(text)) == fresh.find(name_words(text))


def test_a_copy_knows_what_was_known() -> None:
    gazetteer = Gazetteer(["lake", "lake district"])
    copied = gazetteer.copy()
    gazetteer.discard("lake district")
    gazetteer.add("lake district park")
    assert found(copied, "Lake District Park") == ["lake district"]
    copied.add("park")
    assert found(gazetteer, "Lake District Park, Park") == ["lake district park"]


def test_nothing_known_and_nothing_to_read() -> None:
    assert Gazetteer().find(name_words("New York")) == []
    assert Gazetteer(["", "new york"]).find([]) == []
    assert "" not in Gazetteer([""])
    Gazetteer().discard("unknown")


def test_many_names_that_begin_alike_in_a_long_text() -> None:
    gazetteer = Gazetteer(f"q {number}" for number in range(100_000))
    text = name_words("Q 7 and q Q 100001. " * 50_000)
    start = time.perf_counter()
    assert len(gazetteer.find(text)) == 50_000
    assert time.perf_counter() - start < 20.0
