import time

import pytest
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_advanced_rag.answering.context import NumberedContext, number_sentences
from llama_index_advanced_rag.answering.extractive import Extract, extract_sentences, sentences_to_compare
from llama_index_advanced_rag.answering.quoting import compose_answer
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
    assert text == "Total net sales 81,797 82,959 [4] (Three Months Ended July 1, 2023 June 25, 2022 Net sales: [2])"


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
    context = context_of("Foxes hunt 20 mice at night. Cows eat. Foxes hunt a lot at night in winter.")
    texts = chosen("How many mice do foxes hunt at night in winter?", context)
    assert texts == ["Foxes hunt 20 mice at night.", "Foxes hunt a lot at night in winter."]


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


TABLES = (
    "Three Months Ended\nJuly 1, 2023\nJune 25, 2022\nTotal net sales 81,797 82,959\nPercentage of total net sales 9 8\n",
    "Three Months Ended\nApril 1, 2023\nMarch 26, 2022\nTotal net sales 94,836 97,278\n",
)


def test_the_date_asked_for_decides_between_tables_and_the_other_one_is_not_quoted() -> None:
    question = "What were total net sales in the quarter ended July 1, 2023?"
    for texts in (TABLES, TABLES[::-1]):
        assert chosen(question, context_of(*texts)) == ["Total net sales 81,797 82,959"]


def test_the_quarter_asked_for_decides() -> None:
    context = context_of("Revenue in the second quarter of 2023 was $5 million.", "Revenue in the first quarter of 2023 was $4 million.")
    assert chosen("What was revenue in the first quarter of 2023?", context, max_sentences=1) == ["Revenue in the first quarter of 2023 was $4 million."]


def test_a_label_that_is_asked_for_beats_prose_on_it() -> None:
    context = context_of("The population grew by 20% a year.\nPopulation | 331,918\nPopulation growth rate | 1.21%", title="Iceland")
    assert chosen("What is the population of Iceland?", context)[0] == "Population | 331,918"


def test_a_reason_is_asked_for() -> None:
    context = context_of("The agreement to buy Arm was terminated in 2022. The parties agreed to terminate due to regulatory challenges. Sales rose.")
    assert "The parties agreed to terminate due to regulatory challenges." in chosen("Why was the agreement to buy Arm terminated?", context)


def test_a_name_that_the_document_does_not_have_is_not_answered() -> None:
    context = context_of("Revenue was $5 million in 2023. Costs were $3 million.")
    assert chosen("What was the revenue in 2023?", context) != []
    assert chosen("What was the revenue of Tesla in 2023?", context) == []


def test_headings_are_not_quoted() -> None:
    context = context_of("# Code du travail : jours fériés\n\nLe 8 mai est un jour férié.")
    assert chosen("Le 8 mai est-il un jour férié selon le code du travail ?", context, FRENCH) == ["Le 8 mai est un jour férié."]


def test_an_announcement_brings_its_list_and_an_item_what_announces_it() -> None:
    context = context_of("La durée maximale de la période d'essai est :\n1° Pour les ouvriers, de deux mois ;\n2° Pour les cadres, de quatre mois.")
    whole = "".join(compose_answer(extract_sentences("Quelle est la durée maximale de la période d'essai ?", context.sentences, analyzer=FRENCH)))
    assert whole.splitlines() == [
        "La durée maximale de la période d'essai est : [1]",
        "  1° Pour les ouvriers, de deux mois [2]",
        "  2° Pour les cadres, de quatre mois. [3]",
    ]
    item = "".join(compose_answer(extract_sentences("Quelle est la durée de la période d'essai pour les cadres ?", context.sentences, analyzer=FRENCH)))
    assert item.splitlines() == ["La durée maximale de la période d'essai est : [1]", "  2° Pour les cadres, de quatre mois. [3]"]


def test_weak_sentences_are_not_added_to_a_good_one() -> None:
    context = context_of("Foxes hunt mice at night. Foxes sleep. Hunters hunt foxes. Night falls early.")
    assert chosen("What do foxes hunt at night?", context) == ["Foxes hunt mice at night."]


def test_language_auto_counts_a_word_once() -> None:
    context = context_of("La durée de la période d'essai est de deux mois. Le salarié travaille.")
    assert chosen("Quelle est la durée de la période d'essai ?", context, TextAnalyzer("auto")) == ["La durée de la période d'essai est de deux mois."]
