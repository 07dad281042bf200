"""The steps of a change, driven by hand: the test plays the embedding model."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, Document, MetadataMode, TextNode, TransformComponent

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.embeddings.requests import adrive, checked, drive
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.indexing import BATCH_NODES, FAILURES_IN_A_ROW, ChangeRun
from llama_index_advanced_rag.ready_nodes import content_hash, embed_nodes, ready_nodes
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.update_report import UpdateReport


class OneNode(TransformComponent):
    """Makes one node of each document, whatever its length."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        return [TextNode(text=node.get_content(MetadataMode.NONE), id_=f"{node.node_id}.0", relationships={"1": node.as_related_node_info()}) for node in nodes]


def make_run(*, max_tokens: int | None = None, transformations: Sequence[TransformComponent] | None = None, corpus: Corpus | None = None) -> ChangeRun:
    corpus = corpus or Corpus.create(None, CorpusSettings(analyzer=TextAnalyzer().to_dict()))
    made = [OneNode()] if transformations is None else list(transformations)
    return ChangeRun(corpus, lambda: made, lambda: EmbeddingWindow(max_tokens, lambda text: len(text.split())))


def document(name: str, text: str | None = None, **metadata: Any) -> Document:
    return Document(text=f"text of {name}" if text is None else text, id_=name, metadata=metadata)


def play(run: ChangeRun, documents: Sequence[Document], *, poison: str = "poison", deleted: Sequence[str] = ()) -> list[list[str]]:
    """Run the steps to their end; a request that holds the poison fails. What was asked for."""
    steps, asked = run.steps(documents, deleted), []
    try:
        request = next(steps)
        while True:
            asked.append(list(request))
            failed = any(poison in text for text in request)
            request = steps.send(ConnectionError("the service is down") if failed else [np.full(4, len(text) + 1, dtype=np.float32) for text in request])
    except StopIteration:
        return asked


def test_the_steps_ask_for_texts_and_commit_what_comes_back():
    run = make_run()
    assert play(run, [document("a"), document("b", "longer text of b")]) == [["text of a", "longer text of b"]]
    assert (run.report.added, run.report.embedded, run.report.reused) == (["a", "b"], 2, 0)
    assert list(run.corpus.document_hashes(["a", "b"])) == ["a", "b"]


def test_texts_are_asked_for_once_shortest_first_and_never_again():
    run = make_run()
    assert play(run, [document("a", "the same text"), document("b", "the same text"), document("c", "short")]) == [["short", "the same text"]]
    assert (run.report.embedded, run.report.reused) == (2, 1)
    again = make_run(corpus=run.corpus)
    assert play(again, [document("d", "short"), document("a", "the same text")]) == []
    assert (again.report.added, again.report.unchanged, again.report.reused) == (["d"], ["a"], 1)


def test_a_batch_is_committed_before_the_next_is_asked_for():
    run = make_run()
    steps = run.steps([document(f"{number:04}") for number in range(BATCH_NODES + 1)], [])
    first = next(steps)
    assert len(first) == BATCH_NODES
    assert run.corpus.sizes()["documents"] == 0
    second = steps.send([np.ones(4, dtype=np.float32)] * BATCH_NODES)
    assert len(second) == 1
    assert run.corpus.sizes()["documents"] == BATCH_NODES
    steps.close()
    assert run.corpus.sizes()["documents"] == BATCH_NODES, "a run that is dropped keeps what it committed"


def test_a_failing_batch_is_tried_document_by_document_and_only_the_failing_one_is_skipped():
    run = make_run()
    asked = play(run, [document("a"), document("b", "poison"), document("c")])
    assert asked == [["poison", "text of a", "text of c"], ["text of a"], ["poison"], ["text of c"]]
    assert run.report.added == ["a", "c"]
    assert [(item.ref_doc_id, item.reason) for item in run.report.skipped] == [
        ("b", "could not be embedded, the stored version is kept: ConnectionError: the service is down")
    ]


def test_after_some_failures_in_a_row_the_model_is_left_alone():
    run = make_run()
    bad = [document(f"bad {number}", f"poison {number}") for number in range(FAILURES_IN_A_ROW + 4)]
    asked = play(run, [document("good"), *bad])
    assert len(asked) == 1 + 1 + FAILURES_IN_A_ROW
    assert run.report.added == ["good"]
    reasons = [item.reason for item in run.report.skipped]
    assert sum("could not be embedded" in reason for reason in reasons) == FAILURES_IN_A_ROW
    assert reasons[-1] == "not tried: the embedding model failed 3 times in a row"


