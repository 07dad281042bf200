import pytest

from llama_index_advanced_rag.text.lines import is_table_row, prose_blocks


def blocks(text: str) -> list[str]:
    return [text[start:end] for start, end in prose_blocks(text)]


@pytest.mark.parametrize(
    "line",
    [
        "Total net sales $ 82,959 $ 81,434",
        "Other (148) 489",
        "Proceeds, net — 13,923",
        "| a | b |",
        "name\tage\tcity",
        "Paris   2,1   105",
        "Produit 1 234,5 12 %",
    ],
)
def test_rows_of_tables_are_recognised(line: str) -> None:
    assert is_table_row(line)


@pytest.mark.parametrize("line", ["The fiscal years 2022 and 2021", "on July 1, 2023", "A sentence with 5 of 10 things in it.", "Chapter 3"])
def test_prose_is_no_row(line: str) -> None:
    assert not is_table_row(line)


def test_wrapped_lines_stay_together_and_titles_stand_alone() -> None:
    wide = "The condensed consolidated financial statements include the accounts of the company and"
    text = f"Basis of Presentation\r\n{wide}\r\nIntercompany accounts of its subsidiaries, all of which are eliminated in\r\nfull.\r\nEarnings Per Share\r\n"
    assert blocks(text) == ["Basis of Presentation", text[text.index(wide) : text.index("full.") + 5], "Earnings Per Share"]


def test_a_row_label_that_wraps_belongs_to_its_row() -> None:
    text = "Common stock withheld related to net share settlement of equity\nawards (1,403) (1,559)\nEnding balances 5,289 9,233"
    assert blocks(text) == ["Common stock withheld related to net share settlement of equity\nawards (1,403) (1,559)", "Ending balances 5,289 9,233"]


def test_blank_lines_form_feeds_and_lists_separate() -> None:
    assert blocks("one,\n\ntwo,\ftail\n* a\n(b) c\n# T\nx") == ["one,", "two,", "tail", "* a", "(b) c", "# T", "x"]


def test_one_name_a_line_is_not_joined() -> None:
    assert blocks("Alice Martin\nBob Dupont\n") == ["Alice Martin", "Bob Dupont"]


def test_no_lines() -> None:
    assert blocks("") == blocks(" \n\t\n") == []
