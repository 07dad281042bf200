"""Readers beside a writer in another process, and two writers: nobody sees half of a document, nobody fails, nobody overwrites the other."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.embeddings.requests import drive
from llama_index_advanced_rag.errors import EmbeddingMismatchError, StorageError
from llama_index_advanced_rag.hierarchy.keys import CHUNKING
from llama_index_advanced_rag.stores.rows.row_compaction import compact
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

MODES = ("lexical", "dense", "hybrid")
N_DOCUMENTS = 8

WRITER = """
import sys
from llama_index.core.schema import Document
from llama_index_advanced_rag import CorpusIndex, indexing
from llama_index_advanced_rag.stores.rows import row_compaction
from llama_index_advanced_rag.testing import DeterministicEmbedding
indexing.BATCH_NODES = indexing.MOST_BATCH_NODES = 4
row_compaction._SMALL, row_compaction._UNORDERED = 30, 20
def text(number, version):
    return " ".join(f"word{number} part{part} has version{version} of alpha." for part in range(3))
with CorpusIndex.load(sys.argv[1], embed_model=DeterministicEmbedding(dimensions=16)) as index:
    for version in range(1, int(sys.argv[2])):
        index.apply(updated=[Document(text=text(number, version), id_=f"d{number}") for number in range(8)])
        if version % 4 == 0:
            index.compact()
"""


def model() -> DeterministicEmbedding:
    return DeterministicEmbedding(dimensions=16)


def document(number: int, version: int = 0) -> Document:
    return Document(text=" ".join(f"word{number} part{part} has version{version} of alpha." for part in range(3)), id_=f"d{number}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "index"
    documents = [document(number) for number in range(N_DOCUMENTS)]
    CorpusIndex.from_documents(documents, persist_dir=place, embed_model=model(), chunk_size=14, chunk_overlap=0).close()
    return place


@contextmanager
def writer(folder: Path, n_versions: int) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(n_versions)], env={**os.environ, "PYTHONUTF8": "1"}) as child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_reader_sees_whole_documents_while_another_process_updates_merges_and_compacts(folder: Path, read_only: bool) -> None:
    with CorpusIndex.load(folder, embed_model=model(), read_only=read_only) as reader:
        n_nodes = reader.corpus.counts()["nodes"]
        generations: set[int] = set()
        n_questions = 0
        with writer(folder, 13) as child:
            while child.poll() is None:
                for mode in MODES:
                    hits = reader.as_retriever(mode, similarity_top_k=500).retrieve("alpha")
                    texts = defaultdict(list)
                    for hit in hits:
                        texts[hit.node.ref_doc_id].append(hit.node.get_content())
                    assert len(hits) == n_nodes
                    for parts in texts.values():
                        assert len({word for part in parts for word in part.split() if word.startswith("version")}) == 1, parts
                generations.add(reader.corpus.state().generation)
                n_questions += 1
                if n_questions % 10 == 0:
                    assert reader.verify().problems == []
            assert child.returncode == 0
        assert n_nodes > N_DOCUMENTS
        assert len(generations) > 1, "no compaction was seen"
        assert n_questions > 3
        assert "version12" in reader.as_retriever("lexical", similarity_top_k=1).retrieve("word5")[0].node.get_content()
        assert reader.verify().ok


def test_a_second_writer_waits_for_the_first(folder: Path) -> None:
    with writer(folder, 7) as child, CorpusIndex.load(folder, embed_model=model()) as index:
        number = 100
        while child.poll() is None:
            index.insert(document(number))
            number += 1
        assert child.returncode == 0
        assert {info.ref_doc_id for info in index.list_documents()} == {f"d{one}" for one in [*range(N_DOCUMENTS), *range(100, number)]}
        assert index.verify().ok


def test_a_second_writer_that_has_waited_in_vain_says_so_and_keeps_reading(folder: Path) -> None:
    with CorpusIndex.load(folder, embed_model=model()) as first, CorpusIndex.load(folder, embed_model=model()) as second:
        second.corpus.database.query("PRAGMA busy_timeout = 50")
        with first.corpus.rows.change():
            with pytest.raises(StorageError, match="Another process is writing to this index and did not finish within 10 s"):
                second.insert(document(50))
            assert second.as_retriever("dense", similarity_top_k=1).retrieve("word3")
        second.insert(document(50))
        assert first.as_retriever("lexical").retrieve("word50")
        assert first.verify().ok


def test_two_that_write_the_first_vectors_agree_on_their_length(tmp_path: Path) -> None:
    settings = CorpusSettings(analyzer=TextAnalyzer().to_dict(), chunking=CHUNKING)
    first = Corpus.create(tmp_path / "index", settings)
    second = Corpus.open(tmp_path / "index")
    index, late = CorpusIndex.__new__(CorpusIndex), CorpusIndex.__new__(CorpusIndex)
    index._setup(first, model(), None, None, show_progress=False, callback_manager=None)
    late._setup(second, DeterministicEmbedding(dimensions=8), None, None, show_progress=False, callback_manager=None)
    run = late._start()  # has seen an empty index
    index.insert(document(1))
    with pytest.raises(EmbeddingMismatchError):
        drive(run.steps([document(2)], []), lambda: late.embed_model)
    assert run.report.added == []
    with pytest.raises(EmbeddingMismatchError):
        late._writing_model()
    assert index.verify().ok
    first.close()
    second.close()


@pytest.mark.parametrize("block", ["frozen", "refresh"])
def test_files_that_go_between_a_look_at_the_database_and_at_them(folder: Path, monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    with CorpusIndex.load(folder, embed_model=model()) as first, CorpusIndex.load(folder, embed_model=model(), read_only=True) as reader:
        first.insert(document(50))
        take_over, compactions = RowFiles._take_over, list[RowFiles]()

        def late(files: RowFiles) -> None:
            files.table.read()  # the snapshot is from now on that of this commit
            if files is reader.corpus.rows and len(compactions) < 2:
                with first.corpus.rows.change():
                    compact(first.corpus.rows)
                compactions.append(files)
            take_over(files)

        monkeypatch.setattr(RowFiles, "_take_over", late)
        if block == "frozen":
            with reader.corpus.frozen():
                assert reader.corpus.state().generation == first.corpus.state().generation
        else:
            assert reader.corpus.refresh()
        assert len(compactions) == 2
        assert len(reader.as_retriever("dense", similarity_top_k=100).retrieve("word50")) == first.corpus.counts()["nodes"]


def test_a_state_outlives_a_compaction_by_another_process(folder: Path) -> None:
    with CorpusIndex.load(folder, embed_model=model()) as first, CorpusIndex.load(folder, embed_model=model(), read_only=True) as reader:
        state = reader.corpus.state()
        first.insert(document(50))
        first.compact()
        assert state.matrix is not None  # read for the first time, when its file is gone
        assert len(state.matrix.vectors) == state.n_rows
        assert reader.as_retriever("dense").retrieve("word50")


def test_a_reader_in_a_folder_that_cannot_be_written(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as root:
        place = Path(shutil.copytree(folder, Path(root) / "index"))
        for path in (*place.iterdir(), place):
            path.chmod(0o444 if path.is_file() else 0o555)
        try:
            with CorpusIndex.load(place, embed_model=model(), read_only=True) as reader:
                for mode in MODES:
                    assert reader.as_retriever(mode).retrieve("word3")[0].node.ref_doc_id.startswith("d")
                assert reader.verify().ok
        finally:
            for path in (place, *place.iterdir()):
                path.chmod(0o755)
