"""What a corpus was made with: saved beside it, so that it is not changed or asked under other settings."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError, IndexFormatError
from llama_index_advanced_rag.hierarchy.keys import CHUNKING
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.sqlite.sqlite_file import damage_reported

_KEY = "settings"


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """What the stored state was made with.

    Attributes:
        analyzer: `TextAnalyzer.to_dict()`.
        embedding: identity of the embedding model, None until the first vector is stored.
        embedding_name: the name the user gave for it, None when an object was given.
        dimension: length of the vectors, None until the first one is stored.
        external_vectors: vectors live in a vector store of the user's.
        chunk_size: most tokens of a chunk, None for what the model's window holds.
        chunk_overlap: tokens that neighbouring chunks share.
        own_transformations: nodes were made by transformations of the user's.
        extractor: identity of what reads the names and facts of new nodes; None when none are kept.
        chunking: the way in which documents are cut, as `hierarchy.keys.CHUNKING` names it; of an index from before there was a name, "sentences".

    Raises:
        ConfigurationError: `chunk_overlap` is negative or does not fit into `chunk_size`.
    """

    analyzer: dict[str, Any]
    embedding: str | None = None
    embedding_name: str | None = None
    dimension: int | None = None
    external_vectors: bool = False
    chunk_size: int | None = None
    chunk_overlap: int = 32
    own_transformations: bool = False
    chunking: str = "sentences"
    extractor: str | None = None

    def __post_init__(self) -> None:
        if self.chunk_overlap < 0 or (self.chunk_size is not None and not self.chunk_overlap < self.chunk_size):
            raise ConfigurationError(
                f"chunk_size={self.chunk_size!r} with chunk_overlap={self.chunk_overlap!r} cannot work. "
                "Expected 0 <= chunk_overlap < chunk_size. Lower the overlap or raise the size."
            )

    @classmethod
    def read(cls, database: CorpusDatabase) -> "CorpusSettings":
        """The settings stored in a database.

        Raises:
            IndexFormatError: there are none, or not these.
        """
        stored = database.get_meta(_KEY)
        with damage_reported():
            return cls(**stored)

    def to_meta(self) -> dict[str, Any]:
        """What a new database is made with."""
        return {_KEY: asdict(self)}

    def same_build(self, other: "CorpusSettings") -> bool:
        """True when both were asked for in the same way; what the first vectors settle does not count."""
        return replace(self, embedding=None, embedding_name=None, dimension=None) == replace(other, embedding=None, embedding_name=None, dimension=None)

    def write(self, database: CorpusDatabase) -> None:
        """Store them; joins the caller's transaction."""
        database.set_meta(_KEY, asdict(self))

    def check_embedding(self, identity: str) -> None:
        """Check that vectors of this model can be compared with the stored ones.

        Raises:
            EmbeddingMismatchError: the stored vectors come from another model.
        """
        if self.embedding is not None and self.embedding != identity:
            raise EmbeddingMismatchError(
                f"This index was built with the embedding model {self.embedding!r}, but {identity!r} was given: their vectors cannot be compared. "
                "Pass the model it was built with as embed_model=..., or build a new index in another persist_dir."
            )

    def check_chunking(self) -> None:
        """Check that documents are still cut as the stored ones were: an index answers as one that was built at once.

        Raises:
            IndexFormatError: they are not.
        """
        if self.chunking != CHUNKING:
            raise IndexFormatError(
                f"The documents of this index were cut in another way ({self.chunking!r}) than this release cuts them ({CHUNKING!r}). "
                "It can be searched as it is; to change it, build it again with CorpusIndex.from_documents(...) in another persist_dir."
            )

    def with_embedding(self, identity: str, *, name: str | None) -> "CorpusSettings":
        """The same settings bound to a model.

        Raises:
            EmbeddingMismatchError: they are bound to another one.
        """
        self.check_embedding(identity)
        return self if self.embedding is not None else replace(self, embedding=identity, embedding_name=name)

    def with_dimension(self, lengths: Collection[int]) -> "CorpusSettings":
        """The same settings after vectors of these lengths came.

        Raises:
            EmbeddingMismatchError: the lengths differ, or the stored vectors have another one.
        """
        if len({*lengths, *([self.dimension] if self.dimension else [])}) > 1:
            expected = f"this index holds vectors of length {self.dimension}" if self.dimension else "all must have one length"
            raise EmbeddingMismatchError(
                f"The embedding model gave vectors of length {sorted(set(lengths))}, but {expected}. Use the model the index was built with."
            )
        return replace(self, dimension=self.dimension or next(iter(lengths), None))
