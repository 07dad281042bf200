"""Figures that stand in the tables of reports: a measure of a business or a town, and the period it is asked for."""

import re

from llama_index_advanced_rag.text.question_routes.nouns import either
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_MEANING = "asks for a figure of a report"

_MEASURE = {
    "en": words_like(r"""
        revenues?|turnover|sales|incomes?|profits?|loss(?:es)?|earnings|margins?|ebitda?|eps|dividends?
        (?:total |net |current |non-current |fixed |intangible )*(?:assets|liabilities|equity|debt|borrowings|goodwill|inventor(?:y|ies)|receivables|payables)
        (?:operating|free|net|financing|investing) cash flows?|cash|balance sheet total|share repurchases|depreciation|amorti[sz]ation|impairments?
        provisions?
        (?:(?:operating|administrative|marketing|r&d|research and development|capital|total|interest|staff) )*(?:expenses?|expenditures?|spending|costs|capex)
        wages|salaries|wage bill|headcount|workforce|[\w-]+ numbers|number of (?:full-time )?(?:employees|staff)|market share|share price|order book|backlog
        (?:unemployment|employment|birth|death|growth|inflation|interest|occupancy|vacancy|churn|literacy|crime|tax) rate|deficit|surplus
        """),
    "fr": words_like("""
        chiffres? d'affaires|ca|ventes?|recettes?|revenus?|produits d'exploitation|resultats?|benefices?|pertes?|marges?|ebe|ebitda|dividendes?
        bilan|actif|passif|capitaux propres|fonds propres|dettes?|endettement|tresorerie|stocks?|creances|immobilisations|encours|amortissements
        depenses?|charges?|frais|couts?|investissements?|emprunts?|masse salariale|effectifs?|excedent|deficit|epargne brute|subventions?|dotations?
        taux (?:de|d')|part de marche|carnet de commandes|autofinancement|cash[- ]flow
        """),
}
_OUTRIGHT = {
    "en": words_like("""
        (?:net|operating|gross|total|comprehensive) (?:income|sales|profit|loss|debt|assets|earnings|margin|expenses|liabilities|equity)
        (?:total )?revenues?|turnover|ebitda?|earnings per share|eps|(?:operating|free) cash flows?|cash and cash equivalents|capex
        (?:share|stock)holders'? equity|headcount
        """),
    "fr": words_like("""
        chiffres? d'affaires|(?:resultat|benefice|perte|marge|dette)s? (?:nette?s?|brute?s?|d'exploitation|operationnel(?:le)?s?|financieres?)
        ebitda|ebe|total (?:du bilan|de l'actif)|capitaux propres|masse salariale|effectifs?|tresorerie
        """),
}
_COUNTED = {
    "en": words_like("""
        how (?:many|much|large|high|low|big)|(?:total )?(?:number|amount|volume|value)s? of|(?:what|which) (?:share|proportion|percentage|part|fraction)
        (?:share|proportion|percentage) of
        what (?:did|does|has) .{2,50} (?:take in|took in|spend|spent|earn|earned|pay|paid|invest|make|made|sell|sold|owe|lose)|by how much|figures? for
        statistics|total|tally|attendance|population|turnout|output|average
        """),
    "fr": words_like("""
        qu'(?:a|ont) (?:gagne|depense|vendu|verse|rapporte|investi|touche)|combien(?: d[e'])?|nombres? (?:total )?(?:de|d')
        (?:quelle|la) (?:part|proportion|quantite)|quel (?:pourcentage|taux|volume|montant|total|nombre|tonnage)
        (?:montant|volume|total|part)s? (?:de |des |du |d'|total )
        chiffres (?:de |du )|statistiques|frequentation|population|production|moyenne|hausse|baisse
        """),
}
_MONTH_EN = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_MONTH_FR = "(?:janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre|decembre)"
_YEAR = r"(?:19|20)\d\d(?:[-/]\d{2,4})?"
_REPORTING_PERIOD = {
    "en": words_like(rf"""
        q[1-4](?: ?/? ?(?:fy ?)?'?{_YEAR})?|[1-4]q ?\d\d
        (?:first|second|third|fourth|last|previous|1st|2nd|3rd|4th|same|each|per|every|this) (?:fiscal |financial )?(?:quarter|half|semester)|quarterly
        quarter|h[12] {_YEAR}
        (?:fiscal|financial|reporting|tax|school|budget) (?:year|period)s?(?: {_YEAR})?|fiscal {_YEAR}|fy ?'?\d\d(?:\d\d)?|year[- ]end
        year[- ](?:on|over)[- ]year|last (?:year|month|quarter)(?:'s)?
        (?:at|by|as of|as at|on|until)?(?: the)? ?(?:very )?(?:end|close|start|beginning) of (?:the )?(?:year |fiscal |{_MONTH_EN} |last year)*(?:{_YEAR})?
        (?:as of|as at|at|on|ended|ending|to) (?:\d\d? )?{_MONTH_EN}(?: \d\d?)?,? {_YEAR}|(?:three|six|nine|twelve) months
        (?:each|per|every|by|monthly)(?: month| quarter| year)? (?:of |in )?(?:{_YEAR})|each month|per month|month by month|monthly|annually|year by year
        """),
    "fr": words_like(rf"""
        [qt][1-4](?: ?/? ?{_YEAR})?|trimestres?|semestres?|trimestriel(?:le)?s?|s[12] {_YEAR}|exercices?(?: {_YEAR})?|cloture
        (?:a la |en |de |a )?(?:fin|debut) (?:de )?(?:l'annee |l'exercice |{_MONTH_FR} )?{_YEAR}
        (?:fin|debut) (?:de )?(?:l'annee|l'exercice)(?: derniere?| precedente?)?
        au (?:1er|\d\d?) {_MONTH_FR}(?: {_YEAR})?|arrete au|mois par mois|par mois|chaque mois|mensuel(?:le)?s?|par trimestre|annee par annee
        d'une annee (?:sur|a) l'autre|(?:budget|bilan|comptes?) (?:19|20)\d\d|l'an(?:nee)? (?:dernier|derniere|passe|passee|precedente)|annuel(?:le)?s?
        """),
}
_YEAR_OF_FIGURES = {
    "en": words_like(rf"""
        (?:in|for|during|of|over|between|from|since|through|year)(?: the)?(?: whole| entire| full)?(?: calendar)?(?: year)? (?:{_MONTH_EN} )?{_YEAR}
        {_YEAR}[?.! ]*\Z
        """),
    "fr": words_like(rf"""
        (?:en|pour|durant|sur|de|depuis|entre|annee|pendant|courant)(?: toute)?(?: l'annee| l'exercice)?(?: {_MONTH_FR})? {_YEAR}|{_YEAR}[?.! ]*\Z
        (?:l'annee|en {_MONTH_FR}) {_YEAR}
        """),
}
_REPORTED = {
    "en": words_like(
        """
        employ(?:s|ed)?|hired?|sell|sold|sp(?:end|ent)|paid|pay|earn(?:ed)?|invest(?:ed)?|borrow(?:ed)?|len[dt]|collect(?:ed)?|issued?|register(?:ed)?
        ship(?:ped)?|produced?|import(?:ed)?|export(?:s|ed)?|deliver(?:ed)?|record(?:ed)?|welcomed?|treat(?:ed)?|carry|carried
        built|grew|grow|rose|fell|make|made|open(?:ed)?|closed?
        """,
        either("""
            permit visitor member inhabitant resident subscriber customer client passenger order unit vehicle ton tonne birth death application
            complaint store share staff people employee worker ticket patient admission student pupil house home loan report request
            volunteer branch shop incident accident euro dollar pound litre hour kilometre
            """),
    ),
    "fr": words_like(r"""
        emplo\w+|vend\w+|depens\w+|livre\w*|produi\w+|import\w+|export\w*|delivr\w+|embauch\w+|vers\w+|investi\w*|gagn\w+|enregistr\w+|percu\w*|accueilli\w*
        compt(?:ait|e|aient)|soign\w+|transport\w+|emprunt\w+|constru\w+|augment\w+|baiss\w+|progress\w+|recul\w+|represent\w+|rapport\w+|cout\w+|ouvert\w*
        ferme\w*|recens\w+
        permis|visiteurs?|membres?|habitants?|abonnes?|clients?|passagers?|commandes?|vehicules?|tonnes?|naissances?|deces|demandes?|plaintes?|magasins?
        salaries?|employes?|agents?|entrees?|billets?|patients?|eleves?|logements?|prets?|benevoles?|adherents?|accidents?|euros?|litres?|kilometres?
        recrutements?|mariages?|voyageurs?|repas|inscrits?|agences?|ventes?|postes?|heures?
        """),
}

_HOW_MANY = re.compile(r"how many|(?:total )?number|combien d|nombre")


def figures_in(wording: Wording, names: int) -> list[Sign]:
    """What in a question asks for a figure of a report, if something does.

    A measure (net income, headcount) with a period or with somebody whose it is; or a count of what reports count, with a period.

    Args:
        wording: the question.
        names: how many names stand in it.
    """
    period, year = wording.find(_REPORTING_PERIOD), wording.find(_YEAR_OF_FIGURES)
    when = period or year
    if not (when or names):
        return []
    if outright := wording.find(_OUTRIGHT):
        return [wording.sign(outright, _MEANING)]
    if when is None:
        return []
    measure, counted = wording.find(_MEASURE), wording.find(_COUNTED)
    if measure:
        return [wording.sign(measure, _MEANING)]
    if counted and (_HOW_MANY.match(counted.group()) or wording.find(_REPORTED)):
        return [wording.sign(counted, _MEANING), wording.sign(when, "is the period of a report")]
    return []
