"""The score of a passage from where it stands: shares of document and section, filters, reasons."""

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.placing import Chosen, Placing
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.stores.filters.metadata_filters import metadata_matches

PLACING = Placing.checked(document_weight=0.5, section_weight=0.5)
RED = MetadataFilters(filters=[MetadataFilter(key="colour", value="red")])


class Stub(BaseRetriever):
    """A retriever that says what its scores can be."""

    def __init__(self, score_range: ScoreRange | None = None) -> None:
        self.score_range = score_range
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return []


UNIT, UNKNOWN = Stub(ScoreRange(0.0, 1.0)), Stub()


def node(node_id: str, text: str, document: str, parent: str | None = None, children: tuple[str, ...] = (), **metadata: str) -> TextNode:
    relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    if parent is not None:
        relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=parent)
    if children:
        relationships[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id=child) for child in children]
    return TextNode(id_=node_id, text=text, metadata=metadata, relationships=relationships, excluded_embed_metadata_keys=list(metadata))


def corpus() -> list[TextNode]:
    return [
        node("F", "", "fox.md", children=("F1", "F2"), title="Fox report"),
        node("F1", "", "fox.md", "F", ("f1",), section_path="Food"),
        node("f1", "Mice are eaten at night.", "fox.md", "F1", colour="red"),
        node("F2", "", "fox.md", "F", ("f2",), section_path="Dens"),
        node("f2", "Dens are dug below trees.", "fox.md", "F2", colour="grey"),
        node("h1", "Mice are feared by the hen.", "hen.md", colour="red"),
    ]


NODES = {held.node_id: held for held in corpus()}


FEW = {"min_documents": 1, "min_passages": 1}


def chosen(query: str, **options: int) -> Chosen:
    return Chosen(UnitScorer.of_nodes(corpus(), language="en").scores(query), **options)


def hits(**scores: float | None) -> list[NodeWithScore]:
    return [NodeWithScore(node=NODES[node_id], score=score) for node_id, score in scores.items()]


def shown(found: list[NodeWithScore]) -> list[tuple[str, float]]:
    return [(hit.node_id, round(hit.score or 0.0, 4)) for hit in found]


def test_a_passage_of_the_right_document_and_section_goes_first() -> None:
    found = PLACING.in_place(chosen("fox food mice"), hits(h1=0.9, f1=0.8, f2=0.1), None, UNIT)
    assert [hit.node_id for hit in found] == ["f1", "h1", "f2"]
    assert all(type(hit.score) is float and 0 <= hit.score <= 1 for hit in found)
    assert shown(found)[0] == ("f1", round((0.8 + 0.5 + 0.5) / 2, 4))


def test_without_weights_the_order_is_that_of_the_retriever() -> None:
    alone = Placing.checked(document_weight=0, section_weight=0)
    assert shown(alone.in_place(chosen("fox food mice"), hits(h1=0.9, f1=0.8, f2=0.1), None, UNIT)) == [("h1", 0.9), ("f1", 0.8), ("f2", 0.1)]


def test_a_query_without_a_known_word_leaves_the_order() -> None:
    nothing = chosen("zzz")
    assert nothing.documents == {}
    assert nothing.sections([NODES["f1"], NODES["h1"]]) == [(0.0, None)] * 2
    assert [hit.node_id for hit in PLACING.in_place(nothing, hits(h1=0.9, f2=0.8, f1=0.1), None, UNIT)] == ["h1", "f2", "f1"]


def test_scores_of_an_unknown_scale_are_put_on_0_to_1() -> None:
    alone = Placing.checked(document_weight=0, section_weight=0)
    assert shown(alone.in_place(chosen("mice"), hits(h1=30.0, f1=20.0, f2=10.0), None, UNKNOWN)) == [("h1", 1.0), ("f1", 0.5), ("f2", 0.0)]
    assert alone.in_place(chosen("zzz"), hits(h1=None, f1=3.0, f2=1.0), None, UNKNOWN)[0].node_id == "f1"
    assert PLACING.in_place(chosen("mice"), [], None, UNKNOWN) == []


def test_equal_scores_in_the_order_of_the_documents() -> None:
    found = PLACING.in_place(Chosen(), hits(h1=0.5, f2=0.5, f1=0.5), None, UNIT)
    assert [hit.node_id for hit in found] == ["f1", "f2", "h1"]


def test_hits_that_do_not_match_never_slip_in() -> None:
    given = hits(h1=0.9, f2=0.8, f1=0.1)
    assert {hit.node_id for hit in PLACING.in_place(chosen("mice"), given, RED, UNIT)} == {"h1", "f1"}
    assert {hit.node_id for hit in PLACING.as_found(given, RED)} == {"h1", "f1"}
    grey: list[BaseNode] = [node("s", "A summary.", "fox.md", colour="grey")]
    placed = PLACING.beside(Chosen(summaries={"s": 0.7}), given, grey, RED, UNIT)
    assert {hit.node_id for hit in placed} == {"h1", "f1"}


