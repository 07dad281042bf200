"""EntityGraphRetriever: the questions of the course, what it does with bad input, filters and strangers, and that it changes nothing."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import GraphWalk
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights
from llama_index_advanced_rag.retrievers.entity_graph import EntityGraphRetriever
from llama_index_advanced_rag.retrievers.in_memory import search_nodes
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding, forbidden_settings_llm
from llama_index_advanced_rag.testing.observing import snapshot
from llama_index_advanced_rag.trace import Evidence, capture_trace

TEXTS = {
    "bert": "BERT est un modèle de langage.",
    "gpt": "GPT-4 est un modèle de langage.",
    "google": "BERT a été créé par Google.",
    "openai": "GPT-4 a été créé par OpenAI.",
    "claude": "Claude a été créé par Anthropic.",
    "transformer": "Claude utilise le Transformer.",
    "vaswani": "Le Transformer a été proposé par Vaswani.",
    "tour": "La tour Eiffel a été construite à Paris.",
    "renard": "Le renard vit dans la forêt du nord.",
    "entreprises": "Les entreprises françaises créent des emplois à Lyon.",
    "langage": "Un langage de programmation décrit un calcul.",
    "architecture": "L'architecture gothique a été proposée à Saint-Denis.",
}
TRIPLES = {
    "bert": [("BERT", "est un", "modèle de langage")],
    "gpt": [("GPT-4", "est un", "modèle de langage")],
    "google": [("BERT", "créé par", "Google")],
    "openai": [("GPT-4", "créé par", "OpenAI")],
    "claude": [("Claude", "créé par", "Anthropic")],
    "transformer": [("Claude", "utilise", "Transformer")],
    "vaswani": [("Transformer", "proposé par", "Vaswani")],
}
COMPANIES = "Quelles entreprises ont créé des modèles de langage ?"
PROPOSER = "Qui a proposé l'architecture utilisée par le modèle créé par Anthropic ?"


class Stock(BaseRetriever):
    """Somebody's retriever: gives what it was told to."""

    def __init__(self, hits: Sequence[tuple[BaseNode, float | None]]) -> None:
        self.hits, self.asked = list(hits), list[QueryBundle]()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle)
        return [NodeWithScore(node=node, score=score) for node, score in self.hits]


def nodes_of(texts: Mapping[str, str] = TEXTS, **metadata: Mapping[str, Any]) -> list[BaseNode]:
    return [TextNode(id_=key, text=text, metadata=dict(metadata.get(key, {}))) for key, text in texts.items()]


def course(*, similarity_top_k: int = 5, texts: Mapping[str, str] | None = None, nodes: Sequence[BaseNode] = (), **options: Any) -> EntityGraphRetriever:
    given = list(nodes) or nodes_of()
    graph = EntityGraph.from_triples(TRIPLES, texts=texts)
    options.setdefault("retriever", search_nodes(given, language="fr"))
    return EntityGraphRetriever(options.pop("retriever"), graph, nodes=given, language="fr", similarity_top_k=similarity_top_k, **options)


def ids(hits: Sequence[NodeWithScore]) -> list[str]:
    return [hit.node_id for hit in hits]


def told(retriever: BaseRetriever, query: str) -> dict[str, Evidence]:
    with capture_trace(query) as trace:
        hits = retriever.retrieve(query)
    return {hit.node_id: next(item for item in trace.for_node(hit.node_id) if item.stage == "graph") for hit in hits}


def no_capitals(query: str) -> str:
    return query.lower()


@pytest.mark.parametrize("texts", [None, TEXTS], ids=["triples alone", "triples and texts"])
def test_companies_are_reached_through_their_models(texts: Mapping[str, str] | None) -> None:
    evidence = told(course(texts=texts), COMPANIES)
    assert {"google", "openai"} <= set(list(evidence)[:4])
    assert "BERT" in evidence["google"].details["entities"]
    assert ["BERT", "créé par", "Google"] in evidence["google"].details["facts"]
    assert evidence["google"].why.startswith("Google a créé BERT; ")
    assert "GPT-4" in evidence["openai"].details["entities"]
    assert ["GPT-4", "créé par", "OpenAI"] in evidence["openai"].details["facts"]
    assert evidence["openai"].why.startswith("OpenAI a créé GPT-4; ")


