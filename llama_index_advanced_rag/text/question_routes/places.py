"""Places in documents: chapter 3, clause 12.2, the last page, which section, where in the manual."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.outlines.labels import KIND_OF_WORD
from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT, either
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_MEANING = "is a place in a document"

_CERTAIN = {
    "en": either(
        "section sub-?section chapter clause sub-?clause annex(?:e)? appendix appendices schedule article sub-?paragraph paragraph footnote exhibit recital"
    ),
    "fr": either("section sous-section chapitre article clause annexe paragraphe alinea considerant preambule"),
}
_WEAK = {
    "en": either(
        "page part passage sentence line stanza verse scene act volume table figure fig\\.? chart diagram slide heading item point box word "
        "title entr(?:y|ies) plate letter story stories poem"
    ),
    "fr": either(
        "page partie passage phrase ligne strophe vers scene acte tome livre tableau(?:x)? figure fig\\.? schema graphique diapositive titre "
        "rubrique point encadre mot planche lettre nouvelle poeme"
    ),
}
_NUMBERED = {
    "en": either(
        "page p\\. part table figure fig\\. exhibit slide box rule item volume act scene canto title verse chart diagram plate art\\. sec\\. note recital"
    ),
    "fr": either(
        "page p\\. partie tableau(?:x)? figure fig\\. schema graphique diapositive encadre point tome livre volume acte scene chant titre "
        "art\\. note planche regle piece_jointe rubrique item"
    ),
}
_ORDINAL = {
    "en": (
        r"(?:(?:very |second )?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|final|opening|closing|next|previous"
        r"|penultimate|introductory|concluding)|\d{1,3}(?:st|nd|rd|th))(?: (?:few|two|three|four|five))?"
    ),
    "fr": (
        r"(?:premiere?|deuxieme|seconde?|troisieme|quatrieme|cinquieme|sixieme|septieme|huitieme|neuvieme|dixieme|derniere?|avant-derniere?"
        r"|\d{1,3}(?:e|er|ere|eme|de|nde))s?"
    ),
}
_NUMBER = (
    r"(?:n ?[°o]\.? ?|no\.? |number |numero |nr\.? )?(?:\(?\d{1,4}(?:[.\-]\d{1,4}){0,5}[a-z]?\)?(?! ?(?:%|€|\$))|(?P<letter>\(?[a-h]\)?"
    r"|[ivxlc]{1,6})(?!['\w-])|premiere?|one|two|three|four|five|six|seven)"
)
_OWN = {
    "en": r" (?:of|in) (?:the |this |that |our |your |my |an? |each |every )?(?P<owner>[\w'-]+(?: [\w-]+)?)",
    "fr": r" (?:de la |de l'|des |du |d'un |d'une |de notre |de votre |de ce |de cette |de |d')(?P<owner>[\w'-]+(?: [\w-]+)?)",
}
_TELLS = {
    "en": re.compile(
        r" (?:gives?|lists?|shows?|contains?|presents?|covers?|explains?|describes?|deals?|mentions?|says?|sets? out|defines?|states?"
        r"|summari[sz]es?|compares?|do i find|tells?)(?!\w)"
    ),
    "fr": re.compile(
        r" (?:donne|liste|montre|contient|presente|traite|parle|explique|decrit|definit|mentionne|dit|indique|reprend|recense|resume|compare"
        r"|prevoit|se trouve|trouve-t-on)(?!\w)"
    ),
}
_OWNED = {language: re.compile(pattern) for language, pattern in _OWN.items()}
_DOCUMENT = {language: re.compile(rf"(?:[\w-]+ )?{nouns}(?!\w)") for language, nouns in DOCUMENT.items()}

_PLACED = {language: words_like(rf"(?:{_CERTAIN[language]}|{_NUMBERED[language]})\s?{_NUMBER}", r"(?:§|art\. ?) ?\d[\d.]*") for language in ("en", "fr")}
_ASKED = {
    "en": words_like(rf"(?:w?h?wh?ich|what|whichever)(?: exact| other)? (?:{_CERTAIN['en']}|(?P<weak>{_WEAK['en']}))"),
    "fr": words_like(rf"quel(?:le)?s?(?: est la| est le| autre)? (?:{_CERTAIN['fr']}|(?P<weak>{_WEAK['fr']}))"),
}
_ORDERED = {
    language: words_like(rf"{_ORDINAL[language]} (?:{_CERTAIN[language]}|(?P<weak>{_WEAK[language]}))", *extra)
    for language, extra in (
        ("en", ("(?:agenda|footnote|endnote)s? items?", "chapters? (?:one|two|three|four|five)", "(?:title|cover|front|back|last|first) page")),
        ("fr", ("(?:chapitre|partie|section|annexe|article|page)s? (?:suivante?|precedente?|premiere?|finale?)",)),
    )
}
_UNMISTAKABLE = {
    "en": words_like(
        "table of contents",
        "prologue|epilogue|foreword|afterword|preamble|footnotes?|endnotes?|bibliography|executive summary|colophon|annexes|appendices",
        "(?:in|from|of|at|to) the (?:preface|glossary|index|appendix|annex|schedule|schedules|abstract|table|figure|chart|diagram|recitals"
        "|margins?|small print)(?! of (?:the )?(?:organ|body))",
        f"(?:introduction|conclusion|index|glossary|preface|abstract|title|subtitle|end|beginning|start|middle|opening|close|structure|outline"
        f"|headings?|chapters?|sections?|parts?|pages?) (?:of|in|to) (?:the |this |our |my )?(?:[\\w-]+ )?{DOCUMENT['en']}",
        f"where (?:exactly )?(?:in|on) (?:the |this |our |that |your )?(?:[\\w-]+ )?{DOCUMENT['en']}",
        "where (?:exactly )?(?:is|are|was|were) .{2,80} (?:mentioned|discussed|described|defined|listed|covered|stated|set out|explained"
        "|addressed|dealt with|laid down|treated|spelled out)",
        "where (?:exactly )?(?:do|does|did) .{2,60} (?:say|mention|discuss|describe|define|state|explain|talk about|appear|stand|turn up)",
        f"(?:summary of|summari[sz]e|recap of) (?:the )?{_ORDINAL['en']} (?:part|half|third|book|act|section)",
        "(?:does|do|did|what) (?:the |this |that )?(?:appendix|annex|schedule|table|figure|footnotes?|preface|introduction|conclusion|chapter"
        "|section|abstract|clause|exhibit|diagram|chart) (?:say|says|contains|shows|lists|mentions|states|contain|show|list|cover|state"
        "|mention|describe|deal|give|end|begin|include|talk)",
        "(?:summari[sz]e|read|quote|show|copy|open|display|print|give)(?: me| us)?(?: out)? the (?:introduction|conclusion|preface|appendix"
        "|annex|tables?|figures?|abstract|index|glossary|preamble)",
        f"where (?:can|do|could|would|should) (?:i|we|you|one) (?:read|find|look up|see) .{{0,60}} (?:in|of) (?:the |this |our )?(?:[\\w-]+ )?{DOCUMENT['en']}",
        "if so,? where|small print|(?:what(?:'s| is)|is) written (?:on|under|at|in|there|below|above|beside|next)|(?:begin"
        "|start) of the \\w+ (?:booklet|book|manual|guide)",
        "word for word|verbatim",
        "how many (?:pages|chapters|sections|articles|annexes|clauses|appendices|footnotes|tables)",
        "(?:under|beneath) (?:which|what|the) headings?",
        "(?:what|which|who) (?:\\w+ )?(?:comes|stands|follows|is|appears) (?:right |directly |immediately |just )?(?:before|after"
        "|behind) (?=.{0,40}(?:chapter|section|schedule|annex|clause|table|page|part|article|heading))",
        "(?:items?|points?) .{0,24}agenda",
        "(?:line|row|column|cell|entry|figure)s? .{0,40}(?:table|balance sheet|spreadsheet|income statement)",
        "(?:according to|per|as shown in|in|see) (?:the |this )?(?:\\w+ ){0,2}(?:table|chart|diagram|footnotes?|appendix|annex"
        "|schedule)(?! of (?:organi|events|flights))",
        f"how (?:does|do|did) (?:the |this )?(?:{DOCUMENT['en']}) (?:begin|end|start|open|close|finish)",
    ),
    "fr": words_like(
        "table des matieres|sommaire",
        "prologue|epilogue|avant-propos|preambule|notes? de bas de page|bibliographie|postface|exergue|epigraphe|annexes|quatrieme de couverture|hors-texte",
        "(?:dans|de|a|en|selon|d'apres) (?:la |l'|le |une )?(?:preface|glossaire|index|annexe|introduction|conclusion|resume|tableau|figure"
        "|schema|marge|encadre|graphique)(?! (?:de bord|noir|blanc|a signer))",
        f"(?:introduction|conclusion|index|glossaire|preface|resume|titre|sous-titre|fin|debut|milieu|plan|structure|intitules?|sous-titres?"
        f"|titres|chapitres?|sections?|parties?|pages?) (?:du |de la |de l'|de ce |de notre |des )(?:[\\w-]+ )?(?:{DOCUMENT['fr']})",
        f"(?:où|a quel endroit|ou) (?:exactement )?(?:dans|du|de la|de l'|sur) ?(?:le |la |l'|ce |cette |notre |votre )?(?:{DOCUMENT['fr']})",
        f"(?:a quel endroit) .{{0,40}}(?:{DOCUMENT['fr']})",
        "où (?:est|sont|etait|parle|trouve|figure|lit|traite|mentionne|le|la|l'|se)\\b.{0,60}(?:mentionnee?s?|definie?s?|decrite?s?"
        "|exposee?s?|enoncee?s?|abordee?s?|traitee?s?|evoquee?s?|prevue?s?|parle|figure(?:nt)?|question|il question)",
        f"(?:resume[rz]?|synthese|recapitul\\w+)(?:-moi)? (?:de |du )?(?:la |le |l')?{_ORDINAL['fr']} (?:partie|moitie|livre|acte|volet)",
        "(?:que |qu'est-ce que )?(?:contient|dit|montre|liste|couvre|prevoit|indique|presente|donne|contiennent|disent) (?:l'|la |le |les "
        "|cette |ce )(?:annexes?|appendice|tableau|figure|preface|introduction|conclusion|chapitre|section|clause|schema|graphique|article"
        "|notes? de bas)",
        "(?:contenu|valeurs?|chiffres|donnees|lignes?|colonnes?) (?:du |des |de la |de l')(?:tableau(?:x)?|figures?|annexes?|graphique|schema)",
        "(?:resume|lis|cite|montre|donne|recopie|affiche|ouvre)[rz]?(?:-moi|-nous)? (?:l'|la |le |les )(?:introduction|conclusion|preface"
        "|annexe|tableau|figure|glossaire|index|avant-propos)",
        f"où (?:figurent?|trouve-t-on|est|sont|lit-on|peut-on lire|puis-je lire|se trouve) .{{2,60}} dans (?:le |la |l'|notre |ce |cette )?{DOCUMENT['fr']}",
        f"où (?:le |la |l'|ce |cette ){DOCUMENT['fr']}.{{0,10}} (?:explique|dit|parle|mentionne|traite|definit|prevoit|decrit|aborde)",
        "si oui,? où|petits caracteres|que lit-on|(?:qu'est-ce qui|ce qui) est ecrit|qu'est-il ecrit|(?:contrat|bail|roman|livre|rapport"
        "|lettre|guide|notice|manuel|texte) tout a la fin|et dans quelle clause",
        "mot (?:a|pour) mot|textuellement",
        "combien de (?:pages|chapitres|alineas|annexes|clauses|sections|paragraphes|tableaux)|combien d'(?:articles|annexes"
        "|alineas) (?:compte|comporte|contient)",
        "sous (?:quel|quelle) (?:titre|rubrique|intitule)",
        "(?:vient|viennent|suit|figure|se trouve) (?:juste |tout de suite |immediatement )?(?:apres|avant) (?=.{0,40}(?:chapitre|section"
        "|annexe|clause|tableau|page|partie|article|titre|«))",
        "points? .{0,24}ordre du jour",
        "(?:ligne|colonne|case|cellule)s? .{0,40}(?:tableau|bilan|compte de resultat)",
        f"comment (?:commence|debute|finit|se termine|s'acheve|s'ouvre|se conclut|s'articule) (?:-t-il |-t-elle )?(?:le |la |l'|ce "
        f"|cette )?(?:{DOCUMENT['fr']})",
    ),
}
_ELSEWHERE = {
    "en": re.compile(
        r"(?<!\w)(?:web|home|landing|login|start|contact|facebook|error|profile|sign-up)[ -]?pages?(?!\w)|(?<!\w)(?:chapter|page|section"
        r"|part)s? (?:of|in) (?:his|her|their|its|my|our|your|[\w' ]{2,30}?'s) (?:life|career|history|past|story|body|garden|house)(?!\w)"
    ),
    "fr": re.compile(
        r"(?<!\w)pages? (?:web|internet|d'accueil|de connexion|facebook|du site|de contact|jaunes|perso)(?!\w)|(?<!\w)(?:chapitre|page|section"
        r"|partie)s? (?:de (?:sa|leur|ma|votre|notre|la|ta) |du )(?:vie|carriere|histoire|existence|corps|jardin|maison|passe)(?!\w)"
    ),
}


def places_in(wording: Wording) -> list[Sign]:
    """The places in documents that a question names or asks for, the plainest first."""
    if not wording.languages:
        return list(_labelled(wording))
    elsewhere = [match.span() for match in wording.find_all(_ELSEWHERE)]
    found = [
        wording.sign(match, _MEANING)
        for match in _places(wording)
        if not any(start <= match.start() < end or match.start() <= start < match.end() for start, end in elsewhere)
    ]
    return list(dict.fromkeys(found)) or list(_labelled(wording))


def _places(wording: Wording) -> Iterator[re.Match[str]]:
    yield from (match for match in wording.find_all(_PLACED) if _is_number(wording, match))
    yield from (match for match in wording.find_all(_ASKED) if _is_in_document(wording, match))
    yield from (match for match in wording.find_all(_ORDERED) if _is_in_document(wording, match))
    yield from wording.find_all(_UNMISTAKABLE)


def _is_number(wording: Wording, match: re.Match[str]) -> bool:
    """Whether the letter behind a place numbers it (annex B, section IV): it is a capital, in brackets, or the last word."""
    letter = match.group("letter") if "letter" in match.re.groupindex else None
    if letter is None or letter.startswith("("):
        return True
    written = wording.written[match.start("letter") : match.end("letter")]
    return written.isupper() or not wording.plain[match.end() :].strip(" ?.!")


def _is_in_document(wording: Wording, match: re.Match[str]) -> bool:
    """Whether the place is one of a document: not the last page of the tour, nor the section of the river."""
    owned = wording.begins(_OWNED, match.end())
    if owned is None and wording.begins(_TELLS, match.end()):
        return True
    if owned is None:
        return match.groupdict().get("weak") is None or _is_sure_alone(wording, match)
    start = owned.start("owner")
    if wording.written[start].isupper() or wording.written[start] in '«"“':
        return True
    return wording.begins(_DOCUMENT, start) is not None


def _is_sure_alone(wording: Wording, match: re.Match[str]) -> bool:
    return re.search(
        r"page|stanza|verse|passage|strophe|slide|diapo|sentence|phrase|heading|rubrique|tome|schema|diagram", match.group("weak")
    ) is not None or (_WITHIN.search(wording.plain, max(0, match.start() - 5), match.start()) is not None and _OF_WORKS.match(match.group("weak")) is not None)


_WITHIN = re.compile(r"(?<!\w)(?:in|on|at|from|dans|a|sous|sur) \Z")
_OF_WORKS = re.compile(r"act|scene|volume|verse|canto|line|ligne|livre|tome|vers|acte|encadre|figure|diagram|chart|heading|titre")
_LABEL_AND_NUMBER = re.compile(r"(?<!\w)(?P<label>[^\W\d_]{3,13})\.? (?:\d{1,4}(?:\.\d{1,3}){0,5}|[ivxlIVXL]{1,5})(?!\w)")
_PARAGRAPH_MARK = re.compile(r"§{1,2} ?\d[\d.]{0,12}")


def _labelled(wording: Wording) -> Iterator[Sign]:
    """What is numbered as headings are in any language that the outlines know: Kapitel 3, § 12."""
    yield from (wording.sign(match, _MEANING) for match in _PARAGRAPH_MARK.finditer(wording.plain))
    for match in _LABEL_AND_NUMBER.finditer(wording.written):
        label = match.group("label").lower()
        if label in KIND_OF_WORD and label not in ("book", "note", "nota", "item", "part"):
            yield Sign(match.group(), _MEANING)
