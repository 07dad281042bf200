"""Extracts: what may stand in them, that they fit, and that they take linear time."""

import json
import time
from pathlib import Path

import pytest

from llama_index_advanced_rag.hierarchy.summary.extracts import cut_to, extract, is_running_sentence, telling_spans
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

REPORT = """PART I
Running head | 3

Results of the quarter
Sales of red paint rose in the quarter because walls were painted red.
Red paint 10 20 30
Blue paint 11 21 31
Total sales of paint 21 41 61
SEE THE NOTES TO THE STATEMENTS OF THE COMPANY.
Running head | 4

Sales of blue paint fell in the quarter because doors were no longer painted blue.
The quarter was cold and wet in the north.
Running head | 5
"""


def words(text):
    return len(text.split())


def short(text, max_tokens, language="en", **options):
    return extract(text, max_tokens=max_tokens, count_tokens=words, analyzer=TextAnalyzer(language), language=language, **options)


def test_rows_headings_capitals_and_running_heads_are_no_sentences_of_an_extract():
    lines = [REPORT[start:end] for start, end in telling_spans(REPORT, language="en")]
    assert [line.split()[0] + " " + line.split()[2] for line in lines] == ["Sales red", "Sales blue", "The was"]


def test_an_extract_fits_and_stands_in_the_order_of_the_text():
    found = short(REPORT, 30)
    assert words(found) <= 30
    assert found.startswith("Sales of red paint")
    assert "Sales of blue paint" in found
    assert "Total" not in found


def test_a_text_that_fits_is_given_whole():
    assert short("A heading\n\n1 2 3", 10) == "A heading 1 2 3"
    assert short("", 10) == short(" \n ", 10) == ""


def test_a_text_of_rows_gives_rows_and_one_of_items_gives_items():
    assert short("Red paint 10 20\nBlue paint 11 21\nGreen paint 12 22", 8) != ""
    assert short("- keep the walls dry\n- paint the doors red\n- paint the walls red\n- sweep", 10) != ""


def test_a_sentence_longer_than_the_extract_is_cut():
    found = short("word " * 300 + "end.", 7)
    assert found == "word word word word word word word"


def test_marks_of_lists_do_not_begin_a_sentence():
    text = "(1) The paint was red and the walls were red too.\n(2) The red walls were painted with red paint again.\nPaint was red everywhere that year."
    assert "(" not in short(text, 22)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("fr", "Le renard chasse la nuit dans les bois du village.\nTotal 10 20\nLe renard chasse aussi les poules du village. Il pleut.", "renard"),
        ("de", "Der Fuchs jagt nachts in den Wäldern des Dorfes.\nDer Fuchs jagt auch die Hühner des Dorfes. Es regnet.", "Fuchs"),
        ("zh", "狐狸在夜里捕猎村庄的母鸡。天气很冷。狐狸也在冬天的夜里捕猎母鸡和兔子。", "狐狸"),
    ],
)
def test_any_language(language, text, expected):
    analyzer = TextAnalyzer(language)
    found = extract(text, max_tokens=len(text) // 2 + 2, count_tokens=len, analyzer=analyzer, language=language)
    assert expected in found


def test_running_sentences():
    assert is_running_sentence("• The company bought its shares back in May.")
    assert is_running_sentence("狐狸在夜里捕猎村庄的母鸡。")
    assert not is_running_sentence("Item 2. Properties")
    assert not is_running_sentence("See Note 5.")
    assert not is_running_sentence("3.1 4.5 7.8 9.1 2.2 for 17.3 and 15.2 of 19.9.")


def test_a_cut_has_at_least_one_character():
    assert cut_to("word", max_tokens=0, count_tokens=words) == "w"


def test_a_paragraph_of_five_megabytes_takes_seconds():
    text = " ".join(f"Number {number % 977} of the red foxes hunts the hen {number % 89} at night." for number in range(67_000))
    started = time.process_time()
    assert words(short(text, 100)) <= 100
    assert time.process_time() - started < 60


@pytest.mark.data
def test_extracts_of_french_pages_are_sentences_of_them(data_root: Path):
    lines = (data_root / "french-cnil" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:40]
    for text in (json.loads(line)["text"] for line in lines):
        found = short(text, 60, language="fr")
        assert 0 < words(found) <= 60
        plain = " ".join(text.split())
        assert all(part in plain for part in found.split(". "))
