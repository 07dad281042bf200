from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.graph.reading_windows import mention_at, merged_mentions, windows_of, word_places
from llama_index_advanced_rag.graph.records import Mention


@given(st.text(alphabet="ab -.\n", max_size=80), st.integers(1, 9))
def test_windows_hold_every_word_and_none_is_too_long(text: str, size: int):
    tokens = word_places(text)
    windows = windows_of(text, tokens, size=size)
    held = {token for token in tokens for start, end in windows if start <= token[0] and token[1] <= end}
    assert held == set(tokens)
    assert all(sum(start <= token[0] and token[1] <= end for token in tokens) <= size for start, end in windows)


def test_neighbouring_windows_share_words():
    text = " ".join(f"word{position}" for position in range(100))
    windows = windows_of(text, word_places(text), size=16)
    assert all(later[0] < earlier[1] for earlier, later in pairwise(windows))


def test_a_text_without_words_has_no_window():
    assert windows_of(" \n", [], size=3) == []


def test_a_word_of_a_megabyte_is_many_pieces():
    assert max(end - start for start, end in word_places("a" * 1_000_000)) == 64


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from("AB")), max_size=20))
def test_merged_mentions_are_in_order_and_apart(spans: list[tuple[int, int, str]]):
    mentions = [Mention("x" * length, kind, start, start + length) for start, length, kind in spans]
    merged = merged_mentions(mentions)
    assert merged == merged_mentions(mentions[::-1])
    assert all(earlier.end <= later.start for earlier, later in pairwise(merged))
    assert set(merged) <= set(mentions)
    assert not mentions or max(len(mention.surface) for mention in merged) == max(len(mention.surface) for mention in mentions)


def test_a_mention_has_no_white_space_at_its_ends():
    assert mention_at("in New York .", 2, 12, "LOC") == Mention("New York", "LOC", 3, 11)
    assert mention_at("in New York .", 2, 3, "LOC") is None
    assert mention_at("in", 5, 9, "LOC") is None