@pytest.mark.parametrize("texts", [None, TEXTS], ids=["triples alone", "triples and texts"])
@pytest.mark.parametrize("change", [str, no_capitals])
def test_who_proposed_what_the_model_uses_is_reached_through_both(texts: Mapping[str, str] | None, change: Any) -> None:
    evidence = told(course(texts=texts), change(PROPOSER))
    assert list(evidence)[:3] == ["claude", "transformer", "vaswani"]
    details = evidence["vaswani"].details
    assert details["entities"] == ["Anthropic", "Claude", "Transformer"]
    assert details["chunks"][-2:] == ["transformer", "vaswani"]
    assert details["facts"] == [["Claude", "créé par", "Anthropic"], ["Claude", "utilise", "Transformer"], ["Transformer", "proposé par", "Vaswani"]]
    assert evidence["vaswani"].why.startswith("Anthropic a créé Claude ; Claude utilise Transformer ; Vaswani a proposé Transformer; ")


def test_the_names_in_the_texts_are_enough() -> None:
    retriever = EntityGraphRetriever.from_nodes(nodes_of(), language="fr", similarity_top_k=4)
    evidence = told(retriever, "Qui est derrière ce que fait Anthropic ?")
    assert list(evidence)[:3] == ["claude", "transformer", "vaswani"]
    assert evidence["vaswani"].details["entities"][-1] == "Transformer"
    assert "Transformer" in evidence["vaswani"].why


def test_the_first_of_the_retriever_stay_in_front() -> None:
    plain = ids(search_nodes(nodes_of(), language="fr").retrieve(PROPOSER))
    for guard in (0, 1, 2):
        found = ids(course(guard=guard, similarity_top_k=12).retrieve(PROPOSER))
        assert found[:guard] == plain[:guard]
        assert set(plain) <= set(found)
        assert len(found) == len(set(found))


