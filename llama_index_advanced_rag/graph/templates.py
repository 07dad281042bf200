"""How the common predicates are said in English and in French.

French has forms that need neither the gender of a name nor the preposition of a place. `de` before a vowel becomes `d'`, and `a` becomes
`an`, where a name is put in.
"""

import re
from collections.abc import Mapping

_PREDICATES: tuple[tuple[str, str, str], ...] = (
    # Work and companies
    (
        "works for | work for | works at | employed by | employee of | travaille pour | travaille chez | employé par",
        "{subject} works for {object}",
        "{subject} travaille pour {object}",
    ),
    ("worked for | worked at | a travaillé pour", "{subject} worked for {object}", "{subject} a travaillé pour {object}"),
    ("employs | emploie", "{subject} employs {object}", "{subject} emploie {object}"),
    ("reports to | rend compte à", "{subject} reports to {object}", "{subject} rend compte à {object}"),
    ("ceo of | chief executive officer of | pdg de", "{subject} is the CEO of {object}", "{subject} est PDG de {object}"),
    ("director of | directs | heads | head of | dirige", "{subject} is the director of {object}", "{subject} dirige {object}"),
    ("leads | runs", "{subject} leads {object}", "{subject} dirige {object}"),
    ("led by | headed by | run by | dirigé par | dirigée par", "{subject} is led by {object}", "{object} dirige {subject}"),
    ("president of | président de | présidente de | préside", "{subject} is the president of {object}", "{subject} préside {object}"),
    ("member of | belongs to group | membre de", "{subject} is a member of {object}", "{subject} est membre de {object}"),
    ("founded | founder of | co-founded | cofounded | a fondé | fondateur de | fondatrice de", "{subject} founded {object}", "{subject} a fondé {object}"),
    ("founded by | cofounded by | established by | fondé par | fondée par", "{subject} was founded by {object}", "{object} a fondé {subject}"),
    ("acquired | acquires | bought | purchased | took over | a acquis | a racheté", "{subject} acquired {object}", "{subject} a acquis {object}"),
    (
        "acquired by | bought by | purchased by | racheté par | rachetée par | acquis par",
        "{subject} was acquired by {object}",
        "{object} a acquis {subject}",
    ),
    ("owns | owner of | possède | détient", "{subject} owns {object}", "{subject} possède {object}"),
    ("owned by | détenu par | détenue par", "{subject} is owned by {object}", "{object} possède {subject}"),
    ("subsidiary of | filiale de", "{subject} is a subsidiary of {object}", "{subject} est une filiale de {object}"),
    ("parent company of | société mère de", "{subject} is the parent company of {object}", "{subject} est la société mère de {object}"),
    ("merged with | a fusionné avec", "{subject} merged with {object}", "{subject} a fusionné avec {object}"),
    ("invested in | invests in | investor in | a investi dans", "{subject} invested in {object}", "{subject} a investi dans {object}"),
    ("competes with | competitor of | rival of | en concurrence avec", "{subject} competes with {object}", "{subject} est en concurrence avec {object}"),
    (
        "partner of | partners with | partnered with | in partnership with | en partenariat avec",
        "{subject} is a partner of {object}",
        "{subject} est partenaire de {object}",
    ),
    ("collaborates with | collaborated with | collabore avec", "{subject} collaborates with {object}", "{subject} collabore avec {object}"),
    (
        "signed contract with | signed a contract with | has contract with | a signé un contrat avec",
        "{subject} signed a contract with {object}",
        "{subject} a signé un contrat avec {object}",
    ),
    ("supplies | supplier of | fournit", "{subject} supplies {object}", "{subject} fournit {object}"),
    ("customer of | client of | client de | cliente de", "{subject} is a customer of {object}", "{subject} fait partie des clients de {object}"),
    # Making
    ("created | creates | creator of | a créé | crée", "{subject} created {object}", "{subject} a créé {object}"),
    ("created by | made by | créé par | créée par", "{subject} was created by {object}", "{object} a créé {subject}"),
    ("develops | developed | developer of | a développé | développe", "{subject} developed {object}", "{subject} a développé {object}"),
    ("developed by | développé par | développée par", "{subject} was developed by {object}", "{object} a développé {subject}"),
    ("proposed | proposes | a proposé", "{subject} proposed {object}", "{subject} a proposé {object}"),
    ("proposed by | proposé par | proposée par", "{subject} was proposed by {object}", "{object} a proposé {subject}"),
    ("introduced | introduces | a présenté", "{subject} introduced {object}", "{subject} a présenté {object}"),
    ("introduced by | présenté par | présentée par", "{subject} was introduced by {object}", "{object} a présenté {subject}"),
    ("invented | inventor of | a inventé", "{subject} invented {object}", "{subject} a inventé {object}"),
    ("invented by | inventé par | inventée par", "{subject} was invented by {object}", "{object} a inventé {subject}"),
    ("discovered | discoverer of | a découvert", "{subject} discovered {object}", "{subject} a découvert {object}"),
    ("discovered by | découvert par | découverte par", "{subject} was discovered by {object}", "{object} a découvert {subject}"),
    ("produces | manufactures | produit | fabrique", "{subject} produces {object}", "{subject} produit {object}"),
    ("produced by | manufactured by | produit par | produite par", "{subject} was produced by {object}", "{object} a produit {subject}"),
    ("wrote | author of | a écrit", "{subject} wrote {object}", "{subject} a écrit {object}"),
    ("written by | authored by | écrit par | écrite par", "{subject} was written by {object}", "{object} a écrit {subject}"),
    ("directed | a réalisé", "{subject} directed {object}", "{subject} a réalisé {object}"),
    ("directed by | réalisé par", "{subject} was directed by {object}", "{object} a réalisé {subject}"),
    ("published | publishes | publisher of | a publié", "{subject} published {object}", "{subject} a publié {object}"),
    ("published by | publié par | publiée par", "{subject} was published by {object}", "{object} a publié {subject}"),
    ("starred in | stars in | acted in | a joué dans", "{subject} starred in {object}", "{subject} a joué dans {object}"),
    ("stars | starring", "{subject} stars {object}", "{object} a joué dans {subject}"),
    ("designed | designer of | a conçu", "{subject} designed {object}", "{subject} a conçu {object}"),
    ("designed by | conçu par | conçue par", "{subject} was designed by {object}", "{object} a conçu {subject}"),
    ("won | a gagné | a remporté", "{subject} won {object}", "{subject} a remporté {object}"),
    ("received | received award | a reçu", "{subject} received {object}", "{subject} a reçu {object}"),
    # How things hang together
    ("based on | built on | builds on | basé sur | basée sur | repose sur", "{subject} is based on {object}", "{subject} repose sur {object}"),
    ("uses | use | utilizes | utilise", "{subject} uses {object}", "{subject} utilise {object}"),
    ("used by | utilisé par | utilisée par", "{subject} is used by {object}", "{object} utilise {subject}"),
    ("depends on | dépend de", "{subject} depends on {object}", "{subject} dépend de {object}"),
    ("replaces | replaced | remplace | a remplacé", "{subject} replaced {object}", "{subject} a remplacé {object}"),
    ("trained on", "{subject} was trained on {object}", "{subject} a pour données d'entraînement {object}"),
    ("part of | fait partie de", "{subject} is part of {object}", "{subject} fait partie de {object}"),
    ("belongs to | appartient à", "{subject} belongs to {object}", "{subject} appartient à {object}"),
    ("contains | includes | has part | comprises | consists of | comprend | contient", "{subject} includes {object}", "{subject} comprend {object}"),
    ("is a | is an | est un | est une", "{subject} is a {object}", "{subject} est de type {object}"),
    ("instance of | type of | est une instance de", "{subject} is an instance of {object}", "{subject} est une instance de {object}"),
    ("subclass of | kind of | sorte de", "{subject} is a kind of {object}", "{subject} est une sorte de {object}"),
    ("causes | caused | cause | a causé", "{subject} causes {object}", "{subject} cause {object}"),
    ("caused by | causé par | causée par", "{subject} is caused by {object}", "{object} cause {subject}"),
    ("same as | also known as | alias of | aka | known as | aussi appelé", "{subject} is also known as {object}", "{subject} a aussi pour nom {object}"),
    ("related to | associated with | linked to | connected to | lié à | liée à", "{subject} is related to {object}", "{subject} est en lien avec {object}"),
    ("is | est", "{subject} is {object}", "{subject} est {object}"),
    ("was | était", "{subject} was {object}", "{subject} était {object}"),
    ("became | devient | est devenu | est devenue", "{subject} became {object}", "{subject} devient {object}"),
    ("has | have | a", "{subject} has {object}", "{subject} a {object}"),
    ("named after | nommé d'après | nommée d'après", "{subject} is named after {object}", "{subject} doit son nom à {object}"),
    # Places and days
    ("held in | held at | took place in | takes place in | a eu lieu à", "{subject} was held in {object}", "{subject} a pour lieu {object}"),
    ("borders | borders with | bordered by | a une frontière avec", "{subject} borders {object}", "{subject} a une frontière avec {object}"),
    (
        "founded in | established in | fondé à | fondée à | fondé en | fondée en",
        "{subject} was founded in {object}",
        "{subject} a pour lieu de fondation {object}",
    ),
    ("founded on | established on | founding date | fondé le | fondée le", "{subject} was founded on {object}", "{subject} a pour date de fondation {object}"),
    ("published in | publié dans | publiée dans | publié en | publiée en", "{subject} was published in {object}", "{subject} a paru dans {object}"),
    ("published on | publication date | publié le | publiée le", "{subject} was published on {object}", "{subject} a pour date de parution {object}"),
    ("released in | released on | release date | sorti en | sortie en", "{subject} was released in {object}", "{subject} a pour sortie {object}"),
    (
        "located in | located at | location | lies in | situé à | située à | situé en | située en",
        "{subject} is located in {object}",
        "{subject} a pour lieu {object}",
    ),
    (
        "based in | headquartered in | headquarters in | headquarters | a son siège à",
        "{subject} is based in {object}",
        "{subject} a pour siège {object}",
    ),
    ("capital of | capitale de", "{subject} is the capital of {object}", "{subject} est la capitale de {object}"),
    ("lives in | resides in | habite à | vit à", "{subject} lives in {object}", "{subject} a pour lieu de résidence {object}"),
    # People
    ("born in | born at | birthplace | place of birth | né à | née à", "{subject} was born in {object}", "{subject} a pour lieu de naissance {object}"),
    ("born on | date of birth | birth date | né le | née le", "{subject} was born on {object}", "{subject} a pour date de naissance {object}"),
    ("died in | died at | place of death | mort à | morte à", "{subject} died in {object}", "{subject} a pour lieu de décès {object}"),
    ("died on | date of death | mort le | morte le", "{subject} died on {object}", "{subject} a pour date de décès {object}"),
    (
        "married to | spouse of | husband of | wife of | marié à | mariée à | époux de | épouse de",
        "{subject} is married to {object}",
        "{subject} a épousé {object}",
    ),
    ("married | a épousé", "{subject} married {object}", "{subject} a épousé {object}"),
    ("parent of | parent de", "{subject} is a parent of {object}", "{subject} est un parent de {object}"),
    ("father of | père de", "{subject} is the father of {object}", "{subject} est le père de {object}"),
    ("mother of | mère de", "{subject} is the mother of {object}", "{subject} est la mère de {object}"),
    ("child of | enfant de", "{subject} is a child of {object}", "{subject} est un enfant de {object}"),
    ("son of | fils de", "{subject} is a son of {object}", "{subject} est un fils de {object}"),
    ("daughter of | fille de", "{subject} is a daughter of {object}", "{subject} est une fille de {object}"),
    ("brother of | frère de", "{subject} is a brother of {object}", "{subject} est un frère de {object}"),
    ("sister of | sœur de | soeur de", "{subject} is a sister of {object}", "{subject} est une sœur de {object}"),
    ("studied at | educated at | graduated from | a étudié à", "{subject} studied at {object}", "{subject} a pour lieu d'études {object}"),
)

