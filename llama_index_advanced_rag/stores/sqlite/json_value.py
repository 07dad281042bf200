"""A JSON object as text and back, equal to what was given; what would come back different is refused by name."""

import json
import zlib
from collections.abc import Iterator
from typing import Any, cast

from llama_index_advanced_rag.errors import ConfigurationError


def encode_object(key: str, value: object) -> str:
    """The JSON text of a dict of JSON values. A tuple counts as a list; NaN and infinities are written as Python's `json` does.

    Raises:
        ConfigurationError: the value is no dict, holds something that is not JSON, or a dict in it has a key that is no string.

    Example:
        >>> encode_object("a", {"text": "é", "numbers": [1, 2.5]})
        '{"text":"é","numbers":[1,2.5]}'
        >>> encode_object("a", {"numbers": {1: "one"}})
        Traceback (most recent call last):
            ...
        llama_index_advanced_rag.errors.ConfigurationError: The value of key 'a' is not JSON: the key 1 in it is of type int. ...
    """
    if not isinstance(value, dict):
        raise _not_json(key, f"it is of type {type(value).__name__}")
    try:
        _check_keys(key, cast("dict[object, object]", value))
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError as error:
        raise _not_json(key, str(error)) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise _not_json(key, "it holds itself or is nested too deeply") from error


def decode_object(collection: str, key: str, text: str, checksum: int) -> dict[str, Any]:
    """The dict that `encode_object` wrote.

    Raises:
        ValueError: the text, or the name it is stored under, is not what the checksum was made of.
    """
    if checksum_of(collection, key, text) != checksum:
        raise ValueError(f"the value of key {key!r} in collection {collection!r} has changed since it was written")
    return json.loads(text)


def checksum_of(collection: str, key: str, text: str) -> int:
    """CRC-32 of a stored value with its name: SQLite itself does not notice a bit that flips within a text.

    Example:
        >>> checksum_of("data", "a", "{}") == checksum_of("data", "a", "{} ")
        False
    """
    return zlib.crc32("\0".join((collection, key, text)).encode("utf-8", "surrogatepass"))


def _check_keys(key: str, value: object) -> None:
    """Refuse what `json` would turn into another key without a word."""
    if isinstance(value, dict):
        for name in cast("dict[object, object]", value):
            if not isinstance(name, str):
                raise _not_json(key, f"the key {name!r} in it is of type {type(name).__name__}")
    for part in _containers(value):
        _check_keys(key, part)


def _containers(value: object) -> Iterator[object]:
    parts = cast("dict[object, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
    return (part for part in parts if isinstance(part, (dict, list, tuple)))


def _not_json(key: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"The value of key {key!r} is not JSON: {reason}. A key-value store holds dicts of strings, numbers, booleans, None, lists and dicts; convert it first."
    )
