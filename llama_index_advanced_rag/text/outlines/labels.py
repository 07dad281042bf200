"""The words and marks that number headings in several languages, and what they rank."""

import re

RANKS = {
    "appendix": 0.0, "book": 1.0, "part": 2.0, "title": 3.0, "chapter": 4.0, "item": 4.5, "section": 5.0, "subsection": 6.0,
    "article": 7.0, "paragraph": 7.5, "note": 8.0, "roman": 9.0, "letter": 9.5, "decimal": 10.0,
}  # fmt: skip
"""How high each kind stands; the levels of decimal numbers follow each other below 10."""

BARE_KINDS = ("roman", "letter", "decimal")
EITHER_ORDER = (("section", "article"), ("part", "title"), ("title", "chapter"), ("chapter", "section"), ("book", "part"))
"""Pairs of kinds of which the one that comes first in the text stands above: laws and contracts differ."""

_WORDS = {
    "appendix": "annex annexe appendix schedule exhibit attachment anhang anlage anexo apéndice allegato приложение",
    "book": "book volume livre tome buch libro livro libre",
    "part": "part partie teil parte часть",
    "title": "title titre titel título titulo titolo",
    "chapter": "chapter chap chapitre kapitel capítulo capitulo capitolo глава",
    "item": "item",
    "section": "section sec abschnitt sección seccion seção sezione раздел",
    "subsection": "subsection sub-section sous-section unterabschnitt",
    "article": "article artikel artículo articulo artigo articolo art clause cláusula klausel статья المادة",
    "note": "note nota",
}
KIND_OF_WORD = {word: kind for kind, words in _WORDS.items() for word in words.split()} | {
    "الباب": "part",
    "الفصل": "chapter",
    "פרק": "chapter",
    "סעיף": "article",
}

_SPELLED = {
    1: "one first premier première primero primera primo prima único unique un une eins erster erste",
    2: "two second deux deuxième segundo segunda secondo zwei zweiter zweite",
    3: "three third trois troisième tercero tercera terzo drei dritter dritte",
    4: "four fourth quatre quatrième cuarto cuarta quarto vier",
    5: "five fifth cinq cinquième quinto quinta fünf",
    6: "six sixth sixième sexto sexta sechs",
    7: "seven seventh sept septième séptimo séptima sieben",
    8: "eight eighth huit huitième octavo octava acht",
    9: "nine ninth neuf neuvième noveno novena neun",
    10: "ten tenth dix dixième décimo décima zehn",
}
_NUMBER_OF_WORD = {word: number for number, words in _SPELLED.items() for word in words.split()}

_ARABIC = re.compile(r"(?:[A-Z]{1,2}\.?[ \u00a0]?)?\d{1,5}(?:[-.–]\d{1,4}){0,5}(?:er|ère|re|[A-Za-z]|[ -](?:bis|ter|quater))?(?!\w)")
_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?:er|ER)?(?![\w.]\w)")
_LETTER = re.compile(r"[A-Z](?!\w)")
_WORD = re.compile(r"[^\W\d_]+(?!\w)")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_CJK_DIGITS = {mark: place for place, marks in enumerate(("零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九")) for mark in marks}
_CJK_TENS = {"十": 10, "百": 100, "千": 1000}

Number = tuple[str, tuple[int, ...], int]
"""The series it belongs to (its letters before the figures), the number itself, and where it ends in the line."""


def read_number(text: str, begin: int) -> Number | None:
    """The number at a place of a line: 7, 1A, 3.2, L. 411-1, IV, B, premier.

    Example:
        >>> read_number("Item 1A. Risk", 5), read_number("Part IV", 5), read_number("Annex B", 6)
        (('', (1, 1), 7), ('', (4,), 7), ('letter', (2,), 7))
    """
    if match := _ARABIC.match(text, begin):
        return _arabic(match.group(), match.end())
    match = _ROMAN.match(text, begin)
    if match and match.end() > begin:
        return "", (roman_value(match.group()),), match.end()
    if match := _LETTER.match(text, begin):
        return "letter", (ord(match.group()) - ord("A") + 1,), match.end()
    match = _WORD.match(text, begin)
    number = _NUMBER_OF_WORD.get(match.group().casefold()) if match else None
    return ("", (number,), match.end()) if match and number else None


def read_ordinal(line: str) -> tuple[str, int] | None:
    """The kind and the number of a line like `Première partie`, else None.

    Example:
        >>> read_ordinal("PREMIÈRE PARTIE"), read_ordinal("first part")
        (('part', 1), None)
    """
    words = line.casefold().split(None, 2)
    number = _NUMBER_OF_WORD.get(words[0]) if len(words) == 2 and line[0].isupper() else None
    kind = KIND_OF_WORD.get(words[1]) if number is not None else None
    return (kind, number) if kind is not None and number is not None and RANKS[kind] <= RANKS["section"] else None


def _arabic(text: str, end: int) -> Number:
    figures = [int(part) for part in re.findall(r"\d+", text)]
    series = re.match(r"[A-Z]*", text)
    tail = re.search(r"(?<=\d)([A-Za-z])$", text)
    number = (*figures, ord(tail.group().upper()) - ord("A") + 1) if tail else tuple(figures)
    return series.group() if series else "", number, end


def roman_value(text: str) -> int:
    """The value of a Roman number in capitals.

    Example:
        >>> roman_value("XIV")
        14
    """
    values = [_ROMAN_DIGITS[mark] for mark in text if mark in _ROMAN_DIGITS]
    return sum(-value if any(after > value for after in values[place + 1 : place + 2]) else value for place, value in enumerate(values))


def chinese_value(text: str) -> int:
    """The value of a Chinese number, also written with figures.

    Example:
        >>> chinese_value("二十一"), chinese_value("十"), chinese_value("105")
        (21, 10, 105)
    """
    if text.isdecimal():
        return int(text)
    if not any(mark in _CJK_TENS for mark in text):
        return int("".join(str(_CJK_DIGITS.get(mark, 0)) for mark in text) or 0)
    total, digit = 0, 0
    for mark in text:
        if mark in _CJK_TENS:
            total, digit = total + max(digit, 1) * _CJK_TENS[mark], 0
        else:
            digit = _CJK_DIGITS.get(mark, 0)
    return total + digit
