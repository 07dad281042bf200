from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.hierarchy.chunking import Piece, chunk_spans, cut_pieces, pack_pieces
from llama_index_advanced_rag.text.sentences import sentence_spans


def count_words(text: str) -> int:
    return len(text.split())


def count_pairs(text: str) -> int:
    """A tokenizer of pairs of characters: the counts of parts do not add up, and white space counts."""
    return (len(text) + 1) // 2


def chunks(text: str, size: int, overlap: int = 0, count=count_words) -> list[str]:
    spans = chunk_spans(text, sentence_spans(text, language="en"), count_tokens=count, max_tokens=size, overlap_tokens=overlap)
    return [text[start:end] for start, end in spans]


def test_whole_sentences_are_packed() -> None:
    assert chunks("One two three. Four five. Six seven eight nine. Ten.", 5) == ["One two three. Four five.", "Six seven eight nine. Ten."]


def test_the_overlap_is_whole_sentences_within_the_budget() -> None:
    text = "One two three. Four five. Six seven. Eight nine."
    assert chunks(text, 5, 2) == ["One two three. Four five.", "Four five. Six seven.", "Six seven. Eight nine."]
    assert chunks(text, 5, 1) == ["One two three. Four five.", "Six seven. Eight nine."]


def test_the_overlap_leaves_room_for_what_comes_next() -> None:
    assert chunks("One two. Three four five six. Seven.", 4, 3) == ["One two.", "Three four five six.", "Seven."]


def test_a_long_sentence_is_cut_at_white_space_and_a_long_word_anywhere() -> None:
    assert chunks("a b c d e f g", 3) == ["a b c", "d e f", "g"]
    assert chunks("x" * 10, 2, count=count_pairs) == ["xxxx", "xxxx", "xx"]


def test_a_single_character_may_count_more() -> None:
    assert chunks("ab", 1, count=lambda text: 5 * len(text)) == ["a", "b"]


def test_counting_is_linear_also_in_one_long_sentence() -> None:
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return count_words(text)

    text = "word " * 20_000
    spans = chunk_spans(text, [(0, len(text))], count_tokens=count, max_tokens=50, overlap_tokens=10)
    assert len(spans) == 400
    assert counted < 200 * len(text)


def count_lines(text: str) -> int:
    """Words and line ends, as most tokenizers count them."""
    return len(text.split()) + text.count("\n")


def test_short_lines_are_counted_a_few_times_only() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return count_lines(text)

    lines = ["SALES", "COSTS OF SALES", "RENT", "A B C D E F"] * 1000
    text = "\n".join(lines)
    spans = chunk_spans(text, sentence_spans(text, language="en"), count_tokens=count, max_tokens=100)
    assert all(count_lines(text[start:end]) <= 100 for start, end in spans)
    assert calls < len(lines) + 6 * len(spans)


@settings(max_examples=200, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=60),
    gaps=st.lists(st.sampled_from([1, 1, 1, 9]), min_size=60, max_size=60),
    size=st.integers(9, 40),
)
def test_a_chunk_is_the_longest_run_that_fits(lengths: list[int], gaps: list[int], size: int) -> None:
    text, pieces = "", []
    for length, gap in zip(lengths, gaps, strict=False):
        pieces.append(Piece(len(text), len(text) + length + 1, length))
        text += "x" * length + "." + "\n" * gap

    def count(part: str) -> int:
        return part.count("x") + part.count("\n")

    spans, first = pack_pieces(text, pieces, count_tokens=count, room=lambda _: size), 0
    for start, end in spans:
        ends = [piece.end for piece in pieces[first:] if count(text[start : piece.end]) <= size]
        assert (start, end) == (pieces[first].start, ends[-1])
        first = next((place for place, piece in enumerate(pieces) if piece.start >= end), len(pieces))
    assert first == len(pieces)


def test_nothing_gives_nothing() -> None:
    assert chunk_spans("", [], count_tokens=count_words, max_tokens=5) == []


WORDS = st.lists(st.sampled_from(["a", "bb.", "Ccc", "dddd!", "\n", "e" * 40, "1,234", "日本。"]), max_size=80).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(text=WORDS, size=st.integers(2, 30), share=st.floats(0, 0.9), count=st.sampled_from([count_words, count_pairs, len]))
def test_no_chunk_is_too_long_and_nothing_is_lost(text: str, size: int, share: float, count) -> None:
    spans = chunk_spans(text, sentence_spans(text, language="en"), count_tokens=count, max_tokens=size, overlap_tokens=int(size * share))
    assert all(count(text[start:end]) <= size for start, end in spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert all(place in covered for place, character in enumerate(text) if not character.isspace())
    assert spans == sorted(spans)
    assert len({end for _, end in spans}) == len(spans)


def test_what_heads_the_next_piece_does_not_end_a_chunk() -> None:
    text = "One two. Head Three four. Five six."
    pieces = [Piece(0, 8, 2), Piece(9, 13, 1, with_next=True), Piece(14, 25, 2), Piece(26, 35, 2)]
    spans = pack_pieces(text, pieces, count_tokens=count_words, room=lambda _: 4, overlap_tokens=2)
    assert [text[start:end] for start, end in spans] == ["One two.", "Head Three four.", "Five six."]


def test_a_chunk_does_not_begin_right_below_a_head() -> None:
    text = "Head a b c d"
    pieces = [Piece(0, 4, 1, with_next=True), Piece(5, 6, 1), Piece(7, 8, 1), Piece(9, 10, 1), Piece(11, 12, 1)]
    spans = pack_pieces(text, pieces, count_tokens=count_words, room=lambda _: 2, overlap_tokens=1)
    assert [text[start:end] for start, end in spans] == ["Head a", "b c", "c d"]


def test_heads_without_room_for_more_are_a_chunk() -> None:
    text = "A b C d E f"
    pieces = [Piece(0, 3, 2, with_next=True), Piece(4, 7, 2, with_next=True), Piece(8, 11, 2)]
    spans = pack_pieces(text, pieces, count_tokens=count_words, room=lambda _: 3)
    assert [text[start:end] for start, end in spans] == ["A b", "C d", "E f"]


def test_the_room_may_differ_from_chunk_to_chunk() -> None:
    text = "a b c d e f"
    pieces = [Piece(place, place + 1, 1) for place in range(0, 11, 2)]
    spans = pack_pieces(text, pieces, count_tokens=count_words, room=lambda start: 2 if start else 4)
    assert [text[start:end] for start, end in spans] == ["a b c d", "e f"]


def test_a_long_sentence_leaves_room_for_its_heading() -> None:
    text = "Head a b c d e f"
    pieces = cut_pieces(text, [(0, 4), (5, 16)], count_tokens=count_words, max_tokens=4, with_next=lambda span: span[0] == 0)
    assert [text[piece.start : piece.end] for piece in pieces] == ["Head", "a b c", "d e f"]
