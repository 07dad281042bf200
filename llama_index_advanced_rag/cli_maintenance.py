"""The commands that look after an index: is it sound, mend it, give space back."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from llama_index_advanced_rag.cli_command import EXIT_PARTLY, AsJson, Debug, command
from llama_index_advanced_rag.cli_output import Facts

if TYPE_CHECKING:
    from llama_index_advanced_rag.verification import VerifyReport

Folder = Annotated[Path, typer.Argument(help="Folder of the index, or of documents that have been indexed.", show_default=False)]
EmbedModel = Annotated[str | None, typer.Option(help="The model the index was built with, for vectors that are lost. Default: the one that was used.")]
_BYTES = {"vectors": "vector_bytes", "postings": "postings_bytes"}


def verify(
    folder: Folder,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is wrong: only vectors that are lost are embedded again.")] = False,
    embed_model: EmbedModel = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check all that an index stores, by its checksums, and say what is wrong; code 3 when something is wrong and has not been mended."""
    with command(as_json, debug) as output:
        place = _index_dir(folder)
        report = _repaired(place, embed_model) if repair else _checked(place)
        facts = {"index_dir": str(place), "ok": report.ok, **asdict(report)}
        output.show(facts, lambda console, _facts: console.print(Text(f"{place}: {report}")))
    if not report.ok and not report.repaired:
        raise typer.Exit(EXIT_PARTLY)


def compact(folder: Folder, as_json: AsJson = False, debug: Debug = False) -> None:
    """Rewrite the files of an index without what updates have left behind; answers stay the same."""
    with command(as_json, debug) as output:
        from llama_index_advanced_rag.index import CorpusIndex

        place = _index_dir(folder)
        with CorpusIndex.load(place) as index:
            before = index.corpus.sizes()
            output.show({"index_dir": str(place), "before": before, "after": index.compact()}, _print_sizes)


def _index_dir(folder: Path) -> Path:
    from llama_index_advanced_rag.folder_index import default_index_dir
    from llama_index_advanced_rag.storage_view import holds_index

    return folder if holds_index(folder) else default_index_dir(folder)


def _checked(place: Path) -> "VerifyReport":
    from llama_index_advanced_rag.verification import check_folder

    return check_folder(place)


def _repaired(place: Path, embed_model: str | None) -> "VerifyReport":
    from llama_index_advanced_rag.index import CorpusIndex

    return CorpusIndex.repair(place, embed_model=embed_model)


def _print_sizes(console: Console, facts: Mapping[str, Facts]) -> None:
    before, after = facts["before"], facts["after"]
    changes = ", ".join(f"{what} {before[name]:,} -> {after[name]:,} bytes" for what, name in _BYTES.items())
    console.print(Text(f"{facts['index_dir']}: {before['dead_rows']} dead rows removed, {after['rows']} rows kept; {changes}"))