_DATED: Mapping[str, str] = {
    "born in": "{subject} a pour date de naissance {object}",
    "died in": "{subject} a pour date de décès {object}",
    "founded in": "{subject} a pour date de fondation {object}",
    "published in": "{subject} a pour date de parution {object}",
}
_ACRONYMS = frozenset({"ceo", "cfo", "coo", "cto", "pdg", "eu", "ue", "gdp", "pib", "ip", "ipo", "nato", "otan", "uk", "un", "onu", "us", "usa"})
_HUMP = re.compile(r"(?<=[a-zà-öø-ÿ0-9])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-ZÀ-ÖØ-Þ])(?=[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ])")


def readable_predicate(predicate: str) -> str:
    """A predicate as words: snake, camel and SCREAMING spellings become small letters, acronyms stay, words between spaces stay as they are.

    Example:
        >>> [readable_predicate(name) for name in ("is_based_on", "createdBy", "CEO_OF", "hasCEOIn", "plays in Top League")]
        ['is based on', 'created by', 'CEO of', 'has CEO in', 'plays in Top League']
    """
    if " " in predicate.strip() and not predicate.isupper():
        return " ".join(predicate.replace("_", " ").split())
    words, screaming = _HUMP.sub(" ", predicate.replace("_", " ")).split(), predicate.isupper()
    return " ".join(_small(word, screaming=screaming) for word in words)


