"""Where the question itself may begin: at once, behind a greeting, behind `could you tell me`, behind a comma."""

import re

from llama_index_advanced_rag.text.question_routes.wording import Wording, words_like

_OPENING = {
    "en": re.compile(
        r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|dear \w+|thanks?|thank you|sorry|please|excuse me|ok|okay|so|and|well"
        r"|quick question|question)(?: there| again| all| everyone| team| so much)?[ ,;:.!-]+)+"
    ),
    "fr": re.compile(
        r"(?:(?:bonjour|bonsoir|salut|coucou|hello|merci|pardon|excusez-moi|s'il (?:te|vous) plait|svp|stp|ok|alors|et|donc|dis"
        r"|dites)(?: a tous| madame| monsieur| encore| beaucoup)?[ ,;:.!-]+)+"
    ),
}
_LEAD_IN = {
    "en": words_like(
        r"(?:can|could|would|will) (?:you|someone|anyone)(?: please| kindly)? (?:tell|explain|show|remind|let|give|find|help|say|look up"
        r"|check)(?: to)?(?: me| us)?(?: know| out| understand)?(?: the)?",
        r"(?:i|we|would|and|to)(?:'d| would)? (?:like|want|need|have|love) to (?:know|find out|understand|learn|check)",
        r"(?:i|we)(?:'m| am| was| were)? wonder(?:ing)?",
        r"do you (?:happen to )?know|any idea|wondering|not sure",
        r"please|tell (?:me|us)|let me know|remind me|find out|find|look up|explain|check|show (?:me|us)|give (?:me|us)|describe|state|name|define|indicate",
    ),
    "fr": words_like(
        r"(?:peux|peut|pourrais|pourrait|pourriez|pouvez|veuillez)(?:-tu|-vous|-on)?(?: s'il (?:te|vous) plait,?)?(?: me| m'| nous)? ?(?:dire"
        r"|indiquer|expliquer|donner|preciser|rappeler|trouver|montrer|renseigner)",
        r"(?:tu peux|vous pouvez) (?:me |m')?(?:dire|indiquer|expliquer|donner|preciser|rappeler|trouver)",
        r"(?:je |j')(?:voudrais|souhaite|souhaiterais|veux|cherche a|dois|aimerais|me demande|cherche|ai besoin de)(?: bien)?(?: (?:savoir"
        r"|connaitre|comprendre|verifier|trouver))?",
        r"(?:dis|dites|indique|indiquez|explique|expliquez|rappelle|rappelez|precise|precisez|donne|donnez|trouve|trouvez|cherche|cherchez"
        r"|montre|montrez|decris|decrivez)(?:[ -]moi|[ -]nous)?",
        r"sais-tu|savez-vous|est-ce que (?:tu sais|vous savez)|une idee de|merci de (?:m'|me )?\w+",
    ),
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
