"""verify, repair and compact of an index, sync and async: what is allowed, what they say, what they leave as it is."""

from pathlib import Path

import pytest
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.errors import EmbeddingMismatchError, ReadOnlyIndexError
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.trace import capture_trace


def build(folder: Path | None) -> CorpusIndex:
    documents = [Document(text=f"word{number} sleeps", id_=f"d{number}") for number in range(6)]
    return CorpusIndex.from_documents(documents, persist_dir=folder, embed_model=DeterministicEmbedding())


def found(index: CorpusIndex) -> list[list[tuple[str, float | None]]]:
    return [[(hit.node.node_id, hit.score) for hit in index.as_retriever(mode).retrieve("word3 sleeps")] for mode in ("lexical", "dense", "hybrid")]


@pytest.mark.parametrize("on_disk", [True, False])
async def test_compact_changes_no_answer_and_says_what_is_left(tmp_path: Path, on_disk: bool) -> None:
    with build(tmp_path / "i" if on_disk else None) as index:
        index.delete_ref_doc("d0")
        before = found(index)
        sizes = index.compact()
        assert (sizes["documents"], sizes["nodes"], sizes["rows"], sizes["dead_rows"]) == (5, 5, 5, 0)
        assert found(index) == before
        index.delete_ref_doc("d1")
        assert (await index.acompact())["rows"] == 4
        assert (await index.averify()).ok


async def test_what_an_index_opened_for_reading_may_do(tmp_path: Path) -> None:
    build(tmp_path / "i").close()
    with CorpusIndex.load(tmp_path / "i", read_only=True, embed_model=DeterministicEmbedding()) as index:
        assert index.verify().ok
        for change in (index.compact, lambda: index.verify(repair=True)):
            with pytest.raises(ReadOnlyIndexError):
                change()
        with pytest.raises(ReadOnlyIndexError):
            await index.averify(repair=True)


def test_problems_are_warnings_of_the_trace_and_repair_needs_the_model_only_for_lost_vectors(tmp_path: Path) -> None:
    build(tmp_path / "i").close()
    (tmp_path / "i" / "lengths-1.bin").unlink()
    assert CorpusIndex.repair(tmp_path / "i", embed_model=DeterministicEmbedding(model_name="another")).repaired
    file = tmp_path / "i" / "vectors-2.bin"
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(EmbeddingMismatchError):
        CorpusIndex.repair(tmp_path / "i", embed_model=DeterministicEmbedding(model_name="another"))
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as index:
        with capture_trace("check") as trace:
            problems = index.verify(repair=True).problems
        assert problems == ["The file 'vectors-2.bin' is damaged at rows 0 to 5."]
        assert [note.message for note in trace.all_notes() if note.level == "warning"] == problems
        assert index.verify().ok
