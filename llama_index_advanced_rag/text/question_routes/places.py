"""Places in documents: chapter 3, clause 12.2, the last page, which section, where in the manual."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.outlines.labels import KIND_OF_WORD
from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT, either
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, one_of, words_like

_MEANING = "is a place in a document"

_CERTAIN = {
    "en": either(
        "section sub-?section chapter clause sub-?clause annex(?:e)? appendix appendices schedule article sub-?paragraph paragraph footnote exhibit recital"
    ),
    "fr": either("section sous-section chapitre article clause annexe paragraphe alinea considerant preambule"),
}
_WEAK = {
    "en": either("""
        page part passage sentence line stanza verse scene act volume table figure fig\\.? chart diagram slide heading item point word title
        entr(?:y|ies) poem story stories
        """),
    "fr": either("""
        page partie passage phrase ligne strophe vers scene acte tome livre tableau(?:x)? figure fig\\.? schema graphique diapositive titre rubrique
        point encadre mot poeme nouvelle
        """),
}
_NUMBERED = {
    "en": either("page p\\. part table figure fig\\. slide box rule item volume act scene canto title verse chart diagram plate art\\. sec\\. note heading"),
    "fr": either("""
        page p\\. partie tableau(?:x)? figure fig\\. schema graphique diapositive encadre point tome livre volume acte scene chant titre art\\. note planche
        regle piece_jointe rubrique
        """),
}
_ORDINAL = {
    "en": (
        r"(?:(?:very |second )?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|final|opening|closing|next|previous"
        r"|penultimate|introductory|concluding)|\d{1,3}(?:st|nd|rd|th))(?: (?:few|two|three|four|five))?"
    ),
    "fr": (
        r"(?:premiere?|deuxieme|seconde?|troisieme|quatrieme|cinquieme|sixieme|septieme|huitieme|neuvieme|dixieme|(?:avant-)?derniere?"
        r"|\d{1,3}(?:e|er|ere|eme|de|nde))s?"
    ),
}
_NUMBER = (
    r"(?:n ?[°o]\.? ?|no\.? |number |numero |nr\.? )?"
    r"(?:(?:(?:lo|[lrda])\.? ?)?\(?\d{1,5}(?:[a-z]\d{1,3})?(?:[.\-]\d{1,4}){0,5}[a-z]?\)?(?! ?[%€$])"
    r"|(?P<letter>\(?[a-h]\)?|[ivxlc]{1,6})(?!['\w-])|premiere?|one|two|three|four|five|six|seven)"
)
_OWNED = {
    "en": re.compile(r" (?:of|in) (?:the |this |that |our |your |my |an? |each |every )?(?P<owner>[\w'«\"“-]+)"),
    "fr": re.compile(r" (?:de la |de l'|des |du |d'une? |de notre |de votre |de ce |de cette |de |d')(?P<owner>[\w'«\"“-]+)"),
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
_DOCUMENT = {language: re.compile(rf"(?:[\w-]+ )?{nouns}(?!\w)") for language, nouns in DOCUMENT.items()}

_PLACED = {language: words_like(rf"(?:{_CERTAIN[language]}|{_NUMBERED[language]})\s?{_NUMBER}", r"(?:§|art\. ?) ?\d[\d.]*") for language in ("en", "fr")}
_ASKED = {
    "en": words_like(rf"(?:w?h?wh?ich|what|whichever)(?: exact| other)? (?:{_CERTAIN['en']}|(?P<weak>{_WEAK['en']}))"),
    "fr": words_like(rf"quel(?:le)?s?(?: est la| est le| autre)? (?:{_CERTAIN['fr']}|(?P<weak>{_WEAK['fr']}))"),
}
_ORDERED = {
    "en": words_like(
        rf"{_ORDINAL['en']} (?:{_CERTAIN['en']}|(?P<weak>{_WEAK['en']}))",
        "(?:agenda|footnote|endnote)s? items?|chapters? (?:one|two|three|four|five)|(?:title|cover|front|back) page",
    ),
    "fr": words_like(
        rf"{_ORDINAL['fr']} (?:{_CERTAIN['fr']}|(?P<weak>{_WEAK['fr']}))",
        "(?:chapitre|partie|section|annexe|article|page)s? (?:suivante?|precedente?|premiere?|finale?)",
    ),
}
_PIECE = {
    "en": "(?:preface|introduction|conclusion|glossary|index|abstract|appendix|annex|schedules?|tables?|figures?|chart|diagram|recitals|preamble|footnotes?)",
    "fr": "(?:preface|introduction|conclusion|glossaire|index|resume|annexes?|appendice|tableau|figure|schema|graphique|encadre|marge|notes? de bas)",
}
_ENDS = {
    "en": one_of("""
        introduction|conclusion|index|glossary|preface|abstract|title|subtitle|end|beginning|start|middle|opening|close
        structure|outline|headings?|chapters?|sections?|parts?|pages?
        """),
    "fr": one_of("""
        introduction|conclusion|index|glossaire|preface|resume|titres?|sous-titres?|fin|debut|milieu
        plan|structure|intitules?|chapitres?|sections?|parties?|pages?
        """),
}
_BEYOND = {
    "en": "(?:chapter|section|schedule|annex|clause|table|page|part|article|heading)",
    "fr": "(?:chapitre|section|annexe|clause|page|partie|article|titre|«)",
}
_THE = {"en": "(?:the |this |that |our |my |your )?", "fr": "(?:le |la |l'|les |ce |cette |notre |votre )?"}
_OF = {"en": f"(?:of|in|to) {_THE['en']}", "fr": "(?:du |de la |de l'|de ce |de cette |de notre |des )"}
_UNMISTAKABLE = {
    "en": words_like(rf"""
        table of contents|prologue|epilogue|foreword|afterword|preamble|footnotes?|endnotes?|bibliography|executive summary|annexes|appendices|small print
        (?:section|chapter|clause|paragraph|annex|appendix|footnote) (?:on|about|dealing with|covering|concerning|regarding|entitled|titled|called)
        (?:in|from|of|at|to) the {_PIECE["en"]}(?! of (?:the )?(?:organ|body|events|flights))|(?:in|at) the margins?
        (?:{_ENDS["en"]}) {_OF["en"]}(?:[\w-]+ )?{DOCUMENT["en"]}
        where (?:exactly )?(?:in|on) {_THE["en"]}(?:[\w-]+ )?{DOCUMENT["en"]}
        where (?:exactly )?(?:is|are|was|were) .{{2,80}} (?:mentioned|discussed|described|defined|listed|covered|stated|set out|explained|addressed|laid down)
        where (?:exactly )?(?:do|does|did) .{{2,60}} (?:say|mention|discuss|describe|define|state|explain|talk about|appear|turn up)
        where (?:can|do|could|would|should) (?:i|we|you|one) (?:read|find|look up|see) .{{0,60}} (?:in|of) {_THE["en"]}(?:[\w-]+ )?{DOCUMENT["en"]}
        (?:summary of|summari[sz]e|recap of) (?:the )?{_ORDINAL["en"]} (?:part|half|third|book|act|section)
        (?:does|do|did|what) (?:the |this |that )?(?:{_PIECE["en"]}|chapter|section|clause|exhibit) (?:say|contain|show|list|mention|state|cover|describe)s?
        (?:does|do|did|what) (?:the |this |that )?(?:{_PIECE["en"]}|chapter|section|clause|exhibit) (?:deal|give|end|begin|include|talk)
        (?:summari[sz]e|read|quote|show|copy|open|display|print|give)(?: me| us)?(?: out)? the {_PIECE["en"]}
        (?:according to|per|as shown in|in|see) (?:the |this )?(?:\w+ ){{0,2}}(?:table|chart|diagram|footnotes?|appendix|annex)(?! of (?:organi|events|flights))
        how many (?:pages|chapters|sections|articles|annexes|clauses|appendices|footnotes|tables)|(?:under|beneath) (?:which|what|the) headings?
        (?:what|which|who) (?:\w+ )?(?:comes|stands|follows|is|appears) (?:\w+ )?(?:before|after|behind) (?=.{{0,40}}{_BEYOND["en"]})
        (?:items?|points?) .{{0,24}}agenda|(?:line|row|column|cell|entry|figure)s? .{{0,40}}(?:table|balance sheet|spreadsheet|income statement)
        how (?:does|do|did) (?:the |this )?{DOCUMENT["en"]} (?:begin|end|start|open|close|finish)|word for word|verbatim|if so,? where
        (?:what(?:'s| is)|is) written (?:on|under|at|in|there|below|above|beside|next)
        """),
    "fr": words_like(rf"""
        table des matieres|sommaire|prologue|epilogue|avant-propos|preambule|notes? de bas de page|bibliographie|postface|annexes|petits caracteres
        (?:section|chapitre|clause|paragraphe|annexe|partie) (?:sur|consacree?|relati(?:f|ve)|intitulee?|concernant|portant sur|traitant|qui (?:traite|parle))
        (?:dans|de|a|en|selon|d'apres) (?:la |l'|le |une )?{_PIECE["fr"]}(?! (?:de bord|noir|blanc|a signer))
        (?:{_ENDS["fr"]}) {_OF["fr"]}(?:[\w-]+ )?{DOCUMENT["fr"]}
        (?:où|a quel endroit) (?:exactement )?(?:dans|du|de la|de l'|sur) ?{_THE["fr"]}{DOCUMENT["fr"]}|a quel endroit .{{0,40}}{DOCUMENT["fr"]}
        où (?:est|sont|etait|lit|traite|mentionne|le|la|l'|se)\b.{{0,60}}(?:mentionnee?|definie?|decrite?|enoncee?|abordee?|traitee?|evoquee?|prevue?)s?
        où (?:est|sont|etait|parle|trouve|figure|lit|traite|mentionne|le|la|l'|se)\b.{{0,60}}(?:parle|figure(?:nt)?|question|explique)
        où (?:figurent?|trouve-t-on|est|sont|lit-on|peut-on lire|puis-je lire|se trouve) .{{2,60}} dans {_THE["fr"]}{DOCUMENT["fr"]}
        où {_THE["fr"]}{DOCUMENT["fr"]}.{{0,10}} (?:explique|dit|parle|mentionne|traite|definit|prevoit|decrit|aborde)
        (?:resume[rz]?|synthese|recapitul\w+)(?:-moi)? (?:de |du )?(?:la |le |l')?{_ORDINAL["fr"]} (?:partie|moitie|livre|acte|volet)
        (?:contient|dit|montre|liste|couvre|prevoit|indique|presente|donne|contiennent|disent) {_THE["fr"]}(?:{_PIECE["fr"]}|chapitre|section|clause|article)
        (?:contenu|valeurs?|chiffres|donnees|lignes?|colonnes?) (?:du |des |de la |de l')(?:tableau(?:x)?|figures?|annexes?|graphique|schema)
        (?:resume|lis|cite|montre|donne|recopie|affiche|ouvre)[rz]?(?:-moi|-nous)? (?:l'|la |le |les ){_PIECE["fr"]}
        combien de (?:pages|chapitres|alineas|annexes|clauses|sections|paragraphes|tableaux)|combien d'(?:articles|annexes|alineas)
        sous (?:quel|quelle) (?:titre|rubrique|intitule)|mot (?:a|pour) mot|textuellement|si oui,? où|qu'est-il ecrit|ce qui est ecrit|que lit-on
        (?:vient|viennent|suit|figure|se trouve) (?:juste |tout de suite |immediatement )?(?:apres|avant) (?=.{{0,40}}{_BEYOND["fr"]})
        points? .{{0,24}}ordre du jour|(?:ligne|colonne|case|cellule)s? .{{0,40}}(?:tableau|bilan|compte de resultat)
        comment (?:commence|debute|finit|se termine|s'acheve|s'ouvre|se conclut|s'articule) {_THE["fr"]}{DOCUMENT["fr"]}
        """),
}
_LIVED = {
    "en": "(?:his|her|their|its|my|our|your|[\\w' ]{2,30}?'s) (?:life|career|history|past|story|body|garden|house)",
    "fr": "(?:vie|carriere|histoire|existence|corps|jardin|maison|passe)",
}
_ELSEWHERE = {
    "en": words_like(f"(?:web|home|landing|login|start|contact|error|profile)[ -]?pages?|(?:chapter|page|section|part)s? (?:of|in) {_LIVED['en']}"),
    "fr": words_like(f"""
        pages? (?:web|internet|d'accueil|de connexion|du site|de contact)
        (?:chapitre|page|section|partie)s? (?:de (?:sa|leur|ma|votre|notre|la|ta) |du ){_LIVED["fr"]}
        """),
}
_WITHIN = re.compile(r"(?<!\w)(?:in|on|at|from|dans|a|sous|sur) \Z")
_ALONE = re.compile("page|stanza|verse|passage|strophe|slide|diapo|sentence|phrase|heading|rubrique|tome|schema|diagram")
_OF_WORKS = re.compile("act|scene|volume|verse|canto|line|ligne|livre|tome|vers|acte|encadre|figure|diagram|chart|heading|titre")
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
        return wording.begins(_TELLS, match.end()) is not None or match["weak"] is None or _is_sure_alone(wording, match)
    start = owned.start("owner")
    return wording.written[start].isupper() or wording.written[start] in '«"“' or wording.begins(_DOCUMENT, start) is not None


def _is_sure_alone(wording: Wording, match: re.Match[str]) -> bool:
    """Whether a word that may be no place is one all the same: pages and verses are, an act is if something stands in it."""
    within = _WITHIN.search(wording.plain, max(0, match.start() - 5), match.start())
    return _ALONE.search(match["weak"]) is not None or (within is not None and _OF_WORKS.match(match["weak"]) is not None)


def _labelled(wording: Wording) -> Iterator[Sign]:
    """What is numbered as headings are in any language that the outlines know: Kapitel 3, § 12."""
    yield from (wording.sign(match, _MEANING) for match in _PARAGRAPH_MARK.finditer(wording.plain))
    for match in _LABEL_AND_NUMBER.finditer(wording.written):
        label = match["label"].lower()
        if label in KIND_OF_WORD and label not in _NOT_LABELS:
            yield Sign(match.group(), _MEANING)
