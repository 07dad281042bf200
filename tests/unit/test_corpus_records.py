"""Records in the corpus: each searchable node has one, written with it, gone with it, and read with the extractor the index was built with."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from llama_index.core.schema import Document, ImageNode, MediaResource, Node, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError, ReadOnlyIndexError, StorageError
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention, Relation
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.verification import check_folder


class Capitals:
    """Finds capitalised words, and a fact that is not written in the text; refuses the word "poison"."""

    identity = "capitals"

    def extract(self, texts: Sequence[str]) -> list[ExtractionRecord]:
        return [self._read(text) for text in texts]

    def _read(self, text: str) -> ExtractionRecord:
        if "poison" in text:
            raise RuntimeError("the model\nis gone")
        mentions: list[Mention] = []
        start = 0
        for word in text.split(" "):
            if word[:1].isupper():
                mentions.append(Mention(word, "name", start, start + len(word)))
            start += len(word) + 1
        facts = (Relation(mentions[0].surface, "stands in", "this text", {"first": True}),) if mentions else ()
        return ExtractionRecord((*mentions, Mention("Inferred", "NORP", -1, -1)), facts)


def model() -> DeterministicEmbedding:
    return DeterministicEmbedding(dimensions=16)


DOCUMENTS = (
    Document(text="the Fox and the Owl sleep", id_="fox", metadata={"title": "Forest life"}),
    Document(text="the Sea is blue", id_="sea.txt"),
    Document(text="a caf\U0010ffff \0 in Paris", id_="odd", metadata={"title": "Odd signs"}),
)


def build(folder: Path | None = None, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(DOCUMENTS, persist_dir=folder, embed_model=model(), **{"extractor": Capitals(), **options})


def load(folder: Path, **options: object) -> CorpusIndex:
    return CorpusIndex.load(folder, embed_model=model(), **{"extractor": Capitals(), **options})


def rows(index: CorpusIndex) -> list[int]:
    return index.corpus.rows.table.all_rows().tolist()


def records(index: CorpusIndex) -> dict[str, ExtractionRecord]:
    """By the text of the node; each stored record is of a searchable node."""
    corpus = index.corpus
    assert corpus.records.rows.rows_without_node() == []
    texts = corpus.texts_of_rows(corpus.records.rows.all_rows())
    return {texts[row]: record for row, record in corpus.records_of_rows(list(texts)).items()}


def surfaces(index: CorpusIndex) -> set[tuple[str, ...]]:
    return {tuple(mention.surface for mention in record.mentions if mention.start >= 0) for record in records(index).values()}


@pytest.mark.parametrize("on_disk", [True, False])
def test_each_node_has_the_record_of_its_text_with_the_names_its_metadata_give(tmp_path: Path, on_disk: bool) -> None:
    with build(tmp_path / "i" if on_disk else None) as index:
        found = records(index)
        assert set(found) == {document.text for document in DOCUMENTS}
        fox = found["the Fox and the Owl sleep"]
        assert fox.mentions == (Mention("Fox", "name", 4, 7), Mention("Owl", "name", 16, 19), Mention("Inferred", "NORP", -1, -1))
        assert fox.relations == (Relation("Fox", "stands in", "this text", {"first": True}),)
        assert [record.names for record in found.values()] == [("Forest life",), ("sea",), ("Odd signs",)]
        assert index.corpus.titles_of_rows(rows(index)) == dict(zip(rows(index), ("Forest life", "sea.txt", "Odd signs"), strict=True))
        assert index.info()["extractor"] == "capitals"
        assert 0 < index.info()["graph_bytes"] < 500
        assert index.verify().ok


def test_records_come_back_from_the_folder_and_from_a_copy(tmp_path: Path) -> None:
    with build(tmp_path / "i") as index:
        before = records(index)
        index.persist(tmp_path / "copy")
    for folder in ("i", "copy"):
        with load(tmp_path / folder, read_only=True) as index:
            assert records(index) == before


def test_rows_without_a_record_and_rows_that_are_gone_are_left_out() -> None:
    with build() as index:
        known = rows(index)
        for read in (index.corpus.records_of_rows, index.corpus.texts_of_rows, index.corpus.titles_of_rows):
            assert set(read([*known, 999])) == set(known)
            assert read([]) == {}
        index.corpus.records.rows.remove(known[:1])
        assert set(index.corpus.records_of_rows(known)) == set(known[1:])


def test_texts_and_titles_of_all_kinds_of_nodes() -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="unseen")}
    nodes = [
        TextNode(text="loose Text", id_="1", metadata={"title": "Own title"}),
        TextNode(text="of Something", id_="2", metadata={"title": "Shared"}, relationships=source),
        Node(text_resource=MediaResource(text="resource Text"), id_="3"),
        ImageNode(image="aGk=", id_="4"),
    ]
    with CorpusIndex(nodes, embed_model=model(), extractor=Capitals()) as index:
        known = rows(index)
        assert list(index.corpus.texts_of_rows(known).values()) == ["loose Text", "of Something", "resource Text", ""]
        assert list(index.corpus.titles_of_rows(known).values()) == ["Own title", "Shared", "3", "4"]
        assert index.corpus.records_of_rows(known)[known[3]] == ExtractionRecord(), "no text, no record to speak of"


def test_a_lone_surrogate_in_the_text_moves_no_mention() -> None:
    node = TextNode(text="a caf\udce9 in Paris", id_="odd", metadata={"title": "caf\udce9"}, embedding=[1.0] + [0.0] * 15)
    with build() as index:
        index.insert_nodes([node], use_embeddings=True)
        record = records(index)[node.text]
        assert record.mentions[0] == Mention("Paris", "name", 10, 15)
        assert record.names == ("caf\udce9",)


def many(index: CorpusIndex) -> None:
    index.insert(Document(text=" ".join(f"The Fox {number} runs. It sleeps in Paris." for number in range(300)), id_="long"))


def test_texts_are_those_of_the_nodes_where_they_are_slices() -> None:
    with build(chunk_size=24, chunk_overlap=4) as index:
        many(index)
        known = rows(index)
        assert len(known) > 50
        nodes = index.corpus.documents.nodes_of_rows(known)
        assert index.corpus.texts_of_rows(known) == {row: node.get_content() for row, node in nodes.items()}


GONE = ("Fox", "Owl")
ROUTES: dict[str, Callable[[CorpusIndex, str], object]] = {
    "delete_ref_doc": lambda index, _: index.delete_ref_doc("fox"),
    "apply": lambda index, _: index.apply(deleted=["fox"]),
    "delete_nodes": lambda index, node_id: index.delete_nodes([node_id]),
    "docstore, document": lambda index, _: index.docstore.delete_ref_doc("fox"),
    "docstore, node": lambda index, node_id: index.docstore.delete_document(node_id),
    "docstore, replaced": lambda index, node_id: index.docstore.add_documents([TextNode(text="unsearched", id_=node_id)]),
    "update": lambda index, _: index.update_ref_doc(Document(text="nothing", id_="fox")),
    "empty": lambda index, _: index.update_ref_doc(Document(text=" ", id_="fox")),
    "node replaced": lambda index, node_id: index.insert_nodes([TextNode(text="nothing", id_=node_id)]),
    "split now": lambda index, node_id: index.insert_nodes(
        [TextNode(text="whole", id_=node_id, relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id="part")]})]
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_record_goes_with_its_node_whatever_way_that_goes(route: str) -> None:
    with build() as index:
        assert GONE in surfaces(index)
        ROUTES[route](index, index.ref_doc_info["fox"].node_ids[-1])
        assert GONE not in surfaces(index)
        assert len(records(index)) == len(rows(index))
        index.compact()
        assert len(records(index)) == len(rows(index))
        assert {("Sea",), ("Paris",)} <= surfaces(index)
        assert index.verify().ok


def test_what_is_written_is_committed_with_the_nodes_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with build() as index:
        before = records(index)
        with monkeypatch.context() as patch:

            def full(*_: object, **__: object) -> None:
                raise StorageError("The disk is full.")

            patch.setattr(RowFiles, "append", full)
            for change in (lambda: index.update_ref_doc(Document(text="a Bee", id_="fox")), lambda: index.insert_nodes([TextNode(text="a Bee")])):
                with pytest.raises(StorageError, match="full"):
                    change()
        assert records(index) == before


def test_nodes_brought_in_as_they_are_have_records_too() -> None:
    with build() as index:
        index.insert_nodes([TextNode(text="a Bee", id_="bee"), TextNode(text="an Ant", id_="ant")])
        index.insert_nodes([TextNode(text="two Wasps", id_="bee")])
        assert surfaces(index) == {("Fox", "Owl"), ("Sea",), ("Paris",), ("Ant",), ("Wasps",)}
        assert index.verify().ok


def test_an_external_vector_store_changes_nothing() -> None:
    with build(vector_store=SimpleVectorStore(stores_text=True)) as index:
        index.delete_ref_doc("fox")
        assert surfaces(index) == {("Sea",), ("Paris",)}


def test_without_an_extractor_nothing_is_read_or_kept(tmp_path: Path) -> None:
    with build(tmp_path / "i", extractor=None) as index:
        assert records(index) == {}
        assert (index.info()["extractor"], index.info()["graph_bytes"]) == (None, 0)
        assert index.verify().ok
    with pytest.raises(ConfigurationError, match="built without an extractor, and 'capitals'"):
        load(tmp_path / "i")
    with load(tmp_path / "i", extractor=None) as index:
        index.insert(Document(text="a Bee"))
        assert records(index) == {}


def test_ours_is_the_default_and_found_again(tmp_path: Path) -> None:
    CorpusIndex.from_documents(DOCUMENTS, persist_dir=tmp_path / "i", embed_model=model(), language="fr").close()
    with CorpusIndex.load(tmp_path / "i", embed_model=model()) as index:
        assert index.info()["extractor"].startswith("spans-")
        assert index.info()["extractor"].endswith(":fr")
        index.insert(Document(text="Marie Curie travaille avec Pierre Curie."))
        assert any("Curie" in mention.surface for record in records(index).values() for mention in record.mentions)
        assert index.verify().ok
    CorpusIndex.load(tmp_path / "i", extractor="spans").close()
    with pytest.raises(ConfigurationError, match="built with the extractor 'spans-.*:fr', and 'capitals'"):
        load(tmp_path / "i")


def test_anothers_is_needed_to_change_and_not_to_search(tmp_path: Path) -> None:
    build(tmp_path / "i").close()
    with load(tmp_path / "i", extractor=None) as index:
        assert index.as_retriever("lexical").retrieve("fox")
        before = records(index)
        for change in (lambda: index.insert(Document(text="a Bee")), lambda: index.insert_nodes([TextNode(text="a Bee")])):
            with pytest.raises(ConfigurationError, match=r"read by the extractor 'capitals'.*pass the same one: CorpusIndex.load\(\.\.\., extractor"):
                change()
        assert records(index) == before
        index.delete_ref_doc("fox")
        assert len(records(index)) == len(before) - 1
    other = Capitals()
    other.identity = "capitals-2"
    with pytest.raises(ConfigurationError, match="built with the extractor 'capitals', and 'capitals-2' would read other names"):
        load(tmp_path / "i", extractor=other)
    with pytest.raises(ConfigurationError, match="extractor is 'nothing'"):
        load(tmp_path / "i", extractor="nothing")


def test_overwriting_needs_the_same_extractor(tmp_path: Path) -> None:
    build(tmp_path / "i").close()
    build(tmp_path / "i", overwrite=True).close()
    for extractor, words in ((None, "built with the extractor 'capitals'. Leave extractor out"), ("spans", "built with the extractor 'capitals', and 'spans-")):
        with pytest.raises(ConfigurationError, match=words):
            build(tmp_path / "i", overwrite=True, extractor=extractor)
    with load(tmp_path / "i") as index:
        assert index.verify().ok


def test_read_only(tmp_path: Path) -> None:
    build(tmp_path / "i").close()
    with load(tmp_path / "i", read_only=True) as index:
        assert len(records(index)) == 3
        with pytest.raises(ReadOnlyIndexError):
            index.insert(Document(text="a Bee"))


def test_a_document_that_the_extractor_fails_on_is_skipped_with_the_reason() -> None:
    with build() as index:
        report = index.apply(updated=[Document(text="some poison", id_="fox"), Document(text="a Bee", id_="bee")])
        assert (report.added, report.updated) == (["bee"], [])
        assert [(item.ref_doc_id, item.reason) for item in report.skipped] == [
            ("fox", "could not be read for names and facts, the stored version is kept: RuntimeError: the model is gone")
        ]
        assert {("Fox", "Owl"), ("Bee",)} <= surfaces(index), "the stored version is kept"
        with pytest.raises(RuntimeError, match="the model"):
            index.insert_nodes([TextNode(text="some poison")])


def test_the_texts_of_many_documents_are_read_at_once_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    extract = Capitals.extract

    def counted(self: Capitals, texts: Sequence[str]) -> list[ExtractionRecord]:
        asked.append(len(texts))
        return extract(self, texts)

    monkeypatch.setattr(Capitals, "extract", counted)
    build().close()
    assert asked == [3]


def test_a_record_that_cannot_be_stored_skips_its_document_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Capitals._read

    def odd(self: Capitals, text: str) -> ExtractionRecord:
        return ExtractionRecord(relations=(Relation("a", "b", "c", {"when": object()}),)) if "Wasp" in text else read(self, text)  # type: ignore[dict-item]

    monkeypatch.setattr(Capitals, "_read", odd)
    with build() as index:
        report = index.apply(added=[Document(text="a Wasp", id_="wasp"), Document(text="a Bee", id_="bee")])
        assert report.added == ["bee"]
        assert "A record cannot be stored: something in it is not JSON" in report.skipped[0].reason


def damage(index: CorpusIndex) -> None:
    """Take away the first record, spoil the second, and add one of no node."""
    table, known = index.corpus.records.rows, rows(index)
    table.remove(known[:1])
    table.put([known[1], 999], [b"\0\7\7\7", b"\0"])


def test_a_damaged_record_is_said_with_its_row() -> None:
    with build() as index:
        damage(index)
        with pytest.raises(IndexFormatError, match=rf"The record of row {rows(index)[1]} is damaged: 4 bytes are not the record"):
            index.corpus.records_of_rows(rows(index))


def test_records_that_are_lost_or_damaged_are_found_and_made_again(tmp_path: Path) -> None:
    with build(tmp_path / "i") as index:
        before = records(index)
        damage(index)
        wrong = check_folder(tmp_path / "i").problems
        assert wrong == index.verify().problems
        assert len(wrong) == 3
        assert "1 searchable nodes have no record of names and facts" in wrong[0]
        assert "a record of names and facts that is damaged" in wrong[1]
        assert "1 records of names and facts are of no node, that of row 999" in wrong[2]
        report = index.verify(repair=True)
        assert report.problems == wrong
        assert report.repaired == ["2 records of names and facts were made again from the stored text."]
        assert index.verify().ok
        assert records(index) == before


def test_repair_without_the_extractor_says_so_and_with_it_mends(tmp_path: Path) -> None:
    with build(tmp_path / "i") as index:
        damage(index)
    report = CorpusIndex.repair(tmp_path / "i", embed_model=model())
    assert (len(report.problems), report.repaired) == (3, [])
    assert "cannot be made again: The names and facts of this index were read by the extractor 'capitals'" in report.unchecked[0]
    assert CorpusIndex.repair(tmp_path / "i", embed_model=model(), extractor=Capitals()).repaired
    assert check_folder(tmp_path / "i").ok


def test_another_process_with_another_extractor_is_refused_at_creation(tmp_path: Path) -> None:
    with build(tmp_path / "i") as index:
        settings = index.corpus.settings
    Corpus.create(tmp_path / "i", settings).close()
    from dataclasses import replace

    with pytest.raises(ConfigurationError, match="Another process has just made an index with other settings"):
        Corpus.create(tmp_path / "i", replace(settings, extractor=None))
