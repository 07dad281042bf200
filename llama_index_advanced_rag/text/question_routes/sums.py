"""Sums and units: what is worked out from the question alone."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_UNIT = {
    "en": (
        r"(?:mi(?:les?)?|kilomet(?:re|er)s?|km|met(?:re|er)s?|centimet(?:re|er)s?|cm|millimet(?:re|er)s?|mm|inch(?:es)?|f(?:oo|ee)t|yards?"
        r"|acres?|hectares?|square (?:met(?:re|er)s?|feet|miles)|pounds?|lbs?|ounces?|oz|stones?|kilos?|kilograms?|kg|grams?|tons?|tonnes?"
        r"|gallons?|pints?|quarts?|cups?|tablespoons?|teaspoons?|lit(?:re|er)s?|millilit(?:re|er)s?|ml|cl|(?:degrees? )?(?:celsius|fahrenheit"
        r"|kelvin|centigrade)|°[cf]|seconds?|minutes?|hours?|days?|weeks?|months?|years?|leap years?|decades?|centur(?:y|ies)|fortnights?"
        r"|dozens?|knots?|mph|km/h|bytes?|kilobytes?|megabytes?|gigabytes?|mb|gb|tb|dollars?|euros?|binary|hexadecimal|decimal|roman numerals?"
        r"|radians?|degrees?|horsepower|kilowatts?|watts?|joules?|calories|nautical miles?|light[- ]years?|cubic met(?:re|er)s?|gross)"
    ),
    "fr": (
        r"(?:milles?(?: marins?)?|miles?|kilometres?|km|metres?|centimetres?|cm|millimetres?|mm|pouces?|pieds?|yards?|acres?|hectares?"
        r"|(?:metres? |kilometres? )?carres?|m²|livres?(?: anglaises?)?|onces?|kilos?|kilogrammes?|kg|grammes?|tonnes?|gallons?|pintes?"
        r"|tasses?|cuilleres?(?: a (?:soupe|cafe))?|litres?|decilitres?|centilitres?|millilitres?|ml|cl|dl|(?:degres? )?(?:celsius|fahrenheit"
        r"|kelvin)|°[cf]|secondes?|minutes?|heures?|jours?|journee|semaines?|mois|an(?:nee)?s?(?: bissextiles?)?|siecles?|decennies?"
        r"|douzaines?|nœuds?|noeuds?|km/h|octets?|kilo-?octets?|mega-?octets?|giga-?octets?|mo|go|to|dollars?|euros?|binaire|hexadecimal"
        r"|decimal|chiffres romains|radians?|degres?|chevaux|kilowatts?|watts?|joules?|calories|annees?-lumiere|metres? cubes?)"
    ),
}
_N = (
    r"(?:\d[\d .,]{0,16}|an?|half an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|half an?|une?|deux|trois|quatre|cinq|six"
    r"|sept|huit|neuf|dix|douze|vingt|cent|mille|une demi)"
)
_EXPRESSION = re.compile(r"(?<![\w.,-])\(?-?\d[\d ,.]{0,16}\)?%? ?(?:[+*/×÷^=x]|\*\*|(?<= )[-–](?= )) ?\(?-?\d[\d ,.]{0,16}\)?(?![\w/-])")
_ALL_FIGURES = re.compile(r"[\d\s+*/×÷^=x().,%?!–-]*\d[\d\s+*/×÷^=x().,%?!–-]*")
_REST = {
    "en": words_like(
        "what(?:'s| is| are| does| do)?|how (?:much|many)|is|are|calculate|compute|work out|solve|evaluate|equals?|please|the|result|of|add"
        "|give me|tell me|can you|do you get|make|hi|hello|so|and|plus|minus|times|divided|by|over|it|that|x|for|me|answer|sum|total|value"
    ),
    "fr": words_like(
        "combien (?:font|fait|ca fait)?|quel(?:le)? est|que (?:font|fait|vaut|valent)|calcule\\w*|calculer|resous|egalent?|s'il (?:te"
        "|vous) plait|stp|svp|le|la|l'|les|resultat|de|du|somme|ca|fait|font|donne|donne-moi|et|plus|moins|fois|divise|par|bonjour|valeur"
        "|reponse|dis-moi|combien|a"
    ),
}
_WORDED = {
    "en": words_like(
        r"(?:bigger|larger|greater|smaller|more|less),? \d[\d./]* or \d[\d./]*|\d[\d.,]{0,16} ?(?:plus|minus|times|divided by|multiplied by"
        r"|over|to the power of|squared|cubed|mod(?:ulo)?)\b",
        r"\d[\d.,]{0,16} ?(?:%|percent|per cent) (?:of|off|on) (?:\$|€|£)?\d[\d.,]{0,16}",
        r"(?:square|cube) root of \d[\d.,]{0,16}|(?:half|a third|a quarter|two thirds|three quarters|double|twice|triple) of \d[\d.,]{0,16}"
        r"|(?:sum|product|average|mean|median|difference|square|cube|factorial|logarithm|log|sine|cosine|remainder|lcm|gcd) (?:of"
        r"|between) -?\d[\d.,]{0,16}|\d+ factorial|add \d[\d.,]{0,16}|subtract \d[\d.,]{0,16}|multiply \d[\d.,]{0,16}|divide \d[\d.,]{0,16}"
        r"|round \d[\d.,]{0,16}|half of \d[\d.,]{0,16}|is \d+ (?:a )?(?:prime|even|odd|divisible)",
        r"(?:what time|what day|which day|what(?:'s| is) (?:the (?:date|time|day)|today's date)|what date) (?:is it|is today|today)?(?: now"
        r"| today| tomorrow| right now)?(?=[ ?.!]*$)|how many (?:days|weeks|hours|months) (?:are there )?(?:are )?(?:left )?(?:until|till"
        r"|between|to|before|since) (?:\d|christmas|new year|easter|january|february|march|april|may|june|july|august|september|october"
        r"|november|december|next|today)",
        r"(?:split|divide|share) (?:\$|€|£)?\d[\d.,]{0,16} .{0,30}(?:between|among|by|equally|in)|\d+ (?:days|weeks|months|hours"
        r"|minutes) (?:from|after|before|past) (?:now|today|tomorrow|\d)|add(?:ing)? \d+.{0,12}vat",
    ),
    "fr": words_like(
        r"\d[\d., ]{0,16} ?(?:plus|moins|fois|divise(?:e|s)? par|multiplie(?:e|s)? par|puissance|modulo|sur) \d[\d.,]{0,16}"
        r"|\d[\d., ]{0,16} ?(?:au carre|au cube)",
        r"\d[\d., ]{0,16} ?(?:%|pour cent|pourcents?) (?:de|sur) \d[\d.,]{0,16}",
        r"racine (?:carree|cubique) de \d[\d.,]{0,16}|(?:moitie|tiers|quarts?|cinquiemes?|dixiemes?|double|triple|carre"
        r"|cube) de \d[\d.,]{0,16}|(?:somme|produit|moyenne|difference|mediane|factorielle|logarithme|reste) (?:de|entre) -?\d[\d.,]{0,16}"
        r"|ajoute \d[\d.,]{0,16}|soustrai\w* \d[\d.,]{0,16}|multiplie \d[\d.,]{0,16}|divise \d[\d.,]{0,16}|arrondis \d[\d.,]{0,16}"
        r"|\d+ est-il (?:premier|pair|impair|divisible)",
        r"quelle heure (?:est-il|il est)|quel jour (?:sommes-nous|on est|est-on)|(?:on est|nous sommes) quel jour"
        r"|quelle (?:est la )?date (?:sommes-nous|aujourd'hui|d'aujourd'hui)|combien de (?:jours|semaines|heures|mois) (?:reste-t-il "
        r"|y a-t-il |il reste |separent )?(?:avant|jusqu|entre|d'ici|depuis) ?(?:noel|paques|le \d[\d.,]{0,16}|la|l'|au|a)",
        r"(?:partage|repartis|divise)[rz]? \d[\d., ]{0,16} ?(?:€|euros)?.{0,20}(?:entre|en|par)|dans \d+ (?:jours|semaines|mois),? (?:quel|on sera|nous)",
    ),
}
_CONVERTED = {
    "en": words_like(
        rf"{_N} ?{_UNIT['en']} (?:in(?:to)?|to|as|is how many|are how many|equals how many|makes how many|in how many) (?:how many )?{_UNIT['en']}",
        rf"how (?:many|much) {_UNIT['en']} (?:are |is |make |go )?(?:there )?(?:are )?(?:in|into|to|per|make|make up|does) {_N} ?{_UNIT['en']}"
        rf"|how many days (?:are there |are |does )?(?:in )?(?:january|february|march|april|june|july|august|september|october|november"
        rf"|december)(?: have)?",
        rf"how (?:many|much) {_UNIT['en']} (?:is|are|makes?|equals?) {_N} ?{_UNIT['en']}",
        rf"convert {_N} ?.{{0,20}}(?:to|into|in) \w+",
    ),
    "fr": words_like(
        rf"{_N} ?{_UNIT['fr']} (?:en|font combien de|c'est combien de|ca fait combien de|egale combien de|font combien|dans) ?{_UNIT['fr']}",
        rf"combien (?:de |d'|y a-t-il de |font (?:de )?)?{_UNIT['fr']} (?:y a-t-il |il y a |font |fait )?(?:dans|en|pour|par|font|fait) {_N} ?{_UNIT['fr']}",
        rf"converti\w* {_N} ?.{{0,20}}(?:en) \w+|combien (?:font|fait|valent|vaut|pese(?:nt)?|mesure(?:nt)?) {_N} ?{_UNIT['fr']} en {_UNIT['fr']}",
    ),
}
_COUNTED = {
    "en": r"(?:if |suppose |say |imagine )?(?:an? |one |two |three |four |five |six |ten |\d+ |i (?:have|had|buy|bought|eat) |he |she |someone |there are )",
    "fr": r"(?:si |supposons |imagine )?(?:une? |deux |trois |quatre |cinq |six |dix |\d+ |j'(?:ai|avais|achete) |on a |il y a |quelqu'un )",
}
_PROBLEM = {
    "en": re.compile(
        _COUNTED["en"] + r".{0,160}?(?:[,:.;?]|and|then) ?(?:then )?(?:how (?:long|many|much|far|fast|old|big)|what (?:is|time|share|fraction|does)|at what"
        r"|when (?:do|does|will)|who)\b"
    ),
    "fr": re.compile(
        _COUNTED["fr"] + r".{0,160}?(?:[,:.;?]|et|alors) ?(?:alors )?(?:combien|quelle? (?:heure|est|distance|vitesse|duree|age|part|fraction|sera)|a quelle"
        r"|quand|en combien)\b"
    ),
}


def sums_in(wording: Wording, names: int) -> list[Sign]:
    """What is to be worked out, if the figures are all in the question.

    Args:
        wording: the question.
        names: how many names stand in it.
    """
    found = list(_expressions(wording))
    if not found and not names:
        found = [wording.sign(match, "is worked out without a document") for patterns in (_WORDED, _CONVERTED) if (match := wording.find(patterns))]
        found.extend(_problems(wording))
    return found


def _expressions(wording: Wording) -> Iterator[Sign]:
    """A sum in figures, in any language, if there is little beside it."""
    expression = _EXPRESSION.search(wording.plain)
    if expression is None:
        return
    rest = _EXPRESSION.sub(" ", wording.plain)
    for language in ("en", "fr"):
        rest = _REST[language].sub(" ", rest)
    if not re.sub(r"[\W\d_]+", "", rest) or (wording.plain.rstrip().endswith(("=", "= ?", "=?")) and len(rest.split()) < 3):
        yield wording.sign(expression, "is a sum")


def _problems(wording: Wording) -> Iterator[Sign]:
    """If 3 painters need 8 days, how long do 4 painters need: at least two figures, and the question behind them."""
    problem = wording.begins(_PROBLEM)
    if problem and len(re.findall(r"\d+", wording.plain)) > 1 and not re.search(r"(?:19|20)\d\d", wording.plain):
        yield wording.sign(problem, "is worked out without a document")
