"""Looking after an index: is it sound, mend it, give space back."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.ready_nodes import embed_all, embedding_text
from llama_index_advanced_rag.trace import report
from llama_index_advanced_rag.updatable import UpdatableIndex
from llama_index_advanced_rag.verification import VerifyReport, verify


class MaintainedIndex(UpdatableIndex):
    """An index that checks, mends and compacts itself."""

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Check everything that is stored: the database, the checksum of every file, and that documents, nodes, vectors, postings and records fit together.

        With an external vector store also whether it lacks nodes of this index, and whether a change was cut off between the
        two. Reads all files; searches go on meanwhile, changes wait.

        Args:
            repair: mend what is wrong: postings and records of names and facts are made again from the stored text, sound vectors are kept, damaged ones are
                embedded again (the only case that needs the embedding model), and an external store gets what it lacks from vectors
                kept here. Documents themselves cannot be made again: damage to `corpus.sqlite` is reported only.

        Raises:
            ReadOnlyIndexError: `repair` on an index opened read-only.
            StorageError: the disk refused.
        """
        if repair:
            self._refuse_read_only()
        found = verify(self._corpus, repair=repair, embed=self._embed_again)
        for problem in found.problems:
            report("warning", problem)
        return found

    async def averify(self, *, repair: bool = False) -> VerifyReport:
        """The async twin of `verify`; runs in a thread."""
        return await in_thread(self.verify, repair=repair)

    def _embed_again(self, nodes: Sequence[BaseNode]) -> NDArray[Any]:
        model = self._writing_model()
        return self._corpus.as_stored(embed_all(model, [embedding_text(node) for node in nodes]), [node.node_id for node in nodes])

    def compact(self) -> dict[str, int]:
        """Rewrite the files without what updates have left behind, and give the space back; answers stay the same.

        It is not needed for right answers, and happens by itself when more than half of the rows are of deleted nodes.

        Returns:
            Numbers and bytes afterwards, as in `info()`.

        Raises:
            ReadOnlyIndexError: the index was opened read-only.
            StorageError: the disk refused; the index stays as it was.
        """
        self._refuse_read_only()
        self._corpus.compact()
        return self._corpus.sizes()

    async def acompact(self) -> dict[str, int]:
        """The async twin of `compact`; runs in a thread."""
        return await in_thread(self.compact)
