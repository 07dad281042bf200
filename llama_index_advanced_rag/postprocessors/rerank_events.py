"""The events of a reranker, in both of LlamaIndex's systems, always in pairs."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle

dispatcher = get_dispatcher(__name__)


@contextmanager
def rerank_events(
    callback_manager: CallbackManager, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None, *, top_n: int, model_name: str
) -> Generator[list[NodeWithScore], None, None]:
    """Announce a rerank for the block and its end after it, whether it returns or raises.

    Args:
        callback_manager: receives the legacy `CBEventType.RERANKING` events.
        nodes: what is reranked.
        query_bundle: the question.
        top_n: most nodes returned.
        model_name: name of the scorer.

    Yields:
        An empty list: put the result into it, and the end events carry it.
    """
    result: list[NodeWithScore] = []
    query_str = query_bundle.query_str if query_bundle is not None else ""
    payload: dict[str, Any] = {
        EventPayload.NODES: list(nodes),
        EventPayload.MODEL_NAME: model_name,
        EventPayload.QUERY_STR: query_str,
        EventPayload.TOP_K: top_n,
    }
    dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=list(nodes), top_n=top_n, model_name=model_name))
    try:
        with callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield result
            event.on_end(payload={EventPayload.NODES: list(result)})
    finally:
        dispatcher.event(ReRankEndEvent(nodes=list(result)))
