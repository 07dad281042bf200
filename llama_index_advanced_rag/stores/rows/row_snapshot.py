"""A block that sees one commit of a database, and the array files that belong to it."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_ATTEMPTS = 5


@contextmanager
def frozen(database: CorpusDatabase, refresh: Callable[[], object]) -> Generator[None, None, None]:
    """A block that begins with the newest state and in which nothing changes.

    Another process may commit, and delete files of the commit before, just after the database was looked at: then the files that
    are asked for are gone, and the block begins anew with what it has committed.

    Args:
        database: is read in the block.
        refresh: makes what is committed the state.

    Raises:
        IndexFormatError: a file is damaged.
    """
    with database.alone(), ExitStack() as block:
        for attempt in range(_ATTEMPTS):
            if attempt:
                refresh()  # outside of the block it raises for real damage, and tries again otherwise
            block.enter_context(database.snapshot())
            try:
                refresh()
            except IndexFormatError:
                if attempt == _ATTEMPTS - 1:
                    raise
                block.close()
                continue
            break
        yield
