"""Array files: what is appended is read back, what is beyond the committed rows does not count, and damage is seen by the rows it is in."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import IndexFormatError, StorageError
from llama_index_advanced_rag.stores import segment_files
from llama_index_advanced_rag.stores.segment_files import ArrayFile, Block, file_checksum, map_arrays, sync_files, write_arrays

PLACES = ("disk", "memory")


def array_file(tmp_path: Path, place: str, **options: object) -> ArrayFile:
    return ArrayFile(tmp_path / "a" / "rows.bin" if place == "disk" else None, np.int64, **options)


@pytest.mark.parametrize("place", PLACES)
def test_rows_are_read_back_and_a_view_stays_what_it_was(tmp_path: Path, place: str) -> None:
    file = array_file(tmp_path, place)
    assert file.view(0).shape == (0,)
    blocks = [file.append(np.arange(3), at=0)]
    view = file.view(3)
    for start in range(3, 300, 3):
        blocks.append(file.append(np.arange(start, start + 3), at=start))
    assert view.tolist() == [0, 1, 2]
    assert file.view(300).tolist() == list(range(300))
    assert [block.start for block in blocks] == list(range(0, 300, 3))
    assert file.damaged(blocks) == []
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 7


@pytest.mark.parametrize("place", PLACES)
def test_what_a_cut_off_append_has_left_is_overwritten(tmp_path: Path, place: str) -> None:
    file = array_file(tmp_path, place, width=2)
    first = file.append(np.ones((2, 2)), at=0)
    kept = file.view(2)
    left = file.append(np.full((5, 2), 9), at=2)
    block = file.append(np.full((3, 2), 2), at=2)
    assert file.view(5).tolist() == [[1, 1]] * 2 + [[2, 2]] * 3
    assert kept.tolist() == [[1, 1]] * 2
    assert file.damaged([first, block]) == []
    assert file.damaged([left]) == [left]


def test_two_open_files_see_each_others_rows(tmp_path: Path) -> None:
    writer, reader = array_file(tmp_path, "disk"), array_file(tmp_path, "disk")
    writer.append(np.arange(4), at=0)
    assert reader.view(2).tolist() == [0, 1]
    writer.append(np.arange(4, 6), at=4)
    assert reader.view(6).tolist() == list(range(6))


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), data=st.data())
def test_a_flipped_bit_or_a_lost_end_is_in_the_blocks_it_is_in(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.bin"
    file, at, blocks = ArrayFile(path, np.uint32), 0, []
    for size in sizes:
        blocks.append(file.append(np.arange(at, at + size), at=at))
        at += size
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= 1 << data.draw(st.integers(0, 7))
        wanted = [block for block in blocks if block.start <= place // 4 < block.start + block.n_rows]
    else:
        del content[place:]
        wanted = [block for block in blocks if place < 4 * (block.start + block.n_rows)]
    path.write_bytes(content)
    assert ArrayFile(path, np.uint32).damaged(blocks) == wanted


def test_a_file_that_is_missing_or_too_short(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"
    block = Block(0, 3, 0)
    for use in (lambda: ArrayFile(path, np.int64).view(3), lambda: ArrayFile(path, np.int64).damaged([block])):
        with pytest.raises(IndexFormatError, match=r"'rows.bin' of this index is missing. Restore.*verify\(repair=True\)"):
            use()
    with pytest.raises(IndexFormatError, match="missing"):
        ArrayFile(path, np.int64).append(np.arange(2), at=3)
    assert not path.exists()
    path.write_bytes(bytes(16))
    with pytest.raises(IndexFormatError, match="shorter than what was committed"):
        ArrayFile(path, np.int64).view(3)
    with pytest.raises(IndexFormatError, match="shorter than what was committed"):
        ArrayFile(path, np.int64).append(np.arange(2), at=3)
    assert path.stat().st_size == 16


def test_another_file_in_the_place_of_the_one_read_is_noticed(tmp_path: Path) -> None:
    file = array_file(tmp_path, "disk")
    file.append(np.arange(3), at=0)
    assert not file.drop_replaced()
    assert file.view(3).tolist() == [0, 1, 2]
    assert not file.drop_replaced()
    path = tmp_path / "a" / "rows.bin"
    path.rename(tmp_path / "old")
    assert not file.drop_replaced(), "gone is not replaced: what is mapped stays"
    assert file.held(3) == 3
    path.write_bytes(np.arange(10, 14).tobytes())
    assert file.drop_replaced()
    assert file.view(4).tolist() == [10, 11, 12, 13]


def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="disk refused a write to 'rows.bin'.*Nothing of this update was kept"):
        ArrayFile(tmp_path / "file" / "rows.bin", np.int64).append(np.arange(2), at=0)
    with pytest.raises(StorageError, match="disk refused a write to 'rows.bin'"):
        write_arrays(tmp_path / "file" / "rows.bin", [np.arange(3)])
    with pytest.raises(StorageError, match="disk refused"):
        sync_files([tmp_path / "none.bin"])

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write_arrays(tmp_path / "postings.bin", [np.arange(3)])
    assert not (tmp_path / "postings.bin").exists()


@pytest.mark.parametrize("arrays", [[np.arange(5)], [np.empty(0, np.int32), np.ones((2, 3), np.float16), np.array([2**64 - 1], np.uint64), np.empty((0, 4))]])
def test_arrays_of_one_file(tmp_path: Path, arrays: list[np.ndarray]) -> None:
    path = tmp_path / "new" / "postings.bin"
    size, crc = write_arrays(path, arrays)
    assert (size, crc) == file_checksum(path)
    read = map_arrays(path, size=size, crc=crc)
    assert [one.tolist() for one in read] == [one.tolist() for one in arrays]
    assert [one.dtype for one in read] == [one.dtype for one in arrays]
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(IndexFormatError, match="'postings.bin' of this index is damaged: its size or checksum"):
        map_arrays(path, size=size, crc=crc)
    path.unlink()
    with pytest.raises(IndexFormatError, match="missing"):
        map_arrays(path, size=size, crc=crc)


def test_the_name_of_a_new_file_is_synced_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(segment_files, "_sync_folder", synced.append)
    file = ArrayFile(tmp_path / "rows.bin", np.int64)
    file.append(np.arange(3), at=0)
    file.append(np.arange(3), at=3)
    write_arrays(tmp_path / "postings.bin", [np.arange(3)])
    assert synced == [tmp_path, tmp_path]
