"""Talk that needs no document: greetings, the assistant itself, sums, and texts that the question brings along."""

import re
from collections.abc import Iterator

from llama_index_advanced_rag.text.question_routes.beginnings import beginnings_of
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, words_like

_QUOTED = re.compile(r"[«“\"„].{2,}[»”\"]|(?<!\w)'.{2,}'(?!\w)")

_GREETING = {
    "en": re.compile(
        r"(?:(?:hi+|hello|hey+|howdy|greetings|good (?:morning|afternoon|evening|night|day)|welcome|bye|goodbye|see you(?: \w+)?|take care"
        r"|have a (?:\w+ )?(?:day|weekend|evening|one)"
        r"|thanks?|thank you|thx|ty|cheers|much appreciated|great|perfect|wonderful|excellent|awesome|super|brilliant|lovely|nice|cool"
        r"|well done|good job|amazing|fantastic|ok(?:ay)?|yes|no|yep|nope|sure|fine|right|got it|understood|sorry|never mind|nevermind|lol"
        r"|haha|hm+|wow|please|oops|my bad|(?:sorry )?wrong (?:window|chat|person|tab)"
        r"|there|again|everyone|all|team|assistant|bot|chatbot|robot|friend|mate|buddy|dear|so much|very much|a lot|a million|for (?:your|the"
        r"|all your|all the) (?:help|time|answer|answers|support|patience)|how are you(?: doing)?(?: today)?|how is it going|how's it going"
        r"|what's up|sup|how do you do|nice to meet you|you're welcome|today|indeed|that(?:'s| is| was) (?:all|it|great|perfect|helpful"
        r"|very helpful|really helpful|wrong|right|enough|nice|kind|funny)|and|for now|until next time|til tomorrow|see you tomorrow)"
        r"(?:[ ,;:.?!)(-]|$)+)+"
    ),
    "fr": re.compile(
        r"(?:(?:bonjour|bonsoir|salut|coucou|hello|hey|bonne (?:journee|soiree|nuit|fin de journee|continuation|annee)|au revoir|a bientot"
        r"|a plus(?: tard)?|a demain|adieu|ciao|bon (?:week-end|courage|apres-midi)|bienvenue"
        r"|merci|mille mercis|je (?:te|vous) remercie|remerciements|super|parfait|genial|excellent|formidable|nickel|bravo|chouette|cool"
        r"|tres bien|bien|ok|d'accord|oui|non|entendu|compris|desolee?|pardon|laisse tomber|haha|mdr|ah|oh|eh|s'il (?:te|vous) plait|svp|stp"
        r"|beaucoup|infiniment|bien|encore|a toi|a vous|a tous|a toutes|tout le monde|monsieur|madame|l'ami|l'assistant|cher|chere|et"
        r"|pour (?:ton|votre|ta|cette|l')? ?(?:aide|reponse|temps|patience|tout)|(?:comment )?(?:ca|tu) vas? (?:bien)?|comment (?:ca va|vas-tu"
        r"|allez-vous|tu vas)|(?:tu vas|vous allez) bien|quoi de neuf|ca roule|enchantee?|c'est (?:tout|parfait|gentil|super|note|bon|bien"
        r"|genial|faux)|pour (?:le moment|l'instant|aujourd'hui)|aujourd'hui|ce matin|ce soir)"
        r"(?:[ ,;:.?!)(-]|$)+)+"
    ),
}
_PRAISE = {
    "en": re.compile(
        r"(?:great|perfect|wonderful|excellent|awesome|super|brilliant|lovely|nice|well done|good job|amazing|fantastic|cheers|thanks?"
        r"|thank you)(?: so much| very much| a lot)?[,!.]"
        r"|(?:thanks|thank you)(?: so much| very much| a lot| again)? (?:for|that|this|you|it|i)\b|(?:that|this|it) (?:helps|helped"
        r"|was (?:\w+ )?(?:helpful|useful|quick|great|perfect))\b|(?:i(?:'ve| have)? (?:found|got)|got it|never ?mind|that's (?:all|it"
        r"|fine))\b[^?]{0,40}(?:thanks|thank you|cheers)[ .!]*\Z"
    ),
    "fr": re.compile(
        r"(?:merci|super|parfait|genial|excellent|formidable|nickel|bravo|chouette|cool|tres bien)(?: beaucoup| infiniment| bien)?[,!.]"
        r"| ?merci(?: beaucoup| infiniment| bien)? (?:pour|c'est|ca|tu|a toi|d'avance)\b|(?:ca|cela) m'aide\b|(?:c'est (?:bon|parfait|note"
        r"|clair)|j'ai (?:trouve|compris)|c'est tout)\b[^?]{0,40}merci[ .!]*\Z"
    ),
}
_REQUEST = {
    "en": words_like("who|what|when|where|which|why|how|whose|find|give|show|tell|list|can you|could you|compare|read|look up|i need|i want|explain"),
    "fr": words_like(
        "qui est|qui a|quel(?:le)?s?|quand|où|pourquoi|comment|combien|trouve\\S*|donne\\S*|montre\\S*|dis-moi|liste\\S*|peux-tu|pouvez-vous|pourr\\w+"
        "|j'ai besoin|je veux|je voudrais|est-ce|explique\\S*|qu'est-ce|indiqu\\S*|cherche\\b"
    ),
}
_POLITE = {
    "en": (
        "(?:(?:please|now|then|so|hi|hello|ok|can you|could you|would you|will you|i want you to|i need you to|i'd like you to"
        "|help me(?: to)?|kindly|just)[ ,]{1,3}){0,6}"
    ),
    "fr": (
        "(?:(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu peux|veux-tu|bonjour|s'il (?:te|vous) plait|svp|stp|maintenant|ensuite|puis"
        "|alors|aide-moi a|merci de|je veux que tu|me|le|la)[ ,]{1,3}){0,6}"
    ),
}
_ASSISTANT = {
    "en": words_like(
        "who (?:made|created|built|trained|programmed|designed|developed|wrote|owns|invented) you|(?:who|what) (?:exactly )?are you(?= ?[?,.]"
        "|$| and why)|what (?:else )?can (?:you|i ask you)(?: do| answer| help)?(?: for me| with| about| me with)?(?= ?\\?|$)"
        "|what do you (?:think|like|feel|prefer|look like|eat)|what are you (?:capable|good at|thinking|made)",
        "are you (?:(?:an? |the )?(?:real )?(?:robot|bot|human|person|machine|ai|computer|program|language model|llm|chatbot|man|woman|genius"
        "|model|real|alive)|sure(?=[ ?.!]*$| (?:about|of) (?:that|it))|certain(?=[ ?.!]*$)|happy|sad|tired|bored|there|kidding|joking|serious"
        "|listening|conscious|sentient|ok\\b|okay|chatgpt"
        "|gpt|awake|angry|jealous|lying|smart|intelligent|afraid|better than|smarter|faster|cleverer|able to (?:think|lie|feel|learn"
        "|make mistakes|be wrong|speak|understand me)|allowed to (?:disagree|lie|swear|tell me))",
        "(?:do|did|don't) you (?:ever|get (?:bored|tired)|sleep|dream|feel|like|love|hate|enjoy|speak|understand me|remember|think|believe"
        "|prefer|eat|make mistakes|hallucinate|lie|know (?:everything|who i am|me)\\b|have (?:feelings|a name|a favou?rite|an opinion"
        "|emotions|a body|friends|hobbies|parents|dreams|a soul)|use (?:gpt|an llm|ai)|need (?:sleep|a break|rest)|agree with me)",
        "(?:which|what|how many|any(?: other)?) languages? (?:do|can) you(?: \\w+)?|can you (?:speak|feel|think|dream|lie|make mistakes"
        "|be wrong|keep a secret|sing|dance|laugh|remember (?:me|what i|my name)|read my mind|love|understand me)|can i (?:trust|believe"
        "|rely on) (?:you|what you)",
        "(?:what(?:'s| is| are)|who(?:'s| is)) your (?:name|names|favou?rite|opinion|purpose|creator|maker|model|age|job|mother tongue"
        "|limits?|limitations|knowledge cutoff|training|birthday|mood|hobby|hobbies|iq|sources?|gender)|your (?:favou?rite|opinion"
        "|knowledge cutoff|training data|creators?|feelings)|how old are you|where (?:are you from|do you (?:live|come from))"
        "|when were you (?:made|born|created|built|trained|last updated)|how (?:do you work(?= ?\\?|$)|were you (?:trained|built|made)"
        "|are you(?: doing| feeling)?(?= ?[?,.]|$| today| this))|how (?:smart|clever|accurate|reliable) are you",
        "(?:compare|describe|introduce) yourself|about yourself|would you rather|why (?:are|do|did|can't|won't|don't) you (?:always|keep"
        "|never|so|slow|say|repeat|answer|sound|lie|apologi[sz]e|hesitate|ask me)|(?:^|, |i think |haha |lol )you(?:'re| are) (?:wrong|right|stupid"
        "|great|funny|amazing|useless|the best|so \\w+|very \\w+|slow)|which of us|who would you|(?:nice|good|great) (?:talking"
        "|chatting) (?:to|with) you|i (?:love|hate|like|miss) you|talk to me|will you (?:marry|be my)"
        "|have you ever|am i (?:talking|speaking|chatting) (?:to|with)|is this (?:a human|a real person|a bot|an ai)|in your (?:opinion|view)",
    ),
    "fr": words_like(
        "qui (?:t'a|vous a|t'ont) (?:appris|donne|nomme|cree|fait|concu|programme|entraine|invente|developpe|construit|fabrique)e?"
        "|qui (?:es-tu|etes-vous)|tu es qui|(?:que|qu'est-ce que tu) (?:sais-tu faire|peux-tu faire|sais faire|peux faire|penses|aimes"
        "|ressens|preferes|en penses|penses-tu|aimes-tu|ressens-tu)|(?:que|quoi) (?:savez-vous|pouvez-vous) faire|comment (?:t'appelles-tu"
        "|vous appelez-vous|tu t'appelles|fonctionnes-tu|tu fonctionnes|peux-tu m'aider|tu peux m'aider|te sens-tu|vas-tu)|(?:a"
        "|de) quoi (?:sers-tu|tu sers|penses-tu|tu penses|es-tu capable)",
        "es-tu|etes-vous (?:humain|un robot|une machine|une ia|un humain|sur|sure|reel|vivant)|t'es (?:sur|bete|nul|drole|la|genial|qui|un"
        "|une|trop|vraiment|en)\\w*|t'as (?:compris|quel|peur|faim|raison|tort|oublie)|tu es (?:un|une|sur|sure|humain|bete|vivant|vraiment"
        "|libre|genial|super|trop|tres|fatigue|nul|drole|gentil)\\w*|on se (?:tutoie|vouvoie)|me tutoyer|et toi",
        "tu (?:ne |n'|te |t'|me |m'|l'|y )?(?:parles|reponds|comprends|penses|crois|aimes|dors|reves|mens|trompes|souviens|rappelles|apprends"
        "|ressens|preferes|manges|ennuies|sais (?:faire|quoi|chanter|parler|qui je|mentir)|as (?:peur|faim|raison|tort|quel age"
        "|des sentiments|deja)|fais semblant|te moques|vas bien|viens d'où|existes|plaisantes|rigoles|m'entends|hesites|connais une)",
        "(?:parles|comprends|penses|crois|aimes|dors|reves|mens|ressens|preferes|manges|apprends|viens|vis|t'ennuies|te trompes"
        "|te souviens)-tu|sais-tu (?:faire|chanter|qui je|mentir|parler)|connais-tu une|as-tu (?:peur|faim|un nom|une ame|des sentiments|deja"
        "|un avis|bien dormi|une preference)|peux-tu (?:te tromper|mentir|parler|me comprendre|apprendre|penser|rever|te souvenir|ressentir"
        "|oublier)|parlez-vous|comprenez-vous",
        "(?:quel est|quelle est|quels sont|quelles sont|c'est quoi) (?:ton|ta|tes) \\w+|(?:ton|ta|tes) (?:nom|avis|opinion|createurs?"
        "|couleur preferee|age|limites|langue maternelle|humeur|reponses?|connaissances?|sources?)|quel age as-tu|d'où (?:viens-tu|tu viens)"
        "|où (?:habites-tu|vis-tu)|(?:en )?quelles? langues? (?:parles-tu|parlez-vous|tu parles|comprends-tu|peux-tu)|pourquoi (?:tu|es-tu"
        "|n'es-tu|m'as-tu|reponds-tu|ne (?:veux|peux|reponds|sais)-tu)",
        "presente-toi|decris-toi|compare-toi|parle(?:-moi)? de toi|dis quelque chose|a ton avis|selon toi|d'apres toi|je (?:t'aime|te deteste"
        "|t'adore)|est-ce que tu (?:parles|comprends|penses|crois|aimes|dors|reves|mens|existes|m'entends|es|ressens|te|t'|as (?:peur|faim"
        "|des))|est-ce que je parle (?:a|avec)|veux-tu (?:m'epouser|etre)|a ta place",
    ),
}
_SAID_BEFORE = {
    "en": words_like(
        "(?:your|that) (?:last|previous|earlier|first|latest) (?:answer|reply|response|message|question|sentence|explanation)|my (?:last"
        "|previous) question|the (?:last|previous) (?:answer|reply|response)|your (?:answer|reply|response|explanation)|what (?:did"
        "|have) i (?:just )?(?:say|said|ask|asked)|(?:what|why) (?:did|have) you (?:just )?(?:say|said|mean)|what you (?:just )?(?:said|wrote"
        "|told me)|(?:in|use|with) (?:simpler|fewer|plainer|easier) (?:words|terms|language)|use bullet points|were we (?:just )?talking"
        "|our (?:conversation|chat)|as if i (?:were|was) (?:five|a child)|like i'm (?:five|5)|i (?:don't|do not|didn't) (?:understand|get it"
        "|get that)(?=[.!?, ]*$|.{0,40}again)",
    ),
    "fr": words_like(
        "(?:ta|votre) (?:(?:derniere|precedente|premiere) )?(?:reponse|explication|phrase)(?: precedente)?|la (?:derniere|precedente) reponse"
        "|ma (?:derniere|precedente) question|(?:ce que|qu'est-ce que) (?:tu viens|vous venez|tu as dit|tu m'as|tu dis)"
        "|comme si j'avais \\w+ ans|notre (?:conversation|discussion)|je (?:n'ai pas compris|ne comprends pas)(?=[.!? ]*$|.{0,14}(?:tu"
        "|ta reponse))|trompee? de (?:fenetre|conversation|chat)|en (?:moins|plus) de mots|(?:ecris|ecrire|parle|parler|reponds"
        "|repondre) (?:plus|moins) \\w+(?=[ ?.!]*$)",
    ),
}
_AGAIN = {
    "en": words_like(
        _POLITE["en"] + "(?:(?:say|repeat|explain|rephrase|translate|summari[sz]e|shorten|simplify|rewrite) (?:that|it|this"
        "|yourself)(?: \\w+){0,4}(?=[.!?, ]*(?:please|slower|but|$))|repeat(?=[.!? ]*$)|(?:make|put|keep|write|turn) (?:it|that|this"
        "|your \\w+ \\w+)(?: \\w+)? (?:shorter|longer|simpler|clearer|in|into|more|less|brief)\\b|(?:a bit |much )?(?:shorter|longer|simpler"
        "|slower|louder|again|more detail|more details)(?:,? please)?(?=[.!? ]*$)|(?:go|carry) on(?=[.!? ]*$)|continue(?=[.!? ]*$)"
        "|(?:start over|try again)(?=[.!? ]*$)|(?:forget|ignore) (?:that|what i|everything|all previous)|(?:let's"
        "|can we) (?:talk about something else|change the subject|chat)|now in (?:french|german|spanish|english|italian|dutch)|answer (?:in"
        "|only|with|me in) |talk (?:to you )?later|explain again)",
    ),
    "fr": words_like(
        _POLITE["fr"] + "(?:repete\\S*|repeter(?=[ ?.!]*$)|(?:redis|reformule|dis|explique)(?:-moi|-le|-le-moi)? ?(?:ca|cela|le)?(?: encore)? (?:autrement"
        "|plus simplement|en plus simple|plus lentement|avec d'autres mots|en d'autres termes|comme si)|(?:redis|reformule|explique|traduis"
        "|raccourcis|resume|simplifie|corrige)(?:-moi|-nous)? ?(?:-le|-la|ca|cela)(?=[.!?, ]|$)|(?:en |un peu |beaucoup )?(?:plus"
        "|moins) (?:court|long|simple|vite|lentement|fort|clair|clairement|detaille|simplement|bref|poli)e?s?(?:,? s'il (?:te|vous) plait"
        "| stp| svp)?(?=[.!? ]*$)|continue[rz]?(?=[.!? ]*$)|recommence[rz]?(?=[.!? ]*$)|(?:oublie|ignore|efface)[rz]? (?:ca|cela|tout|ce que"
        "|ma)\\b|changeons de sujet|parlons d'autre chose|et maintenant en (?:anglais|allemand|espagnol|breton|italien)"
        "|reponds(?:-moi)? (?:en|par|plus|juste|seulement)\\b|ne fais pas de)",
    ),
}
_MADE_UP = "poem|haiku|limerick|sonnet|song|rap\\b|joke|riddle|poeme|chanson|blague|devinette|charade|dessin"
_CREATE = {
    "en": words_like(
        _POLITE["en"] + "(?:write|compose|make up|tell|sing|invent|draw|recite|improvise|give|come up with|think of|make|create)(?: me| us)? (?:an? |another "
        "|some |one |two |three )(?:[\\w-]+ )?(?:poem|haiku|limerick|sonnet|song|rap|joke|riddle|pun|rhyme|fairy tale|bedtime story|story"
        "|nursery rhyme|tongue twister|ode|lullaby|ballad|acrostic|slogan|horoscope|drawing|knock-knock|birthday (?:message|wish|card"
        "|greeting)|love letter)s?|draw (?:me )?an? |say (?:hello|hi|goodbye|thanks) to|pretend (?:that )?(?:you|to be)|(?:sing|dance"
        "|whistle)(?: me| for me)?(?=[.!? ]*$)|make me (?:laugh|smile)|(?:tell"
        "|say) (?:me )?something(?: (?:funny|nice|interesting|else))?(?=[.!? ]*$)|(?:find |make |give me |tell me |what(?:'s| is) )?(?:an? "
        "|another |the |some |two |three |five )?(?:(?:synonyms?|antonyms?|anagrams?|rhymes?)(?: word)? (?:for|of|with) |word that rhymes)|flip a coin"
        "|roll (?:a|the|two) dice|(?:pick|choose|give me|think of|guess) (?:a|any) (?:random )?number|i(?:'m| am) (?:bored|sad|happy|tired"
        "|hungry|lonely|back|kidding|off)(?=[.!?, ]|$)|play (?:chess|a game|hangman)|(?:what(?:'s| is) the )?meaning of life",
    ),
    "fr": words_like(
        _POLITE["fr"] + "(?:ecri[st]|ecrivez|compose|invente|raconte|dis|fais|chante|dessine|cree|recite|improvise|imagine|connais-tu|tu connais)[rz]?(?:-moi"
        "|-nous)? (?:un |une |des |quelques |deux |trois )(?:\\w+ )?(?:poeme|haiku|sonnet|chanson|rap|blague|devinette|charade|jeu de mots"
        "|comptine|conte|histoire|fable|virelangue|ode|berceuse|acrostiche|slogan|horoscope|dessin|calembour|rime|alexandrin|quatrain"
        "|declaration d'amour)s?|(?:dessine|chante)(?:-moi|-nous)|chante(?=[.!? ]*$)|raconte(?:-moi|-nous)? un |dis (?:bonjour|au revoir"
        "|merci) a|(?:invente|improvise|imagine)(?:-moi|-nous)? (?:un |une "
        "|des )|(?:fais-moi|me faire|faire) rire|(?:donne(?:-moi)? |trouve(?:-moi)? |quel est )?(?:un |le |une |l')?(?:synonyme|antonyme|anagramme"
        "|rime)s? (?:de|du|d'|a|avec)\\b|je m'ennuie|je (?:suis|me sens) (?:triste|fatiguee?|contente?|seule?)(?=[.!?, ]|$)"
        "|quel temps fait-il(?: chez toi| dehors| aujourd'hui)?(?=[.!? ]*$)|(?:choisis|donne-moi|pense a|devine) (?:un (?:nombre|chiffre)"
        "|une (?:carte|couleur))|joue(?:r|ons)? (?:avec moi|aux echecs|au pendu)|pile ou face|compte(?:-moi)? jusqu'a",
    ),
}
_REWRITE = {
    "en": re.compile(
        _POLITE["en"] + r"(?:(?P<sure>translate|rephrase|reword|rewrite|paraphrase|proofread|shorten|summari[sz]e"
        r"|simplify|condense|spell-?check)"
        r"|correct|expand|turn|convert|put|change|fix|polish|edit|transform|alphabeti[sz]e|sort|reverse|spell|conjugate|format|punctuate"
        r"|continue|complete|finish|improve|make|tidy up|count|classify)(?!\w)"
    ),
    "fr": re.compile(
        _POLITE["fr"] + r"(?:(?P<sure>tradui[st]\w*|traduire|reformule\w*|reecri\w*"
        r"|paraphrase\w*|corrige\w*|raccourci\w*|resume\w*|simplifie\w*|abrege\w*|condense\w*|conjugue\w*)"
        r"|developpe\w*|transforme\w*|mets|mettez|mettre|change\w*|convertis|ameliore\w*|relis|ordonne|trie|range|inverse|epelle\w*|remplace"
        r"|ponctue|complete\w*|continue|termine|allonge|classe|compte|remets|ecri[st])(?!\w)"
    ),
}
_BROUGHT = {
    "en": words_like(
        r"following(?: \w+)? (?:text|sentence|paragraph|email|e-mail|message|list|words?|phrase|letter|note|passage|draft|lines?)s?|(?:this"
        r"|these|my) (?:\w+ )?(?:text|sentence|paragraph|email|e-mail|message|list|words?|phrase|letter|note|passage|draft|line|verb|poem"
        r"|number|name)s?"
    ),
    "fr": words_like(
        r"(?:texte|phrase|liste|mots?|message|lettre|paragraphe|passage)s? suivante?s?|(?:ce|cette|ces|mon|ma|mes) (?:\w+ )?(?:texte|phrase"
        r"|paragraphe|courriel|mail|message|liste|mot|lettre|note|brouillon|ligne|verbe|poeme|nombre|nom)s?|ce qui suit"
    ),
}
_COLON = re.compile(r"(?<!\d) ?: ?\S")
_TEXT_BEHIND = re.compile(r" ?:\s?\S| ?[«“\"]")
_NEAR = 60
_SAID_ABROAD = {
    "en": words_like(
        "(?:how (?:do|would|can) (?:you|i|we|one) say|what is|what's|translate|how to say) (?!the |our |this |that |all |my ).{2,60} (?:in"
        "|into|to) (?:english|french|german"
        "|spanish|italian|dutch|portuguese|japanese|chinese|breton|latin|russian|arabic|polish|swedish|greek|welsh)|how (?:do you|is"
        "|do i) (?:spell|spelled|pronounce|pronounced)"
    ),
    "fr": words_like(
        "(?:comment (?:dit-on|on dit|dire|dirais-tu|se dit|tu dis|traduire|traduit-on)|tradui\\w+|que se dit) (?!le |la |les |notre |nos |ce "
        "|cette |l').{2,60} (?:en|vers l'"
        "|vers le) ?(?:anglais|francais|allemand|espagnol|italien|neerlandais|portugais|japonais|chinois|breton|latin|russe|arabe|polonais"
        "|suedois|grec|occitan|basque|corse)|comment (?:ecrit-on|s'ecrit|on ecrit|se prononce|epelle-t-on|ca s'ecrit)"
    ),
}


