"""Keyword arguments on their way through an index: which part takes which, and what to write instead of those that none takes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from llama_index_advanced_rag.errors import UnknownArgumentError

_SYNTHESIS = (
    "answers come from one call with numbered sentences; for LlamaIndex's response synthesizers use "
    "RetrieverQueryEngine.from_args(index.as_retriever(...), llm=..., and their arguments)"
)
_RANKING = "choose with mode (in engines retriever_mode), fusion and weights"
_ONLY_DENSE = "filter on the metadata key 'ref_doc_id', or use the mode 'dense', which takes it"
_STOCK_CHAT = "it belongs to LlamaIndex's chat engines: ChatMode.CONTEXT, CONDENSE_PLUS_CONTEXT and SIMPLE"
_INSTEAD = {
    **dict.fromkeys(("response_mode", "response_synthesizer", "refine_template", "summary_template", "simple_template", "output_cls"), _SYNTHESIS),
    **dict.fromkeys(("structured_answer_filtering", "program_factory", "multimodal"), _SYNTHESIS),
    **dict.fromkeys(("chat_content_qa_template", "chat_content_refine_template"), _SYNTHESIS),
    **dict.fromkeys(("vector_store_query_mode", "alpha", "sparse_top_k", "hybrid_top_k"), _RANKING),
    **dict.fromkeys(("doc_ids", "node_ids"), _ONLY_DENSE),
    **dict.fromkeys(("system_prompt", "prefix_messages", "context_prompt", "context_template"), _STOCK_CHAT),
    **dict.fromkeys(("context_refine_prompt", "context_refine_template", "skip_condense"), _STOCK_CHAT),
    "text_qa_template": "use answer_prompt, a template with context_str and query_str that asks for citations",
    "condense_question_prompt": "use condense_prompt, a template with chat_history and question",
    "memory_cls": "use memory=, an object",
    **dict.fromkeys(
        ("second_hop", "damping", "prior_share", "strategy", "summaries"),
        "it belongs to one retrieval mode; in 'auto' give that route a retriever of its own, routes={'complex': index.as_retriever('graph', second_hop=0.5)}",
    ),
    "similarity_cutoff": "use node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=...)]",
    "use_async": "call aquery(), achat() or aretrieve()",
    "mode": "in engines it is called retriever_mode",
    "retriever_mode": "in as_retriever it is called mode",
    "streaming": "call stream_chat() or astream_chat()",
    "service_context": "pass llm= and embed_model=",
    "storage_context": "the index has stores of its own; pass persist_dir= and, for your own vectors, vector_store=",
    "index": "call the method of the index itself",
}


def accepted_names(function: Callable[..., Any], *, without: tuple[str, ...] = ()) -> set[str]:
    """Names of the parameters that can be given by keyword."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return {item.name for item in parameters if item.kind in kinds and item.name not in ("self", *without)}


def refuse_unknown(options: Mapping[str, Any], takers: Mapping[str, set[str]]) -> None:
    """Check that each option has a taker.

    Raises:
        UnknownArgumentError: one has none; the message says what to write instead and lists what each taker accepts.
    """
    unknown = sorted(name for name in options if not any(name in names for names in takers.values()))
    if unknown:
        instead = "".join(f" For {name!r}: {_INSTEAD[name]}." for name in unknown if name in _INSTEAD)
        accepted = "; ".join(f"{taker}: {', '.join(sorted(names))}" for taker, names in takers.items())
        raise UnknownArgumentError(f"Nothing accepts the argument(s) {', '.join(map(repr, unknown))}.{instead} Accepted are, by {accepted}.")


def share_out(options: Mapping[str, Any], takers: Mapping[str, set[str]]) -> list[dict[str, Any]]:
    """The options of each taker, in their order; one that several accept goes to all of them.

    Raises:
        UnknownArgumentError: an option has no taker.

    Example:
        >>> share_out({"llm": 1, "top_n": 2}, {"engine": {"llm"}, "retriever": {"llm", "top_n"}})
        [{'llm': 1}, {'llm': 1, 'top_n': 2}]
    """
    refuse_unknown(options, takers)
    return [{name: value for name, value in options.items() if name in names} for names in takers.values()]