def test_a_success_between_failures_starts_the_count_anew():
    run = make_run()
    documents = [document(f"{number}", f"poison {number}" if number % 3 else f"fine {number}") for number in range(12)]
    play(run, documents)
    assert run.report.added == ["0", "3", "6", "9"]
    assert not any("not tried" in item.reason for item in run.report.skipped)


def test_when_nothing_could_be_done_the_first_error_is_raised():
    run = make_run()
    with pytest.raises(ConnectionError, match="the service is down"):
        play(run, [document("a", "poison")])
    assert run.corpus.sizes()["documents"] == 0


def test_a_document_that_cannot_be_split_is_skipped_and_the_others_go_on():
    class Picky(OneNode):
        def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
            if "bad" in nodes[0].node_id:
                raise ValueError("I do not like it")
            return super().__call__(nodes, **kwargs)

    run = make_run(transformations=[Picky()])
    play(run, [document("bad"), document("good")])
    assert run.report.added == ["good"]
    assert [item.reason for item in run.report.skipped] == ["could not be split into nodes: ValueError: I do not like it"]


def test_nodes_that_do_not_name_their_document_are_refused():
    class Orphans(TransformComponent):
        def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
            return [TextNode(text="an orphan", id_="orphan")]

    with pytest.raises(ConfigurationError, match=r"made the node 'orphan' whose source is None, not the document 'a'\. Set NodeRelationship\.SOURCE"):
        play(make_run(transformations=[Orphans()]), [document("a")])


def test_a_transformation_that_writes_into_its_document_does_not_change_the_users():
    class Writer(OneNode):
        def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
            nodes[0].metadata["seen"] = True
            nodes[0].excluded_llm_metadata_keys.append("seen")
            return super().__call__(nodes, **kwargs)

    mine = document("a", year=1)
    before = (mine.hash, mine.model_dump())
    run = make_run(transformations=[Writer()])
    play(run, [mine])
    assert (mine.hash, mine.model_dump()) == before
    again = make_run(transformations=[Writer()], corpus=run.corpus)
    play(again, [mine])
    assert again.report.unchanged == ["a"]


def test_repeated_ids_empty_texts_and_unknown_deletes_are_said():
    run = make_run()
    play(run, [document("x", "one"), document("x", "two"), document("blank", "  \n")], deleted=["x", "nobody", "nobody"])
    assert run.report.warnings == [
        "The id 'x' was given 2 times in one call; the last document counts.",
        "The document 'blank' has no text; it is listed in the index but cannot be found.",
    ]
    assert [item.ref_doc_id for item in run.report.skipped] == ["x", "nobody"]
    assert run.corpus.postings.search("two", top_k=5) == [("x.0", pytest.approx(run.corpus.postings.search("two", top_k=5)[0][1]))]


def test_chunks_beyond_the_window_are_counted_in_one_warning():
    run = make_run(max_tokens=3)
    play(run, [document("a", "one two three"), document("b", "one two three four"), document("c", "one two three four five")])
    assert run.report.warnings == [
        "2 of 3 chunks are longer than the 3 tokens the embedding model reads: the rest of them counts for word search only. Choose a smaller chunk_size."
    ]


def test_a_sample_is_kept_for_the_check_of_the_language():
    run = make_run()
    play(run, [document(f"{number:03}", f"text {number}") for number in range(120)])
    assert 0 < len(run.sample) <= 50
    again = make_run(corpus=run.corpus)
    play(again, [document("000", "text 0")])
    assert again.sample == [], "what is not embedded is not looked at"