def talk_in(wording: Wording, names: int) -> list[Sign]:
    """What shows that no document is needed, if the whole question needs none.

    Args:
        wording: the question.
        names: how many names stand in it, greetings and the like left out: what names something is not about the assistant only.
    """
    found = [*_texts(wording), *_creations(wording, names)]
    if not found and not names:
        found = [*_courtesies(wording), *_about_the_assistant(wording)]
    return found


def _texts(wording: Wording) -> Iterator[Sign]:
    """A verb of rewriting and the text itself: in quotation marks, behind a colon, or spoken of as `this sentence`."""
    verb = wording.begins(_REWRITE)
    if verb is None:
        if (brought := wording.find(_BROUGHT)) and _TEXT_BEHIND.match(wording.plain, brought.end()):
            yield wording.sign(brought, "is a text that the question brings along")
        return
    behind = verb.end()
    quoted = _QUOTED.search(wording.plain, behind)
    sure = verb.group("sure") is not None
    colon = _COLON.search(wording.plain, behind) if sure else None
    if (quoted and quoted.start() - behind < _NEAR) or (colon and colon.start() - behind < _NEAR) or wording.find(_BROUGHT, behind):
        yield Sign(wording.written[:behind], "is to be done with a text that the question brings along")


def _creations(wording: Wording, names: int) -> Iterator[Sign]:
    """A poem, a joke, a game; with a name in it only what is surely made up."""
    for start in beginnings_of(wording):
        created = wording.begins(_CREATE, start)
        if created and (not names or re.search(_MADE_UP, created.group())):
            yield wording.sign(created, "asks for something to be made up")
            return
    if abroad := wording.find(_SAID_ABROAD):
        yield wording.sign(abroad, "asks for words of a language")


def _courtesies(wording: Wording) -> Iterator[Sign]:
    greeting = wording.begins(_GREETING)
    if greeting and greeting.end() >= len(wording.plain):
        yield wording.sign(greeting, "is what people say to each other")
        return
    praise = wording.begins(_PRAISE)
    if praise and "?" not in wording.plain and wording.find(_REQUEST, praise.end()) is None:
        yield wording.sign(praise, "is what people say to each other")


def _about_the_assistant(wording: Wording) -> Iterator[Sign]:
    if about := wording.find(_ASSISTANT):
        yield wording.sign(about, "is about the assistant")
        return
    said = wording.find(_SAID_BEFORE)
    again = next((match for start in beginnings_of(wording) if (match := wording.begins(_AGAIN, start))), None)
    if found := said or again:
        yield wording.sign(found, "is about what was said before")
