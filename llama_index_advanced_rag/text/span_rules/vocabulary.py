"""The small words of each language that a name may hold, and those with which a sentence begins without naming anything."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from llama_index_advanced_rag.text.languages import FALLBACK, LANGUAGES, shared_stop_words, stop_words_of
from llama_index_advanced_rag.text.span_rules.openers import BEGIN_NAMES_TOO, ENGLISH_FUNCTION_WORDS, OPENERS
from llama_index_advanced_rag.text.span_rules.word_list import words_of

_PARTICLES = "de;de la;de los;de las;de l';d';del;della;dell';degli;delle;dei;di;du;dos;van;van der;van den;van de;von;von der;von dem;zu;bin;ibn;al;ter"
_CONNECTORS = {
    "de": "von;von der;von dem;vom;van;van der;zu;zu der;zum;am;an der;ob der;de;de la;du;del;della;di",
    "en": f"of;of the;of an;upon;on the Hill;{_PARTICLES};da;des;&",
    "es": f"{_PARTICLES};e;y de",
    "fr": f"{_PARTICLES};des;de l';en l'",
    "it": f"{_PARTICLES};da;dal;dalla;dello;dell';nell'",
    "nl": f"{_PARTICLES};van het;den;der;ten;'t;aan den;aan de",
    "pt": f"{_PARTICLES};da;do;das;e da;e do",
}
_AFTER_HEADS = {
    "de": "für;für die;für den;der;des",
    "en": "for;for the;on;and;in the;to",
    "es": "para;para la;para el;y",
    "fr": "pour;pour la;pour le;pour l';à la;aux;et",
    "it": "per;per la;per il;per lo;per l'",
    "nl": "voor;voor de;voor het",
    "pt": "para;para a;para o",
}
HEADS = words_of("""
    academy agency alliance association award board bureau campaign center centre coalition college commission committee conference council court
    department directorate federation foundation fund institute institution league ministry movement network office organisation organization party
    prize program programme school secretary society union trust ministère institut agence assemblée union banque cour république parlement sénat
    autorité bureau école fédération association fondation centre comité conseil commission fédération fonds prix bundesamt bundesministerium
    bundesanstalt bundesinstitut institut ministerium zentrum amt gesellschaft verein stiftung universität haus rat museum akademie hochschule
    instituto ministerio ministério fundación fundação asociación consejo comisión istituto ministero fondazione agenzia centro ministerie instituut
    stichting raad vereniging centrum
    """)
"""Words that begin the name of an office or a body, in any language."""

_EPITHETS = words_of("""
    apostle bad bald baptist bearded black blind bold brave catholic child conqueror confessor cruel elder evangelist fair fat first fourth good great
    handsome hun hunchback hutt impaler just kid lame lion lionheart magnificent martyr merciless mighty navigator old pious posthumous quarrelsome
    rapper red ripper second short silent simple stammerer stern strong tall terrible theologian third venerable virgin white wise young younger
    """)
_BEFORE_YEARS = words_of("""
    in since by until till from before after circa early late through en depuis dès avant après jusqu'en vers im seit ab bis vor nach jahr desde hasta hacia
    nel dal dopo prima em até sinds tot vanaf omstreeks
    """)
_KEPT_WITHIN = frozenset({"will", "may", "can", "don", "won", "ma", "am", "son", "era", "sommes"})


@dataclass(frozen=True)
class Vocabulary:
    """What the rules for names know of one language.

    Attributes:
        language: its code, or None for a text that shows none.
        stop_words: function words, in lower case.
        openers: words that are no name where they stand alone at the beginning of a sentence, function words among them.
        cut: the openers that are not part of the name after them either (`Selon Google`, but `New York`).
        connectors: what may stand between two words of a name, with its spaces.
        after_heads: what may follow a word of `heads` only.
    """

    language: str | None
    stop_words: frozenset[str]
    openers: frozenset[str]
    cut: frozenset[str]
    connectors: frozenset[str]
    after_heads: frozenset[str]
    heads: frozenset[str] = HEADS
    epithets: frozenset[str] = _EPITHETS
    before_years: frozenset[str] = _BEFORE_YEARS
    kept_within: frozenset[str] = _KEPT_WITHIN

    @property
    def reads_english(self) -> bool:
        """Whether the rules of English hold."""
        return self.language in (None, FALLBACK)


def _spaced(phrases: str) -> Iterable[str]:
    for phrase in phrases.split(";"):
        if phrase.endswith("'"):
            yield from (f" {phrase[:-1]}{mark}" for mark in "'’")
        else:
            yield f" {phrase} "


@cache
def vocabulary_of(language: str | None) -> Vocabulary:
    """The vocabulary of a language code of `text.languages`; None stands for a text that shows no language and is read as English."""
    known = language if language in _CONNECTORS else FALLBACK
    has_list = language is not None and LANGUAGES[language].stop_words is not None
    stop_words = stop_words_of(language) if language is not None and has_list else stop_words_of(FALLBACK) | shared_stop_words()
    openers = OPENERS.get(language or FALLBACK, frozenset[str]())
    foreign = shared_stop_words().union(*(OPENERS.values() if language is None else ()))
    return Vocabulary(
        language=language,
        stop_words=stop_words,
        openers=stop_words | openers | foreign,
        cut=(stop_words | (ENGLISH_FUNCTION_WORDS if known == FALLBACK else openers)) - BEGIN_NAMES_TOO,
        connectors=frozenset(_spaced(_CONNECTORS[known])) | {" & ", "- "},
        after_heads=frozenset(_spaced(_AFTER_HEADS[known])),
    )
