"""LlamaIndex's view of a corpus folder: a storage context, and signposts for its own loader."""

import json
from pathlib import Path
from typing import Any

from llama_index.core.storage.storage_context import StorageContext

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.database import FILE_NAME

_SIGNPOST = "this folder holds a CorpusIndex: open it with CorpusIndex.load(persist_dir), not with load_index_from_storage"


class CorpusStorageContext(StorageContext):
    """The stores of a corpus; persisting it copies the whole corpus into a folder."""

    _corpus: Corpus

    def persist(self, persist_dir: Any = "./storage", *_: Any, **__: Any) -> None:
        """Copy the corpus into a folder, for `CorpusIndex.load`; the corpus's own folder is always up to date.

        Raises:
            ConfigurationError: the folder holds an index already.
        """
        folder = Path(persist_dir)
        if holds_index(folder):
            raise ConfigurationError(f"The folder {folder.name!r} already holds an index. Name another folder; the index's own folder is always up to date.")
        self._corpus.persist(folder)
        write_signposts(folder)


def storage_view(corpus: Corpus) -> CorpusStorageContext:
    """The storage context of a corpus."""
    stock = StorageContext.from_defaults(docstore=corpus.documents, vector_store=corpus.vectors)
    view = CorpusStorageContext(docstore=stock.docstore, index_store=stock.index_store, vector_stores=stock.vector_stores, graph_store=stock.graph_store)
    view._corpus = corpus  # noqa: SLF001
    return view


def holds_index(folder: Path) -> bool:
    """True when the folder holds a corpus of this package, of whatever version."""
    return (folder / FILE_NAME).exists()


def write_signposts(folder: Path) -> None:
    """Files that make LlamaIndex's own loader fail with the name of ours instead of with a missing file."""
    struct = {"__type__": _SIGNPOST, "__data__": "{}"}
    (folder / "docstore.json").write_text("{}", encoding="utf-8")
    (folder / "index_store.json").write_text(json.dumps({"index_store/data": {"corpus": struct}}), encoding="utf-8")
