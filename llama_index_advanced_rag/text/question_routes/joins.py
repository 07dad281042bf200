"""What joins several things: comparisons, relations, causes, whole lists and changes over time."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT
from llama_index_advanced_rag.text.question_routes.wording import Patterns, Sign, Wording, words_like

_KIND_EN = """(?:contracts|documents|reports|suppliers|leases|studies|agreements|policies|novels|books|files|papers|filings|departments|sites|products
    |manuals|companies|articles|towns|countries|employees|people|characters|clauses|authors|projects|customers|models|drugs)"""
_KIND_FR = """(?:contrats|documents|rapports|fournisseurs|baux|etudes|accords|romans|livres|filiales|sites|services|produits|notices|communes|pays
    |salaries|personnages|clients|projets|auteurs|entreprises|societes|articles|clauses|modeles|medicaments)"""
_KIND = {"en": "".join(_KIND_EN.split()), "fr": "".join(_KIND_FR.split())}
_MORE = r"(?:(?!other|rather|either|whether|ever|never|after|under|over|number|order|offer)\w{2,12}er|more|less|fewer|better|worse)"
_PERIOD = {
    "en": "(?:first|last|next|days?|weeks?|months?|years?|hours?|times?|minutes?)",
    "fr": "(?:premie|dernie|prochain|jour|mois|semaine|an|heure|minute|fois)",
}

_COMPARED = {
    "en": words_like(rf"""
        compar(?:e|es|ed|ing|ison|isons)|versus|vs\.?|contrast
        similarit(?:y|ies)|in common|alike|contradict\w*|inconsisten\w+|each other|one another|differ(?:s|ed)?|disagree
        (?:agree|overlap|conflict)(?= (?:on|about|with)\b|[ ?.]*\Z)
        differences? (?:between|in) (?:the |these |our )?(?:two|three|both)
        the same (?:country|city|town|year|nationality|school|university|company|place|team|owner|person|author|director|time|age|party|publisher)
        both .{{2,60}} and|(?:which|any) (?:one )?of (?:the|these|those|our)
        (?:the|these|those|both|all|our) (?:two|three|four|five) (?!{_PERIOD["en"]})\w+s
        {_MORE}(?: \w+){{0,3}} than (?!\d|one|two|three|four|five|six|ten|usual|expected|normal|an? )
        (?:which|who|what) .{{0,60}}(?:first|{_MORE}|\w{{2,12}}est|most \w+)\b.{{0,60}}[,:] .{{2,60}} or
        (?:of|between|among) .{{2,60}} and .{{2,40}}, (?:who|which|what)
        and (?:that|those|the ones?) (?:of|from|in|for)|(?:one|first|former) .{{2,60}} the (?:other|second|latter)
        shared by|share (?:a|an|the)
        """),
    "fr": words_like(rf"""
        compar(?:e|er|ez|es|aison|aisons|ons)|versus|vs\.?
        points? communs?|en commun|ressembl\w+|semblables?|similitudes?|contredi\w+|contradict\w+|incoheren\w+|diverge\w*|l'une? (?:a|de) l'autre
        en quoi .{{2,80}} differe(?:nt)?|different-(?:ils|elles)|differe-t-(?:il|elle)|(?:se |s')distingu\w+
        (?:le |la |les |du |au |l')memes? (?:pays|ville|annee|nationalite|ecole|universite|entreprise|societe|lieu|personne|auteur|moment|age|parti|editeur)
        (?:les|des|ces|nos|aux|entre|tous les|toutes les) (?:deux|trois|quatre|cinq) (?!{_PERIOD["fr"]})\w+|tous (?:les )?deux|toutes (?:les )?deux
        et (?:a |de )?(?:celui|celle|ceux|celles) (?:de|du|des|d')|(?:que|qu'a) (?:celui|celle|ceux|celles)
        (?:lequel|laquelle|lesquels|lesquelles) (?:de |du |des |d'entre |d')
        (?<!ne )(?:plus|moins|aussi|mieux) (?:(?!de\b|d')\w+ ){{1,4}}(?:que |qu')(?!\d|prevu|d'habitude|necessaire|possible)
        (?:qui|quel(?:le)?s?|est|a|ont|sont) .{{2,60}}(?:plus|moins|avant|premiere?|mieux|meilleure?)\b.{{0,40}}[,:] .{{2,60}} ou
        a la fois .{{2,50}} et|entre .{{2,50}} et .{{2,50}}, (?:qui|lequel|laquelle|quel|quelle)
        """),
}
_RELATED = {
    "en": words_like(r"""
        (?:relationship|relation|link|connection|tie|conflict|parallel|interaction)s? between
        (?:related|connected|linked)(?: to each|[ ?.]*\Z)|(?:ties|links|connections) (?:do|does|did|exist)|what (?:ties|links|connects)
        (?:did|do|have|has|had) .{2,60} and .{2,60} (?:ever )?(?:meet|met|collaborate\w*|work(?:ed)? together)|(?:to|anything to) do with
        """),
    "fr": words_like(r"""
        (?:relation|lien|rapport|connexion|conflit|parallele|interaction|desaccord)s? (?:\w+ )?(?:entre|unissent|existe\w*)
        qu'est-ce qui (?:relie|lie|unit|oppose|rapproche)|(?:quelque chose|rien) a voir avec
        (?:deja|jamais|ensemble) (?:travaille|collabore|rencontre)|se (?:sont|est)(?:-ils|-elles|-il|-elle)? ?(?:deja |jamais )?rencontre\w*
        """),
}
_CAUSED = {
    "en": words_like(r"""
        how (?:did|has|have|do|does) .{2,120} (?:lead|led|shape[ds]?|affect(?:ed)?|influence[ds]?|contribute[ds]?|impact(?:ed)?)
        (?:what|which) (?:role|part|effect|impact)s? (?:did|do|have) .{2,60} and .{2,60} (?:play|have|had)
        """),
    "fr": words_like(r"""
        comment .{2,100} (?:conduit|mene|abouti|contribue|entraine|provoque|influence|faconne|bouleverse|affecte)e?s?
        (?:consequence|effet|impact|influence)s? .{2,100}(?:, puis| puis| et sur)
        quel(?:le)?s? (?:role|effet|impact)s? ont (?:joue|eu)
        """),
}
_LISTED = {
    "en": words_like(rf"""
        (?:list|find|name|show|give|identify|collect|summari[sz]e|overview of|which|what are)(?: me| us)? (?:all|every|each)\b(?! day| time| year| month)
        (?:which|what|how many)(?: of)? (?:our|these|those|my) |how many of (?:the|them|us)
        (?:more than one|several|multiple|(?:all|each|most) (?:of )?(?:our|the|these)|across(?: all| the| our)*) (?:\w+ )?{_KIND["en"]}
        (?:which|what) {_KIND["en"]}|all (?:the )?{_KIND["en"]} (?:who|that|which|in|with|whose)
        (?:recurring|common) (?:themes?|complaints?|clauses?|topics?|points?)|(?:rank|sort|group|classify) (?:the|our|all|these)
        """),
    "fr": words_like(rf"""
        (?:liste|trouve|donne|cite|nomme|montre|identifie|enumere|rassemble|releve|quels sont|quelles sont)[rz]?(?:-moi|-nous)? (?:tou(?:s|tes)|chaque)
        recense[rz]?|dresse[rz]?|inventorie[rz]?|classe[rz]? (?:les|nos|ces)|liste[rz]? (?:les|nos|des)
        quel(?:le)?s {_KIND["fr"]}(?! (?:\w+(?:er|ir|re)|faut|dois|doit|sont|ai|puis|peut)\b)
        (?:combien|quel(?:le)?s|lesquel(?:le)?s) (?:de|d'entre) (?:nos|ces|vos|mes)|parmi (?:les|nos|ces)
        (?:tous|toutes|dans|chacun de|chacune de|l'ensemble de|la plupart de) (?:nos|ces|(?:tous )?les {_KIND["fr"]})
        plusieurs {_KIND["fr"]}|plus d'une? (?:contrat|document|roman|fournisseur|rapport)
        tou(?:s|tes) (?:les|ceux|celles)(?: \w+){{0,3}} (?:qui|que|dont|ayant|où)|(?:themes?|clauses?|points?) (?:recurrente?s?|communs?)
        """),
}
_CHANGED = {
    "en": words_like(r"""
        how (?:has|have|did|does|do) .{2,120} (?:change[ds]?|evolve[ds]?|develop(?:ed|s)?|shift(?:ed|s)?|grow|grown)
        evolution of|over the (?:years|decades|centuries)|timeline
        """),
    "fr": words_like(r"""
        evolue\w*|evolution|au fil (?:du|des|de)|chronologie|retrace[rz]?
        (?:a|ont)(?:-t)?(?:-il|-elle|-ils|-elles|-on)? ?change.{0,40}depuis|comment .{2,100} change
        """),
}
_KINDS = (
    (_COMPARED, "compares things"),
    (_RELATED, "asks how things are related"),
    (_CAUSED, "asks what one thing did to another"),
    (_LISTED, "asks for all things of a kind"),
    (_CHANGED, "asks how things changed"),
)
_OR = {"en": re.compile(r",? or (?:the |an? )?"), "fr": re.compile(r",? ou (?:l[ae] |les |l'|une? |du |de l'|de la |de |des |d')?")}
_AND = {
    "en": re.compile(r",? (?:and|or|&) (?:the |an? |that of |in )?"),
    "fr": re.compile(r",? (?:et|ou) (?:l[ae] |les |l'|une? |du |de la |de |des |d'|a |celle de |celui de )?"),
}
_COMMA = {language: re.compile(r", (?:de |d'|the |l[ae] |l')?") for language in ("en", "fr")}
_PAIRED = {
    "en": words_like("the same|both|rather than|instead of|than|as well as|together|share"),
    "fr": words_like("(?:le |la |les |du |au |l')?memes?|tous deux|toutes deux|plutot que|au lieu de|ensemble|(?:ont|sont|etaient)-(?:ils|elles)"),
}
_TERMS = {
    "en": words_like(r"differences? (?:in [\w ]{2,30})?between|distinction between"),
    "fr": words_like(r"(?:differences?|distinction) (?:de [\w ]{2,30})?(?:y a-t-il )?entre"),
}


def joins_in(wording: Wording, names: Sequence[tuple[int, int]]) -> list[Sign]:
    """What in a question joins several things.

    Args:
        wording: the question.
        names: start and end of each name in it.
    """
    found = [wording.sign(match, meaning) for patterns, meaning in _KINDS if (match := wording.find(patterns))]
    found.extend(_joined_names(wording, names))
    if len(names) > 1 and (pair := wording.find(_PAIRED)):
        found.append(wording.sign(pair, "sets two names side by side"))
    found.extend(_compared_terms(wording, names))
    return found


def _joined_names(wording: Wording, names: Sequence[tuple[int, int]]) -> Iterator[Sign]:
    """Names with `or` between them, or three in a row."""
    for (start, end), (after, last) in pairwise(names):
        if _stands_between(wording, _OR, end, after):
            yield Sign(wording.written[start:last], "offers a choice of names")
    for first, second, third in zip(names, names[1:], names[2:], strict=False):
        if _stands_between(wording, _COMMA, first[1], second[0]) and _stands_between(wording, _AND, second[1], third[0]):
            yield Sign(wording.written[first[0] : third[1]], "lists several names")


def side_by_side_in(wording: Wording, names: Sequence[tuple[int, int]]) -> list[Sign]:
    """Two names with `and` between them: weaker than the others, as one name may hold the word."""
    pairs = [(start, last) for (start, end), (after, last) in pairwise(names) if _stands_between(wording, _AND, end, after)]
    return [Sign(wording.written[start:last], "sets two names side by side") for start, last in pairs]


def _stands_between(wording: Wording, patterns: Patterns, start: int, end: int) -> bool:
    return any(patterns[language].fullmatch(wording.plain, start, end) for language in wording.languages)


def _compared_terms(wording: Wording, names: Sequence[tuple[int, int]]) -> Iterator[Sign]:
    """A difference of two named things or of two documents; that of two ordinary words is told in one place, as a definition is."""
    terms = wording.find(_TERMS)
    if terms is None:
        return
    behind = wording.plain[terms.end() :].split(" as ")[0]
    documents = [match for language in wording.languages for match in re.finditer(rf"(?<!\w){DOCUMENT[language]}(?!\w)", behind)]
    if sum(start >= terms.end() for start, _ in names) > 1 or len(documents) > 1:
        yield wording.sign(terms, "compares things")
