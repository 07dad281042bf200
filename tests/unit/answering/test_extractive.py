import time

import pytest
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_advanced_rag.answering.context import NumberedContext, number_sentences
from llama_index_advanced_rag.answering.extractive import Extract, compose_answer, extract_sentences, sentences_to_compare
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

ENGLISH, FRENCH = TextAnalyzer("en"), TextAnalyzer("fr")


def context_of(*texts: str, title: str = "") -> NumberedContext:
    return number_sentences([NodeWithScore(node=TextNode(id_=f"n{rank}", text=text, metadata={"title": title})) for rank, text in enumerate(texts, 1)])


def chosen(question: str, context: NumberedContext, analyzer: TextAnalyzer = ENGLISH, **options: object) -> list[str]:
    return [extract.sentence.text for extract in extract_sentences(question, context.sentences, analyzer=analyzer, **options)]


def test_the_sentence_that_shares_the_rare_words_comes_first() -> None:
    context = context_of("The zoo keeps many animals. The zoo opened its aviary for parrots. The zoo sells tickets.")
    assert chosen("Which birds live in the aviary of the zoo?", context, max_sentences=1) == ["The zoo opened its aviary for parrots."]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("When was the bridge built?", "The bridge was built in March 1894."),
        ("How long is the bridge that was built?", "The bridge that was built has 244 metres."),
        ("Who built the bridge?", "The bridge was built by John Wolfe Barry."),
    ],
)
def test_the_kind_of_thing_asked_for_is_preferred_in_english(question: str, best: str) -> None:
    context = context_of(
        "The bridge was built of steel. The bridge was built by John Wolfe Barry. The bridge was built in March 1894. The bridge that was built has 244 metres."
    )
    assert chosen(question, context, max_sentences=1) == [best]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Quand la tour est-elle construite ?", "La tour est construite en mars 1889."),
        ("Combien de personnes ont construit la tour ?", "La tour est construite par 250 personnes."),
        ("Qui a construit la tour ?", "La tour est construite par Gustave Eiffel."),
    ],
)
def test_the_kind_of_thing_asked_for_is_preferred_in_french(question: str, best: str) -> None:
    ways = ("en fer", "par Gustave Eiffel", "en mars 1889", "par 250 personnes")
    context = context_of(" ".join(f"La tour est construite {way}." for way in ways))
    assert chosen(question, context, FRENCH, max_sentences=1) == [best]


def test_a_row_speaks_under_the_head_of_its_table() -> None:
    context = context_of(
        "Apple sells phones.\nThree Months Ended\nJuly 1,\n2023\nJune 25,\n2022\nNet sales:\nProducts $ 60,584 $ 63,355\n"
        "Total net sales 81,797 82,959\nTotal cost of sales 45,384 47,074\n"
    )
    extracts = extract_sentences("What were Apple's total net sales in the quarter ended July 1, 2023?", context.sentences, analyzer=ENGLISH, max_sentences=1)
    text = "".join(compose_answer(extracts))
    assert "Total net sales 81,797 82,959 [" in text
    assert text.startswith("Three Months Ended July 1, 2023 June 25, 2022")


def test_nothing_relevant_gives_nothing() -> None:
    context = context_of("The company returns capital to shareholders. Sales rose.")
    assert chosen("What is the capital of Mongolia and its population?", context) == []
    assert chosen("Xylophone?", context) == []
    assert chosen("What is it?", context) == []
    assert extract_sentences("anything", [], analyzer=ENGLISH) == []


def test_a_sentence_that_only_repeats_the_question_is_no_answer() -> None:
    context = context_of("Capital of France\nThe capital of France is Paris.")
    assert chosen("What is the capital of France?", context) == ["The capital of France is Paris."]


def test_a_question_in_a_document_is_no_answer_but_what_follows_it_is() -> None:
    context = context_of("How long are cookies kept? Thirteen months at most. Write to us.")
    assert chosen("How long are cookies kept?", context) == ["Thirteen months at most."]


