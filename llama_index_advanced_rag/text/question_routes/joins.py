"""What joins several things: comparisons, relations, causes, whole lists and changes over time."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT
from llama_index_advanced_rag.text.question_routes.wording import Patterns, Sign, Wording, one_of, words_like

_KIND = {
    "en": one_of("""
        contracts|documents|reports|suppliers|leases|studies|agreements|policies|novels|books|papers|files|filings|minutes|manuals|leaflets
        departments|sites|offices|branches|products|models|companies|projects|articles|clauses|meetings|countries|towns|councils|years
        employees|people|customers|councillors|characters|authors|drugs|medicines|trials
        """),
    "fr": one_of("""
        contrats|documents|rapports|fournisseurs|baux|etudes|accords|romans|livres|notices|comptes rendus|proces-verbaux
        filiales|services|sites|produits|entreprises|societes|projets|articles|clauses|pays|communes|medicaments
        salaries|clients|personnages|elus|conseillers|auteurs
        """),
}
_SHARED = {
    "en": one_of("""
        country|city|town|village|state|river|year|decade|century|age|nationality|language|genre|kind|thing|way|amount
        school|university|company|firm|place|group|team|band|party|bank|supplier|publisher
        person|man|woman|owner|author|director|profession|rules?|conditions
        """),
    "fr": one_of("""
        pays|ville|village|region|lieu|annee|siecle|age|nationalite|langue|genre|chose|maniere|facon|sort|delai|duree|montant
        ecole|universite|entreprise|societe|groupe|parti|banque|fournisseur|editeur|personne|auteur|metier|profession|regles?|conditions
        """),
}
_MORE = r"(?:(?!other|rather|either|whether|ever|never|after|under|over|per|number|order|offer)\w{2,12}er|more|less|fewer|better|worse|further)"
_FIRST = rf"(?:first|earliest|latest|longest|{_MORE}|\w{{2,12}}est|most \w+)"
_PERIOD = {
    "en": "(?:first|last|next|day|week|month|year|hour|time|minute|quarter)",
    "fr": "(?:premie|dernie|prochain|jour|mois|semaine|an|heure|minute|fois)",
}
_RATED = {
    "en": r"(?:is|has|offers|costs|gives) (?:the )?(?:more|less|most|least|best|worst|\w+est\b|\w+er\b)",
    "fr": "(?:est|a|offre|coute|donne) (?:le |la )?(?:plus|moins|mieux|meilleure?)",
}
_OFFERED = {
    "en": "(?:lease|contract|offer|plan|model|site|supplier|product|policy|insurer|device|drug|medicine)",
    "fr": "(?:bail|contrat|offre|forfait|modele|site|fournisseur|produit|assureur|appareil|medicament)",
}

_COMPARED = {
    "en": words_like(rf"""
        compar(?:e|es|ed|ing|ison|isons)(?! yourself)|versus|vs\.?|contrast(?:s|ing)?|choose between|pros and cons of (?:the|these) (?:two|three|four)
        similarit(?:y|ies)|similar(?:ly)? to each|in common|alike|shared by|share\b(?= (?:a|an|the|any)\b)|as \w+ as the
        contradict\w*|inconsisten\w+|discrepanc\w+|each other(?:'s)?|one another|respectively|differ(?:s|ed)?|disagree\w*|diverge\w*
        (?:agree|overlap|conflict|clash)(?= (?:on|about|with|over)\b|[ ?.]*\Z)
        the same (?:\w+ )?(?:{_SHARED["en"]})|(?:in|at|on|from|by|have) the same(?! (?:time|day))
        both .{{2,60}} and|and .{{2,40}} both|any of (?:the|our) \w+s
        (?:which|any) (?:one )?of (?:the|these|those|our|them)|which one|(?:in|at|by|for) at least (?:two|three)
        (?:the|these|those|both|all|our)(?: \w+)? (?:two|three|four|five) (?!{_PERIOD["en"]})\w+s
        (?<!no ){_MORE}(?: \w+){{0,3}} than (?!\d|one|two|three|four|five|six|ten|usual|expected|normal|an? |once|half|twice|allowed|needed|planned)
        (?:which|who|what)(?:ever)? .{{0,60}}{_FIRST}\b.{{0,60}}[,:] .{{2,60}} or\b
        which {_OFFERED["en"]} {_RATED["en"]}
        (?:of|between|among) .{{2,60}} and .{{2,40}}, (?:who|which|what)|changed? between .{{2,60}} and
        (?:and|from) (?:that|those|the ones?) (?:of|from|in|for|at)|(?:one|first|former) .{{2,60}} the (?:other|second|latter)
        differences? (?:between|in) (?=.{{3,60}}(?:two|three|both))
        """),
    "fr": words_like(rf"""
        compar(?:e|er|ez|es|aison|aisons|ons|ees?)(?!-toi)|versus|vs\.?|confronte[rz]?|met(?:s|tre|tez) en parallele|choisir entre
        avantages et (?:les )?inconvenients (?:des|de ces) (?:deux|trois|quatre)
        points? communs?|en commun|ressembl\w+|semblables?|similitudes?|l'une? et l'autre|l'une? (?:a|de) l'autre|les une?s|respectivement
        contredi\w+|contradict\w+|incoheren\w+|diverge\w*|s'opposent|s'accordent|concord\w+
        different(?:-ils|-elles)|differe(?:-t)?-(?:il|elle)|en quoi .{{2,80}} differe(?:nt)?|(?:se |s')distingu\w+
        (?:le |la |les |du |au |l')?memes? (?:{_SHARED["fr"]})|(?:le |la |les |du |au |l')memes?(?! (?:jour|temps|moment)\b) \w+
        (?:les|des|ces|nos|aux|entre|tous les|toutes les) (?:deux|trois|quatre|cinq) (?!{_PERIOD["fr"]})\w+
        ces (?:deux|trois|quatre)|tous (?:les )?deux|toutes (?:les )?deux|dans au moins (?:deux|trois)
        (?:lequel|laquelle|lesquel(?:le)?s) (?:de |du |des |d'entre |d')
        (?:lequel|laquelle|lesquel(?:le)?s)(?= (?:est|a|ont|sont|etait|fut|vaut|convient|dure|coute)\b.{{2,80}} ou )
        quelle? {_OFFERED["fr"]} {_RATED["fr"]}
        (?<!ne )(?<!n')(?:plus|moins|aussi|autant|davantage|mieux)(?: (?:d'|de )?\w+){{0,4}} (?:que |qu')(?!\d|prevu|d'habitude|necessaire|possible|la moyenne)
        qui .{{0,60}}(?:plus|moins|en premier|d'abord|avant|apres)\b.{{0,40}}[,:] .{{2,60}} ou\b
        (?:quel(?:le)?s?|est|a|ont|sont|fut)(?:-| ).{{2,60}}(?:plus|moins|avant|mieux|meilleure?|premiere?)\b.{{0,40}}[,:] .{{2,60}} ou\b
        a la fois .{{2,50}} et|tant .{{2,40}} que|aussi bien .{{2,40}} que|change .{{0,30}}entre .{{2,60}} et
        et (?:a |de )?(?:celui|celle|ceux|celles) (?:de|du|des|d')|que (?:celui|celle|ceux|celles)
        (?:de |du |des |d').{{2,50}} (?:et|ou) (?:de |du |des |d').{{2,50}}, (?:qui|lequel|laquelle|quelle?)
        entre .{{2,50}} et .{{2,50}}, (?:qui|lequel|laquelle|quelle?)
        """),
}
_RELATED = {
    "en": words_like(r"""
        (?:relationship|relation|link|connection|tie|correlation|interplay|tension|conflict|rivalry|friendship|parallel|interaction|exchange)s? between
        (?:related|connected|linked|tied)(?: to (?:each|one)|[ ?.]*\Z)|(?:are|is|were|was) .{2,80} and .{2,60} (?:related|connected|linked)
        (?:did|do|have|has|had) .{2,60} and .{2,60} (?:ever )?(?:meet|met|collaborate\w*|overlap|interact|marry|work(?:ed)? together)
        ever (?:met|meet|worked with|work with|collaborate\w*)|who knows whom|chain of events|network of
        (?:what|which|any) (?:ties|links|connections?|relationship|relations) (?:does|do|did|is|are|has|have|exist)|what (?:ties|links|connects)
        (?:ties|links|connections) (?:do|does|did|exist)|differences? (?:of opinion )?(?:among|amongst)
        (?:anything|something|nothing|what|much) to do with|role .{0,30}(?:play|played) by .{2,60} and
        """),
    "fr": words_like(r"""
        (?:relation|lien|rapport|connexion|correlation|tension|conflit|rivalite|amitie|parallele|interaction|echange)s? (?:\w+ )?(?:entre|uniss\w+|existe\w*)
        desaccords? (?:entre|parmi)|(?:quelque chose|rien|a) (?:a )?voir avec|(?:fai(?:s|re)|etabli[rs]) (?:le|un) lien
        qu'est-ce qui (?:relie|lie|unit|oppose|rapproche|distingue)|(?:relient?|lient|unit|unissent|opposent?|rapprochent?) .{2,50} (?:et|a)
        (?:deja|jamais|ensemble) (?:travaille|collabore|rencontre|connu|croise)|(?:travaille|collabore) (?:avec|ensemble)
        (?:sont|est|etaient)(?:-ils|-elles|-il|-elle)? ?(?:deja |jamais |tous deux )?(?:rencontre|connu|croise|influence)e?s?
        """),
}
_EFFECT = {
    "en": "(?:consequence|impact|effect|influence|repercussion|implication)s?",
    "fr": "(?:consequence|repercussion|retombee|effet|impact|influence|incidence)s?",
}
_CAUSED = {
    "en": words_like(rf"""
        how (?:did|has|have|do|does) .{{2,120}} (?:lead|led|shape[ds]?|affect(?:ed)?|influence[ds]?|contribute[ds]?|cause[ds]?|trigger(?:ed)?|push)
        how (?:did|has|have|do|does) .{{2,120}} (?:result(?:ed)? in|impact(?:ed)?|alter(?:ed)?|bring about|pave the way|change the)
        {_EFFECT["en"]} (?:of|on|did|have|has|had|that) .{{2,100}}\b(?:and|then|(?:had |have |has )?on)\b.{{2,60}}\b(?:and|then|between|across|two|both)
        (?:what|which) (?:\w+ ){{0,2}}(?:role|part|{_EFFECT["en"]})s? (?:did|do|have|has) .{{2,60}} and .{{2,60}} (?:play|have|had)
        (?:explain|describe|show|discuss|analy[sz]e) how .{{2,80}} (?:shaped|affected|influenced|led to|changed|contributed|impacted)
        and (?:then|subsequently|in turn)|knock-on|ripple effect|chain reaction|root causes? of .{{2,60}} and|why did .{{2,60}}, .{{2,60}} and
        """),
    "fr": words_like(rf"""
        {_EFFECT["fr"]} .{{2,100}}(?:, puis| puis| sur .{{2,60}} et| et sur| et enfin|ainsi que|a la fois)
        comment .{{2,100}} (?:conduit|mene|abouti|contribue|pousse|entraine|provoque|influence|faconne|bouleverse|affecte|modifie|pese)e?s?
        (?:conduit|mene|abouti|contribue|pousse|entraine|provoque|pese) (?:a |aux? |sur |l|les |dans |vers |d).{{0,80}}(?:puis|, et |ensuite)
        quel(?:le)?s? (?:\w+ )?(?:role|{_EFFECT["fr"]})s? ont (?:joue|eue?|tenu)|en cascade|effets? combines?|reaction en chaine|enchainement
        """),
}
_LISTED = {
    "en": words_like(rf"""
        (?:list|find|name|show|give|tell|identify|collect|gather|count|enumerate|summari[sz]e) (?:\w+ ){{0,3}}(?:all|every|each)\b(?! day| time| year| month)
        (?:overview|summary|which|what) (?:\w+ ){{0,3}}(?:all|every|each)\b(?! day| time| year| month| of the above)
        (?:which|what|how many)(?: of)?(?: all| the)? (?:our|these|those|my)\b|(?:which|how many) of (?:the|them|us)
        (?:which|what) (?:{_KIND["en"]})(?! (?:do|must|should|can|may) (?:i|we|you)\b)
        how many (?:contracts|suppliers|documents|leases|projects|reports|sites|councillors)(?!.*(?:19|20)\d\d)
        (?:more than one|several|multiple|both|across|(?:all|each|most) (?:of )?(?:our|the|these|its)|all (?:three|four|five)) (?:\w+ )?(?:{_KIND["en"]})
        across (?:all |the |our |these ){{1,2}}(?:\w+ )?(?:{_KIND["en"]})
        (?:recurring|recurrent|common) (?:themes?|complaints?|clauses?|topics?|motifs?|points?|findings?)|most (?:often|frequently|commonly)
        (?:rank|order|sort|group|classify) (?:the|our|all|these)|overview of (?:all|the different|our)|who (?:all|else|among)
        (?:main|key|central|major) (?:themes|topics|arguments|findings|differences|lessons|trends|concerns|causes|factors)
        more than (?:once|twice)|more than (?:one|two|three|half) of|every(?:one|body) who
        (?:all|any) (?:the )?(?:\w+ )?(?:{_KIND["en"]}|places|cases) (?:who|that|which|in|with|whose|mentioned)
        """),
    "fr": words_like(rf"""
        (?:liste|trouve|donne|cite|nomme|montre|identifie|enumere|rassemble|releve)[rz]?(?:-moi|-nous)? (?:la liste .{{0,10}})?(?:tou(?:s|tes)|chaque|chacun)
        (?:quels sont|quelles sont|fais|faites) (?:la liste .{{0,10}})?(?:tou(?:s|tes)|chaque|chacun)|recense[rz]?|dresse[rz]?|inventorie[rz]?
        classe[rz]?(?:-moi)? (?:les|nos|ces)|liste[rz]?(?:-moi)? (?:les|nos|des)|(?:deux|trois|plusieurs) fois|le plus souvent
        quel(?:le)?s (?:{_KIND["fr"]})(?! (?:\w+(?:er|ir|re)|faut|dois|doit|sont|ai|puis|peut)\b)
        combien de (?:contrats|fournisseurs|documents|baux|projets|rapports|sites|conseillers)(?!.*(?:19|20)\d\d)
        (?:combien|quel(?:le)?s?|lesquel(?:le)?s) (?:de|d'entre) (?:nos|ces|vos|mes)|combien (?:d'entre|parmi)|parmi (?:les|nos|ces)
        (?:tous|toutes|dans|chacun de|chacune de|l'ensemble de|la plupart de) (?:nos|ces|(?:tous )?les (?:{_KIND["fr"]}))
        (?:synthese|resume|bilan|tour d'horizon|vue d'ensemble) de (?:tou(?:s|tes)|l'ensemble)
        (?:principaux|principales|grande?s) (?:themes|sujets|arguments|conclusions|differences|lecons|tendances|causes|facteurs|enjeux)
        plusieurs (?:{_KIND["fr"]})|plus d'une? (?:contrat|fois|document|roman|fournisseur|rapport|seance)
        tou(?:s|tes) (?:les|ceux|celles)(?: \w+){{0,3}} (?:qui|que|dont|ayant|où)|(?:themes?|clauses?|points?) (?:recurrente?s?|communs?)
        revien(?:t|nent) (?:dans|le plus)|d'une? (?:contrat|document|rapport|roman|livre|site) a l'autre
        """),
}
_CHANGED = {
    "en": words_like(r"""
        how (?:has|have|did|does|do) .{2,120} (?:change[ds]?|evolve[ds]?|develop(?:ed|s)?|shift(?:ed|s)?|progress(?:ed)?|transform(?:ed)?|grown?|vary|varied)
        evolved?|evolution of|over the (?:years|decades|centuries|course of)|timeline|trace (?:the|how)|before, during and after
        between .{2,40} and .{2,40} (?:change|evolve|develop)\w*|from .{2,40} to .{2,40}, how
        """),
    "fr": words_like(r"""
        evolue\w*|evolution|au fil (?:du|des|de)|chronologie|avant, pendant et apres|d'une epoque a l'autre|retrace[rz]?
        (?:a|ont)(?:-t)?(?:-il|-elle|-ils|-elles|-on)? ?change.{0,40}depuis|comment .{2,100} change
        """),
}
_THE = {"en": "(?:the|our|an?|its|his|her|their) ", "fr": "(?:l[ae] |les |l'|du |des |une? |nos |notre |de la |d')"}
_ENUMERATED = {language: words_like(rf"{the}[\w' -]{{2,40}}, (?:\w+ )?{the}[\w' -]{{2,40}},? (?:and|et|ou|or) {the}") for language, the in _THE.items()}
_KINDS = (
    (_COMPARED, "compares things"),
    (_RELATED, "asks how things are related"),
    (_CAUSED, "asks what one thing did to another"),
    (_LISTED, "asks for all things of a kind"),
    (_CHANGED, "asks how things changed"),
    (_ENUMERATED, "lists several things"),
)
_OR = {"en": re.compile(r",? or (?:the |an? )?"), "fr": re.compile(r",? ou (?:l[ae] |les |l'|une? |du |de l'|de la |de |des |d')?(?:\w+ )?")}
_AND = {
    "en": re.compile(r",? (?:and|or|&) (?:the |an? |that of |in )?"),
    "fr": re.compile(r",? (?:et|ou) (?:l[ae] |les |l'|une? |du |de la |de |des |d'|a |celle de |celui de )?(?:\w+ )?"),
}
_COMMA = {"en": re.compile(", (?:the )?"), "fr": re.compile(", (?:de |d'|l[ae] |l')?")}
_PAIRED = {
    "en": words_like("the same|both|rather than|instead of|than|as well as|together|apart|prefer|share|differences? between"),
    "fr": words_like("""
        memes?|tous deux|toutes deux|plutot que|au lieu de|que celle|que celui|ensemble|preferer|differences? entre
        (?:ont|sont|etaient|avaient)-(?:ils|elles)
        """),
}
_TERMS = {
    "en": words_like(r"differences? (?:in [\w ]{2,30})?between|difference in|distinction between"),
    "fr": words_like(r"(?:differences?|distinction) (?:de [\w ]{2,30})?(?:y a-t-il |existe-t-il |fait-on )?entre|qu'est-ce qui distingue"),
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
    behind = wording.plain[terms.end() :]
    documents = [match for language in wording.languages for match in re.finditer(rf"(?<!\w){DOCUMENT[language]}(?!\w)", behind.split(" as ")[0])]
    if sum(start >= terms.end() for start, _ in names) > 1 or len(documents) > 1 or behind.count(",") > 0:
        yield wording.sign(terms, "compares things")
