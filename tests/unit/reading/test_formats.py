import pytest

from llama_index_advanced_rag.reading.formats import FORMATS, read_markdown, read_plain


def test_known_suffixes():
    assert list(FORMATS) == [".txt", ".text", ".md", ".markdown", ".html", ".htm", ".pdf", ".docx"]


@pytest.mark.parametrize(
    ("text", "title"),
    [("# The title #\nbody", "The title"), ("intro\n\n#  Later \n", "Later"), ("## Second level only\n", None), ("#hashtag\n", None), ("no heading", None)],
)
def test_title_of_markdown(text, title):
    content = read_markdown(text.encode())
    assert (content.title, content.text) == (title, text)


def test_plain_text_keeps_its_warning():
    assert read_plain("déjà vu, hélas".encode("latin-1")).warnings == ("not valid UTF-8; 3 byte(s) read as Windows-1252 (Western European)",)
