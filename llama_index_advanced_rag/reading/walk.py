"""Which files lie below a folder, in an order that does not depend on the machine."""

import os
import re
import unicodedata
from collections.abc import Collection
from pathlib import Path

Unlisted = tuple[str, str]
# Control characters would break lines and move cursors where a name is shown; a byte that is no UTF-8 cannot be written at all.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def document_id(root: Path, file: Path) -> str:
    r"""The path relative to the root with `/`, composed (NFC): some file systems hand accents out decomposed.

    Control characters and bytes that are not UTF-8 stand as `\xNN`, so that an id is always one line of valid text.

    Example:
        >>> document_id(Path("docs"), Path("docs/e\u0301te\u0301/a b.txt"))
        'été/a b.txt'
        >>> print(document_id(Path("docs"), Path("docs/caf\udce9\n.txt")))
        caf\xe9\x0a.txt
    """
    return _UNPRINTABLE.sub(_escaped, unicodedata.normalize("NFC", file.relative_to(root).as_posix()))


def _escaped(found: "re.Match[str]") -> str:
    code = ord(found[0])
    byte = code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code
    return f"\\x{byte:02x}" if byte <= 0xFF else f"\\u{byte:04x}"


def list_files(root: Path, *, exclude: Collection[Path] = ()) -> tuple[list[Path], list[Unlisted]]:
    """All files below `root`, ordered by id, and the folders that could not be listed with the reason.

    Names with a leading dot and paths in `exclude` (resolved) are left out. A link to a folder is followed only when it
    leads outside `root`, and once: what lies inside is found anyway, and loops end.

    Raises:
        OSError: `root` itself cannot be listed.
    """
    home = root.resolve()
    followed = {home}
    files: list[Path] = []
    unlisted: list[Unlisted] = []
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = _entries(folder)
        except OSError as error:
            if folder == root:
                raise
            unlisted.append((document_id(root, folder), f"is a folder that cannot be listed ({error.strerror or error})"))
            continue
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(".") or (exclude and _resolved(path) in exclude):
                continue
            if not _is_folder(entry):
                files.append(path)
            elif not entry.is_symlink() or _follow(path, home, followed):
                folders.append(path)
    return sorted(files, key=lambda file: (document_id(root, file), file.as_posix())), unlisted


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link in a circle or a closed place: reading it as a file says which


def _resolved(path: Path) -> Path:
    return path.parent.resolve() / path.name if path.is_symlink() else path.resolve()


def _follow(link: Path, home: Path, followed: set[Path]) -> bool:
    target = link.resolve()
    if target in followed or target.is_relative_to(home) or home.is_relative_to(target):
        return False
    followed.add(target)
    return True
