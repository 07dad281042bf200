import os
import time
import unicodedata
from pathlib import Path

import pytest
from llama_index.core.schema import MetadataMode

from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading import folder as folder_module
from llama_index_advanced_rag.reading.folder import SkippedFile, read_file, read_folder


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def ids(reading):
    return [document.id_ for document in reading.documents]


def test_a_document_knows_its_place_and_embeds_only_its_title(tmp_path):
    write(tmp_path, {"sub dir/été.md": "# Summer\n\nIt is warm."})
    (document,) = read_folder(tmp_path).documents
    assert document.id_ == "sub dir/été.md"
    assert document.metadata == {"title": "Summer", "file_name": "été.md", "file_path": "sub dir/été.md"}
    assert document.get_content(MetadataMode.EMBED) == "Summer\n\n# Summer\n\nIt is warm."
    assert document.get_content(MetadataMode.LLM) == "Summer\n\n# Summer\n\nIt is warm."


def test_the_order_and_the_hashes_are_the_same_each_time(tmp_path):
    write(tmp_path, {f"{name}.txt": name for name in ["b", "a", "B", "é", "z/a", "z 1"]})
    first, second = read_folder(tmp_path), read_folder(tmp_path)
    assert ids(first) == ["B.txt", "a.txt", "b.txt", "z 1.txt", "z/a.txt", "é.txt"]
    assert [document.hash for document in first.documents] == [document.hash for document in second.documents]


def test_hidden_and_excluded_are_ignored_without_a_word(tmp_path):
    write(tmp_path, {"a.txt": "a", ".hidden.txt": "h", ".git/x.txt": "x", ".advanced-rag/c.txt": "c", "index/d.txt": "d"})
    reading = read_folder(tmp_path, exclude=[tmp_path / "index"])
    assert (ids(reading), reading.skipped, reading.warnings) == (["a.txt"], [], [])


def test_each_file_that_cannot_be_read_has_a_reason(tmp_path):
    write(
        tmp_path,
        {
            "a.txt": "kept",
            "b.txt": "",
            "c.md": " \n\t",
            "d.txt": b"\x00\x01binary",
            "e.xyz": "x",
            "f": "x",
            "g.pdf": "no pdf",
            "h.docx": "no zip",
            "i.html": "<p></p>",
        },
    )
    reading = read_folder(tmp_path)
    assert ids(reading) == ["a.txt"]
    reasons = {skipped.path: skipped.reason for skipped in reading.skipped}
    assert list(reasons) == ["b.txt", "c.md", "d.txt", "e.xyz", "f", "g.pdf", "h.docx", "i.html"]
    assert reasons["b.txt"] == "is empty"
    assert reasons["c.md"] == "holds nothing but white space"
    assert "NUL bytes" in reasons["d.txt"]
    assert reasons["e.xyz"] == "is of the unknown type '.xyz'; known are .txt, .text, .md, .markdown, .html, .htm, .pdf, .docx"
    assert reasons["i.html"] == "holds no text"


def test_a_missing_extra_is_a_reason_that_names_the_command(tmp_path, monkeypatch):
    write(tmp_path, {"a.pdf": "%PDF-1.4", "b.docx": "PK", "c.txt": "fine"})
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    monkeypatch.setitem(__import__("sys").modules, "docx", None)
    reading = read_folder(tmp_path)
    assert ids(reading) == ["c.txt"]
    assert [skipped.path for skipped in reading.skipped] == ["a.pdf", "b.docx"]
    assert all("pip install 'llama-index-advanced-rag[files]'" in skipped.reason for skipped in reading.skipped)


def test_files_with_equal_bytes_are_both_kept_and_said(tmp_path):
    write(tmp_path, {"a.txt": "same", "b.txt": "same"})
    reading = read_folder(tmp_path)
    assert ids(reading) == ["a.txt", "b.txt"]
    assert reading.warnings == ["b.txt: same content as a.txt; both are kept"]


def test_mixed_encodings_are_read_and_the_guess_is_said(tmp_path):
    write(tmp_path, {"a.txt": "été", "b.txt": "un été indien".encode("cp1252"), "c.txt": "été".encode("utf-16"), "d.txt": "été".encode("utf-8-sig")})
    reading = read_folder(tmp_path)
    assert [document.text for document in reading.documents] == ["été", "un été indien", "été", "été"]
    assert reading.warnings == ["b.txt: not valid UTF-8; 2 byte(s) read as Windows-1252 (Western European)"]