def test_progress_counts_every_document_once():
    run, counted = make_run(), []
    run.on_progress = lambda documents, _: counted.append(documents)
    play(run, [document("same"), document("bad", "poison"), document("fine"), document("blank", "")])
    play(again := make_run(corpus=run.corpus), [document("same")])
    assert sum(counted) == 4
    assert again.report.unchanged == ["same"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([np.ones(2, dtype=np.float32)], "gave 1 vectors for 2 texts"),
        ([np.ones(2, dtype=np.float32), np.array([1.0, np.nan], dtype=np.float32)], "NaN or infinite"),
        ([np.ones(2, dtype=np.float32), np.zeros(2, dtype=np.float32)], "a vector of zeros"),
    ],
)
def test_vectors_that_cannot_be_used_are_an_error(answer: list, words: str):
    error = checked(answer, 2)
    assert isinstance(error, ConfigurationError)
    assert words in str(error)


def test_an_error_and_good_vectors_pass_the_check():
    error, good = ConnectionError("down"), [np.ones(2, dtype=np.float32)]
    assert checked(error, 1) is error
    assert checked(good, 1) is good


def test_the_sync_driver_asks_the_model_only_when_there_is_something_to_embed():
    def unavailable() -> None:
        raise AssertionError("the model was asked for")

    run = make_run()
    drive(run.steps([], ["nobody"]), unavailable)
    model = DeterministicEmbedding()
    drive(make_run(corpus=run.corpus).steps([document("a")], []), lambda: model)
    assert model.texts == ["text of a"]


def test_a_bar_counts_the_texts_while_they_are_embedded(capsys: pytest.CaptureFixture[str]):
    documents = [document(f"d{number}") for number in range(25)]
    quiet, shown, model = make_run(), make_run(), DeterministicEmbedding()
    drive(quiet.steps(documents, []), lambda: model)
    assert capsys.readouterr().err == ""
    drive(shown.steps(documents, []), lambda: model, show_progress=True)
    assert "0/25" in capsys.readouterr().err
    assert shown.report == quiet.report
    assert model.texts[:25] == model.texts[25:]


async def test_the_async_driver_does_what_the_sync_one_does():
    documents = [document("a"), document("b", "poison b"), document("c")]
    one, two, model = make_run(), make_run(), DeterministicEmbedding(fail_on="poison")
    drive(one.steps(documents, []), lambda: model)
    await adrive(two.steps(documents, []), lambda: model)
    assert one.report == two.report
    assert one.corpus.document_hashes(["a", "b", "c"]) == two.corpus.document_hashes(["a", "b", "c"])


async def test_the_async_driver_hands_an_error_on():
    with pytest.raises(ConnectionError, match="the embedding service is down"):
        await adrive(make_run().steps([document("a", "poison")], []), lambda: DeterministicEmbedding(fail_on="poison"))


def test_ready_nodes_are_embedded_once_a_text():
    run, model = make_run(), DeterministicEmbedding()
    nodes = [TextNode(text="same"), TextNode(text="same"), TextNode(text="other")]
    vectors = embed_nodes(run.corpus, model, ready_nodes(run.corpus, nodes))
    assert sorted(model.texts) == ["other", "same"]
    assert set(vectors) == {content_hash("same"), content_hash("other")}


def test_content_hashes_are_stable_and_take_any_text():
    assert content_hash("text") == "982d9e3eb996f559e633f4d194def376", "32 digits of SHA-256"
    assert content_hash("half a pair \ud83d") != content_hash("half a pair ")


def test_a_report_reads_as_counts_and_reasons_and_is_json():
    run = make_run()
    play(run, [document("a"), document("b", "poison")], deleted=["nobody"])
    assert str(run.report).splitlines() == [
        "1 added, 2 skipped; 1 text embedded, 0 reused",
        "  skipped nobody: not in the index, so there was nothing to delete",
        "  skipped b: could not be embedded, the stored version is kept: ConnectionError: the service is down",
    ]
    assert run.report.to_dict()["skipped"][0] == {"ref_doc_id": "nobody", "reason": "not in the index, so there was nothing to delete"}
    assert str(UpdateReport()) == "nothing to do; 0 texts embedded, 0 reused"
    assert not UpdateReport().anything_done()


def test_a_real_splitter_goes_through_the_steps():
    run = make_run(transformations=[SentenceSplitter(chunk_size=20, chunk_overlap=0)])
    play(run, [document("a", "One sentence is here. Another sentence is there. A third one stands behind. And a fourth one ends it.")])
    assert len(run.corpus.describe_documents()) == 1
    assert run.corpus.sizes()["nodes"] > 1
    assert inspect.isgenerator(run.steps([], []))