def test_summaries_stand_beside_passages_by_their_own_score() -> None:
    summary: list[BaseNode] = [node("F1", "About food.", "fox.md"), node("F2", "About dens.", "fox.md")]
    found = PLACING.beside(Chosen(summaries={"F1": 0.7, "F2": 0.05}), hits(h1=0.9, f1=0.1), summary, None, UNIT)
    assert shown(found) == [("h1", 0.9), ("F1", 0.7), ("f1", 0.1), ("F2", 0.05)]


def test_what_is_given_is_not_changed_and_results_are_new() -> None:
    given = hits(h1=0.9, f1=0.8)
    before = [hit.model_dump() for hit in given]
    for found in (PLACING.as_found(given, None), PLACING.in_place(chosen("fox"), given, None, UNIT), PLACING.beside(Chosen(), given, [], None, UNIT)):
        assert not {id(hit) for hit in found} & {id(hit) for hit in given}
    assert [hit.model_dump() for hit in given] == before
    assert [hit.score for hit in PLACING.as_found(hits(h1=None, f1=1), None)] == [None, 1.0]


def test_a_document_is_as_good_as_the_best_summary_in_it() -> None:
    words = chosen("hen")
    assert list(words.documents) == ["hen.md"]
    both = chosen("hen").with_summaries({"F1": 0.6, "unknown": 1.0})
    assert list(both.documents) == ["hen.md", "fox.md"]
    assert both.sections([NODES["f1"], NODES["f2"]]) == [(1.0, "Food"), (0.0, "Dens")]


def test_the_best_section_that_a_passage_stands_in_counts() -> None:
    question = chosen("dens")
    assert question.sections([NODES["f2"], NODES["f1"], NODES["h1"]]) == [(1.0, "Dens"), (0.0, "Food"), (0.0, None)]
    assert Chosen().sections([NODES["f1"]]) == [(0.0, None)]
    assert Chosen().table.units == ()


def test_the_reasons_name_document_and_section() -> None:
    question = chosen("fox food mice", min_documents=1)
    found = PLACING.in_place(question, hits(f1=0.8, h1=0.5), None, UNIT)
    evidence = PLACING.evidence("hierarchical", question, found)
    assert [(item.node_id, item.rank, item.score) for item in evidence] == [(hit.node_id, rank, hit.score) for rank, hit in enumerate(found, start=1)]
    assert evidence[0].why == "document #1 (1.00), section 'Food' (1.00)"
    assert evidence[0].details["document_rank"] == 1
    assert evidence[0].details["section_path"] == "Food"
    assert Placing.evidence(PLACING, "hierarchical", Chosen(), hits(h1=0.5))[0].why == "passage"


def test_documents_become_one_more_filter() -> None:
    assert Chosen().within(RED) is RED
    assert chosen("zzz", **FEW).within(None) is None
    assert chosen("dens").within(RED) is RED  # too few to look nowhere else
    only = chosen("dens", **FEW).within(None)
    assert only is not None
    assert [(part.key, part.operator, part.value) for part in only.filters if isinstance(part, MetadataFilter)] == [
        ("ref_doc_id", FilterOperator.IN, ["fox.md"])
    ]
    both = chosen("dens", **FEW).within(RED)
    assert both is not None
    assert both.condition == FilterCondition.AND
    assert both.filters == [RED, *only.filters]


def test_passages_without_a_document_get_through_with_any_of_them() -> None:
    scores = UnitScorer.of_nodes([*corpus(), TextNode(id_="loose", text="A loose whale.")], language="en").scores
    assert Chosen(scores("dens"), **FEW).within(None) == chosen("dens", **FEW).within(None)
    assert Chosen(scores("whale"), **FEW).within(RED) is RED  # one passage is no document to look into
    loose = Chosen(scores("dens whale"), min_documents=1, min_passages=3).within(RED)
    assert loose is not None
    assert metadata_matches({"colour": "red"}, loose)
    assert not metadata_matches({}, loose)
    assert metadata_matches({"colour": "red", "ref_doc_id": "fox.md"}, loose)
    assert not metadata_matches({"colour": "red", "ref_doc_id": "hen.md"}, loose)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), True])
def test_weights_that_cannot_work_are_refused(weight: float) -> None:
    with pytest.raises(ConfigurationError, match=r"document_weight is .*\. It must be a number of at least 0\."):
        Placing.checked(document_weight=weight, section_weight=0.5)
    with pytest.raises(ConfigurationError, match=r"section_weight is"):
        Placing.checked(document_weight=0.5, section_weight=weight)


def test_structure_is_no_merit_by_itself() -> None:
    """A document of one passage, and a passage outside of all sections, keep the share of what is there."""
    nodes = [TextNode(id_=name, text=f"A whale {name}.") for name in ("blue", "grey")]
    alone = Chosen(UnitScorer.of_nodes(nodes, language="en").scores("blue whale"))
    found = [NodeWithScore(node=node, score=score) for node, score in zip(nodes, (0.25, 0.75), strict=True)]
    placed = Placing(1.0, 1.0).in_place(alone, found, None, LexicalRetriever.from_defaults(nodes=nodes))
    assert [(hit.node_id, hit.score) for hit in placed] == [("grey", 1.0), ("blue", 0.0)]