def _small(word: str, *, screaming: bool) -> str:
    if word.lower() in _ACRONYMS and word.isupper():
        return word
    return word if word.isupper() and len(word) > 1 and not screaming else word.lower()


def predicate_key(predicate: str) -> str:
    """What all spellings of a predicate have in common.

    Example:
        >>> {predicate_key(name) for name in ("works_for", "worksFor", "WORKS_FOR", "Works for", "works-for")}
        {'works for'}
    """
    return " ".join(readable_predicate(predicate).replace("-", " ").replace("’", "'").casefold().split())


def _keyed(column: int) -> dict[str, str]:
    return {predicate_key(name): row[column] for row in _PREDICATES for name in row[0].split("|")}


TEMPLATES: Mapping[str, Mapping[str, str]] = {"en": _keyed(1), "fr": _keyed(2)}
"""For each language the template of each predicate, by its `predicate_key`."""

DATED: Mapping[str, Mapping[str, str]] = {
    "en": {},
    "fr": {key: _DATED[first] for row in _PREDICATES if (first := row[0].split("|")[0].strip()) in _DATED for key in map(predicate_key, row[0].split("|"))},
}
"""The templates that are others where the object is a day, a month or a year."""

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "related": "{subject} is related to {object}",
        "together": "{subject} and {object} are named together in “{source}”",
        "in one passage": "{subject} and {object} are named in one passage",
        "names": "names {object}",
        "names too": "names {object}, as does “{source}”",
        "connected": "{subject} and {object} are connected",
        "then": "; ",
        "property": "({key}: {value})",
        "paths": "How they are connected:",
        "facts": "Facts:",
        "on": "(on {value})",
        "in": "(in {value})",
        "since": "(since {value})",
        "until": "(until {value})",
        "from_to": "(from {value} to {end})",
        "for": "for {value}",
        "as": "as {value}",
        "at": "(place: {value})",
        "yes": "yes",
        "no": "no",
    },
    "fr": {
        "related": "{subject} est en lien avec {object}",
        "together": "{subject} et {object} sont nommés ensemble dans « {source} »",
        "in one passage": "{subject} et {object} sont nommés dans un même passage",
        "names": "nomme {object}",
        "names too": "nomme {object}, comme « {source} »",
        "connected": "{subject} et {object} sont liés",
        "then": " ; ",
        "property": "({key} : {value})",
        "paths": "Comment ils sont liés :",
        "facts": "Faits :",
        "on": "(le {value})",
        "in": "(en {value})",
        "since": "(depuis {value})",
        "until": "(jusqu'à {value})",
        "from_to": "(de {value} à {end})",
        "for": "pour {value}",
        "as": "en tant que {value}",
        "at": "(lieu : {value})",
        "yes": "oui",
        "no": "non",
    },
}
"""What is not a predicate."""
