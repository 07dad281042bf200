"""What the command line prints: the same facts for a person (rich) and for a program (JSON)."""

import json
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from llama_index_advanced_rag.folder_index import FolderUpdate
    from llama_index_advanced_rag.trace import RetrievalTrace

Facts = dict[str, Any]
AROUND = 200
MOST_LINES = 20
_MEANING = {
    "nodes": "passages, which are searched",
    "outline_nodes": "documents and sections, which hold the passages",
    "text_bytes": "text of the documents",
    "record_bytes": "documents, sections and passages in corpus.sqlite, text included",
    "graph_bytes": "names and facts read in the passages, in corpus.sqlite",
    "extractor": "what reads names and facts",
}


def update_facts(update: "FolderUpdate") -> Facts:
    """What bringing a folder and its index in step came to."""
    return {
        "index_dir": str(update.index_dir),
        "report": update.report.to_dict(),
        "skipped_files": [{"path": item.path, "reason": item.reason} for item in update.reading.skipped],
        "warnings": update.warnings,
        "failures": update.failures,
    }


def print_update(console: Console, facts: Mapping[str, Any], *, said: Collection[str] = ()) -> None:
    """Counts, then a line for each thing to know that has not been said in the log."""
    report = facts["report"]
    counts = ", ".join(f"{len(report[name])} {name}" for name in ("added", "updated", "deleted", "unchanged") if report[name]) or "nothing to do"
    texts = "text" if report["embedded"] == 1 else "texts"
    console.print(Text(f"{facts['index_dir']}: {counts}; {report['embedded']} {texts} embedded, {report['reused']} reused"))
    skipped = [f"{item['path']}: {item['reason']}" for item in facts["skipped_files"]] + [
        f"{item['ref_doc_id']}: {item['reason']}" for item in report["skipped"]
    ]
    _print_lines(console, "skipped", skipped)
    _print_lines(console, "warning", [warning for warning in facts["warnings"] if warning not in said])


def _print_lines(console: Console, kind: str, lines: Sequence[str]) -> None:
    for line in lines[:MOST_LINES]:
        console.print(Text(f"{kind}: ", style="yellow") + Text(line))
    if len(lines) > MOST_LINES:
        console.print(Text(f"{kind}: and {len(lines) - MOST_LINES} more; --json lists all", style="yellow"))


def node_facts(node: "NodeWithScore") -> Facts:
    """One retrieved node: where it stands and what it says."""
    metadata = node.node.metadata
    return {
        "node_id": node.node.node_id,
        "file": node.node.ref_doc_id or "",
        "title": str(metadata.get("title") or ""),
        "page": str(metadata.get("page_label") or ""),
        "section": str(metadata.get("section_path") or ""),
        "score": None if node.score is None else float(node.score),
        "text": node.node.get_content(),
    }


def answer_facts(question: str, text: str, metadata: Mapping[str, Any], nodes: Sequence["NodeWithScore"]) -> Facts:
    """An answer with its citations and the nodes they lead to."""
    return {
        "question": question,
        "answer": text,
        "citations": [_citation_facts(citation) for citation in metadata.get("citations", [])],
        "sources": [node_facts(node) for node in nodes],
        "retrieved": list(metadata.get("retrieved", [])),
        "support": metadata.get("support"),
        "usage": metadata.get("usage"),
        "fallback": metadata.get("fallback"),
        "route": metadata.get("route"),
    }


def _citation_facts(citation: Mapping[str, Any]) -> Facts:
    return {
        "number": citation["number"],
        "file": citation["ref_doc_id"] or "",
        "title": citation["title"],
        "page": citation["page_label"],
        "score": citation["score"],
        "passage": citation["text"],
        "node_id": citation["node_id"],
        "start": citation["start"],
        "end": citation["end"],
        "document_start": citation["document_start"],
        "document_end": citation["document_end"],
    }


