"""One thing asked of one name or term: definitions, how-to, rules, and when, where, who, why of one thing."""

import re
from collections.abc import Sequence

from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.bridges import is_veiled
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like
from llama_index_advanced_rag.text.span_rules.word_list import words_of

_DEFINED = {
    "en": words_like(r"""
        what(?:'s| is| are) an? |what(?:'s| is| are| does) (?:the )?(?:meaning|definition|purpose|term|word|difference)
        what (?:does|do) .{2,60} (?:mean|stand for)|define|definition of|meaning of|difference between
        """),
    "fr": words_like(r"""
        qu'est-ce (?:que|qu')|c'est quoi|que (?:signifie|veut dire|designe|recouvre)|qu'(?:entend|appelle-t)-on
        (?:signification|definition|sens) (?:de|du|d'|des)|differences? entre|quelle est la difference
        """),
}
_HOW_TO = {
    "en": words_like(r"""
        how (?:do|does|did|can|could|should|would|must|may|is|are|was|were|to)
        (?:steps?|procedure|instructions|ways?) (?:to|for)
        """),
    "fr": words_like(r"""
        comment|que (?:faire|dois-je|doit-on|faut-il)
        (?:demarche|procedure|marche a suivre|etapes?|mode d'emploi) (?:pour|de|d')
        """),
}
_HOW_MUCH = {
    "en": words_like(r"(?:for |after |within )?how (?:long|often|many|much|far|old|tall|large|big|deep|high|hot|soon|early|late|fast|heavy|wide)"),
    "fr": words_like(r"(?:a |de |en |depuis |pendant |sous |dans )?combien"),
}
_ASKED = {
    "en": words_like(r"""
        (?:who|whom|whose|when|where|why|wh?ich|what)(?:'s)?
        (?:at|in|on|to|from|by|with|for|under|after|within|until|since) (?:what|which|whom|when)
        """),
    "fr": words_like(r"""
        qui|que|qu'|quoi|quel(?:le)?s?|quand|où|pourquoi|d'où
        (?:a|de|dans|en|pour|par|sur|avec|sous|depuis|jusqu'a|aupres de|chez|contre|a partir de) (?:qui|quoi|quel(?:le)?s?|quand|où)
        """),
}
_RULE = {
    "en": words_like(
        r"(?:may|must|should|shall|do|does|did|is|are|was|were|am|has|have)(?: not)? \w+"
        r"|(?:can|could|will|would) (?!you\b)\w+|(?:whether|if) (?:i|we|the|an?|it)"
    ),
    "fr": words_like(r"""
        est-ce (?:que|qu')|(?:peut|doit|faut|puis|dois|ai|a-t|y a-t|existe-t|suis|avons|devons|pouvons|faudra-t)-(?:on|il|elle|je|nous|ils|elles)
        (?:l[ae] |les |l'|mon |ma |mes |une? |nos |notre |ce |cette |[\w']+ )[^,;:.?]{2,80}?-(?:t-)?(?:il|elle|ils|elles|on)
        """),
}
_WANTED = {
    "en": words_like(r"""
        (?:the )?(?:[\w-]+ ){0,2}(?:number|address|e-?mail|phone|contact|date|deadline|price|cost|fee|hours|rules?|conditions?|limit|amount)
        """),
    "fr": words_like(r"""
        (?:le |la |l'|les )?(?:[\w-]+ ){0,2}(?:numero|adresse|mail|telephone|contact|coordonnees|date|delai|prix|tarif|horaires?|regles?|conditions?|montant)
        """),
}
_KINDS = (
    (_DEFINED, "asks what something is"),
    (_HOW_TO, "asks how something is done"),
    (_HOW_MUCH, "asks how much or how long"),
    (_ASKED, "asks for one fact"),
    (_RULE, "asks whether something holds"),
    (_WANTED, "asks for one fact"),
)
_JOINED = {
    "en": words_like(r"""
        compar(?:e[ds]?|ing|isons?)|contrast\w*|versus|vs\.?|both|same(?! (?:time|day))|(?<!later )than|similar\w*|alike|differs?|rather|instead
        respectively|each other|among|better|worse
        relat(?:ed|ion|ions|ionship)|connection|connected|linked|list|all of|each of|every one|overview|chronolog\w*|timeline
        contracts|reports|policies|leases|agreements|suppliers|studies|novels|differences?(?! between)|(?:do|did|does) to|adaptation|(?:first|other) one
        most|(?:high|larg|old|young|long|short|bigg|small|earli|lat|cheap)est|changed|evolved?|evolution|trends?|over time|consequences?|impact|effects? of
        """),
    "fr": words_like(r"""
        compar(?:e[rsz]?|aisons?)|versus|vs\.?|memes?(?! (?:temps|jour|moment))|similaires?|ressembl\w*|different(?:es?)?s?|plutot|respectivement
        parmi|chacune?s?|mieux
        relations?|liens?|relie\w*|liste|tou(?:s|tes) (?:les|nos|ces)|ensemble des|chronologie
        contrats|rapports|baux|accords|fournisseurs|romans|differences?(?! entre)|adaptation|(?:le|la|les) (?:plus|moins)
        a change|ont change|evolue\w*|evolution|tendances?|au fil|consequences?|impacts?|repercussions?
        """),
}
_PLACE = {
    "en": words_like("(?:(?:sub)?sections?|chapters?|clauses?|annex(?:es)?|appendix|appendices|paragraphs?|footnotes?|exhibits?)(?! (?:of|in))"),
    "fr": words_like(r"(?:(?:sous-)?sections?|chapitres?|clauses?|annexes?|paragraphes?|alineas?|preambule)(?! (?:de|du|des)\b)"),
}
_OF = {"en": re.compile(r" of (?!the term|course)"), "fr": re.compile(r" (?:du|de la|des) | d'| de l'| de ")}
_MOST_NAMES, _MOST_LINKS, _MOST_WORDS = 1, {"en": 1, "fr": 3}, 30
_WORD = re.compile(r"[^\W_]+")
_ITS = words_of("it he she they this that il elle ils elles ça ca cela")
_NO_TERMS = _ITS | words_of("""
    what which who whom whose when where why how much many long is are was were do does did can could should has have had be happen mean
    its him her his them their these those the a an i we you to in on of for there and or so then
    qui que qu quoi quel quelle quels quelles quand ou où comment combien pourquoi est ce sont etait a ont on y t c s n l d
    le la les de du des un une en et ne pas je tu nous vous faire fait cette ces
    """)


def single_in(wording: Wording, names: int) -> list[Sign]:
    """The sign that one thing is asked of one name or term, which is not itself described through something else.

    Args:
        wording: the question.
        names: how many names stand in it.
    """
    links = max((sum(1 for _ in _OF[language].finditer(wording.plain)) - _MOST_LINKS[language] for language in wording.languages), default=0)
    words = _WORD.findall(wording.plain)
    if names > _MOST_NAMES or links > 0 or len(words) > _MOST_WORDS or not (names or _has_term(words)) or _may_be_more(wording):
        return []
    for start in beginnings_of(wording):
        for patterns, meaning in _KINDS:
            if match := wording.begins(patterns, start):
                return [wording.sign(match, meaning)]
    return []


def _may_be_more(wording: Wording) -> bool:
    """Whether a word of the other ways stands in it, though nothing speaks for one of them outright."""
    return is_veiled(wording) or any(wording.find(patterns) for patterns in (_JOINED, _PLACE))


def _has_term(words: Sequence[str]) -> bool:
    """Whether a question without names names its subject all the same: not `where was he born`."""
    terms = [word for word in words if word not in _NO_TERMS]
    return len(terms) > 1 or (bool(terms) and _ITS.isdisjoint(words))