def test_scores_are_1_over_the_position_and_the_share_of_the_walk_is_in_the_trace() -> None:
    retriever = course()
    hits = retriever.retrieve(PROPOSER)
    assert [hit.score for hit in hits] == [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    evidence = told(retriever, PROPOSER)
    assert evidence["claude"].details["walk"] > evidence["vaswani"].details["walk"] > 0
    assert [item.rank for item in evidence.values()] == [1, 2, 3, 4, 5]
    assert evidence["transformer"].why.endswith("; lexical #3")


@pytest.mark.parametrize("query", ["Que fait la forêt ?", "zzz", "42 ?!", "le la les", "—" * 10])
def test_a_question_that_names_nothing_known_is_answered_by_the_retriever_alone(query: str) -> None:
    plain = search_nodes(nodes_of(), language="fr").retrieve(query)
    assert ids(course(similarity_top_k=10).retrieve(query)) == ids(plain)


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_question_finds_nothing(query: str) -> None:
    assert course().retrieve(query) == []


def test_an_empty_graph_and_no_nodes() -> None:
    nodes = nodes_of()
    plain = search_nodes(nodes, language="fr")
    for triples in ({}, {"bert": []}):
        retriever = EntityGraphRetriever(plain, EntityGraph.from_triples(triples), nodes=nodes)
        assert ids(retriever.retrieve(PROPOSER)) == ids(plain.retrieve(PROPOSER))
    assert EntityGraphRetriever.from_nodes([]).retrieve(PROPOSER) == []


def test_names_that_nothing_joins_are_both_walked_from() -> None:
    triples = {**TRIPLES, "tour": [("tour Eiffel", "construite à", "Paris")]}
    retriever = EntityGraphRetriever(Stock([]), EntityGraph.from_triples(triples), nodes=nodes_of(), language="fr", similarity_top_k=12)
    found = ids(retriever.retrieve("Anthropic et la tour Eiffel"))
    assert {"tour", "claude", "transformer", "vaswani"} <= set(found)


def test_a_question_of_a_megabyte_takes_seconds() -> None:
    start = time.perf_counter()
    assert ids(course(second_hop=0.5).retrieve(f"{PROPOSER} " * 14_000))[0] == "claude"
    assert time.perf_counter() - start < 120.0


def test_a_name_in_half_of_100_000_passages() -> None:
    texts = {f"c{number}": "Knott again." if number % 2 else f"Nothing {number}." for number in range(100_000)}
    texts |= {"c1": "Knott was climbed by Wainwright.", "c2": "Wainwright lived in Kendal.", "c3": "Kendal is a town by Knott."}
    triples = {key: [("Knott", "is", "Knott")] for key, text in texts.items() if "Knott" in text}
    graph = EntityGraph.from_triples({**triples, "c2": [("Wainwright", "lived in", "Kendal")]}, texts=texts)
    nodes = nodes_of({key: texts[key] for key in ("c1", "c2", "c3", "c5", "c7")})
    retriever = EntityGraphRetriever(Stock([(nodes[3], 1.0)]), graph, nodes=nodes, language="en", second_hop=0.5)
    start = time.perf_counter()
    retriever.retrieve("Where is Knott?")
    assert time.perf_counter() - start < 60.0
    start = time.perf_counter()
    evidence = told(retriever, "Where did Wainwright of Knott live?")
    assert time.perf_counter() - start < 30.0
    assert {"c1", "c2"} <= set(evidence)


def test_a_query_that_is_an_embedding_only_is_the_retrievers() -> None:
    model, nodes = DeterministicEmbedding(), nodes_of()
    plain = search_nodes(nodes, embed_model=model, language="fr")
    vectors = TextVectors(DeterministicEmbedding())
    retriever = EntityGraphRetriever(plain, EntityGraph.from_triples(TRIPLES), nodes=nodes, vectors=vectors)
    bundle = QueryBundle(query_str="", embedding=model.get_query_embedding(TEXTS["vaswani"]))
    assert ids(retriever.retrieve(bundle)) == ids(plain.retrieve(bundle))
    assert retriever.retrieve(bundle)[0].node_id == "vaswani"


def test_facts_by_meaning_too() -> None:
    model = DeterministicEmbedding()
    vectors = TextVectors(model)
    retriever = course(retriever=Stock([]), vectors=vectors, top_facts=1, guard=0)
    assert ids(retriever.retrieve("proposé par qui ?"))[0] == "vaswani"
    assert len([text for text in model.texts if text == "Transformer proposé par Vaswani"]) == 1


def test_without_facts_and_names_nothing_is_walked() -> None:
    plain = ids(search_nodes(nodes_of(), language="fr").retrieve(COMPANIES))
    assert ids(course(similarity_top_k=len(plain), top_facts=0).retrieve(COMPANIES)) == plain
    assert ids(course(similarity_top_k=len(plain), fact_weight=0.0).retrieve(COMPANIES)) == plain


YEAR = {"transformer": {"year": 2017}, "vaswani": {"year": 2017}, "claude": {"year": 2023}, "gpt": {"year": 2023}, "openai": {"year": 2023}}
IN_2023 = MetadataFilters(filters=[MetadataFilter(key="year", value=2023)])


@pytest.mark.parametrize("stock", [False, True])
def test_filters_hold_for_what_is_returned_walked_through_and_said(stock: bool) -> None:
    nodes = nodes_of(**YEAR)
    given = Stock([(node, 0.5) for node in nodes]) if stock else search_nodes(nodes, language="fr")
    retriever = course(retriever=given, nodes=nodes, filters=IN_2023, similarity_top_k=12, guard=0, second_hop=0.5)
    for query in (PROPOSER, COMPANIES, "Transformer", "Vaswani", "forêt"):
        evidence = told(retriever, query)
        assert set(evidence) <= {"claude", "gpt", "openai"}
        assert not {"Vaswani", "Google"} & {name for item in evidence.values() for fact in item.details.get("facts", ()) for name in fact}
        assert not {"transformer", "vaswani", "bert"} & {chunk for item in evidence.values() for chunk in item.details.get("chunks", ())}
    assert ids(retriever.retrieve(PROPOSER))[0] == "claude"


def test_facts_of_passages_that_are_not_allowed_start_nothing() -> None:
    triples = {"a": [("Alpha", "was invented by", "Beta")], "b": [("Alpha", "is near", "Gamma")], "c": [("Gamma", "is near", "Delta")]}
    nodes = nodes_of({"a": "Secret.", "b": "Public.", "c": "Public too."}, a={"year": 1}, b={"year": 2023}, c={"year": 2023})
    retriever = EntityGraphRetriever(Stock([]), EntityGraph.from_triples(triples), nodes=nodes, language="en", top_facts=1)
    question = "what was invented?"
    assert "b" in ids(retriever.retrieve(question))
    assert ids(retriever.with_filters(IN_2023).retrieve(question)) == []


def test_a_filter_that_matches_nothing() -> None:
    nobody = MetadataFilters(filters=[MetadataFilter(key="year", value=1)])
    assert course(filters=nobody, second_hop=0.5).retrieve(PROPOSER) == []


def test_the_filters_of_the_retriever_itself_stay() -> None:
    nodes = nodes_of(**YEAR)
    own = LexicalRetriever.from_defaults(nodes=nodes, language="fr", filters=IN_2023)
    found = ids(course(retriever=own, nodes=nodes, similarity_top_k=12).retrieve("forêt renard emplois"))
    assert found == ids(own.retrieve("forêt renard emplois"))


def test_nodes_that_the_source_no_longer_has_are_left_out() -> None:
    nodes = [node for node in nodes_of() if node.node_id not in ("claude", "transformer")]
    retriever = course(nodes=nodes, similarity_top_k=12, second_hop=0.5)
    found = told(retriever, PROPOSER)
    assert "vaswani" in found
    assert not {"claude", "transformer"} & set(found)
    assert [hit.score for hit in retriever.retrieve(PROPOSER)] == [1 / rank for rank in range(1, len(found) + 1)]


def test_a_retriever_of_somebody_else() -> None:
    nodes = nodes_of()
    index = VectorStoreIndex(nodes=nodes, embed_model=DeterministicEmbedding())
    retriever = course(retriever=index.as_retriever(similarity_top_k=5), nodes=nodes)
    evidence = told(retriever, PROPOSER)
    assert {"claude", "transformer"} <= set(evidence)
    assert any("VectorIndexRetriever #1" in item.why for item in evidence.values())
    assert ids(asyncio.run(retriever.aretrieve(PROPOSER))) == list(evidence)


def test_hits_without_scores_twice_and_unknown_to_everybody() -> None:
    nodes = {node.node_id: node for node in nodes_of()}
    stranger = TextNode(id_="stranger", text="Nobody knows me.")
    stock = Stock([(nodes["tour"], None), (nodes["tour"], 0.5), (stranger, 0.9), (nodes["renard"], None), (nodes["tour"], None)])
    retriever = course(retriever=stock, similarity_top_k=12)
    assert ids(retriever.retrieve("zzz")) == ["tour", "renard"]
    found = ids(retriever.retrieve("Anthropic"))
    assert found[0] == "tour"
    assert len(found) == len(set(found))
    assert {"claude", "renard"} <= set(found)


def test_a_retriever_that_finds_nothing() -> None:
    assert ids(course(retriever=Stock([])).retrieve("Anthropic"))[:3] == ["claude", "transformer", "vaswani"]


def test_a_retriever_that_fails_fails_as_it_is() -> None:
    class Failing(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise ConnectionError("the service is down")

    retriever = course(retriever=Failing())
    with pytest.raises(ConnectionError, match="the service is down"):
        retriever.retrieve(PROPOSER)
    with pytest.raises(ConnectionError, match="the service is down"):
        asyncio.run(retriever.aretrieve(PROPOSER))


@pytest.mark.parametrize("stock", [False, True])
async def test_async_is_sync(stock: bool) -> None:
    nodes = nodes_of()
    child = Stock([(node, 1.0) for node in nodes[::-1]]) if stock else search_nodes(nodes, language="fr", embed_model=DeterministicEmbedding())
    retriever = course(retriever=child, nodes=nodes, second_hop=0.5, similarity_top_k=8)
    for query in (PROPOSER, COMPANIES, "zzz", "Anthropic", ""):
        one, other = retriever.retrieve(query), await retriever.aretrieve(query)
        assert [(hit.node_id, hit.score) for hit in one] == [(hit.node_id, hit.score) for hit in other]
        assert [(hit.node_id, hit.score) for hit in one] == await retriever.aretrieve_ids(query) == retriever.retrieve_ids(query)


def test_other_numbers_leave_the_retriever_as_it_is() -> None:
    retriever = course()
    before = retriever.parameters, ids(retriever.retrieve(PROPOSER))
    other = retriever.with_parameters(damping=0.0, guard=0, top_facts=0, prior_share=0.0)
    assert other.parameters == {**before[0], "damping": 0.0, "guard": 0, "top_facts": 0, "prior_share": 0.0}
    assert ids(other.retrieve(PROPOSER))[0] == "claude"
    assert (retriever.parameters, ids(retriever.retrieve(PROPOSER))) == before
    assert retriever.with_parameters().parameters == retriever.parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 1.0}, "damping is 1.0. It must be at least 0 and below 1"),
        ({"damping": float("nan")}, "damping is nan"),
        ({"prior_share": -0.1}, "prior_share is -0.1"),
        ({"second_hop": -1.0}, "second_hop is -1.0. It must be a number of at least 0"),
        ({"fact_weight": float("inf")}, "fact_weight is inf"),
        ({"prior_top_n": 0}, "prior_top_n"),
        ({"guard": -1}, "guard"),
        ({"top_facts": 2.5}, "top_facts"),
    ],
)
def test_numbers_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        course(**options)
    with pytest.raises(ConfigurationError, match=message):
        course().with_parameters(**options)


