import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.text.sentences import MAX_SENTENCE_CHARS, safe_cut, sentence_spans


def split(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language=language)]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["He lives in the U.S. market.", "Mr. Smith paid $2.5 million, i.e. a lot.", "Why?", '"Because."', "See No. 5 and Fig. 3."]),
        ("en", ["Apple Inc. sold 3.1 billion.", "The end!"]),
        ("en", ["Is it art?", "No.", "It is not."]),
        ("fr", ["M. Dupont est arrivé.", "Mme Martin, cf. art. 5, paie 2,5 M€ à l'État.", "Il a dit : « Oui. »", "Puis il part."]),
        ("de", ["Der Preis beträgt z.B. 2.5 Mio. Euro.", "Das ist viel.", "Am 3. Oktober ist Feiertag."]),
        ("es", ["El Sr. Pérez llegó.", "¿Por qué?", "No se sabe."]),
    ],
)
def test_sentences_of_prose(language: str, sentences: list[str]) -> None:
    assert split(" ".join(sentences), language) == sentences


def test_the_language_is_found_in_the_text() -> None:
    text = "Le responsable du traitement est M. Dupont. Il est dans les bureaux de la société avec Mme. Martin."
    assert split(text, "auto") == split(text, "fr")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("La loi date de 2014.Il est commun de la citer.", ["La loi date de 2014.", "Il est commun de la citer."]),
        ("C'est un droit.L'accès est libre.Écrivez-nous!Merci beaucoup.", ["C'est un droit.", "L'accès est libre.", "Écrivez-nous!", "Merci beaucoup."]),
        ("Voir la loi (article 6).Cette loi est vieille.", ["Voir la loi (article 6).", "Cette loi est vieille."]),
    ],
)
def test_sentences_that_are_glued_together(text: str, parts: list[str]) -> None:
    assert split(text, "fr") == parts


@pytest.mark.parametrize(
    "text",
    [
        "See www.Example.com or Rapport.Final.pdf for it",
        "M.Dupont and Mme.Martin live in the U.S.A now",
        "The class pandas.DataFrame of version 2.Beta3 and a_b.Then",
        "Write to jean.Dupont@example.org or see doc/a.Part of it",
        "1.Scope of the law",
        "He lives in the e.g.The",
    ],
)
def test_names_with_full_stops_stay_whole(text: str) -> None:
    assert split(text, "fr") == [text]


def test_the_articles_of_a_french_code_stay_whole() -> None:
    text = "Il est présumé être un accident au sens de l'article L. 411-1 du code. La suite est à l'article R. 12."
    assert split(text, "fr") == ["Il est présumé être un accident au sens de l'article L. 411-1 du code.", "La suite est à l'article R. 12."]


def test_a_line_that_announces_something_ends_with_its_colon() -> None:
    text = "The following table shows net sales by category for months ended July 1, 2023 (in millions):\nThree Months Ended Nine Months Ended\nMac 6,840 7,382"
    assert split(text)[1:] == ["Three Months Ended Nine Months Ended", "Mac 6,840 7,382"]
    assert split("Population | 331,918\nCapital - name | Reykjavik") == ["Population | 331,918", "Capital - name | Reykjavik"]


def test_cjk_and_other_scripts() -> None:
    assert split("今日は。元気？はい！「そう。」と言った。") == ["今日は。", "元気？", "はい！", "「そう。」", "と言った。"]
    assert split("هل هذا صحيح؟ نعم.", "ar") == ["هل هذا صحيح؟", "نعم."]


def test_lists_tables_and_headings_are_units() -> None:
    text = "# Title\n1. First item\n2. Second item\n   goes on.\n| a | b |\n| 1 | 2 |\nTotal 10 20\n"
    assert split(text) == ["# Title", "1. First item", "2. Second item\n   goes on.", "| a | b |", "| 1 | 2 |", "Total 10 20"]


def test_text_without_sentence_ends_is_cut_at_lines_then_at_white_space() -> None:
    lines = "\n".join(f"word{number} and so on with more of it to come" for number in range(100))
    for text in (lines, lines.replace("\n", " ")):
        parts = split(text)
        assert max(map(len, parts)) <= MAX_SENTENCE_CHARS
        assert " ".join(parts).split() == text.split()
    assert all(part.startswith("word") for part in split("and " + lines)[1:])


def test_accents_stay_on_their_letters_where_a_word_is_cut() -> None:
    text = "e\u0301" * 5000
    assert all(part[0] == "e" and part[-1] == "\u0301" for part in split(text))
    assert safe_cut("a\u0301\u0302", 2, lowest=1) == 2  # nowhere to go: the cut is kept


def test_a_long_run_of_anything_takes_linear_time() -> None:
    for text in ("x" * 3_000_000, "a.b!" * 500_000, "aa.Bb" * 300_000, "." * 1_000_000, "lorem ipsum " * 200_000, " " * 2_000_000 + "a"):
        started = time.perf_counter()
        assert sentence_spans(text, language="en")
        assert time.perf_counter() - started < 20


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u3000\u2003"])
def test_white_text_has_no_sentences(text: str) -> None:
    assert sentence_spans(text) == []


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(list("abcZ09.!?,;:-()\"'« \n\r\t|。？́é\u2028\ud800")), max_size=300))
def test_every_visible_character_is_in_exactly_one_span(text: str) -> None:
    spans = sentence_spans(text, language="en")
    assert all(start < end and text[start:end] == text[start:end].strip() for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    inside = "".join(text[start:end] for start, end in spans)
    assert "".join(inside.split()) == "".join(text.split())


def test_a_numbered_heading_is_one_sentence() -> None:
    text = "## 4. Fees\n\nThe fees are due.\n\n### A. Rents. Taxes"
    assert [text[start:end] for start, end in sentence_spans(text, language="en")] == ["## 4. Fees", "The fees are due.", "### A. Rents.", "Taxes"]
