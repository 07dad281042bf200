"""What of a run of words with a capital is a name: its ends without function words, and not the first word of a sentence alone."""

import re
from collections.abc import Iterator, Sequence

from llama_index_advanced_rag.text.span_rules.german import german_name
from llama_index_advanced_rag.text.span_rules.lexemes import CODE, ENOUGH_DIGITS, FIGURE, WORD, YEAR, Lexeme, SpanKind
from llama_index_advanced_rag.text.span_rules.lone import is_reference, names_nothing, opens_sentence
from llama_index_advanced_rag.text.span_rules.vocabulary import HEADS, Vocabulary
from llama_index_advanced_rag.text.span_rules.word_list import words_of

MOST_WORDS = 8
"""A longer run is a heading in capitals, or a list without commas."""

_LONGEST_NAME = 120
_SHORTEST_CODE = 3
_LOUD_NAMES = words_of("us it who un ce am")
_TITLES = words_of("mr mrs ms mr. mrs. ms. mme mlle mme. mlle. herr frau sra sra.")
_ENDS_OF_PERIODS = words_of("Ended Ending ENDED ENDING")  # Three Months Ended
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|ª|º)")
_TAIL = re.compile(
    r"[-‐‑](?:based|born|led|owned|style|like|related|backed|listed|speaking|trained|class|type|winning|nominated|only|wide|era|made|funded"
    r"|specific|area|\w{1,20}ed)$"
)
_PEOPLE = re.compile(
    r"(?:[A-Z]\w*[-–])?[A-Z]\w*(?:an|ish|ese)|French|Dutch|Greek|Welsh|Czech|Thai|Swiss|Israeli|Iraqi|Pakistani|Bangladeshi|Tamil|Hindi|Malayalam|Telugu"
    r"|UK|US|U\.S\."
)
_FRENCH_CODE = re.compile(
    r"[ \u00a0](?:civil|pénal|électoral|(?:de[ ]la[ ]|de[ ]l['’]|du[ ]|des[ ]|de[ ])[a-zà-ÿ]{3,20}(?:[ ](?:publi\w{1,5}|sociale))?)(?!\w)"
)
_LOWER_WORD = re.compile(r"[ \u00a0]([^\W\d_A-Z]{1,30})")
_FRENCH_ADJECTIVES = re.compile(
    r"(?:[ \u00a0](?:européen(?:ne)?s?|nationa(?:l|le|les|ux)|français(?:e|es)?|mondiale?|internationa(?:l|le|les|ux)|générale?|fédérale?"
    r"|régiona(?:l|le|les|ux)|départementa(?:l|le|les|ux)|constitutionnel(?:le)?|supérieure?|académique|économique|centrale?|populaire|unie?s?)(?!\w))+"
)


def names_in_run(text: str, run: Sequence[Lexeme], vocabulary: Vocabulary) -> Iterator[tuple[int, int, SpanKind]]:
    """Start, end and kind of what a run holds: mostly one name; a year alone is a date; nothing for a lone function word.

    Args:
        text: the text.
        run: lexemes that go together (`runs_of`).
        vocabulary: that of the language.
    """
    if len(run) > MOST_WORDS:
        for piece in _pieces(run):
            yield from names_in_run(text, piece, vocabulary)
        return
    if run[0].kind == YEAR and (len(run) == 1 or not _begins_with_year(text, run, vocabulary)):
        yield run[0].start, run[0].end, "date"
        run = run[1:]
    words = _trimmed(text, run, vocabulary)
    if words and vocabulary.language == "de":
        words = german_name(text, words, opens=opens_sentence(text, words[0].start))
    if words:
        yield from _name(text, words, vocabulary)


def _name(text: str, words: Sequence[Lexeme], vocabulary: Vocabulary) -> Iterator[tuple[int, int, SpanKind]]:
    """The words as one name, unless they name nothing."""
    start, end = _ends(words)
    kind = _kind(text[start:end], words)
    if kind is None or end - start > _LONGEST_NAME or words[-1].text in _ENDS_OF_PERIODS:
        return
    if (len(words) == 1 and kind == "name" and names_nothing(text, start, end, vocabulary)) or (len(words) == 2 and is_reference(text[start:end])):
        return
    yield start, _french_end(text, end, words[-1].text) if vocabulary.language == "fr" else end, kind


