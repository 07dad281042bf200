"""Documents and sections in an index: stored and read, never searched by themselves, and gone with their document."""

import json
from pathlib import Path

import pytest
from llama_index.core.node_parser import HierarchicalNodeParser as StockParser
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag import CorpusIndex, FlatVectorStore
from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.testing import DeterministicEmbedding

MODES = ("lexical", "dense", "hybrid", "hierarchical", "anchor")


def document(animal: str) -> Document:
    sections = "\n\n".join(f"## {part}\n\n" + " ".join(f"The {part} of the {animal} has number {place}." for place in range(9)) for part in ("Food", "Dens"))
    return Document(text=f"# The {animal}\n\n{sections}", id_=f"{animal}.md", metadata={"title": animal})


def ours(*animals: str) -> list[BaseNode]:
    return HierarchicalNodeParser(chunk_size=48, chunk_overlap=0).get_nodes_from_documents([document(animal) for animal in animals])


def stock(*animals: str) -> list[BaseNode]:
    parser = StockParser.from_defaults(chunk_sizes=[128, 48], chunk_overlap=0)
    return parser.get_nodes_from_documents([document(animal) for animal in animals])


def split(nodes: list[BaseNode]) -> tuple[set[str], set[str]]:
    """Ids of what was split into others, and of the leaves."""
    outline = {node.node_id for node in nodes if node.child_nodes}
    return outline, {node.node_id for node in nodes} - outline


def build(*animals: str, **options: object) -> CorpusIndex:
    documents = [document(animal) for animal in animals]
    return CorpusIndex.from_documents(documents, **{"embed_model": DeterministicEmbedding(), "chunk_size": 48, "chunk_overlap": 0, **options})


def held(store: BasePydanticVectorStore) -> set[str]:
    return set(store.data.embedding_dict) if isinstance(store, SimpleVectorStore) else {node.node_id for node in store.get_nodes()}


