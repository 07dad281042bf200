"""What a query engine finds, as a retriever."""

from uuid import NAMESPACE_URL, uuid5

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, StreamingResponse
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.query_engines.engine_answers import aquery, text_of

_NAMESPACE = uuid5(NAMESPACE_URL, "llama-index-advanced-rag/engine-answer")


class EngineRetriever(BaseRetriever):
    """The nodes of a query engine, for whoever merges them with others.

    An engine that can retrieve (`retrieve`, as retriever query engines do) is asked for its nodes, its postprocessors included. Any other answers
    the question (as many LLM calls as that takes), and its source nodes are taken; where it has none, its answer is a node, with the metadata
    `engine`.

    Args:
        engine: the engine.
        name: what it is called, for the metadata of an answer without sources.
    """

    def __init__(self, engine: BaseQueryEngine, name: str) -> None:
        super().__init__(callback_manager=engine.callback_manager)
        self._engine, self._name = engine, name

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if can_retrieve(self._engine):
            try:
                return self._engine.retrieve(query_bundle)
            except NotImplementedError:  # an engine around another one may offer what that cannot do
                pass
        response = self._engine.query(query_bundle)
        return self._sources(response.get_response() if isinstance(response, StreamingResponse) else response)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if can_retrieve(self._engine):
            own = getattr(self._engine, "aretrieve", None)
            try:
                return await in_thread(self._engine.retrieve, query_bundle) if own is None else await own(query_bundle)
            except NotImplementedError:  # as in _retrieve
                pass
        response = await aquery(self._engine, query_bundle)
        return self._sources(await response.get_response() if isinstance(response, AsyncStreamingResponse) else response)

    def _sources(self, response: RESPONSE_TYPE) -> list[NodeWithScore]:
        text = text_of(response)
        if response.source_nodes or not text:
            return list(response.source_nodes)
        return [NodeWithScore(node=TextNode(id_=str(uuid5(_NAMESPACE, f"{self._name}\n{text}")), text=text, metadata={"engine": self._name}), score=None)]

    def __repr__(self) -> str:
        return f"{type(self._engine).__name__} {self._name!r}"


def can_retrieve(engine: BaseQueryEngine) -> bool:
    """Whether an engine gives its nodes without answering."""
    return type(engine).retrieve is not BaseQueryEngine.retrieve
