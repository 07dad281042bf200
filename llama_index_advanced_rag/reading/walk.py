"""Which files lie below a folder, in an order that does not depend on the machine."""

import os
import unicodedata
from collections.abc import Collection
from pathlib import Path

Unlisted = tuple[str, str]


def document_id(root: Path, file: Path) -> str:
    """The path relative to the root with `/`, composed (NFC): some file systems hand accents out decomposed.

    Example:
        >>> document_id(Path("docs"), Path("docs/e\u0301te\u0301/a b.txt"))
        'été/a b.txt'
    """
    return unicodedata.normalize("NFC", file.relative_to(root).as_posix())


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
