import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.text.languages import LANGUAGES
from llama_index_advanced_rag.text.spans import find_spans


def names(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end, kind in find_spans(text, language=language) if kind == "name"]


def kinds(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(text[start:end], kind) for start, end, kind in find_spans(text, language=language)]


@pytest.mark.parametrize(
    "name",
    [
        "University of Copenhagen",
        "Amalie von Schoppe",
        "Banque de France",
        "Procter & Gamble",
        "GPT-4",
        "O'Brien",
        "Jean-Paul Sartre",
        "J. K. Rowling",
        "D.C. United",
        "John F. Kennedy",
        "Martin Luther King Jr",
        "Apple, Inc",
        "St. Maurice's Abbey",
        "Boso the Elder",
        "Henry I of England",
        "Super Bowl 50",
        "iPhone 14 Pro",
        "eBay",
        "AT&T",
        "2014 FIFA World Cup",
        "2016–17 Chelsea F.C.",
        "20th Century Fox",
        "Society for the Exploration of Psychotherapy",
        "Osama bin Laden",
        "Ludwig van Beethoven",
        "Booking.com",
        "C++",
        "AAPL",
        "Müller",
        "Łódź",
        "Владимир Набоков",
        "Αθήνα",
    ],
)
def test_names_within_a_sentence(name: str):
    assert names(f"they spoke about {name}, as one does") == [name]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Beatles came.", ["Beatles"]),
        ("In Paris it rained. The end.", ["Paris"]),
        ("Claude wrote it. However, it was short. Originally it was long.", ["Claude"]),
        ("Boritzer's book and Apple’s phone", ["Boritzer", "Apple"]),
        ("In 2018 Apple bought Beats.", ["Apple", "Beats"]),
        ("a 1991 Japanese film", ["Japanese"]),
        ("Mr. Smith and Dr. Watson met.", ["Smith", "Dr. Watson"]),
        ("He left the U.S. The company stayed.", ["U.S."]),
        ("After World War I. Germany had lost.", ["World War I", "Germany"]),
        ("a London-based firm and pro-German press", ["London", "German"]),
        ("I think it's late. Don't go.", []),
        ("US policy for us", ["US"]),
        ("On Monday in March we met", []),
        ("See Note 9 of Part II.", []),
        ("the rule no. 40See also and 20Minutes", []),
        ("Davy Jones of The Monkees sang.", ["Davy Jones", "Monkees"]),
        ("Lester Smith and Tim Brown", ["Lester Smith", "Tim Brown"]),
        ("University\nof Copenhagen", ["University", "Copenhagen"]),
        ('"Big Apple" Inc', ["Big Apple", "Inc"]),
        ("Server sales grew, as server prices did.", []),
        ("Apple tells more on www.apple.com and at it@apple.com.", ["Apple"]),
        ("RISK FACTORS AND THINGS THAT ONE SHOULD KNOW BEFORE BUYING SHARES", []),
    ],
)
def test_where_a_name_begins_and_ends(text: str, found: list[str]):
    assert names(text) == found


@pytest.mark.parametrize(
    ("language", "name"),
    [
        *(
            ("en", name)
            for name in ("Claude", "Boeing", "Beijing", "Mohammed", "Italy", "Kelly", "Trinity", "Florence", "Clement", "Kipling", "Augustus", "Mars")
        ),
        *(("fr", name) for name in ("André", "Chloé", "Martinez", "Clément", "Brabant", "Poincaré", "Xavier", "Pierre", "Alexandre")),
    ],
)
def test_a_name_may_begin_a_sentence(language: str, name: str):
    assert names(f"{name} est, was, there.", language) == [name]