def test_what_is_no_option_no_graph_or_no_retriever() -> None:
    with pytest.raises(ConfigurationError, match=r"no options \['beta'\].*prior_share, damping, prior_top_n"):
        course().with_parameters(beta=0.5)
    with pytest.raises(ConfigurationError, match="graph is 'x'.*must be an EntityGraph"):
        EntityGraphRetriever(Stock([]), "x", nodes=nodes_of())
    with pytest.raises(ConfigurationError, match="must be a LlamaIndex retriever"):
        EntityGraphRetriever("x", EntityGraph.from_triples({}), nodes=nodes_of())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="edge weight own"):
        course(edge_weights=EdgeWeights(own=-1.0))


def test_the_same_in_every_run_and_in_any_order_of_the_nodes() -> None:
    first = [told(course(similarity_top_k=12), query) for query in (PROPOSER, COMPANIES)]
    second = [told(course(similarity_top_k=12), query) for query in (PROPOSER, COMPANIES)]
    assert first == second
    one, other = (EntityGraphRetriever.from_nodes(nodes, language="fr", similarity_top_k=12) for nodes in (nodes_of(), nodes_of()[::-1]))
    assert [(hit.node_id, hit.score) for hit in one.retrieve(PROPOSER)] == [(hit.node_id, hit.score) for hit in other.retrieve(PROPOSER)]


