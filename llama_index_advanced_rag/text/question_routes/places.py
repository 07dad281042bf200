"""Places in documents: chapter 3, clause 12.2, the last page, which section, where in the manual."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.outlines.labels import KIND_OF_WORD
from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT, either
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_MEANING = "is a place in a document"

_CERTAIN = {
    "en": either(
        "section sub-?section chapter clause sub-?clause annex(?:e)? appendix appendices schedule article sub-?paragraph paragraph footnote recital page"
    ),
    "fr": either("section sous-section chapitre article clause annexe paragraphe alinea considerant preambule page"),
}
_WEAK = {
    "en": either("part passage sentence stanza verse scene act volume table figure chart diagram slide heading"),
    "fr": either("partie passage phrase strophe scene acte tome livre tableau(?:x)? figure schema graphique diapositive titre"),
}
_SHORT = {"en": r"(?:p\.|fig\.|art\.|item|rule|exhibit|note)", "fr": r"(?:p\.|fig\.|art\.|points?|note|chant)"}
_ORDINAL = {
    "en": (
        r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|final|opening|closing|next|previous|introductory"
        r"|\d{1,3}(?:st|nd|rd|th))(?: (?:two|three|four|five))?"
    ),
    "fr": (
        r"(?:premiere?|deuxieme|seconde?|troisieme|quatrieme|cinquieme|sixieme|septieme|huitieme|neuvieme|dixieme|(?:avant-)?derniere?"
        r"|\d{1,3}(?:e|er|ere|eme))s?"
    ),
}
_NUMBER = r"(?:n ?[°o]\.? ?|no\.? |number |numero )?(?:\(?\d{1,4}(?:[.\-]\d{1,4}){0,5}[a-z]?\)?(?! ?[%€$])|(?P<letter>\(?[a-h]\)?|[ivxlc]{1,6})(?!['\w-]))"
_OWNED = {
    "en": re.compile(r" (?:of|in) (?:the |this |that |our |your |an? |each )?(?P<owner>[\w'-]+)"),
    "fr": re.compile(r" (?:de la |de l'|des |du |d'une? |de notre |de votre |de ce |de cette |de |d')(?P<owner>[\w'-]+)"),
}
_DOCUMENT = {language: re.compile(rf"(?:[\w-]+ )?{nouns}(?!\w)") for language, nouns in DOCUMENT.items()}

_PLACED = {language: words_like(rf"(?:{_CERTAIN[language]}|{_WEAK[language]}|{_SHORT[language]})\s?{_NUMBER}") for language in ("en", "fr")}
_ASKED = {
    "en": words_like(rf"(?:wh?ich|what) (?:{_CERTAIN['en']}|(?P<weak>{_WEAK['en']}))"),
    "fr": words_like(rf"quel(?:le)?s?(?: est la| est le)? (?:{_CERTAIN['fr']}|(?P<weak>{_WEAK['fr']}))"),
}
_ORDERED = {language: words_like(rf"{_ORDINAL[language]} (?:{_CERTAIN[language]}|(?P<weak>{_WEAK[language]}))") for language in ("en", "fr")}
_PIECE = {
    "en": "(?:preface|introduction|conclusion|glossary|index|appendix|annex|schedule|tables?|figures?|chart|diagram)",
    "fr": "(?:preface|introduction|conclusion|glossaire|index|annexe|tableau|figure|schema|graphique|notes?)",
}
_UNMISTAKABLE = {
    "en": words_like(rf"""
        table of contents|executive summary|prologue|epilogue|foreword|preamble|footnotes?|endnotes?|bibliography|annexes|appendices
        (?:in|from|of|at|to|read|quote|show|summari[sz]e|what does|does)(?: me| us)? the {_PIECE["en"]}
        (?:introduction|conclusion|index|title|end|beginning|middle|structure|chapters?|sections?|parts?|pages?) (?:of|in) (?:the |this |our )?{DOCUMENT["en"]}
        where (?:exactly )?(?:in|on) (?:the |this |our |that )?(?:[\w-]+ )?{DOCUMENT["en"]}
        where (?:is|are|was|were|do|does) .{{2,80}} (?:mention|discuss|describe|define|explain|state|list)(?:e?d)?
        how many (?:pages|chapters|sections|articles|annexes|clauses|footnotes|tables)|(?:items?|points?) (?:on|of) the agenda
        """),
    "fr": words_like(rf"""
        table des matieres|sommaire|prologue|epilogue|avant-propos|preambule|notes? de bas de page|bibliographie|annexes
        (?:dans|de|en|selon|d'apres|lis|cite|montre|resume|que (?:contient|dit|montre|prevoit))(?:-moi)? (?:la |l'|le )?{_PIECE["fr"]}
        (?:introduction|conclusion|titre|fin|debut|milieu|plan|chapitres?|sections?|parties?|pages?) (?:du |de la |de l'|de ce |de notre ){DOCUMENT["fr"]}
        (?:où|a quel endroit) (?:exactement )?(?:dans|du|de la|de l') ?(?:le |la |l'|ce |cette |notre )?{DOCUMENT["fr"]}
        où (?:est|sont|le|la|l'|ce|se)\b.{{0,80}}(?:mentionne|defini|decri|aborde|traite|prevu|parle|explique|question)\w*
        combien (?:de |d')(?:pages|chapitres|articles|annexes|clauses|sections|tableaux)|points? (?:de|a) l'ordre du jour
        """),
}
_ELSEWHERE = {
    "en": words_like("(?:web|home|landing|login|contact) ?pages?"),
    "fr": words_like("pages? (?:web|internet|d'accueil|de connexion|de contact)"),
}
_WITHIN = re.compile(r"(?<!\w)(?:in|on|at|from|dans|a|sous|sur) \Z")
_LABEL_AND_NUMBER = re.compile(r"(?<!\w)(?P<label>[^\W\d_]{3,13})\.? (?:\d{1,4}(?:\.\d{1,3}){0,5}|[ivxl]{2,5}|[IVXL]{2,5}|[VX])(?!\w)")
_PARAGRAPH_MARK = re.compile(r"§{1,2} ?\d[\d.]{0,12}")
_NOT_LABELS = frozenset({"book", "note", "nota", "item", "part"})


def places_in(wording: Wording) -> list[Sign]:
    """The places in documents that a question names or asks for, the plainest first."""
    elsewhere = [match.span() for match in wording.find_all(_ELSEWHERE)]
    found = [wording.sign(match, _MEANING) for match in _places(wording) if not any(match.start() < end and start < match.end() for start, end in elsewhere)]
    return list(dict.fromkeys(found)) or list(_labelled(wording))


def _places(wording: Wording) -> Iterator[re.Match[str]]:
    yield from (match for match in wording.find_all(_PLACED) if _is_number(wording, match))
    yield from (match for patterns in (_ASKED, _ORDERED) for match in wording.find_all(patterns) if _is_in_document(wording, match))
    yield from wording.find_all(_UNMISTAKABLE)


def _is_number(wording: Wording, match: re.Match[str]) -> bool:
    """Whether the letter behind a place numbers it (annex B, section IV): it is a capital and not the word I, in brackets, or the last word."""
    letter = match["letter"]
    if letter is None or letter.startswith("(") or not wording.plain[match.end() :].strip(" ?.!"):
        return True
    return letter != "i" and wording.written[match.start("letter") : match.end("letter")].isupper()


def _is_in_document(wording: Wording, match: re.Match[str]) -> bool:
    """Whether the place is one of a document or of a work with a name: not the last page of the tour, nor the section of the river."""
    owned = wording.begins(_OWNED, match.end())
    if owned is None:
        return match["weak"] is None or _WITHIN.search(wording.plain, max(0, match.start() - 5), match.start()) is not None
    start = owned.start("owner")
    return wording.written[start].isupper() or wording.begins(_DOCUMENT, start) is not None


def _labelled(wording: Wording) -> Iterator[Sign]:
    """What is numbered as headings are in any language that the outlines know: Kapitel 3, § 12."""
    yield from (wording.sign(match, _MEANING) for match in _PARAGRAPH_MARK.finditer(wording.plain))
    for match in _LABEL_AND_NUMBER.finditer(wording.written):
        label = match["label"].lower()
        if label in KIND_OF_WORD and label not in _NOT_LABELS:
            yield Sign(match.group(), _MEANING)