@pytest.mark.parametrize(
    ("language", "word"),
    [
        *(("en", word) for word in ("Determining", "Founded", "Originally", "Management", "Procedures", "Despite", "First", "Long-term")),
        *(("fr", word) for word in ("Actuellement", "Traitement", "Consultée", "Vérifier", "Selon", "Sécurité", "Malgré", "Utilisez")),
        *(("es", word) for word in ("Actualmente", "Recibió", "Según")),
    ],
)
def test_a_common_word_that_begins_a_sentence_is_no_name(language: str, word: str):
    assert names(f"So it was. {word} bien so it is.", language) == []


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("fr", "L'architecture de l'Oréal plaît. D'abord, L’Oréal a ri.", ["Oréal", "Oréal"]),
        (
            "fr",
            "Selon Google, l'Union européenne et le Conseil d'État à La Rochelle ont tort.",
            ["Google", "Union européenne", "Conseil d'État", "La Rochelle"],
        ),
        ("fr", "M. Dupont de la CNIL a vu Jean d'Alembert. Inscrire votre fichier. Qu'Apple vende.", ["Dupont", "CNIL", "Jean d'Alembert", "Apple"]),
        ("de", "Die Bundesregierung hat in Berlin mit Angela Merkel über die Deutsche Bank gesprochen.", ["Berlin", "Angela Merkel", "Deutsche Bank"]),
        ("de", "Das Büro des Bundeskanzlers Olaf Scholz. Wasser durch Verarbeitung. Der Minister Müller und SAP.", ["Olaf Scholz", "Müller", "SAP"]),
        (
            "de",
            "Die Volkswagen AG mit Sitz in Wolfsburg hat 675 Mitarbeiter. Er studierte in Göttingen Rechtswissenschaften.",
            ["Volkswagen AG", "Wolfsburg", "Göttingen"],
        ),
        ("es", "El presidente Pere Aragonès visitó Los Ángeles y el Banco de España.", ["Pere Aragonès", "Los Ángeles", "Banco de España"]),
        ("it", "Ieri Leonardo da Vinci parlò della Banca d'Italia e dell'Oréal.", ["Ieri Leonardo da Vinci", "Banca d'Italia", "Oréal"]),
        ("pt", "Depois Vasco da Gama foi à Universidade de São Paulo.", ["Vasco da Gama", "Universidade de São Paulo"]),
        ("nl", "Volgens Piet de Vries is Den Haag mooi.", ["Piet de Vries", "Den Haag"]),
        ("ja", "グーグルは『千と千尋』をGoogleとOpenAIで見た。「はい、そうです」", ["グーグル", "千と千尋", "Google", "OpenAI"]),
        ("zh", "《红楼梦》是GPT-4喜欢的书", ["红楼梦", "GPT-4"]),
    ],
)
def test_names_of_other_languages(language: str, text: str, found: list[str]):
    assert names(text, language) == found


@pytest.mark.parametrize(
    "date",
    [
        *("July 1, 2023", "July 2023", "1 July 2023", "2023-07-01", "01/07/2023", "Q3 2022", "2022 Q3", "FY2023", "January 1960", "1998", "1914–1918", "1940s"),
        *(
            "1er juillet 2023",
            "juillet 2023",
            "3e trimestre 2022",
            "T3 2022",
            "1. Juli 2023",
            "1 de julio de 2023",
            "14 november 1907",
            "9 сентября 1828",
            "third quarter of fiscal 2022",
            "Sept. 30, 2022",
        ),
    ],
)
def test_dates(date: str):
    assert kinds(f"it was, in short, {date}; so it was") == [(date, "date")]


@pytest.mark.parametrize(
    "number",
    ["$81,797 million", "2,5 M€", "12 %", "5 km", "€3.5bn", "1 234 567 €", "81,797", "1.355", "30000", "$ 7", "3 °C", "16 GB", "2.5 billion euros"],
)
def test_numbers(number: str):
    assert kinds(f"it was, in short, {number}; so it was") == [(number, "number")]


@pytest.mark.parametrize("text", ["we saw 12 of 345 birds", "the 3rd of 5", "1, 2, 3", "", " ", "\n"])
def test_small_numbers_are_no_spans(text: str):
    assert kinds(text) == []


@pytest.mark.parametrize("identifier", ["10-Q", "ISO-9001", "RFC 2616", "jane.doe@acme.com", "A320", "5G", "XK-2140-B"])
def test_identifiers(identifier: str):
    assert kinds(f"it was, in short, {identifier}; so it was") == [(identifier, "identifier")]