def _french_end(text: str, end: int, word: str) -> int:
    """Where a French name ends that goes on in lower case: `Union européenne`, `Code de la route`."""
    rule = _FRENCH_CODE if word == "Code" else _FRENCH_ADJECTIVES if word.lower() in HEADS else None
    tail = None if rule is None else rule.match(text, end)
    return end if tail is None else tail.end()


def _begins_with_year(text: str, run: Sequence[Lexeme], vocabulary: Vocabulary) -> bool:
    """Whether the year before a name is a part of it: `2014 FIFA World Cup`, but not `1991 Japanese film`."""
    if all(_PEOPLE.fullmatch(lexeme.text.rstrip("- ")) for lexeme in run[1:]):
        return False
    after = _LOWER_WORD.match(text, run[-1].end)
    return len(run) > 2 or after is None or after[1] in vocabulary.stop_words


def _pieces(run: Sequence[Lexeme]) -> Iterator[Sequence[Lexeme]]:
    """A run that is too long, cut where its words are joined by more than a space; pieces that are still too long are left out."""
    begin = 0
    for position in range(1, len(run) + 1):
        if position == len(run) or run[position].start - run[position - 1].end > 1:
            if position - begin <= MOST_WORDS:
                yield run[begin:position]
            begin = position


def _trimmed(text: str, words: Sequence[Lexeme], vocabulary: Vocabulary) -> list[Lexeme]:
    """The words without function words and forms of address at either end."""
    loud = len(words) > 1 and words[0].text.isupper() and all(word.text.isupper() for word in words)
    first, last = 0, len(words)
    while first < last and words[first].kind == WORD and _is_cut(text, words[first], vocabulary, alone=last - first == 1, loud=loud):
        first += 1
    while first < last - 1 and words[last - 1].kind == WORD and _ends_no_name(words[last - 1].text, vocabulary, loud=loud):
        last -= 1
    return list(words[first:last])


def _is_cut(text: str, lexeme: Lexeme, vocabulary: Vocabulary, *, alone: bool, loud: bool) -> bool:
    word = lexeme.text
    lower = word.lower()
    if lower not in vocabulary.cut:
        return lower in _TITLES or (word == "M." and vocabulary.language == "fr")
    if word.isupper() and len(word) > 1 and not loud:
        return alone and lower not in _LOUD_NAMES
    if opens_sentence(text, lexeme.start):
        return True
    return lower in vocabulary.stop_words and (alone or (vocabulary.reads_english and lower not in vocabulary.kept_within))


def _ends_no_name(word: str, vocabulary: Vocabulary, *, loud: bool) -> bool:
    lower = word.lower()
    return lower in vocabulary.stop_words and len(word) > 1 and lower not in vocabulary.kept_within and (loud or not word.isupper())


def _ends(words: Sequence[Lexeme]) -> tuple[int, int]:
    """Where the name begins and ends, without a lower-case tail (`-based`) and the full stop of an abbreviation."""
    last = words[-1]
    start, end = words[0].start, last.end
    if last.text[-1] == "." and last.text.count(".") == 1:
        end -= 1
    elif "-" in last.text or "‐" in last.text:
        tail = _TAIL.search(last.text)
        end = end if tail is None else last.start + tail.start()
    return start, end


def _kind(name: str, words: Sequence[Lexeme]) -> SpanKind | None:
    if words[0].kind == WORD and name.replace(" ", "").isalpha():
        return "name"
    digits = sum(map(str.isdigit, name))
    if words[0].kind == FIGURE:
        return "number" if digits >= ENOUGH_DIGITS else None
    if len(words) == 1 and words[0].kind == CODE:
        return None if _ORDINAL.fullmatch(name) else "identifier"
    is_code = digits >= _SHORTEST_CODE and name.upper() == name and (len(words) == 1 or (len(words) == 2 and words[1].kind != WORD))
    return "identifier" if is_code else "name"
