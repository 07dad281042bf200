"""Talk that needs no document: greetings, the assistant itself, sums, and texts that the question brings along."""

import re
from collections.abc import Iterator

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
_ASSISTANT = {
    "en": words_like(
        "who (?:made|created|built|trained|programmed|designed|developed|wrote|owns|invented) you|(?:who|what) (?:exactly )?are you"
        "|what (?:else )?can (?:you|i ask you)(?: \\w+){0,2}(?: for me| with| about)?(?= ?\\?|$)|what do you (?:know|do|think|like|feel|want"
        "|prefer|look like|eat|mean)|what are you (?:able|capable|good|doing|thinking|made)|(?:what|how) can you (?:help|do|answer)",
        "(?:are|were) you (?:an? |sure|certain|human|alive|real|able to (?!tell|find|give|show)|capable|happy|sad|tired|bored|there|kidding"
        "|joking|serious|listening|conscious|sentient|ok\\b|okay|male|female|chatgpt|gpt|online|ready|better|smarter|faster|cleverer"
        "|more \\w+ than|awake|angry|jealous|lying|busy|smart|intelligent|based on|connected|trained|programmed|afraid|allowed)|(?:trust"
        "|believe) (?:you|what you)|what you (?:say|tell me)",
        "(?:do|did|don't) you (?:ever|get (?:bored|tired)|sleep|dream|feel|like|love|hate|enjoy|speak|understand|remember|think|believe"
        "|prefer|want|eat|learn|make mistakes|hallucinate|lie|know (?:everything|who i am|me|my|what you|how to|any|a joke)|have (?:feelings"
        "|a name|a favou?rite|an opinion|emotions|a body|friends|hobbies|any|parents|dreams|memory)|store (?:my|our)|save (?:my|our)"
        "|keep (?:my|our)|use (?:gpt|an llm|ai)|work on|need (?:sleep|a break|rest)|mind|agree|see me|hear)",
        "(?:which|what|how many|any(?: other)?) languages? (?:do|can|are) you(?: \\w+)?|can you (?:speak|understand|see|hear|feel|think"
        "|remember|learn|draw|sing|dance|count|lie|read my|make mistakes|be wrong|browse|access the internet|code|program|keep a secret|guess"
        "|laugh|pass|cook|love|dream|play)",
        "(?:what(?:'s| is| are)|who(?:'s| is)) your (?:name|names|favou?rite|opinion|purpose|creator|maker|model|version|age|job"
        "|mother tongue|limits?|limitations|knowledge cutoff|training|birthday|mood|hobby|hobbies|role|iq|sources?|gender)|your (?:favou?rite"
        "|opinion|knowledge cutoff|training data|creators?|feelings)|how old are you|where (?:are|do) you (?:from|live|come from)"
        "|when were you (?:made|born|created|built|trained|last updated)|how (?:do|were|are) you (?:work|trained|built|made|know|doing"
        "|feeling|learn)|how (?:smart|clever|fast|big|accurate|reliable) are you",
        "compare yourself|describe yourself|introduce yourself|tell me about yourself|about yourself|say something(?: \\w+)?|would you rather"
        "|why (?:are|do|did|can't|won't|don't) you|you(?:'re| are) (?:wrong|right|stupid|great|funny|amazing|useless|the best|so \\w+"
        "|very \\w+|slow|not)|i (?:love|hate|like|miss) you|talk to me|will you (?:marry|be my|take over|replace)|have you (?:ever"
        "|got feelings|read any good|seen any)|am i (?:talking|speaking|chatting) (?:to|with)|is (?:this|there) (?:a human|a real person"
        "|a person|a bot|an ai)|in your (?:opinion|view)|what would you (?:do|choose|say|recommend)|if you were",
    ),
    "fr": words_like(
        "(?:tes|ta|ton) (?:reponses?|connaissances?|sources?|donnees|precedentes?)|et toi|me tutoyer|qui (?:t'a|vous a|t'ont) (?:appris|donne"
        "|nomme|cree|fait|concu|programme|entraine|invente|developpe|construit|fabrique)e?|qui (?:es-tu|etes-vous)|tu es qui|(?:que"
        "|qu'est-ce que tu) (?:sais-tu|peux-tu|sais|peux|penses|aimes|fais|ressens|veux|preferes)(?:-tu)?(?: \\w+)?(?: faire)?|(?:que"
        "|quoi) (?:savez-vous|pouvez-vous) faire|comment (?:t'appelles-tu|vous appelez-vous|tu t'appelles|fonctionnes-tu|tu fonctionnes"
        "|peux-tu m'aider|tu peux m'aider|te sens-tu|vas-tu)|a quoi (?:sers-tu|tu sers|penses-tu|tu penses)",
        "es-tu|etes-vous (?:un|une|sur|sure|humain|capable|programme|une ia|vivant|vraiment)|t'es \\w+|t'as (?:compris|bien|tout|quel|deja"
        "|peur|faim|un|une|raison|tort|oublie)\\b|on se (?:tutoie|connait|vouvoie)|tu es (?:un|une|sur|sure|humain|bete|vivant|vraiment"
        "|capable|libre|genial|super|trop|tres|fatigue|la|nul|drole|gentil|ou|en)\\w*|tu (?:ne |n'|te |t'|me |m'|l'|y )?(?:parles|reponds"
        "|sais|connais|comprends|penses|crois|aimes|dors|reves|mens|trompes|souviens|rappelles|apprends|ressens|preferes|manges|ennuies"
        "|as (?:peur|un|une|des|deja|quel|faim|bien|l'air|raison|tort)|fais (?:quoi|semblant|expres)|vas bien|viens d'où|habites|existes|mets"
        "|plaisantes|rigoles|entends|vois|bosses|travailles|coutes|hesites)",
        "(?:parles|sais|connais|comprends|penses|crois|aimes|dors|reves|mens|ressens|preferes|manges|apprends|vois|entends|viens|vis|as"
        "|gardes|retiens|t'ennuies|te trompes|te souviens)-tu(?! (?:le numero|la date|l'adresse|où (?:se|est|sont)))|peux-tu (?:te tromper"
        "|mentir|parler|comprendre|apprendre|penser|chanter|dessiner|rever|te souvenir|lire dans|voir|entendre|ressentir|oublier)|parlez-vous"
        "|comprenez-vous",
        "(?:quel est|quelle est|quels sont|quelles sont|c'est quoi) (?:ton|ta|tes) \\w+|(?:ton|ta|tes) (?:nom|avis|opinion|createurs?"
        "|couleur preferee|age|limites|langue maternelle|memoire|humeur|reve|blague)|quel age as-tu|tu as quel age|d'où (?:viens-tu|tu viens)"
        "|où (?:habites-tu|vis-tu)|(?:en )?quelles? langues? (?:parles-tu|parlez-vous|tu parles|comprends-tu|peux-tu)|pourquoi (?:tu|es-tu"
        "|ne |n'es-tu|m'as-tu|reponds-tu)\\b(?: \\w+){0,3}",
        "presente-toi|decris-toi|compare-toi|parle(?:-moi)? de toi|dis-moi quelque chose|dis quelque chose|entre nous|a ton avis|selon toi"
        "|d'apres toi|je (?:t'aime|te deteste|t'adore)|est-ce que tu (?!peux me|peux trouver|pourrais|as le|as la|sais (?:où|quand|qui|si"
        "|combien)|connais (?:le|la|l'))\\w+|suis-je en train de parler|est-ce que je parle (?:a|avec)|veux-tu (?:m'epouser|etre|jouer"
        "|discuter)|si tu (?:etais|avais|pouvais)|a ta place",
    ),
}
_ABOUT_THE_TALK = {
    "en": words_like(
        "(?:your|that|this|my) (?:last|previous|earlier|first|former|latest) (?:answer|reply|response|message|question|sentence|explanation"
        "|point)|the (?:last|previous) (?:answer|reply|response)|your (?:answer|reply|response|explanation)|(?:what|why|how) (?:did"
        "|have) (?:you|i) (?:just )?(?:say|said|mean|ask|asked|write)|what you (?:just )?(?:said|wrote|told me)|say (?:that|it|this) (?:again"
        "|differently|in|more)|repeat (?:that|it|this|what|yourself|please|the last)|(?:in|use|with) (?:simpler|other|fewer|plain"
        "|easier) (?:words|terms|english|language)",
        "as if i (?:were|was) (?:five|a child|\\w+ years)|like i'm (?:five|5)|(?:make|put|keep|write) (?:it|that|this)(?: \\w+)? (?:shorter"
        "|longer|simpler|clearer|in|into|more|less|as|a bit|brief)|(?:a bit |much )?(?:shorter|longer|simpler|slower|louder|again|more detail"
        "|more details)(?:,? please)?(?=[.!? ]*$)|go on|carry on|continue(?=[.!? ]*$)|(?:start|try) (?:over|again)|(?:forget|ignore|delete"
        "|erase) (?:that|what i|everything|our|the previous|all previous)|(?:let's|can we) (?:talk about something else|change the subject"
        "|start over|play|chat)|our (?:conversation|chat|discussion)|were we (?:just )?talking|we were (?:just )?talking|translate (?:that|it"
        "|this|your)|now in (?:french|german|spanish|english|italian|dutch)|answer (?:in|only|with|me in)|from now on|bullet points"
        "|talk (?:to you )?later|that (?:doesn't|does not) (?:help|make sense|answer)|i (?:don't|do not|didn't) understand(?=[.!? ]*$"
        "|.{0,12}(?:you|your))",
    ),
    "fr": words_like(
        "(?:ta|votre|cette) (?:derniere|precedente|premiere) (?:reponse|phrase|question|explication)|la (?:derniere|precedente) reponse|(?:ta"
        "|votre) (?:reponse|explication|phrase)(?: precedente)?|ma (?:derniere|precedente) question|(?:ce que|qu'est-ce que|que) (?:tu viens"
        "|vous venez|tu as|tu m'as|tu|je viens|j'ai|viens-tu|m'as-tu) (?:de |dit|ecrit|repondu|raconte|demande)(?:dire|ecrire|raconter"
        "|m'expliquer)?|repete\\S*|(?:redis|reformule|dis|explique)(?:-moi|-le|-le-moi)? ?(?:ca|cela|le)?(?: encore)? (?:autrement"
        "|plus simplement|en plus simple|plus lentement|avec d'autres mots|en d'autres termes)",
        "(?:en |un peu |beaucoup )?(?:plus|moins) (?:court|long|simple|vite|lentement|fort|clair|clairement|detaille|simplement|bref"
        "|poli)e?s?(?:,? s'il (?:te|vous) plait| stp| svp)?(?=[.!? ]*$)|continue[rz]?(?=[.!? ]*$)|recommence(?=[.!? ]*$)|(?:oublie|ignore"
        "|efface)[rz]? (?:ca|cela|tout|ce que|ma|notre|la conversation)|changeons de sujet|parlons d'autre chose|notre (?:conversation"
        "|discussion|echange)|traduis(?:-le|-la|-moi ca| ca| ta| cela)|desormais|a partir de maintenant|et maintenant en (?:anglais|allemand"
        "|espagnol|breton|italien)|(?:reponds|redis)(?:-moi|-le)? (?:en|par|plus|juste|seulement)|en (?:moins|plus) de mots|raccourcis(?:-la"
        "|-le| ca| ta| ton)|comme si j'avais \\w+ ans|(?:tu peux |peux-tu |pouvez-vous )?(?:repeter|recommencer|reformuler)(?=[ ?.!]*$)"
        "|explique(?:-moi)? (?:ca|cela)|je me suis trompee? de|je (?:n'ai pas compris|ne comprends pas)(?=[.!? ]*$|.{0,14}(?:tu|ta reponse))",
    ),
}
_CREATE = {
    "en": words_like(
        "(?:write|compose|make up|make|tell|give|sing|invent|draw|create|recite|improvise|think of|come up with|generate)(?: me| us)? (?:an? "
        "|another |some |one |two |three )(?:[\\w-]+ )?(?:poem|haiku|limerick|sonnet|song|rap|joke|riddle|pun|rhyme|fairy tale|bedtime story"
        "|short story|nursery rhyme|tongue twister|ode|lullaby|ballad|acrostic|motto|slogan|horoscope|picture|drawing|ascii art|knock-knock"
        "|story|toast|birthday (?:message|wish|card|greeting)|love letter|pick-up line)s?|(?:sing|dance|whistle)(?: me| for me)?(?=[.!? ]*$)"
        "|make me (?:laugh|smile)|(?:tell|say) (?:me )?something (?:funny|nice|interesting|else)|(?:a |another )?(?:synonyms?|antonyms?"
        "|rhymes?|anagrams?|opposites?|plural)(?: word)? (?:for|of|with) |i(?:'m| am) (?:bored|sad|happy|tired|hungry|lonely|lost|back"
        "|kidding)|flip a coin|roll (?:a|the|two) dice|(?:pick|choose|give me|think of|guess) (?:a|any|me a) (?:random )?number"
        "|random (?:number|name|password|word|colour|color)|play (?:chess|a game|hangman|tic-tac-toe|twenty questions)|how (?:many"
        "|much) wood would a woodchuck|meaning of life",
    ),
    "fr": words_like(
        "(?:ecri[st]|ecrivez|compose|invente|raconte|dis|fais|chante|dessine|cree|recite|improvise|imagine)[rz]?(?:-moi|-nous)? (?:un |une "
        "|des |quelques |deux |trois )(?:\\w+ )?(?:poeme|haiku|sonnet|chanson|rap|blague|devinette|charade|jeu de mots|comptine|conte"
        "|histoire drole|histoire|fable|limerick|virelangue|ode|berceuse|acrostiche|slogan|horoscope|dessin|calembour|rime|alexandrin"
        "|quatrain|declaration d'amour|carte d'anniversaire|mot d'anniversaire)s?|dessine(?:-moi)?|chante(?:-moi)?(?=[.!? ]|$)|(?:fais|fait"
        "|faire)(?:-moi)? rire|(?:invente|improvise|imagine)(?:-moi|-nous)? (?:un |une |des |trois )|(?:synonyme|antonyme|contraire|anagramme"
        "|pluriel|feminin|rime)s? (?:de|du|d'|a|avec)|je m'ennuie|je (?:suis|me sens) (?:triste|fatiguee?|content|contente|seule?)"
        "|quel temps fait-il|il fait (?:beau|chaud|froid)|(?:lance|tire) (?:un de|les des|une piece|a pile ou face)|(?:choisis|donne-moi"
        "|pense a|devine|tire) (?:un (?:nombre|chiffre)|une (?:carte|couleur))|joue(?:r|ons)? (?:avec moi|aux echecs|au pendu|au morpion|a)"
        "|sens de la vie|pile ou face",
    ),
}
_REWRITE = {
    "en": re.compile(
        r"(?:(?:please|now|then|so|hi|hello|ok|can you|could you|would you|will you|i want you to|i need you to|i'd like you to"
        r"|help me(?: to)?|kindly|just)[ ,]{1,3}){0,6}(?:(?P<sure>translate|rephrase|reword|rewrite|paraphrase|proofread|shorten|summari[sz]e"
        r"|simplify|condense|spell-?check)"
        r"|correct|expand|turn|convert|put|change|fix|polish|edit|transform|alphabeti[sz]e|sort|reverse|spell|conjugate|format|punctuate"
        r"|continue|complete|finish|improve|make|tidy up|count|classify)(?!\w)"
    ),
    "fr": re.compile(
        r"(?:(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu peux|veux-tu|bonjour|s'il (?:te|vous) plait|svp|stp|maintenant|ensuite|puis"
        r"|alors|aide-moi a|merci de|il faut|je veux que tu|me|le|la)[ ,]{1,3}){0,6}(?:(?P<sure>tradui[st]\w*|traduire|reformule\w*|reecri\w*"
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
        "(?:how (?:do|would|can) (?:you|i|we|one) say|what is|what's|translate|how to say) .{2,60} (?:in|into|to) (?:english|french|german"
        "|spanish|italian|dutch|portuguese|japanese|chinese|breton|latin|russian|arabic|polish|swedish|greek|welsh)|how (?:do you|is"
        "|do i) (?:spell|spelled|pronounce|pronounced)"
    ),
    "fr": words_like(
        "(?:comment (?:dit-on|on dit|dire|dirais-tu|se dit|tu dis|traduire|traduit-on)|tradui\\w+|que se dit) .{2,60} (?:en|vers l'"
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
    found = [*_texts(wording), *_creations(wording)]
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


def _creations(wording: Wording) -> Iterator[Sign]:
    if created := wording.find(_CREATE):
        yield wording.sign(created, "asks for something to be made up")
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
    elif said := wording.find(_ABOUT_THE_TALK):
        yield wording.sign(said, "is about what was said before")