def test_names_that_differ_only_in_composition_meet_as_one_id(tmp_path):
    write(tmp_path, {"\u00e9.txt": "composed", "e\u0301.txt": "decomposed"})
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system composes names itself")
    reading = read_folder(tmp_path)
    assert ids(reading) == ["é.txt"]
    assert unicodedata.is_normalized("NFC", reading.documents[0].id_)
    assert [skipped.path for skipped in reading.skipped] == ["é.txt"]
    assert "same name" in reading.skipped[0].reason


def test_links_loop_once_and_lead_outside_once(tmp_path):
    outside = write(tmp_path / "outside", {"o.txt": "outside"})
    docs = write(tmp_path / "docs", {"a/x.txt": "x"})
    (docs / "a" / "loop").symlink_to(docs)
    (docs / "twin").symlink_to(docs / "a")
    (docs / "out1").symlink_to(outside)
    (docs / "out2").symlink_to(outside)
    (docs / "broken.txt").symlink_to(docs / "nowhere.txt")
    (docs / "self.txt").symlink_to(docs / "self.txt")
    reading = read_folder(docs)
    assert len(ids(reading)) == 2
    assert ids(reading)[0] == "a/x.txt"
    assert {skipped.path for skipped in reading.skipped} == {"broken.txt", "self.txt"}


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert read_folder(tmp_path).skipped == [SkippedFile("pipe.txt", "is not a regular file")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied"), "may not be read (permission denied)"),
        (FileNotFoundError(2, "No such file"), "does not exist (a broken link, or deleted meanwhile)"),
        (OSError(5, "Input/output error"), "cannot be read (Input/output error)"),
    ],
)
def test_a_file_the_system_refuses_is_skipped(tmp_path, monkeypatch, error, reason):
    write(tmp_path, {"a.txt": "a", "b.txt": "b"})
    read_bytes = Path.read_bytes

    def refuse(self):
        if self.name == "a.txt":
            raise error
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    reading = read_folder(tmp_path)
    assert (ids(reading), reading.skipped) == (["b.txt"], [SkippedFile("a.txt", reason)])


def test_a_folder_the_system_refuses_is_skipped(tmp_path, monkeypatch):
    write(tmp_path, {"a.txt": "a", "closed/b.txt": "b"})
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("llama_index_advanced_rag.reading.walk.os.scandir", refuse)
    reading = read_folder(tmp_path)
    assert (ids(reading), reading.skipped) == (["a.txt"], [SkippedFile("closed", "is a folder that cannot be listed (Permission denied)")])
    with pytest.raises(DocumentReadError, match="cannot be listed"):
        read_folder(tmp_path / "closed")


def test_no_folder(tmp_path):
    with pytest.raises(DocumentReadError, match="is neither a folder nor a file"):
        read_folder(tmp_path / "none")
    assert read_folder(tmp_path).documents == []


def test_a_line_of_50_mb_takes_seconds(tmp_path):
    write(tmp_path, {"long.txt": b"one endless line " * 3_000_000})
    started = time.perf_counter()
    (document,) = read_folder(tmp_path).documents
    assert len(document.text) == 51_000_000
    assert time.perf_counter() - started < 20


def test_a_long_title_is_cut(tmp_path):
    write(tmp_path, {"a.md": "# " + "x" * 1000})
    assert len(read_file(tmp_path / "a.md").metadata["title"]) == folder_module.MAX_TITLE


@pytest.mark.parametrize(("name", "title"), [("annual_report-2023.txt", "annual report 2023"), ("2023 Q3 10-Q.txt", "2023 Q3 10-Q"), ("--.txt", "--")])
def test_without_a_title_the_file_name_speaks(tmp_path, name, title):
    write(tmp_path, {name: "text"})
    assert read_file(tmp_path / name).metadata["title"] == title


def test_read_file_is_relative_to_its_folder_or_to_a_root(tmp_path, caplog):
    write(tmp_path, {"sub/a.txt": "un été indien".encode("cp1252")})
    assert read_file(tmp_path / "sub" / "a.txt").id_ == "a.txt"
    assert read_file(tmp_path / "sub" / "a.txt", root=tmp_path).id_ == "sub/a.txt"
    assert "sub/a.txt: not valid UTF-8" in caplog.text


def test_read_file_says_which_file_and_why(tmp_path):
    write(tmp_path, {"a.txt": ""})
    with pytest.raises(DocumentReadError, match=r"^'a\.txt' is empty\.$"):
        read_file(tmp_path / "a.txt")
    with pytest.raises(DocumentReadError, match=r"'none\.txt' does not exist"):
        read_file(tmp_path / "none.txt")


def test_progress_goes_to_stderr(tmp_path, capsys):
    write(tmp_path, {"a.txt": "a"})
    read_folder(tmp_path, show_progress=True)
    output = capsys.readouterr()
    assert output.out == ""
    assert "Reading" in output.err
