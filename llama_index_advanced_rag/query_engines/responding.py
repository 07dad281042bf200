"""From a turn and a writer to LlamaIndex's response, whole or as a stream."""

from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent

from llama_index_advanced_rag.answering.turn import Turn
from llama_index_advanced_rag.answering.writer import AnswerWriter

dispatcher = get_dispatcher(__name__)


def respond(writer: AnswerWriter, turn: Turn, *, streaming: bool) -> RESPONSE_TYPE:
    """The answer of a turn whose nodes are known; a stream completes the turn when it ends or is dropped."""
    dispatcher.event(SynthesizeStartEvent(query=turn.bundle))
    response: RESPONSE_TYPE
    if streaming:
        pieces = writer.stream(turn)
        turn.refresh_metadata()
        response = StreamingResponse(pieces, source_nodes=turn.source_nodes, metadata=turn.metadata)  # type: ignore[arg-type]
    else:
        response = Response(writer.write(turn), source_nodes=turn.source_nodes, metadata=turn.metadata)
    dispatcher.event(SynthesizeEndEvent(query=turn.bundle, response=response))
    return response


async def arespond(writer: AnswerWriter, turn: Turn, *, streaming: bool) -> RESPONSE_TYPE:
    """The async twin of `respond`."""
    dispatcher.event(SynthesizeStartEvent(query=turn.bundle))
    response: RESPONSE_TYPE
    if streaming:
        pieces = await writer.astream(turn)
        turn.refresh_metadata()
        response = AsyncStreamingResponse(pieces, source_nodes=turn.source_nodes, metadata=turn.metadata)  # type: ignore[arg-type]
    else:
        response = Response(await writer.awrite(turn), source_nodes=turn.source_nodes, metadata=turn.metadata)
    dispatcher.event(SynthesizeEndEvent(query=turn.bundle, response=response))
    return response
