import pytest
from llama_index.core.schema import Document
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex, RetrievalMode
from llama_index_advanced_rag.errors import ConfigurationError, ModeNotAvailableError, UnknownArgumentError
from llama_index_advanced_rag.modes import AVAILABLE_MODES, BUILT_MODES, SearchedIndex, build_retriever, checked_mode, mode_options
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding

TAX = MetadataFilters(filters=[MetadataFilter(key="kind", value="tax")])


@pytest.fixture
def searched() -> SearchedIndex:
    documents = [Document(text="The fox hunts.", id_="fox"), Document(text="Tax rose for the fox.", id_="tax", metadata={"kind": "tax"})]
    return SearchedIndex(CorpusIndex.from_documents(documents, embed_model=DeterministicEmbedding()).corpus, DeterministicEmbedding)


@pytest.mark.parametrize("mode", AVAILABLE_MODES)
def test_each_built_mode_makes_the_retriever_it_names(mode: RetrievalMode, searched: SearchedIndex):
    retriever = build_retriever(searched, mode.value, similarity_top_k=1, filters=TAX, options={})
    assert type(retriever) is BUILT_MODES[mode].retriever
    assert retriever.stage == mode.value
    assert (retriever.similarity_top_k, retriever.filters) == (1, TAX)
    assert [hit.node.ref_doc_id for hit in retriever.retrieve("fox")] == ["tax"]


def test_names_are_members_or_values():
    assert checked_mode("hybrid") is checked_mode(RetrievalMode.HYBRID) is RetrievalMode.HYBRID


@pytest.mark.parametrize("mode", [mode for mode in RetrievalMode if mode not in AVAILABLE_MODES])
def test_a_mode_that_is_not_built_says_so_and_names_those_that_are(mode: RetrievalMode):
    with pytest.raises(ModeNotAvailableError, match=f"The retrieval mode '{mode.value}' is not built yet. This version runs: lexical, dense, hybrid."):
        checked_mode(mode)


@pytest.mark.parametrize("mode", ["magic", "", None, 3, "Hybrid"])
def test_an_unknown_mode_names_those_that_are(mode: object):
    with pytest.raises(ConfigurationError, match=f"There is no retrieval mode {mode!r}. This version runs: lexical, dense, hybrid."):
        checked_mode(mode)


def test_only_what_a_user_can_choose_is_an_option():
    assert {"similarity_top_k", "filters", "fusion", "weights"} <= mode_options("hybrid")
    assert {"doc_ids", "node_ids"} <= mode_options("dense")
    for mode in AVAILABLE_MODES:
        assert not mode_options(mode) & {"self", "retrievers", "postings", "nodes", "vector_store", "embed_model"}


def test_an_option_of_another_mode_is_refused(searched: SearchedIndex):
    with pytest.raises(UnknownArgumentError, match="'fusion'.*by mode 'lexical'"):
        build_retriever(searched, "lexical", similarity_top_k=1, filters=None, options={"fusion": "weighted"})
    with pytest.raises(UnknownArgumentError, match="'embed_model'"):
        build_retriever(searched, "dense", similarity_top_k=1, filters=None, options={"embed_model": DeterministicEmbedding()})


def test_word_search_needs_no_embedding_model(searched: SearchedIndex):
    def unavailable() -> None:
        raise AssertionError("the embedding model was asked for")

    retriever: TracedRetriever = build_retriever(searched._replace(embed_model=unavailable), "lexical", similarity_top_k=1, filters=None, options={})
    assert retriever.retrieve("fox")