def test_the_cells_of_a_table_row_stay_apart():
    assert kinds("iPhone 60,584 63,355 Services 21,213")[:3] == [("iPhone", "name"), ("60,584", "number"), ("63,355", "number")]
    assert kinds("Operating Income 2023 2022") == [("Operating Income", "name"), ("2023", "date"), ("2022", "date")]


def test_one_digit_makes_another_span():
    assert kinds("Q3 2022") != kinds("Q3 2023")


def test_the_language_is_found_in_the_text():
    text = "Les obligations de l'entreprise sont dans la loi, selon Amélie de Montchalin et les autres."
    assert find_spans(text) == find_spans(text, language="fr")


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigurationError, match=r"language is 'tlh'"):
        find_spans("text", language="tlh")


@pytest.mark.parametrize("language", ["auto", "none", *LANGUAGES])
def test_every_language_can_be_read(language: str):
    assert ("Claude", "name") in kinds("as we saw Claude there", language)


FRAGMENTS = [
    "Apple",
    "of",
    "the",
    "The",
    "L'",
    "d'",
    "A.",
    "10-Q",
    "2023",
    "$5",
    "July",
    "グー",
    "\n",
    " ",
    ", ",
    "a@b.c",
    "\ud800",
    "\x00",
    "'s",
    "Ô",
    "-",
    "ß",
    "İ",
    "3M",
    "(",
    "für",
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4)), max_size=30).map("".join), st.sampled_from(["auto", "en", "fr", "de", "ja", "none"])
)
def test_spans_are_in_order_and_apart(text: str, language: str):
    spans = find_spans(text, language=language)
    assert spans == find_spans(text, language=language)
    ends = [0]
    for start, end, kind in spans:
        assert ends[-1] <= start < end <= len(text)
        assert text[start:end].strip() == text[start:end]
        assert kind in {"name", "number", "date", "identifier"}
        ends.append(end)


SENTENCE = "In 2018 the University of Copenhagen paid $2.5 million to Boritzer's Big Apple Inc. which said that nothing was wrong with Claude. "


@pytest.mark.parametrize(
    "text",
    [
        *(SENTENCE * 8_000, SENTENCE.replace(".", "") * 8_000, "Word " * 100_000, "A. " * 100_000, "King of " * 100_000, "A" * 1_000_000, "1" * 1_000_000),
        *(
            "1," * 300_000,
            "1-" * 300_000,
            "2010-" * 60_000,
            " 123" * 100_000,
            "$1" * 200_000,
            "A-" * 500_000,
            "A'" * 500_000,
            "a.@" * 300_000,
            "Jane.Doe@acme.com, " * 20_000,
            "a+" * 500_000 + "@b",
        ),
        *(
            "「a" * 500_000,
            "アア・" * 300_000,
            "\x00\x01A\x02 " * 100_000,
            "\ud800A\udfff B " * 80_000,
            "July 1, " * 80_000,
            "Server. " * 80_000,
            '"(' * 300_000 + "A",
            "円" + "1" * 1_000_000,
            "円" + "1," * 300_000,
        ),
    ],
    ids=lambda text: repr(text[:8]),
)
def test_bad_input_takes_seconds(text: str):
    began = time.perf_counter()
    find_spans(text)
    assert time.perf_counter() - began < 20


def test_time_grows_with_the_text_only():
    def seconds(text: str) -> float:
        began = time.process_time()
        find_spans(text, language="en")
        return time.process_time() - began

    seconds(SENTENCE)
    assert seconds(SENTENCE * 16_000) < 40 * max(seconds(SENTENCE * 1_000), 0.001)


@pytest.mark.data
def test_titles_are_found_where_other_passages_name_them(data_root: Path):
    lines = (data_root / "multihop" / "hotpotqa" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    passages = [json.loads(line) for line in lines]
    titles = [passage["title"] for passage in passages if passage["title"].replace(" ", "").isalpha() and passage["title"].istitle()]
    text_of = {passage["title"]: passage["text"] for passage in passages}
    told = [(title, text_of[title]) for title in random.Random(0).sample(titles, 300) if f" {title} " in text_of[title]]
    found = [title in names(text, "auto") for title, text in told]
    assert sum(found) >= 0.7 * len(found), (sum(found), len(found))
