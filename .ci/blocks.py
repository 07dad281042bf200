"""Run the code blocks of Markdown pages, so that what they say stays true.

    python .ci/blocks.py README.md docs/*.md     every Python block, and the bash blocks marked `<!-- run -->`
    python .ci/blocks.py --command test README.md    the one bash block marked `<!-- test -->`, in the repository itself

Python blocks of a page share one namespace. Blocks run in a copy of the repository's files, made once a page. A mark stands in
the line before the fence: `<!-- run -->` runs a bash block, `<!-- needs: NAME -->` compiles a Python block and runs it only when
the environment variable NAME is set (an API key).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


def python_program(page: Path) -> str:
    """All Python blocks of a page as one program whose errors name the page's lines."""
    parts: list[str] = []
    for language, mark, code, line in blocks(page):
        if language != "python":
            continue
        needed = mark.removeprefix("needs: ") if mark.startswith("needs: ") else None
        padded = "\n" * (line - 1) + code
        compile(padded, str(page), "exec")
        if needed is None or os.environ.get(needed):
            parts.append(f"exec(compile({padded!r}, {str(page)!r}, 'exec'), namespace)")
        else:
            print(f"{page}:{line}: compiled, not run ({needed} is not set)", flush=True)
    return "\n".join(["namespace = {'__name__': '__main__'}", *parts])


def run_page(page: Path) -> bool:
    """Run what a page says; True when all of it worked."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        for language, mark, code, line in blocks(page):
            if language == "bash" and mark == "run":
                print(f"{page}:{line}: bash", flush=True)
                environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints/ci.txt"), "PIP_QUIET": "1"}
                good &= subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=folder, env=environment).returncode == 0
        program = Path(folder, "page_blocks.py")
        program.write_text(python_program(page), encoding="utf-8")
        print(f"{page}: Python", flush=True)
        good &= subprocess.run([sys.executable, "-W", "error::DeprecationWarning:__main__", str(program)], cwd=folder).returncode == 0
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
    results = [run_page(page) for page in options.pages]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
