import pytest

from llama_index_advanced_rag.answering.dates import dates_of, says_another, says_date


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("the quarter ended July 1, 2023", (2023, 7, 1)),
        ("the 30th of June, 1862", (1862, 6, 30)),
        ("le 1er janvier 2024", (2024, 1, 1)),
        ("July 1,\n2023", (2023, 7, 1)),
        ("on 4 Sept. next", (None, 9, 4)),
        ("the third quarter of fiscal year 2024", (2024, 15, 0)),
        ("au deuxième trimestre de 2023", (2023, 14, 0)),
        ("2023 Q2 INTC.pdf", (2023, 14, 0)),
        ("Q4 2022", (2022, 16, 0)),
    ],
)
def test_a_date_is_read(text: str, date: tuple[int | None, int, int]) -> None:
    assert list(dates_of(text)) == [date]


@pytest.mark.parametrize("text", ["", "in May", "may 2023 be good", "marched 12 miles", "Maya 5", "2023", "quarterly report", "June 45"])
def test_what_is_no_date(text: str) -> None:
    assert dates_of(text) == {}


def test_a_day_without_its_year_takes_the_years_of_the_text() -> None:
    head = "Three Months Ended September 30, 2022 2023"
    assert says_date(head, (2023, 9, 30))
    assert says_date(head, (2022, 9, 30))
    assert not says_date(head, (2021, 9, 30))
    assert says_date("on September 30", (2021, 9, 30))
    assert says_date("on September 30, 2022", (None, 9, 30))


def test_days_and_quarters_do_not_contradict_each_other() -> None:
    assert says_another("Three Months Ended April 1, 2023", [(2023, 7, 1)])
    assert not says_another("Three Months Ended April 1, 2023", [(2023, 13, 0)])
    assert not says_another("July 1, 2023 June 25, 2022", [(2023, 7, 1)])
    assert not says_another("anything", [])
