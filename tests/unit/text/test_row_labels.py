"""What rows of figures are called."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.graph.span_extractor import SpanExtractor
from llama_index_advanced_rag.text.row_labels import row_labels


def labels(text: str) -> list[str]:
    return [text[start:end] for start, end in row_labels(text)]


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ("Total net sales $ 81,797 $ 82,959", "Total net sales"),
        ("Cost of sales: 45,384 47,074", "Cost of sales"),
        ("Income (loss) before tax (1,200) 340", "Income (loss) before tax"),
        ("Other income (expense) 10 (20)", "Other income (expense)"),
        ("Net income per share – basic 1.27 1.21", "Net income per share – basic"),
        ("   Gross margin 36,413 35,885", "Gross margin"),
        ("• Produits des activités ordinaires 1.234 2.345", "Produits des activités ordinaires"),
        ("Выручка 100 200", "Выручка"),
        ("R&D costs 12 % 15 %", "R&D costs"),
        ("Level 2 assets 100 200", "Level 2 assets"),
    ],
)
def test_the_words_before_the_figures(row: str, label: str) -> None:
    assert labels(row) == [label]


@pytest.mark.parametrize(
    "row",
    [
        "",
        "81,797 82,959",
        "Net sales rose to 81,797 in all regions.",
        "Three Months Ended June 25, 2022 2021",
        "It rose by 5 % in 2023.",
        "Net sales",
        "A 1 2",
        "of 1 2",
    ],
)
def test_what_is_no_row_or_has_no_name(row: str) -> None:
    assert labels(row) == []


def test_each_row_of_a_table_and_nothing_else() -> None:
    text = "Results\nin millions\r\nPhones 1,000 2,000\r\n\nPads 300 400\n\nBoth rose.\nTotal 1,300 2,400"
    assert labels(text) == ["Phones", "Pads", "Total"]


def test_labels_and_lines_that_are_too_long_are_no_labels() -> None:
    assert labels(f"{'word ' * 16}1 2") == [("word " * 16).strip()]
    assert labels(f"{'word ' * 17}1 2") == []
    assert labels(f"Sales {'1 ' * 200}") == []


@given(st.text(alphabet="aé Б(1,.%$\n:-)", max_size=120))
@settings(max_examples=150, deadline=None)
def test_labels_lie_in_the_text_in_order_and_begin_with_a_letter(text: str) -> None:
    last = 0
    for start, end in row_labels(text):
        assert last <= start < end <= len(text)
        assert text[start].isalpha()
        assert "\n" not in text[start:end]
        assert 2 < end - start <= 80
        last = end


@pytest.mark.parametrize(
    "text",
    [
        "word " * 1_000_000,
        "Sales (" + "(" * 2_000_000 + " 1 2",
        "Net sales 1,000 2,000\n" * 50_000,
        "\n" * 3_000_000,
        ("a) " * 130 + "1 2\n") * 5_000,
    ],
)
def test_long_texts_take_seconds(text: str) -> None:
    started = time.perf_counter()
    row_labels(text)
    assert time.perf_counter() - started < 10


def test_the_extractor_reads_labels_and_no_name_inside_one() -> None:
    text = "Results of Acme Corp\nNet sales of Acme Corp 1,000 2,000\nGross margin 300 400\nAcme Corp is in Rome.\n"
    mentions = SpanExtractor("en").mentions(text)
    assert [mention.surface for mention in mentions if mention.kind == "label"] == ["Net sales of Acme Corp", "Gross margin"]
    assert [text[mention.start : mention.end] for mention in mentions] == [mention.surface for mention in mentions]
    assert all(one.end <= other.start for one, other in pairwise(mentions))
    assert "Rome" in {mention.surface for mention in mentions if mention.kind == "name"}


def test_many_rows_and_names_are_read_in_seconds() -> None:
    text = "Net sales of Acme Corp 1,000 2,000\nThe Acme Corp is in Rome.\n" * 10_000
    started = time.perf_counter()
    mentions = SpanExtractor("en").mentions(text)
    assert time.perf_counter() - started < 20
    assert sum(mention.kind == "label" for mention in mentions) == 10_000
