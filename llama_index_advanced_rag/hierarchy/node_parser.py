"""Documents to a tree of nodes: document, sections, chunks that know where they stand."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode

from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.hierarchy.chunking import pack_pieces
from llama_index_advanced_rag.hierarchy.document_layout import DocumentLayout
from llama_index_advanced_rag.hierarchy.keys import BOOKMARKS, HEADING, SECTION_PATH, TABLE_HEADER
from llama_index_advanced_rag.hierarchy.node_making import NodeMaker, link_neighbours, related, report_kept
from llama_index_advanced_rag.hierarchy.node_plan import OwnedChunk, PlannedNode, plan_nodes
from llama_index_advanced_rag.hierarchy.pages import page_starts_of
from llama_index_advanced_rag.hierarchy.prefixes import MAX_PREFIX_TOKENS, PrefixRoom, fitting_path
from llama_index_advanced_rag.hierarchy.sections import group_sections
from llama_index_advanced_rag.text.outline import Bookmark, Outline, recover_outline
from llama_index_advanced_rag.text.sentences import sentence_spans
from llama_index_advanced_rag.trace import report

SMALL_SHARE = 4
_MOST_NOTES = 3


class HierarchicalNodeParser(SentenceChunkParser):
    r"""Cuts documents at their headings, and gives documents, sections and chunks as one tree of nodes.

    The outline comes from the text (`text.outline`), the document's `page_starts` and its `bookmarks` ([title, level, offset]).
    For each document come its own node, then sections and chunks in the order of the text, each before what stands in it.
    Every node is a slice of its document and has SOURCE; sections and chunks have PARENT, what holds others has CHILD in the
    order of the text, so that LlamaIndex's `get_leaf_nodes` gives the chunks and `get_root_nodes` the documents. PREVIOUS and NEXT
    run through the chunks of a document and through the sections of one parent. These relations carry id and type only.

    A chunk has whole sentences, rows and code blocks of one section; a longer code block is cut at line ends. Sections of at most a
    quarter of `chunk_size` side by side are one chunk of their parent as long as they fit. A heading, and the header of a table,
    goes with what follows. A section is a node when it has sub-sections or more than one chunk; of a smaller one
    the chunk hangs on the section around it and names it all the same.

    Besides the metadata of `SentenceChunkParser` a node has `section_path` ("Part I > Item 2 > Net sales"; none above the first heading; of more than
    16 headings the inner ones, "… > " in front), which is neither embedded nor shown to an LLM, and `heading`, as much of that path as takes at most
    16 tokens: outer headings go first ("… > Net sales"), then the end of the own one; none where the document's own metadata leave no room. A chunk that
    begins inside a table has `table_header`. Heading and table header are embedded and searched in front of the text, and an LLM reads them: with
    the document's own metadata at most 48 tokens and half of `chunk_size`, of which the header gets what is left, at most 32. (A longer path in
    front of each chunk makes all chunks of a document alike: measured, it lost more than it gave.) Keys that the document has already are
    not touched. 0 LLM calls. Time is linear in the text.

    Args:
        chunk_size: most tokens of what is embedded of a chunk, prefix and text.
        chunk_overlap: most tokens that a chunk repeats from the one before in its section.
        include_outline: False gives the flat chunks of `SentenceChunkParser`.
        **kwargs: the other fields of `SentenceChunkParser`.

    Raises:
        ConfigurationError: a size that cannot work, or a tokenizer that only `for_model` can attach.

    Example:
        >>> from llama_index.core import Document
        >>> from llama_index.core.node_parser import get_leaf_nodes
        >>> text = "# Foxes\n\n## Food\n\nThey eat hens at night and mice by day.\n\n## Dens\n\nThey sleep in dens below the roots of trees."
        >>> nodes = HierarchicalNodeParser(chunk_size=40, chunk_overlap=0).get_nodes_from_documents([Document(text=text)])
        >>> [(node.metadata.get("section_path"), node.text[-12:]) for node in get_leaf_nodes(nodes)]
        [('Foxes > Food', 'mice by day.'), ('Foxes > Dens', 'ts of trees.')]
    """

    include_outline: bool = Field(default=True, description="Cut at headings and give document and section nodes too.")

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "HierarchicalNodeParser"

    def _nodes_of(self, document: BaseNode) -> list[TextNode]:
        if not self.include_outline:
            return super()._nodes_of(document)
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        sentences = sentence_spans(text, language=self.language)
        if not sentences:
            return []
        shape = self._shape(document)
        self._report_prefix(document, shape)
        count = self._counter().count_tokens
        most = self.chunk_size - self._most_prefix
        headings = _outline(document, text).headings
        layout = DocumentLayout.of_text(text, sentences, headings, count_tokens=count, max_tokens=most)
        prefixes = PrefixRoom(shape, count, max_tokens=self._most_prefix)
        paths = _Paths(layout, prefixes)
        chunks = list(self._chunks(text, layout, paths))
        plan = plan_nodes(layout.tree, chunks, len(text))
        return self._made(NodeMaker(document, text, shape, self.id_func), plan, paths)

    def _shape(self, document: BaseNode) -> dict[str, Any]:
        """What all nodes share; the section path is for filters and for whoever wants to know, not for models."""
        shape = super()._shape(document)
        if self.include_outline and SECTION_PATH not in shape["metadata"]:
            for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
                shape[name] = [*shape[name], *([SECTION_PATH] if SECTION_PATH not in shape[name] else [])]
        return shape

    def _report_prefix(self, document: BaseNode, shape: dict[str, Any]) -> None:
        self._reserved_tokens(shape, document.node_id)
        for name in (HEADING, TABLE_HEADER):  # those that are not even made; of others the maker says it
            if name in shape["metadata"]:
                report_kept(document, name)

    @property
    def _most_prefix(self) -> int:
        return min(MAX_PREFIX_TOKENS, self.chunk_size // 2)

    def _chunks(self, text: str, layout: DocumentLayout, paths: "_Paths") -> Iterator[OwnedChunk]:
        most = self.chunk_size - self._most_prefix
        borders, count = layout.borders, self._counter().count_tokens
        for owner, first, after in group_sections(layout.tree, small=self.chunk_size // SMALL_SHARE, most=most):

            def room(start: int, owner: int = owner) -> int:
                return self.chunk_size - min(paths.tokens(owner, start), self._most_prefix)

            pieces = layout.pieces[borders[first] : borders[after]]
            overlap = min(self.chunk_overlap, most // 2)
            for start, end in pack_pieces(text, pieces, count_tokens=count, room=room, overlap_tokens=overlap):
                yield OwnedChunk(owner, start, end)

    def _made(self, maker: NodeMaker, plan: Sequence[PlannedNode], paths: "_Paths") -> list[TextNode]:
        nodes = [_make(maker, planned, paths) for planned in plan]
        for node, planned in zip(nodes, plan, strict=True):
            below = [nodes[child] for child in planned.children]
            if below:
                node.relationships[NodeRelationship.CHILD] = [related(child) for child in below]
            if planned.parent is not None:
                node.relationships[NodeRelationship.PARENT] = related(nodes[planned.parent])
            if self.include_prev_next_rel:
                link_neighbours([nodes[child] for child in planned.children if plan[child].chunk is None])
        if self.include_prev_next_rel:
            link_neighbours([node for node, planned in zip(nodes, plan, strict=True) if planned.chunk is not None])
        return nodes


class _Paths:
    """Section paths and table headers of one document, as they fit."""

    def __init__(self, layout: DocumentLayout, prefixes: PrefixRoom) -> None:
        self._layout, self._prefixes = layout, prefixes
        self._known_full: dict[int, str] = {}
        self._known: dict[int, str | None] = {}
        self._known_headers: dict[tuple[str | None, str], str | None] = {}

    def full(self, section: int) -> str:
        """The path that tells sections apart, of at most 16 headings; "" above the first one."""
        if section not in self._known_full:
            self._known_full[section] = fitting_path(self._layout.titles(section), lambda _: True) or ""
        return self._known_full[section]

    def tokens(self, section: int, start: int) -> int:
        """Tokens of the prefix of a chunk that begins at an offset."""
        path, header = self._context(section, start)
        return self._prefixes.tokens(path, header)

    def metadata(self, section: int, start: int | None = None) -> dict[str, str]:
        """The metadata of a node that begins at an offset; None gives those of a section."""
        heading, header = self._context(section, start)
        found = {SECTION_PATH: self.full(section) or None, HEADING: heading, TABLE_HEADER: header}
        return {name: value for name, value in found.items() if value is not None}

    def _context(self, section: int, start: int | None) -> tuple[str | None, str | None]:
        if section not in self._known:
            self._known[section] = self._prefixes.path(self._layout.titles(section))
        path = self._known[section]
        above = None if start is None else self._layout.header_above(start)
        if above is None:
            return path, None
        if (path, above) not in self._known_headers:
            self._known_headers[path, above] = self._prefixes.header(path, above)
        return path, self._known_headers[path, above]


def _make(maker: NodeMaker, planned: PlannedNode, paths: _Paths) -> TextNode:
    if planned.parent is None:
        return maker.make("document", planned.start, planned.end)
    if planned.chunk is None:
        return maker.make("section", planned.start, planned.end, paths.metadata(planned.section), path=paths.full(planned.section))
    return maker.make("chunk", planned.start, planned.end, paths.metadata(planned.section, planned.start))


def _outline(document: BaseNode, text: str) -> Outline:
    outline = recover_outline(text, page_starts=page_starts_of(document), bookmarks=_bookmarks(document))
    for note in outline.notes[:_MOST_NOTES]:
        report("info", f"{document.node_id!r}: {note}")
    if len(outline.notes) > _MOST_NOTES:
        report("info", f"{document.node_id!r}: {len(outline.notes) - _MOST_NOTES} more things about its outline are odd.")
    return outline


def _bookmarks(document: BaseNode) -> list[Bookmark]:
    """The bookmarks that a reader has put into the metadata; what does not look like one is left out."""
    given = document.metadata.get(BOOKMARKS)
    entries = cast(Sequence[Any], given) if isinstance(given, (list, tuple)) else []
    return [Bookmark(*cast(tuple[str, int, int], entry)) for entry in entries if _is_bookmark(entry)]


def _is_bookmark(entry: object) -> bool:
    if not isinstance(entry, (list, tuple)):
        return False
    kinds = tuple(type(value) for value in cast(Sequence[Any], entry))
    return kinds == (str, int, int)
