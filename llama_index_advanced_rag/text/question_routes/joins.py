"""What joins several things: comparisons, relations, causes, whole lists and changes over time."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT
from llama_index_advanced_rag.text.question_routes.wording import Patterns, Sign, Wording, words_like

_THING = {
    "en": r"(?:the|our|an?|its|his|her|their) [\w' -]{2,40}",
    "fr": r"(?:l[ae] |les |l'|des |du |nos |notre |un |une |de la |d')[\w' -]{2,40}",
}
_COMPARATIVE = r"(?:(?!other|rather|either|whether|ever|never|after|under|over|per|number|order|offer)\w{2,12}er|more|less|fewer|better|worse|further)"

_COMPARED = {
    "en": words_like(
        "(?<!i )compar(?:e|es|ed|ing|ison|isons)(?! yourself)|versus|vs\\.?|contrast(?:s|ing)?",
        "similarit(?:y|ies)|similar(?:ly)? to each|in common|alike|contradict\\w*|inconsisten\\w+|discrepanc\\w+|each other('s)?|one another"
        "|respectively|differ(?:s|ed)?|disagree\\w*|diverge\\w*",
        "both .{2,60} and|any of (?:the|our) \\w+s|choose between|(?:the|these|those|our) (?:two|three|four|five) (?!first|last|next|day|week"
        "|month|year|hour|time|minute|quarter)\\w+s|and .{2,40} both",
        "the same (?:\\w+ )?(?:country|city|town|year|nationality|school|university|company|place|group|team|owner|person|man|woman|language|genre|author"
        "|director|time|age|firm|state|village|party|band|publisher|way|supplier|bank|rules?|conditions|profession|thing|amount|kind|decade"
        "|century|river)",
        f"(?:which|who|what)(?:ever)? (?:[\\w'-]+ ){{0,6}}{_COMPARATIVE}\\b.{{0,60}}[,:] .{{2,60}} or ",
        "(?:which|who) .{0,50}(?:first|earlier|earliest|later|latest|longer|longest|older|oldest|younger|youngest|more \\w+|most \\w+|\\w+est)[,:] .{2,60} or ",
        "(?:of|between|among) .{2,60} and .{2,40}, (?:who|which|what)",
        f"{_COMPARATIVE}(?: \\w+){{0,3}} than (?!\\d|one|two|three|four|five|six|ten|usual|expected|normal|an? |that|once|half|twice|half"
        f"|allowed|needed|planned|before)",
        "as \\w+ as the|pros and cons of (?:the|these) (?:two|three|four)|changed? between .{2,60} and|and (?:that|those|the ones?) (?:of"
        "|from|in|for|at)|from (?:that|those|the ones?) (?:of|from|in|for|at)|(?:in|at|by|for) at least (?:two|three)|which (?:lease|contract"
        "|offer|plan|model|site|supplier|product|policy|insurer|device|drug|medicine|laptop) (?:is|has|offers|costs|gives) (?:the )?(?:more"
        "|less|most|least|best|worst|\\w+est\\b|\\w+er\\b)",
        "(?:agree|overlap|conflict|clash)(?= (?:on|about|with|over)\\b|[ ?.]*$)",
        "(?:the|these|those|both|all|our)(?: \\w+)? (?:two|three|four|five) (?!(?:first|last|next|days|weeks|months|years|hours|times"
        "|minutes))(?:\\w+ )?\\w+s\\b(?=.{0,80}(?:differ|same|agree|common|each|change|both|share|compare|say|treat|which|who|overlap"
        "|conflict))",
        "(?:one|first|former) .{2,60} the (?:other|second|latter)",
        "shared by|share\\b(?= (?:a|an|the|any)\\b)|differences? (?:between|in) (?=.{3,60}(?:two|three|both))|which (?:of the|of these"
        "|of those|of our|of them|one)|(?:which|any) of (?:the (?:two|three|four|five|following)|these|those|our)",
    ),
    "fr": words_like(
        "compar(?:e|er|ez|es|aison|aisons|ons|ees?)(?!-toi)|versus|vs\\.?|confronte[rz]?|mets en parallele|mettre en parallele",
        "points? communs?|en commun|(?:se )?ressembl\\w+|semblables?|similitudes?|contredi\\w+|contradict\\w+|incoheren\\w+|l'une? et l'autre"
        "|l'une? (?:a|de) l'autre|les une?s|respectivement|divergen\\w+|diverg\\w+|s'opposent|s'accordent|concord\\w+|different(?:-ils"
        "|-elles)|differe(?:-t)?-(?:il|elle)|en quoi .{2,80} differe(?:nt)?|(?:se |s')distingu\\w+",
        "(?:le |la |les |du |au |l')?memes? (?:pays|ville|annee|nationalite|ecole|universite|entreprise|societe|lieu|personne|langue|genre"
        "|auteur|moment|age|region|village|parti|groupe|editeur|fournisseur|banque|regles?|conditions|metier|profession|sort|siecle|chose"
        "|maniere|facon|delai|duree|montant)",
        "(?:les|des|ces|nos|aux|entre) (?:deux|trois|quatre|cinq) (?!premier|premiere|dernier|derniere|prochain|jour|mois|semaine|an|annee"
        "|heure|minute|fois|roues)\\w+",
        "choisir entre|avantages et (?:les )?inconvenients (?:des|de ces) (?:deux|trois|quatre)|change .{0,30}entre .{2,60} et|et (?:a |de )?(?:celui|celle"
        "|ceux|celles) (?:de|du|des|d')|dans au moins (?:deux|trois)|quel(?:le)? (?:bail|contrat|offre|forfait|modele|site|fournisseur"
        "|produit|assureur|appareil|medicament|ordinateur) (?:est|a|offre|coute|donne) (?:le |la )?(?:plus|moins|mieux|meilleure?)|(?:ces"
        "|tous les|toutes les) (?:deux|trois|quatre)|tous (?:les )?deux|toutes (?:les )?deux",
        "(?:lequel|laquelle|lesquels|lesquelles) (?:de |du |des |d'entre |d')|(?:lequel|laquelle|lesquels|lesquelles)(?= (?:est|a|ont|sont"
        "|etait|fut|vaut|convient|dure|coute)\\b.{2,80} ou )",
        "(?<!ne )(?<!n')(?:plus|moins|aussi|autant|davantage|mieux)(?: (?:d'|de )?\\w+){0,4} (?:que |qu')(?!\\d|prevu|d'habitude|necessaire"
        "|possible|la moyenne)",
        "qui (?:des deux |de .{2,60} )?.{0,40}(?:le plus|la plus|les plus|le moins|en premier|d'abord|avant|apres|plus tot"
        "|plus tard)\\b.{0,20}[,:] .{2,60} ou ",
        "(?:est|a|ont|sont|fut)(?:-| )?.{2,60}(?:plus|moins|avant|premier|premiere)\\b.{0,30}[,:] .{2,60} ou ",
        "(?:quel|quelle)s? .{2,60}(?:plus|moins|mieux|meilleure?|premier|premiere)\\b.{0,40}[,:] .{2,60} ou ",
        "a la fois .{2,50} et|tant .{2,40} que|aussi bien .{2,40} que|(?:de |du |des |d').{2,50} (?:et|ou) (?:de |du |des |d').{2,50}, (?:qui"
        "|lequel|laquelle|quel|quelle)\\b|entre .{2,50} et .{2,50}, (?:qui|lequel|laquelle|quel|quelle)\\b",
    ),
}
_RELATED = {
    "en": words_like(
        "(?:relationship|relation|link|connection|tie|correlation|interplay|tension|conflict|rivalry|friendship|parallel|interaction|exchange"
        "|correspondence)s? between",
        "(?:related|connected|linked|tied) to (?:each|one)|(?:are|is|were|was) .{2,80} and .{2,60} (?:related|connected|linked)|(?:related"
        "|connected|linked)(?= ?[?.]?$)",
        "(?:did|do|have|has|had) .{2,60} and .{2,60} (?:ever )?(?:meet|met|collaborate\\w*|overlap|interact|marry|work(?:ed)? together)"
        "|ever (?:met|meet|worked with|work with|collaborate\\w*)",
        "(?:what|which|any) (?:ties|links|connections?|relationship|relations) (?:does|do|did|is|are|has|have|exist)|(?:anything|something"
        "|nothing|what|much) to do with|differences? (?:of opinion )?(?:among|amongst)|network of|who knows whom|chain of events"
        "|role .{0,30}(?:play|played) by .{2,60} and",
    ),
    "fr": words_like(
        "(?:relation|lien|rapport|connexion|correlation|tension|conflit|rivalite|amitie|parallele|interaction|echange"
        "|correspondance)s? (?:\\w+ )?(?:entre|unissent|unissai\\w+|existe)",
        "(?:quelque chose|rien|a) (?:a )?voir avec|(?:fais|faire|etablis|etablir) (?:le|un) lien|desaccords? (?:entre|parmi)"
        "|qu'est-ce qui (?:relie|lie|unit|oppose|rapproche|distingue)|(?:relient?|lient|unit|unissent|oppose|opposent|rapproche"
        "|rapprochent) .{2,50} (?:et|a) ",
        "(?:deja|jamais|ensemble) (?:travaille|collabore|rencontre|connu|croise)|(?:travaille|collabore) (?:avec|ensemble)|(?:se |s')?(?:sont"
        "|est|etaient)(?:-ils|-elles|-il|-elle)? ?(?:deja |jamais |tous deux )?(?:rencontre|connu|croise|influence)\\w*|enchainement",
    ),
}
_CAUSED = {
    "en": words_like(
        "how (?:did|has|have|do) .{2,120} (?:lead|led|shape[ds]?|affect(?:ed)?|influence[ds]?|contribute[ds]?|cause[ds]?|trigger(?:ed)?"
        "|result(?:ed)? in|impact(?:ed)?|alter(?:ed)?|bring about|pave the way|change the|push)\\b",
        "(?:consequence|impact|effect|influence|repercussion|implication)s? (?:of|on|did|have|has|had|that) .{2,100}\\b(?:and|then|on the"
        "|on our|had on|have on|has on)\\b.{2,60}\\b(?:and|then|between|across|two|both)\\b",
        "and (?:then|subsequently|in turn) |knock-on|ripple effect|chain reaction|combined effect|root causes? of .{2,60} and",
        "(?:what|which) (?:\\w+ ){0,2}(?:role|part|effect|impact|influence|consequence)s? (?:did|do|have|has) .{2,60} and .{2,60} (?:play|have|had)",
        "why did .{2,60}, .{2,60} and ",
    ),
    "fr": words_like(
        "(?:consequence|repercussion|retombee|effet|impact|influence|incidence)s? .{2,100}(?:, puis| puis| et sur| et enfin|ainsi que|a la fois)",
        "(?:conduit|mene|abouti|contribue|pousse|entraine|provoque|debouche|influence|pese|faconne|nourri|bouleverse) (?:a |au |aux |sur |l"
        "|les |dans |vers |d).{0,80}(?:puis|, et |ensuite)|comment .{2,100} (?:a-t-il|a-t-elle|ont-ils|ont-elles|a|ont)? ?(?:conduit|mene"
        "|abouti|contribue|pousse|entraine|provoque|influence|faconne|bouleverse|affecte|modifie|pese)e?s?\\b",
        "en cascade|effets? combines?|reaction en chaine|de fil en aiguille|enchainement",
        "quel(?:le)?s? (?:\\w+ )?(?:role|effet|impact|influence|consequence)s? ont (?:joue|eu|tenu|eue)",
    ),
}
_LISTED = {
    "en": words_like(
        "(?:list|find|name|show|give|tell|identify|collect|gather|count|enumerate|overview|summary|summari[sz]e|which|what) (?:me |us |out "
        "|\\w+ ){0,3}(?:all|every|each)\\b(?! day| time| year| month| of the above)",
        "(?:which|what|how many)(?: of)?(?: all| the)? (?:our|these|those|my) |(?:which|how many) of (?:the|them|us)",
        "(?:more than one|several|multiple|all (?:of )?(?:our|the|three|four|these|five|its)|both|every one of (?:our|the)|most of (?:our"
        "|the)|each of (?:our|the|these)|across (?:all |the |our |these )?(?:\\w+ )?)\\s?(?:\\w+ )?(?:contracts|documents|reports|suppliers"
        "|leases|studies|agreements|polic(?:y|ies)|novels|books|minutes|files|papers|filings|departments|sites|offices|products|manuals"
        "|leaflets|companies|articles|meetings|years|councils|towns|countries|branches|drugs|medicines|trials|authors|models)",
        "(?:recurring|recurrent|common) (?:themes?|complaints?|clauses?|topics?|motifs?|points?|findings?)|most (?:often|frequently|commonly)"
        "|(?:rank|order|sort|group|classify) (?:the|our|all|these)|overview of (?:all|the different|our)",
        "who (?:all|else)|who among|more than (?:once|twice)|more than (?:one|two|three|half) of|how many (?:contracts|suppliers|documents"
        "|leases|projects|reports|sites|councillors)(?= (?!.*(?:19|20)\\d\\d))|(?:which|what) (?:contracts|documents|reports|suppliers|leases"
        "|studies|agreements|policies|novels|minutes|departments|sites|products|manuals|leaflets|companies|articles|towns|countries|employees"
        "|people|councillors|characters|clauses|medicines|drugs|authors|projects|customers)|everyone who|everybody who|all (?:the )?(?:people"
        "|persons|companies|places|products|characters|councillors|employees|suppliers|cases|clauses) (?:who|that|which|in|with|whose"
        "|mentioned)|any (?:\\w+ )?(?:suppliers|contracts|councillors|employees|products|customers) (?:who|that|which)",
    ),
    "fr": words_like(
        "(?:liste[rz]?|trouve[rz]?|donne[rz]?|cite[rz]?|nomme[rz]?|montre[rz]?|identifie[rz]?|enumere[rz]?|rassemble[rz]?|releve[rz]?"
        "|quels sont|quelles sont|dresse[rz]?|fais|faites)(?:-moi|-nous)? (?:la liste (?:de |des |complete )?)?(?:tou(?:s|tes)|chaque|chacun)",
        "recense[rz]?|quel(?:le)?s (?:contrats|documents|rapports|fournisseurs|baux|etudes|accords|romans|filiales|sites|produits|notices"
        "|communes|pays|medicaments|personnages|salaries|elus|conseillers|clients|projets|auteurs|services|entreprises"
        "|societes)(?! (?:\\w+(?:er|ir|re)|faut|dois|doit|sont|ai|puis|peut)\\b)|(?:deux|trois|plusieurs) fois|combien de (?:contrats"
        "|fournisseurs|documents|baux|projets|rapports|sites|conseillers)(?= (?!.*(?:19|20)\\d\\d))|dresse[rz]?|inventorie[rz]?"
        "|classe[rz]?(?:-moi)? (?:les|nos|ces)|combien de (?:nos|ces|vos)|(?:quels?|quelles?|lesquels|lesquelles) de (?:nos|ces|vos|mes)"
        "|combien (?:d'entre|parmi)|parmi (?:les|nos|ces)",
        "(?:tous|toutes|dans|chacun de|chacune de|l'ensemble de|la plupart de) (?:nos|ces|les (?:contrats|documents|rapports|baux|etudes"
        "|accords|romans|livres|proces-verbaux|filiales|sites|services|produits|notices|communes|pays|medicaments|fournisseurs"
        "|comptes rendus))|plusieurs (?:contrats|documents|rapports|romans|fournisseurs|communes|etudes|notices|pays)|plus d'une? (?:contrat"
        "|fois|document|roman|fournisseur|rapport|seance)",
        "tou(?:s|tes) (?:les|ceux|celles)(?: \\w+){0,3} (?:qui|que|dont|ayant|où)|(?:themes?|clauses?|points?) (?:recurrente?s?|communs?)"
        "|le plus souvent|revien(?:t|nent) (?:dans|le plus)|d'un (?:contrat|document|rapport|roman|livre|site) a l'autre",
    ),
}
_CHANGED = {
    "en": words_like(
        "how (?:has|have|did|does|do) .{2,120} (?:change[ds]?|evolve[ds]?|develop(?:ed|s)?|shift(?:ed|s)?|progress(?:ed)?|transform(?:ed)?"
        "|grow|grown|vary|varied)",
        "evol(?:ved|ution of|ve)|over the (?:years|decades|centuries|course of)|timeline|trace (?:the|how)|before, during and after"
        "|between .{2,40} and .{2,40} (?:change|evolve|develop)\\w*|from .{2,40} to .{2,40}, how",
    ),
    "fr": words_like(
        "evolue\\w*|evolution|au fil (?:du|des|de)|chronologie|avant, pendant et apres|d'une epoque a l'autre|retrace[rz]?|(?:a"
        "|ont)(?:-t)?(?:-il|-elle|-ils|-elles|-on)? ?change.{0,40}depuis|comment .{2,100} change",
    ),
}
_ENUMERATED = {
    "en": re.compile(rf"(?<!\w){_THING['en']}, (?:\w+ )?{_THING['en']},? and (?=the |our |an? |its |his |her |their )"),
    "fr": re.compile(rf"(?<!\w){_THING['fr']}, {_THING['fr']} (?:et|ou) (?=l[ae] |les |l'|des |du |nos |notre |une? |de la |d')"),
}
_OR = {"en": re.compile(r",? or (?:the |an? )?"), "fr": re.compile(r",? ou (?:l[ae] |les |l'|une? |du |de l'|de la |de |des |d')?(?:\w+ )?")}
_AND = {
    "en": re.compile(r",? (?:and|or|&) (?:the |an? |that of |in )?"),
    "fr": re.compile(r",? (?:et|ou) (?:l[ae] |les |l'|une? |du |de la |de |des |d'|a |celle de |celui de )?(?:\w+ )?"),
}
_COMMA = {language: re.compile(r", (?:de |d'|the |l[ae] |l')?") for language in ("en", "fr")}
_PAIRED = {
    "en": words_like("the same|both|rather than|instead of|than|as well as|together|apart|prefer|share"),
    "fr": words_like(
        "(?:le |la |les |du |au |l')?memes?|tous deux|toutes deux|plutot que|au lieu de|que celle|que celui|ensemble|preferer|(?:ont|sont"
        "|etaient|avaient)-(?:ils|elles)"
    ),
}
_TERMS = {
    "en": words_like("differences? (?:in [\\w ]{2,30})?between|difference in|distinction between|diff between"),
    "fr": words_like("(?:differences?|distinction|diff) (?:de [\\w ]{2,30})?(?:y a-t-il |existe-t-il |fait-on )?entre|qu'est-ce qui distingue"),
}
_KINDS = (
    (_COMPARED, "compares things"),
    (_RELATED, "asks how things are related"),
    (_CAUSED, "asks what one thing did to another"),
    (_LISTED, "asks for all things of a kind"),
    (_CHANGED, "asks how things changed"),
    (_ENUMERATED, "lists several things"),
)


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
    behind = wording.plain[terms.end() :]
    documents = [match for language in wording.languages for match in re.finditer(rf"(?<!\w){DOCUMENT[language]}(?!\w)", behind.split(" as ")[0])]
    if sum(start >= terms.end() for start, _ in names) > 1 or len(documents) > 1 or behind.count(",") > 0:
        yield wording.sign(terms, "compares things")
