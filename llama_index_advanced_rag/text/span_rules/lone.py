"""One word with a capital on its own: when it names nothing."""

import re

from llama_index_advanced_rag.text.languages import FALLBACK
from llama_index_advanced_rag.text.span_rules.calendar import CALENDAR_WORDS
from llama_index_advanced_rag.text.span_rules.vocabulary import Vocabulary
from llama_index_advanced_rag.text.span_rules.word_list import words_of

_OPENING = frozenset(" \t\u00a0\u202f\u200b\ufeff\"'“”«‹([{¿¡*•·–—-#|>`‘’")
_ENDS = frozenset(".!?:;…。\n\r\f\u2028\u2029")
_MOST_BEFORE_OPENING = 12
_NEARBY = 2_000
_SHORTEST_COMMON = 4
_MOST_TRIES = 4
_FURTHER = 10
_WORD_END = re.compile(r"s?(?![\w@]|[.-]\w)")
_ROMAN = re.compile(r"[IVX]+")
_CONTRACTION = re.compile(r"(\w{1,20})['’][a-z]+")
REFERENCES = words_of("""
    note notes item items part parts page pages chapter section article table figure exhibit appendix annex step fig no vol
    """)
"""Words that stand before the number of a place in a document."""

_CALENDAR = CALENDAR_WORDS.union(f"{word}s" for word in CALENDAR_WORDS) - words_of("augustus mars jan mei")  # which are names as well
_NAMES = words_of("clement constable venable siegfried winifred wilfred manfred mildred trinity")
_COMMON = {
    "en": re.compile(
        r"[A-Z][a-z]+(?:[^\Wmr_]ed|[ts]ions?|ments?|ness|ivity|ility|ality|ities|isms?|able|ible|eful|less|ous|ical|tive|ology|ships?"
        r"|[dtsx]ures|(?:[tns]al|ri|si|ti|u|b|p|cal)ly)"
    ),
    "es": re.compile(r"\w{3,}(?:[cs]i[oó]n|[cs]iones|mientos?|idad|idades|mente|ando|iendo|ismo|ió|aron|ieron)"),
    "fr": re.compile(r"\w{3,}(?:[tsx]ions?|ements?|amments?|ités?|ismes?|antes|ants|ables|ées?|és)"),
    "it": re.compile(r"\w{3,}(?:[sz]ion[ei]|ment[oi]|ità|mente|ando|endo|ismo|arono|irono)"),
    "nl": re.compile(r"\w{3,}(?:ingen|heid|heden|aties?|ende|isme|lijke?)"),
    "pt": re.compile(r"\w{3,}(?:[çs]ão|[çs]ões|mentos?|idade|idades|mente|ando|endo|ismo|aram|iram|eceu)"),
}
_NUMBERED = re.compile(
    r"(?:notes?|items?|parts?|pages?|table|figure|fig|exhibit|appendix|annex|step|annexe|tableau|étape|schritt|seite|tabelle|abbildung|página|pagina)"
    r"\.?[ \u00a0](?:\d+[a-z]?|[ivx]+)",
    re.IGNORECASE,
)
_FRENCH_VERB = re.compile(
    r"\w{2,}(?:er|ir|re)[ \u00a0](?:votre|vos|une?|les|des|ses|leurs?|ces|cette|aux|à|sur|si|que|pas|l['’]|d['’])(?!\w{0,2}[A-Z])"
    r"|\w{2,}ez[ \u00a0](?!(?:a|avait|dit|est|et|fut|ne|n['’]|qui|se|s['’]|sera|va|était)(?!\w))[a-zà-ÿ]"
)


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
    if len(word) == 1 or _ROMAN.fullmatch(word) or lower in _CALENDAR or lower in REFERENCES:
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
    if common is not None and common.fullmatch(word) is not None and word.lower() not in _NAMES:
        return True
    if vocabulary.language == "fr" and _FRENCH_VERB.match(text, start, end + _FURTHER) is not None:
        return True
    return len(word) >= _SHORTEST_COMMON and _stands_nearby(text, word.lower(), start)


def _stands_nearby(text: str, lower: str, start: int) -> bool:
    """Whether a word stands in lower case near a place, on its own or in the plural, and not in an address (`apple.com`)."""
    position = text.find(lower, max(0, start - _NEARBY), start + _NEARBY)
    for _ in range(_MOST_TRIES):
        if position < 0:
            return False
        if text[position - 1 : position].isspace() and _WORD_END.match(text, position + len(lower)) is not None:
            return True
        position = text.find(lower, position + 1, start + _NEARBY)
    return False
