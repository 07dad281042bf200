"""The async half of a docstore whose work is done by blocking calls: each twin runs in a worker thread."""

from abc import ABC
from collections.abc import Sequence

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore, RefDocInfo
from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE

from llama_index_advanced_rag._concurrency import in_thread


class AsyncDocumentStore(BaseDocumentStore, ABC):
    """A `BaseDocumentStore` whose async methods do what the sync ones do and leave the event loop free."""

    async def async_add_documents(
        self, docs: Sequence[BaseNode], allow_update: bool = True, batch_size: int | None = DEFAULT_BATCH_SIZE, store_text: bool = True
    ) -> None:
        """The async twin of `add_documents`."""
        await in_thread(self.add_documents, docs, allow_update, batch_size, store_text)

    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """The async twin of `get_document`."""
        return await in_thread(self.get_document, doc_id, raise_error)

    async def aget_nodes(self, node_ids: list[str], raise_error: bool = True) -> list[BaseNode]:
        """The async twin of `get_nodes`."""
        return await in_thread(self.get_nodes, node_ids, raise_error)

    async def aget_node_dict(self, node_id_dict: dict[int, str]) -> dict[int, BaseNode]:
        """The async twin of `get_node_dict`."""
        return await in_thread(self.get_node_dict, node_id_dict)

    async def adelete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """The async twin of `delete_document`."""
        await in_thread(self.delete_document, doc_id, raise_error)

    async def adocument_exists(self, doc_id: str) -> bool:
        """The async twin of `document_exists`."""
        return await in_thread(self.document_exists, doc_id)

    async def aset_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """The async twin of `set_document_hash`."""
        await in_thread(self.set_document_hash, doc_id, doc_hash)

    async def aset_document_hashes(self, doc_hashes: dict[str, str]) -> None:
        """The async twin of `set_document_hashes`."""
        await in_thread(self.set_document_hashes, doc_hashes)

    async def aget_document_hash(self, doc_id: str) -> str | None:
        """The async twin of `get_document_hash`."""
        return await in_thread(self.get_document_hash, doc_id)

    async def aget_all_document_hashes(self) -> dict[str, str]:
        """The async twin of `get_all_document_hashes`."""
        return await in_thread(self.get_all_document_hashes)

    async def aget_all_ref_doc_info(self) -> dict[str, RefDocInfo] | None:
        """The async twin of `get_all_ref_doc_info`."""
        return await in_thread(self.get_all_ref_doc_info)

    async def aget_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """The async twin of `get_ref_doc_info`."""
        return await in_thread(self.get_ref_doc_info, ref_doc_id)

    def ref_doc_exists(self, ref_doc_id: str) -> bool:
        """True when nodes of this document are held."""
        return self.get_ref_doc_info(ref_doc_id) is not None

    async def aref_doc_exists(self, ref_doc_id: str) -> bool:
        """The async twin of `ref_doc_exists`."""
        return await in_thread(self.ref_doc_exists, ref_doc_id)

    async def adelete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """The async twin of `delete_ref_doc`."""
        await in_thread(self.delete_ref_doc, ref_doc_id, raise_error)
