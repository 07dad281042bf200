"""EntityVoteRetriever: whom entities vote for, in memory and over an index that changes."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.retrievers.entity_vote import EntityVoteRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.storage_view import SUMMARY_FILE
from llama_index_advanced_rag.testing import DeterministicEmbedding, forbidden_settings_llm
from llama_index_advanced_rag.testing.observing import snapshot
from llama_index_advanced_rag.trace import Evidence, capture_trace

TEXTS = {
    "acme": "Acme sells anvils in Rome.",
    "beta": "Beta sells boats in Rome.",
    "delta": "Delta sells doors.",
    "rain": "rain falls on anvils and boats alike.",
}
TRIPLES = {
    "acme": [("Acme", "sells", "anvils"), ("Acme", "is in", "Rome")],
    "beta": [("Beta", "sells", "boats"), ("Beta", "is in", "Rome")],
    "delta": [("Delta", "sells", "doors")],
    "rain": [],
}


def passages(**metadata: dict[str, str]) -> list[TextNode]:
    return [TextNode(id_=key, text=text, metadata=metadata.get(key, {}), excluded_embed_metadata_keys=["kind"]) for key, text in TEXTS.items()]


class Axes(DeterministicEmbedding):
    """Each of the names is a direction of its own, so that cosines are known; other words are one more direction."""

    def _vector(self, text: str) -> list[float]:
        self.texts.append(text)
        words = ["acme", "anvils", "beta", "boats", "delta", "doors", "rome"]
        counts = [float(text.lower().split().count(word)) for word in words]
        counts.append(0.0 if sum(counts) else 1.0)
        length = sum(count * count for count in counts) ** 0.5
        return [count / length for count in counts]


class Fixed(BaseRetriever):
    """Gives these nodes, whatever is asked."""

    def __init__(self, nodes: Sequence[TextNode]) -> None:
        self.nodes = nodes
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=1.0) for node in self.nodes]


def over_triples(child: BaseRetriever | None = None, *, model: DeterministicEmbedding | None = None, **options: Any) -> EntityVoteRetriever:
    """Over the triples; by default nothing of the child stays in front and neighbours do not vote."""
    nodes = passages()
    options = {"guard": 0, "neighbour_decay": 0.0, "nodes": nodes, **options}
    given = LexicalRetriever.from_defaults(nodes=nodes) if child is None else child
    return EntityVoteRetriever(given, EntityGraph.from_triples(TRIPLES), vectors=TextVectors(model or Axes()), **options)


def ids(hits: Sequence[NodeWithScore]) -> list[str]:
    return [hit.node_id for hit in hits]


def voted(one: EntityVoteRetriever, query: str) -> dict[str, Evidence]:
    """The evidence of those that were voted for, by their ids."""
    with capture_trace() as trace:
        one.retrieve(query)
    return {item.node_id: item for item in trace.children[0].evidence if item.details}


def test_the_scores_of_a_vote_by_hand() -> None:
    """The only words in common are the names: "acme" fits with 1, all others with 0."""
    found = voted(over_triples(), "acme")
    assert {key: item.details for key, item in found.items()} == {"acme": {"vote": pytest.approx(0.4 * 1 + 0.6 * 1.0, abs=1e-3), "entities": ["Acme"]}}
    both = voted(over_triples(), "acme rome")
    fit = 2**-0.5
    assert both["acme"].details["vote"] == pytest.approx(0.4 * 2 / 3 + 0.6 * fit, abs=1e-3), "Acme, and the Rome of two passages"
    assert both["beta"].details["vote"] == pytest.approx(0.4 * 1 / 3 + 0.6 * fit, abs=1e-3)
    assert both["beta"].why.startswith("1 of 3 votes: Rome")


def test_the_best_of_the_vote_come_first_and_scores_are_1_over_the_position() -> None:
    hits = over_triples().retrieve("boats of Beta")
    assert ids(hits)[0] == "beta"
    assert [hit.score for hit in hits] == [1 / rank for rank in range(1, len(hits) + 1)]


def test_the_first_of_the_retriever_stay_in_front() -> None:
    nodes = passages()
    child = Fixed([nodes[3], nodes[2], nodes[1], nodes[0]])
    assert [ids(over_triples(child, guard=guard).retrieve("acme"))[:3] for guard in (0, 1, 2)] == [
        ["acme", "rain", "delta"],
        ["rain", "acme", "delta"],
        ["rain", "delta", "acme"],
    ]


def test_a_passage_without_a_name_is_found_through_the_retriever() -> None:
    assert "rain" in ids(over_triples().retrieve("does rain fall on the boats of Beta?"))
    assert ids(over_triples().retrieve("rain falls")) == ["rain"]


def test_fewer_than_asked_for() -> None:
    assert ids(over_triples(similarity_top_k=1).retrieve("boats of Beta in Rome")) == ["beta"]
    assert len(over_triples(similarity_top_k=100).retrieve("acme beta delta rain")) == 4


def test_neighbours_vote_with_a_part_of_the_score() -> None:
    """Anvils and Rome are related to Acme; Beta is in Rome too, but named by another passage, and so by another document."""
    found = voted(over_triples(neighbour_decay=0.5, share_weight=0.0), "acme")
    assert found["acme"].details == {"vote": pytest.approx((1 + 0.5 + 0.5) / 3, abs=1e-3), "entities": ["Acme", "anvils", "Rome"]}
    assert set(found) == {"acme"}
    one_document = [TextNode(id_=key, text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="all")}) for key, text in TEXTS.items()]
    for decay in (0.0, 0.5, 1.0):
        wide = voted(over_triples(nodes=one_document, neighbour_decay=decay, share_weight=0.0), "acme")
        assert wide.get("beta", Evidence("", "", 1, 0.0, "", {"vote": 0.0})).details["vote"] == pytest.approx(decay, abs=1e-3), "Rome votes for it"


def test_only_so_many_vote() -> None:
    assert set(voted(over_triples(top_n=1), "acme acme beta")) == {"acme"}
    assert set(voted(over_triples(top_n=2), "acme acme beta")) == {"acme", "beta"}


@pytest.mark.parametrize("query", ["", "   \n"])
def test_an_empty_question_finds_nothing_and_embeds_nothing(query: str) -> None:
    model = DeterministicEmbedding()
    assert over_triples(model=model).retrieve(query) == []
    assert asyncio.run(over_triples(model=model).aretrieve(query)) == []
    assert model.texts == []


def test_a_graph_without_entities_and_no_graph() -> None:
    nodes, model = passages(), DeterministicEmbedding()
    child = LexicalRetriever.from_defaults(nodes=nodes)
    for triples in ({}, {"acme": []}):
        empty = EntityVoteRetriever(child, EntityGraph.from_triples(triples), vectors=TextVectors(model), nodes=nodes)
        assert ids(empty.retrieve("anvils")) == ids(child.retrieve("anvils"))
    assert model.texts == []
    with pytest.raises(ConfigurationError, match="It must be an EntityGraph"):
        EntityVoteRetriever(child, None, vectors=TextVectors(model), nodes=nodes)


def test_chunks_that_the_nodes_no_longer_have_are_left_out() -> None:
    assert ids(over_triples(Fixed([]), nodes=passages()[1:]).retrieve("acme beta")) == ["beta"]


def test_a_question_with_an_embedding_is_compared_by_it() -> None:
    model = Axes()
    bundle = QueryBundle("what is this?", embedding=model.get_text_embedding("Delta"))
    one = over_triples(model=model)
    assert ids(one.retrieve(bundle))[0] == "delta"
    assert "what is this?" not in model.texts
    alone = QueryBundle("", embedding=bundle.embedding)
    assert ids(one.retrieve(alone))[0] == "delta"


def test_filters_hold_for_what_is_returned_and_who_votes() -> None:
    nodes = passages(acme={"kind": "x"}, rain={"kind": "x"}, beta={"kind": "y"})
    only = MetadataFilters(filters=[MetadataFilter(key="kind", value="x")])
    for child in (LexicalRetriever.from_defaults(nodes=nodes), Fixed(nodes)):
        one = over_triples(child, nodes=nodes, filters=only, top_n=1)
        assert set(ids(one.retrieve("beta beta acme rain"))) == {"acme", "rain"}
        assert set(voted(one, "beta beta acme rain")) == {"acme"}, "the vote of Beta is not lost on what may not be returned"
        assert over_triples(child, nodes=nodes, filters=MetadataFilters(filters=[MetadataFilter(key="kind", value="z")])).retrieve("acme") == []


@pytest.mark.parametrize("stock", [False, True])
async def test_async_is_sync(stock: bool) -> None:
    nodes, model = passages(), Axes()
    child = VectorStoreIndex(nodes=nodes, embed_model=model).as_retriever(similarity_top_k=4) if stock else LexicalRetriever.from_defaults(nodes=nodes)
    one = over_triples(child, model=model, units=UnitScorer.of_nodes(nodes))
    questions = ["boats of Beta", "acme", "doors", "", "zzz"]
    together = await asyncio.gather(*(one.aretrieve(question) for question in questions))
    assert [[(hit.node_id, hit.score) for hit in hits] for hits in together] == [
        [(hit.node_id, hit.score) for hit in one.retrieve(question)] for question in questions
    ]


def test_other_numbers_leave_the_retriever_as_it_is() -> None:
    one = over_triples()
    other = one.with_parameters(top_n=2, guard=3)
    assert (one.parameters["top_n"], other.parameters["top_n"], other.parameters["guard"]) == (35, 2, 3)
    assert other.similarity_top_k == one.similarity_top_k
    assert set(one.parameters) == {"top_n", "document_weight", "share_weight", "neighbour_decay", "guard"}
    with pytest.raises(ConfigurationError, match=r"There are no options \['damping'\]. Those are: guard, top_n, document_weight"):
        one.with_parameters(damping=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_n": 0}, "top_n is 0"),
        ({"top_n": 2.5}, "top_n is 2.5"),
        ({"guard": -1}, "guard is -1"),
        ({"document_weight": 1.1}, "document_weight is 1.1. It must be from 0 to 1."),
        ({"share_weight": float("nan")}, "share_weight is nan"),
        ({"neighbour_decay": -0.5}, "neighbour_decay is -0.5"),
        ({"similarity_top_k": 0}, "similarity_top_k is 0"),
    ],
)
def test_numbers_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        over_triples(**options)
    if "similarity_top_k" not in options:
        with pytest.raises(ConfigurationError, match=message):
            over_triples().with_parameters(**options)


def test_nothing_given_is_changed_and_no_llm_is_asked() -> None:
    nodes, bundle = passages(), QueryBundle("boats of Beta")
    child = LexicalRetriever.from_defaults(nodes=nodes)
    one = over_triples(child, nodes=nodes)
    before = snapshot(nodes)
    with forbidden_settings_llm():
        one.retrieve(bundle)
    assert (snapshot(nodes), bundle) == (before, QueryBundle("boats of Beta"))
    assert child.similarity_top_k == 10


def test_the_order_of_nodes_and_triples_does_not_matter() -> None:
    found = []
    for keys in (list(TEXTS), sorted(TEXTS, reverse=True)):
        nodes = [TextNode(id_=key, text=TEXTS[key]) for key in keys]
        graph = EntityGraph.from_triples({key: TRIPLES[key] for key in sorted(keys)})
        one = EntityVoteRetriever(LexicalRetriever.from_defaults(nodes=nodes), graph, vectors=TextVectors(DeterministicEmbedding()), nodes=nodes)
        found.append([{key: item.details for key, item in voted(one, query).items()} for query in ("acme rome", "boats of Beta")])
    assert found[0] == found[1]


def test_what_it_is_called() -> None:
    assert repr(over_triples()).startswith("EntityVoteRetriever(LexicalRetriever(")


# Over an index

FILINGS = {
    "apple": ("Apple 10-Q", "Gross margin of Apple was 44 percent.\nGross margin 300 400\nNet sales in Europe rose, and Products did well."),
    "nvidia": ("Nvidia 10-Q", "Gross margin of Nvidia was 70 percent.\nGross margin 500 700\nRevenue of the Data Center rose, and Gaming did well."),
    "note": ("", "the weather was nice and nobody is named here."),
}
QUESTION = "What was the gross margin of Nvidia?"


def filings(**changed: str) -> list[Document]:
    return [Document(text=changed.get(name, text), id_=name, metadata={"title": title} if title else {}) for name, (title, text) in FILINGS.items()]


def build(documents: list[Document], model: DeterministicEmbedding | None = None, **options: Any) -> CorpusIndex:
    return CorpusIndex.from_documents(documents, embed_model=model or DeterministicEmbedding(), **options)


def answers(index: CorpusIndex, **options: Any) -> list[list[tuple[str, float]]]:
    one = index.as_retriever("vote", **options)
    return [[(hit.node_id, round(hit.score or 0, 9)) for hit in one.retrieve(question)] for question in (QUESTION, "Gaming", "Net sales in Europe", "weather")]


def test_the_document_that_the_question_names_is_the_one_whose_name_votes() -> None:
    index = build(filings())
    for name, text in (("Nvidia", "nvidia"), ("Apple", "apple")):
        hits = index.as_retriever("vote", guard=0).retrieve(f"What was the gross margin of {name}?")
        assert hits[0].node.ref_doc_id == text
        assert {hit.node.ref_doc_id for hit in hits} == set(FILINGS), "what has no name is found through the other retriever"


def test_documents_that_fit_make_their_entities_count_more() -> None:
    index = build(filings())
    question = "Of the Data Center and Gaming, what was the gross margin?"
    of_apple = []
    for weight in (0.0, 0.15, 1.0):
        found = voted(index.as_retriever("vote", guard=0, document_weight=weight, neighbour_decay=0.0, share_weight=0.0), question)
        by_document = {index.corpus.get_nodes([key])[0].ref_doc_id: item.details["vote"] for key, item in found.items()}
        of_apple.append(by_document.get("apple", 0.0) / by_document["nvidia"])
    assert of_apple == sorted(of_apple, reverse=True)
    assert of_apple[2] < of_apple[0]


def names_embedded(model: DeterministicEmbedding, since: int) -> list[str]:
    return [text for text in model.texts[since:] if text != QUESTION]


def test_names_are_embedded_once_and_kept_for_whoever_opens_the_index(tmp_path: Path) -> None:
    model = DeterministicEmbedding()
    with build(filings(), model, persist_dir=tmp_path / "i") as index:
        built = len(model.texts)
        assert QUESTION not in model.texts
        first = answers(index)
        asked = names_embedded(model, built)
        assert {"Gross margin - Apple 10-Q", "Gross margin - Nvidia 10-Q"} <= set(asked)
        many = len(model.texts)
        assert answers(index, top_n=3, guard=0)
        assert not {text for text in model.texts[many:] if " - " in text}, "retrievers of one index share what was embedded"
    for read_only in (False, True):
        again = DeterministicEmbedding()
        with CorpusIndex.load(tmp_path / "i", embed_model=again, read_only=read_only) as index:
            index.as_retriever("vote").retrieve(QUESTION)
            assert set(again.texts) == {QUESTION}
            assert answers(index) == first


def test_a_change_embeds_the_new_names_only(tmp_path: Path) -> None:
    model = DeterministicEmbedding()
    with build(filings(), model, persist_dir=tmp_path / "i") as index:
        index.as_retriever("vote").retrieve(QUESTION)
        index.update_ref_doc(filings(apple=f"{FILINGS['apple'][1]}\nThe Vision Pro was shown.")[0])
        since = len(model.texts)
        index.as_retriever("vote").retrieve(QUESTION)
        assert names_embedded(model, since) == ["Vision Pro - Apple 10-Q"]
        index.delete_ref_doc("nvidia")
        since = len(model.texts)
        assert {hit.node.ref_doc_id for hit in index.as_retriever("vote").retrieve(QUESTION)} == {"apple", "note"}
        assert names_embedded(model, since) == []


def test_a_retriever_that_was_made_before_follows_the_index() -> None:
    index = build(filings()[:1])
    one = index.as_retriever("vote", guard=0)
    assert one.retrieve(QUESTION)[0].node.ref_doc_id == "apple"
    index.insert(filings()[1])
    assert one.retrieve(QUESTION)[0].node.ref_doc_id == "nvidia"


def test_after_deleting_and_reloading_it_is_a_fresh_index(tmp_path: Path) -> None:
    with build(filings(), persist_dir=tmp_path / "i") as index:
        answers(index)
        index.delete_ref_doc("apple")
        index.insert(Document(text="Intel builds a factory in Ohio.", id_="intel"))
        answers(index)
        index.delete_ref_doc("intel")
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as again:
        assert answers(again) == answers(build(filings()[1:]))


def test_a_read_only_index_without_kept_vectors_embeds_and_keeps_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "i"
    with build(filings(), persist_dir=folder) as index:
        wanted = answers(build(filings()))
        assert index.info()["documents"] == 3
    assert not (folder / SUMMARY_FILE).exists()
    files = sorted(file.name for file in folder.iterdir())
    for _ in range(2):
        model = DeterministicEmbedding()
        with CorpusIndex.load(folder, embed_model=model, read_only=True) as index:
            assert answers(index) == wanted
            many = len(model.texts)
            assert many > 8
            assert answers(index) == wanted
            assert not [text for text in model.texts[many:] if " - " in text]
    assert not (folder / SUMMARY_FILE).exists()
    assert {name for name in files if not name.endswith(("-wal", "-shm"))} <= {file.name for file in folder.iterdir()}


CHILD = """
import sys
from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.testing import DeterministicEmbedding
model = DeterministicEmbedding()
with CorpusIndex.load(sys.argv[1], embed_model=model, read_only=True) as index:
    print([hit.node_id for hit in index.as_retriever("vote").retrieve(sys.argv[2])], len(set(model.texts)))
