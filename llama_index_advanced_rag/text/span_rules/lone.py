"""One word with a capital on its own: when it names nothing."""

import re

from llama_index_advanced_rag.text.languages import FALLBACK
from llama_index_advanced_rag.text.span_rules.calendar import CALENDAR_WORDS
from llama_index_advanced_rag.text.span_rules.vocabulary import Vocabulary
from llama_index_advanced_rag.text.span_rules.word_list import words_of

_OPENING = frozenset(" \t\u00a0\u202f\"'“”«‹([{¿¡*•·–—-#|>`‘’")
_ENDS = frozenset(".!?:;…。\n\r\f\u2028\u2029")
_MOST_BEFORE_OPENING = 12
_NEARBY = 2_000
_SHORTEST_COMMON = 4
_ROMAN = re.compile(r"[IVX]+")
_CONTRACTION = re.compile(r"(\w{1,20})['’][a-z]+")
REFERENCES = words_of("""
    note notes item items part parts page pages chapter section article table figure exhibit appendix annex step fig no vol
    """)
"""Words that stand before the number of a place in a document."""

_COMMON = {
    "en": re.compile(
        r"[A-Z][a-z]+(?:[^\W_]{2}ing|[^\Wmr_]ed|[ts]ions?|ments?|ness|ivity|ility|ality|ities|isms?|able|ible|eful|less|ous|ical|tive|ology|ships?|[tsx]ures|(?:[tns]al|ri|si|ti|u|b|p|cal)ly)"
    ),
    "es": re.compile(r"\w{3,}(?:[cs]i[oó]n|[cs]iones|mientos?|idad|idades|mente|ando|iendo|ismo|ió|aron|ieron)"),
    "fr": re.compile(r"\w{3,}(?:[tsx]ions?|ments?|ités?|ismes?|antes?|ants?|ez|ables?|[^\W_]é|[^\W_]ées?|és)"),
    "it": re.compile(r"\w{3,}(?:[sz]ion[ei]|ment[oi]|ità|mente|ando|endo|ismo|arono|irono)"),
    "nl": re.compile(r"\w{3,}(?:ingen|heid|heden|aties?|ende|isme|lijke?)"),
    "pt": re.compile(r"\w{3,}(?:[çs]ão|[çs]ões|mentos?|idade|idades|mente|ando|endo|ismo|aram|iram|eceu)"),
}
_NUMBERED = re.compile(
    r"(?:notes?|items?|parts?|pages?|table|figure|fig|exhibit|appendix|annex|step|annexe|tableau|étape|schritt|seite|tabelle|abbildung|página|pagina)"
    r"\.?[ \u00a0](?:\d+[a-z]?|[ivx]+)",
    re.IGNORECASE,
)
_FRENCH_VERB = re.compile(r"\w{2,}(?:er|ir|re)[ \u00a0](?:votre|vos|une?|les|des|l['’]|ses|leurs?|ces|cette|aux|d['’]|à|sur|si|que|pas)\b")


def opens_sentence(text: str, start: int) -> bool:
    """Whether a word is the first of its sentence, line or cell; brackets, quotes and bullets before it do not count.

    Example:
        >>> opens_sentence("So. (Here", 5), opens_sentence("So here", 3)
        (True, False)
    """
    position, lowest = start - 1, max(-1, start - 1 - _MOST_BEFORE_OPENING)
    while position > lowest and text[position] in _OPENING:
        position -= 1
    return position < 0 or text[position] in _ENDS


def is_reference(name: str) -> bool:
    """Whether a name is a place in its own document (`Note 9`, `Part II`): another document means another one by it.

    Example:
        >>> is_reference("Note 9"), is_reference("Article 6")
        (True, False)
    """
    return _NUMBERED.fullmatch(name) is not None


def names_nothing(text: str, start: int, end: int, vocabulary: Vocabulary) -> bool:
    """Whether a lone word is a letter, a Roman number, a month, a reference, or a common word that only its sentence gave a capital.

    Args:
        text: the text.
        start: where the word begins, without an elided article.
        end: one past its last character.
        vocabulary: that of the language.
    """
    word = text[start:end]
    lower = word.lower()
    if len(word) == 1 or _ROMAN.fullmatch(word) or lower in CALENDAR_WORDS or lower.removesuffix("s") in CALENDAR_WORDS or lower in REFERENCES:
        return True
    contraction = _CONTRACTION.fullmatch(word)
    if contraction is not None and contraction[1].lower() in vocabulary.stop_words:
        return True
    if word.isupper() or not opens_sentence(text, start):
        return False
    if lower in vocabulary.openers or ("-" in word and word[word.rindex("-") + 1 :].islower()):
        return True
    return _is_common(text, start, end, vocabulary)


def _is_common(text: str, start: int, end: int, vocabulary: Vocabulary) -> bool:
    """Whether the first word of a sentence has the ending of a common word, or stands in lower case nearby."""
    word = text[start:end]
    common = _COMMON.get(vocabulary.language or FALLBACK)
    if common is not None and common.fullmatch(word) is not None:
        return True
    if vocabulary.language == "fr" and _FRENCH_VERB.match(text, start, end + 10) is not None:
        return True
    return len(word) >= _SHORTEST_COMMON and _stands_nearby(text, word.lower(), start)


def _stands_nearby(text: str, lower: str, start: int) -> bool:
    position = text.find(lower, max(0, start - _NEARBY), start + _NEARBY)
    if position < 0:
        return False
    end = position + len(lower)
    return not (text[position - 1 : position].isalnum() or (text[end : end + 1].isalpha() and text[end : end + 1] != "s"))
