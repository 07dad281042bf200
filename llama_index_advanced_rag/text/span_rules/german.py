"""German writes every noun with a capital: which of them are names."""

import re
from itertools import pairwise

from llama_index_advanced_rag.text.span_rules.lexemes import WORD, Lexeme
from llama_index_advanced_rag.text.span_rules.word_list import words_of

_DETERMINERS = words_of("""
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines dieser diese dieses diesen diesem jener jene jenes
    jenen jenem jeder jede jedes jeden jedem mein meine meinen meinem meiner meines sein seine seinen seinem seiner seines ihr ihre ihren ihrem ihrer
    ihres unser unsere unseren unserem unserer unseres euer eure im am zum zur vom beim ins ans alle allen aller alles viele vielen vieler mehr
    weniger wenige einige einigen einiger mehrere mehreren manche welche welcher welches beide beiden solche solcher pro je kaum ohne
    """)
_COMMON_NOUNS = words_of("""
    angaben angriffe angriffen anhang anspruch antrag artikel aufgaben auftrag ausnahme begriff beginn bereich bericht besitz betrieb betrieben bezug blick
    bürger bürgern dauer dienst druck einsatz erfolg essen fall fälle fällen familie folge folgen frage fragen frau frauen geld gesellschaft gründe gründen
    gruppe grund hand haushalt hilfe inhalt interesse kinder kindern klasse kosten kraft kritik krieg kunden kunst lage land länder ländern laufe leben leute
    leuten macht mann menge mensch menschen milch mitarbeiter mitarbeitern mitglied mitglieder mitgliedern mittel monat monate monaten nacht name namen nutzer
    nutzern ort orte orten personen platz preis preise preisen problem probleme problemen produkt produkte produkten programm projekt quelle quellen raum regel
    regeln reihe risiko ruf sache schaden schule seite seiten sinn sitz sohn sprache staat staaten stadt städte städten stand stil strom stunde stunden stück
    tag tage tagen text thema themen tochter tod umfang umsatz unternehmen ursache vater verkehr versuch vertrag verträge verträgen volk wahl wasser weg welt
    wert werte werten wirtschaft woche wochen wort worte worten wunsch zahl zahlen ziel ziele zielen zug zugang zweck zwecke zwecken
    """)
_PREPOSITIONS = words_of("""
    in aus nach von bei mit für gegen über durch um und oder an auf unter zwischen vor seit ab bis laut neben wie als per via zu
    """)
_NOUN = re.compile(
    r"(?:ung|ungen|heit|heiten|keit|keiten|schaft|schaften|tion|tionen|tät|täten|nis|nisse|nissen|ismus|ment|mente|anz|tum|ling|linge|ik"
    r"|gie|rie|tie|mie|nie|eur|euren|zeit|zeiten|jahr|jahre|jahren|gesetz|recht|rechte|rechten|ordnung|verfahren|daten|arbeit|wesen|stelle|stellen"
    r"|werk|haus|teil|teile|form|formen|weise|beispiel|ende|anfang|prozent|euro|uhr|million|millionen|milliarden)$",
    re.IGNORECASE,
)
_ADJECTIVE = re.compile(r"[a-zäöüß]{2,}(?:e|er|en|em|es)$")
_NAME_ADJECTIVE = re.compile(r"(?:\w*(?:sch|ig|lich|eint|einigt|isiert)|Neu|Groß|Rot|Alt|Hoh|Frei|Schwarz|Grün|Weiß|Erst|Zweit)e[rnms]?")
_LONGEST_NAME_WORD = 14


def german_name(text: str, words: list[Lexeme], *, opens: bool) -> list[Lexeme]:
    """The words of a run that are a name, or none.

    A lone word needs evidence: capitals or digits inside it; or no article and no adjective in front, no ending of a common noun, and a
    place within the sentence. A run after an article loses the common noun it begins with (`der Präsident Emmanuel Macron`), but not the
    adjective of a name (`die Deutsche Bank`).

    Args:
        text: the text.
        words: the run, without function words at its ends.
        opens: whether it stands at the beginning of a sentence.
    """
    if _stands_out(words[0]):
        return words
    before = _word_before(text, words[0].start)
    if len(words) > 1:
        return _run(text, words, before)
    return [] if opens or _is_common(words[0], before) else words


def _is_common(word: Lexeme, before: str) -> bool:
    """Whether a lone noun is an ordinary one, by its form and by the word before it."""
    if _NOUN.search(word.text) is not None or word.text.lower() in _COMMON_NOUNS or len(word.text) > _LONGEST_NAME_WORD:
        return True
    if before.lower() in _DETERMINERS or before[-1:].isdigit():
        return True
    return before not in _PREPOSITIONS and _ADJECTIVE.fullmatch(before) is not None and not before.endswith("te")


def _run(text: str, words: list[Lexeme], before: str) -> list[Lexeme]:
    joined = any(second.start - first.end > 1 for first, second in pairwise(words))
    if joined or words[0].kind != WORD:
        return words
    if before.lower() in _DETERMINERS and not (_NAME_ADJECTIVE.fullmatch(words[0].text) or _stands_out(words[1])):
        return german_name(text, words[1:], opens=False)
    return [] if all(map(_ends_as_noun, words)) else _without_nouns_behind(words)


def _without_nouns_behind(words: list[Lexeme]) -> list[Lexeme]:
    """`Göttingen Rechtswissenschaften` is two things; `Freie Universität` is one."""
    last = len(words)
    while last > 1 and _NAME_ADJECTIVE.fullmatch(words[0].text) is None and _ends_as_noun(words[last - 1]):
        last -= 1
    return words[:last]


def _ends_as_noun(word: Lexeme) -> bool:
    return word.kind == WORD and _NOUN.search(word.text) is not None


def _stands_out(word: Lexeme) -> bool:
    inner = word.text[1:]
    return word.kind != WORD or any(char.isupper() or char.isdigit() for char in inner)


def _word_before(text: str, start: int) -> str:
    words = text[max(0, start - 40) : start].split()
    return words[-1] if words else ""
