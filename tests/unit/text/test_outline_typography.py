import pytest

from llama_index_advanced_rag.text.outline import HeadingSource, recover_outline

SAID = "The parties agree on the following terms and shall keep them in good faith at all times.\n"


def titles(text: str) -> list[str]:
    return [heading.title for heading in recover_outline(text).headings]


def test_capitals_stand_above_title_case() -> None:
    outline = recover_outline(f"{SAID}OVERVIEW\n{SAID}Industry Trends\n{SAID}OUTLOOK OF THE YEAR\n{SAID}")
    assert [(heading.title, heading.level) for heading in outline.headings] == [("OVERVIEW", 1), ("Industry Trends", 2), ("OUTLOOK OF THE YEAR", 1)]
    assert {heading.source for heading in outline.headings} == {HeadingSource.TYPOGRAPHY}


def test_looks_stand_below_numbers() -> None:
    outline = recover_outline(f"Item 1. Business\n{SAID}Late Payment\n{SAID}Item 2. Land\n{SAID}")
    assert [(heading.title, heading.level) for heading in outline.headings] == [("Item 1. Business", 1), ("Late Payment", 2), ("Item 2. Land", 1)]


def test_a_statement_over_a_table_with_its_unit() -> None:
    assert titles("BALANCE SHEETS\n(In millions) (Unaudited)\nCash 12 15\nDebt 1 2\n") == ["BALANCE SHEETS"]


@pytest.mark.parametrize(
    "text",
    [
        "ACME CORPORATION\nOne Hill Road\nSpringfield\n(555) 1234\n",
        f"By: /s/ Jane Doe\nJane Doe\nChief Executive Officer\n{SAID}",
        f"Total Net Sales\nProducts 12 15\nServices 1 2\n{SAID}",
        f"{SAID}It says in the\nLease Agreement\nof the year.\n",
        f"{SAID}- Late Payment\n{SAID}",
        f"{SAID}Net Sales:\n{SAID}",
        f"{SAID}June 25, 2022\n{SAID}",
    ],
    ids=["address", "signature", "table", "sentence", "item", "colon", "date"],
)
def test_other_short_lines_are_no_headings(text: str) -> None:
    assert titles(text) == []


def test_lines_that_repeat_on_the_pages_are_no_headings() -> None:
    text = "\f".join(f"ACME LEASE\n{SAID}{SAID}{place}\n" for place in range(6))
    assert titles(text) == []


def test_matter_at_the_end_stands_at_the_top() -> None:
    outline = recover_outline(f"1 Aim\n{SAID}2 Means\n{SAID}2.1 Data\n{SAID}References\n{SAID}")
    assert [(heading.title, heading.level) for heading in outline.headings][-2:] == [("2.1 Data", 2), ("References", 1)]
