"""HierarchicalRetriever: the right document first, sections in place of their parts, summaries beside passages; filters, failures, reasons."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.node_parser import HierarchicalNodeParser as StockParser
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.embeddings.window import default_window
from llama_index_advanced_rag.errors import ConfigurationError, UnknownArgumentError
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.retrievers.hierarchical import HierarchicalRetriever, HierarchyStrategy
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer, UnitScores
from llama_index_advanced_rag.retrievers.unit_summaries import UnitSummaries
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM
from llama_index_advanced_rag.testing.observing import snapshot
from llama_index_advanced_rag.trace import capture_trace
from llama_index_advanced_rag.usage import capture_usage

COMPANIES = ("fox", "hen", "owl", "crow", "wolf", "lynx", "mole", "trout")
STRATEGIES = tuple(HierarchyStrategy)
MERGING = tuple(strategy for strategy in STRATEGIES if strategy is not HierarchyStrategy.COLLAPSED)
QUESTION = "What were the total net sales of the owl?"
SIZES = {"chunk_size": 48, "chunk_overlap": 0}


def report(company: str) -> Document:
    """Only the first sentence says whose report it is."""
    sections = {
        "Net sales": "Total net sales were higher than a year before. " + " ".join(f"Net sales of region {part} rose by {part} percent." for part in range(8)),
        "Costs": "Costs were lower than a year before. " + " ".join(f"Costs of region {part} fell by {part} percent." for part in range(8)),
    }
    text = f"This is what the {company} has to report about its {company} business.\n\n" + "\n\n".join(f"# {name}\n\n{body}" for name, body in sections.items())
    kind = "bird" if company in ("hen", "owl", "crow") else "other"
    return Document(text=text, id_=f"{company}.md", metadata={"kind": kind}, excluded_embed_metadata_keys=["kind"])


def reports(*companies: str) -> list[Document]:
    return [report(company) for company in companies or COMPANIES]


def parsed(*companies: str) -> list[BaseNode]:
    return HierarchicalNodeParser(**SIZES).get_nodes_from_documents(reports(*companies))


def of_kind(kind: str, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key="kind", value=kind, operator=operator)])


@pytest.fixture(scope="module")
def index() -> CorpusIndex:
    return CorpusIndex.from_documents(reports(), embed_model=DeterministicEmbedding(), **SIZES)


def options_of(strategy: HierarchyStrategy) -> dict[str, object]:
    return {"strategy": strategy, "summaries": strategy is HierarchyStrategy.COLLAPSED}


def in_memory(nodes: Sequence[BaseNode], strategy: HierarchyStrategy, **options: object) -> HierarchicalRetriever:
    units = UnitScorer.of_nodes(nodes)
    summaries = UnitSummaries(units, DictNodeSource(nodes), embed_model=DeterministicEmbedding()) if strategy is HierarchyStrategy.COLLAPSED else None
    return HierarchicalRetriever.from_nodes(nodes, embed_model=DeterministicEmbedding(), strategy=strategy, summaries=summaries, **options)


def documents_of(hits: Sequence[NodeWithScore]) -> list[str]:
    return [str(hit.node.ref_doc_id) for hit in hits]


def shown(hits: Sequence[NodeWithScore]) -> list[tuple[str, float | None]]:
    return [(hit.node_id, hit.score) for hit in hits]


class Failing(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise ConnectionError("the search service is down")


def test_the_passage_of_the_right_document_where_a_hybrid_search_cannot_tell(index: CorpusIndex) -> None:
    stock = index.as_retriever("hybrid", similarity_top_k=3).retrieve(QUESTION)
    assert not [hit for hit in stock if hit.node.ref_doc_id == "owl.md" and "Total net sales" in hit.node.get_content()]
    found = index.as_retriever("hierarchical", similarity_top_k=3).retrieve(QUESTION)
    assert documents_of(found) == ["owl.md"] * 3
    assert any("Total net sales" in hit.node.get_content() for hit in found)
    assert all(type(hit.score) is float and 0 <= hit.score <= 1 for hit in found)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_async_gives_the_same(index: CorpusIndex, strategy: HierarchyStrategy) -> None:
    merging = {"min_share": 0.5} if strategy in MERGING else {}
    retriever = index.as_retriever("hierarchical", similarity_top_k=5, **merging, **options_of(strategy))
    for question in (QUESTION, "costs of region 3", "zzz", ""):
        assert shown(asyncio.run(retriever.aretrieve(question))) == shown(retriever.retrieve(question))


@pytest.mark.parametrize(("strategy", "min_share"), [*((strategy, None) for strategy in STRATEGIES), *((strategy, 0.0) for strategy in MERGING)])
@pytest.mark.parametrize(("kind", "operator"), [("bird", FilterOperator.EQ), ("bird", FilterOperator.NE)])
def test_nothing_that_does_not_match_slips_in(
    index: CorpusIndex, strategy: HierarchyStrategy, min_share: float | None, kind: str, operator: FilterOperator
) -> None:
    birds = {"hen.md", "owl.md", "crow.md"}
    retriever = index.as_retriever(
        "hierarchical", filters=of_kind(kind, operator), similarity_top_k=60, min_share=min_share, candidates=300, **options_of(strategy)
    )
    for question in (QUESTION, "the report of the fox business", "net sales of region 3 of the hen"):
        found = set(documents_of(retriever.retrieve(question)))
        assert found
        assert (found <= birds) if operator is FilterOperator.EQ else not (found & birds)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_filters_are_applied_before_the_cut(index: CorpusIndex, strategy: HierarchyStrategy) -> None:
    options = options_of(strategy)
    one = index.as_retriever("hierarchical", filters=of_kind("bird"), similarity_top_k=1, **options)
    assert documents_of(one.retrieve("What were the total net sales of the fox?"))[0] in ("hen.md", "owl.md", "crow.md")


def test_a_retriever_of_llama_index_is_put_in_order() -> None:
    nodes, model = parsed(), DeterministicEmbedding()
    context = StorageContext.from_defaults(docstore=SimpleDocumentStore())
    context.docstore.add_documents(nodes)
    stock = VectorStoreIndex(nodes=get_leaf_nodes(nodes), storage_context=context, embed_model=model).as_retriever(similarity_top_k=60)
    ours = HierarchicalRetriever(stock, nodes=context.docstore, units=UnitScorer.of_nodes(nodes), similarity_top_k=3)
    assert documents_of(ours.retrieve(QUESTION)) == ["owl.md"] * 3
    assert documents_of(stock.retrieve(QUESTION)[:3]) != ["owl.md"] * 3
    bound = ours.with_top_k(60).with_filters(of_kind("other"))
    assert not {"hen.md", "owl.md", "crow.md"} & set(documents_of(bound.retrieve(QUESTION))), "one that knows no filters finds them, and they are left out"
    merged = HierarchicalRetriever(stock, nodes=context.docstore, strategy="merge_up", similarity_top_k=60)
    assert any(hit.node.child_nodes for hit in merged.retrieve(QUESTION))


def test_nodes_of_the_stock_parser() -> None:
    nodes = StockParser.from_defaults(chunk_sizes=[256, 64], chunk_overlap=0).get_nodes_from_documents(reports())
    assert documents_of(HierarchicalRetriever.from_nodes(nodes, similarity_top_k=2).retrieve(QUESTION)) == ["owl.md"] * 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_retriever_that_fails_is_raised_as_it_is(strategy: HierarchyStrategy) -> None:
    nodes = parsed("fox")
    units = UnitScorer.of_nodes(nodes)
    summaries = UnitSummaries(units, DictNodeSource(nodes), embed_model=DeterministicEmbedding())
    retriever = HierarchicalRetriever(Failing(), nodes=nodes, strategy=strategy, summaries=summaries)
    with pytest.raises(ConnectionError, match="the search service is down"):
        retriever.retrieve(QUESTION)
    with pytest.raises(ConnectionError, match="the search service is down"):
        asyncio.run(retriever.aretrieve(QUESTION))


def test_a_question_without_a_known_word_keeps_the_order_of_the_retriever(index: CorpusIndex) -> None:
    by_meaning = [hit.node_id for hit in index.as_retriever("hybrid", similarity_top_k=10).retrieve("zzz yyy")]
    assert [hit.node_id for hit in index.as_retriever("hierarchical", similarity_top_k=10, candidates=10).retrieve("zzz yyy")] == by_meaning
    assert len(by_meaning) > 0
    for empty in ("", "  \n"):
        assert index.as_retriever("hierarchical").retrieve(empty) == []


def test_only_the_chosen_documents_are_searched(index: CorpusIndex) -> None:
    few = index.as_retriever("hierarchical", min_documents=1, min_passages=1, similarity_top_k=100).retrieve("the owl and its costs")
    assert set(documents_of(few)) == {"owl.md"}
    many = index.as_retriever("hierarchical", min_documents=4, min_passages=1, similarity_top_k=100).retrieve("the owl and its costs")
    assert len(set(documents_of(many))) == 4
    assert documents_of(many)[0] == "owl.md"


def test_candidates_are_what_is_put_in_order(index: CorpusIndex) -> None:
    assert len(index.as_retriever("hierarchical", candidates=4, similarity_top_k=3).retrieve(QUESTION)) == 3
    assert len(index.as_retriever("hierarchical", candidates=2, similarity_top_k=5).retrieve(QUESTION)) == 5, "never fewer than are wanted"


def test_without_merging_passages_are_given(index: CorpusIndex) -> None:
    for hit in index.as_retriever("hierarchical", similarity_top_k=50).retrieve(QUESTION):
        assert not hit.node.child_nodes


@pytest.mark.parametrize("strategy", MERGING)
def test_sections_in_place_of_their_parts(index: CorpusIndex, strategy: HierarchyStrategy) -> None:
    found = index.as_retriever("hierarchical", similarity_top_k=40, min_share=0.5, **options_of(strategy)).retrieve(QUESTION)
    sections = [hit.node for hit in found if hit.node.child_nodes]
    assert sections
    assert len({hit.node_id for hit in found}) == len(found)
    within = {child.node_id for section in sections for child in section.child_nodes or []}
    assert not within & {hit.node_id for hit in found}, "no part stands beside its whole"
    alone = index.as_retriever("hierarchical", similarity_top_k=2, min_share=1.0, **options_of(strategy)).retrieve(QUESTION)
    assert len(alone) <= 2


def test_a_budget_of_tokens_is_kept(index: CorpusIndex) -> None:
    count = default_window().count_tokens
    for strategy, limit in (("merge_up", 120), ("merge_up", 30), ("top_down", 120)):
        found = index.as_retriever("hierarchical", strategy=strategy, min_share=0.1, max_tokens=limit, similarity_top_k=40).retrieve(QUESTION)
        assert found
        assert sum(count(hit.node.get_content()) for hit in found) <= limit or len(found) == 1
    small = index.as_retriever("hierarchical", strategy="merge_up", min_share=0.1, max_section_tokens=5, similarity_top_k=40).retrieve(QUESTION)
    assert not any(hit.node.child_nodes for hit in small)


def test_merged_sections_have_the_scores_of_the_retriever(index: CorpusIndex) -> None:
    passages = {hit.node_id: hit.score for hit in index.as_retriever("hybrid", similarity_top_k=20).retrieve(QUESTION)}
    for hit in index.as_retriever("hierarchical", strategy="merge_up", similarity_top_k=20).retrieve(QUESTION):
        below = [score for node_id, score in passages.items() if hit.node_id == node_id or node_id in {child.node_id for child in hit.node.child_nodes or []}]
        assert not below or hit.score == max(below)


def test_collapsed_gives_summaries_as_nodes_of_their_own(index: CorpusIndex) -> None:
    retriever = index.as_retriever("hierarchical", strategy="collapsed", summaries=True, similarity_top_k=100)
    found = retriever.retrieve("the report of the owl about its business")
    summaries = [hit for hit in found if "summary_of" in hit.node.metadata]
    assert summaries
    assert len(summaries) < len(found)
    assert len({hit.node_id for hit in found}) == len(found)
    whole = {unit.unit_id: unit for unit in UnitScorer.of_corpus(index.corpus).table.units}
    for hit in summaries:
        assert hit.node.metadata["summary_of"] == hit.node_id
        assert hit.node_id in whole
        assert len(hit.node.get_content()) <= whole[hit.node_id].end
    stored = index.docstore.get_node(summaries[0].node_id)
    assert stored.get_content() != "", "the unit itself can be read by the same id"


def test_collapsed_does_not_merge(index: CorpusIndex) -> None:
    for min_share in (0.0, 0.5):
        with pytest.raises(ConfigurationError, match=rf"min_share is {min_share} and strategy is 'collapsed', .* nothing is merged. Leave min_share out"):
            index.as_retriever("hierarchical", strategy="collapsed", summaries=True, min_share=min_share)
    retriever = index.as_retriever("hierarchical", strategy="collapsed", summaries=True, similarity_top_k=100)
    passages = {hit.node_id for hit in index.as_retriever("hybrid", similarity_top_k=100).retrieve(QUESTION)}
    assert passages <= {hit.node_id for hit in retriever.retrieve(QUESTION)}, "a summary takes the place of no passage"


async def test_async_chooses_the_documents_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    choose = UnitScores.choose_documents

    def noted(self: UnitScores, *args: object, **options: object) -> dict[str, float]:
        threads.append(threading.current_thread())
        return choose(self, *args, **options)

    monkeypatch.setattr(UnitScores, "choose_documents", noted)
    assert await HierarchicalRetriever.from_nodes(parsed("fox", "owl"), similarity_top_k=2).aretrieve(QUESTION)
    assert threads
    assert threading.main_thread() not in threads


def test_summaries_help_to_choose_documents() -> None:
    llm = ScriptedLLM([lambda prompt: "Nocturnal predator." if "the owl has" in prompt else "Something."])
    index = CorpusIndex.from_documents(reports(), embed_model=DeterministicEmbedding(), **SIZES)
    options = {"min_documents": 1, "min_passages": 1, "similarity_top_k": 50}
    assert "owl.md" not in documents_of(index.as_retriever("hierarchical", **options).retrieve("costs of a nocturnal predator"))[:1]
    with_summaries = index.as_retriever("hierarchical", summaries=True, llm=llm, **options)
    assert documents_of(with_summaries.retrieve("costs of a nocturnal predator"))[0] == "owl.md"


def test_calls_of_the_llm_are_counted_and_made_once(tmp_path: Path) -> None:
    llm = ScriptedLLM(["A summary."])
    with CorpusIndex.from_documents(reports("fox", "hen"), embed_model=DeterministicEmbedding(), persist_dir=tmp_path / "i", llm=llm, **SIZES) as index:
        with capture_usage() as usage:
            index.as_retriever("hierarchical").retrieve(QUESTION)
        assert usage.calls == 0
        retriever = index.as_retriever("hierarchical", summaries=True)
        with capture_usage() as usage:
            retriever.retrieve(QUESTION)
        assert 1 < usage.calls == len(llm.prompts) <= index.corpus.counts()["outline_nodes"], "equal sections are summarised once"
        with capture_usage() as usage:
            retriever.retrieve(QUESTION)
            asyncio.run(retriever.aretrieve("another question"))
        assert usage.calls == 0
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding(), llm=llm) as index, capture_usage() as usage:
        index.as_retriever("hierarchical", summaries=True, strategy="collapsed").retrieve(QUESTION)
        assert usage.calls == 0


def test_no_llm_no_call(index: CorpusIndex, settings_llm_untouched: None) -> None:
    with capture_usage() as usage:
        index.as_retriever("hierarchical", summaries=True, tree=True, llm=None).retrieve(QUESTION)
    assert usage.calls == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_trace_gives_a_reason_for_each_hit(index: CorpusIndex, strategy: HierarchyStrategy) -> None:
    with capture_trace() as trace:
        found = index.as_retriever("hierarchical", similarity_top_k=5, **options_of(strategy)).retrieve(QUESTION)
    stage = next(part for part in trace.walk() if part.stage == "hierarchical")
    reasons = {item.node_id: item for item in stage.evidence}
    assert {hit.node_id for hit in found if not hit.node.child_nodes} <= set(reasons)
    if strategy is HierarchyStrategy.TOP_DOWN:
        first = reasons[found[0].node_id]
        assert first.why.startswith("document #1 (1.00)")
        assert first.details["document"] == 1.0
        assert first.score == found[0].score


def test_nothing_given_is_changed() -> None:
    nodes = parsed("fox", "hen")
    before = snapshot(nodes)
    for strategy in STRATEGIES:
        bundle = QueryBundle(QUESTION)
        in_memory(nodes, strategy, **({"min_share": 0.2} if strategy in MERGING else {})).retrieve(bundle)
        assert bundle == QueryBundle(QUESTION)
    assert snapshot(nodes) == before


@pytest.mark.parametrize("kind", ["hierarchical", "anchor"])
def test_passages_without_a_document_are_found_beside_others(kind: str) -> None:
    index = CorpusIndex.from_documents(reports("fox", "hen"), embed_model=DeterministicEmbedding(), **SIZES)
    loose = [TextNode(id_="a", text="A plain passage on owls."), IndexNode(id_="b", index_id="part", text="All there is on owls and their nests.")]
    index.insert_nodes(loose)
    assert {hit.node_id for hit in index.as_retriever(kind, similarity_top_k=2).retrieve("owls")} == {"a", "b"}
    if kind == "hierarchical":
        assert {hit.node_id for hit in HierarchicalRetriever.from_nodes(loose).retrieve("owls")} == {"a", "b"}
        strict = HierarchicalRetriever.from_nodes([*parsed("fox"), *loose], min_documents=1, min_passages=1)
        assert documents_of(strict.retrieve("fox business"))[0] == "fox.md"


def test_in_a_query_engine_of_llama_index(index: CorpusIndex) -> None:
    engine = RetrieverQueryEngine.from_args(index.as_retriever("hierarchical", similarity_top_k=2), llm=ScriptedLLM(["They rose."]))
    response = engine.query(QUESTION)
    assert str(response) == "They rose."
    assert documents_of(response.source_nodes) == ["owl.md"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "sideways"}, "sideways"),
        ({"strategy": "collapsed"}, "strategy is 'collapsed' and there are no summaries"),
        ({"min_documents": 0}, "min_documents is 0"),
        ({"min_passages": 1.5}, "min_passages is 1.5"),
        ({"candidates": 0}, "candidates is 0"),
        ({"similarity_top_k": 0}, "similarity_top_k is 0"),
        ({"document_weight": -1}, "document_weight is -1"),
        ({"section_weight": float("nan")}, "section_weight is nan"),
        ({"min_share": 1.1}, r"min_share is 1\.1"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_section_tokens": -2}, "max_tokens is -2"),
        ({"filters": {"kind": "bird"}}, "It must be MetadataFilters or None"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        HierarchicalRetriever(LexicalRetriever.from_defaults(nodes=parsed("fox")), nodes=parsed("fox"), **options)


def test_what_cannot_be_searched_is_refused(index: CorpusIndex) -> None:
    nodes = parsed("fox")
    with pytest.raises(ConfigurationError, match=r"nodes is a .*, from which documents and sections cannot be listed. Pass units=UnitScorer"):
        HierarchicalRetriever(LexicalRetriever.from_defaults(nodes=nodes), nodes=DictNodeSource(nodes))
    assert HierarchicalRetriever(LexicalRetriever.from_defaults(nodes=nodes), nodes=DictNodeSource(nodes), strategy="merge_up")
    with pytest.raises(ConfigurationError, match="must be a LlamaIndex retriever"):
        HierarchicalRetriever(index, nodes=nodes)  # type: ignore[arg-type]
    with pytest.raises(UnknownArgumentError, match="'fusion'"):
        index.as_retriever("hierarchical", fusion="weighted")
    with pytest.raises(UnknownArgumentError, match="'units'"):
        index.as_retriever("hierarchical", units=UnitScorer.of_nodes(nodes))


def test_its_name_says_what_it_does(index: CorpusIndex) -> None:
    assert repr(index.as_retriever("hierarchical", similarity_top_k=3)).startswith("HierarchicalRetriever(top_down, HybridRetriever(")


def test_a_query_that_is_an_embedding_only_finds_what_is_near() -> None:
    model = DeterministicEmbedding()
    nodes = [TextNode(id_=name, text=text) for name, text in (("fox", "the red fox"), ("sea", "the deep sea"))]
    retriever = HierarchicalRetriever.from_nodes(nodes, embed_model=model, similarity_top_k=1)
    bundle = QueryBundle("", embedding=model.get_text_embedding("the deep sea"))
    assert [hit.node_id for hit in retriever.retrieve(bundle)] == ["sea"]
    assert retriever.retrieve("  ") == []
