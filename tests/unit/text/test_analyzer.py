import json

import bm25s
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError
from llama_index_advanced_rag.text.analyzer import TextAnalyzer, detect_language

STOCK_PATTERN = r"(?u)\b\w\w+\b"


def meets(analyzer, query, text):
    """Would this query find this text?"""
    return bool(set(analyzer.query_tokens(query)) & set(analyzer.tokens(text)))


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("fr", "eleve", "Les élèves de l'école"),
        ("fr", "index", "L’index de la recherche"),
        ("fr", "or", "Le prix de l'or"),
        ("fr", "avion", "Les avions décollent"),
        ("fr", "vacances d'été", "L'été arrive"),
        ("fr", "entraîné", "un modèle pré-entraîné"),
        ("fr", "preentraine", "un modèle pré-entrainé"),
        ("fr", "œuvre", "une oeuvre d'art"),
        ("fr", "collecté", "les données collectées"),
        ("fr", "securite", "la sécurité"),
        ("fr", "donnees collectees", "une donnée collectée"),
        ("fr", "site", "les sites"),
        ("es", "informacion", "la información"),
        ("pt", "gestao", "a gestão"),
        ("fr", "conservation", "conserver les données"),
        ("en", "running", "He runs daily"),
        ("en", "Apple", "Apple’s revenue"),
        ("en", "US sales", "sales in the U.S. fell"),
        ("en", "not profitable", "It was not a success"),
        ("en", "don't renew", "do not smoke"),
        ("en", "gpt4", "trained with GPT-4"),
        ("en", "10-Q", "the Form 10-Q was filed"),
        ("en", "81797", "net sales of $81,797 million"),
        ("en", "jane.doe@acme.com", "write to Jane.Doe@acme.com."),
        ("en", "naive", "a naïve approach"),
        ("de", "Haus", "die Häuser der Stadt"),
        ("de", "strasse", "die Straße"),
        ("de", "Weg", "der Weg ist weit"),
        ("es", "canción", "las canciones"),
        ("it", "acqua", "dell'acqua"),
        ("pt", "informacao", "a informação"),
        ("nl", "foto", "de foto's"),
        ("zh", "京", "东京都"),
        ("ja", "東京", "東京都に住む"),
        ("auto", "東京", "I live in 東京都"),
        ("none", "ELEVE", "un élève"),
    ],
)
def test_what_should_be_found_is_found(language, query, text):
    assert meets(TextAnalyzer(language), query, text)


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("fr", "l'index", "l'accès"),
        ("fr", "quelles sont les", "quelle est la"),
        ("fr", "peut-on", "on va voir"),
        ("en", "what is it", "it is what it is"),
        ("en", "apple's", "bob's"),
        ("de", "was ist die", "die Katze ist da"),
        ("none", "run", "running"),
    ],
)
def test_function_words_find_nothing(language, query, text):
    assert not meets(TextAnalyzer(language), query, text)


def test_an_acronym_in_capitals_is_not_its_stop_word():
    analyzer = TextAnalyzer("en")
    assert analyzer.tokens("The IT department has it") == ["it", "depart"]
    assert analyzer.tokens("WHO guidelines") == ["who", "guidelin"]


def test_a_french_inversion_gives_no_closed_form():
    assert TextAnalyzer("fr").tokens("Peut-on refuser ?") == ["peut", "refus"]


def test_a_text_is_not_inflated():
    text = "The company reported net sales of $81,797 million in the quarter ended July 1, 2023."
    assert TextAnalyzer("en").tokens(text) == ["compani", "report", "net", "sale", "81797", "million", "quarter", "end", "juli", "1", "2023"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("running", "The men were running and they were fast"),
        ("running", "Running shoes"),
        ("shoe", "Running shoes"),
        ("How were the sales?", "Quarterly sale table"),
        ("données", "Les données sont conservées et protégées par la loi"),
        ("Häuser", "Das Haus steht auf dem Berg und ist alt"),
        ("or prix", "Le prix de l'or est dans une fièvre"),
        ("Où sont les données ?", "Données personnelles"),
    ],
)
def test_auto_meets_texts_of_any_language(query, text):
    assert meets(TextAnalyzer(), query, text)


