import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.folder import read_folder
from llama_index_advanced_rag.reading.pdf_text import _mend_hyphens, read_pdf

pytest.importorskip("pypdfium2", reason="the extra `files` is not installed")


def make_pdf(*pages: str, bookmarks: Sequence[tuple[str, int | None]] = (), below_first: Sequence[tuple[str, int | None]] = ()) -> bytes:
    """The smallest PDF with these lines, one string a page; bookmarks are titles with the number of a page, from 0."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R{f' /Outlines {4 + 2 * len(pages)} 0 R' if bookmarks else ''} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, page in enumerate(pages):
        draw = " ".join(f"({line}) Tj 0 -20 Td" for line in page.split("\n"))
        stream = f"BT /F1 12 Tf 50 700 Td {draw} ET"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects += outline_objects(4 + 2 * len(pages), bookmarks, below_first) if bookmarks else []
    body, offsets = "%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF".encode()


def outline_objects(root: int, bookmarks: Sequence[tuple[str, int | None]], below_first: Sequence[tuple[str, int | None]]) -> list[str]:
    """The outline as PDF objects, numbered from `root`: it, the bookmarks, those below the first of them."""
    inner = root + 1 + len(bookmarks)
    objects = [f"<< /Type /Outlines /First {root + 1} 0 R /Last {root + len(bookmarks)} 0 R /Count {len(bookmarks)} >>"]
    for first, parent, entries in ((root + 1, root, bookmarks), (inner, root + 1, below_first)):
        for number, (title, page) in enumerate(entries, start=first):
            following = f" /Next {number + 1} 0 R" if number < first + len(entries) - 1 else ""
            children = f" /First {inner} 0 R /Last {inner + len(below_first) - 1} 0 R /Count {len(below_first)}" if number == root + 1 and below_first else ""
            target = "" if page is None else f" /Dest [{4 + 2 * page} 0 R /Fit]"
            objects.append(f"<< /Title ({title}) /Parent {parent} 0 R{following}{children}{target} >>")
    return objects


def test_pages_and_their_offsets():
    content = read_pdf(make_pdf("first page\nline two", "", "third page"))
    assert content.text == "first page\nline two\n\n\n\nthird page"
    assert content.page_starts == (0, 21, 23)
    assert [content.text[start:][:5] for start in (content.page_starts[0], content.page_starts[2])] == ["first", "third"]
    assert content.warnings == ("page 2 without text (a picture or blank)",)


def test_bookmarks_lead_to_the_beginning_of_their_page():
    data = make_pdf("first page", "second page", "third", bookmarks=[("One", 0), ("Nowhere", None), ("Three  \\(3\\)", 2)], below_first=[("Inside one", 1)])
    content = read_pdf(data)
    assert content.bookmarks == (("One", 1, 0), ("Inside one", 2, 12), ("Three (3)", 1, 25))
    assert all(content.text[start:].startswith(page) for (_, _, start), page in zip(content.bookmarks, ("first", "second", "third"), strict=True))
    assert read_pdf(make_pdf("text")).bookmarks == ()


def test_bookmarks_are_metadata_that_nobody_reads(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(make_pdf("first page", "second page", bookmarks=[("One", 0), ("Two", 1)]))
    (tmp_path / "b.pdf").write_bytes(make_pdf("first page"))
    with_bookmarks, without = read_folder(tmp_path).documents
    assert with_bookmarks.metadata["bookmarks"] == [["One", 1, 0], ["Two", 1, 12]]
    assert "bookmarks" in with_bookmarks.excluded_embed_metadata_keys
    assert "bookmarks" in with_bookmarks.excluded_llm_metadata_keys
    assert "bookmarks" not in {*without.metadata, *without.excluded_embed_metadata_keys, *without.excluded_llm_metadata_keys}


def test_bookmarks_that_run_in_a_circle_end():
    data = make_pdf("text", bookmarks=[("One", 0), ("Two", 0)]).replace(b"/Title (Two) /Parent 6 0 R", b"/Title (Two) /Next 7 0 R  ")
    assert read_pdf(data).bookmarks == (("One", 1, 0), ("Two", 1, 0))


def test_a_scan_is_refused_with_the_remedy():
    with pytest.raises(DocumentReadError, match=r"no text on its 2 page\(s\); a scan needs OCR"):
        read_pdf(make_pdf("", ""))


def test_what_is_no_pdf_is_refused():
    with pytest.raises(DocumentReadError, match="is not a readable PDF"):
        read_pdf(b"hello")
    with pytest.raises(DocumentReadError, match="is not a readable PDF"):
        read_pdf(make_pdf("text")[:120])


def test_a_broken_word_is_mended_when_the_whole_stands_elsewhere():
    assert _mend_hyphens(["an exam\ufffeple of stock\ufffebased pay", "another example"]) == ["an example of stock-based pay", "another example"]


def test_threads_take_turns():
    data = make_pdf(*[f"page {number}" for number in range(20)])
    with ThreadPoolExecutor(4) as pool:
        texts = {content.text for content in pool.map(read_pdf, [data] * 8)}
    assert len(texts) == 1


@pytest.mark.data
def test_all_real_filings_are_read_with_their_table_rows():
    root = os.environ.get("ADVANCED_RAG_DATA")
    if root is None:
        pytest.skip("ADVANCED_RAG_DATA is not set")
    reading = read_folder(Path(root) / "sec-10-q" / "docs")
    texts = {document.id_: document for document in reading.documents}
    assert (len(texts), reading.skipped) == (20, [])
    apple = texts["2023 Q3 AAPL.pdf"]
    assert "\nTotal net sales 81,797 82,959 293,787 304,182\n" in apple.text
    starts = apple.metadata["page_starts"]
    assert len(starts) == 29
    assert apple.text[starts[3] :].startswith("PART I — FINANCIAL INFORMATION")
    assert not any("\ufffe" in document.text for document in reading.documents)
