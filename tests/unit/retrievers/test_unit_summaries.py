"""Summaries of documents and sections beside an index: made once, kept, made again only where something has changed."""

import sqlite3
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.schema import Document, MetadataMode, QueryBundle
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.errors import StorageError
from llama_index_advanced_rag.hierarchy.summaries import Summarizer
from llama_index_advanced_rag.ranking.tree_search import TreeSearch
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.unit_summaries import SharedSummaries, UnitSummaries
from llama_index_advanced_rag.storage_view import SUMMARY_FILE
from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM
from llama_index_advanced_rag.trace import capture_trace

QUESTION = "dens of the fox"


def document(animal: str, *, food: str = "mice", year: int = 2022) -> Document:
    sections = {
        "Food": " ".join(f"The {animal} eats {food} in month {number} of the year." for number in range(8)),
        "Dens": " ".join(f"The {animal} sleeps in den {number} below the trees." for number in range(8)),
    }
    text = f"# The {animal}\n\n" + "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return Document(text=text, id_=f"{animal}.md", metadata={"title": f"About the {animal}", "year": year}, excluded_embed_metadata_keys=["year"])


def build(*documents: Document, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(documents, **{"embed_model": DeterministicEmbedding(), "chunk_size": 64, "chunk_overlap": 0, **options})


def load(folder: Path, **options: object) -> CorpusIndex:
    return CorpusIndex.load(folder, **{"embed_model": DeterministicEmbedding(), **options})


def writer() -> ScriptedLLM:
    return ScriptedLLM([lambda prompt: f"Summary of {prompt.split('<title>')[1].split('</title>')[0].strip()}."])


def ask(index: CorpusIndex, llm: ScriptedLLM | None = None, question: str = QUESTION, **options: object) -> list[str]:
    given = {"strategy": "collapsed", "summaries": True, "similarity_top_k": 50, **options}
    return [hit.node_id for hit in index.as_retriever("hierarchical", llm=llm, **given).retrieve(question)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(document("fox"), document("hen"), persist_dir=tmp_path / "i").close()
    return tmp_path / "i"


def warnings_of(index: CorpusIndex, llm: ScriptedLLM) -> list[str]:
    with capture_trace() as trace:
        ask(index, llm)
    return [note.message for note in trace.all_notes() if note.level == "warning"]


def kept(folder: Path) -> dict[str, dict[str, object]]:
    """What the file beside the index holds, by key."""
    with SQLiteKVStore(folder / SUMMARY_FILE, read_only=True) as store:
        return store.get_all(collection="summaries")


class Other(ScriptedLLM):
    """An LLM of another name."""

    @property
    def metadata(self) -> LLMMetadata:
        return super().metadata.model_copy(update={"model_name": "other"})


def test_nothing_is_made_before_the_first_question_and_nothing_at_the_second() -> None:
    llm = writer()
    with build(document("fox"), document("hen")) as index:
        retriever = index.as_retriever("hierarchical", summaries=True, strategy="collapsed", llm=llm, similarity_top_k=50)
        assert llm.prompts == []
        first = retriever.retrieve(QUESTION)
        assert len(llm.prompts) == index.corpus.counts()["outline_nodes"]
        asked = len(llm.prompts)
        assert [hit.node_id for hit in retriever.retrieve(QUESTION)] == [hit.node_id for hit in first]
        retriever.retrieve("what else is there")
        assert len(llm.prompts) == asked


def test_after_a_change_only_what_has_changed_is_summarised() -> None:
    llm = writer()
    with build(document("fox"), document("hen")) as index:
        retriever = index.as_retriever("hierarchical", summaries=True, llm=llm)
        retriever.retrieve(QUESTION)
        llm.prompts.clear()
        index.update_ref_doc(document("fox", food="berries"))
        retriever.retrieve(QUESTION)
        titles = [prompt.split("<title>")[1].split("</title>")[0].strip() for prompt in llm.prompts]
        assert "The fox > Food" in titles
        assert "The fox > Dens" not in titles
        assert not any("hen" in title for title in titles)
        llm.prompts.clear()
        index.delete_ref_doc("hen.md")
        retriever.retrieve(QUESTION)
        assert llm.prompts == []


def test_they_are_kept_for_the_next_process(folder: Path) -> None:
    llm = writer()
    with load(folder) as index:
        first = ask(index, llm)
        asked = len(llm.prompts)
        ask(index, llm)  # another retriever
        assert len(llm.prompts) == asked > 0
    with load(folder) as index:
        assert ask(index, llm) == first
        assert len(llm.prompts) == asked
        index.update_ref_doc(document("hen", food="corn"))
        ask(index, llm)
        assert asked < len(llm.prompts) < 2 * asked


def test_another_writer_writes_its_own(folder: Path) -> None:
    with load(folder) as index:
        sentences = ask(index)
        llm = writer()
        assert ask(index, llm)
        assert len(llm.prompts) == index.corpus.counts()["outline_nodes"]
        assert sentences


def test_an_index_that_is_read_only_uses_what_is_kept_and_writes_nothing(folder: Path) -> None:
    llm = writer()
    with load(folder, read_only=True) as index:
        first = ask(index, llm)
        assert not (folder / SUMMARY_FILE).exists()
        asked = len(llm.prompts)
    with load(folder) as index:
        ask(index, llm)
        assert len(llm.prompts) == 2 * asked, "nothing had been kept"
    llm.prompts.clear()
    with load(folder, read_only=True) as index:
        assert ask(index, llm) == first
        assert llm.prompts == []
        with load(folder) as other:
            other.insert(document("owl"))
        held = SQLiteKVStore(folder / SUMMARY_FILE, read_only=True).to_dict()
        assert any(hit.startswith("owl") or "owl" in str(index.docstore.get_node(hit).ref_doc_id) for hit in ask(index, llm, "the owl"))
        assert 0 < len(llm.prompts) < asked
        assert SQLiteKVStore(folder / SUMMARY_FILE, read_only=True).to_dict() == held


@pytest.mark.parametrize("damage", ["value", "file", "other file"])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_damaged_is_reported_and_made_again(folder: Path, damage: str, read_only: bool) -> None:
    llm = writer()
    with load(folder) as index:
        first = ask(index, llm)
    asked, place = len(llm.prompts), folder / SUMMARY_FILE
    if damage == "value":
        with sqlite3.connect(place) as database:
            database.execute("UPDATE pairs SET value = replace(value, 'fox', 'fux')")
        database.close()
    else:
        place.write_bytes(b"not a database at all" * 100 if damage == "file" else b"")
    with load(folder, read_only=read_only) as index:
        llm.prompts.clear()
        if damage == "other file" and not read_only:
            assert warnings_of(index, llm) == [], "an empty file is a new store"
        else:
            assert any("The kept summaries cannot be read and are made anew" in warning for warning in warnings_of(index, llm))
        assert len(llm.prompts) == asked
        assert ask(index, llm) == first
    if not read_only:
        with load(folder) as index:
            llm.prompts.clear()
            assert (warnings_of(index, llm), llm.prompts) == ([], [])


def test_a_tree_of_another_format_is_made_again(folder: Path) -> None:
    llm = writer()
    with load(folder) as index:
        ask(index, llm)
    with SQLiteKVStore(folder / SUMMARY_FILE) as store:
        for key in kept(folder):
            store.put(key, {"nonsense": 1}, collection="summaries")
    with load(folder) as index:
        assert any("The kept summaries cannot be read and are made anew" in warning for warning in warnings_of(index, llm))
        assert warnings_of(index, llm) == []


def test_a_disk_that_refuses_does_not_cost_the_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(SQLiteKVStore, "put", full)
    with load(folder) as index, capture_trace() as trace:
        assert ask(index)
    assert any("could not be kept for the next process: The disk is full." in note.message for note in trace.all_notes())


def test_an_embedding_model_that_fails_is_raised_and_nothing_is_paid_twice(folder: Path) -> None:
    llm, model = writer(), DeterministicEmbedding()
    with load(folder, embed_model=model) as index:
        summaries = UnitSummaries(UnitScorer.of_corpus(index.corpus), index.corpus, embed_model=model, summarizer=Summarizer(llm))
        model.fail_on = "Summary"
        with pytest.raises(ConnectionError, match="the embedding service is down"):
            summaries.update()
        asked = len(llm.prompts)
        model.fail_on = None
        summaries.update()
        assert len(llm.prompts) == asked == len(summaries.tree)


def test_what_was_paid_for_before_a_failure_is_not_lost_to_what_is_stored(folder: Path) -> None:
    llm, model = writer(), DeterministicEmbedding()
    with load(folder) as index:
        ask(index, llm)
    with load(folder, embed_model=model, llm=llm) as index:
        before = index.corpus.counts()["outline_nodes"]
        index.insert(document("owl"))
        llm.prompts.clear()
        model.fail_on = "Summary"
        retriever = index.as_retriever("hierarchical", summaries=True)
        for _ in range(2):
            with pytest.raises(ConnectionError, match="the embedding service is down"):
                retriever.retrieve(QUESTION)
        with pytest.raises(ConnectionError, match="the embedding service is down"):
            index.as_retriever("hierarchical", summaries=True).retrieve(QUESTION)
        asked = len(llm.prompts)
        assert asked == index.corpus.counts()["outline_nodes"] - before, "the new document and its sections, once"
        model.fail_on = None
        assert index.as_retriever("hierarchical", summaries=True).retrieve(QUESTION)
        assert len(llm.prompts) == asked


@pytest.mark.parametrize("in_memory", [True, False])
def test_all_retrievers_of_an_index_share_them(folder: Path, in_memory: bool) -> None:
    llm = writer()
    with build(document("fox"), document("hen"), llm=llm) if in_memory else load(folder, llm=llm) as index:
        units = index.corpus.counts()["outline_nodes"]
        first = ask(index, llm)
        assert len(llm.prompts) == units
        assert ask(index, llm) == first
        index.as_query_engine(retriever_mode="hierarchical", summaries=True).retrieve(QueryBundle(QUESTION))
        assert len(llm.prompts) == units
        ask(index, llm, tree=True)
        clusters = len(llm.prompts) - units
        assert 0 < clusters < units, "the summaries of the units are there, those of the clusters are made"
        other = Other(["From another model."])
        ask(index, other)
        ask(index, None)
        assert len(other.prompts) == units
        for tree in (False, True, False):
            ask(index, llm, tree=tree)
        ask(index, other)
        assert (len(llm.prompts), len(other.prompts)) == (units + clusters, units), "nobody takes the place of another"


def test_those_of_each_writer_and_kind_are_kept_side_by_side(folder: Path) -> None:
    llm, other = writer(), Other(["From another model."])
    with load(folder) as index:
        found = [ask(index, llm), ask(index, llm, tree=True), ask(index, None), ask(index, other)]
    held, calls = kept(folder), (len(llm.prompts), len(other.prompts))
    assert len(held) == 4
    assert all(key.startswith("summary_tree/") for key in held)
    with load(folder) as index:
        assert [ask(index, other), ask(index, None), ask(index, llm, tree=True), ask(index, llm)] == found[::-1]
    assert kept(folder) == held
    assert (len(llm.prompts), len(other.prompts)) == calls


def test_a_tree_begins_with_the_summaries_that_are_kept_and_the_other_way_round(folder: Path) -> None:
    llm = writer()
    with load(folder) as index:
        ask(index, llm, tree=True)
        units = index.corpus.counts()["outline_nodes"]
    made = len(llm.prompts)
    with load(folder) as index:
        ask(index, llm)
        assert len(llm.prompts) == made > units
    assert sorted(len(held["nodes"]) for held in kept(folder).values()) == [units, made]


def test_what_an_llm_failed_to_write_is_tried_again_for_the_next_retriever() -> None:
    broken, llm = ScriptedLLM([""]), writer()
    with build(document("fox"), document("hen")) as index:
        retriever = index.as_retriever("hierarchical", summaries=True, llm=broken)
        retriever.retrieve(QUESTION)
        failed = len(broken.prompts)
        retriever.retrieve(QUESTION)
        assert len(broken.prompts) == failed > 0, "not at each question"
        assert warnings_of(index, llm) == []
        assert len(llm.prompts) == index.corpus.counts()["outline_nodes"], "the LLM that is given last writes"
        assert len(broken.prompts) == failed
        assert warnings_of(index, llm) == []
        assert len(llm.prompts) == index.corpus.counts()["outline_nodes"]


def test_one_for_each_writer_and_kind(folder: Path) -> None:
    with load(folder) as index:
        shared = SharedSummaries(UnitScorer.of_corpus(index.corpus), index.corpus, embed_model=DeterministicEmbedding())
        first = shared.written_by(writer())
        assert shared.written_by(writer()) is first
        others = [shared.written_by(None), shared.written_by(None, tree=True), shared.written_by(Other([""])), first]
        assert len({id(one) for one in others}) == 4


async def test_async_finds_the_same(folder: Path) -> None:
    with load(folder) as index:
        summaries = UnitSummaries(UnitScorer.of_corpus(index.corpus), index.corpus, embed_model=DeterministicEmbedding(), tree=True, top_k=3)
        bundle = QueryBundle(QUESTION)
        found = await summaries.ascores(bundle)
        assert found == summaries.scores(bundle)
        assert 0 < len(found) <= 3
        assert all(0 < score <= 1 for score in found.values())
        top_down = UnitSummaries(UnitScorer.of_corpus(index.corpus), index.corpus, embed_model=DeterministicEmbedding(), tree=True, search=TreeSearch.TOP_DOWN)
        assert top_down.scores(bundle)


def test_summaries_have_the_metadata_of_their_units_and_show_no_more_than_the_title(folder: Path) -> None:
    with load(folder) as index:
        summaries = UnitSummaries(UnitScorer.of_corpus(index.corpus), index.corpus, embed_model=DeterministicEmbedding())
        scores = summaries.scores(QueryBundle(QUESTION))
        nodes = {node.metadata.get("section_path", ""): node for node in summaries.nodes(scores) if node.ref_doc_id == "fox.md"}
        section = nodes["The fox > Dens"]
        assert {"title", "year", "section_path", "level", "summary_of"} <= set(section.metadata)
        assert section.metadata["year"] == 2022
        shown = section.get_content(metadata_mode=MetadataMode.LLM)
        assert shown.startswith(("About the fox\nThe fox > Dens\n", "The fox > Dens\n"))
        assert "2022" not in shown
        assert "2022" not in section.get_content(metadata_mode=MetadataMode.EMBED)
        assert summaries.nodes({}) == []


@pytest.mark.parametrize(
    ("operator", "value", "documents"),
    [(FilterOperator.NE, 2023, {"fox.md"}), (FilterOperator.EQ, 2023, {"hen.md"}), (FilterOperator.NIN, [2022, 2023], set())],
)
def test_summaries_obey_filters_as_their_units_do(operator: FilterOperator, value: object, documents: set[str]) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="year", value=value, operator=operator)])
    with build(document("fox"), document("hen", year=2023)) as index:
        hits = index.as_retriever("hierarchical", strategy="collapsed", summaries=True, filters=filters, similarity_top_k=50).retrieve(QUESTION)
        assert {hit.node.ref_doc_id for hit in hits} == documents
        assert any("summary_of" in hit.node.metadata for hit in hits) == bool(documents)


def test_a_document_without_text_has_no_summary() -> None:
    with build(document("fox"), Document(text=" ", id_="empty.md")) as index:
        summaries = UnitSummaries(UnitScorer.of_corpus(index.corpus), index.corpus, embed_model=DeterministicEmbedding())
        summaries.update()
        assert {node.ref_doc_id for node in summaries.tree.nodes()} == {"fox.md"}
