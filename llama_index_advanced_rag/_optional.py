"""Optional dependencies: the only place that knows which extra brings which module."""

from importlib import import_module
from types import ModuleType

from llama_index_advanced_rag.errors import MissingExtraError

DISTRIBUTION = "llama-index-advanced-rag"


def require(module: str, *, extra: str, feature: str) -> ModuleType:
    """Import an optional module, or say how to install it.

    Args:
        module: dotted name to import.
        extra: the extra of this distribution that brings it.
        feature: what the user was trying to do, as it reads in a sentence.

    Raises:
        MissingExtraError: the module is not installed; the message holds the exact command.

    Example:
        >>> require("json", extra="files", feature="reading JSON").__name__
        'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if missing.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingExtraError(
            f"{feature} needs the package {missing!r}, which is not installed. Install it with: pip install '{DISTRIBUTION}[{extra}]'"
        ) from error
