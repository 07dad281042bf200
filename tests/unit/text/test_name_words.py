"""Names as they are compared: one key for every spelling of a name, another for every other name."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.text.name_words import MAX_NAME_WORDS, function_words, name_key, name_words, plain_name

anything = st.text(max_size=40) | st.text("ab1 .,'’()（）-_\u0301éßﬁ½ﷺﹰͺ日本ไทยK\n", max_size=30)


def keys(text: str) -> list[str]:
    return [word.key for word in name_words(text)]


@pytest.mark.parametrize(
    "spellings",
    [
        ("Müller", "MÜLLER", "Mu\u0308ller", "muller"),
        ("The Beatles", "Beatles", "the beatles", "An Beatles"),
        ("GPT-4", "gpt 4", "GPT–4", "(GPT 4)"),
        ("Anthropic's", "Anthropic’s", "ANTHROPIC"),
        ("C++", "c++"),
        ("Straße", "STRASSE", "strasse"),
        ("日本", "日 本", "「日本」"),
        ("ＧＰＴ", "GPT"),
    ],
)
def test_spellings_of_one_name(spellings: tuple[str, ...]) -> None:
    assert len({name_key(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("Q3 2022", "Q3 2023"), ("GPT-4", "GPT-4o"), ("C", "C++"), ("C", "C#"), ("Lake", "Lake District"), ("日本", "日中"), ("1.5", "15"), ("Knott", "Knot")],
)
def test_names_that_differ(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


def test_nothing_to_know_a_name_by() -> None:
    assert [name_key(name) for name in ("", " \n", "—", "!?", "()", "_")] == [""] * 6
    assert name_key("The") == "the"
    assert name_key("'s") == ""


def test_words_know_where_they_stand_and_how_they_begin() -> None:
    text = "É. Vaswani saw l’Élysée, 3 iPhones and 日本."
    words = name_words(text)
    assert [text[word.start : word.end] for word in words] == ["É", "Vaswani", "saw", "l", "Élysée", "3", "iPhones", "and", "日", "本"]
    assert [word.key for word in words if word.shown] == ["e", "vaswani", "elysee", "3", "日", "本"]


@given(anything)
def test_keys_are_words_without_spaces(text: str) -> None:
    words = name_words(text)
    assert all(word.key and word.key == "".join(word.key.split()) for word in words)
    assert all(0 <= word.start < word.end <= len(text) for word in words)
    assert all(one.end <= other.start for one, other in itertools.pairwise(words))
    key = name_key(text)
    assert key == " ".join(key.split())
    assert len(key.split()) <= MAX_NAME_WORDS


@given(st.text(alphabet="abéß½ﷺ１日 -.,()", max_size=60))
def test_a_name_is_known_by_its_words(name: str) -> None:
    words = keys(name)[:MAX_NAME_WORDS]
    while len(words) > 1 and words[0] == "a":
        words = words[1:]
    assert name_key(name) == " ".join(words)


def test_names_without_what_tells_them_apart() -> None:
    assert plain_name("Jurassic Park (film)") == "Jurassic Park"
    assert plain_name("Foo (album) (2)") == "Foo (album)"
    assert plain_name("Foo （映画） ") == "Foo"
    assert plain_name("A (b) c") == "A (b) c"
    assert plain_name("(film)") == "(film)"
    assert plain_name("") == ""
    assert plain_name("f((x)") == "f("


@pytest.mark.parametrize("name", ["a" * 1_000_000, " " * 1_000_000, "(" * 1_000_000, "() " * 300_000, "'s" * 500_000, "e" + "\u0301" * 1_000_000])
def test_a_name_of_a_million_characters_takes_no_time(name: str) -> None:
    start = time.perf_counter()
    name_key(name), plain_name(name)
    assert time.perf_counter() - start < 10.0


def test_a_long_text_takes_time_in_proportion() -> None:
    text = "The Lake District, l’été à Nice, GPT-4 and 東京. " * 20_000
    start = time.perf_counter()
    assert len(name_words(text)) == 12 * 20_000
    assert time.perf_counter() - start < 20.0


def test_words_that_are_no_names() -> None:
    assert {"it", "the", "le", "der", "il"} <= function_words()
    assert "apple" not in function_words()
