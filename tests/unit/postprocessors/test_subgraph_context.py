"""SubgraphContext: what is put in front of the nodes, when nothing is, and what filters keep out."""

import asyncio
import json

import pytest
from llama_index.core.graph_stores import EntityNode, Relation, SimplePropertyGraphStore
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.answering.context import number_sentences
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.postprocessors.subgraph_context import KIND, SubgraphContext
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.retrievers.in_memory import search_nodes
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM, check_postprocessor_contract
from llama_index_advanced_rag.testing.observing import snapshot
from llama_index_advanced_rag.trace import capture_trace

COURSE = {
    "t0": [("Google", "a créé", "BERT")],
    "t1": [("OpenAI", "a créé", "GPT-4")],
    "t2": [("BERT", "est un", "modèle de langage")],
    "t3": [("GPT-4", "est un", "modèle de langage")],
    "t4": [("Anthropic", "a créé", "Claude")],
    "t5": [("Claude", "utilise", "Transformer")],
    "t6": [("Vaswani", "a proposé", "Transformer")],
}
QUESTION = "Qui a proposé l'architecture utilisée par le modèle créé par Anthropic ?"


def course():
    return EntityGraph.from_triples(COURSE)


def hits(*scores):
    return [NodeWithScore(node=TextNode(id_=f"n{number}", text=f"Passage {number}."), score=score) for number, score in enumerate(scores or (0.2, 0.9, 0.5))]


def front(context, query, nodes=None):
    """The node that is put in front; None where there is none."""
    given = hits() if nodes is None else nodes
    found = context.postprocess_nodes(given, query_str=query)
    assert [hit.node_id for hit in found][-len(given) :] == [hit.node_id for hit in given]
    return found[0] if len(found) > len(given) else None


def lang(value):
    return MetadataFilters(filters=[MetadataFilter(key="lang", value=value)])


def test_the_course_question_is_told_from_anthropic_to_vaswani():
    hit = front(SubgraphContext(course()), QUESTION)
    assert hit.text.splitlines()[1:] == ["- Anthropic a créé Claude.", "- Claude utilise Transformer.", "- Vaswani a proposé Transformer."]
    assert hit.node.metadata == {"kind": KIND, "title": "Ce que dit le graphe de connaissances", "chunks": ["t4", "t5", "t6"]}
    assert hit.score == 0.9


def test_two_entities_are_told_with_what_connects_them_in_the_language_of_the_question():
    hit = front(SubgraphContext(course()), "What does Anthropic have to do with Vaswani?")
    assert hit.text.splitlines()[1] == "- Anthropic created Claude; Claude uses Transformer; Vaswani proposed Transformer."
    assert front(SubgraphContext(course(), language="fr"), "What does Anthropic have to do with Vaswani?").text.startswith("Comment ils sont liés")


def test_its_place_can_be_shown_to_an_llm_and_cited_but_its_lists_cannot():
    found = SubgraphContext(course()).postprocess_nodes(hits(), query_str=QUESTION)
    assert "t4" not in found[0].node.get_content(MetadataMode.LLM)
    assert "t4" not in found[0].node.get_content(MetadataMode.EMBED)
    json.dumps(found[0].node.metadata)
    for sentence in number_sentences(found).sentences:
        node = next(hit.node for hit in found if hit.node_id == sentence.node_id)
        assert node.get_content(MetadataMode.NONE)[sentence.start : sentence.end] == sentence.text


def test_the_same_text_has_the_same_id_and_comes_once():
    context = SubgraphContext(course())
    once = context.postprocess_nodes(hits(), query_str=QUESTION)
    again = context.postprocess_nodes(once, query_str=QUESTION)
    assert [hit.node_id for hit in once] == [hit.node_id for hit in again]
    assert front(SubgraphContext(course()), "Qui a fondé Anthropic, et quoi ?").node_id == once[0].node_id
    assert front(context, "Que fait Google ?").node_id != once[0].node_id


@pytest.mark.parametrize("query", ["", "   ", "Who knows nothing of it?", "anth ropic"])
def test_a_question_that_names_nothing_known_leaves_the_nodes_as_they_were(query):
    assert front(SubgraphContext(course()), query) is None


def test_entities_of_which_nothing_is_known_leave_the_nodes_as_they_were():
    lonely = EntityGraph.from_triples({}, titles={"c1": "Alpha", "c2": "Beta"})
    assert lonely.link("Alpha and Beta") != []
    assert front(SubgraphContext(lonely), "Alpha and Beta") is None
    assert front(SubgraphContext(EntityGraph.from_triples({})), "Alpha") is None
    assert front(SubgraphContext(course(), max_tokens=1), QUESTION) is None
    assert SubgraphContext(course()).postprocess_nodes([], query_str=QUESTION) == []
    assert SubgraphContext(course()).postprocess_nodes(hits()) is not None


def test_scores_are_plain_and_may_be_missing():
    assert front(SubgraphContext(course()), QUESTION, hits(None, None)).score is None
    assert front(SubgraphContext(course()), QUESTION, hits(None, 0.25)).score == 0.25


