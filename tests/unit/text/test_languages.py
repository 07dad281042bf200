import pytest

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.text.languages import DETECTED, LANGUAGES, check_language, detect_language, fold, shared_stop_words, stem_words, stop_words_of


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ["What is Apple's revenue?", "Net sales in the quarter were higher", "Who won?", "How do I cancel the contract?"]),
        (
            "fr",
            [
                "Quel est le prix de l'or ?",
                "Comment exercer mon droit d'accès ?",
                "La recherche hybride combine dense et sparse",
                "La sécurité des données",
            ],
        ),
        ("de", ["Was ist ein Vertrag?", "Die Katze liegt auf dem Tisch", "Wie hoch war der Umsatz im dritten Quartal?"]),
        ("es", ["¿Cuál es la capital de España?", "Los ingresos de la empresa aumentaron en 2023", "El gato duerme en la mesa"]),
        ("it", ["Quanto costa il biglietto per la città?", "Il gatto è sul tavolo e dorme", "Dove si trova la sede della società?"]),
        ("pt", ["Qual é a capital do Brasil?", "Onde fica a sede da empresa?", "As obrigações da empresa são grandes"]),
        ("nl", ["Wat is de hoofdstad van Nederland?", "De kat ligt op de tafel en slaapt"]),
    ],
)
def test_languages_are_told_apart(language, texts):
    assert [detect_language(text) for text in texts] == [language] * len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAPL 10-Q 2023",
        "revenue growth",
        "die hard",
        "or prix",
        "la Casa de Papel",
        "El Niño",
        "der Spiegel",
        "Le Monde",
        "La La Land",
        "東京都",
        "81,797 29,359",
        "Ключевая ставка",
        "a",
    ],
)
def test_no_evidence_is_no_language(text):
    assert detect_language(text) is None


def test_content_words_and_negations_are_no_stop_words():
    assert not {"or", "avions", "été", "ete", "sommes", "pas"} & stop_words_of("fr")
    assert not {"not", "no", "nor"} & stop_words_of("en")
    assert not {"weg", "nicht", "kein", "ohne"} & stop_words_of("de")
    assert not {"estado", "no", "sin"} & stop_words_of("es")
    assert not {"não", "nao", "sem"} & stop_words_of("pt")


def test_question_words_and_unaccented_forms_are_stop_words():
    assert {"quel", "quelles", "comment", "pourquoi", "où", "à", "a", "même", "meme"} <= stop_words_of("fr")
    assert {"what", "which", "how", "who", "the"} <= stop_words_of("en")
    assert {"was", "wie", "warum", "für", "fur"} <= stop_words_of("de")


def test_shared_stop_words_are_function_words_in_any_language():
    assert {"de", "la", "in", "que"} <= shared_stop_words()
    assert not {"or", "not", "no", "non", "the", "und"} & shared_stop_words()


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_every_language_can_be_used(language):
    assert check_language(language) == language
    assert isinstance(stop_words_of(language), frozenset)
    assert len(stem_words(language, ["words", "more"])) == 2
    kept = set(LANGUAGES[language].kept)
    assert not kept & stop_words_of(language)


def test_the_detected_languages_have_a_stemmer_and_a_list():
    for language in DETECTED:
        assert stop_words_of(language)
        assert LANGUAGES[language].stemmer


def test_an_unknown_language_lists_the_known():
    with pytest.raises(ConfigurationError, match=r"'french'.*'auto', 'none' or .*de, en, es, fr"):
        check_language("french")


@pytest.mark.parametrize(
    ("word", "folded"), [("élève", "eleve"), ("Größe", "Grosse"), ("œuvre", "oeuvre"), ("й", "й"), ("한국", "한국"), ("हिन्दी", "हिन्दी"), ("ά", "α")]
)
def test_fold_removes_latin_and_greek_diacritics_only(word, folded):
    assert fold(word) == folded
