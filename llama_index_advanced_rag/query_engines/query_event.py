"""LlamaIndex's callback event around a query."""

from collections.abc import Generator
from contextlib import contextmanager

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.schema import QueryBundle


@contextmanager
def query_event(callback_manager: CallbackManager, query_bundle: QueryBundle) -> Generator[list[RESPONSE_TYPE], None, None]:
    """The event of a query; the block appends the response."""
    outcome: list[RESPONSE_TYPE] = []
    with callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: query_bundle.query_str}) as event:
        yield outcome
        event.on_end(payload={EventPayload.RESPONSE: outcome[0]})
