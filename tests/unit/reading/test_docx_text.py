from io import BytesIO

import pytest

from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.docx_text import read_docx

docx = pytest.importorskip("docx", reason="the extra `files` is not installed")


def saved(document) -> bytes:
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def test_headings_lists_and_tables_in_order():
    document = docx.Document()
    document.add_heading("Rapport d’été", 0)
    document.add_heading("Ventes", 2)
    document.add_paragraph("Elles montent.")
    document.add_paragraph("")
    table = document.add_table(rows=2, cols=3)
    for cell, text in zip([cell for row in table.rows for cell in row.cells], ["Produit", "2022", "2023", "Mac", "", "7"], strict=True):
        cell.text = text
    document.add_paragraph("un point", style="List Bullet")
    content = read_docx(saved(document))
    assert content.title == "Rapport d’été"
    assert content.text == "# Rapport d’été\n\n## Ventes\n\nElles montent.\n\nProduit | 2022 | 2023\nMac |  | 7\n\n- un point"


def test_a_merged_cell_is_read_once():
    document = docx.Document()
    table = document.add_table(rows=1, cols=3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(0, 2).text = "last"
    assert read_docx(saved(document)).text == "wide | last"


def test_what_is_no_word_file_is_refused():
    with pytest.raises(DocumentReadError, match=r"is not a readable \.docx file"):
        read_docx(b"hello")
