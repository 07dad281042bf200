import inspect
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine, ContextChatEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import VectorIndexRetriever

from llama_index_advanced_rag.call_arguments import _INSTEAD, accepted_names, refuse_unknown, share_out
from llama_index_advanced_rag.errors import UnknownArgumentError
from llama_index_advanced_rag.modes import mode_options
from llama_index_advanced_rag.searchable import _CHAT_OPTIONS, _ENGINE_OPTIONS

TAKERS = {"the query engine": {"streaming", "callback_manager"}, "the retriever": {"filters", "callback_manager"}}


def test_names_are_those_that_can_be_given_by_keyword():
    def takes(one: int, /, two: int, *rest: int, three: int = 3, given: int = 0, **more: Any) -> None: ...

    assert accepted_names(takes, without=("given",)) == {"two", "three"}


def test_each_taker_gets_what_it_accepts():
    assert share_out({"streaming": True, "filters": None, "callback_manager": 1}, TAKERS) == [
        {"streaming": True, "callback_manager": 1},
        {"filters": None, "callback_manager": 1},
    ]
    assert share_out({}, TAKERS) == [{}, {}]


def test_what_nobody_accepts_is_named_with_what_each_accepts():
    with pytest.raises(UnknownArgumentError) as caught:
        refuse_unknown({"filters": None, "fliters": None, "a": 1}, TAKERS)
    assert str(caught.value) == (
        "Nothing accepts the argument(s) 'a', 'fliters'. "
        "Accepted are, by the query engine: callback_manager, streaming; the retriever: callback_manager, filters."
    )
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("response_mode", r"RetrieverQueryEngine\.from_args"),
        ("text_qa_template", "answer_prompt"),
        ("similarity_cutoff", "SimilarityPostprocessor"),
        ("vector_store_query_mode", "fusion and weights"),
        ("doc_ids", "'ref_doc_id'"),
        ("system_prompt", r"ChatMode\.CONTEXT"),
        ("mode", "retriever_mode"),
    ],
)
def test_an_argument_of_llamaindex_says_what_to_write_instead(name: str, words: str):
    with pytest.raises(UnknownArgumentError, match=f"For '{name}': .*{words}"):
        refuse_unknown({name: 1}, TAKERS)


def test_every_argument_of_the_stock_index_is_taken_or_explained():
    """What a user may have in `as_query_engine` and `as_chat_engine` of a VectorStoreIndex."""
    stock = [RetrieverQueryEngine.from_args, VectorIndexRetriever, ContextChatEngine.from_defaults, CondensePlusContextChatEngine.from_defaults]
    names = set().union(*map(accepted_names, [*stock, CondenseQuestionChatEngine.from_defaults])) | set(
        inspect.signature(VectorStoreIndex.as_retriever).parameters
    )
    taken = mode_options("hybrid") | _ENGINE_OPTIONS | _CHAT_OPTIONS | {"llm", "self", "kwargs", "retriever", "query_engine"}
    assert sorted(names - taken - set(_INSTEAD)) == []
