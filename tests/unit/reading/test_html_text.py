import pytest

from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.html_text import read_html


def lines(markup):
    return read_html(markup.encode()).text.split("\n")


def test_a_page_becomes_markdown_like_lines():
    page = """<!DOCTYPE html><html><head><title> Annual
    report </title><style>p {color: red}</style></head><body><script>var x = "hidden";</script><!-- hidden -->
    <h1>Results</h1><p>Net sales rose to <b>81,797</b>
    million.<br>A record.</p><h3>By product</h3>
    <ul><li>Mac</li><li>iPad</li></ul>
    <table><tr><th>Product</th><th>2023</th></tr><tr><td>Mac</td><td><p>6,840</p></td></tr><tr><td></td><td> </td></tr></table>
    <pre>a  b
      c</pre></body></html>"""
    content = read_html(page.encode())
    assert content.title == "Annual report"
    assert content.text.split("\n") == [
        "# Results",
        "",
        "Net sales rose to 81,797 million.",
        "A record.",
        "",
        "### By product",
        "",
        "- Mac",
        "- iPad",
        "",
        "Product | 2023",
        "Mac | 6,840",
        "",
        "a  b",
        "      c",
    ]


def test_end_tags_may_be_missing():
    assert lines("<table><tr><td>a<td>b<tr><td>c<td>d</table><ul><li>x<li>y</ul><p>one<p>two") == ["a | b", "c | d", "", "- x", "- y", "", "one", "", "two"]


def test_a_head_left_open_does_not_swallow_the_page():
    assert lines("<html><head><title>T</title><body><p>text") == ["text"]


def test_a_layout_table_becomes_lines():
    assert lines("<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td><td>side</td></tr></table>") == ["a | b", "", "side"]


def test_the_title_falls_back_on_the_first_heading():
    assert read_html(b"<h1>Only <i>heading</i></h1>").title == "Only heading"
    assert read_html(b"<p>x").title is None


def test_the_declared_charset_is_used():
    assert read_html('<meta charset="iso-8859-1"><p>L’été</p>'.encode("cp1252")).text == "L’été"
    assert read_html('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><p>Привет</p>'.encode("cp1251")).text == "Привет"


def test_a_wrong_charset_is_said():
    content = read_html('<meta charset="no-such"><p>été</p>'.encode())
    assert (content.text, content.warnings) == ("été", ("declares the charset 'no-such', which does not fit; read as UTF-8",))
    assert read_html('<meta charset="utf-16"><p>été</p>'.encode()).text == "été"


def test_binary_is_refused():
    with pytest.raises(DocumentReadError, match="NUL bytes"):
        read_html(b'<meta charset="utf-8">\x00\x01')


def test_nesting_deeper_than_python_recurses():
    assert read_html(b"<div>" * 20_000 + b"deep").text == "deep"
