import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_advanced_rag.answering.budget import fit_context
from llama_index_advanced_rag.answering.context import NumberedContext, number_sentences
from llama_index_advanced_rag.answering.extractive import Extract, rank_sentences
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

FILLER = " ".join(f"Trees grow {number} metres in the wood." for number in range(40))


def words(text: str) -> int:
    return len(text.split())


def context_of(*texts: str) -> NumberedContext:
    return number_sentences(
        [NodeWithScore(node=TextNode(id_=f"n{number}", text=text, metadata={"title": f"Book {number}"})) for number, text in enumerate(texts)]
    )


def test_what_fits_stays_as_it_is() -> None:
    context = context_of("Foxes are red. They run.")
    assert fit_context(context, (), max_tokens=100, count_tokens=words) is context


def test_the_best_sentence_is_kept_from_anywhere_with_what_stands_around_it() -> None:
    context = context_of(FILLER, f"{FILLER} Hens sleep. Foxes hunt mice at night. They rest by day. {FILLER}")
    ranked = rank_sentences("What do foxes hunt?", context.sentences, analyzer=TextAnalyzer("en"))
    fitted = fit_context(context, ranked, max_tokens=120, count_tokens=words)
    texts = [sentence.text for sentence in fitted.sentences]
    at = texts.index("Foxes hunt mice at night.")
    assert texts[at - 1 : at + 2] == ["Hens sleep.", "Foxes hunt mice at night.", "They rest by day."]
    assert texts[0] == "Trees grow 0 metres in the wood."  # the best node keeps its beginning
    assert [sentence.number for sentence in fitted.sentences] == list(range(1, len(texts) + 1))
    assert fitted.left_out == ("n0", "n1")
    assert fitted.prompt_text.count("# Book 1") == 1


def test_a_row_keeps_the_head_of_its_table() -> None:
    rows = "".join(f"Part {number} {number}0 {number}1\n" for number in range(1, 60))
    context = context_of(f"{FILLER}\nJuly 1, 2023 June 25, 2022\n{rows}Total net sales 81,797 82,959")
    ranked = rank_sentences("What were total net sales?", context.sentences, analyzer=TextAnalyzer("en"))
    texts = [sentence.text for sentence in fit_context(context, ranked, max_tokens=60, count_tokens=words).sentences]
    assert "July 1, 2023 June 25, 2022" in texts
    assert "Total net sales 81,797 82,959" in texts


def test_nodes_fill_the_budget_in_their_order_where_no_sentence_is_known_to_fit() -> None:
    fitted = fit_context(context_of("Foxes are red. They run.", "Hens fear them. Farmers do not."), (), max_tokens=19, count_tokens=words)
    assert [sentence.text for sentence in fitted.sentences] == ["Foxes are red.", "They run."]
    assert fitted.left_out == ("n1",)


def test_one_sentence_is_always_kept() -> None:
    context = context_of("Foxes are red. They run.")
    assert [sentence.text for sentence in fit_context(context, (), max_tokens=1, count_tokens=words).sentences] == ["Foxes are red."]
    best = Extract(context.sentences[1], 1.0)
    assert [sentence.text for sentence in fit_context(context, [best], max_tokens=1, count_tokens=words).sentences] == ["They run."]
    assert fit_context(NumberedContext(), (), max_tokens=1) == NumberedContext()


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_below_one_is_refused(budget: int) -> None:
    with pytest.raises(ConfigurationError, match=f"max_tokens is {budget}"):
        fit_context(NumberedContext(), (), max_tokens=budget)


@given(st.integers(20, 400), st.lists(st.integers(0, 82), max_size=10))
def test_the_budget_holds_and_order_stays(budget: int, best: list[int]) -> None:
    context = context_of(FILLER, FILLER, "Foxes run. Hens hide. The end.")
    fitted = fit_context(context, [Extract(context.sentences[place], 1.0) for place in best], max_tokens=budget, count_tokens=words)
    assert words(fitted.prompt_text) <= budget
    places = [(sentence.node_rank, sentence.start) for sentence in fitted.sentences]
    assert places == sorted(places)
