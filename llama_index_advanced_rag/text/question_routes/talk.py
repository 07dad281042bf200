"""Talk that needs no document: greetings, the assistant itself, and texts that the message brings along or wants made up."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.nouns import DOCUMENT
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, one_of, words_like

_COURTESY = {
    "en": r"""
        hi|hello|hey|good (?:morning|afternoon|evening|night)|how are you(?: doing)?|nice to meet you
        bye|goodbye|see you(?: soon| later| tomorrow)?|have a (?:nice|good|great) (?:day|evening|weekend)
        thanks|thank you|many thanks|cheers|you're welcome|sorry|ok|okay
        great|perfect|wonderful|excellent|nice|cool|super|well done|that(?:'s| is| was) (?:all|great|perfect|(?:very )?helpful)
        there|again|everyone|all|so much|very much|a lot|today|and|for (?:now|your help|everything)
        """,
    "fr": r"""
        bonjour|bonsoir|salut|coucou|(?:comment )?ca va|comment (?:vas-tu|allez-vous)|(?:tu vas|vous allez) bien|enchantee?
        au revoir|a bientot|a demain|a plus tard|bonne (?:journee|soiree|nuit)|bon week-end
        merci|je (?:te|vous) remercie|de rien|pardon|desolee?|ok|d'accord
        super|parfait|genial|excellent|bravo|tres bien|bien|c'est (?:tout|parfait|gentil|bon)
        beaucoup|encore|a (?:toi|vous|tous)|tout le monde|madame|monsieur|et|pour (?:tout|(?:ton|votre) aide)
        """,
}
_GREETING = {language: re.compile(rf"(?:(?:{one_of(text)})(?:[ ,;:.?!()-]+|\Z))+") for language, text in _COURTESY.items()}
_ASSISTANT = {
    "en": words_like(r"""
        (?:who|what) are you|who (?:made|created|built|trained|programmed|designed) you|what(?:'s| is) your name
        how old are you|where are you from|how do you work|(?:introduce|describe) yourself|tell me about yourself
        what (?:else )?can you (?:do(?: for me)?|help(?: me)? with)|how can you help(?: me)?
        (?:which|what) languages (?:do|can) you speak|do you speak \w+
        are you (?:an? (?:real )?(?:robot|bot|human|person|machine|ai|computer|program|language model|chatbot)|real|human|alive)
        (?:do|can) you (?:ever )?(?:sleep|dream|feel|think|make mistakes|have feelings)
        """),
    "fr": words_like(r"""
        qui (?:es-tu|etes-vous)|tu es qui|qui (?:t'a|vous a) (?:cree|fait|concu|programme|entraine)
        comment (?:t'appelles-tu|tu t'appelles|vous appelez-vous|fonctionnes-tu)|quel (?:est ton nom|age as-tu)
        que (?:sais-tu|peux-tu|savez-vous|pouvez-vous) faire|qu'est-ce que tu (?:sais|peux) faire|comment peux-tu m'aider
        quelles langues (?:parles-tu|parlez-vous)|(?:parles-tu|parlez-vous) \w+|presente-toi|parle(?:-moi)? de toi
        (?:es-tu|etes-vous|tu es) (?:(?:une? )?(?:vraie? )?(?:robot|humaine?|machine|ia|personne)|vivante?)
        (?:peux-tu|sais-tu) (?:te tromper|mentir|rever|penser)
        """),
}
_POLITE = {
    "en": r"(?:(?:please|now|hi|hello|can you|could you|would you|help me)[ ,]{1,3}){0,4}",
    "fr": r"(?:(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|bonjour|s'il (?:te|vous) plait|maintenant|aide-moi a|me)[ ,]{1,3}){0,4}",
}
_CREATE = {
    "en": re.compile(
        _POLITE["en"] + r"(?:write|compose|make up|tell|sing|invent|recite|give|create)(?: me| us)? (?:an?|another|some|one) (?:[\w-]+ )?"
        r"(?:poem|haiku|limerick|sonnet|song|joke|riddle|rhyme|fairy tale|bedtime story|story)s?(?!\w)"
    ),
    "fr": re.compile(
        _POLITE["fr"] + r"(?:ecri[st]|ecrire|ecrivez|compose|invente|raconte|dis|fais|chante|recite|imagine)[rz]?(?:-moi|-nous)? (?:une?|des) (?:\w+ )?"
        r"(?:poeme|haiku|sonnet|chanson|blague|devinette|comptine|conte|histoire|fable)s?(?!\w)"
    ),
}
_REWRITE = {
    "en": re.compile(
        _POLITE["en"]
        + r"(?:translate|rephrase|reword|rewrite|paraphrase|proofread|correct|shorten|expand|summari[sz]e|simplify|turn|put|convert|fix|improve)(?!\w)"
    ),
    "fr": re.compile(
        _POLITE["fr"] + r"(?:tradui[st]|traduire|traduisez|reformule|reecri[st]|reecrire|paraphrase|corrige|raccourci[st]?|raccourcir|resume|simplifie"
        r"|developpe|transforme|mets|mettez|mettre|ameliore)[rz]?(?!\w)"
    ),
}
_BROUGHT = re.compile(
    r"(?<!\w)(?:this|these|my|following|ce|cet|cette|ces|mon|ma|mes|qui suit|suivante?s?|les fautes)(?!\w)[^:«“\"]{0,40}(?: ?: ?\S| ?[«“\"]\s?\S)| ?: ?\S"
)
_QUOTED = re.compile(r"[«“\"]\s?[a-zà-þ]")
_NEAR = 80
_OF_DOCUMENT = {
    "en": words_like(rf"(?:the|our|your) (?:[\w-]+ ){{0,2}}{DOCUMENT['en']}"),
    "fr": words_like(rf"(?:le |la |l'|les |du |des |notre |nos )(?:[\w-]+ ){{0,2}}{DOCUMENT['fr']}"),
}
_TONGUE = "(?:english|french|german|spanish|italian|dutch|portuguese|anglais|francais|allemand|espagnol|italien|neerlandais|portugais)"
_SAID_ABROAD = {
    "en": re.compile(rf"how (?:do|would|can) (?:you|i|we|one) say .{{2,60}} in {_TONGUE}(?!\w)"),
    "fr": re.compile(rf"comment (?:dit-on|on dit|dire|se dit) .{{2,60}} en {_TONGUE}(?!\w)"),
}


def talk_in(wording: Wording, names: int) -> list[Sign]:
    """What shows that no document is needed, if the whole message needs none.

    Args:
        wording: the message.
        names: how many names stand in it: what names something needs documents, unless it is a text to be rewritten.
    """
    return [*_texts(wording), *([] if names else [*_courtesies(wording), *_about_the_assistant(wording), *_creations(wording)])]


def _texts(wording: Wording) -> Iterator[Sign]:
    """A verb of rewriting and the text itself, behind a colon or in quotation marks (a capital in them begins a title); or words and their language."""
    verb = wording.begins(_REWRITE)
    about = wording.find(_OF_DOCUMENT)
    brought = verb and (_BROUGHT.search(wording.plain, *_near(verb)) or _QUOTED.search(wording.written, *_near(verb)))
    if verb and brought and not (about and about.start() < brought.end()):
        yield Sign(wording.written[: verb.end()], "is to be done with a text that the message brings along")
    abroad = wording.begins(_SAID_ABROAD)
    if abroad and not about:
        yield wording.sign(abroad, "asks for words of a language")


def _near(verb: re.Match[str]) -> tuple[int, int]:
    return verb.end(), verb.end() + _NEAR


def _courtesies(wording: Wording) -> Iterator[Sign]:
    for pattern in _GREETING.values():
        if greeting := pattern.fullmatch(wording.plain):
            yield wording.sign(greeting, "is what people say to each other")
            return


def _about_the_assistant(wording: Wording) -> Iterator[Sign]:
    """What asks about the assistant and about nothing else."""
    for start in beginnings_of(wording):
        about = wording.begins(_ASSISTANT, start)
        if about and not wording.plain[about.end() :].strip(" ?.!"):
            yield wording.sign(about, "is about the assistant")
            return


def _creations(wording: Wording) -> Iterator[Sign]:
    created = wording.begins(_CREATE)
    if created and wording.find(_OF_DOCUMENT) is None:
        yield wording.sign(created, "asks for something to be made up")
