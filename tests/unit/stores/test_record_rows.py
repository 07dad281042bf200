"""The table of records: put, read, and gone with the row of a node."""

import pytest
from llama_index.core.schema import TextNode

from llama_index_advanced_rag.errors import ReadOnlyIndexError
from llama_index_advanced_rag.stores.documents.node_writer import Found, NodeWriter
from llama_index_advanced_rag.stores.documents.record_rows import RecordRows
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase


@pytest.fixture
def database() -> CorpusDatabase:
    database = CorpusDatabase(None)
    nodes = [TextNode(text=f"text {row}", id_=f"n{row}") for row in (1, 2, 3)]
    NodeWriter(database).add_nodes(nodes, found={f"n{row}": Found(f"hash {row}", row) for row in (1, 2, 3)})
    RecordRows(database).put([1, 2, 3], [b"\0one", b"two", b""])
    return database


def test_what_is_put_is_read(database: CorpusDatabase) -> None:
    table = RecordRows(database)
    assert table.of_rows([3, 1, 7]) == {1: b"\0one", 3: b""}
    table.put([1], [b"new"])
    assert table.of_rows([1]) == {1: b"new"}
    assert table.all_rows() == [1, 2, 3]
    assert table.n_bytes() > 6
    table.remove([2, 9])
    assert (table.rows_without_record(), table.rows_without_node()) == ([2], [])


def test_a_record_goes_with_the_row_of_its_node(database: CorpusDatabase) -> None:
    table = RecordRows(database)
    database.execute("DELETE FROM nodes WHERE node_id = 'n1'")
    database.execute("UPDATE nodes SET row = 9 WHERE node_id = 'n2'")
    database.execute("UPDATE nodes SET row = 3, hash = 'same row' WHERE node_id = 'n3'")
    assert table.all_rows() == [3]
    assert (table.rows_without_record(), table.rows_without_node()) == ([9], [])
    database.execute("UPDATE nodes SET row = NULL WHERE node_id = 'n3'")
    assert table.all_rows() == []


def test_what_fails_is_taken_back_with_its_transaction(database: CorpusDatabase) -> None:
    table = RecordRows(database)

    def fail() -> None:
        with database.transaction():
            table.put([1], [b"new"])
            table.remove([2])
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="full"):
        fail()
    assert table.of_rows([1, 2]) == {1: b"\0one", 2: b"two"}


def test_nothing_is_written_where_only_reading_is_allowed(tmp_path) -> None:
    CorpusDatabase(tmp_path, create=True).close()
    with CorpusDatabase(tmp_path, read_only=True) as database:
        assert RecordRows(database).n_bytes() == 0
        with pytest.raises(ReadOnlyIndexError):
            RecordRows(database).put([1], [b""])
