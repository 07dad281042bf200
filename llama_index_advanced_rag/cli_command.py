"""What all commands share: where results and remarks go, and what an error becomes."""

import contextlib
import errno
import logging
import sys
from collections.abc import Generator
from typing import Annotated

import typer

from llama_index_advanced_rag import cli_output

EXIT_ERROR, EXIT_USAGE, EXIT_PARTLY, EXIT_INTERRUPTED = 1, 2, 3, 130

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Log more, and show the traceback of an error.")]


@contextlib.contextmanager
def command(as_json: bool, debug: bool) -> Generator[cli_output.Output, None, None]:
    """Log to stderr, keep stdout for the result, and turn an error into one line."""
    output = cli_output.Output(as_json=as_json)
    logger = logging.getLogger("llama_index_advanced_rag")
    before = logger.level, logger.propagate
    logger.addHandler(output.log)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    logger.propagate = False
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield output
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt as error:
        output.remarks.print("interrupted; finished documents are kept, the same command goes on from there")
        raise typer.Exit(EXIT_INTERRUPTED) from error
    except Exception as error:
        if debug or getattr(error, "errno", None) == errno.EPIPE:  # the reader of our output has gone, which typer ends quietly
            raise
        output.error(error)
        raise typer.Exit(EXIT_ERROR) from error
    finally:
        logger.removeHandler(output.log)
        logger.setLevel(before[0])
        logger.propagate = before[1]
