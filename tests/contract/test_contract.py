"""Every component of the package passes the contract suite that anybody can run on theirs."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore

from llama_index_advanced_rag import (
    AnchorRetriever,
    ContextExpander,
    CorpusIndex,
    CrossEncoderRerank,
    FlatVectorStore,
    GroundedQueryEngine,
    HierarchicalRetriever,
    HybridRetriever,
    LexicalRetriever,
    LostInTheMiddleReorder,
)
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.modes import AVAILABLE_MODES, RetrievalMode
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.entity_graph import EntityGraphRetriever
from llama_index_advanced_rag.retrievers.entity_vote import EntityVoteRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.unit_summaries import UnitSummaries
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import (
    DeterministicEmbedding,
    ScriptedLLM,
    check_postprocessor_contract,
    check_query_engine_contract,
    check_retriever_contract,
)

LONG = "\n\n".join(
    [
        "# The forest",
        *(
            f"## {name}\n\n{' '.join(f'The {name} of the forest number {part} is {colour}.' for part in range(7))}"
            for name, colour in (("Fox", "red"), ("Owl", "grey"))
        ),
    ]
)
TEXTS = [
    ("en", "The red fox lives in the northern forest."),
    ("en", "The blue whale is the largest animal of the sea."),
    ("fr", "Le renard roux vit dans la forêt du nord."),
    ("en", "A fox hunts mice at night in the forest."),
    ("fr", "La baleine bleue est le plus grand animal de la mer."),
    ("en", "The owl hunts mice in the forest too."),
    ("fr", "Le hibou chasse la souris dans la forêt."),
    ("en", "The fox and the owl share the forest."),
    ("en", "The fox and the owl share the forest."),
    ("fr", "Un renard et une forêt, la nuit."),
]
QUERIES = ["Which fox lives in the forest?", "Où vit le renard dans la forêt ?", "zzz unknown words"]
FRENCH = MetadataFilters(filters=[MetadataFilter(key="lang", value="fr")])


def corpus() -> list[TextNode]:
    return [
        TextNode(
            text=text,
            id_=f"node-{number}",
            metadata={"lang": lang, "title": f"Document {number // 2}"},
            excluded_embed_metadata_keys=["lang", "title"],
            start_char_idx=100 * (number % 2),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{number // 2}")},
        )
        for number, (lang, text) in enumerate(TEXTS)
    ]


def documents() -> list[Document]:
    return [
        Document(text=text, id_=f"doc-{number}", metadata={"lang": lang}, excluded_embed_metadata_keys=["lang"]) for number, (lang, text) in enumerate(TEXTS)
    ]


def reports() -> list[Document]:
    """Documents with headings beside short ones."""
    return [Document(text=LONG, id_=f"report-{lang}", metadata={"lang": lang}, excluded_embed_metadata_keys=["lang"]) for lang in ("en", "fr")] + documents()


def tree() -> list[BaseNode]:
    """Nodes of all levels."""
    return HierarchicalNodeParser(chunk_size=40, chunk_overlap=0).get_nodes_from_documents(reports()[:4])


def user_index(nodes: list[TextNode], model: BaseEmbedding) -> VectorStoreIndex:
    """An index as a LlamaIndex user has it: SimpleVectorStore and docstore."""
    return VectorStoreIndex(nodes=nodes, embed_model=model, storage_context=StorageContext.from_defaults(docstore=SimpleDocumentStore()))


def lexical(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    return LexicalRetriever.from_defaults(nodes=nodes, **options)


def dense(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    index = user_index(nodes, model)
    return DenseRetriever(index.vector_store, model, nodes=DictNodeSource(nodes), **options)


def dense_flat(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    store = FlatVectorStore()
    if nodes:
        store.add([node.model_copy(update={"embedding": model.get_text_embedding(node.get_content())}) for node in nodes])
    return DenseRetriever(store, model, nodes=DictNodeSource(nodes), **options)


def hybrid(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    return HybridRetriever.from_index(user_index(nodes, model), embed_model=model, **options)


def hybrid_of_strangers(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    index = user_index(nodes, model)
    children = [index.as_retriever(similarity_top_k=10), LexicalRetriever.from_defaults(nodes=nodes)]
    return HybridRetriever(children, **options)


def hierarchical(strategy: str, **more: Any) -> Callable[..., BaseRetriever]:
    def make(nodes: list[BaseNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
        units = UnitScorer.of_nodes(nodes)
        summaries = UnitSummaries(units, DictNodeSource(nodes), embed_model=DeterministicEmbedding()) if strategy == "collapsed" else None
        return HierarchicalRetriever.from_nodes(nodes, embed_model=model, strategy=strategy, summaries=summaries, **more, **options)

    return make


def hierarchical_of_strangers(nodes: list[BaseNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    """Over LlamaIndex's own retriever and docstore."""
    context = StorageContext.from_defaults(docstore=SimpleDocumentStore())
    context.docstore.add_documents(nodes)
    leaves = get_leaf_nodes(nodes) if nodes else []
    child = VectorStoreIndex(nodes=leaves, embed_model=model, storage_context=context).as_retriever(similarity_top_k=100)
    return HierarchicalRetriever(child, nodes=context.docstore, units=UnitScorer.of_nodes(nodes), **options)


