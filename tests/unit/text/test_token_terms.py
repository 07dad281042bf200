import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llama_index_advanced_rag.text import analyzer as analyzer_module
from llama_index_advanced_rag.text import token_terms
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.text.token_terms import TokenTerms
from llama_index_advanced_rag.text.words import pieces_of, words_in

ATOMS = [
    *("81", "797", "5", "1", "234", "12", "2023", "123.", "456,7", "US", "IT", "THE", "us", "it", "The", "WHO", "AND/OR", "GPT-4", "l'index", "L’INDEX"),
    *("don't", "U.S.", "e.g.", "R&D", "C++", "a@b.com", "http://x.fr/1", "www.", "www.a.fr", "https://", "™", "©", "²", "abc²", "½", "①", "¨", "\u0301"),
    *("e\u0301", "\u200b", "\u200b797", "\xad", "\xa0", "\u202f", "\u3000", "\n", "\x1f", "\x85", "東京", "ＵＳ", "７９７", "-", "'", "`", '"', "(", "É"),
    *("ÉTÉ", "été", "Peut-on", "œuvre", "ﬁ", "ß", "İ", "+", "#", ".", ",", "x" * 70, "A", "\u1100\u1161", "١٢٣"),
]
TEXTS = st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from([" ", " ", "", "\n", "\xa0", "\u202f"])), max_size=8).map(
    lambda parts: "".join(atom + gap for atom, gap in parts)
)


def whole_text_terms(analyzer, text, language):
    """Every piece of the text read where it stands."""
    stops = analyzer._stops(language)
    return [term for piece in pieces_of(text) for term in analyzer_module._read(piece, language, language, stops)]


@pytest.mark.parametrize("language", ["en", "fr", "none", "zh"])
@given(text=st.one_of(TEXTS, st.text(max_size=80)))
@example("81 797 and 5\u202f234½")
@example("The US and IT THE WHO us")
@example("see www. here and 5 1™234")
def test_a_table_of_tokens_gives_the_terms_of_the_whole_text(language, text):
    analyzer = TextAnalyzer(language)
    assert analyzer.tokens(text) == whole_text_terms(analyzer, text, language)


def read_piece(piece):
    return tuple(word.text for word in words_in(piece) if word.capitals or word.text != "it")


def table():
    return TokenTerms(read_piece, lambda word: () if word == "it" else (word,))


def test_what_reaches_across_white_space_is_left_to_the_whole_text():
    assert table().terms_of("net sales of 81 797 euros") is None
    assert table().terms_of("net sales of 797 euros") == ["net", "sales", "of", "797", "euros"]
    assert table().terms_of("page 12: 797 euros") == ["page", "12", "797", "euros"]


def test_words_in_capitals_see_the_words_beside_them():
    assert table().terms_of("The IT, has") == ["the", "it", "has"]
    assert table().terms_of("DO IT NOW") == ["do", "now"]
    assert table().terms_of("IT 12 is") == ["it", "12", "is"]
    assert table().terms_of("IT") == []


def test_a_full_table_makes_place_and_still_answers(monkeypatch):
    monkeypatch.setattr(token_terms, "_MAX_TOKENS", 8)
    small, words = table(), [f"word{chr(97 + number)}." for number in range(26)]
    for _ in range(2):
        assert small.terms_of(" ".join(words)) == [word.strip(".") for word in words]
        assert len(small) <= 8


def test_a_token_too_long_to_be_kept_is_read_each_time():
    small, text = table(), "x" * 100
    assert small.terms_of(text) == ["x" * 64]
    assert text not in small
