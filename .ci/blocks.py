"""Run the code blocks of Markdown pages, so that what they say stays true.

    python .ci/blocks.py README.md docs/*.md docs/*/*.md     every Python block, and the bash blocks marked `<!-- run -->`
    python .ci/blocks.py --command test README.md            the one bash block marked `<!-- test -->`, in the repository itself

Python blocks of a page share one namespace, and all pages one process. Blocks run in a copy of the repository's files, made once a page. A mark stands in
the line before the fence: `<!-- run -->` runs a bash block, `<!-- needs: NAME -->` compiles a Python block and runs it only when
the environment variable NAME is set (an API key, the address of a server).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^(?:<!-- (?P<mark>[^>]*?) -->\n+)?```(?P<language>python|bash)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> Iterator[tuple[str, str, str, int]]:
    """Language, mark, code and line number of each block."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield found["language"], found["mark"] or "", found["code"], text.count("\n", 0, found.start("code")) + 1


def copy_tree(target: Path) -> None:
    """The files git knows or would add, as a fresh clone has them."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def python_program(page: Path) -> list[CodeType]:
    """The Python blocks of a page, compiled; their errors name the page's lines."""
    program: list[CodeType] = []
    for language, mark, code, line in blocks(page):
        if language != "python":
            continue
        compiled = compile("\n" * (line - 1) + code, str(page), "exec")
        needed = mark.removeprefix("needs: ") if mark.startswith("needs: ") else None
        if needed is None or os.environ.get(needed):
            program.append(compiled)
        else:
            print(f"{page}:{line}: compiled, not run ({needed} is not set)", flush=True)
    return program


def run_bash(page: Path, folder: Path) -> bool:
    """Run the bash blocks marked to be run; True when all worked."""
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints/ci.txt"), "PIP_QUIET": "1"}
    good = True
    for language, mark, code, line in blocks(page):
        if language == "bash" and mark == "run":
            print(f"{page}:{line}: bash", flush=True)
            good &= subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=folder, env=environment).returncode == 0
    return good


def run_python(page: Path, folder: Path) -> bool:
    """Run the Python blocks in this process (models load once for all pages), in a namespace of the page's own."""
    print(f"{page}: Python", flush=True)
    namespace: dict[str, object] = {"__name__": f"page_{page.stem}"}
    try:
        program = python_program(page)
        os.chdir(folder)
        for code in program:
            exec(code, namespace)
    except Exception:  # noqa: BLE001 - a page may fail with anything; it is printed, and the other pages run
        traceback.print_exc()
        return False
    finally:
        os.chdir(ROOT)
    return True


def run_page(page: Path) -> bool:
    """Run what a page says; True when all of it worked."""
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        good = run_bash(page, Path(folder)) & run_python(page, Path(folder))
    if not good:
        print(f"{page}: FAILED", flush=True)
    return good


def run_command(mark: str, page: Path) -> bool:
    """Run the block with this mark in the repository, exactly as the page states it."""
    commands = [code for language, found, code, _ in blocks(page) if language == "bash" and found == mark]
    if len(commands) != 1:
        sys.exit(f"{page} has {len(commands)} bash blocks marked <!-- {mark} -->, expected 1")
    print(commands[0], flush=True)
    return subprocess.run(["bash", "-euo", "pipefail", "-c", commands[0]], cwd=ROOT).returncode == 0


def main() -> int:
    """Exit status 0 when every block worked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--command", help="run only the bash block with this mark, in the repository itself")
    parser.add_argument("pages", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command:
        return 0 if run_command(options.command, options.pages[0]) else 1
    pages = [page.resolve().relative_to(ROOT) for page in options.pages]
    os.chdir(ROOT)
    results = [run_page(page) for page in pages]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
