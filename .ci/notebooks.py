"""Each notebook's .py and .ipynb hold the same cells (jupytext pairs them; edit one, run `jupytext --sync notebooks/*.py`)."""

import sys
from pathlib import Path

import jupytext

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def cells(path: Path) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    return [(cell.cell_type, cell.source.strip()) for cell in jupytext.read(path).cells]


def main() -> int:
    """Exit status 0 when all pairs agree and there is at least one."""
    scripts, books = sorted(FOLDER.glob("*.py")), sorted(FOLDER.glob("*.ipynb"))
    wrong = [path.name for path in {*(p.with_suffix(".py") for p in books), *scripts} if not (path.exists() and path.with_suffix(".ipynb").exists())]
    wrong += [path.name for path in scripts if path.name not in wrong and cells(path) != cells(path.with_suffix(".ipynb"))]
    if wrong or not scripts:
        print(f"not paired or not equal: {', '.join(sorted(wrong)) or 'no notebook found'}; run: jupytext --sync notebooks/*.py")
        return 1
    print(f"{len(scripts)} pair(s) agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
