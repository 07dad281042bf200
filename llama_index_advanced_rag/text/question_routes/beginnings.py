"""Where the question itself may begin: at once, behind a greeting, behind `could you tell me`, behind a comma."""

import re

from llama_index_advanced_rag.text.question_routes.wording import Wording, words_like

_OPENING = {
    "en": re.compile(r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?|thank you|sorry|please|ok|so|and)(?: there| again| all)?[ ,;:.!-]+)+"),
    "fr": re.compile(r"(?:(?:bonjour|bonsoir|salut|merci|pardon|s'il (?:te|vous) plait|svp|stp|ok|alors|et|donc)(?: a tous| madame| monsieur)?[ ,;:.!-]+)+"),
}
_LEAD_IN = {
    "en": words_like(r"""
        (?:can|could|would|will) you(?: please)? (?:tell|explain|show|remind|give|find|help)(?: me| us)?
        (?:i|we|would|and)(?:'d| would)? (?:like|want|need) to (?:know|find out|understand)|i(?:'m| am)? wonder(?:ing)?
        do you know|please|(?:tell|remind|show|give) (?:me|us)|let me know|find out|find|look up|explain|describe|name|define
        """),
    "fr": words_like(r"""
        (?:peux|pourrais|pourriez|pouvez)-(?:tu|vous)(?: me| nous)? (?:dire|indiquer|expliquer|donner|preciser|rappeler|trouver)
        (?:tu peux|vous pouvez) (?:me )?(?:dire|indiquer|expliquer|donner|trouver)|merci de (?:m'|me )?\w+
        (?:je |j')(?:voudrais|souhaite|souhaiterais|veux|cherche a|aimerais|me demande|cherche)(?: (?:savoir|connaitre|comprendre))?
        (?:dis|indique|explique|rappelle|precise|donne|trouve|cherche|montre|decris)[rz]?(?:-moi|-nous)?|sais-tu|savez-vous
        """),
}
_PLEASE = re.compile(r"[ ,:]+(?:(?:please|s'il (?:te|vous) plait|svp|stp)[, ]+)*")
_LATEST_LEAD_IN = 200
_PAUSE = re.compile(r"[,;:.?!] ")
_READ, _MOST = 300, 8


def beginnings_of(wording: Wording) -> list[int]:
    """Places where the question itself may begin, the likeliest first.

    Example:
        >>> from llama_index_advanced_rag.text.question_routes.wording import read_wording
        >>> wording = read_wording("Hello, could you tell me who wrote it?")
        >>> [wording.written[start : start + 5] for start in beginnings_of(wording)]
        ['could', 'who w']
    """
    opening = wording.begins(_OPENING)
    begin = opening.end() if opening and opening.end() < len(wording.plain) else 0
    places = [begin]
    lead_in = wording.find(_LEAD_IN, begin)
    if lead_in and lead_in.start() < _LATEST_LEAD_IN and (pause := _PLEASE.match(wording.plain, lead_in.end())):
        places.append(pause.end())
    places.extend(match.end() for match in _PAUSE.finditer(wording.plain, begin, begin + _READ))
    return list(dict.fromkeys(places))[:_MOST]