def anchors(nodes: list[BaseNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    return AnchorRetriever.from_defaults(nodes=nodes, embed_model=model, **options)


def anchors_without_embeddings(nodes: list[BaseNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    return AnchorRetriever.from_defaults(nodes=nodes, **options)


NAMED = [
    ("en", "Knott is a fell in the Lake District, near the forest."),
    ("fr", "La forêt de Sherwood est en Angleterre, loin du Lake District."),
    ("en", "Wainwright climbed Knott and lived in Kendal."),
    ("fr", "Kendal est une ville d'Angleterre où vit un renard."),
    ("en", "The fox lives in the forest."),
    ("fr", "Le renard vit dans la forêt."),
]
TRIPLES = {"node-0": [("Knott", "is in", "Lake District")], "node-2": [("Wainwright", "lived in", "Kendal")], "node-3": [("Kendal", "est en", "Angleterre")]}
NAMED_QUERIES = ["Which fox lives near Knott?", "Où est la forêt de Kendal ?", "zzz unknown words"]


def named() -> list[TextNode]:
    """Nodes that name the same things."""
    return [
        TextNode(text=text, id_=f"node-{number}", metadata={"lang": lang, "title": f"Page {number}"}, excluded_embed_metadata_keys=["lang", "title"])
        for number, (lang, text) in enumerate(NAMED)
    ]


def entity_graph(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    return EntityGraphRetriever.from_nodes(nodes, embed_model=model, **options)


def entity_graph_without_embeddings(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    return EntityGraphRetriever.from_nodes(nodes, second_hop=0.5, **options)


def entity_graph_of_triples(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    """Over ready triples and a retriever of LlamaIndex, with facts compared by meaning."""
    stock = user_index(nodes, model).as_retriever(similarity_top_k=4)
    graph = EntityGraph.from_triples({node.node_id: TRIPLES.get(node.node_id, []) for node in nodes})
    return EntityGraphRetriever(stock, graph, nodes=nodes, vectors=TextVectors(model), **options)


def votes(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    child = HybridRetriever.from_index(user_index(nodes, model), embed_model=model)
    graph = EntityGraph.from_triples({node.node_id: TRIPLES.get(node.node_id, []) for node in nodes}, texts={node.node_id: node.text for node in nodes})
    return EntityVoteRetriever(child, graph, vectors=TextVectors(model), nodes=nodes, units=UnitScorer.of_nodes(nodes), **options)


def votes_over_the_users_retriever(nodes: list[TextNode], model: BaseEmbedding, **options: Any) -> BaseRetriever:
    stock = user_index(nodes, model).as_retriever(similarity_top_k=4)
    graph = EntityGraph.from_triples({node.node_id: TRIPLES.get(node.node_id, []) for node in nodes})
    return EntityVoteRetriever(stock, graph, vectors=TextVectors(model), nodes=nodes, **options)


def from_corpus_index(mode: str) -> Callable[..., BaseRetriever]:
    def make(inputs: list[Document], model: BaseEmbedding, **options: Any) -> BaseRetriever:
        return CorpusIndex.from_documents(inputs, embed_model=model).as_retriever(mode, **options)

    return make


FOLDER: list[Path] = []


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path):
    """Where the factories keep their indexes, for as long as the test runs: an index maps its files when it first reads them."""
    FOLDER[:] = [tmp_path]


def from_loaded_index(mode: str) -> Callable[..., BaseRetriever]:
    def make(inputs: list[Document], model: BaseEmbedding, **options: Any) -> BaseRetriever:
        folder = tempfile.mkdtemp(dir=FOLDER[0])
        CorpusIndex.from_documents(inputs, embed_model=model, persist_dir=folder).close()
        return CorpusIndex.load(folder, embed_model=model, read_only=True).as_retriever(mode, **options)

    return make


def from_index_over_own_store(mode: str) -> Callable[..., BaseRetriever]:
    def make(inputs: list[Document], model: BaseEmbedding, **options: Any) -> BaseRetriever:
        return CorpusIndex.from_documents(inputs, embed_model=model, vector_store=SimpleVectorStore()).as_retriever(mode, **options)

    return make


@dataclass(frozen=True)
class Case:
    make: Callable[..., BaseRetriever]
    embeds: bool = True
    inputs: Callable[[], list[Any]] = corpus
    queries: Sequence[str] = tuple(QUERIES)


def named_documents() -> list[Document]:
    return [Document(text=node.text, id_=node.node_id, metadata=node.metadata, excluded_embed_metadata_keys=["lang", "title"]) for node in named()]


STRUCTURED = {RetrievalMode.HIERARCHICAL: reports, RetrievalMode.ANCHOR: reports, RetrievalMode.GRAPH: named_documents, RetrievalMode.VOTE: named_documents}


def index_cases(title: str, make: Callable[[str], Callable[..., BaseRetriever]]) -> dict[str, Case]:
    return {
        f"{title}, {mode.value}": Case(
            make(mode.value),
            embeds=mode is not RetrievalMode.LEXICAL,
            inputs=STRUCTURED.get(mode, documents),
            queries=NAMED_QUERIES if STRUCTURED.get(mode) is named_documents else QUERIES,
        )
        for mode in AVAILABLE_MODES
    }


RETRIEVERS = {
    "lexical": Case(lexical, embeds=False),
    "dense on SimpleVectorStore": Case(dense),
    "dense on FlatVectorStore": Case(dense_flat),
    "hybrid from a user's index": Case(hybrid),
    "hybrid of the user's retrievers": Case(hybrid_of_strangers),
    "hierarchical, top down": Case(hierarchical("top_down"), inputs=tree),
    "hierarchical, top down, merged": Case(hierarchical("top_down", min_share=0.5), inputs=tree),
    "hierarchical, merge up": Case(hierarchical("merge_up"), inputs=tree),
    "hierarchical, collapsed": Case(hierarchical("collapsed"), inputs=tree),
    "hierarchical over the user's retriever": Case(hierarchical_of_strangers, inputs=tree),
    "anchor": Case(anchors, inputs=tree),
    "anchor without embeddings": Case(anchors_without_embeddings, embeds=False, inputs=tree),
    "graph": Case(entity_graph, inputs=named, queries=NAMED_QUERIES),
    "graph without embeddings, two hops": Case(entity_graph_without_embeddings, embeds=False, inputs=named, queries=NAMED_QUERIES),
    "graph of triples over the user's retriever": Case(entity_graph_of_triples, inputs=named, queries=NAMED_QUERIES),
    "vote": Case(votes, inputs=named, queries=NAMED_QUERIES),
    "vote over the user's retriever": Case(votes_over_the_users_retriever, inputs=named, queries=NAMED_QUERIES),
    **index_cases("CorpusIndex", from_corpus_index),
    **index_cases("CorpusIndex from its folder", from_loaded_index),
    **index_cases("CorpusIndex over the user's vector store", from_index_over_own_store),
}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_retriever(name: str):
    case, model = RETRIEVERS[name], DeterministicEmbedding()
    inputs = case.inputs()
    check_retriever_contract(
        lambda **options: case.make(inputs, model, **options),
        queries=case.queries,
        filters=FRENCH,
        nodes=inputs,
        make_empty=lambda: case.make([], model, similarity_top_k=5),
        make_with_embedding=(lambda other: case.make(inputs, other, similarity_top_k=5)) if case.embeds else None,
    )


def test_lexical_retriever_persists(tmp_path: Path):
    def reload(retriever: BaseRetriever) -> BaseRetriever:
        assert isinstance(retriever, LexicalRetriever)
        retriever.persist(tmp_path / "lexical")
        return LexicalRetriever.from_persist_dir(tmp_path / "lexical").with_top_k(retriever.similarity_top_k)

    check_retriever_contract(lambda **options: LexicalRetriever.from_defaults(nodes=corpus(), **options), queries=QUERIES, reload=reload)


@pytest.mark.parametrize("mode", [mode.value for mode in AVAILABLE_MODES])
def test_corpus_index_persists(tmp_path: Path, mode: str):
    model = DeterministicEmbedding()
    index = CorpusIndex.from_documents(reports(), persist_dir=tmp_path / "index", embed_model=model)

    def reload(retriever: BaseRetriever) -> BaseRetriever:
        return CorpusIndex.load(tmp_path / "index", embed_model=model, read_only=True).as_retriever(mode, similarity_top_k=1000)

    check_retriever_contract(lambda **options: index.as_retriever(mode, **options), queries=QUERIES, filters=FRENCH, reload=reload)


def shared_words(pairs: list[tuple[str, str]]) -> list[float]:
    return [float(len(set(query.lower().split()) & set(passage.lower().split()))) for query, passage in pairs]


POSTPROCESSORS: dict[str, tuple[Callable[[], BaseNodePostprocessor], dict[str, bool]]] = {
    "rerank": (lambda: CrossEncoderRerank(shared_words, top_n=4), {"reranks": True}),
    "reorder": (LostInTheMiddleReorder, {"by_score": False}),
    **{f"context, {mode}": (partial(ContextExpander, corpus(), mode=mode), {}) for mode in ("sentences", "neighbours", "section")},
}


@pytest.mark.parametrize("name", POSTPROCESSORS)
def test_postprocessor(name: str):
    make, options = POSTPROCESSORS[name]
    nodes = [NodeWithScore(node=node, score=1.0 / (rank + 2)) for rank, node in enumerate(corpus())]
    check_postprocessor_contract(make, nodes, QUERIES[0], **options)


def grounded_without_llm() -> GroundedQueryEngine:
    return GroundedQueryEngine(lexical(corpus(), DeterministicEmbedding(), similarity_top_k=5), llm=None)


def grounded_with_llm() -> GroundedQueryEngine:
    return GroundedQueryEngine(lexical(corpus(), DeterministicEmbedding(), similarity_top_k=5), llm=ScriptedLLM(["The fox lives in the forest [1]."]))


def from_index(mode: str, *answers: str) -> Callable[[], GroundedQueryEngine]:
    def make() -> GroundedQueryEngine:
        index = CorpusIndex.from_documents(documents(), embed_model=DeterministicEmbedding())
        return index.as_query_engine(ScriptedLLM(answers) if answers else None, retriever_mode=mode, similarity_top_k=5)

    return make


def refined() -> Any:
    return GroundedQueryEngine(
        hybrid(corpus(), DeterministicEmbedding(), similarity_top_k=8),
        llm=None,
        node_postprocessors=[CrossEncoderRerank(shared_words, top_n=5), LostInTheMiddleReorder()],
    )


ENGINES: dict[str, Callable[[], Any]] = {
    "grounded without an LLM": grounded_without_llm,
    "grounded with an LLM": grounded_with_llm,
    **{f"CorpusIndex, {mode.value}": from_index(mode.value) for mode in AVAILABLE_MODES},
    **{f"CorpusIndex, {mode.value}, with an LLM": from_index(mode.value, "The fox lives in the forest [1].") for mode in AVAILABLE_MODES},
    "grounded with rerank and reorder": refined,
}


@pytest.mark.parametrize("name", ENGINES)
def test_query_engine(name: str):
    check_query_engine_contract(ENGINES[name], QUERIES[0])


def test_a_plain_query_engine_takes_our_retriever_and_postprocessors():
    def make() -> RetrieverQueryEngine:
        return RetrieverQueryEngine.from_args(
            hybrid(corpus(), DeterministicEmbedding(), similarity_top_k=5),
            llm=ScriptedLLM(["In the forest."]),
            node_postprocessors=[CrossEncoderRerank(shared_words, top_n=3), LostInTheMiddleReorder()],
        )

    check_query_engine_contract(make, QUERIES[0], traced=False)
