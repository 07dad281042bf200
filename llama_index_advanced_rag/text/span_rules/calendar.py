"""Dates as they are written in seven languages, as regular expressions."""

from collections.abc import Iterable

from llama_index_advanced_rag.text.span_rules.word_list import words_of

_MONTHS = words_of("""
    January February March April May June July August September October November December
    janvier février fevrier mars avril mai juin juillet août aout septembre octobre novembre décembre decembre
    Januar Jänner Februar März Mai Juni Juli Oktober Dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro
    januari februari maart april mei juni juli augustus september oktober november december maj augusti
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    """)
_SHORT = words_of("Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec")
_DAYS = words_of("""
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    lundi mardi mercredi jeudi vendredi samedi dimanche
    Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonnabend Sonntag
    """)

CALENDAR_WORDS = frozenset(word.lower() for word in (*_MONTHS, *_DAYS, *_SHORT))
"""Months and days of the week in lower case: alone they name nothing."""


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_FOUR_FIGURES = r"(?:1\d|20)\d\d"
_YEAR = rf"{_FOUR_FIGURES}(?!\w)"
_CAPITAL_MONTH = rf"(?:{_either(filter(str.istitle, _MONTHS))}|(?:{_either(_SHORT)})\b\.?)"
_ANY_MONTH = rf"(?:{_either(_MONTHS | set(map(str.capitalize, _MONTHS)))}|(?:{_either(_SHORT)})\b\.?)"
_DAY_OF_MONTH = r"(?:[12]\d|3[01]|0?[1-9])"
_ORDINAL = "(?:[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth|[Pp]remier|[Dd]euxième|[Tt]roisième|[Qq]uatrième)"
_OF_YEAR = r"(?:of|de|del|du|the|fiscal|year|années?|l['’]année|l['’]exercice)"

MONTH_FIRST = rf"{_CAPITAL_MONTH}[ \u00a0](?:{_DAY_OF_MONTH}(?:st|nd|rd|th)?(?![\w.,]?\d|\w)(?:,?[ \u00a0]{_YEAR})?|(?:de[ ])?{_YEAR})"
"""July 1, 2023; July 2023; July 1st."""

DAY_FIRST = (
    rf"{_DAY_OF_MONTH}(?:st|nd|rd|th|er|\.|º|°)?[ \u00a0](?:de[ ]|of[ ])?{_ANY_MONTH}(?!\w)"
    rf"(?:,?[ \u00a0](?:(?:de|del|of)[ ])?{_YEAR})?"
)
"""1 July 2023; 1er juillet 2023; 1. Juli 2023; 1 de julio de 2023."""

IN_FIGURES = (
    rf"(?:\d{{4}}-(?:0\d|1[0-2])-[0-3]\d|"
    rf"[0-3]?\d/[0-3]?\d/{_FOUR_FIGURES}|[0-3]?\d\.[0-3]?\d\.{_FOUR_FIGURES})(?![\w-]|[/.]\d)"
)
"""2023-07-01; 01/07/2023; 1.7.2023."""

QUARTER = rf"(?:[QT][1-4][ \u00a0-]?(?:FY[ ]?)?{_YEAR}|FY[ ]?{_YEAR})"
"""Q3 2022; T3 2022; FY2023."""

YEAR_AND_QUARTER = (
    rf"(?:{_FOUR_FIGURES}[ \u00a0-]?Q[1-4](?!\w)"
    rf"|[1-4](?:er|e|ème|º|th|st|nd|rd)[ \u00a0](?:trimestre|quarter|semestre)(?:[ ]{_OF_YEAR}){{0,3}}[ \u00a0]{_YEAR})"
)
"""2022 Q3; 3e trimestre 2022; 3rd quarter of 2022."""

BEFORE_YEAR = (
    rf"(?<!\w)(?:{_ANY_MONTH}|{_ORDINAL}[ ](?:fiscal[ ])?(?:quarter|trimestre|semestre))"
    rf",?(?:[ ]{_OF_YEAR}){{0,3}}[ \u00a0]\Z"
)
"""What belongs to the year after it and does not begin with a capital or a figure: juillet 2023; third quarter of 2022."""
