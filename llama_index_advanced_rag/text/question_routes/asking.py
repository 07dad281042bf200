"""What shows that a message asks for something: polite words before it, verbs of request, and the documents that it speaks of."""

from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT
from llama_index_advanced_rag.text.question_routes.wording import words_like

POLITE = {
    "en": r"(?:(?:please|now|hi|hello|ok|okay|sorry|no|and|can you|could you|would you|will you|i want you to|help me(?: to)?)[ ,]{1,3}){0,5}",
    "fr": (
        r"(?:(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu peux|bonjour|s'il (?:te|vous) plait|svp|stp|maintenant|ok|non|et|aide-moi a"
        r"|me)[ ,]{1,3}){0,5}"
    ),
}
"""Polite words in front of a request, as many as there are."""

TONGUE = (
    "(?:english|french|german|spanish|italian|dutch|portuguese|latin|breton|japanese|chinese|russian|arabic"
    "|anglais|francais|allemand|espagnol|italien|neerlandais|portugais|breton|japonais|chinois|russe|arabe)"
)
"""The languages that texts are translated into."""

REQUEST = {
    "en": words_like("""
        who|what|when|where|which|why|how|find|give|show|send|tell|list|can|could|would|compare|read|look|need|want|explain|check|summari[sz]e|write
        now|please|cancel|change|update|add|remove|book|set|let
        """),
    "fr": words_like(r"""
        qui|quel(?:le)?s?|quand|où|pourquoi|comment|combien|trouve\w*|donne\w*|montre\w*|envoie\w*|dis|liste\w*|peux|pouvez|pourr\w+|besoin|veux|voudrais
        est-ce|explique\w*|qu'est-ce|indiqu\w*|cherche\w*|compare\w*|resume\w*|maintenant|m'\w+er|annul\w+|chang\w+|modifi\w+|ajout\w+|supprim\w+
        """),
}
"""Words that ask for something."""

OF_DOCUMENT = {
    "en": words_like(rf"(?:the|our|your) (?:[\w-]+ ){{0,2}}{DOCUMENT['en']}"),
    "fr": words_like(rf"(?:le |la |l'|les |du |des |notre |nos )(?:[\w-]+ ){{0,2}}{DOCUMENT['fr']}"),
}
"""A document that is there already: the policy, notre contrat."""

MENTIONED = {language: words_like(nouns) for language, nouns in DOCUMENT.items()}
"""Any word for a document."""
