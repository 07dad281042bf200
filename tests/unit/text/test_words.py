import time

import pytest

from llama_index_advanced_rag.text.words import MAX_WORD_CHARS, pieces_of, words_in


def words(text):
    return [word.text for piece in pieces_of(text) for word in words_in(piece) if not word.corpus_only]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l'index d’accès qu'il jusqu'à L´été", "index accès il à été"),
        ("dell'arte un'amica nell’acqua degl'italiani", "arte amica acqua italiani"),
        ("l'hôtel aujourd'hui prud'homme", "hôtel aujourdhui prudhomme"),
        ("company's company’s O'Brien they're I'm he'll", "company company obrien they i he"),
        ("don't isn’t can't", "not not not"),
        ("pré-entraîné re-ranking", "préentraîné pré entraîné reranking re ranking"),
        ("snake_case __init__ non‑breaking", "snakecase snake case init nonbreaking non breaking"),
        ("GPT-4 10-Q AAPL COVID-19 v1.2.3 GPT-3.5", "gpt4 gpt 10q 10 aapl covid19 covid 19 v1.2.3 gpt3.5 gpt 3.5"),
        ("one-two-three-four-five", "one two three four five"),
        ("U.S. e.g. S.A.R.L.", "us eg sarl"),
        ("C++ C# R&D AT&T research&development", "c++ c# r&d at&t research development"),
        ("www.site.fr https://www.site.fr/une-page", "site fr site fr unepage une page"),
        ("jane.doe@acme.co.uk", "jane.doe@acme.co.uk jane doe acme co"),
        ("reached.The end", "reached the end"),
        ("iPhone™ revenue¹ ﬁnance soft\u00adhyphen m²", "iphone revenue finance softhyphen m2"),
        ("东京都 東 日本語API", "东京 京都 東 日本 本語 api"),
        ("한국어 검색", "한국 국어 검색"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("Привет, мир", "привет мир"),
        ("", ""),
        ("… — !?", ""),
    ],
)
def test_words_are_cut_as_people_search_them(text, expected):
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("spellings", "number"),
    [
        (["81,797", "81797", "81.797", "81'797", "81\u00a0797", "81\u202f797", "$81,797", "81 797"], "81797"),
        (["1 234,5", "1,234.5", "1.234,5", "1234,5", "1234.5", "1\u202f234,5"], "1234.5"),
        (["1,234,567", "1 234 567", "1.234.567"], "1234567"),
        (["2.5M", "2,5M", "2,5M€", "$2.5M"], "2.5m"),
        (["5€", "€5", "5 EUR", "5%"], "5"),
        (["0.125", "0,125"], "0.125"),
    ],
)
def test_one_number_in_many_spellings(spellings, number):
    for spelling in spellings:
        assert number in words(spelling), spelling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-07-01 01/07/2023 01.07.2023", "2023 07 01 01 07 2023 01 07 2023"),
        ("[1,2,3]", "1 2 3"),
        ("297 392 689", "297392689 297 392 689"),
        ("section 3.11.2", "section 3.11.2"),
        ("July 1, 2023", "july 1 2023"),
        ("sum 81,797.", "sum 81797"),
    ],
)
def test_dates_lists_and_table_rows_keep_their_parts(text, expected):
    assert words(text) == expected.split()


def test_capitals_among_other_words_are_told_from_headings():
    found = {surface: capitals for _, surface, capitals in pieces_of("The US dollar and IT staff")}
    assert [surface for surface, capitals in found.items() if capitals] == ["US", "IT"]
    assert not any(capitals for _, _, capitals in pieces_of("DISCUSSION AND ANALYSIS OF IT"))


def test_a_corpus_keeps_single_characters_of_unspaced_scripts_and_long_queries_do_not_use_them():
    found = [word for piece in pieces_of("東京都") for word in words_in(piece)]
    assert [(word.text, word.corpus_only) for word in found] == [("東京", False), ("京都", False), ("東", True), ("京", True), ("都", True)]


@pytest.mark.parametrize("unit", ["x", "1", "1,", "a.", "a@", "a-", "a'", "-_", "1 111 ", "x@y.", "www.", "é", "東"])
def test_no_text_takes_more_than_linear_time(unit):
    text = unit * (300_000 // len(unit)) + "@"
    started = time.process_time()
    found = words(text)
    assert time.process_time() - started < 5
    assert all(len(word) <= MAX_WORD_CHARS for word in found)
