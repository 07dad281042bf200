"""Figures that stand in the tables of reports: a measure of a business or a town, and the period it is asked for."""

from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_MEANING = "asks for a figure of a report"

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
_MEASURE = {
    "en": words_like("""
        sales|incomes?|profits?|loss(?:es)?|earnings|margins?|dividends?|expenses?|expenditures?|spending|costs|provisions?|depreciation
        assets|liabilities|equity|debt|borrowings|inventor(?:y|ies)|receivables|payables|cash|wages|workforce|backlog|deficit|surplus
        (?:unemployment|growth|inflation|interest|occupancy|tax) rate|market share|share price
        """),
    "fr": words_like("""
        ventes?|recettes?|revenus?|resultats?|benefices?|pertes?|marges?|dividendes?|depenses?|charges?|frais|couts?|investissements?
        bilan|actif|passif|dettes?|endettement|stocks?|creances|immobilisations|emprunts?|excedent|deficit|taux (?:de|d')|part de marche
        """),
}
_COUNTED = {
    "en": words_like(r"""
        how many|(?:total )?(?:number|amount|volume) of|(?:what|which|the) (?:share|proportion|percentage)|by how much
        (?:what|how much) (?:did|does|has) .{2,50} (?:spend|spent|earn|earned|pay|paid|invest|invested|sell|sold|owe)
        """),
    "fr": words_like(r"""
        combien|nombres? (?:total )?(?:de|d')|(?:quelle|la) (?:part|proportion|quantite)
        quel (?:pourcentage|taux|volume|montant|total|nombre)
        """),
}
_MONTH = {
    "en": "(?:january|february|march|april|may|june|july|august|september|october|november|december)",
    "fr": "(?:janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre|decembre)",
}
_YEAR = r"(?:19|20)\d\d"
_PERIOD = {
    "en": words_like(rf"""
        q[1-4]|[1-4]q ?\d\d|(?:first|second|third|fourth|last|previous|this|per|each) (?:fiscal )?(?:quarter|half)|quarterly|quarter
        (?:fiscal|financial|reporting) (?:year|period|quarter)?|fiscal {_YEAR}|fy ?'?\d\d(?:\d\d)?
        (?:end|close|start|beginning) of (?:the )?(?:year|quarter|{_MONTH["en"]}|{_YEAR}|last year)|year[- ]end|year[- ]on[- ]year|last year
        (?:as of|as at|at|on|ended|ending) (?:\d\d? )?{_MONTH["en"]}(?: \d\d?)?,? {_YEAR}|(?:three|six|nine|twelve) months
        (?:in|for|during|of|over|between|from|since|to)(?: the)?(?: calendar)?(?: year)? (?:{_MONTH["en"]} )?{_YEAR}|{_YEAR}[?.! ]*\Z
        """),
    "fr": words_like(rf"""
        [qt][1-4]|trimestres?|semestres?|trimestriel(?:le)?s?|exercices?|cloture
        (?:fin|debut) (?:de )?(?:l'annee|l'exercice|{_MONTH["fr"]})? ?(?:{_YEAR})?|l'an(?:nee)? (?:dernier|derniere|passee|precedente)
        au (?:1er|\d\d?) {_MONTH["fr"]}(?: {_YEAR})?|(?:bilan|comptes?|budget) {_YEAR}
        (?:en|pour|durant|sur|de|depuis|entre|annee|pendant)(?: toute)?(?: l'annee)?(?: {_MONTH["fr"]})? {_YEAR}|{_YEAR}[?.! ]*\Z
        """),
}


def figures_in(wording: Wording, names: int) -> list[Sign]:
    """What in a question asks for a figure of a report, if something does.

    A measure (net income, headcount) with a period or with somebody whose it is; or a count with a period.

    Args:
        wording: the question.
        names: how many names stand in it.
    """
    period = wording.find(_PERIOD)
    if not (period or names):
        return []
    found = wording.find(_OUTRIGHT) or (period and (wording.find(_MEASURE) or wording.find(_COUNTED)))
    return [wording.sign(found, _MEANING)] if found else []
