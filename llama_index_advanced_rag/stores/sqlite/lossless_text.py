"""Any Python string in a UTF-8 column and back: SQLite cannot hold lone surrogates, which undecodable file names are made of."""

import re

ESCAPE = "\U0010ffff"
_OFFSET = 0x100000 - 0xD800
_UNSAFE = re.compile(f"[\ud800-\udfff{ESCAPE}]")
_ESCAPED = re.compile(f"{ESCAPE}(.)", re.DOTALL)


def escape_text(text: str) -> str:
    r"""The string itself when it is plain Unicode; else a reversible form that is.

    Example:
        >>> escape_text("déjà vu")
        'déjà vu'
        >>> unescape_text(escape_text("caf\udce9.txt")) == "caf\udce9.txt"
        True
    """
    if is_plain_text(text):
        return text
    return _UNSAFE.sub(lambda match: ESCAPE + (ESCAPE if match[0] == ESCAPE else chr(ord(match[0]) + _OFFSET)), text)


def unescape_text(text: str) -> str:
    """The inverse of `escape_text`."""
    if ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda match: ESCAPE if match[1] == ESCAPE else chr(ord(match[1]) - _OFFSET), text)


def is_plain_text(text: str) -> bool:
    """True when the stored form is the string itself, so that offsets into one are offsets into the other."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return ESCAPE not in text
