import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.text.blocks import Table, bar_rows, cut_at, fenced_blocks, find_tables, keep_whole
from llama_index_advanced_rag.text.lead_lines import lead_lines
from llama_index_advanced_rag.text.sentences import sentence_spans


def blocks(text: str) -> list[str]:
    return [text[start:end] for start, end in fenced_blocks(text)]


def tables(text: str) -> list[tuple[str, str]]:
    spans = keep_whole(text, sentence_spans(text, language="en"), bar_rows(text))
    return [(table.header, text[table.first_row : table.end]) for table in find_tables(text, spans)]


def test_fences_of_backticks_and_tildes() -> None:
    assert blocks("a\n```\nx\n~~~\ny\n```\nb\n~~~~ py\nz\n~~~\n~~~~\n") == ["```\nx\n~~~\ny\n```", "~~~~ py\nz\n~~~\n~~~~"]


@pytest.mark.parametrize("text", ["", "no code", "```\nnever closed", "``` in a `line` of text\n```", "````\nshorter\n```"])
def test_what_is_not_closed_is_no_block(text: str) -> None:
    assert blocks(text) == []


def test_a_row_between_bars_is_whole_whatever_its_cells_say() -> None:
    text = "It rose.\n| Risk | It may rain. We get wet. | 5 |\n| None | No. | 6 |\nEnd."
    spans = keep_whole(text, sentence_spans(text, language="en"), bar_rows(text))
    assert [text[start:end] for start, end in spans] == ["It rose.", "| Risk | It may rain. We get wet. | 5 |", "| None | No. | 6 |", "End."]


def test_a_long_line_with_a_bar_is_prose() -> None:
    assert bar_rows("word " * 100 + "| word") == []
    assert bar_rows("| " + "word " * 300) == []


def test_cuts_fall_on_borders_only() -> None:
    assert cut_at("abc def", [(0, 7)], []) == [(0, 7)]
    assert cut_at("abc def", [(0, 3), (4, 7)], [0, 3, 4, 7]) == [(0, 3), (4, 7)]
    assert cut_at("abc def", [(0, 7)], [1, 3, 5]) == [(0, 1), (1, 3), (4, 5), (5, 7)]


def test_the_header_above_a_rule() -> None:
    assert tables("| Name | Price |\n|---|--:|\n| Fox | 12 |\n| Hen | 3 |\n\nText.") == [("| Name | Price |", "| Fox | 12 |\n| Hen | 3 |")]


def test_first_rows_without_figures_head_a_table() -> None:
    assert tables("Segment | Revenue | Revenue\n | 2023 | 2022\nPhones | 5 | 6\nMacs | 1 | 2") == [
        ("Segment | Revenue | Revenue | 2023 | 2022", "Phones | 5 | 6\nMacs | 1 | 2")
    ]
    assert tables("Name | Job\nAnn | Baker\nBob | Cook\nEve | Judge") == [("Name | Job", "Ann | Baker\nBob | Cook\nEve | Judge")]


@pytest.mark.parametrize("text", ["Phones | 5 | 6\nMacs | 1 | 2", "one | two", "| a | b |\n|---|---|", "", "It rose.\nIt fell."])
def test_tables_without_header_or_rows_are_none(text: str) -> None:
    assert tables(text) == []


def test_extracted_tables_go_on_over_labels_and_end_at_a_sentence() -> None:
    text = (
        "The following table shows sales (in millions):\nThree Months Ended\nJuly 1,\n2023\nJune 25,\n2022\nNet sales:\nProducts $ 60 $ 63\nCosts:\n"
        "Rent — 1\nTotal 5 6\nThe rest is small.\nOther 1 2"
    )
    assert tables(text) == [("Three Months Ended July 1, 2023 June 25, 2022", "Products $ 60 $ 63\nCosts:\nRent — 1\nTotal 5 6")]


def test_a_new_header_begins_a_new_table_and_units_come_last() -> None:
    text = "(In millions)\nMay 2023 May 2022\nCash 10 20\nDebt 30 40\nSix Months Ended\n2023 2022\nSales 1,000 2,000"
    assert tables(text) == [("May 2023 May 2022 (In millions)", "Cash 10 20\nDebt 30 40"), ("Six Months Ended 2023 2022", "Sales 1,000 2,000")]


def test_rows_that_begin_with_a_year_are_no_header() -> None:
    text = "Maturities\nJune 2024 June 2023\n(in millions)\n2025 2,834 2,196\n2026 2,365 1,883\nTotal payments 5,199 4,079"
    assert tables(text) == [("June 2024 June 2023 (in millions)", "2025 2,834 2,196\n2026 2,365 1,883\nTotal payments 5,199 4,079")]


def test_labels_are_no_header() -> None:
    assert tables("Costs:\nRent 10 20\nGrowth over the years:\nRent 5 6") == []


def test_lines_that_lead_to_what_follows() -> None:
    text = "Use of Estimates\nWe estimate many things here.\n\nSales were (in millions):\nPhones 1 2\nShort Words\nMore Words\nTotal"
    assert [text[start:end] for start, end in lead_lines(text, sentence_spans(text, language="en"))] == ["Use of Estimates", "Sales were (in millions):"]


LINES = st.lists(
    st.sampled_from(["```", "~~~", "| a. B | 2 |", "|---|---|", "A | b", "June 2023", "Net 1,000 2,000", "It is so. And so.", "Costs:", "", " | "]), max_size=40
)


@settings(max_examples=300, deadline=None)
@given(lines=LINES)
def test_nothing_is_lost_and_tables_stand_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    fences = fenced_blocks(text)
    spans = keep_whole(text, keep_whole(text, sentence_spans(text, language="en"), bar_rows(text)), fences)
    assert spans == sorted(spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    covered = {place for start, end in spans for place in range(start, end)}
    assert all(place in covered for place, character in enumerate(text) if not character.isspace())
    assert all(any(start <= first and last <= end for start, end in spans) for first, last in fences)
    found = find_tables(text, spans)
    assert found == sorted(found, key=lambda table: table.start)
    assert all(isinstance(table, Table) and 0 <= table.start < table.first_row < table.end <= len(text) and table.header for table in found)


@pytest.mark.parametrize("text", ["`" * 300_000 + "\n" + "```\n" * 20_000, "a | " * 200_000, "x" * 1_000_000, "|\n" * 100_000, "2023,\n" * 50_000])
def test_odd_texts_take_no_time(text: str) -> None:
    began = time.process_time()
    lines = [(place, place + 1) for place, character in enumerate(text[:100_000]) if not character.isspace()]
    fenced_blocks(text)
    bar_rows(text)
    find_tables(text, lines)
    assert time.process_time() - began < 10