def test_a_statement_made_of_the_words_of_the_question_confirms_it() -> None:
    assert chosen("Do foxes eat mice?", context_of("Foxes eat mice. Cows eat grass.")) == ["Foxes eat mice."]


def test_the_first_sentence_of_a_document_speaks_under_its_title() -> None:
    context = context_of("Thirteen months at most. Nothing else matters here.", title="How long are cookies kept")
    assert chosen("How long are cookies kept?", context) == ["Thirteen months at most."]


def test_near_duplicates_are_said_once() -> None:
    context = context_of("Total net sales were 81,797 in July.", "In July, total net sales were 81,797.", "Total net sales of services were 21,213 in July.")
    texts = chosen("What were total net sales in July?", context)
    assert len([text for text in texts if "81,797" in text]) == 1


def test_sentences_of_a_node_stay_in_the_order_of_the_text() -> None:
    context = context_of("Foxes hunt mice at night. Cows eat. Foxes hunt mice and also hunt voles at night in winter.")
    texts = chosen("What do foxes hunt at night in winter?", context)
    assert texts == ["Foxes hunt mice at night.", "Foxes hunt mice and also hunt voles at night in winter."]


def test_the_better_ranked_node_wins_between_equals() -> None:
    context = context_of("Foxes hunt mice often.", "Foxes hunt hares rarely.")
    assert chosen("What do foxes hunt?", context, max_sentences=1) == ["Foxes hunt mice often."]


def test_similarity_finds_what_words_do_not() -> None:
    context = context_of("Physicians earn well. Trees grow slowly. Rain falls in spring. Stones are hard.")
    question = "How are doctors paid?"
    assert chosen(question, context) == []
    assert chosen(question, context, similarities={1: 0.8, 2: 0.1, 3: 0.1, 4: 0.2}) == ["Physicians earn well."]
    assert chosen(question, context, similarities={1: 0.3, 2: 0.1, 3: 0.1, 4: 0.2}) == []
    assert chosen(question, context, similarities={1: 0.81, 2: 0.8, 3: 0.79, 4: 0.8}) == []  # a model whose cosines are all high


def test_similarity_decides_between_sentences_with_the_same_words() -> None:
    context = context_of("Foxes hunt mice often. Foxes hunt hares rarely.")
    question = "What do foxes hunt?"
    assert chosen(question, context, max_sentences=1, similarities={1: 0.5, 2: 0.9}) == ["Foxes hunt hares rarely."]
    assert chosen(question, context, max_sentences=1, similarities={2: 0.9}) == ["Foxes hunt mice often."]


def test_few_sentences_are_compared() -> None:
    context = context_of(*(f"Foxes hunt mice number {n} in the wood. Trees grow {n} metres. Rain falls {n} times." for n in range(60)))
    compared = sentences_to_compare("What do foxes hunt?", context.sentences, analyzer=ENGLISH)
    assert len(compared) == 16
    assert all("Foxes" in sentence.text for sentence in compared)
    assert len(sentences_to_compare("Xylophones?", context.sentences, analyzer=ENGLISH)) == 48


def test_scores_fall_and_are_plain_floats() -> None:
    context = context_of("Foxes hunt mice. Foxes hunt hares in winter nights.", "Foxes sleep.")
    extracts = extract_sentences("What do foxes hunt?", context.sentences, analyzer=ENGLISH)
    assert all(type(extract.score) is float and 0 < extract.score <= 1.15 for extract in extracts)


def test_a_long_question_is_answered_in_time() -> None:
    context = context_of(*("Foxes hunt mice in the woods at night. " * 20 for _ in range(10)))
    started = time.perf_counter()
    chosen("What do foxes hunt at night in the woods near mice? " * 80, context)
    assert time.perf_counter() - started < 2


def test_footnote_numbers_of_a_source_do_not_become_citations() -> None:
    context = context_of("Foxes hunt mice.[3]")
    extract = Extract(context.sentences[0], 1.0)
    assert compose_answer([extract]) == ["Foxes hunt mice.(3) [1]"]
    assert compose_answer([]) == []
