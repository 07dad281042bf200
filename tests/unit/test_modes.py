import pytest
from llama_index.core.schema import Document, QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex, RetrievalMode
from llama_index_advanced_rag.errors import ConfigurationError, ModeNotAvailableError, UnknownArgumentError
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.modes import AVAILABLE_MODES, BUILT_MODES, SearchedIndex, build_retriever, checked_mode, mode_options, place_or_part, takes_llm
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.unit_summaries import SharedSummaries, UnitSummaries
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM

TAX = MetadataFilters(filters=[MetadataFilter(key="kind", value="tax")])


@pytest.fixture
def searched() -> SearchedIndex:
    documents = [Document(text="The fox hunts.", id_="fox"), Document(text="Tax rose for the fox.", id_="tax", metadata={"kind": "tax"})]
    corpus = CorpusIndex.from_documents(documents, embed_model=DeterministicEmbedding()).corpus
    units = UnitScorer.of_corpus(corpus)
    shared = SharedSummaries(units, corpus, embed_model=DeterministicEmbedding())
    vectors = TextVectors(DeterministicEmbedding())
    return SearchedIndex(corpus, DeterministicEmbedding, lambda: units, lambda: shared, lambda: vectors)


@pytest.mark.parametrize("mode", AVAILABLE_MODES)
def test_each_built_mode_makes_the_retriever_it_names(mode: RetrievalMode, searched: SearchedIndex):
    retriever = build_retriever(searched, mode.value, similarity_top_k=1, filters=TAX, options={})
    assert type(retriever) is BUILT_MODES[mode].retriever
    assert retriever.stage == mode.value
    assert (retriever.similarity_top_k, retriever.filters) == (1, TAX)
    assert [hit.node.ref_doc_id for hit in retriever.retrieve("fox")] == ["tax"]


def test_names_are_members_or_values():
    assert checked_mode("hybrid") is checked_mode(RetrievalMode.HYBRID) is RetrievalMode.HYBRID


RUNS = "This version runs: auto, lexical, dense, hybrid, hierarchical, anchor, graph, vote."


@pytest.mark.parametrize("mode", [mode for mode in RetrievalMode if mode not in AVAILABLE_MODES])
def test_a_mode_that_is_not_built_says_so_and_names_those_that_are(mode: RetrievalMode):
    with pytest.raises(ModeNotAvailableError, match=f"The retrieval mode '{mode.value}' is not built yet. {RUNS}"):
        checked_mode(mode)


@pytest.mark.parametrize("mode", ["magic", "", None, 3, "Hybrid"])
def test_an_unknown_mode_names_those_that_are(mode: object):
    with pytest.raises(ConfigurationError, match=f"There is no retrieval mode {mode!r}. {RUNS}"):
        checked_mode(mode)


def test_only_what_a_user_can_choose_is_an_option():
    assert {"similarity_top_k", "filters", "fusion", "weights"} <= mode_options("hybrid")
    assert {"doc_ids", "node_ids"} <= mode_options("dense")
    assert {"strategy", "summaries", "tree", "llm", "min_share", "max_tokens", "candidates"} <= mode_options("hierarchical")
    assert {"embeddings", "llm", "max_unit_tokens", "candidates"} <= mode_options("anchor")
    assert {"embeddings", "prior_share", "damping", "guard", "second_hop", "language", "edge_weights"} <= mode_options("graph")
    assert {"top_n", "document_weight", "share_weight", "neighbour_decay", "guard"} <= mode_options("vote")
    assert {"router", "routes", "default", "max_routes", "explain", "llm", "timeout_s"} <= mode_options("auto")
    given = {"self", "retriever", "retrievers", "postings", "nodes", "units", "vector_store", "embed_model", "lexical", "dense", "graph", "vectors"}
    for mode in AVAILABLE_MODES:
        assert not mode_options(mode) & given, mode


@pytest.mark.parametrize(
    ("mode", "options", "wanted"),
    [
        ("lexical", {}, False),
        ("auto", {}, False),
        ("auto", {"router": "embedding"}, False),
        ("auto", {"router": "llm"}, True),
        ("hybrid", {}, False),
        ("hybrid", {"num_queries": 3}, True),
        ("hierarchical", {}, False),
        ("hierarchical", {"strategy": "merge_up"}, False),
        ("hierarchical", {"summaries": True}, True),
        ("hierarchical", {"tree": True}, True),
        ("hierarchical", {"summaries": None, "tree": True}, True),
        ("hierarchical", {"summaries": False}, False),
        ("hierarchical", {"summaries": False, "tree": True}, False),
        ("hierarchical", {"summaries": object(), "tree": True}, False),
        ("anchor", {}, True),
        ("graph", {}, False),
        ("graph", {"embeddings": True}, False),
        ("vote", {}, False),
    ],
)
def test_an_llm_is_asked_where_it_has_something_to_do(mode: str, options: dict[str, object], wanted: bool):
    assert takes_llm(mode, options) is wanted


