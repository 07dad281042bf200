import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.stores.postings.postings_segment import build_segment, merge_segments, remapped, segment_arrays, segment_from_arrays
from llama_index_advanced_rag.stores.segment_files import map_arrays, write_arrays

counts_of = st.dictionaries(st.sampled_from(["a", "b", "é", "longer than eight", "longer than nine", "\ud800"]), st.integers(1, 300), max_size=4)
texts_of = st.lists(counts_of, max_size=8)


def held(segment):
    """Everything a segment says, as plain values."""
    terms = [term.decode("utf-8", "surrogatepass") for term in segment.terms.terms()]
    found = {term: segment.postings(term) for term in terms}
    return {term: list(zip(positions.tolist(), frequencies.tolist(), strict=True)) for term, (positions, frequencies) in found.items()}


def expected(texts):
    """The same from texts by position."""
    terms = sorted({term for counts in texts.values() for term in counts}, key=lambda term: term.encode("utf-8", "surrogatepass"))
    return {term: [(position, texts[position][term]) for position in sorted(texts) if term in texts[position]] for term in terms}


@given(texts_of, st.integers(0, 5))
def test_a_built_segment_says_what_the_texts_hold(texts, first):
    segment = build_segment(first, texts)
    assert (segment.start, segment.stop, len(segment)) == (first, first + len(texts), len(texts))
    assert held(segment) == expected(dict(enumerate(texts, start=first)))
    assert list(held(segment)) == list(expected(dict(enumerate(texts, start=first))))
    assert segment.postings("unknown") is None


@given(st.lists(texts_of, min_size=1, max_size=4), st.data())
def test_merged_segments_are_a_build_of_what_is_alive(parts, data):
    texts = [counts for part in parts for counts in part]
    alive = data.draw(st.none() | st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)).map(lambda flags: np.array(flags, dtype=bool)))
    starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).tolist()
    merged = merge_segments([build_segment(start, part) for start, part in zip(starts, parts, strict=False)], alive)
    assert (merged.start, merged.stop) == (0, len(texts))
    assert held(merged) == expected({position: counts for position, counts in enumerate(texts) if alive is None or alive[position]})


@given(texts_of, st.randoms(use_true_random=False), st.booleans(), st.integers(0, 3))
def test_a_segment_in_another_numbering_is_a_build_in_it(texts, random, shuffled, first):
    places = list(range(len(texts)))
    kept = [place for place in places if random.random() < 0.7]
    targets = list(range(10, 10 + len(kept)))
    if shuffled:
        random.shuffle(targets)
    new = np.full(first + len(texts), -1, dtype=np.int64)
    for place, target in zip(kept, targets, strict=True):
        new[first + place] = target
    moved = remapped(build_segment(first, texts), new)
    assert held(moved) == expected({target: texts[place] for place, target in zip(kept, targets, strict=True)})
    assert (moved.start, moved.stop) == ((10, 10 + len(kept)) if kept else (0, 0))


@given(texts_of)
def test_arrays_make_the_same_segment(texts):
    segment = build_segment(3, texts)
    again = segment_from_arrays(segment_arrays(segment))
    assert (held(again), again.start, again.stop) == (held(segment), 3, 3 + len(texts))


def test_a_segment_lives_in_its_file(tmp_path):
    segment = build_segment(0, [{"a": 1, "b": 300}, {"b": 2}])
    size, crc = write_arrays(tmp_path / "segment", segment_arrays(segment))
    mapped = segment_from_arrays(map_arrays(tmp_path / "segment", size=size, crc=crc))
    assert held(mapped) == held(segment)
    assert all(isinstance(array.base, np.memmap) and not array.flags.writeable for array in segment_arrays(mapped)[1:])
    assert mapped.frequencies.dtype == np.uint16


@pytest.mark.parametrize(("most", "dtype"), [(255, np.uint8), (256, np.uint16), (70_000, np.uint32)])
def test_frequencies_take_no_more_room_than_they_need(most, dtype):
    small, large = build_segment(0, [{"a": 1}]), build_segment(1, [{"a": most}])
    assert large.frequencies.dtype == dtype
    assert held(merge_segments([small, large])) == {"a": [(0, 1), (1, most)]}
