"""Sums and units: what is worked out from the question alone."""

import re

from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording

_MEANING = "is worked out without a document"
_N = r"\d[\d.,]{0,16}(?: \d{3}){0,4}"
_SUM = re.compile(
    rf"{_N}\)? ?%? ?(?:[+*×÷^]|(?<= )[-–/x](?= )|plus|minus|times|moins|fois|(?:divided|multiplied) by|divisee?s? par|multipliee?s? par"
    rf"|to the power of|puissance|(?<=% )(?:of|de)|per ?cent of|pour ?cent de) ?\(?-?{_N}"
    rf"|(?:square|cube) root of {_N}|racine (?:carree|cubique) de {_N}"
)
_AROUND = re.compile(
    r"(?<!\w)(?:what is|what's|how much (?:is|are)|calculate|compute|work out|combien (?:font|fait|ca fait)|que (?:font|vaut)|calcule[rz]?"
    r"|quel(?:le)? est|the|la|please|svp|stp|s'il (?:te|vous) plait|plus|minus|times|moins|fois|divided by|divise par|x)(?!\w)"
)
_UNIT = (
    r"(?:miles?|milles|kilomet(?:re|er)s?|km|met(?:re|er)s?|centimet(?:re|er)s?|cm|millimet(?:re|er)s?|mm|inch(?:es)?|pouces?|f(?:oo|ee)t"
    r"|pieds?|yards?|acres?|hectares?|pounds?|lbs?|livres?(?: anglaises?)?|ounces?|oz|onces?|kilo(?:gram|gramme)?s?|kg|gram(?:me)?s?"
    r"|tons?|tonnes?|gallons?|pints?|pintes?|lit(?:re|er)s?|(?:degr(?:ee|e)s? )?(?:celsius|fahrenheit)|seconde?s?|minutes?|hours?|heures?"
    r"|days?|jours?|weeks?|semaines?|months?|mois|years?|an(?:nee)?s?)"
)
_AMOUNT = r"(?:\d[\d .,]{0,16}|an? |une? |one |two |deux )"
_CONVERTED = re.compile(
    rf"(?:(?:what is|how much is|please convert|convert|convertis|convertir|combien (?:font|fait)) )?{_AMOUNT} ?{_UNIT}"
    rf" (?:in|into|to|en|font combien de) {_UNIT}"
    rf"|how many {_UNIT} (?:are |make )?(?:there )?(?:in )?{_AMOUNT} ?{_UNIT}"
    rf"|combien (?:de |d'){_UNIT} (?:y a-t-il |font )?(?:dans|en) {_AMOUNT} ?{_UNIT}"
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
    converted = _CONVERTED.fullmatch(wording.plain.rstrip(" ?.!"))
    return [wording.sign(converted, _MEANING)] if converted else []