def test_summaries_of_ones_own_and_made_ones(searched: SearchedIndex):
    llm = ScriptedLLM(["About it."])
    own = UnitSummaries(searched.units(), searched.corpus, embed_model=DeterministicEmbedding())
    options = {"strategy": "collapsed"}
    for given, calls in (({"summaries": own}, 0), ({"summaries": True}, 0), ({"llm": llm}, 2), ({"summaries": True, "llm": llm}, 0), ({"tree": True}, 0)):
        llm.prompts.clear()
        retriever = build_retriever(searched, "hierarchical", similarity_top_k=9, filters=None, options={**options, **given})
        assert any("summary_of" in hit.node.metadata for hit in retriever.retrieve("fox")), given
        assert len(llm.prompts) == calls, given


def test_no_summaries_means_none(searched: SearchedIndex):
    def unavailable() -> None:
        raise AssertionError("summaries were asked for")

    llm = ScriptedLLM(["About it."])
    without = searched._replace(summaries=unavailable)
    for options in ({}, {"llm": None}, {"summaries": None}, {"summaries": False}, {"summaries": False, "llm": llm}):
        assert build_retriever(without, "hierarchical", similarity_top_k=9, filters=None, options=options).retrieve("fox")
    assert llm.prompts == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"summaries": "yes"}, "summaries is 'yes'. It must be True, False, None or UnitSummaries"),
        ({"summaries": False, "tree": True}, "tree is True and summaries is False"),
        ({"summaries": False, "strategy": "collapsed"}, "strategy is 'collapsed' and there are no summaries"),
    ],
)
def test_options_of_summaries_that_contradict_each_other(searched: SearchedIndex, options: dict[str, object], message: str):
    with pytest.raises(ConfigurationError, match=message):
        build_retriever(searched, "hierarchical", similarity_top_k=1, filters=None, options=options)


def test_summaries_that_are_given_are_clustered_or_not_already(searched: SearchedIndex):
    own = UnitSummaries(searched.units(), searched.corpus, embed_model=DeterministicEmbedding())
    with pytest.raises(ConfigurationError, match=r"Leave tree out and pass UnitSummaries\(..., tree=True\)"):
        build_retriever(searched, "hierarchical", similarity_top_k=1, filters=None, options={"summaries": own, "tree": True})


def test_anchors_without_embeddings_embed_nothing(searched: SearchedIndex):
    def unavailable() -> None:
        raise AssertionError("the embedding model was asked for")

    retriever = build_retriever(searched._replace(embed_model=unavailable), "anchor", similarity_top_k=1, filters=None, options={"embeddings": False})
    assert retriever.retrieve("fox")


def test_a_graph_asks_for_vectors_of_facts_only_where_it_is_told_to(searched: SearchedIndex):
    def unavailable() -> TextVectors:
        raise AssertionError("the vectors were asked for")

    without = searched._replace(vectors=unavailable)
    assert build_retriever(without, "graph", similarity_top_k=1, filters=None, options={}).retrieve("fox")
    for mode, options in (("graph", {"embeddings": True}), ("vote", {})):
        with pytest.raises(AssertionError, match="the vectors were asked for"):
            build_retriever(without, mode, similarity_top_k=1, filters=None, options=options)


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("vote", {"top_n": 0}, "top_n is 0"),
        ("vote", {"document_weight": 1.5}, "document_weight is 1.5. It must be from 0 to 1."),
        ("vote", {"share_weight": -0.1}, "share_weight is -0.1"),
        ("vote", {"neighbour_decay": float("nan")}, "neighbour_decay is nan"),
        ("vote", {"guard": -1}, "guard is -1"),
        ("graph", {"damping": 1.0}, "damping is 1.0"),
    ],
)
def test_numbers_that_cannot_work_are_refused_before_a_question(searched: SearchedIndex, mode: str, options: dict[str, object], message: str):
    with pytest.raises(ConfigurationError, match=message):
        build_retriever(searched, mode, similarity_top_k=1, filters=None, options=options)


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


def test_auto_takes_a_router_by_name_or_as_it_is(searched: SearchedIndex):
    def routed(question: str, **options: object) -> tuple[str, str]:
        retriever = build_retriever(searched, "auto", similarity_top_k=3, filters=None, options=options)
        assert isinstance(retriever, AdaptiveRetriever)
        found = retriever.search(QueryBundle(question))
        return found.decision.router, found.taken[0]

    llm = ScriptedLLM(['{"routes": [{"name": "complex", "reason": "r"}]}'])
    assert routed("What does chapter 2 say?") == ("rules", "structural")
    assert routed("What does chapter 2 say?", router="rules") == ("rules", "structural")
    assert routed("fox", router="embedding")[0] == "embedding"
    assert routed("fox", router="llm", llm=llm) == ("llm", "complex")
    assert routed("fox", router=lambda question: "simple") == ("function", "simple")
    assert routed("fox", router=lambda question: "own", routes={"own": LexicalRetriever(searched.corpus.postings, searched.corpus)}) == ("function", "own")
    for options, message in (({"router": "magic"}, "router is 'magic'"), ({"router": "llm"}, "there is no LLM")):
        with pytest.raises(ConfigurationError, match=message):
            routed("fox", **options)


def test_structural_questions_look_for_places_or_for_parts():
    assert [place_or_part(question) for question in ("In which section is leave?", "What was net income in the second quarter of 2022?")] == ["places", "parts"]
