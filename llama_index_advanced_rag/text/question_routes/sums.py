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
        "what(?:'s| is| are| does| do)?|how (?:much|many)|is|are|calculate|compute|work out|solve|evaluate|equals?|please|solve|the|result|of|add"
        "|give me|tell me|can you|do you get|make|hi|hello|so|and|plus|minus|times|divided|by|over|it|that|x|for|me|answer|sum|total|value"
    ),
    "fr": words_like(
        "combien (?:font|fait|ca fait)?|quel(?:le)? est|que (?:font|fait|vaut|valent)|calcule\\w*|calculer|resous|egalent?|s'il (?:te"
        "|vous) plait|stp|svp|le|la|l'|les|resultat|de|du|somme|ca|fait|font|donne|donne-moi|et|plus|moins|fois|divise|par|bonjour|valeur"
        "|reponse|dis-moi|combien|a"
    ),
}
_FIGURE = r"\d[\d.,]{0,16}"
_BARE_END = r"(?=[ ?.!]*$)"
_WORDED = {
    "en": words_like(
        rf"(?:bigger|larger|greater|smaller),? \d[\d./]{{0,16}} or \d[\d./]{{0,16}}|\d[\d.,]{{0,16}} ?(?:plus|minus|times|divided by"
        rf"|multiplied by|to the power of|mod(?:ulo)?) {_FIGURE}|{_FIGURE} (?:squared|cubed)",
        rf"{_FIGURE} ?(?:%|percent|per cent) (?:of|off|on) (?:\$|€|£)?{_FIGURE}",
        rf"(?:square|cube) root of {_FIGURE}|(?:half|a third|a quarter|two thirds|three quarters|double|twice|triple) of {_FIGURE}|(?:sum"
        rf"|product|average|mean|median|factorial|logarithm|log|sine|cosine|lcm|gcd) of -?(?!(?:19|20)\d\d\b){_FIGURE},? (?:and )?-?\d+"
        rf"|(?:factorial|logarithm|log|sine|cosine|square|cube) of {_FIGURE}{_BARE_END}|\d+ factorial",
        rf"\A(?:please |can you |now )*(?:(?:add|subtract|multiply|divide) (?:up |together )?{_FIGURE}(?:%| percent)? ?(?:,|and|to|by|from|\+"
        rf"|vat|tax)|round \d+\.\d+)|is \d+ (?:a )?(?:prime|even|odd|divisible)",
        rf"\A(?:please |so |hi |hello )*(?:what time|what day|what year|which day|what(?:'s| is) (?:the (?:date|time|day)|today's date)"
        rf"|what date) ?(?:is it|is today|today)?(?: now| today| tomorrow| right now)?{_BARE_END}|how many (?:days|weeks|hours"
        rf"|months) (?:are (?:there )?)?(?:left )?(?:until|till|to) (?:christmas|new year|easter|(?:next |my )?(?:year|summer|birthday))"
        rf"|how many (?:days|weeks|months) (?:are there )?between \d+ \w+ and \d+ \w+{_BARE_END}",
        rf"\A(?:please |can you )*(?:split|divide|share) (?:a bill of |the bill of )?(?:\$|€|£)?{_FIGURE} .{{0,30}}(?:between|among|by|equally)"
        rf"|\A(?:what (?:date"
        rf"|day) is )?\d+ (?:days|weeks|months|hours|minutes) (?:from|after|before) (?:now|today|tomorrow){_BARE_END}",
    ),
    "fr": words_like(
        rf"\d[\d., ]{{0,16}} ?(?:plus|moins|fois|divise(?:e|s)? par|multiplie(?:e|s)? par|puissance|modulo) {_FIGURE}|{_FIGURE} (?:au carre|au cube)",
        rf"\d[\d., ]{{0,16}} ?(?:%|pour cent|pourcents?) (?:de|sur) {_FIGURE}",
        rf"racine (?:carree|cubique) de {_FIGURE}|(?:moitie|tiers|quarts?|cinquiemes?|dixiemes?|double|triple|carre|cube) de {_FIGURE}|(?:somme"
        rf"|produit|moyenne|mediane|factorielle|logarithme) de -?(?!(?:19|20)\d\d\b){_FIGURE},? (?:et )?(?:de )?-?\d+"
        rf"|factorielle (?:de )?{_FIGURE}",
        rf"\A(?:peux-tu |alors |maintenant )*(?:(?:ajoute[rz]?|soustrai\w+|multiplie[rz]?|divise[rz]?) {_FIGURE} ?(?:%|pour cent|et|a|par|de|\+"
        rf"|,)|arrondi\w* \d+[.,]\d+)|\d+ est-il (?:un nombre )?(?:premier|pair|impair|divisible)",
        rf"\A(?:bonjour,? |alors |dis )*(?:quelle heure (?:est-il|il est)|quel jour (?:sommes-nous|on est|est-on)|(?:on est"
        rf"|nous sommes) quel jour|quelle (?:est la )?date (?:sommes-nous|aujourd'hui|d'aujourd'hui))(?: aujourd'hui| maintenant"
        rf"| demain)?{_BARE_END}|combien de (?:jours|semaines|heures|mois) (?:reste-t-il |y a-t-il |il reste )?(?:avant|jusqu'a|d'ici) (?:noel"
        rf"|paques|(?:la |l'|le )(?:nouvel an|ete|rentree|printemps|1er janvier)){_BARE_END}",
        r"\A(?:peux-tu )?(?:partage|repartis|divise)[rz]? \d[\d., ]{0,16} ?(?:€|euros)?.{0,20}entre|\Adans \d+ (?:jours|semaines"
        r"|mois),? (?:quel|on sera|nous)",
    ),
}
_CONVERTED = {
    "en": words_like(
        rf"{_N} ?{_UNIT['en']} (?:in(?:to)?|to|as|is how many|are how many|equals how many|makes how many|in how many) (?:how many )?{_UNIT['en']}{_BARE_END}",
        rf"how (?:many|much) {_UNIT['en']} (?:are |is |make |go )?(?:there )?(?:are )?(?:in|into|to|make|make up) {_N} ?{_UNIT['en']}{_BARE_END}",
        rf"how many days (?:are there |are |does )?(?:in )?(?:january|february|march|april|june|july|august|september|october|november"
        rf"|december)(?: have)?(?: in an? (?:leap )?year)?{_BARE_END}",
        rf"how (?:many|much) {_UNIT['en']} (?:is|are|makes?|equals?) {_N} ?{_UNIT['en']}{_BARE_END}|convert {_N} ?(?:{_UNIT['en']} )?(?:to|into"
        rf"|in) {_UNIT['en']}",
    ),
    "fr": words_like(
        rf"{_N} ?{_UNIT['fr']} (?:en|font combien de|c'est combien de|ca fait combien de|egale combien de|font combien) ?{_UNIT['fr']}{_BARE_END}",
        rf"{_N} ?{_UNIT['fr']},? (?:ca )?fait combien (?:de |d')?{_UNIT['fr']}|combien (?:de |d'|y a-t-il de "
        rf"|font (?:de )?)?{_UNIT['fr']} (?:y a-t-il |il y a |font |fait )?(?:dans|en|pour|font"
        rf"|fait) {_N} ?{_UNIT['fr']}{_BARE_END}",
        rf"converti\w* {_N} ?(?:{_UNIT['fr']} )?en {_UNIT['fr']}|combien (?:font|fait|valent|vaut|pese(?:nt)?"
        rf"|mesure(?:nt)?) {_N} ?{_UNIT['fr']} en {_UNIT['fr']}",
    ),
}
_PROBLEM = {
    "en": re.compile(
        r"(?=.{0,300}\b(?:how (?:long|many|much|far|fast|old|big)|what (?:is|time|share|fraction)|at what|when (?:do|does|will)))(?:if |suppose |imagine )?"
        r"(?:(?:an?|two|one) (?:train|car|bus|plane|boat|cyclist|runner|walker|tank|bath|rectangle|triangle|circle|square|cube|cake|pizza"
        r"|shirt|bat)s? .{0,40}\d"
        r"|\d+ (?P<noun>\w+) .{0,80}\d+ (?P=noun)\b"
        r"|(?:one|an?|each|\d+) \w+ costs? .{0,12}\d.{0,40}\b(?:how much (?:do|does|will|would|is|are))|i (?:have|had|buy|bought"
        r"|am given) (?:\d+|two|three|four|five|six|ten|twelve) \w+.{0,40}\b(?:give|gave|eat|ate|lose|lost|sell|sold"
        r"|spend|spent|each)\b)"
    ),
    "fr": re.compile(
        r"(?=.{0,300}\b(?:combien|quelle? (?:heure|est|distance|vitesse|duree|age|part|fraction|sera)|quand))(?:si |supposons |imagine )?"
        r"(?:(?:une?|deux) (?:train|voiture|bus|avion|bateau|cycliste|coureur|marcheur|reservoir|baignoire|robinet|rectangle|triangle|cercle|carre|cube"
        r"|gateau|pizza|chemise)s? .{0,40}\d|\d+ (?P<noun>\w+) .{0,80}\d+ (?P=noun)\b"
        r"|(?:une?|chaque|\d+) \w+ coute(?:nt)? \d.{0,40}\bcombien (?:cout|fo|fa)|j'(?:ai|avais|achete) (?:\d+|deux|trois|quatre|cinq|six|dix"
        r"|douze) \w+.{0,40}\b(?:donne|mange|perds|vends|depense|chacun|a \d))"
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