def print_sources(console: Console, facts: Mapping[str, Any]) -> None:
    """The citations with file, page and score, each passage highlighted in the text around it; those of one node in one block."""
    sources = {source["node_id"]: source for source in facts["sources"]}
    if facts["citations"]:
        console.print(Text("\nSources", style="bold"))
    for node_id, group in groupby(facts["citations"], key=lambda citation: citation["node_id"]):
        citations = list(group)
        console.print(
            Text("".join(f"[{citation['number']}]" for citation in citations) + " ", style="bold cyan")
            + _place({**citations[0], "section": sources[node_id]["section"]})
        )
        spans = sorted((citation["start"], citation["end"]) for citation in citations)
        console.print(_indented(console, _passage(console, sources[node_id]["text"], spans)))


def print_route(console: Console, route: Mapping[str, Any] | None) -> None:
    """Which way the question went, and why; nothing where there was one way only."""
    if route is None:
        return
    doubt = "in doubt, " if route["in_doubt"] else ""
    console.print(Text(f"\nRoute: {', '.join(route['taken'])}", style="bold") + Text(f"  ({doubt}{route['reason']})", style="dim"))
    for name, reason in route["dropped"].items():
        console.print(Text(f"  {name}: {reason}", style="yellow"))


def _place(facts: Mapping[str, Any]) -> Text:
    page = f", page {facts['page']}" if facts["page"] else ""
    score = "" if facts["score"] is None else f"  (score {facts['score']:.4f})"
    section = f"  {facts['section']}" if facts["section"] else ""
    return Text(f"{facts['file'] or facts['title'] or facts['node_id']}{page}", style="bold") + Text(score + section, style="dim")


def _passage(console: Console, text: str, spans: Sequence[tuple[int, int]]) -> Text:
    """The cited parts, in order, with the lines around them; where colours are missing, they stand between » and «."""
    left, right = _word_start(text, max(0, spans[0][0] - AROUND)), _word_end(text, min(len(text), spans[-1][1] + AROUND))
    marks = ("", "") if console.is_terminal and not console.no_color else ("»", "«")
    passage, shown = Text().append("… " if left else "", style="dim"), left
    for start, end in spans:
        passage.append(text[shown:start], style="dim").append(marks[0] + text[start:end] + marks[1], style="bold yellow")
        shown = end
    passage.append(text[shown:right] + (" …" if right < len(text) else ""), style="dim")
    return Text("\n").join(line for line in passage.split("\n") if line.plain.strip())


def _indented(console: Console, text: Text) -> RenderableType:
    """The text four columns in; where the console breaks lines, their rest as well."""
    if not console.soft_wrap:
        return Padding(text, (0, 0, 0, 4), expand=False)
    return Text("\n").join(Text("    ") + line for line in text.split("\n"))


def _word_start(text: str, position: int) -> int:
    """The first beginning of a word at or after a position."""
    while 0 < position < len(text) and not text[position - 1].isspace():
        position += 1
    return position


def _word_end(text: str, position: int) -> int:
    """The last end of a word at or before a position."""
    while 0 < position < len(text) and not text[position].isspace():
        position -= 1
    return position


def explanation_facts(question: str, nodes: Sequence["NodeWithScore"], trace: "RetrievalTrace") -> Facts:
    """The retrieved nodes, each with the word of every stage on it, and the whole trace."""
    return {
        "question": question,
        "nodes": [{"rank": rank, **node_facts(node), "evidence": _evidence(trace, node.node.node_id)} for rank, node in enumerate(nodes, start=1)],
        "trace": trace.to_dict(),
    }


def _evidence(trace: "RetrievalTrace", node_id: str) -> list[Facts]:
    return [item.to_dict() for item in trace.for_node(node_id)]


def print_explanation(console: Console, facts: Mapping[str, Any]) -> None:
    """Why each node was retrieved: a block a node, a line a stage; then how long each stage took and what went wrong."""
    for node in facts["nodes"]:
        console.print(Text(f"\n{node['rank']}. ", style="bold cyan") + _place(node))
        console.print(_indented(console, Text(_shortened(node["text"]), style="dim")))
        for item in node["evidence"]:
            score = "" if item["score"] is None else f", score {item['score']:.4f}"
            console.print(_indented(console, Text(f"{item['stage']}: ", style="green") + Text(f"rank {item['rank']}{score}; {item['why']}")))
    if not facts["nodes"]:
        console.print(Text("Nothing was found."))
    console.print(Text("\nStages", style="bold"))
    _print_stage(console, facts["trace"], 1)


