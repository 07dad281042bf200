"""Talk about the assistant itself and about what was said before: who are you, do you like tea, shorter please, your last answer."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.question_routes.asking import MENTIONED, POLITE, REQUEST, TONGUE
from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, one_of, words_like

_ASSISTANT = {
    "en": words_like(r"""
        (?:who|what) (?:exactly )?are you|who (?:made|created|built|trained|programmed|designed|developed|invented) you|how old are you
        (?:what(?:'s| is| are)|who(?:'s| is)) your (?:name|age|purpose|job|creators?|maker|opinion|knowledge cutoff|birthday|mood|gender)
        where (?:are you from|do you (?:live|come from))|when were you (?:made|born|created|built|trained|last updated)
        how (?:do you work|were you (?:trained|built|made)|(?:smart|clever|accurate|reliable) are you)
        (?:introduce|describe) yourself|tell me (?:something |more )?about yourself|how can you help(?: me)?|what are you (?:capable of|good at|made of)
        what (?:else )?can (?:you|i ask you)(?: do| help| answer)?(?: for me| me with| with| about)?
        (?:which|what|how many) languages (?:do|can) you (?:speak|understand|know)|(?:do|can) you (?:speak|understand) (?:other languages|\w+)
        are you (?:an? |the )?(?:real |true )?(?:robot|bot|human(?: being)?|person|machine|ai|computer|program|language model|llm|chatbot|man|woman|genius)
        are you (?:real|alive|conscious|sentient|happy|sad|tired|bored|angry|kidding|joking|serious|listening|awake|there|smart|intelligent|certain)
        are you sure(?: about (?:that|it)| of (?:that|it))?|are you able to (?:think|lie|feel|learn|make mistakes)
        (?:do|can) you (?:ever )?(?:sleep|dream|feel|think|eat|learn|lie|make mistakes|get (?:bored|tired)|remember me|understand me|hallucinate|sing|dance)
        do you (?:ever )?(?:have|need) (?:feelings|emotions|a name|a body|a soul|friends|parents|hobbies|an opinion|dreams|sleep|a break|rest)
        do you (?:know (?:everything|who i am|me)|remember (?:me|my name)|agree(?: with me)?|like me|love me|use ai)|can i trust you|will you marry me
        (?:am i|are we) (?:talking|speaking|chatting) (?:to|with) an? (?:real )?(?:\w+)|is this an? (?:human|real person|bot|ai|robot)
        (?:i (?:love|hate|like|miss) you|you(?:'re| are) (?:so |very )?(?:wrong|right|funny|smart|stupid|slow|useless|great|cool))
        """),
    "fr": words_like(r"""
        qui (?:es-tu|etes-vous)|(?:tu es|t'es|vous etes) qui|qui (?:t'a|vous a) (?:cree|fait|concu|programme|entraine|developpe|invente)
        comment (?:t'appelles-tu|tu t'appelles|vous appelez-vous|fonctionnes-tu|tu fonctionnes|te sens-tu)|quel age as-tu|tu as quel age
        (?:quel(?:le)?s? (?:est|sont)|c'est quoi) (?:ton|ta|tes|votre) (?:nom|age|role|but|createurs?|limites?|opinion|avis|humeur|couleur preferee|metier)
        (?:que|qu'est-ce que tu|qu'est-ce que vous) (?:sais-tu|peux-tu|savez-vous|pouvez-vous|sais|peux|savez|pouvez) faire(?: pour moi)?
        comment (?:peux-tu|tu peux|pouvez-vous) m'aider|(?:a quoi|de quoi) (?:sers-tu|tu sers|es-tu capable)|d'où (?:viens-tu|tu viens)
        où (?:habites-tu|vis-tu)
        (?:quelles|combien de) langues (?:parles-tu|parlez-vous|tu parles)|(?:parles-tu|parlez-vous|tu parles) \w+
        presente-toi|decris-toi|parle(?:-moi)? (?:un peu )?de toi
        (?:es-tu|etes-vous|tu es|est-ce que tu es) (?:une? )?(?:vraie? )?(?:robot|humaine?|machine|ia|personne|etre humain|ordinateur|programme)
        (?:es-tu|tu es|t'es|est-ce que tu es) (?:vivante?|reel(?:le)?|sure?(?: de (?:toi|ca))?|fatiguee?|contente?|heureu(?:x|se)|triste|serieu(?:x|se)|la)
        (?:est-ce que tu (?:peux|sais) |tu (?:peux|sais) |peux-tu |sais-tu )(?:te tromper|mentir|rever|penser|apprendre|parler|chanter|ressentir des \w+)
        (?:est-ce que )?tu (?:dors|reves|penses|mens|manges|apprends|m'entends|m'aimes|plaisantes|te trompes|comprends|as des (?:sentiments|emotions))
        (?:dors|reves|penses|mens|manges|apprends|m'entends|m'aimes|te trompes)-tu(?: parfois)?
        as-tu (?:un nom|une ame|des sentiments|des emotions|peur|faim|un avis|une opinion|un corps|des amis)|est-ce que je parle (?:a|avec) une? \w+
        je (?:t'aime|te deteste|t'adore)|tu (?:as (?:raison|tort)|es (?:tres |trop )?(?:drole|gentil(?:le)?|nulle?|bete|genial|intelligente?))
        """),
}
_LIKES = {
    "en": words_like(r"""
        (?:do|don't|would) you (?:ever )?(?:like|love|hate|enjoy|dream (?:of|about)|feel)
        what(?:'s| is| are) your (?:favou?rite|(?:opinion|view) (?:on|of|about))|what do you (?:think|feel|like|love|hate|prefer|eat|dream)
        in your (?:own )?opinion|would you rather|have you ever
        (?:why|how come) (?:do|are|can't|won't|don't|did) you (?:always|keep|never|so|say|repeat|answer|apologi[sz]e|sound|lie)|compare yourself (?:to|with)
        do you (?:believe in|have an? (?:favou?rite|opinion (?:on|about))|ever (?:get|feel|think|wish|wonder))|how do you feel|who would you
        """),
    "fr": words_like(r"""
        (?:(?:est-ce que )?tu (?:aimes|detestes|preferes|adores)|(?:aimes|detestes|preferes|adores)-tu)(?: l[ae]s?| l')?
        (?:quel(?:le)?s? (?:est|sont)|c'est quoi) (?:ton|ta|tes) \w+ (?:preferee?s?|favorie?s?)|(?:que|qu'est-ce que tu|tu) (?:penses|penses-tu|en penses)
        pourquoi (?:tu|es-tu|reponds-tu|t'excuses-tu|ne (?:reponds|veux|peux)-tu)|compare-toi|(?:es-tu|tu es) capable de (?:te|t'|mentir|penser|rever)
        a ton avis|as-tu (?:un |une |des )?\w+ (?:preferee?s?|favorie?s?)|crois-tu (?:a|au|aux|en)|as-tu deja
        """),
}
_SERIOUS = {
    "en": words_like(
        "our|my(?! (?:questions?|jokes?))|the|this|these|should|must|company|customers?|employees?|clients?|products?|orders?|deliver\\w*|pay(?:ments?)?"
    ),
    "fr": words_like(
        "notre|nos|mon|ma|mes|le|la|les|l'|du|ce(?! (?:matin|soir))|cette|doit|faut|entreprise|clients?|salaries?|produits?|services?|commandes?|livraisons?"
    ),
}
_MOST_WORDS_BEHIND = 7
_PLEASE = re.compile(r"[ ,.!?]*(?:(?:please|today|then|exactly|s'il (?:te|vous) plait|svp|stp|aujourd'hui|au juste)[ ,.!?]*)*")
_SAID = {
    "en": one_of(r"""
        (?:your|the) (?:last|previous|earlier|first|latest) (?:answer|reply|response|message|sentence|explanation|point)
        your (?:answer|reply|response|explanation)
        what you (?:just )?(?:said|wrote|told me)|that|it|this|yourself|that last (?:part|bit|sentence)
        """),
    "fr": one_of(r"""
        (?:ta|votre|la) (?:derniere |precedente |premiere )?(?:reponse|explication|phrase)(?: precedente)?|ton (?:dernier |precedent )?message
        ce que (?:tu viens|vous venez) de dire|ce que tu as dit|ca|cela
        """),
}
_MANNER = {
    "en": one_of(rf"""
        again|once more|differently|slower|more slowly|louder|(?:a (?:bit|little) |much |even )?(?:shorter|longer|simpler|clearer|briefer)|short|brief(?:ly)?
        (?:more|less) (?:briefly|simply|clearly|detailed|formal(?:ly)?|polite(?:ly)?|simple|concise(?:ly)?)|in (?:more|less) detail
        (?:in|with) other words|another way
        (?:in|using|with) (?:simpler|simple|fewer|plain|plainer|easier|your own|other) (?:words|terms|language)
        in (?:one|two|three|a few|a single) (?:words?|sentences?)
        (?:as|in|into|using) (?:a list|bullet points)|(?:in|into|to) {TONGUE}|(?:as if|like) i(?:'m| am| were| was) (?:five|5|a child|ten)
        for (?:me|a child)|please
        """),
    "fr": one_of(rf"""
        encore(?: une fois)?|autrement
        (?:un peu |beaucoup |encore )?(?:plus|moins) (?:court|long|simple|clair|vite|fort|detaille|bref|simplement|lentement|clairement)e?s?
        (?:plus|moins) (?:poli|formel)(?:le)?(?:ment)?|en (?:plus|moins) (?:simple|court|long|detaille)|en (?:moins|plus) de mots|en plus de details
        brievement
        (?:avec|en) d'autres (?:mots|termes)|d'une autre (?:facon|maniere)|(?:en|avec des) (?:mots|termes) (?:plus )?simples
        en (?:une|deux|trois|quelques) (?:phrases?|mots?|lignes?)
        (?:en|sous forme de) (?:liste|puces)|en {TONGUE}|comme si j'avais \w+ ans|pour (?:moi|un enfant)|s'il (?:te|vous) plait|svp|stp
        """),
}
_AGAIN = {
    "en": re.compile(
        POLITE["en"] + rf"(?:(?:say|repeat|rephrase|reword|rewrite|shorten|simplify|translate|explain|summari[sz]e|expand|make|put|keep|turn|phrase)"
        rf"(?: (?:{_SAID['en']})(?: (?:{_MANNER['en']}))*| again| (?:in|into) {TONGUE})"
        rf"|repeat|(?:answer|reply|speak|talk|write)(?: to me)?(?: (?:{_MANNER['en']}))+|(?:and |now )?(?:{_MANNER['en']})|more details?|(?:go"
        rf"|carry) on|continue"
        r"|try again|start (?:over|again)|(?:forget|ignore) (?:that|it|everything|what i (?:just )?said)|(?:let's "
        r"|can we )?(?:talk about something else|change the subject)"
        r"|(?:what|why) (?:did|have) you (?:just )?(?:say|said|mean|answer|write)(?: by)?(?: that| this)?|what (?:did|have) i (?:just )?(?:say|said"
        r"|ask|asked)(?: you)?"
        r"|what (?:was|were) my (?:last|previous|first) (?:questions?|message)|what (?:were|are) we (?:just )?(?:talking|speaking) about"
        r"|i (?:don't|do not|didn't|did not) (?:understand|get)(?: (?:that|it|you|your (?:last )?answer))?"
        r"|(?:is|was|are|were|why (?:is|was)|how (?:sure|certain) are you (?:of|about)|what do you mean by|i (?:don't|didn't) (?:like|understand))? ?"
        r"(?:your|that) (?:last|previous|first) (?:answer|reply|response)(?: (?!to|about|on|for)\w+){0,5})[ ,.!?]*(?:(?:please|but|now|a bit)[ ,.!?]*)*"
    ),
    "fr": re.compile(
        POLITE["fr"] + rf"(?:(?:repete|repeter|redis|redire|reformule|dis|dire|explique|expliquer|traduis|raccourcis|resume|simplifie|corrige|developpe)[rz]?"
        rf"(?:-(?:moi|nous|le|la))*(?: (?:{_SAID['fr']}))?(?: (?:{_MANNER['fr']}))+"
        rf"|(?:repete|redis|reformule|traduis|raccourcis|simplifie|explique|resume)[rz]?(?:-(?:moi|nous|le|la))*(?: (?:{_SAID['fr']}))|(?:repete"
        rf"|reformule)[rz]?(?:-moi|-le|-la)?"
        rf"|(?:reponds|parle|ecris|fais|repondez|parlez)(?:-moi)?(?: (?:{_MANNER['fr']}))+|(?:et )?(?:maintenant )?(?:{_MANNER['fr']})|plus de details"
        rf"|continue[rz]?|recommence[rz]?|vas-y"
        r"|(?:oublie|ignore)[rz]? (?:ca|cela|tout)|changeons de sujet|parlons d'autre chose|(?:qu'est-ce que|que) (?:tu viens|viens-tu|vous venez"
        r"|venez-vous) de dire"
        r"|qu'est-ce que tu (?:as dit|veux dire)|que veux-tu dire|(?:qu'est-ce que je|que) (?:viens(?:-je)? de|t'ai) (?:dire|demander?|dit)"
        r"|de quoi (?:parlions-nous|on parlait)"
        r"|quelle (?:etait|est) ma (?:derniere|premiere|precedente) question|je (?:n'ai pas compris|ne comprends pas)(?: ta (?:derniere )?reponse| ca)?"
        r"|(?:pourquoi |est-ce que |je (?:n'aime pas|ne comprends pas) )?(?:ta|votre|la) (?:derniere|precedente) reponse(?: (?!sur|a|au|pour)[\w'-]+){0,5})"
        r"[ ,.!?]*(?:(?:s'il (?:te|vous) plait|svp|stp)[ ,.!?]*)*"
    ),
}


def about_the_assistant(wording: Wording) -> Iterator[Sign]:
    """What shows that a message is about the assistant, or about what was said before, and about nothing else."""
    yield from _about_itself(wording)
    yield from _about_what_was_said(wording)


def _about_itself(wording: Wording) -> Iterator[Sign]:
    """What asks about the assistant and about nothing else."""
    for start in beginnings_of(wording):
        about = wording.begins(_ASSISTANT, start)
        if about and _PLEASE.fullmatch(wording.plain, about.end()):
            yield wording.sign(about, "is about the assistant")
            return
        likes = wording.begins(_LIKES, start)
        if likes and _is_small_talk(wording, likes.end()):
            yield wording.sign(likes, "asks what the assistant thinks or feels")
            return


def _is_small_talk(wording: Wording, start: int) -> bool:
    """Whether few words stand behind what the assistant is asked to like or to think of, and none of business."""
    few = len(wording.plain[start:].split()) <= _MOST_WORDS_BEHIND
    return few and wording.find(_SERIOUS, start) is None and wording.find(MENTIONED, start) is None


def _about_what_was_said(wording: Wording) -> Iterator[Sign]:
    """Repeat that, shorter please, your last answer: the whole message is about the conversation."""
    again = next(
        (
            match
            for language in wording.languages
            if (match := _AGAIN[language].fullmatch(wording.plain) or _AGAIN[language].match(wording.plain)) and _is_all(wording, match)
        ),
        None,
    )
    if again and wording.find(MENTIONED) is None:
        yield wording.sign(again, "is about what was said before")


def _is_all(wording: Wording, match: re.Match[str]) -> bool:
    """Whether nothing stands behind it, or a few words behind a pause that ask for nothing else."""
    behind = wording.plain[match.end() :]
    paused = bool(match.group().strip()) and match.group()[-1:] == " " and match.group().rstrip()[-1:] in ",.!"
    return not behind or (paused and len(behind.split()) <= _MOST_WORDS_BEHIND and wording.find(REQUEST, match.end()) is None)