def test_auto_gives_a_text_one_term_a_word_and_a_query_its_variants_once():
    analyzer = TextAnalyzer()
    assert analyzer.tokens("Running shoes") == ["run", "shoe"]
    variants = analyzer.query_tokens("running")
    assert "run" in variants
    assert len(variants) == len(set(variants))
    assert sorted(analyzer.query_tokens("running running")) == sorted(variants * 2)
    assert analyzer.query_tokens("What is the running of it?") == ["run"]


def test_the_terms_of_one_query_word_are_one_group():
    assert TextAnalyzer("fr").query_groups("données des élèves, données") == [("don",), ("elev",), ("don",)]
    groups = TextAnalyzer().query_groups("données élèves")
    assert len(groups) == 2
    assert all({term for (term,) in TextAnalyzer(language).query_groups("données élèves")} <= {*groups[0], *groups[1]} for language in ("fr", "en", "de"))


def test_a_text_without_evidence_loses_the_function_words_of_several_languages():
    assert TextAnalyzer().tokens("Carte de séjour") == ["cart", "sejour"]
    assert TextAnalyzer().query_tokens("Carte de séjour")[0] == "cart"
    assert "de" not in TextAnalyzer().query_tokens("Carte de séjour")


@pytest.mark.parametrize("language", ["en", "fr", "de"])
def test_a_token_pattern_reproduces_bm25s(language):
    import Stemmer

    texts = ["The Re-ranking improves l'accès, d'abord the RUNNING dogs' 81,797.", "Über die Häuser: was will er? Größe", "Élève œuvre ﬁn I a"]
    from bm25s.tokenization import _infer_stopwords

    stop_words = frozenset(_infer_stopwords(language))
    stemmer = Stemmer.Stemmer({"en": "english", "fr": "french", "de": "german"}[language])
    expected = bm25s.tokenize(texts, stopwords=language, stemmer=stemmer, token_pattern=STOCK_PATTERN, return_ids=False, show_progress=False)
    analyzer = TextAnalyzer(language, stop_words=stop_words, token_pattern=STOCK_PATTERN)
    assert [analyzer.tokens(text) for text in texts] == expected
    assert [analyzer.query_tokens(text) for text in texts] == expected


@given(st.text(max_size=200), st.sampled_from(["auto", "none", "en", "fr", "zh"]))
def test_any_text_gives_the_same_terms_twice_and_no_empty_one(text, language):
    analyzer = TextAnalyzer(language)
    terms = analyzer.tokens(text)
    assert terms == analyzer.tokens(text)
    assert all(term and not term.isspace() for term in terms + analyzer.query_tokens(text))
    if language not in ("auto", "zh"):
        assert set(analyzer.query_tokens(text)) <= set(terms)


@given(st.text(max_size=100))
def test_surfaces_name_every_query_term(text):
    for analyzer in (TextAnalyzer(), TextAnalyzer("fr"), TextAnalyzer("en", token_pattern=STOCK_PATTERN)):
        assert set(analyzer.query_tokens(text)) <= set(analyzer.query_surfaces(text))


@pytest.mark.parametrize(
    "analyzer",
    [TextAnalyzer(), TextAnalyzer("fr", stem=False), TextAnalyzer("none", token_pattern=r"\S+"), TextAnalyzer("en", stop_words=frozenset({"é", "b"}))],
)
def test_settings_survive_json(analyzer):
    assert TextAnalyzer.from_dict(json.loads(json.dumps(analyzer.to_dict()))) == analyzer


def test_own_stop_words_replace_the_list_and_stemming_can_be_off():
    assert TextAnalyzer("en", stop_words=frozenset({"dogs"})).tokens("the dogs running") == ["the", "run"]
    assert TextAnalyzer("en", stem=False).tokens("the dogs running") == ["dogs", "running"]
    assert TextAnalyzer("en", stop_words=["dogs"]).stop_words == frozenset({"dogs"})


def test_bad_settings_are_named():
    with pytest.raises(ConfigurationError, match=r"language is 'xx'"):
        TextAnalyzer("xx")
    with pytest.raises(ConfigurationError, match=r"stop_words is 'english'"):
        TextAnalyzer("en", stop_words="english")
    with pytest.raises(ConfigurationError, match="no regular expression"):
        TextAnalyzer(token_pattern="(")
    with pytest.raises(ConfigurationError, match="2 groups"):
        TextAnalyzer(token_pattern="(a)(b)")
    with pytest.raises(IndexFormatError, match=r"format 99.*reads format 1"):
        TextAnalyzer.from_dict({"format": 99})


def test_detect_language_is_offered_here():
    assert detect_language("What is the price?") == "en"
