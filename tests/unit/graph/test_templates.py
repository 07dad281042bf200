"""The templates themselves: complete in both languages, and no predicate named twice."""

import time
from string import Formatter

import pytest

from llama_index_advanced_rag.graph.templates import DATED, TEMPLATES, WORDS, predicate_key, readable_predicate


@pytest.mark.parametrize("language", ["en", "fr"])
def test_every_template_names_both_ends_once(language):
    for template in [*TEMPLATES[language].values(), *DATED[language].values()]:
        assert sorted(field for _, field, _, _ in Formatter().parse(template) if field) == ["object", "subject"], template
        assert template == " ".join(template.split())


def test_both_languages_say_the_same_things():
    assert TEMPLATES["en"].keys() == TEMPLATES["fr"].keys() >= DATED["fr"].keys()
    assert len(set(TEMPLATES["en"].values())) > 60
    assert WORDS["en"].keys() == WORDS["fr"].keys()
    assert all(predicate_key(key) == key for key in TEMPLATES["en"])


@pytest.mark.parametrize(
    ("predicate", "readable"),
    [
        ("is_based_on", "is based on"),
        ("createdBy", "created by"),
        ("CEO_OF", "CEO of"),
        ("SIGNED_CONTRACT_WITH", "signed contract with"),
        ("isCEOOf", "is CEO of"),
        ("hasURLIn", "has URL in"),
        ("estSituéÀ", "est situé à"),
        ("has Impact Factor of", "has Impact Factor of"),
        ("BORN IN", "born in"),
        ("version2Of", "version2 of"),
        ("", ""),
        ("_ _", ""),
    ],
)
def test_predicates_are_made_readable(predicate, readable):
    assert readable_predicate(predicate) == readable


def test_a_predicate_of_a_hundred_thousand_words_takes_no_time():
    began = time.perf_counter()
    assert readable_predicate("MADE_BY_" * 100_000).startswith("made by made")
    assert time.perf_counter() - began < 20
