import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.decoding import decode_text, tidy

WRITTEN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(WRITTEN)
def test_utf8_is_read_as_it_is(text):
    assert decode_text(text.encode()) == (text.removeprefix("\ufeff"), None)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides(encoding):
    assert decode_text("L’été à 3 €".encode(encoding)) == ("L’été à 3 €", None)


def test_big_endian_utf16_is_read():
    assert decode_text(codecs.BOM_UTF16_BE + "été".encode("utf-16-be")) == ("été", None)


def test_windows_1252_is_guessed_and_said():
    text, warning = decode_text("L’été à 3 €, où qu’il soit".encode("cp1252"))
    assert text == "L’été à 3 €, où qu’il soit"
    assert warning == "not valid UTF-8; 7 byte(s) read as Windows-1252 (Western European)"


def test_both_encodings_in_one_file_are_mended():
    text, warning = decode_text("été, déjà vu\n".encode() + "hélas, trop tard\n".encode("cp1252"))
    assert text == "été, déjà vu\nhélas, trop tard\n"
    assert "1 byte" in warning


def test_a_byte_windows_1252_does_not_know_is_latin1():
    assert decode_text(b"a line of text \x81 and more")[0] == "a line of text \x81 and more"


@pytest.mark.parametrize("encoding", ["cp1251", "shift_jis", "iso8859_7"])
def test_other_alphabets_are_refused_and_not_garbled(encoding):
    words = {"cp1251": "Привет, мир! Как дела?", "shift_jis": "日本語のテキスト", "iso8859_7": "Καλημέρα κόσμε"}[encoding]
    with pytest.raises(DocumentReadError, match="its encoding cannot be told; save it as UTF-8"):
        decode_text(words.encode(encoding))


def test_binary_is_refused():
    with pytest.raises(DocumentReadError, match="contains NUL bytes"):
        decode_text(b"\x89PNG\r\n\x1a\n\x00\x00\x00")
    with pytest.raises(DocumentReadError, match="full of control characters"):
        decode_text(bytes(range(1, 32)) * 20)


def test_broken_utf16_is_refused():
    with pytest.raises(DocumentReadError, match="UTF-16-LE but breaks it at byte 4"):
        decode_text("ab".encode("utf-16") + b"c")


def test_tidy_unifies_line_ends_and_composes_accents():
    assert tidy("e\u0301te\u0301\r\nun\rdeux\ftrois\x00") == "été\nun\ndeux\ntrois"
