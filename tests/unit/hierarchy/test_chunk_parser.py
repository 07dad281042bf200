import asyncio
import copy
import logging
import pickle
from itertools import pairwise

import pytest
from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import MetadataMode, NodeRelationship, TextNode

from llama_index_advanced_rag.embeddings.window import EmbeddingWindow
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.testing import DeterministicEmbedding

TEXT = " ".join(f"Sentence number {number} speaks about the subject at hand." for number in range(60))


def count_words(text: str) -> int:
    return len(text.split())


def word_parser(max_tokens: int | None = None, **kwargs) -> SentenceChunkParser:
    parser = SentenceChunkParser(language="en", **kwargs)
    parser._window = EmbeddingWindow(max_tokens, count_words)
    return parser


def document(**kwargs) -> Document:
    settings = {"text": TEXT, "id_": "folder/a.txt", "metadata": {"title": "A title", "file_name": "a.txt"}, "excluded_embed_metadata_keys": ["file_name"]}
    return Document(**{**settings, **kwargs})


def as_plain(nodes) -> list[dict]:
    return [node.to_dict() for node in nodes]


def test_nodes_are_slices_of_their_document() -> None:
    source = document()
    nodes = word_parser(chunk_size=40, chunk_overlap=10).get_nodes_from_documents([source])
    assert len(nodes) > 10
    assert all(source.text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
    assert all(node.ref_doc_id == "folder/a.txt" for node in nodes)
    assert nodes[0].start_char_idx == 0
    assert nodes[-1].end_char_idx == len(TEXT)


def test_offsets_hold_where_chunks_repeat() -> None:
    source = document(text="Same words here. " * 40)
    nodes = word_parser(chunk_size=12, chunk_overlap=3).get_nodes_from_documents([source])
    starts = [node.start_char_idx for node in nodes]
    assert starts == sorted(set(starts))
    assert len({node.node_id for node in nodes}) == len(nodes)
    assert nodes[-1].end_char_idx == len(source.text.rstrip())


def test_what_is_embedded_fits_with_its_metadata() -> None:
    nodes = word_parser(chunk_size=20, chunk_overlap=5).get_nodes_from_documents([document()])
    assert max(count_words(node.get_content(metadata_mode=MetadataMode.EMBED)) for node in nodes) <= 20
    assert all(node.get_content(metadata_mode=MetadataMode.EMBED).startswith("title: A title\n\n") for node in nodes)


def test_links_run_through_each_document_and_not_across() -> None:
    nodes = word_parser(chunk_size=40, chunk_overlap=0).get_nodes_from_documents([document(), document(id_="b.txt")])
    by_id = {node.node_id: node for node in nodes}
    for before, after in pairwise(nodes):
        if before.ref_doc_id == after.ref_doc_id:
            assert before.next_node.node_id == after.node_id
            assert after.prev_node.node_id == before.node_id
            assert (after.prev_node.hash, after.prev_node.metadata) == (None, {})
        else:
            assert before.next_node is None
            assert after.prev_node is None
    assert len(by_id) == len(nodes)


def test_links_can_be_left_out() -> None:
    nodes = word_parser(chunk_size=40, chunk_overlap=0, include_prev_next_rel=False).get_nodes_from_documents([document()])
    assert all(set(node.relationships) == {NodeRelationship.SOURCE} for node in nodes)


def test_sync_async_pipeline_and_another_run_give_the_same_nodes() -> None:
    parser = word_parser(chunk_size=40, chunk_overlap=10)
    expected = as_plain(parser.get_nodes_from_documents([document()]))
    assert as_plain(asyncio.run(parser.aget_nodes_from_documents([document()]))) == expected
    assert as_plain(parser([document()])) == expected
    assert as_plain(asyncio.run(parser.acall([document()]))) == expected
    assert as_plain(IngestionPipeline(transformations=[parser], disable_cache=True).run(documents=[document()])) == expected
    assert as_plain(asyncio.run(IngestionPipeline(transformations=[parser], disable_cache=True).arun(documents=[document()]))) == expected


def test_an_edit_changes_only_the_chunks_it_touches() -> None:
    parser = word_parser(chunk_size=40, chunk_overlap=0)
    before = {node.node_id for node in parser.get_nodes_from_documents([document()])}
    after = {node.node_id for node in parser.get_nodes_from_documents([document(text=TEXT + " One more.")])}
    assert len(before ^ after) == 1


def test_pages_become_labels_that_are_not_embedded() -> None:
    pages = [TEXT[:1000], TEXT[1000:2000], TEXT[2000:]]
    source = document(metadata={"title": "T", "page_starts": [0, 1000, 2000]})
    nodes = word_parser(chunk_size=40, chunk_overlap=0).get_nodes_from_documents([source])
    labels = [node.metadata["page_label"] for node in nodes]
    assert labels[0] == "1"
    assert "1-2" in labels
    assert labels[-1] == str(len(pages))
    assert all("page_starts" not in node.metadata and "page_starts" not in node.source_node.metadata for node in nodes)
    assert all("page_label" not in node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes)
    assert all("page_label" in node.get_content(metadata_mode=MetadataMode.LLM) for node in nodes)


def test_metadata_keys_and_templates_are_carried_over_and_the_input_is_untouched() -> None:
    source = document(
        metadata={"title": "T", "page_starts": [0], "tags": ["x"]},
        excluded_llm_metadata_keys=["tags"],
        metadata_template="{value}",
        metadata_separator=" / ",
        text_template="{metadata_str} :: {content}",
    )
    before = copy.deepcopy(source)
    node = word_parser(chunk_size=40, chunk_overlap=0).get_nodes_from_documents([source])[0]
    assert source == before
    assert node.metadata == {"title": "T", "tags": ["x"], "page_label": "1"}
    assert node.excluded_llm_metadata_keys == ["tags"]
    assert node.get_content(metadata_mode=MetadataMode.LLM).startswith("T / 1 :: Sentence")
    node.metadata["tags"] = []
    assert source == before


def test_metadata_can_be_left_out() -> None:
    nodes = word_parser(chunk_size=40, chunk_overlap=0, include_metadata=False).get_nodes_from_documents([document()])
    assert all(node.metadata == {} for node in nodes)


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_empty_documents_give_no_nodes(text: str) -> None:
    assert SentenceChunkParser().get_nodes_from_documents([Document(text=text)]) == []
    assert SentenceChunkParser().get_nodes_from_documents([]) == []


def test_a_document_without_metadata() -> None:
    nodes = SentenceChunkParser().get_nodes_from_documents([Document(text="Hello there.", id_="d")], show_progress=False)
    assert [node.text for node in nodes] == ["Hello there."]
    assert nodes[0].metadata == {}


def test_nodes_of_another_parser_keep_their_source_and_offsets() -> None:
    source = document()
    parser = word_parser(chunk_size=40, chunk_overlap=0)
    sections = parser.get_nodes_from_documents([source])
    finer = word_parser(chunk_size=20, chunk_overlap=0).get_nodes_from_documents(sections)
    assert len(finer) > len(sections)
    assert all(node.ref_doc_id == source.id_ and source.text[node.start_char_idx : node.end_char_idx] == node.text for node in finer)
    assert word_parser(chunk_size=20, chunk_overlap=0).get_nodes_from_documents([TextNode(text="Alone.", id_="n")])[0].ref_doc_id == "n"


def test_long_metadata_is_capped_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    source = document(metadata={"title": "word " * 90}, excluded_embed_metadata_keys=[])
    with caplog.at_level(logging.WARNING):
        nodes = word_parser(120, chunk_size=120, chunk_overlap=0).get_nodes_from_documents([source])
    assert "takes 91 tokens, 48 are reserved" in caplog.text
    assert max(count_words(node.text) for node in nodes) > 60


def test_a_size_beyond_the_window_is_allowed_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert SentenceChunkParser.for_model(DeterministicEmbedding(), chunk_size=5000).chunk_size == 5000
    assert caplog.text == ""


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_impossible_sizes_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"chunk_size={size} with chunk_overlap={overlap} cannot work"):
        SentenceChunkParser(chunk_size=size, chunk_overlap=overlap)


