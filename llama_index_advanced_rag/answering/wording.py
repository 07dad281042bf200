"""What a question asks for, as far as its words tell, and what is said when there is nothing to quote. English and French."""

import re
from enum import Enum


class AnswerKind(str, Enum):
    """What a question asks for."""

    QUANTITY = "quantity"
    DATE = "date"
    NAME = "name"
    REASON = "reason"
    ANY = "any"


_DATE_WORDS = r"(?:since )?when|(?:what|which) (?:date|day|year)|(?:depuis )?quand|(?:en |à |de )?quelle (?:année|date)|quel jour"
_QUANTITY_WORDS = (
    r"how (?:much|many|long|old|far|high|large)|percentage|amount|number|price|combien|"
    r"montants?|nombre|pourcentage|prix|âge|durée|taux|"
    # Figures of a business are asked for with "what were": the noun tells.
    r"sales|receipts|disbursements|expenditures?|revenues?|income|profits?|expenses?|costs?|assets|liabilities|earnings|margin|"
    r"chiffre d['’]affaires|bénéfices?|charges|coûts?|ventes|recettes|dépenses"
)
_REASON_WORDS = r"why|what (?:caused|led to|drove)|pourquoi|(?:quelle est |pour quelle )?raison|qu['’]est-ce qui (?:explique|cause)"
_NAME_WORDS = r"who|whom|whose|where|(?:which|what) (?:city|country|company|person)|qui|où|quel(?:le)? (?:ville|pays|entreprise|personne)"
_ASKS = [
    (AnswerKind.REASON, re.compile(rf"^\W*(?:{_REASON_WORDS})\b", re.IGNORECASE)),
    (AnswerKind.DATE, re.compile(rf"\b(?:{_DATE_WORDS})\b", re.IGNORECASE)),
    (AnswerKind.QUANTITY, re.compile(rf"\b(?:{_QUANTITY_WORDS})\b", re.IGNORECASE)),
    (AnswerKind.NAME, re.compile(rf"\b(?:{_NAME_WORDS})\b", re.IGNORECASE)),
]
_MONTHS = (
    r"(?:jan(?:uary|vier)|feb(?:ruary)?|février|mar(?:ch|s)|apr(?:il)?|avril|may|mai|june?|juin|july?|juillet|aug(?:ust)?|août|"
    r"sep(?:tember|tembre)?|oct(?:ober|obre)?|nov(?:ember|embre)?|dec(?:ember)?|décembre)"
)
_SMALL_NUMBERS = r"two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|deux|trois|quatre|cinq|sept|huit|neuf|dix|cent|mille"
_GIVES = {
    AnswerKind.DATE: re.compile(rf"{_MONTHS} \d+(?:, \d{{4}})?|\b\d+ {_MONTHS}(?: \d{{4}})?|\b(?:1[5-9]|20)\d\d\b", re.IGNORECASE),
    AnswerKind.QUANTITY: re.compile(rf"\d[\d.,]*|\b(?:{_SMALL_NUMBERS})\b", re.IGNORECASE),
    AnswerKind.NAME: re.compile(r"(?<=[\w,;:(] )[A-ZÀ-ÖØ-Þ][\w'’-]+"),
    AnswerKind.REASON: re.compile(
        r"\b(?:because|due (?:primarily |mainly |largely )?to|driven (?:primarily |mainly )?by|owing to|as a result of|caused by|"
        r"attributable to|reflect(?:s|ing)|"
        r"parce qu|en raison d|à cause d|grâce à|puisqu|dû à|afin d|car)",
        re.IGNORECASE,
    ),
}
_SENTENCES = {
    "en": {
        "no_answer": "No passage of the documents answers this question.",
        "empty_question": "The question is empty.",
        "broken_off": "The answer broke off. The documents say:",
        "only_broken_off": "The answer broke off.",
        "no_document": "I answer questions about the documents, and this one does not seem to need any. What would you like to know from them?",
    },
    "fr": {
        "no_answer": "Aucun passage des documents ne répond à cette question.",
        "empty_question": "La question est vide.",
        "broken_off": "La réponse s'est interrompue. Les documents disent :",
        "only_broken_off": "La réponse s'est interrompue.",
        "no_document": "Je réponds aux questions sur les documents, et celle-ci ne semble en demander aucun. Que souhaitez-vous y trouver ?",
    },
}


def answer_kind(question: str) -> AnswerKind:
    """What an English or French question asks for; the first kind that fits of reason, date, quantity, name.

    Example:
        >>> [answer_kind(text).value for text in ("Combien de salariés ?", "Who wrote it?", "When?", "Why?", "Is it?")]
        ['quantity', 'name', 'date', 'reason', 'any']
    """
    return next((kind for kind, pattern in _ASKS if pattern.search(question)), AnswerKind.ANY)


def gives(kind: AnswerKind, text: str, *, question: str) -> bool:
    """Whether a text holds something of the kind that the question did not say itself; False for `AnswerKind.ANY`.

    Example:
        >>> gives(AnswerKind.QUANTITY, "In 2023 it sold 5 cars.", question="How many cars in 2023?")
        True
    """
    pattern = _GIVES.get(kind)
    known = question.lower()
    if kind is AnswerKind.QUANTITY:
        text = _GIVES[AnswerKind.DATE].sub(" ", text)
    return pattern is not None and any(match.group().lower() not in known for match in pattern.finditer(text))


def no_answer(language: str) -> str:
    """The sentence that says that nothing was found: French for "fr", else English."""
    return _say("no_answer", language)


def empty_question(language: str) -> str:
    """The sentence that says that nothing was asked."""
    return _say("empty_question", language)


def broken_off(language: str) -> str:
    """The words between an interrupted answer and what the documents say."""
    return _say("broken_off", language)


def only_broken_off(language: str) -> str:
    """The words behind an interrupted answer where there are no documents to go on with."""
    return _say("only_broken_off", language)


def no_document(language: str) -> str:
    """The sentence that says that a question needs no document, and that there is no one else here to answer it."""
    return _say("no_document", language)


def _say(name: str, language: str) -> str:
    return _SENTENCES.get(language, _SENTENCES["en"])[name]
