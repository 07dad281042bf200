"""Spellings that are one name, and names that are two however alike they look."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.text.name_variants import are_namesakes, spelled_alike, told_by
from llama_index_advanced_rag.text.name_words import name_key

names_of_anything = st.lists(st.text(max_size=20) | st.text("abAB .I12-", max_size=12), max_size=12, unique_by=name_key)


def alike(*names: str) -> list[tuple[str, str]]:
    return [(names[one], names[other]) for one, other in spelled_alike([name_key(name) for name in names], names)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Q3 2022", "Q3 2023"),
        ("Lothair I", "Lothair II"),
        ("Lothair", "Lothair I"),
        ("North Korea", "South Korea"),
        ("4 July", "4 August"),
        ("Schedule A", "Schedule B"),
        ("First Bank", "Second Bank"),
        ("GPT-3", "GPT-4"),
        ("Malcolm X", "Malcolm"),
        ("Pope John XXIII", "Pope John XXII"),
        ("men's team", "women's team"),
    ],
)
def test_what_tells_names_apart(one: str, other: str) -> None:
    assert told_by(name_key(one)) != told_by(name_key(other))
    assert alike(one, other) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("World War II", "World War 2"),
        ("First World War", "World War I"),
        ("July 4, 1776", "4 July 1776"),
        ("Xi Jinping", "Jinping"),
        ("U.S.A.", "USA"),
        ("Washington D.C.", "Washington DC"),
        ("James Bond 007", "James Bond 7"),
        ("", "Anthropic"),
    ],
)
def test_what_does_not(one: str, other: str) -> None:
    assert told_by(name_key(one)) == told_by(name_key(other))


@pytest.mark.parametrize(("numeral", "number"), [("i", 1), ("iv", 4), ("ix", 9), ("xiv", 14), ("xix", 19), ("xxxviii", 38)])
def test_roman_numerals_are_numbers(numeral: str, number: int) -> None:
    assert told_by(f"chapter {numeral}") == (str(number),)


def test_namesakes_differ_in_parentheses_only() -> None:
    assert are_namesakes("Bliss (film)", "Bliss (novel)")
    assert are_namesakes("Bliss", "Bliss (novel)")
    assert not are_namesakes("Bliss (film)", "Joy (film)")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Acme Corp.", "Acme Corporation"),
        ("Acme", "ACME Co., Ltd."),
        ("Fiat", "Fiat S.p.A."),
        ("WiFi", "Wi-Fi"),
        ("Johnson & Johnson", "Johnson and Johnson"),
        ("World War II", "World War 2"),
        ("Big Four", "Big 4"),
        ("U.S.A.", "USA"),
        ("OSU", "Ohio State University"),
        ("F.D.A.", "Food and Drug Administration"),
        ("IBM", "International Business Machines Corporation"),
        ("DOD", "Department of Defense"),
        ("J. R. R. Tolkien", "John Ronald Reuel Tolkien"),
        ("J. Smith", "Jane Smith"),
    ],
)
def test_spellings_of_one_name(one: str, other: str) -> None:
    assert alike(one, other) == [(one, other)]
    assert alike(other, one) == [(other, one)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Company", "Co"),
        ("Osu", "Ohio State University"),
        ("US", "United States"),
        ("Robert A", "Roberta"),
        ("1 23", "12 3"),
        ("BBC1", "First"),
        ("KBS2", "Two"),
        ("Two", "Second"),
        ("1820", "1820s"),
        ("Jurassic Park (film)", "Jurassic Park"),
        ("MPM", "Marco Polo (miniseries)"),
        ("J. Smith", "James Jones"),
        ("Ottawa", "Toronto"),
        ("S.A.", "Ag"),
    ],
)
def test_names_that_spelling_does_not_make_one(one: str, other: str) -> None:
    assert alike(one, other) == []


def test_an_acronym_of_two_names_is_of_neither() -> None:
    assert alike("OSU", "Ohio State University", "Oregon State University") == []
    assert alike("OSU", "Ohio State University", "Ohio State University Inc") != []


def test_initials_that_fit_two_people_are_of_neither() -> None:
    assert alike("J. Smith", "Jane Smith", "John Smith") == []


@given(names_of_anything)
def test_pairs_are_of_the_names_whatever_they_are(names: list[str]) -> None:
    pairs = alike(*names)
    assert len(set(pairs)) == len(pairs)
    assert all(one != other for one, other in pairs)
    assert {frozenset(pair) for pair in alike(*reversed(names))} == {frozenset(pair) for pair in pairs}


def test_many_names_of_one_form_take_no_longer_than_others() -> None:
    splits = [f"{'a' * place} {'a' * (400 - place)}" for place in range(1, 400)]
    people = [f"J{number}x Smith" for number in range(20_000)] + ["J. Smith"]
    start = time.perf_counter()
    assert len(alike(*splits)) <= 8 * len(splits)
    assert alike(*people) == []
    assert time.perf_counter() - start < 20
