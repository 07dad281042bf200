"""Talk that needs no document: greetings and thanks, and texts that the message brings along or wants made up."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.question_routes.asking import MENTIONED, OF_DOCUMENT, POLITE, REQUEST, TONGUE
from llama_index_advanced_rag.text.question_routes.assistant import about_the_assistant
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, one_of, read_wording, words_like

_COURTESY = {
    "en": r"""
        hi|hello|hey|howdy|greetings|welcome|good (?:morning|afternoon|evening|night|day)|nice to meet you|what's up
        how are you(?: doing| feeling)?|how do you do|how(?:'s| is) it going
        bye|goodbye|see you(?: soon| later| tomorrow)?|take care|until next time|talk (?:to you )?later|have a (?:\w+ )?(?:day|evening|weekend|one)
        thanks|thank you|thx|many thanks|much appreciated|cheers|you're welcome|no problem|sorry|oops|ok|okay|got it|understood|never ?mind
        great|perfect|wonderful|excellent|awesome|amazing|fantastic|brilliant|lovely|nice|cool|super|wow|haha|lol|well done|good job
        (?:nice|good|great) (?:talking|chatting) (?:to|with) you
        (?:that(?:'s| is| was)|this (?:is|was)|it was) (?:all|enough|(?:very |really |so )?(?:great|perfect|nice|kind|clear|helpful|useful|funny))
        (?:that|this|it) helps|you(?:'ve been| are|'re) (?:very |really |so )?(?:great|kind|helpful|amazing|the best)
        there|again|everyone|all|team|friend|assistant|so much|very much|a lot|a million|today|and|please
        for (?:now|everything|(?:your|the|all your) (?:help|time|answers?|support|patience))
        """,
    "fr": r"""
        bonjour|bonsoir|salut|coucou|hello|bienvenue|(?:comment )?ca va(?: bien)?|comment (?:vas-tu|tu vas|allez-vous)|(?:tu vas|vous allez) bien
        quoi de neuf|enchantee?|au revoir|adieu|ciao|a bientot|a demain|a plus(?: tard)?
        bonne (?:journee|soiree|nuit|continuation|annee|fin de journee)|bon (?:week-end|courage|apres-midi)
        merci|mille mercis|je (?:te|vous) remercie|de rien|pas de probleme|pardon|desolee?|ok|d'accord|entendu|compris|laisse tomber|haha|mdr
        super|parfait|genial|excellent|formidable|chouette|nickel|cool|bravo|tres bien|bien
        c'est (?:tout|note|(?:tres )?(?:parfait|gentil|bon|clair|bien|super|genial|drole|utile))|ca m'aide(?: beaucoup)?
        beaucoup|infiniment|encore|a (?:toi|vous|tous|toutes)|tout le monde|madame|monsieur|et|s'il (?:te|vous) plait|aujourd'hui
        pour (?:tout|le moment|l'instant|aujourd'hui|(?:ton|votre) (?:aide|temps)|(?:ta|votre|cette|la) (?:reponse|patience)|les reponses)
        """,
}
_GREETING = {language: re.compile(rf"(?:(?:{one_of(text)})(?:[ ,;:.?!()-]+|\Z))+") for language, text in _COURTESY.items()}
_THANKED = {
    "en": re.compile(r"(?:thanks|thank you|cheers)(?: so much| very much| a lot| again)?(?:[,.!]| (?:for|that|this|you|it)\b)"),
    "fr": re.compile(r"(?:merci|je (?:te|vous) remercie)(?: beaucoup| infiniment| bien| encore)?(?:[,.!]| (?:pour|c'est|ca|tu|d'avoir)\b)"),
}
_MOST_WORDS_OF_THANKS = 14
_BUSINESS = {
    "en": words_like(
        r"our|(?:the|this|your) (?:\w+ )?(?:compan(?:y|ies)|firm|business|founders?|staff|process|office|project|department|customers?|data|meeting)"
    ),
    "fr": words_like(r"notre|nos|(?:l'|la |le |les |cette |votre )(?:entreprise|societe|fondat\w+|personnel|projet|service|bureau|clients?|donnees|reunion)"),
}
_CREATE = {
    "en": re.compile(
        POLITE["en"] + r"(?:(?:write|compose|make up|tell|sing|invent|recite|improvise|give|create|come up with|think of|do you know|know)(?: me| us)?"
        r" (?:an?|another|some|one|two|three) (?:[\w-]+ )?(?:poem|haiku|limerick|sonnet|song|joke|riddle|rhyme|pun|tongue twister|fun fact|fairy tale"
        r"|bedtime story|story|fable"
        r"|stories|lullaby|ballad|ode|slogan|horoscope|birthday (?:message|wish|card|greeting)|love letter)s?(?!\w)"
        r"|draw (?:me )?an? (?!diagram|chart|map|graph|plan|table|timeline|line|flow)|make me (?:laugh|smile)|(?:sing|dance)(?: me| for me)?[ .!?]*\Z"
        r"|(?:tell|say) (?:me )?something (?:funny|nice|interesting|else)(?!\w)"
        r"|(?:flip a coin|roll (?:a|the|two) dice|(?:pick|choose|give me|think of|guess) an? (?:random )?(?:number|colou?r|card))(?: between .{3,20}"
        r"| for me|,? please)?[ .!?]*\Z|(?:let's )?play (?:a game|hangman|chess)"
        r"|(?:give me |find |what(?:'s| is) |what are )?(?:an?|another|the|some|two|three|five) (?:synonyms?|antonyms?|rhymes?|anagrams?) (?:for|of|with) "
        r"|what rhymes with |(?:what(?:'s| is) )?the meaning of life|i(?:'m| am) (?:bored|sad|happy|tired|hungry|lonely)[ .!,?]*\Z)"
    ),
    "fr": re.compile(
        POLITE["fr"] + r"(?:(?:ecri[st]|ecrire|ecrivez|compose|invente|raconte|dis|fais|chante|recite|imagine|improvise|cree|donne|connais-tu"
        r"|tu connais)[rz]?(?:-moi|-nous)?"
        r" (?:une?|des|quelques|deux|trois) (?:\w+ )?(?:poeme|haiku|sonnet|chanson|blague|devinette|charade|comptine|conte|histoire|fable|berceuse"
        r"|jeu de mots|slogan|horoscope"
        r"|virelangue|declaration d'amour|carte d'anniversaire)s?(?!\w)"
        r"|dessine(?:-moi)? une? (?!diagramme|carte|plan|graph|tableau|schema)|(?:fais-moi|me faire|faire) rire|(?:chante|danse)(?:-moi)?[ .!?]*\Z"
        r"|(?:dis|raconte)(?:-moi)? quelque chose (?:de|d')"
        r"|(?:pile ou face|(?:choisis|donne-moi|pense a|devine) une? (?:nombre|chiffre|carte|couleur))(?: entre .{3,20}|,? s'il te plait)?[ .!?]*\Z"
        r"|joue(?:r|ons)? (?:avec moi|aux echecs|au pendu|a un jeu)"
        r"|(?:donne(?:-moi)? |trouve(?:-moi)? |quel est )?(?:une?|le|deux|trois|des) (?:synonyme|antonyme|anagramme|rime)s? (?:de|du|d'|a|avec|pour)"
        r"|qu'est-ce qui rime avec |(?:quel est )?le sens de la vie|je (?:m'ennuie|suis (?:triste|fatiguee?|contente?|seule?))[ .!,?]*\Z)"
    ),
}
_REWRITE = {
    "en": re.compile(
        POLITE["en"]
        + r"(?:translate|rephrase|reword|rewrite|paraphrase|proofread|correct|shorten|expand|summari[sz]e|simplify|turn|put|convert|fix|improve)(?!\w)"
    ),
    "fr": re.compile(
        POLITE["fr"] + r"(?:tradui[st]|traduire|traduisez|reformule|reecri[st]|reecrire|paraphrase|corrige|raccourci[st]?|raccourcir|resume|simplifie"
        r"|developpe|transforme|mets|mettez|mettre|ameliore)[rz]?(?!\w)"
    ),
}
_BROUGHT = re.compile(
    r"(?<!\w)(?:this|these|my|following|ce|cet|cette|ces|mon|ma|mes|qui suit|suivante?s?|les fautes)(?!\w)[^:«“\"]{0,40}(?: ?: ?\S| ?[«“\"]\s?\S)| ?: ?\S"
)
_QUOTED = re.compile(r"[«“\"]\s?[a-zà-þ]")
_NEAR = 80
_SAID_ABROAD = {
    "en": re.compile(rf"how (?:do|would|can) (?:you|i|we|one) say .{{2,60}} in {TONGUE}(?!\w)"),
    "fr": re.compile(rf"comment (?:dit-on|on dit|dire|se dit) .{{2,60}} en {TONGUE}(?!\w)"),
}


def talk_in(wording: Wording, names: int) -> list[Sign]:
    """What shows that no document is needed, if the whole message needs none.

    Args:
        wording: the message.
        names: how many names stand in it: what names something needs documents, unless it is a text to be rewritten.
    """
    return [*_texts(wording), *([] if names else [*_courtesies(wording), *about_the_assistant(wording), *_creations(wording)])]


def _texts(wording: Wording) -> Iterator[Sign]:
    """A verb of rewriting and the text itself, behind a colon or in quotation marks (a capital in them begins a title); or words and their language."""
    verb = wording.begins(_REWRITE)
    about = wording.find(OF_DOCUMENT)
    brought = verb and (_BROUGHT.search(wording.plain, *_near(verb)) or _QUOTED.search(wording.written, *_near(verb)))
    if verb and brought and not (about and about.start() < brought.end()):
        yield Sign(wording.written[: verb.end()], "is to be done with a text that the message brings along")
    abroad = wording.begins(_SAID_ABROAD)
    if abroad and not about:
        yield wording.sign(abroad, "asks for words of a language")


def _near(verb: re.Match[str]) -> tuple[int, int]:
    return verb.end(), verb.end() + _NEAR


def courtesy_language(message: str) -> str | None:
    """The one language in which a message is a greeting, thanks or the like; None where it is none, or one in both: "Merci !" is too short to tell otherwise.

    Example:
        >>> courtesy_language("Merci !"), courtesy_language("Thank you!"), courtesy_language("OK"), courtesy_language("Merci is a station.")
        ('fr', 'en', None, None)
    """
    plain = read_wording(message).plain
    languages = [language for language, pattern in _GREETING.items() if pattern.fullmatch(plain)]
    return languages[0] if len(languages) == 1 else None


def _courtesies(wording: Wording) -> Iterator[Sign]:
    """Greetings, thanks and partings as the whole message, and short thanks that ask for nothing."""
    for pattern in _GREETING.values():
        if greeting := pattern.fullmatch(wording.plain):
            yield wording.sign(greeting, "is what people say to each other")
            return
    thanked = wording.begins(_THANKED)
    if thanked and "?" not in wording.plain and len(wording.plain.split()) <= _MOST_WORDS_OF_THANKS and not _asks(wording, thanked.end()):
        yield wording.sign(thanked, "is what people say to each other")


def _asks(wording: Wording, start: int) -> bool:
    return wording.find(REQUEST, start) is not None or wording.find(MENTIONED) is not None


def _creations(wording: Wording) -> Iterator[Sign]:
    created = wording.begins(_CREATE)
    if created and wording.find(OF_DOCUMENT) is None and wording.find(_BUSINESS) is None:
        yield wording.sign(created, "asks for something to be made up")
