"""Bytes to text: which encoding, how sure, and whether it is text at all."""

import codecs
import re
import unicodedata

from llama_index_advanced_rag.errors import DocumentReadError

# The UTF-32 mark of little-endian machines begins with the UTF-16 one, so it must be tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_INVISIBLE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")  # and the escape sequences of terminals
_MOST_CONTROLS = 0.002
# Western European languages write about one letter in ten outside ASCII; Cyrillic, Greek or Japanese read this way, nearly all.
_MOST_ACCENTED = 0.5
_LEGACY_HANDLER = "advanced_rag_cp1252"
_WINDOWS = tuple(bytes([byte]).decode("cp1252" if byte not in {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1") for byte in range(256))


def decode_text(data: bytes) -> tuple[str, str | None]:
    r"""The text of a file, and a warning when its encoding had to be guessed.

    A byte order mark decides (UTF-8, UTF-16, UTF-32); else UTF-8 if the bytes are valid UTF-8. Otherwise each byte that
    is not UTF-8 is read as Windows-1252 (Latin-1 where that has a hole), which also mends a file in which both were
    mixed; the result is refused when it does not look like a Western European language.

    Raises:
        DocumentReadError: binary data, a broken UTF-16 or UTF-32 file, or an encoding that cannot be told.

    Example:
        >>> decode_text("déjà".encode())
        ('déjà', None)
        >>> text, warning = decode_text("déjà vu, hélas".encode("cp1252"))
        >>> text, warning
        ('déjà vu, hélas', 'not valid UTF-8; 3 byte(s) read as Windows-1252 (Western European)')
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _refuse_controls(_decode_marked(data[len(mark) :], encoding)), None
    if b"\x00" in data:
        raise DocumentReadError("looks like a binary file (it contains NUL bytes; UTF-16 text needs a byte order mark)")
    try:
        return _refuse_controls(data.decode("utf-8")), None
    except UnicodeDecodeError:
        return _decode_legacy(data)


def _decode_marked(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentReadError(f"starts with the byte order mark of {encoding.upper()} but breaks it at byte {error.start}; save it as UTF-8") from error


def _decode_legacy(data: bytes) -> tuple[str, str]:
    codecs.register_error(_LEGACY_HANDLER, _read_as_cp1252)
    text = _refuse_controls(data.decode("utf-8", errors=_LEGACY_HANDLER))
    valid = data.decode("utf-8", errors="ignore")
    letters = _count_letters(text)
    if letters - _count_letters(valid) > _MOST_ACCENTED * letters:
        raise DocumentReadError("is neither UTF-8 nor Western European text, so its encoding cannot be told; save it as UTF-8")
    return text, f"not valid UTF-8; {len(data) - len(valid.encode())} byte(s) read as Windows-1252 (Western European)"


def _count_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _read_as_cp1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join([_WINDOWS[byte] for byte in error.object[error.start : error.end]]), error.end


def _refuse_controls(text: str) -> str:
    controls = sum(1 for _ in _CONTROLS.finditer(text))
    if controls > _MOST_CONTROLS * len(text):
        raise DocumentReadError("looks like a binary file (it is full of control characters)")
    return text


def tidy(text: str) -> str:
    r"""One kind of line end, composed characters (NFC), no control characters but white space, no colours of a terminal.

    Example:
        >>> tidy("e\u0301te\u0301\r\n\x1b[31mfin\x1b[0m\x00")
        'été\nfin'
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").replace("\ufeff", "")
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", lines))
