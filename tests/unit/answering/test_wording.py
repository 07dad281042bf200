import pytest

from llama_index_advanced_rag.answering.wording import AnswerKind, answer_kind, broken_off, empty_question, gives, no_answer
from llama_index_advanced_rag.text.table_rows import heads_of_row, is_data_row, join_head_lines


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How much did it cost?", AnswerKind.QUANTITY),
        ("What were Apple's total net sales in the quarter ended July 1, 2023?", AnswerKind.QUANTITY),
        ("Quel est le chiffre d’affaires ?", AnswerKind.QUANTITY),
        ("Quel est le montant de l'amende ?", AnswerKind.QUANTITY),
        ("Depuis quand ?", AnswerKind.DATE),
        ("In what year did it happen?", AnswerKind.DATE),
        ("Où se trouve le siège ?", AnswerKind.NAME),
        ("Whose idea was it?", AnswerKind.NAME),
        ("Why is the sky blue?", AnswerKind.REASON),
        ("Pourquoi ?", AnswerKind.REASON),
        ("Is the sky blue?", AnswerKind.ANY),
        ("", AnswerKind.ANY),
    ],
)
def test_kind_of_a_question(question: str, kind: AnswerKind) -> None:
    assert answer_kind(question) is kind


def test_what_the_question_said_itself_is_no_answer() -> None:
    assert not gives(AnswerKind.DATE, "Sales in 2023 rose.", question="When in 2023 did sales rise?")
    assert gives(AnswerKind.DATE, "Sales rose on 5 mai.", question="Quand ?")
    assert not gives(AnswerKind.NAME, "Nobody knows it.", question="Who?")
    assert not gives(AnswerKind.ANY, "Anything 5.", question="Why?")


@pytest.mark.parametrize("say", [no_answer, empty_question, broken_off])
def test_messages_are_french_for_french_and_english_otherwise(say: object) -> None:
    assert say("fr") != say("en") == say("pl") == say("")


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("Total net sales $ 81,797 $ 82,959 (1)%", True),
        ("| Net sales | 81,797 | 82,959 |", True),
        ("Gross margin (24) 13 %", True),
        ("2023 2022 2021", False),
        ("June 25, 2022", False),
        ("It rose from 12 to 15.", False),
        ("Costs 5", False),
        ("", False),
    ],
)
def test_rows_of_figures(line: str, row: bool) -> None:
    assert is_data_row(line) is row


def test_heads_of_a_row_are_the_nearest_line_and_that_of_the_columns() -> None:
    def heads(*lines: str) -> list[int]:
        return heads_of_row(lines, [is_data_row(line) for line in lines], len(lines) - 1)

    assert heads("A sentence.", "Three Months Ended", "Sales 1 2", "Costs 3 4") == [1]
    assert heads("July 1, 2023 June 25, 2022", "Sales 1 2", "Costs:", "Parts 3 4") == [2, 0]
    assert heads("A sentence.", "Sales 1 2") == []
    assert heads("Sales 1 2") == []


def test_lines_far_from_a_row_are_not_joined() -> None:
    text = "One\nTwo\nThree"
    assert join_head_lines(text, [(0, 3), (4, 7), (8, 13)]) == [(0, 3), (4, 7), (8, 13)]
