"""Scores of documents and sections: the same from a corpus and from nodes, and those of the moment through every change."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from llama_index.core.node_parser import HierarchicalNodeParser as StockParser
from llama_index.core.schema import BaseNode, Document, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer, UnitScores
from llama_index_advanced_rag.testing import DeterministicEmbedding

OLD = MetadataFilters(filters=[MetadataFilter(key="year", value=2022)])
QUESTIONS = ("What do foxes eat?", "dens of foxes", "whales", "report of the year", "zzz")
SIZES = {"chunk_size": 64, "chunk_overlap": 0}


def body(animal: str, subject: str, count: int = 10) -> str:
    return " ".join(f"The {animal} number {number} has {subject} of kind {number % 3}." for number in range(count))


def document(animal: str, year: int = 2022, *, subjects: Sequence[str] = ("food", "dens")) -> Document:
    sections = "\n\n".join(f"## {subject.title()} of the {animal}\n\n{body(animal, subject)}" for subject in subjects)
    return Document(
        text=f"# All about the {animal}\n\n{sections}",
        id_=f"{animal}.md",
        metadata={"title": f"{animal.title()} report", "year": year},
        excluded_embed_metadata_keys=["year"],
    )


def build(*documents: Document, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(documents, **{"embed_model": DeterministicEmbedding(dimensions=8), **SIZES, **options})


def parsed(*documents: Document) -> list[BaseNode]:
    return HierarchicalNodeParser.for_model(DeterministicEmbedding(dimensions=8), **SIZES).get_nodes_from_documents(list(documents))


def shown(scores: UnitScores) -> dict[str, tuple[float, float, int]]:
    values = zip(scores.units.round(9).tolist(), scores.titles.round(9).tolist(), scores.n_passages.tolist(), strict=True)
    return {unit.unit_id: value for unit, value in zip(scores.table.units, values, strict=True)}


def assert_same(one: UnitScorer, other: UnitScorer) -> None:
    assert one.table.units == other.table.units
    for question in QUESTIONS:
        for filters in (None, OLD):
            assert shown(one.scores(question, filters=filters)) == shown(other.scores(question, filters=filters)), question


def test_of_a_corpus_as_of_the_same_nodes() -> None:
    documents = [document("fox"), document("hen", 2023), document("whale", subjects=("food", "songs", "dens"))]
    with build(*documents) as index:
        assert_same(UnitScorer.of_corpus(index.corpus), UnitScorer.of_nodes(parsed(*documents)))


def test_of_a_corpus_of_stock_nodes_as_of_these() -> None:
    nodes = StockParser.from_defaults(chunk_sizes=[256, 64], chunk_overlap=0).get_nodes_from_documents([document("fox"), document("hen", 2023)])
    with CorpusIndex(nodes, embed_model=DeterministicEmbedding()) as index:
        one, other = UnitScorer.of_corpus(index.corpus), UnitScorer.of_nodes(nodes)
        assert {unit.unit_id for unit in one.table.units} == {unit.unit_id for unit in other.table.units}
        for question in QUESTIONS:
            found, wanted = shown(one.scores(question)), shown(other.scores(question))
            assert {unit_id: found[unit_id][0] for unit_id in found} == pytest.approx({unit_id: wanted[unit_id][0] for unit_id in found})


def test_the_title_counts_beside_the_text() -> None:
    scores = UnitScorer.of_nodes(parsed(document("fox"), document("hen"))).scores("fox report dens")
    fox, hen = (scores.table.place_of_document(name) for name in ("fox.md", "hen.md"))
    assert fox is not None
    assert hen is not None
    assert scores.units[fox] > scores.units[hen] > 0
    assert scores.titles[fox] > scores.titles[hen] > 0, "the word report stands in the title of both"
    dens = [place for place, unit in enumerate(scores.table.units) if "Dens of the fox" in unit.title]
    assert len(dens) == 1
    assert scores.titles[dens[0]] > 0
    assert list(scores.documents) == ["fox.md", "hen.md"]


def test_filters_count_passages_and_change_no_score() -> None:
    scorer = UnitScorer.of_nodes(parsed(document("fox"), document("hen", 2023)))
    free, bound = scorer.scores("dens"), scorer.scores("dens", filters=OLD)
    assert free.units.tolist() == bound.units.tolist()
    for place, unit in enumerate(free.table.units):
        assert bound.n_passages[place] == (free.n_passages[place] if unit.ref_doc_id == "fox.md" else 0)
    assert set(free.choose_documents()) == {"fox.md", "hen.md"}
    assert set(bound.choose_documents()) == {"fox.md"}
    assert scorer.scores("dens", filters=MetadataFilters(filters=[])).n_passages.tolist() == free.n_passages.tolist()


def test_what_summaries_say_counts_as_much_as_the_words() -> None:
    scores = UnitScorer.of_nodes(parsed(document("fox"), document("hen"), document("whale"))).scores("fox")
    more = scores.units * 0.0
    more[scores.table.place_of_document("whale.md") or 0] = 0.9
    assert list(scores.choose_documents()) == ["fox.md"]
    assert list(scores.choose_documents(more)) == ["fox.md", "whale.md"]
    assert list(UnitScorer.of_nodes(parsed(document("fox"))).scores("zzz").choose_documents()) == []


def test_it_follows_every_change() -> None:
    with build(document("fox"), document("hen", 2023)) as index:
        scorer = UnitScorer.of_corpus(index.corpus)

        def check(*wanted: Document) -> None:
            with build(*wanted) as fresh:
                assert_same(scorer, UnitScorer.of_corpus(fresh.corpus))

        index.insert(document("whale", subjects=("songs",)))
        check(document("fox"), document("hen", 2023), document("whale", subjects=("songs",)))
        index.update_ref_doc(document("fox", 2023, subjects=("dens", "food", "cubs")))
        check(document("fox", 2023, subjects=("dens", "food", "cubs")), document("hen", 2023), document("whale", subjects=("songs",)))
        index.delete_ref_doc("hen.md")
        check(document("fox", 2023, subjects=("dens", "food", "cubs")), document("whale", subjects=("songs",)))
        index.compact()
        check(document("fox", 2023, subjects=("dens", "food", "cubs")), document("whale", subjects=("songs",)))
        index.apply(deleted=["fox.md", "whale.md"])
        check()


def test_it_follows_changes_that_touch_no_passage() -> None:
    with build(document("fox"), document("hen")) as index:
        scorer = UnitScorer.of_corpus(index.corpus)
        before = scorer.table
        index.insert(Document(text="", id_="empty.md", metadata={"title": "Fox and hen"}))
        with build(document("fox"), document("hen"), Document(text="", id_="empty.md", metadata={"title": "Fox and hen"})) as fresh:
            assert_same(scorer, UnitScorer.of_corpus(fresh.corpus))
        section = next(unit for unit in before.units if unit.level == 2)
        index.delete_nodes([section.unit_id])
        assert scorer.table.place_of_unit(section.unit_id) is None
        assert scorer.table.place_of_document(section.ref_doc_id) is not None


def test_what_stands_where_is_read_once_for_each_state(monkeypatch: pytest.MonkeyPatch) -> None:
    from llama_index_advanced_rag.retrievers import unit_scores

    reads: list[object] = []
    read = unit_scores.read_outline
    monkeypatch.setattr(unit_scores, "read_outline", lambda database: reads.append(database) or read(database))
    with build(document("fox"), document("hen")) as index:
        retriever = index.as_retriever("hierarchical")
        for _ in range(3):
            retriever.retrieve("dens of foxes")
            index.as_retriever("anchor").retrieve("dens of foxes")
        assert len(reads) == 1
        index.insert(document("whale"))
        retriever.retrieve("dens of foxes")
        retriever.retrieve("food")
        assert len(reads) == 2


def test_it_follows_another_writer(tmp_path: Path) -> None:
    model = DeterministicEmbedding(dimensions=8)
    with build(document("fox"), persist_dir=tmp_path / "i") as index, CorpusIndex.load(tmp_path / "i", embed_model=model) as other:
        scorer, retriever = UnitScorer.of_corpus(index.corpus), index.as_retriever("hierarchical")
        scorer.scores("fox")
        other.insert(document("hen"))
        other.delete_ref_doc("fox.md")
        assert {hit.node.ref_doc_id for hit in retriever.retrieve("dens")} == {"hen.md"}
        assert_same(scorer, UnitScorer.of_corpus(other.corpus))
        other.compact()
        other.insert(document("whale"))
        assert {hit.node.ref_doc_id for hit in retriever.retrieve("the whale")} >= {"whale.md"}
        assert_same(scorer, UnitScorer.of_corpus(other.corpus))


def test_nothing_at_all() -> None:
    for scorer in (UnitScorer.of_nodes([]), UnitScorer.of_corpus(build().corpus)):
        scores = scorer.scores("fox", filters=OLD)
        assert (scores.table.units, scores.units.tolist(), scores.documents, scores.choose_documents()) == ((), [], {}, {})


def test_a_loose_node_is_a_document_of_its_own() -> None:
    with build(document("fox")) as index:
        index.insert_nodes([TextNode(text="A loose whale.", id_="loose")])
        scores = UnitScorer.of_corpus(index.corpus).scores("loose whale")
        assert list(scores.documents) == ["loose"]
