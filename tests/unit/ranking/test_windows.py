"""Windows that fit and lose nothing, and batches of like length."""

import re

from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.ranking.windows import batch_by_length, cut_windows


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def letters(text: str) -> list[tuple[int, int]]:
    """A tokenizer that cuts words: up to three letters a token, so a slice from inside a word counts otherwise."""
    return [match.span() for match in re.finditer(r"\S{1,3}", text)]


def cut(text: str, spans: list[tuple[int, int]], size: int, overlap: int) -> list[str]:
    return cut_windows(text, spans, size=size, overlap=overlap, count_tokens=lambda piece: len(letters(piece)) if spans == letters(text) else len(words(piece)))


def test_a_text_that_fits_is_one_window_as_it_stands():
    assert cut(" a b ", words(" a b "), 2, 1) == [" a b "]
    assert cut("", [], 1, 0) == [""]


def test_windows_overlap():
    assert cut("a b c d e f g", words("a b c d e f g"), 4, 2) == ["a b c d", "c d e f", "e f g"]


def test_an_overlap_of_more_than_half_is_cut_back_so_that_the_windows_move_on():
    assert cut("a b c d e", words("a b c d e"), 2, 100) == ["a b", "b c", "c d", "d e"]
    assert cut("a b c", words("a b c"), 1, 5) == ["a", "b", "c"]


def test_a_window_starts_at_a_word_where_the_overlap_allows_it():
    text = "abcdef ghijkl mnopqr"
    assert cut(text, letters(text), 4, 2) == ["abcdef ghijkl", "ghijkl mnopqr"]


@given(st.lists(st.integers(1, 12), max_size=20), st.integers(1, 9), st.integers(0, 12))
def test_every_window_fits_and_every_token_is_inside_one(word_lengths: list[int], size: int, overlap: int):
    letter = map(chr, range(0x4E00, 0x9FFF))  # each occurs once, so that a window can be found in the text
    text = " ".join("".join(next(letter) for _ in range(length)) for length in word_lengths)
    spans = letters(text)
    windows = cut(text, spans, size, overlap)
    assert all(len(letters(window)) <= size for window in windows)
    starts = [text.index(window) for window in windows]
    covered = {place for start, window in zip(starts, windows, strict=True) for place in range(start, start + len(window))}
    assert starts == sorted(starts)
    assert all(set(range(*span)) <= covered for span in spans)


def test_batches_hold_items_of_like_length_longest_first():
    assert batch_by_length([1, 9, 2, 8, 9], batch_size=2) == [[1, 4], [3, 2], [0]]
    assert batch_by_length([], batch_size=4) == []


@given(st.lists(st.integers(0, 1000)), st.integers(1, 7))
def test_each_item_is_in_one_batch(lengths: list[int], batch_size: int):
    batches = batch_by_length(lengths, batch_size=batch_size)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) <= batch_size for batch in batches)
    flat = [lengths[index] for batch in batches for index in batch]
    assert flat == sorted(flat, reverse=True)