def test_nothing_that_was_given_is_changed_and_no_llm_is_asked() -> None:
    nodes = nodes_of(**YEAR)
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="course")
    stock = Stock([(node, None) for node in nodes])
    bundle, before = QueryBundle(PROPOSER), snapshot(nodes)
    with forbidden_settings_llm() as prompts:
        retriever = course(retriever=stock, nodes=nodes, filters=IN_2023, second_hop=0.5, vectors=TextVectors(DeterministicEmbedding()))
        hits = retriever.retrieve(bundle)
        hits[0].node.metadata["year"] = 0
        hits[0].score = 7.0
        assert retriever.retrieve(bundle)[0].score == 1.0
    assert prompts == []
    assert bundle == QueryBundle(PROPOSER)
    assert snapshot(nodes) == before
    assert stock.asked[0] is not bundle


def test_threads_that_ask_at_once_get_what_one_gets() -> None:
    retriever, found = course(second_hop=0.5, vectors=TextVectors(DeterministicEmbedding())), list[list[str]]()
    expected = ids(course(second_hop=0.5, vectors=TextVectors(DeterministicEmbedding())).retrieve(PROPOSER))
    threads = [threading.Thread(target=lambda: found.append(ids(retriever.retrieve(PROPOSER)))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


def test_a_walk_is_made_ready_once_for_each_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    of = GraphWalk.of
    monkeypatch.setattr(GraphWalk, "of", lambda *args, **options: made.append(options) or of(*args, **options))
    nodes = nodes_of(**YEAR)
    retriever = course(nodes=nodes)
    for filters in (None, IN_2023, None, IN_2023, MetadataFilters(filters=[])):
        retriever.with_filters(filters).retrieve(PROPOSER)
    assert len(made) == 2
    for year in range(30):
        retriever.with_filters(MetadataFilters(filters=[MetadataFilter(key="year", value=year)])).retrieve(PROPOSER)
    assert len(retriever._search._walks._kept) <= 8


def test_what_it_is_called() -> None:
    assert repr(course()).startswith("EntityGraphRetriever(LexicalRetriever(")


def test_what_matches_a_filter_no_more_is_not_returned() -> None:
    nodes = nodes_of(**YEAR)
    retriever = course(nodes=nodes, retriever=Stock([])).with_filters(IN_2023)
    found = ids(retriever.retrieve(PROPOSER))
    assert found
    next(node for node in nodes if node.node_id == found[0]).metadata["year"] = 1999
    assert found[0] not in ids(retriever.retrieve(PROPOSER))
    assert set(found[1:]) <= set(ids(retriever.retrieve(PROPOSER)))


def test_the_share_in_the_evidence_is_that_of_the_walk() -> None:
    shares = [item.details["walk"] for item in told(course(), PROPOSER).values() if "walk" in item.details]
    assert shares
    assert told(course(specific_up_to=1), PROPOSER)["vaswani"].details["walk"] == told(course(specific_up_to=0), PROPOSER)["vaswani"].details["walk"]
