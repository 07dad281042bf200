import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_advanced_rag.answering.citations import Citation, CitationWriter, cited_numbers, renumber_citations
from llama_index_advanced_rag.answering.context import NumberedContext, number_sentences

CONTEXT = number_sentences(
    [NodeWithScore(node=TextNode(id_="n1", text="One is. Two is. Three is. Four is. Five is.", metadata={"title": "T", "page_label": "7"}), score=0.5)]
)


def test_numbers_are_renumbered_in_order_of_first_use_and_resolve() -> None:
    text, citations, dangling = renumber_citations("B [4]. A [2][4]. C [1].", CONTEXT)
    assert text == "B [1]. A [2][1]. C [3]."
    assert [citation.text for citation in citations] == ["Four is.", "Two is.", "One is."]
    assert [citation.number for citation in citations] == [1, 2, 3]
    assert dangling == []
    assert citations[0] == Citation(1, "n1", None, 26, 34, None, None, "Four is.", 0.5, "7", "T")


@pytest.mark.parametrize(
    ("answer", "expected", "dangling"),
    [
        ("A [3, 5].", "A [1][2].", []),
        ("A [3;5] b [ 3 ].", "A [1][2] b [1].", []),
        ("A [2-4].", "A [1][2][3].", []),
        ("A [2–3, 5].", "A [1][2][3].", []),
        ("A [9].", "A.", [9]),
        ("A [9] b [1].", "A b [1].", [9]),
        ("A [1, 9].", "A [1].", [9]),
        ("A [9][9] b [0].", "A b.", [9, 0]),
        ("[9] A.", "A.", [9]),
        ("A [1][1].", "A [1][1].", []),
        ("A [1, 1].", "A [1].", []),
        ("In [2023] or [sic] or [a1].", "In [2023] or [sic] or [a1].", []),
        ("A [1", "A [1", []),
        ("A [1]. ", "A [1].", []),
        ("  A [2]", "A [1]", []),
        ("", "", []),
        (" \n ", "", []),
    ],
)
def test_forms_of_markers(answer: str, expected: str, dangling: list[int]) -> None:
    text, citations, found = renumber_citations(answer, CONTEXT)
    assert (text, found) == (expected, dangling)
    assert cited_numbers(text) in ([citation.number for citation in citations], [2023], [1])


def test_a_number_of_a_large_context_may_be_above_999() -> None:
    sentence = CONTEXT.sentences[0]
    large = NumberedContext(tuple(sentence for _ in range(1200)))
    assert renumber_citations("A [1200].", large)[0] == "A [1]."


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "[", "]", "1", "3", "9", "12", ",", "-", ". ", "[2]", "[3, 4]", "[77]", "[1-2]", "word"]), max_size=30),
    st.lists(st.integers(0, 60), max_size=12),
)
def test_pieces_give_the_same_answer_as_the_whole(parts: list[str], cuts: list[int]) -> None:
    answer = "".join(parts)
    whole, citations, dangling = renumber_citations(answer, CONTEXT)
    places = [0, *sorted(min(cut, len(answer)) for cut in cuts), len(answer)]
    writer = CitationWriter(CONTEXT)
    pieces = [writer.feed(answer[start:end]) for start, end in itertools.pairwise(places)]
    assert "".join(pieces) + writer.finish() == whole
    assert (writer.citations, writer.dangling) == (citations, dangling)
    assert [citation.number for citation in citations] == list(range(1, len(citations) + 1))


def test_a_marker_split_over_deltas_is_held_back_until_it_is_whole() -> None:
    writer = CitationWriter(CONTEXT)
    assert [writer.feed(delta) for delta in ("Three ", "[", "3", "]", " and", " one [1, ", "2].")] == ["Three", "", "", " [1]", " and", " one", " [2][3]."]
    assert writer.finish() == ""


def test_a_citation_survives_json() -> None:
    _, (citation,), _ = renumber_citations("A [2].", CONTEXT)
    assert Citation.from_dict(json.loads(json.dumps(citation.to_dict()))) == citation
