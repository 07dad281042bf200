"""Where the entity graph comes from: one that is ready, or that of a corpus, which is as if it were folded anew after every change."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.graph_stores import EntityNode, SimplePropertyGraphStore
from llama_index.core.graph_stores.types import Relation as StoredRelation
from llama_index.core.schema import BaseNode, Document, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex, EntityGraphRetriever, LexicalRetriever
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import entity_weights
from llama_index_advanced_rag.graph.name_fold import NameFold
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights
from llama_index_advanced_rag.retrievers.graph_of_nodes import graph_of_nodes
from llama_index_advanced_rag.retrievers.graph_source import CorpusGraph, ReadyGraph, graph_source_of
from llama_index_advanced_rag.retrievers.graph_views import GraphMasks, GraphSource, GraphWalks
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding

MODEL = DeterministicEmbedding(dimensions=16)
TEXTS = {
    "fells": "Knott is a fell in the Lake District. Wainwright climbed Knott in Q3 2022.",
    "people": "Wainwright was born in Blackburn. He walked in the Lake District until Q3 2023.",
    "towns": "Keswick is a town in the Lake District. Blackburn is a town in Lancashire.",
    "models": "Anthropic makes Claude. Claude is built on the Transformer.",
}


def document(name: str, text: str = "", **metadata: Any) -> Document:
    return Document(id_=name, text=text or TEXTS[name], metadata={"lang": "fr" if name == "towns" else "en", **metadata})


def index_of(*names: str, **options: Any) -> CorpusIndex:
    return CorpusIndex.from_documents([document(name) for name in names], embed_model=MODEL, chunk_size=20, chunk_overlap=0, **options)


def assert_equal_graphs(one: EntityGraph, other: EntityGraph) -> None:
    """To the last bit."""
    assert (one.chunk_ids, one.keys, one.names, dict(one.namesakes)) == (other.chunk_ids, other.keys, other.names, dict(other.namesakes))
    for left, right in ((one.mentions, other.mentions), (one.own, other.own), (one.aliases, other.aliases)):
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(left, part), getattr(right, part))
    assert list(one.facts.relations) == list(other.facts.relations)
    np.testing.assert_array_equal(one.titles, other.titles)


def equals(**values: Any) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value) for key, value in values.items()])


def ready(*nodes: BaseNode) -> ReadyGraph:
    triples = {"a": [("Knott", "in", "Lake District")], "b": [("Knott", "near", "Keswick")], "c": []}
    return ReadyGraph(EntityGraph.from_triples(triples), DictNodeSource(nodes))


def test_a_ready_graph_asks_the_metadata_of_the_nodes() -> None:
    source = ready(TextNode(id_="a", metadata={"lang": "en"}), TextNode(id_="b", metadata={"lang": "fr"}))
    assert source.graph() is source.graph()
    assert source.allowed(source.graph(), equals(lang="fr")).tolist() == [False, True, False], "a node that is gone matches nothing"
    assert source.documents(source.graph()) == ["a", "b", "c"]


def test_the_graph_of_a_corpus_is_that_of_its_nodes() -> None:
    with index_of(*TEXTS) as index:
        graph = CorpusGraph(index.corpus).graph()
        rows = index.corpus.rows.table.all_rows().tolist()
        nodes = list(index.corpus.documents.nodes_of_rows(rows).values())
        assert_equal_graphs(graph, graph_of_nodes(nodes, language="auto"))
        assert {"Knott", "Lake District", "Wainwright"} <= set(graph.names)
        assert graph.n_chunks == len(nodes) > 4


def test_it_is_the_same_object_until_something_changes() -> None:
    with index_of("fells", "people") as index:
        source = CorpusGraph(index.corpus)
        first = source.graph()
        assert source.graph() is first
        index.insert(document("towns"))
        second = source.graph()
        assert second is not first
        assert source.graph() is second
        index.delete_ref_doc("unknown")
        index.update_ref_doc(document("towns"))
        assert source.graph() is second, "what changes nothing changes nothing"


def test_a_graph_links_what_it_knows_whatever_came_later() -> None:
    with index_of("fells") as index:
        before = CorpusGraph(index.corpus)
        graph = before.graph()
        index.insert(document("parks", "The Lake District National Park is in England."))
        assert before.graph() is not graph
        assert [graph.names[entity] for entity in graph.link("Where is the Lake District National Park?")] == ["Lake District"]
        index.delete_ref_doc("fells")
        before.graph()
        assert [graph.names[entity] for entity in graph.link("Who climbed Knott?")] == ["Knott"]


@pytest.mark.parametrize("in_memory", [True, False])
def test_after_every_change_it_is_the_graph_of_a_fresh_index(tmp_path: Path, in_memory: bool) -> None:
    options = {} if in_memory else {"persist_dir": tmp_path / "index"}
    with index_of("fells", "people", **options) as index:
        source = CorpusGraph(index.corpus)
        source.graph()
        changes = (
            (lambda: index.insert(document("models")), ("fells", "people", "models")),
            (lambda: index.delete_ref_doc("fells"), ("people", "models")),
            (lambda: index.insert(document("towns")), ("people", "models", "towns")),
            (index.compact, ("people", "models", "towns")),
            (lambda: index.apply(added=[document("fells")], deleted=["models", "people"]), ("towns", "fells")),
            (lambda: index.apply(deleted=["towns", "fells"]), ()),
        )
        for change, left in changes:
            change()
            with index_of(*left) as fresh:
                assert_equal_graphs(source.graph(), CorpusGraph(fresh.corpus).graph())


def test_a_changed_text_and_a_changed_title(tmp_path: Path) -> None:
    with index_of("fells", "people") as index:
        source = CorpusGraph(index.corpus)
        assert source.graph().link("Keswick") == []
        index.update_ref_doc(document("fells", "Keswick is near Knott.", title="Skiddaw"))
        fells, people = document("fells", "Keswick is near Knott.", title="Skiddaw"), document("people")
        with CorpusIndex.from_documents([fells, people], embed_model=MODEL, chunk_size=20, chunk_overlap=0) as fresh:
            assert_equal_graphs(source.graph(), CorpusGraph(fresh.corpus).graph())
        assert [source.graph().names[entity] for entity in source.graph().link("Keswick and Skiddaw")] == ["Keswick", "Skiddaw"]


def test_a_loaded_index_has_the_same_graph(tmp_path: Path) -> None:
    with index_of(*TEXTS, persist_dir=tmp_path / "index") as index:
        before = CorpusGraph(index.corpus).graph()
        with CorpusIndex.load(tmp_path / "index", embed_model=MODEL, read_only=True) as loaded:
            assert_equal_graphs(CorpusGraph(loaded.corpus).graph(), before)


def test_without_records_the_names_are_read_now() -> None:
    with index_of(*TEXTS) as index, index_of(*TEXTS, extractor=None) as without:
        assert_equal_graphs(CorpusGraph(without.corpus).graph(), CorpusGraph(index.corpus).graph())


def test_what_filters_let_through_of_a_corpus() -> None:
    with index_of(*TEXTS) as index:
        source = CorpusGraph(index.corpus)
        graph = source.graph()
        documents = source.documents(graph)
        assert set(documents) == set(TEXTS)
        assert source.allowed(graph, equals(lang="fr")).tolist() == [name == "towns" for name in documents]
        assert not source.allowed(graph, equals(lang="it")).any()
        other = MetadataFilters(filters=[MetadataFilter(key="lang", value="fr", operator=FilterOperator.NE)])
        assert source.allowed(graph, other).tolist() == [name != "towns" for name in documents]
        index.delete_ref_doc("towns")
        assert not source.allowed(graph, equals(lang="fr")).any(), "rows that have gone since match nothing"
        assert source.allowed(graph, other).sum() == sum(name != "towns" for name in documents)


def test_an_empty_corpus() -> None:
    with index_of() as index:
        source = CorpusGraph(index.corpus)
        assert (source.graph().n_chunks, source.graph().n_entities) == (0, 0)
        assert source.documents(source.graph()) == []
        assert source.allowed(source.graph(), equals(lang="fr")).shape == (0,)
        assert index.as_retriever("graph").retrieve("Where is Knott?") == []


def test_what_fails_while_it_is_folded_is_done_at_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    with index_of("fells", "people") as index, index_of("fells", "people", "towns") as fresh:
        source, settle = CorpusGraph(index.corpus), NameFold.settle
        before = source.graph()
        index.insert(document("towns"))

        def fail(*_: object) -> None:
            raise OSError("the disk is gone")

        monkeypatch.setattr(NameFold, "settle", fail)
        with pytest.raises(OSError, match="the disk is gone"):
            source.graph()
        monkeypatch.setattr(NameFold, "settle", settle)
        assert source.graph() is not before
        assert_equal_graphs(source.graph(), CorpusGraph(fresh.corpus).graph())


def test_two_threads_ask_while_a_third_changes_the_index(tmp_path: Path) -> None:
    with index_of("fells", "people", persist_dir=tmp_path / "index") as index:
        retriever, done, errors, answers = index.as_retriever("graph", similarity_top_k=50), threading.Event(), list[BaseException](), list[int]()

        def ask() -> None:
            try:
                while not done.is_set():
                    hits = retriever.retrieve("Where in the Lake District did Wainwright climb Knott, and who makes Claude?")
                    answers.append(len({hit.node_id for hit in hits}))
                    assert len(hits) == answers[-1]
            except BaseException as error:  # noqa: BLE001 - shown by the thread of the test
                errors.append(error)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            index.insert(document("towns"))
            index.apply(added=[document("models")], deleted=["fells"])
            index.apply(added=[document("fells")], deleted=["models", "towns"])
        done.set()
        for thread in threads:
            thread.join()
        assert errors == []
        assert answers
        with index_of("fells", "people") as fresh:
            question = "Where did Wainwright climb Knott?"
            expected = fresh.as_retriever("graph").retrieve(question)
            assert [(hit.node_id, hit.score) for hit in index.as_retriever("graph").retrieve(question)] == [(hit.node_id, hit.score) for hit in expected]


def test_what_another_process_wrote_is_seen(tmp_path: Path) -> None:
    with index_of("fells", persist_dir=tmp_path / "index") as index, CorpusIndex.load(tmp_path / "index", embed_model=MODEL, read_only=True) as reader:
        retriever = reader.as_retriever("graph")
        assert {hit.node.ref_doc_id for hit in retriever.retrieve("Who makes Claude?")} == {"fells"}
        index.insert(document("models"))
        assert retriever.retrieve("Who makes Claude?")[0].node.ref_doc_id == "models"


def test_what_another_process_wrote_is_seen_beside_a_retriever_that_knows_nothing_of_it(tmp_path: Path) -> None:
    with index_of("fells", persist_dir=tmp_path / "index") as index, CorpusIndex.load(tmp_path / "index", embed_model=MODEL, read_only=True) as reader:
        stranger = LexicalRetriever.from_defaults(nodes=[TextNode(text="Nothing of interest.")])
        retriever = EntityGraphRetriever(stranger, reader.corpus, nodes=reader)
        assert retriever.retrieve("Who makes Claude?") == []
        index.insert(document("models"))
        assert retriever.retrieve("Who makes Claude?")[0].node.ref_doc_id == "models"


def test_what_another_process_has_just_written_is_seen_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with index_of("fells", persist_dir=tmp_path / "index") as index, CorpusIndex.load(tmp_path / "index", embed_model=MODEL, read_only=True) as reader:
        source = CorpusGraph(reader.corpus)
        walks = GraphWalks(source)
        index.insert(document("towns"))
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(reader.corpus, "refresh", lambda: False)  # it was written just after this process had looked
            assert walks.walk(equals(lang="fr")).graph.n_chunks == source.graph().n_chunks < CorpusGraph(index.corpus).graph().n_chunks
        walk = walks.walk(equals(lang="fr"))
        assert walk.allowed is not None
        assert walk.allowed.any(), "not the answer from before the row was known"
        assert_equal_graphs(walk.graph, CorpusGraph(index.corpus).graph())


def test_others_read_while_records_are_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with index_of(*TEXTS, persist_dir=tmp_path / "index") as index:
        source, settle, counted = CorpusGraph(index.corpus), NameFold.settle, list[int]()

        def meanwhile(fold: NameFold, texts: Any) -> None:
            thread = threading.Thread(target=lambda: counted.append(index.corpus.counts()["documents"]))
            thread.start()
            thread.join(timeout=20)
            settle(fold, texts)

        monkeypatch.setattr(NameFold, "settle", meanwhile)
        assert source.graph().n_chunks
        assert counted == [len(TEXTS)]


def test_which_chunks_match_is_found_once_for_each_graph_and_filter() -> None:
    source = ready(TextNode(id_="a", metadata={"lang": "en"}), TextNode(id_="b", metadata={"lang": "fr"}))
    masks = GraphMasks(source)
    french = masks.of(source.graph(), equals(lang="fr"))
    assert french is masks.of(source.graph(), equals(lang="fr"))
    assert masks.of(source.graph(), None) is masks.of(source.graph(), MetadataFilters(filters=[])) is None


def test_all_who_ask_a_corpus_share_one_graph() -> None:
    with index_of("fells") as index:
        source = graph_source_of(index.corpus, DictNodeSource())
        assert graph_source_of(index.corpus, DictNodeSource()) is source
        graph = source.graph()
        index.as_retriever("graph").retrieve("Where is Knott?")
        assert source.graph() is graph
        assert index.corpus.shared["graph"] is source


def test_facts_are_made_searchable_once() -> None:
    source = ready()
    facts = source.views.facts("en", None)
    assert source.views.facts("en", None) is facts is not source.views.facts("fr", None)
    assert facts.of(source.graph()) is facts.of(source.graph())


def test_walks_under_a_few_weights_are_shared() -> None:
    views = ready().views
    first = views.walks(EdgeWeights(relations=0.0))
    assert views.walks(EdgeWeights(relations=0.0)) is first
    for number in range(1, 20):
        views.walks(EdgeWeights(relations=float(number)))
    assert views.walks(EdgeWeights(relations=19.0)) is views.walks(EdgeWeights(relations=19.0))
    assert views.walks(EdgeWeights(relations=0.0)) is not first


def test_a_walk_is_made_ready_once_for_each_graph_and_filter() -> None:
    with index_of("fells", "towns") as index:
        walks = GraphWalks(CorpusGraph(index.corpus))
        everything, french = walks.walk(None), walks.walk(equals(lang="fr"))
        assert walks.walk(MetadataFilters(filters=[])) is everything
        assert walks.walk(equals(lang="fr")) is french is not everything
        reached = french.reach(entity_weights(french.graph, french.graph.link("Lake District")))
        assert {french.graph.chunk_ids[place] for place in np.flatnonzero(reached.chunks)} <= {
            chunk for chunk, name in zip(french.graph.chunk_ids, walks.source.documents(french.graph), strict=True) if name == "towns"
        }
        index.insert(document("people"))
        assert walks.walk(None) is not everything
        assert walks.walk(equals(lang="fr")).graph is walks.walk(None).graph


def test_at_most_a_few_walks_are_kept() -> None:
    walks = GraphWalks(ready(TextNode(id_="a", metadata={"lang": "en"})))
    first = walks.walk(equals(lang="0"))
    for number in range(20):
        walks.walk(equals(lang=str(number)))
    assert len(walks._kept) <= 8
    assert walks.walk(equals(lang="0")) is not first


def test_weights_are_checked_when_a_walk_is_made() -> None:
    with pytest.raises(ConfigurationError, match="edge weight aliases is -1"):
        GraphWalks(ready(), EdgeWeights(aliases=-1))


def test_whatever_a_graph_is_given_as() -> None:
    source, nodes = ready(), DictNodeSource()
    assert graph_source_of(source, nodes) is source
    assert isinstance(source, GraphSource)
    assert isinstance(graph_source_of(source.graph(), nodes), ReadyGraph)
    with index_of("fells") as index:
        assert isinstance(graph_source_of(index.corpus, nodes), CorpusGraph)
    store = SimplePropertyGraphStore()
    store.upsert_nodes([EntityNode(name="Knott"), EntityNode(name="Lake District")])
    store.upsert_relations([StoredRelation(label="lies_in", source_id="Knott", target_id="Lake District")])
    assert sorted(graph_source_of(store, nodes).graph().names) == ["Knott", "Lake District"]
    for wrong in (None, "graph", {}, EntityGraph):
        with pytest.raises(ConfigurationError, match="graph is .*It must be an EntityGraph, a PropertyGraphStore or a CorpusGraph"):
            graph_source_of(wrong, nodes)
