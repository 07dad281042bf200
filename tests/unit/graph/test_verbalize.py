"""Facts and paths as sentences: templates, properties, two languages, and names that are only data."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.records import Relation
from llama_index_advanced_rag.graph.verbalize import Step, fact_sentence, path_sentence, subgraph_text

CREATED = Relation("Anthropic", "created", "Claude")
USES = Relation("Claude", "uses", "Transformer")
PROPOSED = Relation("Transformer", "proposed_by", "Vaswani")
PATH = [Step("Anthropic", "Claude", CREATED), Step("Claude", "Transformer", USES), Step("Transformer", "Vaswani", PROPOSED)]


def count_words(text):
    return len(text.split())


@pytest.mark.parametrize("predicate", ["works_for", "worksFor", "WorksFor", "works for", "WORKS_FOR", " Works  for ", "works-for", "WORKS FOR"])
def test_every_spelling_of_a_predicate_has_its_template(predicate):
    assert fact_sentence(Relation("Ada", predicate, "Acme")) == "Ada works for Acme."
    assert fact_sentence(Relation("Ada", predicate, "Acme"), language="fr") == "Ada travaille pour Acme."


@pytest.mark.parametrize(
    ("predicate", "english", "french"),
    [
        ("founded", "Ada founded Acme.", "Ada a fondé Acme."),
        ("foundedBy", "Ada was founded by Acme.", "Acme a fondé Ada."),
        ("located in", "Ada is located in Acme.", "Ada a pour lieu Acme."),
        ("is_located_in", "Ada is located in Acme.", "Ada a pour lieu Acme."),
        ("PART_OF", "Ada is part of Acme.", "Ada fait partie d'Acme."),
        ("CEO_OF", "Ada is the CEO of Acme.", "Ada est PDG d'Acme."),
        ("is the capital of", "Ada is the capital of Acme.", "Ada est la capitale d'Acme."),
        ("was acquired by", "Ada was acquired by Acme.", "Acme a acquis Ada."),
        ("is_a", "Ada is an Acme.", "Ada est de type Acme."),
        ("competes with", "Ada competes with Acme.", "Ada est en concurrence avec Acme."),
        ("married to", "Ada is married to Acme.", "Ada a épousé Acme."),
        ("a été créé par", "Ada was created by Acme.", "Acme a créé Ada."),
        ("was CEO of", "Ada was CEO of Acme.", "Ada was CEO of Acme."),
        ("is directed", "Ada is directed Acme.", "Ada is directed Acme."),
        ("shotBy", "Ada is shot by Acme.", "Ada est shot by Acme."),
        ("reigned_over", "Ada reigned over Acme.", "Ada reigned over Acme."),
        ("plays in Top League of", "Ada plays in Top League of Acme.", "Ada plays in Top League of Acme."),
        ("", "Ada is related to Acme.", "Ada est en lien avec Acme."),
        ("__", "Ada is related to Acme.", "Ada est en lien avec Acme."),
    ],
)
def test_templates_and_predicates_in_their_own_words(predicate, english, french):
    assert fact_sentence(Relation("Ada", predicate, "Acme")) == english
    assert fact_sentence(Relation("Ada", predicate, "Acme"), language="fr") == french


def test_a_birth_has_a_place_or_a_day():
    assert fact_sentence(Relation("Hugo", "born in", "Besançon"), language="fr") == "Hugo a pour lieu de naissance Besançon."
    assert fact_sentence(Relation("Hugo", "birthplace", "février 1802"), language="fr") == "Hugo a pour date de naissance février 1802."
    assert fact_sentence(Relation("Hugo", "born in", "1802")) == "Hugo was born in 1802."


def test_articles_are_not_doubled():
    assert fact_sentence(Relation("BERT", "is a", "the model of Google")) == "BERT is the model of Google."
    assert fact_sentence(Relation("BERT", "is a", "language model")) == "BERT is a language model."


@pytest.mark.parametrize(
    ("properties", "english", "french"),
    [
        ({"amount": "2.5M EUR", "date": "2026-01-15"}, "(on 2026-01-15) for 2.5M EUR", "(le 2026-01-15) pour 2.5M EUR"),
        ({"date": "2026"}, "(in 2026)", "(en 2026)"),
        ({"date": "May 2026"}, "(in May 2026)", "(en May 2026)"),
        ({"startDate": 2019, "end_date": 2021.0}, "(from 2019 to 2021)", "(de 2019 à 2021)"),
        ({"since": "2019", "role": "CEO"}, "(since 2019) as CEO", "(depuis 2019) en tant que CEO"),
        ({"share": 1e300, "part": 0.5}, "(share: 1e+300) (part: 0.5)", "(share : 1e+300) (part : 0.5)"),
        ({"until": "2019"}, "(until 2019)", "(jusqu'à 2019)"),
        ({"currency": "EUR", "price": 300}, "for 300 EUR", "pour 300 EUR"),
        ({"value": "high", "from": "Paris"}, "(value: high) (from: Paris)", "(value : high) (from : Paris)"),
        ({"isOpen": True, "closed": False}, "(is open: yes) (closed: no)", "(is open : oui) (closed : non)"),
        ({"": "x", "a": "", "b": None, "_c": "x", "triplet_source_id": "x", "d": "  \n"}, "", ""),
        ({"{date}": "{amount}\n!"}, "({date}: {amount} !)", "({date} : {amount} !)"),
    ],
)
def test_properties_are_clauses_in_a_fixed_order(properties, english, french):
    deal = Relation("Acme", "signed_contract_with", "GlobalTech", properties)
    assert fact_sentence(deal) == f"Acme signed a contract with GlobalTech {english}".strip() + "."
    assert fact_sentence(deal, language="fr") == f"Acme a signé un contrat avec GlobalTech {french}".strip() + "."


def test_not_every_property_of_hundreds_is_told():
    sentence = fact_sentence(Relation("a", "uses", "b", {f"key{number}": "x" * 5000 for number in range(900)}))
    assert len(sentence) < 3000
    assert sentence.count("(key") == 12


def test_templates_of_the_caller_go_first_in_any_spelling():
    own = {"WorksFor": "{object} pays {subject} {{monthly}}", "glows": "{subject} makes {object} glow"}
    assert fact_sentence(Relation("Ada", "works_for", "Acme"), templates=own) == "Acme pays Ada {monthly}."
    assert fact_sentence(Relation("Ada", "GLOWS", "Acme"), language="fr", templates=own) == "Ada makes Acme glow."
    assert path_sentence([Step("Ada", "Acme", Relation("Ada", "works for", "Acme"))], templates=own) == "Acme pays Ada {monthly}."
    assert subgraph_text([Relation("Ada", "works for", "Acme")], templates=own) == "Facts:\n- Acme pays Ada {monthly}."


@pytest.mark.parametrize(
    "template",
    ["{subject} pays", "{subject} {object} {date}", "{subject} {object", "{} {}", "{subject.real} {object}", "{subject!r} {object}", "{subject:{object}}"],
)
def test_templates_are_checked(template):
    with pytest.raises(ConfigurationError, match="Write a sentence with {subject} and {object}"):
        fact_sentence(Relation("Ada", "uses", "Acme"), templates={"pays": template})


def test_names_are_data():
    assert fact_sentence(Relation("{object}", "uses", "{0.__class__}\r\n\x00\u2028\u202e{")) == "{object} uses {0.__class__} {."
    assert fact_sentence(Relation("{a}", "{b}_of", "{c}")) == "{a} {b} of {c}."
    fact_sentence(Relation("Acme\ud800", "uses\udfff", "B", {"\ud800": "\ud800x"})).encode()
    assert fact_sentence(Relation("Acme\ud800", "uses", "Beta Inc.")) == "Acme uses Beta Inc."
    assert path_sentence([Step("{a}", "{b}", source="{c}\n# d")]) == "{a} and {b} are named together in “{c} # d”."


def test_long_names_are_cut():
    sentence = fact_sentence(Relation("a" * 10_000, "uses " * 4000, "b" * 10_000))
    assert len(sentence) <= 3 * 200 + 3
    assert sentence.startswith("a" * 199 + "… uses uses")


def test_empty_parts():
    assert fact_sentence(Relation("", "uses", "Acme")) == ""
    assert fact_sentence(Relation("Acme", " ", "\n")) == ""
    assert fact_sentence(Relation("Acme", "went_bankrupt", "", {"date": "2020"})) == "Acme went bankrupt (in 2020)."
    assert path_sentence([]) == path_sentence([Step("", "Acme")]) == path_sentence([Step("Acme", "Acme")]) == ""
    assert path_sentence([Step("Acme", "Beta", Relation("", "", ""), "Title")]) == "Acme and Beta are named together in “Title”."
    assert subgraph_text([], []) == subgraph_text([Relation("", "", "")], [[], [Step("", "")]]) == ""


def test_a_path_tells_facts_in_their_own_direction():
    assert path_sentence(PATH) == "Anthropic created Claude; Claude uses Transformer; Transformer was proposed by Vaswani."
    assert path_sentence(PATH, language="fr") == "Anthropic a créé Claude ; Claude utilise Transformer ; Vaswani a proposé Transformer."
    backwards = [Step(step.end, step.start, step.fact) for step in reversed(PATH)]
    assert path_sentence(backwards) == "Transformer was proposed by Vaswani; Claude uses Transformer; Anthropic created Claude."


def test_steps_without_a_fact_tell_where_both_are_named():
    path = [Step("Anthropic", "Claude", CREATED), Step("Claude", "Transformer", source="Models of today"), Step("Transformer", "BERT")]
    assert (
        path_sentence(path) == "Anthropic created Claude; Claude and Transformer are named together in “Models of today”; Transformer and BERT are connected."
    )
    french = "Anthropic a créé Claude ; Claude et Transformer sont nommés ensemble dans « Models of today » ; Transformer et BERT sont liés."
    assert path_sentence(path, language="fr") == french


def test_what_is_said_twice_is_told_once():
    assert path_sentence([PATH[0], Step("Claude", "Anthropic", CREATED)]) == "Anthropic created Claude."
    assert (
        subgraph_text([CREATED, CREATED, USES], [PATH[:1], PATH[:1]])
        == "How they are connected:\n- Anthropic created Claude.\nFacts:\n- Claude uses Transformer."
    )


def test_an_unknown_language_is_told_in_english():
    assert fact_sentence(USES, language="tlh") == path_sentence([PATH[1]], language="") == "Claude uses Transformer."
    assert subgraph_text([USES], language="fr") == "Faits :\n- Claude utilise Transformer."


@given(st.integers(1, 60), st.integers(0, 12), st.integers(0, 4))
def test_the_budget_holds_and_ends_the_text_at_a_line(max_tokens, n_facts, n_paths):
    facts = [Relation(f"E{number}", "uses", f"F{number}") for number in range(n_facts)]
    paths = [[Step(f"P{number}", f"Q{number}", source="some title")] for number in range(n_paths)]
    text = subgraph_text(facts, paths, max_tokens=max_tokens, count_tokens=count_words)
    whole = subgraph_text(facts, paths, count_tokens=count_words)
    assert count_words(text) <= max_tokens
    assert text == whole if count_words(whole) <= max_tokens else whole.startswith(text)
    assert not text or text.endswith(".")


def test_the_budget_is_one_of_tokens():
    from llama_index_advanced_rag.usage import count_tokens

    facts = [Relation(f"Entity {number}", "is related in some way to", f"Другое {number}") for number in range(500)]
    assert 80 < count_tokens(subgraph_text(facts, max_tokens=100)) <= 100
    with pytest.raises(ConfigurationError, match="max_tokens is 0"):
        subgraph_text(facts, max_tokens=0)


@given(
    st.text(), st.text(), st.text(), st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.floats(), st.booleans())), st.sampled_from(["en", "fr"])
)
def test_any_text_gives_one_line(subject, predicate, other, properties, language):
    fact = Relation(subject, predicate, other, properties)
    sentence = fact_sentence(fact, language=language)
    assert len(sentence.splitlines()) <= 1
    assert sentence == " ".join(sentence.split())
    assert fact_sentence(fact, language=language) == sentence
    path_sentence([Step(subject, other, fact, predicate)], language=language)


def test_five_megabytes_in_a_name_and_ten_thousand_facts_take_seconds():
    started = time.process_time()
    for piece in ("a", "aB", "_", " ", "{", "1-", "\n", "A"):
        huge = piece * (5_000_000 // len(piece))
        fact_sentence(Relation(f"x{huge}", f"x{huge}", f"x{huge}", {f"k{huge}": huge}))
    facts = [Relation(f"Entity {number}", f"predicate_{number}", "Other", {"date": "2020", "amount": number}) for number in range(10_000)]
    assert subgraph_text(facts, max_tokens=10**9, count_tokens=len).count("\n") == 10_000
    assert time.process_time() - started < 20


def test_a_passage_without_a_title_is_a_passage() -> None:
    path = [Step("Acme", "Beta", source="")]
    assert path_sentence(path) == "Acme and Beta are named in one passage."
    assert path_sentence(path, language="fr") == "Acme et Beta sont nommés dans un même passage."
