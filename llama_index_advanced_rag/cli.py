"""The command `advanced-rag`: index a folder, ask it, see why, without writing Python."""

import contextlib
import sys
from collections.abc import Generator
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llama_index_advanced_rag import cli_maintenance, cli_output
from llama_index_advanced_rag.cli_command import EXIT_PARTLY, AsJson, Debug, command
from llama_index_advanced_rag.errors import ConfigurationError

if TYPE_CHECKING:
    from llama_index_advanced_rag.folder_index import FolderUpdate
    from llama_index_advanced_rag.index import CorpusIndex

MODES = ("auto", "lexical", "dense", "hybrid", "hierarchical", "anchor", "graph", "vote", "community")

app = typer.Typer(
    name="advanced-rag",
    help="Index a folder of documents, ask it, and see why each passage was found.\n\n"
    "Exit codes: 0 done; 1 error; 2 wrong usage; 3 done in part (index, update: a document could not be read or indexed; ask: the LLM failed, "
    "so the answer quotes the documents; verify: something is wrong); 130 interrupted, finished documents are kept.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Question = Annotated[str, typer.Argument(help="The question, in the language of the documents.", show_default=False)]
Docs = Annotated[Path | None, typer.Option("--docs", help="Folder of documents (.txt .md .html .pdf .docx), or one document; indexed first.")]
IndexDir = Annotated[Path | None, typer.Option("--index-dir", help="Folder of the index. Default: .advanced-rag inside the documents' folder.")]
Language = Annotated[str | None, typer.Option(help="Language of the documents, as an ISO code such as 'fr'. Default: recognised.")]
EmbedModel = Annotated[
    str | None, typer.Option(help="'packaged', 'multilingual', a local folder or a hub name. Default: the packaged model if installed, else one from the hub.")
]
Mode = Annotated[str, typer.Option(help=f"How to search: {', '.join(MODES)}. With auto, rules choose a way for each question.")]
TopK = Annotated[int, typer.Option(min=1, help="Most passages retrieved.")]
LLMName = Annotated[
    str | None, typer.Option("--llm", help="LLM that writes the answer, as 'openai:MODEL' (key in OPENAI_API_KEY). Default: none, passages are quoted.")
]
ApiBase = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server for --llm, for example http://localhost:8000/v1.")]


@app.command()
def index(
    docs: Annotated[Path, typer.Argument(help="Folder of documents, or one document.", show_default=False)],
    index_dir: IndexDir = None,
    language: Language = None,
    embed_model: EmbedModel = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make the index of a folder, or bring it up to date; unchanged text is not embedded again."""
    with command(as_json, debug) as output, _synced(docs, index_dir, language, embed_model) as update:
        _finish_update(output, update)


@app.command()
def update(
    docs: Annotated[Path, typer.Option(help="Folder of documents that has been indexed before.", show_default=False)],
    index_dir: IndexDir = None,
    embed_model: EmbedModel = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Bring in what is new, changed or deleted in a folder; there must be an index already."""
    with command(as_json, debug) as output:
        _opened(docs, index_dir, None).close()
        with _synced(docs, index_dir, None, embed_model) as done:
            _finish_update(output, done)


@app.command()
def ask(
    question: Question,
    docs: Docs = None,
    index_dir: IndexDir = None,
    mode: Mode = "auto",
    top_k: TopK = 20,
    llm: LLMName = None,
    api_base: ApiBase = None,
    language: Language = None,
    embed_model: EmbedModel = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print the answer while it is written.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Answer a question from the documents, with citations."""
    question = _checked_question(question, mode)
    with command(as_json, debug) as output:
        from llama_index.core.base.response.schema import StreamingResponse

        _check_mode(mode)
        chosen = _llm(llm, api_base)
        with _searchable(output, docs, index_dir, language, embed_model) as (opened, facts):
            engine = opened.as_query_engine(chosen, retriever_mode=mode, similarity_top_k=top_k, streaming=stream and not as_json)
            response = engine.query(question)
            streamed = isinstance(response, StreamingResponse)
            text = output.stream(response.response_gen) if streamed else str(response)
            answer = {**cli_output.answer_facts(question, text, response.metadata or {}, response.source_nodes), "index": facts}
            output.answer(answer, printed=streamed)
    if answer["fallback"]:
        raise typer.Exit(EXIT_PARTLY)


@app.command()
def explain(
    question: Question,
    docs: Docs = None,
    index_dir: IndexDir = None,
    mode: Mode = "auto",
    top_k: TopK = 10,
    language: Language = None,
    embed_model: EmbedModel = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show which passages are found for a question, and why: the rank, score and reason of every stage; with auto, of every route."""
    question = _checked_question(question, mode)
    with command(as_json, debug) as output:
        from llama_index_advanced_rag.trace import capture_trace

        _check_mode(mode)
        with _searchable(output, docs, index_dir, language, embed_model) as (opened, facts):
            with capture_trace(question) as trace:
                options: dict[str, Any] = {"explain": True} if mode == "auto" else {}
                nodes = opened.as_retriever(mode, similarity_top_k=top_k, **options).retrieve(question)
            output.show({**cli_output.explanation_facts(question, nodes, trace), "index": facts}, cli_output.print_explanation)


@app.command()
def info(docs: Docs = None, index_dir: IndexDir = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show what an index holds."""
    with command(as_json, debug) as output, _opened(docs, index_dir, None) as opened:
        documents = [asdict(document) for document in opened.list_documents()]
        output.show({"index": opened.info(), "documents": documents}, cli_output.print_info)


app.command()(cli_maintenance.verify)
app.command()(cli_maintenance.compact)


def _checked_question(question: str, mode: str) -> str:
    """The question as valid Unicode: the shell may hand over bytes that are not."""
    if not question.strip():
        raise typer.BadParameter("The question is empty.")
    if mode not in MODES:
        raise typer.BadParameter(f"There is no mode {mode!r}. The modes are {', '.join(MODES)}.", param_hint="--mode")
    return question.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _check_mode(mode: str) -> None:
    """Refuse a mode that is not built before anything is indexed."""
    from llama_index_advanced_rag.modes import checked_mode

    checked_mode(mode)


def _llm(name: str | None, api_base: str | None) -> Any:
    if name is None:
        if api_base is not None:
            raise ConfigurationError("--api-base names a server, but no --llm says which model. Add for example --llm openai:MODEL.")
        return None
    from llama_index_advanced_rag.openai_compatible import resolve_llm_name

    return resolve_llm_name(name, api_base=api_base)


@contextlib.contextmanager
def _synced(docs: Path, index_dir: Path | None, language: str | None, embed_model: str | None) -> Generator["FolderUpdate", None, None]:
    from llama_index_advanced_rag.folder_index import sync_folder

    done = sync_folder(docs, index_dir=index_dir, language=language, embed_model=embed_model, show_progress=sys.stderr.isatty())
    with done.index:
        yield done


def _opened(docs: Path | None, index_dir: Path | None, embed_model: str | None) -> "CorpusIndex":
    from llama_index_advanced_rag.folder_index import default_index_dir
    from llama_index_advanced_rag.index import CorpusIndex

    place = index_dir if index_dir is not None else default_index_dir(docs) if docs is not None else None
    if place is None:
        raise typer.BadParameter("Give the documents with --docs DIR, or their index with --index-dir DIR.")
    return CorpusIndex.load(place, embed_model=embed_model, read_only=True)


@contextlib.contextmanager
def _searchable(
    output: cli_output.Output, docs: Path | None, index_dir: Path | None, language: str | None, embed_model: str | None
) -> Generator[tuple["CorpusIndex", cli_output.Facts], None, None]:
    """An open index, in step with `docs` when given, and what that took (remarks on stderr)."""
    if docs is None:
        if language is not None:
            raise typer.BadParameter("--language goes with --docs: an existing index knows its language.")
        with _opened(None, index_dir, embed_model) as opened:
            yield opened, {"index_dir": str(index_dir)}
        return
    with _synced(docs, index_dir, language, embed_model) as done:
        facts = cli_output.update_facts(done)
        output.print_update(output.remarks, facts)
        yield done.index, facts


def _finish_update(output: cli_output.Output, done: "FolderUpdate") -> None:
    facts = cli_output.update_facts(done)
    output.show(facts, output.print_update)
    if facts["failures"]:
        raise typer.Exit(EXIT_PARTLY)


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
    app()
