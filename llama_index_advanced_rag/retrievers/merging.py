"""Give the whole where its parts were found: hits become the section they cover, with its text, its place and the reason."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, NodeWithScore, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.embeddings.window import default_window
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.keys import SECTION_PATH
from llama_index_advanced_rag.ranking.merge_up import Merged, merge_up, without_cycles
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import DictNodeSource, DocstoreNodeSource, NodeSource, read_docstore_nodes, read_index_nodes
from llama_index_advanced_rag.trace import Evidence, report, stage_trace

Nodes = NodeSource | BaseDocumentStore | BaseIndex[Any] | Sequence[BaseNode]
MAX_LEVELS = 16
_TITLES = (SECTION_PATH, "title", "file_name")
_TITLE_CHARS = 80
_LONGEST_TOKEN = 64


class ParentMerger:
    """Replaces scored nodes by their parent where enough of its children were found, level by level.

    Works on LlamaIndex's PARENT and CHILD relations, whoever made them. Parents are read in one batch a level. The best
    child's score and place go to the parent; no part stands beside its whole; see `merge_up`. A parent that is missing,
    that does not match the filters or that has no text leaves its children as they are. Scores are those of the hits, best
    first; nodes without a score come last and keep their order. Results are new `NodeWithScore` objects, nothing given is
    changed. 0 LLM calls.

    Args:
        nodes: where parents are read: a node source, a docstore, an index or a list of nodes.
        min_share: share of a parent's children that must be among the hits, from 0 to 1; at least two always must.
        max_tokens: most tokens of a merged parent; None = no limit.
        budget: most tokens of all nodes together; None = no limit. The list ends where it does not fit, after one node at least.
        filters: parents must match these too: what a retriever may not find must not slip in here.
        count_tokens: tokens of a text; None counts in LlamaIndex's global tokenizer.

    Raises:
        ConfigurationError: an argument cannot work.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> section = TextNode(id_="s", text="One. Two.", relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id=part) for part in "ab"]})
        >>> up = {NodeRelationship.PARENT: RelatedNodeInfo(node_id="s")}
        >>> hits = [NodeWithScore(node=TextNode(id_=part, text=part, relationships=up), score=0.5) for part in "ab"]
        >>> [(hit.node_id, hit.score) for hit in ParentMerger([section]).merge(hits)]
        [('s', 0.5)]
    """

    stage: ClassVar[str] = "merge_up"

    def __init__(
        self,
        nodes: Nodes,
        *,
        min_share: float = 0.5,
        max_tokens: int | None = None,
        budget: int | None = None,
        filters: MetadataFilters | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> None:
        if isinstance(min_share, bool) or not 0 <= min_share <= 1:
            raise ConfigurationError(f"min_share is {min_share!r}. It must be a number from 0 to 1.")
        self._nodes, self._filters = node_source_of(nodes), filters
        self._min_share = float(min_share)
        self._max_tokens = None if max_tokens is None else whole_number("max_tokens", max_tokens)
        self._budget = None if budget is None else whole_number("budget", budget)
        self._count_tokens = count_tokens or default_window().count_tokens

    def merge(self, hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """The hits, with parents in place of the parts that were found."""
        with stage_trace(self.stage) as trace:
            family = _Family({hit.node_id: hit.node for hit in hits})
            sizes = _Sizes(family.nodes, self._count_tokens, max(self._max_tokens or 0, self._budget or 0))
            self._read_parents(hits, family, sizes)
            merged = self._merged(hits, family, sizes, budget=self._budget)
            scored = {hit.node_id for hit in hits if hit.score is not None}
            result = [NodeWithScore(node=family.nodes[entry.node_id], score=entry.score if scored.intersection(entry.hits) else None) for entry in merged]
            if trace is not None:
                trace.evidence += [_evidence(rank, entry, hit, family) for rank, (entry, hit) in enumerate(zip(merged, result, strict=True), start=1)]
        return result

    async def amerge(self, hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """The same as `merge`, in a thread."""
        return await in_thread(self.merge, hits)

    def _merged(self, hits: Sequence[NodeWithScore], family: "_Family", sizes: "_Sizes", *, budget: int | None) -> list[Merged]:
        return merge_up(
            sorted(((hit.node_id, _number(hit.score)) for hit in hits), key=lambda hit: -hit[1]),
            parents=family.links,
            children=family.children,
            sizes=sizes,
            min_share=self._min_share,
            max_tokens=self._max_tokens,
            budget=budget,
        )

    def _read_parents(self, hits: Sequence[NodeWithScore], family: "_Family", sizes: "_Sizes") -> None:
        """Read the parents of the hits, then those of what was merged, and so on: a batch a level."""
        for _ in range(MAX_LEVELS):
            wanted = family.unread(entry.node_id for entry in self._merged(hits, family, sizes, budget=None))
            if not wanted:
                break
            found = {node.node_id: node for node in self._nodes.get_nodes(wanted)}
            family.add(wanted, {node_id: node for node_id, node in found.items() if metadata_matches(filterable_metadata(node), self._filters)})
        if circular := without_cycles(family.links)[1]:
            report("warning", f"The PARENT relations of {len(circular)} nodes go round in a circle, as that of {circular[0]!r}: they were not followed.")
        if missing := list(family.missing):
            report("info", f"{len(missing)} parents could not be read or do not match the filters, as {missing[0]!r}: their children stay.")

    def __repr__(self) -> str:
        return f"ParentMerger(min_share={self._min_share:g}, max_tokens={self._max_tokens}, budget={self._budget})"


class _Family:
    """The hits and what is known of the nodes above them.

    Attributes:
        nodes: the known nodes by id.
        links: the parent of each, if it is known.
        children: the children of each that has text to give.
        missing: ids that were asked for in vain, in order.
    """

    def __init__(self, hits: Mapping[str, BaseNode]) -> None:
        self.nodes: dict[str, BaseNode] = {}
        self.links: dict[str, str] = {}
        self.children: dict[str, list[str]] = {}
        self.missing: dict[str, None] = {}
        self._up: dict[str, str] = {}
        self.add((), hits)
        self._whole_way = bool(self.children)  # a hit that has children may stand far above another one

    def unread(self, node_ids: Iterable[str]) -> list[str]:
        """The next parents to read above these nodes."""
        wanted: dict[str, None] = {}
        for node_id in node_ids:
            seen, parent = {node_id}, self._up.get(node_id)
            while parent in self.nodes and parent not in seen and (self._whole_way or len(self.children.get(parent, ())) < 2):
                seen.add(parent)
                parent = self._up.get(parent)
            if parent is not None and parent not in self.nodes and parent not in self.missing:
                wanted[parent] = None
        return list(wanted)

    def add(self, wanted: Iterable[str], found: Mapping[str, BaseNode]) -> None:
        """Take in what came of a batch."""
        self.missing.update(dict.fromkeys(node_id for node_id in wanted if node_id not in found))
        for node_id, node in found.items():
            self.nodes[node_id] = node
            parent, children = related_id(node, NodeRelationship.PARENT), child_ids(node)
            if parent is not None:
                self._up[node_id] = parent
            if children and node.get_content(metadata_mode=MetadataMode.NONE).strip():
                self.children[node_id] = children
        self.links = {child: parent for child, parent in self._up.items() if parent in self.nodes}


class _Sizes(Mapping[str, int]):
    """Tokens of nodes, counted when they are asked for; of a text that is far too long only that it is."""

    def __init__(self, nodes: Mapping[str, BaseNode], count_tokens: Callable[[str], int], largest: int) -> None:
        self._nodes, self._count_tokens = nodes, count_tokens
        self._limit = largest * _LONGEST_TOKEN if largest else None
        self._known: dict[str, int] = {}

    def __getitem__(self, node_id: str) -> int:
        if node_id not in self._known:
            text = self._nodes[node_id].get_content(metadata_mode=MetadataMode.NONE)
            self._known[node_id] = len(text) if self._limit is not None and len(text) > self._limit else self._count_tokens(text)
        return self._known[node_id]

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def related_id(node: BaseNode, relation: NodeRelationship) -> str | None:
    """Id of the one node to which a relation leads; None when there is none, or a list.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> related_id(TextNode(text="a", relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="b")}), NodeRelationship.NEXT)
        'b'
    """
    related = node.relationships.get(relation)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None


def child_ids(node: BaseNode) -> list[str]:
    """Ids of the children that a node lists, each once, itself left out."""
    related = node.relationships.get(NodeRelationship.CHILD)
    listed = related if isinstance(related, list) else [related] if related is not None else []
    return [node_id for node_id in dict.fromkeys(info.node_id for info in listed) if node_id != node.node_id]


def node_source_of(nodes: Nodes) -> NodeSource:
    """What hands out the nodes by id, whatever they were given as.

    Args:
        nodes: a node source; a docstore; an index, whose docstore is read, or its vector store where that keeps the text;
            or nodes.

    Raises:
        ConfigurationError: something else was given.
        NodeSourceError: the index cannot give its nodes.
    """
    if isinstance(nodes, BaseDocumentStore):
        return DocstoreNodeSource(nodes)
    if isinstance(nodes, BaseIndex):
        in_vectors = bool(getattr(getattr(nodes, "vector_store", None), "stores_text", False))
        return DictNodeSource([*read_index_nodes(nodes), *read_docstore_nodes(nodes.docstore)]) if in_vectors else DocstoreNodeSource(nodes.docstore)
    if isinstance(nodes, NodeSource):
        return nodes
    if isinstance(nodes, (list, tuple)) and all(isinstance(node, BaseNode) for node in cast("Sequence[object]", nodes)):
        return DictNodeSource(nodes)
    raise ConfigurationError(f"nodes is {nodes!r:.200}. It must be a docstore, an index, a list of nodes or a NodeSource. Pass index.docstore, for example.")


def title_of(node: BaseNode) -> str:
    """What a person calls a node: its section, else its title or file, else how its text begins."""
    named = next((str(node.metadata[key]) for key in _TITLES if node.metadata.get(key)), None)
    title = named or " ".join(node.get_content(metadata_mode=MetadataMode.NONE)[: 4 * _TITLE_CHARS].split())
    return title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1] + "…"


def _number(score: float | None) -> float:
    return float("-inf") if score is None else float(score)


def _evidence(rank: int, entry: Merged, hit: NodeWithScore, family: _Family) -> Evidence:
    if entry.hits == (entry.node_id,):
        return Evidence(entry.node_id, ParentMerger.stage, rank, hit.score, "retrieved", {"hits": list(entry.hits)})
    number, title = len(child_ids(hit.node)), title_of(hit.node)
    if entry.node_id in entry.hits:
        why = f"retrieved, and {len(entry.hits) - 1} of its parts with it"
    else:
        direct = {above for found in entry.hits for above in _path(found, family.links)}.intersection(child_ids(hit.node))
        why = f"{len(direct)} of {number} parts of {title!r} were found, so the whole is given"
    return Evidence(entry.node_id, ParentMerger.stage, rank, hit.score, why, {"hits": list(entry.hits), "children": number})


def _path(node_id: str, links: Mapping[str, str]) -> set[str]:
    """A node and all above it, circles or not."""
    path: set[str] = set()
    above: str | None = node_id
    while above is not None and above not in path:
        path.add(above)
        above = links.get(above)
    return path
