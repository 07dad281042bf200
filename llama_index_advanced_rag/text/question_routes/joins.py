"""What joins several things: comparisons, relations, causes, whole lists and changes over time."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT
from llama_index_advanced_rag.text.question_routes.wording import Patterns, Sign, Wording, words_like

_KIND = {
    "en": (
        "(?:contracts|documents|reports|suppliers|leases|studies|policies|novels|books|papers|filings|departments|sites|products|manuals|companies"
        "|articles|countries|employees|people|characters|clauses|authors|projects|customers)"
    ),
    "fr": (
        "(?:contrats|documents|rapports|fournisseurs|baux|etudes|accords|romans|livres|filiales|services|sites|produits|notices|entreprises|societes"
        "|articles|pays|salaries|personnages|clauses|auteurs|projets|clients)"
    ),
}
_MORE = r"(?:(?!other|rather|either|whether|ever|never|after|under|over|number|order|offer)\w{2,12}er|more|less|fewer|better|worse)"
_PERIOD = {"en": "(?:first|last|next|day|week|month|year|hour|time|minute)", "fr": "(?:premie|dernie|prochain|jour|mois|semaine|an|heure|minute|fois)"}

_COMPARED = {
    "en": words_like(rf"""
        compar(?:e|es|ed|ing|ison|isons)|versus|vs\.?|contrast
        similarit(?:y|ies)|in common|alike|contradict\w*|inconsisten\w+|each other|one another|differ(?:s|ed)?|disagree
        (?:agree|overlap|conflict)(?= (?:on|about|with)\b|[ ?.]*\Z)|share (?:a|an|the)|shared by|(?:in|at|on|from|by|have) the same(?! (?:time|day))
        both .{{2,60}} and|(?:which|any) (?:one )?of (?:the|these|those|our)
        (?:the|these|those|both|all|our) (?:two|three|four|five) (?!{_PERIOD["en"]})\w+s
        (?<!no ){_MORE}(?: \w+){{0,3}} than (?!\d|one|two|three|four|five|six|ten|usual|expected|normal|an? )
        (?:which|who|what) .{{0,60}}(?:first|{_MORE}|\w{{2,12}}est|most \w+)\b.{{0,60}}[,:] .{{2,60}} or
        (?:of|between|among) .{{2,60}} and .{{2,40}}, (?:who|which|what)
        and (?:that|those) (?:of|from|in|for)|(?:one|first|former) .{{2,60}} the (?:other|latter)
        differences? between (?:the |our )?(?:[\w-]+ ){{0,2}}{DOCUMENT["en"]} and
        """),
    "fr": words_like(rf"""
        compar(?:e|er|ez|es|aison|aisons|ons)|versus|vs\.?
        points? communs?|en commun|ressembl\w+|semblables?|similitudes?|contredi\w+|contradict\w+|incoheren\w+|diverge\w*|l'une? (?:a|de) l'autre
        en quoi .{{2,80}} differe(?:nt)?|different-(?:ils|elles)|(?:se |s')distingu\w+|(?:le |la |les |du |au |l')memes?(?! (?:jour|temps|moment)\b) \w+
        (?:les|des|ces|nos|aux|entre|tous les|toutes les) (?:deux|trois|quatre|cinq) (?!{_PERIOD["fr"]})\w+|tous (?:les )?deux|toutes (?:les )?deux
        et (?:a |de )?(?:celui|celle|ceux|celles) (?:de|du|des|d')|que (?:celui|celle|ceux|celles)|(?:lequel|laquelle|lesquel(?:le)?s) (?:de |du |des |d')
        (?<!ne )(?:plus|moins|aussi|mieux) (?:(?!de\b|d')\w+ ){{1,4}}(?:que |qu')(?!\d|prevu|d'habitude|necessaire|possible)
        (?:qui|quel(?:le)?s?|est|a|ont|sont) .{{2,60}}(?:plus|moins|avant|premiere?|mieux|meilleure?)\b.{{0,40}}[,:] .{{2,60}} ou
        a la fois .{{2,50}} et|entre .{{2,50}} et .{{2,50}}, (?:qui|lequel|laquelle|quel|quelle)
        differences? entre (?:l[ae] |les |l')?(?:[\w-]+ ){{0,2}}{DOCUMENT["fr"]} .{{0,40}}et
        """),
}
_RELATED = {
    "en": words_like(r"""
        (?:relationship|relation|link|connection|tie|conflict|parallel|interaction)s? between|(?:related|connected|linked)(?: to each|[ ?.]*\Z)
        (?:ties|links|connections) (?:do|does|did|exist)|what (?:ties|links|connects)|(?:did|have|has|had) .{2,60} and .{2,60} (?:meet|met|work(?:ed)? together)
        """),
    "fr": words_like(r"""
        (?:relation|lien|rapport|conflit|parallele|interaction|desaccord)s? (?:\w+ )?(?:entre|unissent|existe\w*)|qu'est-ce qui (?:relie|lie|unit|oppose)
        (?:deja|jamais|ensemble) (?:travaille|collabore|rencontre)
        """),
}
_CAUSED = {
    "en": words_like(r"how (?:did|has|have|do|does) .{2,120} (?:lead|led|shape[ds]?|affect(?:ed)?|influence[ds]?|contribute[ds]?|impact(?:ed)?)"),
    "fr": words_like(r"comment .{2,100} (?:conduit|mene|contribue|entraine|provoque|influence|affecte)e?s?"),
}
_LISTED = {
    "en": words_like(rf"""
        (?:list|find|name|show|give|identify|collect|summari[sz]e|overview of|which|what are)(?: me| us)? (?:all|every|each)\b(?! day| time| year| month)
        (?:which|what|how many)(?: of)? (?:our|these|those|my) |how many of (?:the|them|us)
        (?:which|what) {_KIND["en"]}(?! (?:do|must|should|can|may) (?:i|we|you)\b)
        (?:more than one|several|multiple|(?:all|each|most) (?:of )?(?:our|the|these)|across(?: all| the| our)*) (?:\w+ )?{_KIND["en"]}
        (?:recurring|common) (?:themes?|complaints?|clauses?|topics?|points?)|(?:rank|sort|group|classify) (?:the|our|all|these)
        """),
    "fr": words_like(rf"""
        (?:liste|trouve|donne|cite|montre|identifie|quels sont|quelles sont)[rz]?(?:-moi|-nous)? (?:tou(?:s|tes)|chaque)
        recense[rz]?|dresse[rz]?|classe[rz]? (?:les|nos|ces)|liste[rz]? (?:les|nos|des)|(?:combien|quel(?:le)?s|lesquel(?:le)?s) (?:de|d'entre) (?:nos|ces|mes)
        quel(?:le)?s {_KIND["fr"]}(?! (?:\w+(?:er|ir|re)|faut|dois|doit|sont|ai|puis|peut)\b)|parmi (?:les|nos|ces)
        (?:tous|toutes|dans|chacun de|chacune de|l'ensemble de|la plupart de) (?:nos|ces|(?:tous )?les {_KIND["fr"]})
        plusieurs {_KIND["fr"]}|tou(?:s|tes) (?:les|ceux|celles)(?: \w+){{0,3}} (?:qui|que|dont|où)|(?:themes?|clauses?|points?) (?:recurrente?s?|communs?)
        """),
}
_CHANGED = {
    "en": words_like(r"how (?:has|have|did|does|do) .{2,120} (?:change[ds]?|evolve[ds]?|develop(?:ed|s)?)|evolution of|over the (?:years|decades|centuries)"),
    "fr": words_like(r"evolue\w*|evolution|au fil (?:du|des|de)|comment .{2,100} change|(?:a|ont)(?:-t)?(?:-ils?|-elles?|-on)? ?change.{0,40}depuis"),
}
_THE = {"en": "(?:the|our|an?|its|his|her|their) ", "fr": "(?:l[ae] |les |l'|du |des |une? |nos |notre )"}
_ENUMERATED = {language: words_like(rf"{the}[\w' -]{{2,40}}, (?:\w+ )?{the}[\w' -]{{2,40}},? (?:and|et|ou|or) {the}") for language, the in _THE.items()}
_KINDS = (
    (_COMPARED, "compares things"),
    (_RELATED, "asks how things are related"),
    (_CAUSED, "asks what one thing did to another"),
    (_LISTED, "asks for all things of a kind"),
    (_CHANGED, "asks how things changed"),
    (_ENUMERATED, "lists several things"),
)
_OR = {"en": re.compile(r",? or (?:the |an? )?"), "fr": re.compile(r",? ou (?:l[ae] |les |l'|une? |du |de l'|de la |de |des |d')?")}
_AND = {
    "en": re.compile(r",? (?:and|or|&) (?:the |an? |that of |in )?"),
    "fr": re.compile(r",? (?:et|ou) (?:l[ae] |les |l'|une? |du |de la |de |des |d'|a |celle de |celui de )?"),
}
_PAIRED = {
    "en": words_like("the same|both|rather than|instead of|than|as well as|together|share|differences? between"),
    "fr": words_like("memes?|tous deux|toutes deux|plutot que|au lieu de|ensemble|differences? entre|(?:ont|sont|etaient)-(?:ils|elles)"),
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
    return found


def _joined_names(wording: Wording, names: Sequence[tuple[int, int]]) -> Iterator[Sign]:
    """Names with `or` between them."""
    for (start, end), (after, last) in pairwise(names):
        if _stands_between(wording, _OR, end, after):
            yield Sign(wording.written[start:last], "offers a choice of names")


def side_by_side_in(wording: Wording, names: Sequence[tuple[int, int]]) -> list[Sign]:
    """Two names with `and` between them: weaker than the others, as one name may hold the word."""
    pairs = [(start, last) for (start, end), (after, last) in pairwise(names) if _stands_between(wording, _AND, end, after)]
    return [Sign(wording.written[start:last], "sets two names side by side") for start, last in pairs]


def _stands_between(wording: Wording, patterns: Patterns, start: int, end: int) -> bool:
    return any(patterns[language].fullmatch(wording.plain, start, end) for language in wording.languages)
