"""Bridges: what a question describes through something else, as in `the mother of the director of`, `le pays où siège`."""

import re
from collections.abc import Sequence

from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.nouns import ENTITY, RELATIVE
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_MEANING = "describes one thing through another"
_ANY = {language: f"(?:{RELATIVE[language]}|{ENTITY[language]})" for language in ("en", "fr")}

_DONE_EN = (
    "used|serviced|written|directed|founded|built|owned|published|made|designed|composed|created|painted|produced|played|run|managed|led"
    "|hired|located|based|born|responsible|in charge|known|named|cited|mentioned|described|featured|chosen|appointed|elected|awarded"
    "|signed|supplied|insured|commissioned|developed|discovered|invented|starring|featuring|that"
)
_DONE_FR = (
    "utilise|ecrit|realise|fonde|construit|publie|fabrique|edite|compose|peint|dirige|cree|gere|situe|base|employe|cite|mentionne|nomme"
    "|elu|choisi|invente|decouvert|developpe|charge|responsable|ne|connu|designe|mandate|retenu"
)

_OF = {
    "en": words_like(rf"{RELATIVE['en']}(?: \w+)? (?:of|behind|for) (?!life\b|time\b|course\b|the year\b|all\b)"),
    "fr": words_like(rf"{RELATIVE['fr']}(?: (?!de\b|du\b|des\b|qui\b|que\b|où\b|dont\b)\w+)? (?:de l'|du|des|de la|de|d')(?! ?(?:quel|quelle|combien)\b)"),
}
_OWNED = {"en": re.compile(rf"(?<![\w-])[\w-]{{1,40}}'s? (?:[\w-]+ ){{0,2}}?{RELATIVE['en']}(?!\w)")}
_CLAUSE = {
    "en": words_like(
        rf"{_ANY['en']}(?: (?!who|that|which|where)\w+){{0,2}}?,? (?:who|whom|whose|where|(?:in|for|under|on|at|by|from|to|with|of|about"
        rf"|through|beside|near|behind|along|within|over|after|before) (?:which|whom|whose))\b",
        rf"(?:the|an?|that|those|our) (?:[\w-]+ ){{0,2}}?{_ANY['en']} (?:that|which) \w+",
        rf"{_ANY['en']} behind|(?<=\bof the )\w+ who|(?<=\bthe )\w+ (?:used|made|built|written|painted|published|designed|sold|produced) (?:in"
        rf"|by|for)|whoever|(?:the|that) one (?:who|that)|(?:the|a) (?!place\b|case\b|cases\b|way\b|time\b"
        rf"|point\b|reason\b|day\b"
        rf"|moment\b|section\b|chapter\b|page\b)[\w-]+ (?:where|whose)",
        rf"{_ANY['en']} (?:{_DONE_EN}) (?:in|by|for|of|at|as|on|to|from|with|the)\b",
    ),
    "fr": words_like(
        rf"{_ANY['fr']}(?:(?: de (?!la\b|l'|cette\b)| )(?!qui\b|que\b|dont\b|où\b|de\b|du\b|des\b|d')\w+){{0,2}}?,? (?:qui|que|qu'|dont|où"
        rf"|(?:dans|sur|pour|avec|par|sous|chez|a|de|en) (?:lequel|laquelle|lesquels|lesquelles|qui)|auquel|auxquel(?:le)?s|duquel"
        rf"|desquel(?:le)?s)",
        r"(?:celui|celle|ceux|celles) (?:qui|que|dont)|(?:(?<=\bl')|(?<=\ble )|(?<=\bla )|(?<=\bdu )|(?<=\bau )|(?<=\bun )"
        r"|(?<=\bune ))(?!moment\b|jour\b|cas\b|temps\b|fois\b|instant\b|mesure\b|facon\b|maniere\b|chapitre\b|section\b|page\b|endroit\b"
        r"|annee\b)\w+ (?:où|dont)",
        r"(?:(?<=\bdu )|(?<=\bde la )|(?<=\bde l'))\w+ qui",
        rf"{_ANY['fr']} (?:(?!sont\b|est\b|a\b|ont\b|etai|fut\b|furent\b|ete\b)\w+ )?(?:{_DONE_FR})e?s? (?:par|a|en|dans|pour|de|du|des|d'|sur)",
    ),
}
_ASKED = {
    "en": re.compile(
        rf"(?:who|which|what)(?: is| was| are| were|'s| else (?:is|was)) (?:the |a |an )?(?:names? of the )?(?:(?!of\b|in\b|for\b"
        rf"|the\b)[\w-]+ ){{0,2}}?{_ANY['en']}(?: [\w-]+)? (?:of|behind|for|who|that|which|whose|where|in)\b"
        rf"|(?:find|name|give|tell|show)(?: me| us)? (?:the )?(?:names? of the )?(?:[\w-]+ )?{RELATIVE['en']} (?:of|behind|for)\b|(?:the "
        rf"|names? of the )?(?:[\w-]+ )?{RELATIVE['en']} of\b(?=[^?,:]{{3,40}}\??$)"
    ),
    "fr": re.compile(
        rf"(?:(?:qui|quels?|quelles?) (?:est|etait|sont|fut|etaient)|comment (?:s'appel\w+|se nomm\w+)) (?:le |la |l'|les )?(?:nom (?:du "
        rf"|de la |de l'|des ))?(?:(?!du\b|de\b|des\b)[\w-]+ ){{0,2}}?{_ANY['fr']}(?: (?!de\b|du\b)\w+)? (?:de|du|des|d'|qui|où|dont)"
        rf"|(?:trouve|donne|indique|cite|nomme)[rz]?(?:-moi|-nous)? (?:le |la |l'|les )?(?:nom (?:du |de la |de l'"
        rf"|des ))?(?:\w+ )?{RELATIVE['fr']} (?:de|du|des|d')|(?:le |la |l'|nom (?:du |de la |de l'))?{RELATIVE['fr']} (?:de|du|des"
        rf"|d')(?=[^?,:]{{3,40}}\??$)"
    ),
}
_AT = re.compile(
    r"(?<!\w)the (?:country|city|town|village|island|school|university|company|firm|book|film|novel|ship|house|hospital|newspaper|club|band|lighthouse|hotel"
    r"|street|region|state|college) \Z"
)
_DOING = re.compile(r" (?:\w+ed|was|were|fled|wrote|had|met|went|left|grew|lives?|works?|comes?|came|built|won|died|taught|ran|sang|plays?) ?")
_NAMED = {
    "en": re.compile(rf" (?:[\w-]+ )?{RELATIVE['en']}(?!\w)(?!['-])"),
}
_BACK = {
    "en": re.compile(
        r"[;.:,] (?:so |and |but )?(?:.{0,30}?)(?:what|which|where|who|when|how|is|does|did|in)\b.{0,60}?(?<!\w)(?:that (?:same )?\w+"
        r"|this (?:firm|person|company|man|woman)|its|his|her|their|it|they|he|she)(?!\w)"
    ),
    "fr": re.compile(
        r"[;.:,] (?:et |mais |alors )?(?:.{0,30}?)(?:quel|quelle|quels|quelles|où|qui|quand|comment|combien|elle"
        r"|il)\b.{0,60}?(?<!\w)(?:-t-elle|-t-il|-elle|-il|elle|il|ses|son|sa|celui-ci|celle-ci|cette \w+|ce \w+)(?!\w)"
    ),
}
_HOLDS = {
    "en": words_like(rf"(?:has|had|have|is|by|from|made|wrote) (?:an? |by an? )?(?:[\w-]+ ){{0,2}}?{_ANY['en']}"),
    "fr": words_like(rf"(?:a|avait|ont|est|par) (?:une? )?(?:\w+ ){{0,2}}?{_ANY['fr']}"),
}