def _print_stage(console: Console, trace: Mapping[str, Any], depth: int) -> None:
    took = "" if trace["elapsed_ms"] is None else f", {trace['elapsed_ms']:.1f} ms"
    console.print(Text("  " * depth + f"{trace['stage']}: {len(trace['evidence'])} nodes{took}"))
    for note in trace["notes"]:
        console.print(Text("  " * depth + f"  {note['level']}: {note['message']}", style="yellow"))
    for child in trace["children"]:
        _print_stage(console, child, depth + 1)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= AROUND else line[:AROUND].rsplit(" ", 1)[0] + " …"


def print_info(console: Console, facts: Mapping[str, Any]) -> None:
    """Numbers of the index, then its documents."""
    for name, value in facts["index"].items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else f"{value:,}" if type(value) is int else str(value)
        meaning = f"  ({_MEANING[name]})" if name in _MEANING else ""
        console.print(Text(f"{name}: ", style="bold") + Text(shown) + Text(meaning, style="dim"))
    console.print(Text("\n nodes  document", style="bold"))
    for document in facts["documents"]:
        console.print(Text(f"{document['n_nodes']:>6}  {document['ref_doc_id']}") + Text(f"  {document['title']}", style="dim"))


class Log(logging.Handler):
    """Log lines on stderr, remembered so that a report does not repeat them."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.said.add(record.getMessage())
        self._console.print(Text(f"{record.levelname.lower()}: ", style="yellow") + Text(record.getMessage()))


def _console(stream: TextIO) -> Console:
    """Lines are broken between words for a terminal, and left whole for a file or a pipe."""
    return Console(file=stream, highlight=False, soft_wrap=not stream.isatty())


class Output:
    """Results go to stdout, everything else to stderr."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._stdout = sys.stdout
        self.results = _console(sys.stdout)
        self.remarks = _console(sys.stderr)
        self.log = Log(self.remarks)

    def print_update(self, console: Console, facts: Facts) -> None:
        """What an update came to, without what the log has said."""
        print_update(console, facts, said=self.log.said)

    def show(self, facts: Facts, print_for_people: Callable[[Console, Facts], None]) -> None:
        """The result, as JSON or for people."""
        if self.as_json:
            self._write_json(facts)
        else:
            print_for_people(self.results, facts)

    def _write_json(self, facts: Facts) -> None:
        self._stdout.write(_json(facts, self._stdout.encoding) + "\n")

    def answer(self, facts: Facts, *, printed: bool) -> None:
        """An answer with its sources; the text is left out when it has been printed."""

        def print_answer(console: Console, answer: Facts) -> None:
            if not printed:
                console.print(Text(answer["answer"]))
            print_sources(console, answer)
            print_route(console, answer["route"])

        self.show(facts, print_answer)

    def error(self, error: Exception) -> None:
        """The error in one line on stderr, and as the JSON document where one is promised."""
        message = _one_line(error)
        self.remarks.print(Text("error: ", style="bold red") + Text(message))
        if self.as_json:
            self._write_json({"error": {"type": type(error).__name__, "message": message}})

    def stream(self, pieces: Iterator[str]) -> str:
        """Print an answer while it is written; the whole of it."""
        text = ""
        for piece in pieces:
            text += piece
            self.results.print(Text(piece), end="", soft_wrap=True)
        self.results.print()
        return text


def _one_line(error: Exception) -> str:
    from llama_index_advanced_rag.errors import AdvancedRagError

    message = " ".join(str(error).split())
    return message if isinstance(error, AdvancedRagError) and message else f"{type(error).__name__}: {message} (--debug shows where)"


def _json(facts: Mapping[str, Any], encoding: str | None) -> str:
    known = json.loads(json.dumps(facts), parse_constant=lambda _: None)  # JSON has no NaN, which metadata may hold
    text = json.dumps(known, ensure_ascii=False, indent=2)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, or a terminal that is not Unicode
        return json.dumps(known, indent=2)
    return text
