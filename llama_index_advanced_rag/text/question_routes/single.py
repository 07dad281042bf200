"""One thing asked of one name or term: definitions, how-to, rules, and when, where, who, why of one thing."""

import re

from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_DEFINED = {
    "en": words_like(
        "(?:the )?(?:term|meaning|expression|difference|concept|purpose|definition)\\b|what(?:'s| is| are| does| do| did) (?:the )?(?:meaning"
        "|definition|purpose|term|word|expression|abbreviation|acronym|difference|concept|point)\\b|what (?:does|do) .{2,60} (?:mean"
        "|stand for|refer to)|define\\b|definition of|meaning of|what is meant by|what counts as|what(?:'s| is"
        "| are) (?:an? )?[\\w-]+(?: [\\w-]+)?(?=[ ?.!]*$)|what(?:'s| is) an? |difference between"
    ),
    "fr": words_like(
        "qu'est-ce (?:que|qu'|que c'est)|c'est quoi|que (?:signifie|veut dire|designe|recouvre|represente)|(?:signification|definition"
        "|sens) (?:de|du|d'|des)|qu'entend-on par|qu'appelle-t-on|definis|definir|a quoi (?:sert|servent|correspond)"
        "|differences? (?:y a-t-il )?entre|quelle est la difference"
    ),
}
_HOW_TO = {
    "en": words_like(
        "how (?:do|can|could|should|would|must|may|might) (?:i|we|you|one|people|employees|users|customers|staff|visitors|an?|the)|how to"
        "|how [\\w-]+ (?:works?|is|are|was)|how (?:is|are|was|were|does|do|did|long|often|many|much|far|old|tall|large|big|deep|high|hot|soon"
        "|early|late|fast|heavy|wide|quickly|big|strong)\\b|steps? (?:to|for)|procedure (?:to|for)|instructions (?:to|for)|ways? to"
    ),
    "fr": words_like(
        "comment (?:\\w+er|\\w+ir|\\w+re|faire|puis-je|peut-on|doit-on|dois-je|faut-il|fonctionne|marche|est|sont|se|s'|on|je|nous|les|le|la"
        "|l'|un|une|ca|vais-je|savoir|a|ont|fut|était)|(?:demarche|procedure|marche a suivre|etapes?|mode d'emploi|instructions?) (?:pour|de"
        "|d')|que (?:faire|dois-je|doit-on|faut-il|se passe)|combien\\b|quand\\b"
    ),
}
_RULE = {
    "en": words_like(
        "(?:can|may|must|should|could|shall|need|do|does|did|is|are|was|were|am|has|have|had|will|would|isn't|aren't|can't|doesn't"
        "|don't)(?: not)? (?:i|we|you|one|it|there|he|she|they|an?|the|my|our|your|this|that|these|those|any|all|every|each|some|employees"
        "|visitors|children|pets|dogs|patients|members|people|tenants|users|customers|staff|guests|minors|volunteers|students|\\w+s)\\b"
        "|(?:can|does|do|is|are|has|have|must|should|may|did|were) \\w+"
        "|allowed|permitted|(?:whether|if) (?:i|we|the|an?|it)\\b"
    ),
    "fr": words_like(
        "(?:peut|doit|faut|puis|dois|a-t|ai|est|sont|a|ont|y a-t|existe-t|suis|avons|devons|pouvons|reste-t|suffit|faudra-t|faudrait|pourra-t"
        "|risque-t|garde-t|paie-t|paye-t)-(?:on|il|elle|je|nous|ils|elles|ce|t-on|t-il)|est-ce (?:que|qu'|bien|un|une|vrai)|(?:l[ae]s? |l'"
        "|mon |ma |mes |un |une |nos |notre |ce |cette |les |[\\w']+ )[^,;:.?]{2,80}?-(?:t-)?(?:il|elle|ils|elles|on)|(?:a|ont|est|sont|peut"
        "|doit|peuvent|doivent|faut|reste|suffit|convient|dispose|existe|comprend|inclut|couvre)(?:-t)?-(?:il|elle|ils|elles|on)|ai-je|(?:s'"
        "|si )(?:il|on|je|le|la|les)\\b|(?:droit|obligation|possible|obligatoire|autorise|interdit|permis)"
    ),
}
_ASKED = {
    "en": words_like(
        "(?:who|whom|whose|when|where|why|w?h?wich|which|what|what's|who's|where's|when's)\\b|for what reason|at what|in (?:what|which)"
        "|on (?:what|which)|to (?:whom|what)|from (?:which|whom|what|when)|by (?:whom|when)|until when|since when|up to (?:what|which)"
        "|with (?:whom|what|which)|for (?:whom|how)|under (?:what|which)|after (?:what|how)|within (?:what|how)|what .{2,60}\\?"
    ),
    "fr": words_like(
        "(?:qui|que|qu'|quoi|quel|quelle|quels|quelles|quand|où|pourquoi|lequel)\\b|qu'(?:y|a|est|ont)\\b|d'où|(?:a|de|dans|en|pour|par|sur"
        "|avec|sous|depuis|jusqu'a|des|aupres de|chez|contre) (?:qui|quoi|quel|quelle|quels|quelles|quand|où|combien)\\b|pour quelle raison"
        "|de combien|a partir de (?:quand|quel|combien)|d'ici quand"
    ),
}
_WANTED = {
    "en": words_like(
        "(?:the )?(?:[\\w-]+ ){0,2}(?:number|address|e-?mail|phone|date|deadline|price|cost|fee|hours|opening hours|name|rules?|conditions?"
        "|requirements?|procedure|limit|amount|duration|contact|code|password|policy|size|weight|dose|dosage|reasons?|definition|symptoms"
        "|side effects|period|warranty|guarantee)\\b"
    ),
    "fr": words_like(
        "(?:le |la |l'|les |du |des )?(?:[\\w-]+ ){0,2}(?:numero|adresse|courriel|mail|telephone|date|delai|prix|cout|tarif|frais|horaires?"
        "|heures|nom|regles?|conditions?|procedure|limite|montant|duree|contact|code|mot de passe|politique|taille|poids|dose|posologie"
        "|raisons?|definition|symptomes|effets|periode|garantie|caution|preavis|coordonnees)\\b"
    ),
}
_KINDS = (
    (_DEFINED, "asks what something is"),
    (_HOW_TO, "asks how something is done or how much it is"),
    (_RULE, "asks whether something holds"),
    (_ASKED, "asks for one fact"),
    (_WANTED, "asks for one fact"),
)
_OF = {"en": re.compile(r" of (?!the term|course)"), "fr": re.compile(r" (?:du|de la|des) | d'| de l'| de ")}
_MOST_NAMES, _MOST_LINKS, _MOST_WORDS = 1, {"en": 2, "fr": 4}, 45


def single_in(wording: Wording, names: int) -> list[Sign]:
    """The sign that one thing is asked of one name or term.

    Args:
        wording: the question.
        names: how many names stand in it.
    """
    links = max((sum(1 for _ in _OF[language].finditer(wording.plain)) - _MOST_LINKS[language] for language in wording.languages), default=0)
    if names > _MOST_NAMES or links > 0 or len(wording.plain.split()) > _MOST_WORDS:
        return []
    for start in beginnings_of(wording):
        for patterns, meaning in _KINDS:
            if match := wording.begins(patterns, start):
                return [wording.sign(match, meaning)]
    return []
