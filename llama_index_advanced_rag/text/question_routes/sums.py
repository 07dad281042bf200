"""Sums and units: what is worked out from the question alone."""

import re

from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording

_MEANING = "is worked out without a document"
_WORD = (
    "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|a hundred|hundred"
    "|thousand|un|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|trente|quarante|cinquante|soixante|cent|mille)"
)
_N = rf"(?:(?:[$€£] ?)?\d[\d.,]{{0,16}}(?: \d{{3}}){{0,4}}(?: ?[$€£])?|{_WORD}(?:[ -]{_WORD}){{0,2}}(?!\w))"
_SUM = re.compile(
    rf"(?<!\w){_N}\)? ?%? ?(?:[+*×÷^]|(?<= )[-–/x](?= )|plus|minus|times|moins|fois|(?:divided|multiplied) by|divisee?s? par|multipliee?s? par"
    rf"|to the power of|puissance|mod(?:ulo)?|(?<=% )(?:of|de|off|on|sur)|per ?cent (?:of|off)|pour ?cents? (?:de|sur)) ?\(?-?{_N}"
    rf"|(?:square|cube) root of {_N}|racine (?:carree|cubique) de {_N}|(?<!\w){_N} (?:squared|cubed|au carre|au cube)"
    rf"|(?:half|a third|a quarter|two thirds|three quarters|double|twice|triple|the square|the cube|the factorial) of {_N}"
    rf"|(?:la moitie|le tiers|le quart|le double|le triple|le carre|le cube|la factorielle) de {_N}"
    rf"|(?:sum|product|average|mean|difference) (?:of|between) {_N}(?:,? (?:and )?{_N}){{1,4}}"
    rf"|(?:somme|produit|moyenne|difference) (?:de|entre) {_N}(?:,? (?:et )?(?:de )?{_N}){{1,4}}"
    rf"|(?:add|subtract|multiply|divide) {_N} (?:and|to|from|by) {_N}|(?:ajoute|additionne|soustrais|multiplie|divise)[rz]? {_N} (?:et|a|de|par) {_N}"
    rf"|round \d+\.\d+|arrondi[st]? \d+[.,]\d+|is \d+ (?:a )?(?:prime|even|odd)(?: number)?|\d+ est-il (?:un nombre )?(?:premier|pair|impair)"
    rf"|(?:is |which is )?(?:bigger|larger|greater|smaller)[,:]? \d[\d./]{{0,16}} or \d[\d./]{{0,16}}"
)
_AROUND = re.compile(
    r"(?<!\w)(?:what is|what's|what are|how much (?:is|are)|can you|calculate|compute|work out|solve|combien (?:font|fait|ca fait)|que (?:font|fait|vaut)"
    r"|calcule[rz]?|peux-tu|calculer|ca fait combien|c'est combien|quel(?:le)? est|the|la|le|and|result of|resultat de|please|svp|stp|s'il (?:te|vous) plait"
    r"|plus|minus|times|moins|fois|divided by|divise par|x|to|a|one|two|three|deux|trois|decimals?|decimal places|decimales?)(?!\w)"
)
_CLOCK = re.compile(
    r"(?:(?:please|hi|hello|bonjour)[ ,]+)*(?:what time is it|what day is (?:it|today)|what(?:'s| is) (?:the (?:date|time|day)(?: today)?|today's date)"
    r"|what year is it|quelle heure (?:est-il|il est)|(?:il est|c'est) quelle heure|quel jour (?:sommes-nous|on est|est-on)|(?:on est|nous sommes) quel jour"
    r"|quelle est la date(?: d'aujourd'hui| aujourd'hui)?)(?: now| today| right now| maintenant| aujourd'hui)?(?:,? (?:please|s'il (?:te|vous) plait))?"
)
_UNIT = (
    r"(?:miles?|milles|kilomet(?:re|er)s?|km(?:/h)?|met(?:re|er)s?|centimet(?:re|er)s?|cm|millimet(?:re|er)s?|mm|inch(?:es)?|pouces?|f(?:oo|ee)t"
    r"|pieds?|yards?|acres?|hectares?|square (?:met(?:re|er)s|feet|miles)|metres carres|m²|pounds?|lbs?|livres?(?: anglaises?)?|ounces?|oz|onces?|stones?"
    r"|kilo(?:gram|gramme)?s?|kg|gram(?:me)?s?|tons?|tonnes?|gallons?|pints?|pintes?|quarts?|cups?|tablespoons?|teaspoons?|tasses?"
    r"|(?:milli|centi|deci)?lit(?:re|er)s?|ml|cl|dl|(?:degr(?:ee|e)s? )?(?:celsius|fahrenheit|kelvin|centigrade)|°[cf]"
    r"|seconde?s?|minutes?|hours?|heures?|days?|jours?|weeks?|semaines?|months?|mois|years?|an(?:nee)?s?|decades?|centur(?:y|ies)|siecles?|dozens?|douzaines?"
    r"|knots?|nœuds?|mph|(?:kilo|mega|giga)?(?:byte|octet)s?|mb|gb|dollars?|euros?|binary|binaire|hexadecimal|roman numerals?|chiffres romains|degr(?:ee|e)s?"
    r"|radians?|calories|joules?|(?:kilo)?watts?|horsepower|chevaux)"
)
_AMOUNT = r"(?:\d[\d .,]{0,16}|half an? |an? |une? |one |two |three |four |five |six |ten |twelve |deux |trois |quatre |cinq |six |dix |douze |cent |mille )"
_CONVERTED = re.compile(
    r"(?:(?:please|hi|hello|bonjour|can you|peux-tu)[ ,]+)*"
    rf"(?:(?:(?:what is|what's|how much is|convert|convertis|convertir|combien (?:font|fait|valent|vaut)) )?{_AMOUNT} ?(?:{_UNIT} )?"
    rf"(?:in|into|to|en|(?:font|fait|c'est|ca fait) combien (?:de |d')?|is how many|equals how many) ?{_UNIT}"
    rf"|(?:what is |what's |convert )?{_AMOUNT} ?{_UNIT} (?:in|to|en) {_UNIT}"
    rf"|how (?:many|much) {_UNIT} (?:are |is |make |go )?(?:there )?(?:are )?(?:in(?:to)? |to )?{_AMOUNT} ?{_UNIT}"
    rf"|combien (?:y a-t-il )?(?:de |d'){_UNIT} (?:y a-t-il |il y a |font |fait )?(?:dans |en |pour )?{_AMOUNT} ?{_UNIT})"
    r"(?:,? (?:please|s'il (?:te|vous) plait|svp|stp))?"
)


def sums_in(wording: Wording) -> list[Sign]:
    """What is to be worked out, if nothing else stands in the question; figures and signs are read in any language.

    Example:
        >>> from llama_index_advanced_rag.text.question_routes.wording import read_wording
        >>> [str(sign) for sign in sums_in(read_wording("What is 15 % of 80?"))], sums_in(read_wording("What is 15 % of 80 seats?"))
        (['"15 % of 80" is worked out without a document'], [])
    """
    found = _SUM.search(wording.plain)
    if found and not any(map(str.isalpha, _AROUND.sub(" ", _SUM.sub(" ", wording.plain)))):
        return [wording.sign(found, _MEANING)]
    asked = wording.plain.rstrip(" ?.!")
    if converted := _CONVERTED.fullmatch(asked):
        return [wording.sign(converted, _MEANING)]
    clock = _CLOCK.fullmatch(asked)
    return [wording.sign(clock, "asks the time or the date")] if clock else []