def test_they_are_counted_and_listed_apart() -> None:
    with build("fox", "hen") as index:
        counts, nodes = index.corpus.counts(), ours("fox", "hen")
        outline, leaves = split(nodes)
        assert (counts["nodes"], counts["outline_nodes"]) == (len(leaves), len(outline))
        assert index.info()["outline_nodes"] == len(outline)
        assert set(index.docstore.docs) == leaves, "what is built over docs finds each passage once"
        assert [info.n_nodes for info in index.list_documents()] == [len(leaves) // 2] * 2
        assert {node_id for info in index.ref_doc_info.values() for node_id in info.node_ids} == outline | leaves


def test_a_parent_is_the_slice_of_its_document() -> None:
    with build("fox") as index:
        outline, _ = split(ours("fox"))
        text = document("fox").text
        found = index.corpus.get_nodes(sorted(outline))
        assert {node.node_id for node in found} == outline
        for node in found:
            assert node.get_content(MetadataMode.NONE) == text[node.start_char_idx : node.end_char_idx]
            assert node.child_nodes
        assert {node.node_id: node for node in found} == {node.node_id: node for node in ours("fox") if node.child_nodes}


@pytest.mark.parametrize("mode", MODES)
def test_no_search_gives_them(mode: str) -> None:
    with build("fox", "hen") as index:
        leaves = split(ours("fox", "hen"))[1]
        found = {hit.node_id for hit in index.as_retriever(mode, similarity_top_k=100, **({"max_unit_tokens": 1} if mode == "anchor" else {})).retrieve("dens")}
        assert found <= leaves
        assert found


@pytest.mark.parametrize("make", [ours, stock])
@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_ready_nodes_of_all_levels_in_batches_of_any_size(make: object, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llama_index_advanced_rag.updatable.BATCH_NODES", batch)
    nodes: list[BaseNode] = make("fox", "hen")  # type: ignore[operator]
    outline, leaves = split(nodes)
    with CorpusIndex(nodes, embed_model=DeterministicEmbedding()) as index:
        assert {key: index.corpus.counts()[key] for key in ("nodes", "outline_nodes")} == {"nodes": len(leaves), "outline_nodes": len(outline)}
        assert index.verify().ok
        assert {node.node_id: node.get_content() for node in index.corpus.get_nodes(sorted(outline))} == {
            node.node_id: node.get_content() for node in nodes if node.child_nodes
        }
        assert {hit.node.ref_doc_id for hit in index.as_retriever("hierarchical", similarity_top_k=3).retrieve("fox")} == {"fox.md"}
        assert any(hit.node.child_nodes for hit in index.as_retriever("hierarchical", strategy="merge_up", similarity_top_k=50).retrieve("dens of the fox"))
        index.insert_nodes(nodes)
        assert index.corpus.counts()["outline_nodes"] == len(outline), "the same nodes again"
        index.delete_ref_doc("fox.md")
        left = split([node for node in nodes if node.ref_doc_id == "hen.md"])
        assert set(index.docstore.docs) == left[1]
        assert index.corpus.counts()["outline_nodes"] == len(left[0])
        assert index.verify().ok
        index.delete_ref_doc("hen.md")
        assert not any(index.corpus.counts().values())


@pytest.mark.parametrize("make", [SimpleVectorStore, FlatVectorStore])
def test_a_vector_store_of_the_users_gets_leaves_only(make: type[BasePydanticVectorStore]) -> None:
    store = make()
    with build("fox", "hen", vector_store=store) as index:
        leaves = split(ours("fox", "hen"))[1]
        assert held(store) == leaves
        index.insert_nodes(ours("owl"))
        assert held(store) == leaves | split(ours("owl"))[1]
        assert {hit.node.ref_doc_id for hit in index.as_retriever("hierarchical", similarity_top_k=3).retrieve("the owl")} == {"owl.md"}
        index.delete_ref_doc("fox.md")
        assert held(store) == split(ours("hen", "owl"))[1]
        assert index.verify(repair=True).ok


def test_an_index_with_sections_is_mended(tmp_path: Path) -> None:
    def answers(index: CorpusIndex) -> list[list[tuple[str, float]]]:
        return [[(hit.node_id, round(hit.score or 0.0, 6)) for hit in index.as_retriever(mode).retrieve("dens of the fox")] for mode in MODES]

    with build("fox", "hen", persist_dir=tmp_path / "i") as index:
        before, counts = answers(index), index.corpus.counts()
    for path in (tmp_path / "i").glob("*.bin"):
        path.write_bytes(b"")
    model = DeterministicEmbedding()
    CorpusIndex.repair(tmp_path / "i", embed_model=model)
    assert len(model.texts) <= counts["nodes"], "sections are not embedded"
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as index:
        assert index.verify().ok
        assert index.corpus.counts() == counts
        assert answers(index) == before


def test_a_section_that_is_deleted_alone_leaves_its_passages() -> None:
    with build("fox") as index:
        outline, leaves = split(ours("fox"))
        index.delete_nodes(sorted(outline))
        assert set(index.docstore.docs) == leaves
        assert index.verify().ok
        for mode in MODES:
            assert index.as_retriever(mode).retrieve("dens of the fox"), mode


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """An index from before its settings said how documents are cut."""
    build("fox", persist_dir=tmp_path / "i").close()
    with CorpusDatabase(tmp_path / "i") as database:
        stored = database.get_meta("settings")
        del stored["chunking"]
        database.set_meta("settings", stored)
        assert CorpusSettings.read(database).chunking == "sentences"
        assert "chunking" not in json.dumps(database.get_meta("settings"))
    return tmp_path / "i"


def test_an_older_index_is_searched_and_not_changed(older: Path) -> None:
    with CorpusIndex.load(older, embed_model=DeterministicEmbedding()) as index:
        for mode in MODES:
            assert index.as_retriever(mode).retrieve("dens of the fox"), mode
        before = index.corpus.counts()
        message = r"cut in another way \('sentences'\).*It can be searched as it is; to change it, build it again with CorpusIndex.from_documents"
        with pytest.raises(IndexFormatError, match=message):
            index.insert(document("hen"))
        with pytest.raises(IndexFormatError, match=message):
            index.refresh_ref_docs([document("hen")])
        assert index.corpus.counts() == before
        assert index.verify().ok
        index.delete_ref_doc("fox.md")
        assert index.list_documents() == [], "what needs no cutting goes on"


def test_an_older_index_of_own_nodes_goes_on(tmp_path: Path) -> None:
    parser = HierarchicalNodeParser(chunk_size=48, chunk_overlap=0)
    build("fox", transformations=[parser], persist_dir=tmp_path / "i").close()
    with CorpusDatabase(tmp_path / "i") as database:
        stored = database.get_meta("settings")
        del stored["chunking"]
        database.set_meta("settings", stored)
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding(), transformations=[parser]) as index:
        index.insert(document("hen"))
        assert len(index.list_documents()) == 2
