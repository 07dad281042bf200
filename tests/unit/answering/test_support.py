import json

import pytest

from llama_index_advanced_rag.answering.citations import Citation
from llama_index_advanced_rag.answering.support import check_support, numbers_of
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

ENGLISH = TextAnalyzer("en")


def source(number: int, text: str, title: str = "") -> Citation:
    return Citation(number, f"n{number}", "d", 0, len(text), None, None, text, title=title)


ROW = source(1, "Total net sales $ 81,797 $ 82,959", title="2023 Q3 AAPL")
PROSE = source(2, "The company was founded by Jane Doe in Paris.")


@pytest.mark.parametrize(
    ("answer", "supported"),
    [
        ("Total net sales were 81,797 [1].", True),
        ("Total net sales were 81 797 [1].", True),
        ("Total net sales were 81797 [1].", True),
        ("Total net sales were 81,798 [1].", False),
        ("Total net sales were 81.8 billion [1].", False),
        ("The company was founded by Jane Doe [2].", True),
        ("The company was founded by John Doe [2].", False),
        ("Bananas grow on tropical islands nearby [2].", False),
        ("Total net sales were 81,797 [2].", False),
        ("Jane Doe founded it. [2]", True),
    ],
)
def test_words_numbers_and_names_must_stand_in_what_is_cited(answer: str, supported: bool) -> None:
    report = check_support(answer, [ROW, PROSE], analyzer=ENGLISH)
    assert [statement.supported for statement in report.statements] == [supported]


def test_repeating_the_question_claims_nothing() -> None:
    answer = "Total net sales in the quarter ended July 1, 2023 were 81,797 [1]."
    assert check_support(answer, [ROW], analyzer=ENGLISH).supported_share == 0.0
    question = "What were total net sales in the quarter ended July 1, 2023?"
    assert check_support(answer, [ROW], analyzer=ENGLISH, question=question).supported_share == 1.0


def test_shares_count_statements() -> None:
    report = check_support("The company was founded by Jane Doe [2]. It is nice. Net sales were 5 [1].", [ROW, PROSE], analyzer=ENGLISH, dangling=[9])
    assert report.cited_share == pytest.approx(2 / 3)
    assert report.supported_share == 0.5
    assert [statement.citations for statement in report.statements] == [(2,), (), (1,)]
    assert report.statements[2].missing == ("5",)
    assert json.loads(json.dumps(report.to_dict()))["dangling"] == [9]


def test_a_marker_behind_the_full_stop_belongs_to_the_sentence_before() -> None:
    report = check_support("Jane Doe founded it. [2] Net sales were 81,797. [1]", [ROW, PROSE], analyzer=ENGLISH)
    assert [statement.citations for statement in report.statements] == [(2,), (1,)]


def test_an_empty_answer_has_no_shares() -> None:
    report = check_support("", [], analyzer=ENGLISH)
    assert (report.statements, report.cited_share, report.supported_share) == ((), None, None)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("81,797 and 82,959", {"81797", "82959"}),
        ("81 797,5 €", {"81797,5".replace(",", ".")}),
        ("81\u202f797", {"81797"}),
        ("3.3 or 3,3", {"3.3"}),
        ("in 2023, on July 1, 2023", {"2023", "1"}),
        ("1,234,567.89", {"1,234,567.89".replace(",", ".")}),
        ("none", set()),
    ],
)
def test_numbers_have_one_form(text: str, canonical: set[str]) -> None:
    assert set(numbers_of(text)) == canonical
