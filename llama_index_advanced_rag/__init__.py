"""Advanced retrieval for LlamaIndex: every technique an ordinary LlamaIndex object, over one corpus index.

Names load on first use, so importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index_advanced_rag.index import CorpusIndex
    from llama_index_advanced_rag.modes import RetrievalMode
    from llama_index_advanced_rag.postprocessors.context_expander import ContextExpander
    from llama_index_advanced_rag.postprocessors.cross_encoder import CrossEncoderRerank
    from llama_index_advanced_rag.postprocessors.lost_in_the_middle import LostInTheMiddleReorder
    from llama_index_advanced_rag.query_engines.adaptive import AdaptiveQueryEngine
    from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
    from llama_index_advanced_rag.retrievers.anchor import AnchorRetriever
    from llama_index_advanced_rag.retrievers.entity_graph import EntityGraphRetriever
    from llama_index_advanced_rag.retrievers.entity_vote import EntityVoteRetriever
    from llama_index_advanced_rag.retrievers.hierarchical import HierarchicalRetriever
    from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
    from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
    from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
    from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore
    from llama_index_advanced_rag.trace import RetrievalTrace, capture_trace
    from llama_index_advanced_rag.usage import UsageLedger, capture_usage

__version__ = "0.1.0"

_HOMES = {
    "AdaptiveQueryEngine": "query_engines.adaptive",
    "AnchorRetriever": "retrievers.anchor",
    "ContextExpander": "postprocessors.context_expander",
    "CorpusIndex": "index",
    "CrossEncoderRerank": "postprocessors.cross_encoder",
    "EntityGraphRetriever": "retrievers.entity_graph",
    "EntityVoteRetriever": "retrievers.entity_vote",
    "FlatVectorStore": "stores.flat_vector_store",
    "GroundedQueryEngine": "query_engines.grounded",
    "HierarchicalRetriever": "retrievers.hierarchical",
    "HybridRetriever": "retrievers.hybrid",
    "LexicalRetriever": "retrievers.lexical",
    "LostInTheMiddleReorder": "postprocessors.lost_in_the_middle",
    "RetrievalMode": "modes",
    "RetrievalTrace": "trace",
    "SQLiteKVStore": "stores.sqlite_kvstore",
    "UsageLedger": "usage",
    "capture_trace": "trace",
    "capture_usage": "usage",
}

__all__ = [
    "AdaptiveQueryEngine",
    "AnchorRetriever",
    "ContextExpander",
    "CorpusIndex",
    "CrossEncoderRerank",
    "EntityGraphRetriever",
    "EntityVoteRetriever",
    "FlatVectorStore",
    "GroundedQueryEngine",
    "HierarchicalRetriever",
    "HybridRetriever",
    "LexicalRetriever",
    "LostInTheMiddleReorder",
    "RetrievalMode",
    "RetrievalTrace",
    "SQLiteKVStore",
    "UsageLedger",
    "capture_trace",
    "capture_usage",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
