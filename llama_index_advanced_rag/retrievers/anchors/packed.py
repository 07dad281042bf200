"""Headings that have no node: small sections side by side are one passage of the section around them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.hierarchy.keys import PATH_SEPARATOR
from llama_index_advanced_rag.hierarchy.pages import page_starts_of
from llama_index_advanced_rag.hierarchy.units import UnitTable, document_of
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate, Passage
from llama_index_advanced_rag.retrievers.anchors.lines import page_of
from llama_index_advanced_rag.retrievers.anchors.regions import Region, region_of
from llama_index_advanced_rag.text.outline import Heading, HeadingSource, Outline, recover_outline

_CACHED_DOCUMENTS = 32
_MOST_CHARS = 1_000_000


def packed_sections(document: BaseNode, passages: Sequence[BaseNode], table: UnitTable, *, source: BaseNode | None = None) -> list[Candidate]:
    r"""The sections of a document that share a passage with others, each with that passage, in the order of the text.

    The outline is recovered from the text once more, which takes some tenths of a second for a long report the first time; a
    document of more than a million characters is not read again. Where there are pages and it is not known where they begin, headings
    that show by their looks only are left out: the heads and feet of pages look the same.

    Args:
        document: the node of the whole document.
        passages: passages of it that say where they stand.
        table: documents and sections.
        source: what the document was made of, if it can be read: where its text is the same, it says where pages begin.

    Example:
        >>> from llama_index.core.schema import Document
        >>> from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
        >>> text = "# Terms\n\n## Notice\n\nThree months.\n\n## Fines\n\nA fifth."
        >>> nodes = HierarchicalNodeParser().get_nodes_from_documents([Document(text=text)])
        >>> leaves = [node for node in nodes if not node.child_nodes]
        >>> [one.region.path for one in packed_sections(nodes[0], leaves, UnitTable.from_nodes(nodes))]
        ['Terms > Notice', 'Terms > Fines']
    """
    text = document.get_content(metadata_mode=MetadataMode.NONE)
    placed = sorted(((_start(node), node) for node in passages if _start(node) >= 0), key=lambda item: item[0]) if len(text) <= _MOST_CHARS else []
    if not placed:
        return []
    page_starts = _page_starts(source, text)
    outline, starts = _outline(text, page_starts), [start for start, _ in placed]
    found: list[Candidate] = []
    for number, heading in enumerate(outline.headings):
        place = bisect_right(starts, heading.start) - 1
        node = placed[max(place, 0)][1]
        if place < 0 or not _is_new(heading, node, table, paged=bool(page_starts)):
            continue
        path = PATH_SEPARATOR.join(reversed(list(_titles_up(outline, number))))
        region = Region(
            f"{node.node_id}\0{heading.start}", "section", document_of(node), path, heading.title, heading.level, heading.start, page_of(node), None
        )
        found.append(Candidate(region, (Passage.of(node),)))
    return found


def _is_new(heading: Heading, node: BaseNode, table: UnitTable, *, paged: bool) -> bool:
    doubtful = heading.source is HeadingSource.TYPOGRAPHY and page_of(node) is not None and not paged
    if doubtful or heading.start >= (getattr(node, "end_char_idx", None) or 0):
        return False
    return heading.title not in _titles_around(node, table)


def _page_starts(source: BaseNode | None, text: str) -> tuple[int, ...]:
    same = source is not None and source.get_content(metadata_mode=MetadataMode.NONE) == text
    return tuple(page_starts_of(source)) if source is not None and same else ()


def _start(node: BaseNode) -> int:
    start: int | None = getattr(node, "start_char_idx", None)
    return -1 if start is None else start


def _titles_around(node: BaseNode, table: UnitTable) -> set[str]:
    """Titles of the sections of a passage that are in the outline already."""
    inner = table.index_of(node)
    around = [] if inner is None else [table.units[place].title for place in table.ancestors(inner) if table.units[place].level]
    return {region_of(node, table).title, *around}


def _titles_up(outline: Outline, number: int) -> Iterator[str]:
    heading: Heading | None = outline.headings[number]
    while heading is not None:
        yield heading.title
        heading = None if heading.parent is None else outline.headings[heading.parent]


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def _outline(text: str, page_starts: tuple[int, ...]) -> Outline:
    return recover_outline(text, page_starts=page_starts)
