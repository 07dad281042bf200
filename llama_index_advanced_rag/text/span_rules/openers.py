"""Words with which sentences begin, so that their capital says nothing; the stop words of `text.languages` come on top."""

from llama_index_advanced_rag.text.span_rules.word_list import words_of

OPENERS = {
    "de": words_of("""
        aber allerdings also anschließend auch beispielsweise bereits bisher dabei dadurch dafür dagegen daher damals damit danach daneben dann daran
        darauf daraus darin darum darüber davon dazu demnach denn dennoch derzeit deshalb deswegen doch dort ebenfalls ebenso eigentlich einerseits
        erst etwa falls ferner früher ganz gegen gemäß gerade gleichzeitig heute hier hierbei hierzu ihm immer infolge innerhalb inzwischen ja jedoch
        jetzt kurz lange laut leider letztlich manche mehr meist mit mittlerweile nach nachdem nachfolgend natürlich neben nein nie noch nun nur ob
        obwohl oft ohne schließlich schon sehr seit seitdem selbst sobald sodass sofern sogar somit sonst sowie später stattdessen trotz trotzdem und
        unter viele vielleicht vielmehr vor vorher wegen weil weiter weitere weiterhin wenn weshalb wieder wobei wohl während zudem zuerst zuletzt
        zunächst zurzeit zusammen zusätzlich zwar zwischen überall übrigens
        """),
    "en": words_of("""
        abstract according accordingly accounting accounts across actual additional additionally address adverse afterwards aggregate ah almost alone
        along alongside already also alternatively although altogether among amongst amount amounts annex annual another anyone anything apart
        appendix around aside asset assets assuming author average back balance barriers based basic basis became become began begin beginning behind
        being besides best better beyond born breach breaches briefly building built calculating came cash certain certificates challenges change
        changes changing chapter clearly co-founded come coming commentators commercial common commonly compared comparing competing compliance
        composed consequently considered considering consisting construction contact containing contents continuing contrary controls conversely
        corporate cost costs could created creating critics current currently dear debt decreasing deferred demand depending derivatives describing
        designed despite details determining developed developing development different directed discovered dividends download due earlier early
        earnings effect effects eight either else email employee employees end enterprise equity established etc even eventually ever every everybody
        everyone everything exact exactly example examples except excluding exhibit existing expanding expenses factors failure failures falling fans
        fellow fewer figure film filmed finally financial financing finding first fiscal five focusing following follows for foreign formed former
        formerly forming found founded four frequently full funding furthermore gain gains gaming gave general generally get getting give given giving
        go going good gross group growing having hedge hedging hello helping hence higher highlights historians holding however immediately improving
        inadequate included including income increasing indeed indicate initially inside inspired instead intended interest introduced introduction
        issuance it's item its joining keeping key knowing known large largely last late later latest leading leases least leaving left legal less let
        liabilities licenses like likewise liquidity list little living loans local located long looking loss losses lot lower made main maintaining
        major make making male manufacturing many marketing may maybe meaning meanwhile meeting members men mention might mine modern money moreover
        mostly moving much municipal music must mutual named namely near nearby nearly neither net never nevertheless new next nicknamed nine no
        nobody none nonetheless nor not notable notably note notes nothing nowadays number numbers offering offset often oh ok okay old older one
        online open opened opening operating opposite originally others otherwise outside overall overview owing page part participant participants
        particularly past paying people per percentage percentages performing perhaps planning playing please population possibly preferred premium
        prepaid present presently previous previously pricing principal prior probably proceeds processing produced producing product production
        products property providing published purchases pursuant putting quite rather raw read really receiving recently recorded recording records
        reducing refer references referring regarding regardless registrant related released releasing remaining replacing report reporting reports
        representing required research respectively returning returns revenue revenues reverse rising risk risks roughly run running said sale sales
        save saw say scene second section securities see seeing seeking selling service services serving set setting seven several shall shares short
        shortly should showing significant similar similarly since six small something sometimes somewhat somewhere soon spanning speaking
        specifically starring starting stating steps still story subsequently substantially summary supplemental supporting sure table tables take
        taken taking tax ten term terms testing thank thanks thereafter thereby therefore third though three throughout thus title today together took
        top total toward towards trading traditional traditionally training trying turning twelve twenty two type typical typically understanding
        unfortunately unless unlike until unusually upcoming upon use used using usually value values various vendor vendors vesting vs waiting want
        war way well went whatever whenever whereas wherever whether whichever whilst whoever whole whose widespread winning within without women won
        work working works would writing written wrote year years yes yet
        """),
    "es": words_of("""
        actualmente además ahora algunas algunos allí antes así aunque cada casi cerca cierto con cuando debido desde después dicha dicho durante ella
        ello ellos entonces entre esa ese eso esta este esto estos existe existen finalmente fue fueron generalmente hace hacia hasta hay hoy
        igualmente incluso luego mediante mientras muchas muchos nació ninguno nuestra nuestro nunca otra otras otro otros para pero poco por porque
        posteriormente primero pues según ser siempre sin sobre solo son sólo también tanto todas todo todos tras uno varios ya él
        """),
    "fr": words_of("""
        accéder actuellement adresser afficher afin agir ailleurs ainsi ajouter aller alors analyser appliquer après article assez assurer attention
        au-delà aucun aucune aujourd'hui auparavant auprès aussi autant autre autrement autres avant beaucoup bien bientôt bonjour car cas ceci cela
        celle celles celui cependant certaines certains cesser cet cette ceux cf chacun chacune chapitre chaque chez choisir cinq cliquer comme
        communiquer comprendre compte concernant concrètement conduite conformément connaître conseiller considérant consulter contacter contrairement
        contre contrôler coopérer créer créé créée d'abord d'ailleurs d'autres d'une davantage demande demander demandes depuis derrière deux
        deuxièmement devant devenir différents divers donc donner dont durant dès déclarer définir déposer désigner désormais détruire effacer elles
        empreintes encadrer encore enfin ensuite entre envers environ envoyer etc excepté exemple exemples exercer expliquer exposer faire fait faut
        fermer fiche fin finalement fournir garantir grâce guide généralement gérer hormis hors ici identifier indiquer informer inscrire installer
        interne jamais joindre jusque leurs liens lignes limiter lire lors lorsque là maintenant malgré maîtriser mettre mieux modifier modèles moins
        montant montres mot motif motifs mots nature ni nom nombre noms non notamment notifier nul néanmoins obtenir officiers organiser oui outre
        page parce parfois parmi partout pas permettre personnels peu peut peuvent plus plusieurs plutôt porter pourtant premier première premièrement
        presque principe protéger près préalablement préparer prévoir puis puisque quant quatre quelque quelques quiconque rappel recevoir recueillir
        refuser remplir respecter règle règles répondre saisir sans sauf second selon service services seul seule seules seuls si signaler signes
        sinon sous souvent suite suivant supprimer surtout sécuriser tandis tant tel telle telles tels tenir toujours tous tout toute toutefois toutes
        traces transmettre trois trop trouver très type un utiliser vers veuillez via vie voici voilà voir vu vérifier également établir évaluer
        éviter
        """),
    "it": words_of("""
        adesso alcune alcuni allora altre altri anche ancora anzi attualmente bisogna certo che chi ci ciascuno ciò come comunque così dopo dove due
        dunque durante ecco entrambi essa essi esso fino già grazie in infatti infine inoltre intanto invece lì mentre molte molti nata nato nessuno
        nonostante oggi ogni oltre ora ovvero per perché perciò però più poi poiché possono prima proprio pur quasi quella quello questa questo quindi
        rispetto se secondo sempre senza si sia sino solo sono sotto spesso stato successivamente tale tali tanto tra tre tuttavia tutte tutti tutto
        """),
    "nl": words_of("""
        alle allemaal als anders behalve beide bij binnen bovendien buiten daar daarna daarnaast daarom daarvoor dankzij dat deze die dit door dus
        echter een eerst elk elke en er ervan evenals gedurende geen haar hen het hier hierdoor hij hoe hoewel hun iedere ik in indien inmiddels ja
        later maar meer men met na naast namelijk nee niet nog nu of ondanks onder ons ook op over sinds slechts soms tegen tijdens toch toen tot
        tussen twee uit vaak van vanaf verder volgens voor vooral vroeger waar waarin wanneer want wat we wel wie wij ze zelfs zij zijn zo zoals
        zonder zowel
        """),
    "pt": words_of("""
        ainda algumas alguns além antes apenas após assim atualmente até cada caso com como conforme contudo cujo de depois desde devido disso durante
        ela ele eles embora enquanto entre então era essa esse esta este foi foram geralmente hoje isso isto já logo mais mas mesmo muitas muitos
        nasceu nenhum nessa nesse nesta neste no nunca onde outra outro outros para pela pelo pois porque portanto porém posteriormente primeiro
        quando que quem segundo seja sem sempre seu sobre sua são também tanto toda todas todos tudo um uma várias vários
        """),
}
"""By language: words that are no name where they stand alone at the beginning of a sentence."""

ENGLISH_FUNCTION_WORDS = words_of("""
    accordingly according additionally also although among amongst another apart around aside because besides beyond conversely despite due earlier
    eventually ever every following furthermore hence however including instead later let likewise may maybe meanwhile moreover near nearby neither
    never nevertheless nonetheless nor not notably originally otherwise perhaps please presently previously regarding see several similarly since
    sometimes soon still subsequently therefore thereby though throughout thus today toward towards unless unlike upon via whenever whereas whether
    whilst within without yet
    """)
"""English openers that are not part of the name after them either: `However Google`, but `New York`."""

BEGIN_NAMES_TOO = words_of("""
    premier première second seconde saint prima primo primero primera primeiro primeira due deux trois cinq são quatre neben alla haar
    """)
"""Openers of the other languages that may be part of it: `Premier ministre`."""
