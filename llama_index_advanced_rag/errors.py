"""Every error this package raises on purpose.

Each error also inherits the builtin a caller would expect, so `except ValueError` keeps working.
A message has three parts: what is wrong (with the value), what was expected, what to do.
"""


class AdvancedRagError(Exception):
    """Base of all errors raised by this package."""


class ConfigurationError(AdvancedRagError, ValueError):
    """An argument or a combination of arguments cannot work."""


class UnknownArgumentError(AdvancedRagError, TypeError):
    """A keyword argument that nothing accepts."""


class MissingExtraError(AdvancedRagError, ImportError):
    """A feature needs an optional dependency that is not installed."""


class ModeNotAvailableError(AdvancedRagError, NotImplementedError):
    """The retrieval mode exists by name, but this version cannot run it."""


class EmbeddingUnavailableError(AdvancedRagError, RuntimeError):
    """No embedding model could be loaded."""


class EmbeddingMismatchError(AdvancedRagError, ValueError):
    """Vectors of one embedding model met an index built with another."""


class ModelIntegrityError(AdvancedRagError, RuntimeError):
    """The weights on disk are not the ones this version was checked with."""


class IndexFormatError(AdvancedRagError, ValueError):
    """A persist folder is not an index, or one of another format version."""


class IndexNotFoundError(AdvancedRagError, FileNotFoundError):
    """There is no index at this place."""


class IndexClosedError(AdvancedRagError, RuntimeError):
    """The index was used after `close()`."""


class IndexNotCopiedError(AdvancedRagError, TypeError):
    """An open index, or a part of one, was pickled or deep-copied."""


class ReadOnlyIndexError(AdvancedRagError, PermissionError):
    """A write was asked of an index opened with `read_only=True`."""


class StorageError(AdvancedRagError, OSError):
    """The disk refused a read or a write: full, read-only, locked or corrupt."""


class VectorStoreError(AdvancedRagError, RuntimeError):
    """A vector store that is not ours failed while an index wrote to it; the cause is its own error."""


class DocumentReadError(AdvancedRagError, OSError):
    """One file could not be read as text."""


class NodeSourceError(AdvancedRagError, ValueError):
    """An index or store given to a retriever holds no readable nodes."""


class NodeNotFoundError(AdvancedRagError, ValueError):
    """A docstore holds no document or node with this id."""


class BudgetExceededError(AdvancedRagError, RuntimeError):
    """A call, token or time budget ran out."""


class LLMOutputError(AdvancedRagError, ValueError):
    """An LLM answered something that could not be used.

    Attributes:
        prompt_name: name of the prompt in `llama_index_advanced_rag.prompts`.
        attempts: how many answers were tried.
        output: the first 300 characters of the last answer.
    """

    def __init__(self, prompt_name: str, attempts: int, output: str, reason: str) -> None:
        self.prompt_name = prompt_name
        self.attempts = attempts
        self.output = output[:300]
        self._reason = reason
        super().__init__(f"The answer to prompt {prompt_name!r} could not be used after {attempts} attempt(s): {reason} It began with: {self.output!r}")

    def __reduce__(self) -> tuple[type["LLMOutputError"], tuple[str, int, str, str]]:
        return (type(self), (self.prompt_name, self.attempts, self.output, self._reason))


class RerankerUnavailableError(AdvancedRagError, RuntimeError):
    """A reranking model could not be loaded."""


class ScorerOutputError(AdvancedRagError, ValueError):
    """A scorer returned something that is not one finite number for each pair."""
