"""Bridges: what a question describes through something else, as in `the mother of the director of`, `le pays où siège`."""

import re
from collections.abc import Iterator, Sequence

from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.nouns import ENTITY, RELATIVE
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_MEANING = "describes one thing through another"
_ANY = {language: f"(?:{RELATIVE[language]}|{ENTITY[language]})" for language in ("en", "fr")}
_PRONOUN = {
    "en": "(?:who|whom|whose|where|(?:in|for|under|on|at|by|from|to|with|of|about|through|after|before) (?:which|whom|whose))",
    "fr": r"(?:qui|que|qu'|dont|où|(?:dans|sur|pour|avec|par|sous|chez|a|de|en) (?:lequel|laquelle|lesquel(?:le)?s|qui)|auquel|auxquel(?:le)?s|duquel)",
}
_DONE = {
    "en": (
        r"(?:\w+ed|written|built|made|run|led|born|known|sold|chosen|in charge|responsible|starring|featuring|that)"
        " (?:in|by|for|of|at|as|on|to|from|with|the)"
    ),
    "fr": (
        "(?:ecrit|realise|fonde|construit|publie|fabrique|edite|compose|peint|dirige|cree|gere|situe|base|utilise|employe|cite|mentionne|nomme|elu|choisi"
        "|invente|decouvert|developpe|charge|responsable|ne|connu|designe|mandate|retenu)e?s? (?:par|a|en|dans|pour|de|du|des|d'|sur)"
    ),
}
_OF = {
    "en": words_like(rf"{RELATIVE['en']}(?: \w+)? (?:of|behind|for) (?!life\b|time\b|course\b|the year\b|all\b)"),
    "fr": words_like(rf"{RELATIVE['fr']}(?: (?!de\b|du\b|des\b|qui\b|que\b|où\b|dont\b)\w+)? (?:de l'|du|des|de la|de|d')(?! ?(?:quel|quelle|combien)\b)"),
}
_OWNED = {"en": re.compile(rf"(?<![\w-])(?!(?:what|who|where|it|that|let)')[\w-]{{1,40}}'s? (?:[\w-]+ ){{0,2}}?{_ANY['en']}(?!\w)")}
_CLAUSE = {
    "en": words_like(
        rf"{_ANY['en']}(?: (?!who|that|which|where)\w+){{0,2}}?,? {_PRONOUN['en']}\b",
        rf"(?:the|an?|that|those|our) (?:[\w-]+ ){{0,2}}?{_ANY['en']} (?:(?:that|which) \w+|(?:he|she|it|they|we) \w+|{_DONE['en']})",
        r"whoever|the one (?:who|that)|(?<=\bof the )\w+ who",
        r"(?:the|an?) (?!(?:place|cases?|way|time|point|reason|day|moment|section|chapter|page)\b)[\w-]+ (?:where|whose)",
        r"(?<=\bthe )\w+ (?:used|made|built|written|painted|published|designed|sold|produced) (?:in|by|for)",
    ),
    "fr": words_like(
        rf"{_ANY['fr']}(?:(?: de (?!la\b|l'|cette\b)| )(?!qui\b|que\b|dont\b|où\b|de\b|du\b|des\b|d')\w+){{0,2}}?,? {_PRONOUN['fr']}",
        r"(?:celui|celle|ceux|celles) (?:qui|que|dont)|(?:(?<=\bdu )|(?<=\bde la )|(?<=\bde l'))\w+ qui",
        r"(?:l'|la |le |du |au |une? )(?!(?:moment|jour|cas|temps|fois|instant|mesure|facon|maniere|chapitre|section|page|endroit|annee)\b)\w+ (?:où|dont)",
        rf"{_ANY['fr']} (?:(?!sont\b|est\b|a\b|ont\b|fut\b|ete\b)\w+ )?{_DONE['fr']}",
    ),
}
_NO_PRONOUN = re.compile(rf"(?P<asked>(?:was|is|were|are|did|does) )?(?<!\w)(?<!where )(?<!which )(?<!that )(?<!when )(?:the|an?) {ENTITY['en']} \Z")
_VERB = re.compile(r" (?:(?P<done>\w{2,}ed|built|made|led|won)|is|was|were|has|had|wrote|met|went|left|grew|came|died|\w{3,}s)(?: \w|\?|\Z)")
_ASKED = {
    "en": re.compile(
        rf"(?:(?:who|which|what)(?: is| was| are| were|'s)?|find|name|give me|tell me) (?:the |an? )?(?:names? of the )?(?:(?!of\b|in\b|for\b"
        rf"|the\b)[\w-]+ )??"
        rf"(?:{RELATIVE['en']}(?: [\w-]+)? (?:of|behind)|{_ANY['en']} (?:{_PRONOUN['en']}|that|which))\b(?!.{{0,40}}'s )"
        rf"|(?:the )?{RELATIVE['en']} of [^?,:]{{3,40}}\??\Z"
    ),
    "fr": re.compile(
        rf"(?:(?:qui|quels?|quelles?) (?:est|etait|sont|fut|etaient)|comment (?:s'appel\w+|se nomm\w+)|(?:trouve|donne|indique|cite)[rz]?(?:-moi)?) "
        rf"(?:le |la |l'|les )?(?:nom (?:du |de la |de l'|des ))?(?:(?!du\b|de\b|des\b)[\w-]+ )??"
        rf"{_ANY['fr']}(?: (?!de\b|du\b)\w+)? (?:de|du|des|d'|qui|où|dont)"
        rf"|(?:le |la |l')?{RELATIVE['fr']} (?:de|du|des|d')[^?,:]{{3,40}}\??\Z"
    ),
}
_NAMED = {"en": re.compile(rf" (?:[\w-]+ )?{RELATIVE['en']}(?!\w)(?!['-])")}
_HOLDS = {
    "en": words_like(rf"(?:has|had|have|is|by|from|made|wrote) (?:an? |by an? )?(?:[\w-]+ ){{0,2}}?{_ANY['en']}"),
    "fr": words_like(rf"(?:a|avait|ont|est|par) (?:une? )?(?:\w+ ){{0,2}}?{_ANY['fr']}"),
}
_BACK = {
    "en": re.compile(
        rf"[.;:,] .{{0,60}}?\b(?:(?:that|this) (?:same )?{_ANY['en']}"
        r"|(?:what|which|where|who|when|how)\b.{0,60}?(?<!\w)(?:its|his|her|their|it|they|he|she))\b"
    ),
    "fr": re.compile(
        rf"[.;:,] .{{0,60}}?\b(?:(?:cet?|cette) {_ANY['fr']}"
        r"|(?:quel(?:le)?s?|où|qui|quand|comment|combien)\b.{0,60}?(?<!\w)(?:elle|il|ses|son|sa))\b"
    ),
}
_VEILED = {
    "en": words_like(
        rf"(?:the|an?|that) (?!(?:place|case|way|time|point|reason|day)\b)(?:[\w-]+ ){{0,2}}?[\w-]+ (?:{_PRONOUN['en']}|that|which) \w+"
        rf"|(?:the|an?) (?:[\w-]+ ){{0,2}}?[\w-]+ (?:he|she|they) \w+"
    ),
    "fr": words_like(rf"(?:l'|la |le |les |un |une |du |au |des )(?!(?:moment|jour|cas|fois|facon)\b)[\w-]+ {_PRONOUN['fr']} ?\w+"),
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
    taken.extend(_clauses_without_pronoun(wording, names))
    for _, end in names:
        match = wording.begins(_NAMED, end)
        if match and not any(first < match.end() and match.start() < last for first, last in taken):
            taken.append(match.span())
    signs = [Sign(wording.written[start:end].strip(" ,;:'"), _MEANING) for start, end in sorted(taken)]
    if signs and _asks_for_the_first(wording):
        return signs[1:]
    if not taken and wording.find(_HOLDS) and (back := wording.find(_BACK)):
        return [wording.sign(back, "asks about something that the question has described before")]
    return signs


def _clauses_without_pronoun(wording: Wording, names: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The country Ada Quill comes from; not `was the company Acme founded`."""
    for start, end in names if "en" in wording.languages else ():
        described, verb = _NO_PRONOUN.search(wording.plain, max(0, start - 30), start), _VERB.match(wording.plain, end)
        if described and verb and not (described["asked"] and verb["done"]):
            yield described.start(), end


def _asks_for_the_first(wording: Wording) -> bool:
    """Whether what is described is itself asked for, at the beginning or behind `could you tell me`."""
    return any(wording.begins(_ASKED, start) for start in beginnings_of(wording))


def is_veiled(wording: Wording) -> bool:
    """Whether something may be described through something else: any noun with a relative clause."""
    return wording.find(_VEILED) is not None and not _asks_for_the_first(wording)