def bridges_in(wording: Wording, names: Sequence[tuple[int, int]]) -> list[Sign]:
    """The bridges of a question, one each, without the one that is itself asked for (`who is the author of`).

    Args:
        wording: the question.
        names: start and end of each name in it.
    """
    taken: list[tuple[int, int]] = []
    for patterns in (_OF, _OWNED, _CLAUSE):
        for match in wording.find_all(patterns):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
    for start, end in names:
        described = _AT.search(wording.plain, max(0, start - 20), start)
        if described and _DOING.match(wording.plain, end):
            taken.append((described.start(), end))
        match = wording.begins(_NAMED, end)
        if match and not any(first < match.end() and match.start() < last for first, last in taken):
            taken.append(match.span())
    signs = [Sign(wording.written[start:end].strip(" ,;:'"), _MEANING) for start, end in sorted(taken)]
    if signs and _asks_for_the_first(wording):
        signs = signs[1:]
    if not taken and wording.find(_HOLDS) and (back := wording.find(_BACK)):
        return [wording.sign(back, "asks about something that the question has described before")]
    return signs


def _asks_for_the_first(wording: Wording) -> bool:
    """Whether what is described is itself asked for, at the beginning or behind `could you tell me`."""
    return any(wording.begins(_ASKED, start) for start in beginnings_of(wording))