def test_budgets_hold_and_the_chunks_are_those_of_the_lines_told():
    hit = front(SubgraphContext(course(), max_tokens=14), QUESTION)
    assert hit.text.splitlines()[1:] == ["- Anthropic a créé Claude."]
    assert hit.node.metadata["chunks"] == ["t4"]
    assert len(front(SubgraphContext(course(), max_facts=2), QUESTION).text.splitlines()) == 3
    assert len(front(SubgraphContext(course(), max_hops=1), QUESTION).text.splitlines()) == 2


def test_of_equally_near_facts_those_that_fit_the_question_come_first():
    about = {"c0": [("Acme", "located in", "Paris")], "c1": [("Acme", "acquired", "GlobalTech")], "c2": [("Acme", "employs", "Smith")]}
    first = {
        query: front(SubgraphContext(EntityGraph.from_triples(about)), query).text.splitlines()[1]
        for query in ("What did Acme acquire?", "Where is Acme located?")
    }
    assert list(first.values()) == ["- Acme acquired GlobalTech.", "- Acme is located in Paris."]
    by_meaning = SubgraphContext(EntityGraph.from_triples(about), vectors=TextVectors(DeterministicEmbedding()))
    assert front(by_meaning, "What did Acme acquired?").text.splitlines()[1] == "- Acme acquired GlobalTech."


def test_filters_keep_out_what_other_passages_say():
    nodes = [TextNode(id_=chunk, text="", metadata={"lang": "fr" if chunk == "t4" else "en"}) for chunk in COURSE]
    hit = front(SubgraphContext(course(), nodes=nodes, filters=lang("fr")), QUESTION)
    assert hit.text.splitlines()[1:] == ["- Anthropic a créé Claude."]
    assert front(SubgraphContext(course(), nodes=nodes, filters=lang("de")), QUESTION) is None
    with pytest.raises(ConfigurationError, match="Pass nodes"):
        SubgraphContext(course(), filters=lang("fr"))


def test_a_graph_store_is_told_too():
    store = SimplePropertyGraphStore()
    store.upsert_nodes([EntityNode(name="Claude"), EntityNode(name="Anthropic")])
    store.upsert_relations([Relation(label="CREATED_BY", source_id="Claude", target_id="Anthropic", properties={"year": 2023})])
    hit = front(SubgraphContext(store), "Who created Claude?")
    assert hit.text.splitlines()[1] == "- Claude was created by Anthropic (in 2023)."
    assert hit.node.metadata["chunks"] == []


def test_a_corpus_is_followed_through_its_changes():
    texts = ["Knott is a fell in the Lake District.", "Skiddaw is a fell. Anna Bell climbed Skiddaw."]
    documents = [Document(text=text, id_=f"d{number}") for number, text in enumerate(texts)]
    index = CorpusIndex.from_documents(documents, embed_model=DeterministicEmbedding())
    context, query = SubgraphContext(index.corpus), "Did Anna Bell climb Knott?"
    assert front(context, query) is None
    index.insert(Document(text="Anna Bell lives near Knott.", id_="d2", metadata={"title": "A life"}))
    hit = front(context, query)
    assert hit.text.splitlines()[1].startswith("- Anna Bell and Knott are named together in ")
    assert "A life" in hit.text
    assert [node.ref_doc_id for node in index.corpus.documents.get_nodes(hit.node.metadata["chunks"])] == ["d2"]
    filtered = SubgraphContext(index.corpus, filters=MetadataFilters(filters=[MetadataFilter(key="title", value="Another")]))
    assert front(filtered, query) is None
    index.delete_ref_doc("d2", delete_from_docstore=True)
    assert front(context, query) is None


def test_wrong_arguments_say_so():
    for wrong, message in (({"max_tokens": 0}, "max_tokens is 0"), ({"max_hops": 4}, "max_hops is 4"), ({"language": "xx"}, "language is 'xx'")):
        with pytest.raises(ConfigurationError, match=message):
            SubgraphContext(course(), **wrong)
    with pytest.raises(ConfigurationError, match="It must be an EntityGraph"):
        SubgraphContext("graph")


def test_the_contract_of_postprocessors():
    check_postprocessor_contract(lambda: SubgraphContext(course()), hits(0.9, 0.5, 0.1), QUESTION)
    check_postprocessor_contract(lambda: SubgraphContext(course()), hits(0.9, 0.5, 0.1), "Nothing known")


def test_nothing_given_is_changed_and_the_trace_says_what_was_told():
    given = hits()
    before = snapshot(given)
    with capture_trace() as trace:
        found = asyncio.run(SubgraphContext(course()).apostprocess_nodes(given, QueryBundle(QUESTION)))
    assert snapshot(given) == before
    first = trace.for_node(found[0].node_id)[0]
    assert (first.rank, first.why, first.details["chunks"]) == (1, "tells of 0 connections and 3 facts around Anthropic", ["t4", "t5", "t6"])


def test_an_llm_cites_it():
    nodes = [TextNode(id_="t4", text="Anthropic est une entreprise."), TextNode(id_="t6", text="Une architecture de 2017.")]
    llm = ScriptedLLM(["Anthropic a créé Claude [2]."])
    engine = GroundedQueryEngine(search_nodes(nodes, language="fr"), llm=llm, node_postprocessors=[SubgraphContext(course())])
    response = engine.query("Qui a créé Claude chez Anthropic ?")
    cited = next(hit for hit in response.source_nodes if hit.node.metadata.get("kind") == KIND)
    assert cited.node.metadata["chunks"][0] == "t4"
