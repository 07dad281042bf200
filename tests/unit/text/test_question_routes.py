"""What stands in a question, and the ways of answering it speaks for: rules in English and French."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.text.question_routes.ranking import asks_for_place, rank_routes
from llama_index_advanced_rag.text.question_routes.signals import read_question_signals
from llama_index_advanced_rag.text.span_rules.word_list import words_of

KINDS = {"none", "simple", "moderate", "complex", "structural"}
LONGEST_S = 0.05


def best(question: str, language: str = "auto") -> str:
    ranked = rank_routes(read_question_signals(question, language))
    return ranked[0][0] if ranked else "doubt"


@pytest.mark.parametrize(
    "question",
    [
        "Hello!",
        "hey there, how are you?",
        "Thanks a lot, that was helpful.",
        "Who built you?",
        "Do you ever dream?",
        "What is 15 percent of 80?",
        "48 * 125",
        "(3 + 4) x 2 = ?",
        "How many ounces are in a pound?",
        "Please paraphrase this sentence: The tenant shall leave.",
        'Translate "see you on Monday" into Dutch',
        "Tell me a joke about printers",
        "Merci beaucoup !",
        "Bonsoir, ça va ?",
        "Es-tu un robot ?",
        "Combien font 12 % de 250 ?",
        "Convertis 30 miles en kilomètres",
        "Reformule cette phrase : donnez-moi le dossier.",
        "Écris un haïku sur la pluie",
        "Comment dit-on « au revoir » en italien ?",
        "Shorten this email: Dear Mr Field, we regret that the order is late.",
        "Can you rewrite this more politely: send it now",
        "Corrige cette phrase : je suis aller au marché",
        "Write me a story about dragons",
        "Quelles langues parles-tu ?",
        "What can you do?",
        "Ok merci",
        "racine carrée de 81",
        "2 weeks in days",
        "Could you repeat that, please?",
        "Shorter, please.",
        "Say that differently",
        "Explain it again in simpler words",
        "Your last answer was wrong",
        "What did I just ask you?",
        "répète",
        "plus court s'il te plaît",
        "Redis-le plus simplement",
        "Peux-tu reformuler ta dernière réponse ?",
        "Do you like music?",
        "What's your opinion on pizza?",
        "Tu aimes la musique ?",
        "Thanks, that cleared it up",
        "Flip a coin",
        "Donne-moi un synonyme de joyeux",
        "what is seven times eight",
        "What is 20% off 80?",
        "combien font trois fois sept ?",
        "quelle heure est-il ?",
    ],
)
def test_talk_needs_no_document(question: str) -> None:
    assert best(question) == "none"


@pytest.mark.parametrize(
    "question",
    [
        "What is a data processor?",
        "When does the library close on Sundays?",
        "how to reset my password",
        "Can I carry over unused leave?",
        "Where was Ada Lovelace born?",
        "Why do bees dance?",
        "Could you tell me how long the trial period is?",
        "What is the difference between leave and sick pay?",
        "Who is the author of Northern Light?",
        "Find the address of the clinic.",
        "Which section of the river is frozen?",
        "On which web page are the forms?",
        "Quel est le délai de préavis ?",
        "Comment déclarer un arrêt maladie ?",
        "Qu'est-ce qu'une donnée sensible ?",
        "La mairie est-elle ouverte le samedi ?",
        "Bonjour, peut-on fumer sur la terrasse ?",
        "Quelle page web donne les horaires ?",
        "Which documents must I send?",
        "Do we have to pay no later than the end of May?",
        "What happens at the same time?",
        "What is the phone number of the clinic?",
        "Who is the president of Tarsund University?",
        "À combien de jours de congé un salarié a-t-il droit ?",
        "Qui est le père d'Emil Stroud ?",
    ],
)
def test_one_thing_asked_of_one_term_is_simple(question: str) -> None:
    assert best(question) == "simple"


@pytest.mark.parametrize(
    "question",
    [
        "Where was the director of Solaris born?",
        "Which prize did the architect of the opera house win?",
        "In which country is the company that makes Aspirex based?",
        "What is the population of the town where Emil grew up?",
        "How did Nora's husband die?",
        "Who owns the firm responsible for the lifts?",
        "Où est né l'auteur du roman « Les Vents » ?",
        "Quelle est la nationalité du fondateur de Tefal ?",
        "À quel parti appartient la maire de Nantes ?",
        "Le laboratoire qui fabrique le vaccin est-il français ?",
        "Qui dirige l'entreprise chargée du toit ?",
        "Who coaches Nora Field's team?",
        "When did the winner of the Golden Lens retire?",
        "What is the capital of the country Tarsund is located in?",
        "In which country is the city Nora Field comes from?",
        "Who wrote the song that Nora sang at the opening?",
        "Quelle est la capitale du pays dont Nora Field vient ?",
        "De quel pays vient l'auteur de Solaris ?",
        "Our lift is serviced by a firm; where is that firm registered?",
    ],
)
def test_one_bridge_is_moderate(question: str) -> None:
    assert best(question) == "moderate"


@pytest.mark.parametrize(
    "question",
    [
        "What colour is the coat that he wears on the first evening?",
        "How many seats does the arena where the Tarsund Hawks play have?",
        "Does Acme have a supplier in Spain?",
        "Where was he born?",
        "When did it start?",
        "Quand est-ce que ça commence ?",
        "Le comité dont le maire dépend est-il public ?",
        "What did the war do to the price of bread?",
        "Is the chapter room free?",
        "How do the leases treat pets?",
        "Quel est le lien avec la mairie ?",
    ],
)
def test_what_may_be_described_through_something_else_or_has_no_term_is_not_simple(question: str) -> None:
    assert best(question) != "simple"


def test_was_the_company_founded_is_no_clause() -> None:
    assert best("When was the company Acme founded?") == "simple"


@pytest.mark.parametrize(
    "question",
    [
        "Compare the warranty of the two kettles.",
        "Who is older, Ada Lovelace or Mary Shelley?",
        "What do the Paris lease and the Lyon lease have in common?",
        "List all suppliers based in Spain.",
        "How are Intel and Micron connected?",
        "How has the view of the council changed since 1990?",
        "Where was the mother of the director of the film Solaris born?",
        "What ties Nokia, Siemens and Bosch?",
        "Quels liens unissent Renault et Nissan ?",
        "Qui est le plus âgé, Balzac ou Hugo ?",
        "Recense les contrats sans préavis",
        "Compare les baux de Nantes et de Lille.",
        "Le contrat de Nantes dure-t-il plus longtemps que celui de Lille ?",
    ],
)
def test_several_things_joined_are_complex(question: str) -> None:
    assert best(question) == "complex"


@pytest.mark.parametrize(
    "question",
    [
        "According to chapter 3, who signs?",
        "Que dit l'article L3141-3 du code du travail ?",
        "article R. 4121-1",
        "section 10b5-1",
        "What does the section on liquidity of the NVIDIA report say?",
        "What does clause 12.2 of the lease say?",
        "on which page is the index",
        "Read me annex B.",
        "Where in the manual is the diagram?",
        "Summarise the last section.",
        "What was the net income of Tefal in fiscal 2019?",
        "How many people did Tefal employ at the end of 2021?",
        "Tefal revenue Q2 2022",
        "Que dit l'article 6 ?",
        "Dans quel chapitre meurt le capitaine ?",
        "Quelle est la dernière phrase du roman ?",
        "Chiffre d'affaires du troisième trimestre 2023",
        "Combien la ville a-t-elle dépensé pour ses écoles en 2017 ?",
    ],
)
def test_places_and_figures_of_reports_are_structural(question: str) -> None:
    assert best(question) == "structural"


@pytest.mark.parametrize(
    "question",
    [
        "Merci de m'indiquer le tarif de la cantine.",
        "Thanks, and who is the mayor of Leeds?",
        "Can you find the phone number of the porter?",
        "Translate the section on leave into French",
        "What is your return policy?",
        "Do you ship to Spain?",
        "Are you allowed to smoke on the terrace?",
        "Are you sure the warranty covers water damage?",
        "How many hours in a week do nurses work?",
        "Is there a discount for 65 plus members?",
        "How do I add 2 users?",
        "A tenant pays 900 euros and leaves after 5 months; how much is the deposit?",
        "Which synonym for dismissal does the contract use?",
        "Why do you need my passport number?",
        "Tu sais où est le formulaire de congé ?",
        "Qui dessine les plans ?",
        "Pourquoi ne peut-on pas fumer ?",
        "thank you letter template",
        "Great Expectations, who is the publisher?",
        "Do you think that Ada Lovelace was right?",
        'Can you summarise "The Salt Ledger"?',
        "Summarise this: chapter 3 of the lease",
        "Rewrite the policy in plain words: what are the rules?",
        "Write a poem about Ada Lovelace",
        "Tell me a story from the handbook",
        "Who made you sign the contract?",
        "Are you a registered charity?",
        "What is your address?",
        "How much is 20% of the salary?",
        "If 5 bakers need 4 hours, how long do 2 bakers need?",
        "Do you like the new policy?",
        "What do you think of the merger?",
        "Thanks, please cancel the order",
        "Forget that, what is the deductible?",
        "Your last answer on the deposit: which clause is it from?",
        "What can you do if the landlord refuses?",
        "Do you prefer cash?",
        "What are your limits?",
        "Draw a diagram of the process",
        "Tell me a story about the founder",
        "flip a coin rule",
        "half of 30 employees",
        "2 weeks notice to months",
        "What time is it open?",
        "go on strike",
        "Que penses-tu du contrat de Nantes ?",
        "Wonderful, that is the very chapter I was after!",
        "yes",
        "9/11",
        "Comment va le projet ?",
        "Traduis l'article 5 en anglais",
        "Raconte-moi l'histoire de la société Acme",
        "Combien de semaines de congé par an ?",
    ],
)
def test_what_a_document_may_answer_is_never_refused(question: str) -> None:
    assert best(question) != "none"


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "?!... --",
        "😀 🎉",
        "nordic quay ferries",
        "什么是合同？",
        "ما هو العقد؟",
        "Wer unterschreibt die Aufträge der Firma?",
        "¿Cuál es el plazo de entrega de los pedidos?",
        "Ile kosztuje bilet?",
        "\ud800\x00\u200b",
    ],
)
def test_nothing_is_guessed(question: str) -> None:
    assert best(question) == "doubt"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Was steht in Klausel 12.2?", "structural"),
        ("Fasse Kapitel 3 der Richtlinie zusammen", "structural"),
        ("¿Qué dice el artículo 5?", "structural"),
        ("§ 12 BGB", "structural"),
        ("48 * 125 =", "none"),
    ],
)
def test_a_sign_without_words_decides_in_any_language(question: str, kind: str) -> None:
    assert best(question) == kind


@pytest.mark.parametrize("question", ["WHAT DOES CLAUSE 4 SAY?", "QUE DIT L'ARTICLE 4 ?"])
def test_a_question_in_capitals_is_read(question: str) -> None:
    assert best(question) == "structural"
    assert read_question_signals(question).names == ()


def test_a_given_language_is_read_by_its_rules_only() -> None:
    assert (best("tableau 4", "fr"), best("table 4", "fr"), best("table 4", "en")) == ("structural", "doubt", "structural")
    assert read_question_signals("comment", "fr").languages == ("fr",)
    assert read_question_signals("What is a lease?", "de").single == ()


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="language is 'xx'"):
        read_question_signals("What?", "xx")


def test_the_reason_names_the_sign_as_it_was_written() -> None:
    assert rank_routes(read_question_signals("À quoi sert l’Annexe B du bail ?"))[0] == ("structural", '"Annexe B" is a place in a document')
    assert rank_routes(read_question_signals("Is Renault larger than Volvo?"))[0][1].endswith("compares things")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("À combien de jours de congé le salarié a-t-il droit ?", '"À combien" asks how much or how long'),
        ("How long is the trial period?", '"How long" asks how much or how long'),
        ("Pourquoi les flamants sont-ils roses ?", '"Pourquoi" asks for one fact'),
        ("À quelle date le tramway a-t-il ouvert ?", '"À quelle" asks for one fact'),
        ("Le télétravail est-il possible ?", '"Le télétravail est-il" asks whether something holds'),
        ("How to reset my password", '"How to" asks how something is done'),
        ("Qu'est-ce qu'un avenant ?", "\"Qu'est-ce qu'\" asks what something is"),
    ],
)
def test_the_reason_of_one_thing_says_what_is_asked(question: str, reason: str) -> None:
    assert rank_routes(read_question_signals(question)) == [("simple", reason)]


def test_a_place_is_told_from_a_figure() -> None:
    assert asks_for_place("In which section is the notice period?")
    assert asks_for_place("Quel est le résultat net d'après le tableau 4 ?")
    assert not asks_for_place("What was net income in the second quarter of 2022?")
    assert not asks_for_place("Combien font 3 et 4 ?")
    assert not asks_for_place("")


def test_names_are_read() -> None:
    assert read_question_signals('Does "The Salt Ledger" mention Ada Lovelace?').names == ("The Salt Ledger", "Ada Lovelace")
    assert read_question_signals("Apple's margin or Intel's?").names == ("Apple", "Intel")
    assert read_question_signals("Describe the boiler.").names == ()


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "how did the ",
        "the report, the report and ",
        "1 2 3 ",
        "1+",
        "hi ",
        "mère de la ",
        "mother of the ",
        "« ",
        "thanks great ",
        "你好",
        "Ada or ",
        "please, ",
    ],
)
def test_a_long_question_takes_no_time(piece: str) -> None:
    question = (piece * 20_000)[:20_000]
    read_question_signals(question)
    fastest = min(_seconds(question) for _ in range(3))
    assert fastest < LONGEST_S


def _seconds(question: str) -> float:
    started = time.process_time()
    read_question_signals(question)
    return time.process_time() - started


def test_both_ends_of_a_long_question_are_read() -> None:
    assert best(f"{'blah ' * 4000} What does clause 12.2 say?") == "structural"
    assert best(f"According to chapter 3, {'blah ' * 4000}") == "structural"


_WORDS = words_of("""
    the of who chapter 3 12.2 mother director Ada Lovelace compare or and et qui de la article trimestre 2021 net income , ? « » how bonjour you + =
    """)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=300), st.lists(st.sampled_from(sorted(_WORDS)), max_size=40).map(" ".join)))
def test_any_text_is_read(question: str) -> None:
    signals = read_question_signals(question)
    ranked = rank_routes(signals)
    kinds = [kind for kind, _ in ranked]
    assert set(kinds) <= KINDS
    assert len(kinds) == len(set(kinds))
    assert all(reason for _, reason in ranked)
    assert rank_routes(read_question_signals(question)) == ranked