def test_serialised_form() -> None:
    plain = SentenceChunkParser(chunk_size=99, language="fr")
    again = SentenceChunkParser.from_dict(plain.to_dict())
    assert again.to_dict() == plain.to_dict()
    assert again.get_nodes_from_documents([document()]) == plain.get_nodes_from_documents([document()])


def test_a_parser_of_a_model_asks_for_that_model_again() -> None:
    model = DeterministicEmbedding(dimensions=8)
    data = SentenceChunkParser.for_model(model, chunk_size=50).to_dict()
    with pytest.raises(ConfigurationError, match=r"counts tokens of 'DeterministicEmbedding\|deterministic\|dimensions=8' but has not got that model"):
        SentenceChunkParser.from_dict(data).get_nodes_from_documents([document()])
    with pytest.raises(ConfigurationError, match=r"not of 'DeterministicEmbedding\|deterministic\|dimensions=16'"):
        SentenceChunkParser.from_dict(data, embed_model=DeterministicEmbedding(dimensions=16))
    assert SentenceChunkParser.from_dict(data, embed_model=model).get_nodes_from_documents([document()])


def test_a_parser_can_be_sent_to_another_process() -> None:
    parser = SentenceChunkParser.for_model(DeterministicEmbedding(), chunk_size=50)
    again = pickle.loads(pickle.dumps(parser))
    assert as_plain(again.get_nodes_from_documents([document()])) == as_plain(parser.get_nodes_from_documents([document()]))


def test_the_users_own_ids_are_kept() -> None:
    parser = SentenceChunkParser(chunk_size=50, id_func=lambda i, doc: f"{doc.node_id}#{i}")
    assert [node.node_id for node in parser.get_nodes_from_documents([document()])][:2] == ["folder/a.txt#0", "folder/a.txt#1"]