"""


def test_another_process_embeds_the_question_only_and_finds_the_same(tmp_path: Path) -> None:
    with build(filings(), persist_dir=tmp_path / "i") as index:
        found = ids(index.as_retriever("vote").retrieve(QUESTION))
        done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "i"), QUESTION], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{found} 1"


def test_an_index_in_memory_and_nodes_without_documents() -> None:
    index = build([])
    assert index.as_retriever("vote").retrieve(QUESTION) == []
    index.insert_nodes([TextNode(id_="loose", text="The factory of Intel is in Ohio."), TextNode(id_="other", text="Oslo is in Norway.")])
    assert ids(index.as_retriever("vote", guard=0).retrieve("Where is the factory of Intel?"))[0] == "loose"


def test_filters_of_an_index() -> None:
    index = build(filings())
    only = MetadataFilters(filters=[MetadataFilter(key="title", value="Apple 10-Q")])
    one = index.as_retriever("vote", filters=only, guard=0)
    assert {hit.node.ref_doc_id for hit in one.retrieve(QUESTION)} == {"apple"}
    assert all("Nvidia" not in name for item in voted(one, QUESTION).values() for name in item.details["entities"])


def test_an_engine_and_a_chat_over_the_vote() -> None:
    index = build(filings())
    with forbidden_settings_llm():
        assert "70 percent" in str(index.as_query_engine(retriever_mode="vote", guard=0, similarity_top_k=2).query(QUESTION))
        assert "70 percent" in str(index.as_chat_engine(retriever_mode="vote").chat(QUESTION))


def test_threads_that_ask_while_the_index_changes(tmp_path: Path) -> None:
    more = [Document(text=f"The factory of Intel stands in Ohio.\nSales {number},000 5,000", id_=f"intel {number}") for number in range(4)]
    with build(filings(), persist_dir=tmp_path / "i") as index:
        one = index.as_retriever("vote")
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(one.retrieve, f"{QUESTION} {number}") for number in range(12)]
            for document in more:
                index.insert(document)
            assert all(future.result(timeout=60) for future in asked)
        assert answers(index) == answers(build([*filings(), *more]))
