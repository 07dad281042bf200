"""Documents to chunks that fit the embedding model: whole sentences, true offsets, the same ids in every run."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, MetadataMode, Node, TextNode
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import in_thread, with_progress
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, default_window, embedding_window
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.chunking import chunk_spans
from llama_index_advanced_rag.hierarchy.keys import PAGE_LABEL
from llama_index_advanced_rag.hierarchy.node_making import NodeMaker, link_neighbours
from llama_index_advanced_rag.hierarchy.pages import page_starts_of, without_layout
from llama_index_advanced_rag.hierarchy.prefixes import MAX_PREFIX_TOKENS
from llama_index_advanced_rag.text.sentences import sentence_spans
from llama_index_advanced_rag.trace import report

DEFAULT_CHUNK_TOKENS = 256
_GLOBAL_TOKENIZER = "global"


class SentenceChunkParser(NodeParser):
    """Cuts documents into chunks of whole sentences, sized in the embedding model's own tokens.

    Every node is a slice of its document (`document.text[node.start_char_idx:node.end_char_idx] == node.text`) and has SOURCE,
    PREVIOUS and NEXT relations (id and type only). Its id is a uuid5 of document id, level, text and the ordinal among equal texts of the document:
    the same document gives the same nodes in every run, sync, async and in an `IngestionPipeline`. Metadata, excluded keys and
    templates are the document's; `page_starts` (character offsets of its pages) becomes `page_label` ("3" or "3-4"), which
    is not embedded, unless the document has a `page_label` itself; `bookmarks` are left out. A document without visible text gives no node.

    Args:
        chunk_size: most tokens of what is embedded: text and the metadata in front of it (of which at most 48 tokens, and at
            most half of the size, are reserved; longer metadata is reported when it makes a text overflow the model's window).
        chunk_overlap: most tokens that a chunk repeats from the one before, in whole sentences.
        language: ISO code for the sentence models; "auto" looks at each document.
        tokenizer: identity of the model whose tokens are counted; set by `for_model`. "global" is LlamaIndex's tokenizer.

    Raises:
        ConfigurationError: a size that cannot work, or a tokenizer that only `for_model` can attach.

    Example:
        >>> parser = SentenceChunkParser(chunk_size=10, chunk_overlap=0, language="en")
        >>> document = Document(text="The fox sleeps in its den. The hen is awake all night.", id_="fable.txt")
        >>> [node.text for node in parser.get_nodes_from_documents([document])]
        ['The fox sleeps in its den.', 'The hen is awake all night.']
    """

    chunk_size: int = Field(default=DEFAULT_CHUNK_TOKENS, description="Most tokens of a chunk, its metadata included.", gt=0)
    chunk_overlap: int = Field(default=32, description="Most tokens repeated from the chunk before.", ge=0)
    language: str = Field(default="auto", description="ISO code of the language, or auto.")
    tokenizer: str = Field(default=_GLOBAL_TOKENIZER, description="Identity of the model whose tokens are counted.")
    _window: EmbeddingWindow | None = PrivateAttr(default=None)

    def __init__(self, *, chunk_size: int = DEFAULT_CHUNK_TOKENS, chunk_overlap: int = 32, **kwargs: Any) -> None:
        if chunk_size < 1 or not 0 <= chunk_overlap < chunk_size:
            raise ConfigurationError(
                f"chunk_size={chunk_size!r} with chunk_overlap={chunk_overlap!r} cannot work. "
                "Expected chunk_size >= 1 and 0 <= chunk_overlap < chunk_size. Lower the overlap or raise the size."
            )
        super().__init__(chunk_size=chunk_size, chunk_overlap=chunk_overlap, **kwargs)  # type: ignore[call-arg]
        if self.tokenizer == _GLOBAL_TOKENIZER:
            self._window = default_window()

    @classmethod
    def for_model(cls, embed_model: BaseEmbedding, *, chunk_size: int | None = None, chunk_overlap: int | None = None, **kwargs: Any) -> Self:
        """A parser that counts in the tokens of an embedding model.

        Args:
            embed_model: the model the chunks are for.
            chunk_size: None takes what the model's window holds, at most 256. A larger size than the window is allowed and reported.
            chunk_overlap: None takes 32, at most half of the size.
            **kwargs: other fields, `language` for example.
        """
        window = embedding_window(embed_model)
        size = min(DEFAULT_CHUNK_TOKENS, window.max_tokens or DEFAULT_CHUNK_TOKENS) if chunk_size is None else chunk_size
        overlap = min(32, size // 2) if chunk_overlap is None else chunk_overlap
        parser = cls(chunk_size=size, chunk_overlap=overlap, tokenizer=embedding_identity(embed_model), **kwargs)
        parser._window = window
        if window.max_tokens is not None and size > window.max_tokens:
            report(
                "warning",
                f"chunk_size={size} is more than the {window.max_tokens} tokens that {embed_model.model_name!r} reads: "
                "the rest of a longer chunk is not embedded.",
            )
        return parser

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "SentenceChunkParser"

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, embed_model: BaseEmbedding | None = None, **kwargs: Any) -> Self:
        """The parser of a `to_dict()`; one made by `for_model` needs its model again, and only that one.

        Raises:
            ConfigurationError: when it is used without its model, or given another one.
        """
        fields = {name: value for name, value in {**data, **kwargs}.items() if name not in ("class_name", "id_func")}
        parser = cls(**fields)
        if embed_model is not None:
            identity = embedding_identity(embed_model)
            if parser.tokenizer != identity:
                raise ConfigurationError(f"This parser counts tokens of {parser.tokenizer!r}, not of {identity!r}. Pass the model it was made for.")
            parser._window = embedding_window(embed_model)
        return parser

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._window = (state.get("__pydantic_private__") or {}).get("_window")

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        documents = with_progress(nodes, total=len(nodes), description="Parsing nodes", show_progress=show_progress)
        return [node for document in documents for node in self._nodes_of(document)]

    async def _aparse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        return await in_thread(self._parse_nodes, nodes, show_progress=show_progress)

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        """Nothing is left to do: the stock step would search the offsets by text and link by a half rewritten source."""
        return nodes

    def _nodes_of(self, document: BaseNode) -> list[TextNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        sentences = sentence_spans(text, language=self.language)
        if not sentences:
            return []
        shape = self._shape(document)
        size = self.chunk_size - self._reserved_tokens(shape, document.node_id)
        spans = chunk_spans(text, sentences, count_tokens=self._counter().count_tokens, max_tokens=size, overlap_tokens=min(self.chunk_overlap, size // 2))
        maker = NodeMaker(document, text, shape, self.id_func)
        chunks = [maker.make("chunk", start, end) for start, end in spans]
        if self.include_prev_next_rel:
            link_neighbours(chunks)
        return chunks

    def _counter(self) -> EmbeddingWindow:
        if self._window is None:
            name = self.class_name()
            raise ConfigurationError(
                f"This parser counts tokens of {self.tokenizer!r} but has not got that model. "
                f"Make it with {name}.for_model(embed_model), or {name}.from_dict(data, embed_model=embed_model)."
            )
        return self._window

    def _shape(self, document: BaseNode) -> dict[str, Any]:
        """What all chunks of a document share: metadata and how it is shown."""
        metadata = without_layout(document.metadata) if self.include_metadata else {}
        not_embedded = list(document.excluded_embed_metadata_keys)
        if PAGE_LABEL not in metadata and PAGE_LABEL not in not_embedded and page_starts_of(document):
            not_embedded.append(PAGE_LABEL)
        return {
            "metadata": metadata,
            "excluded_embed_metadata_keys": not_embedded,
            "excluded_llm_metadata_keys": list(document.excluded_llm_metadata_keys),
            "metadata_template": document.metadata_template,
            "metadata_seperator": document.metadata_separator,
            **({"text_template": document.text_template} if isinstance(document, (TextNode, Node)) else {}),
        }

    def _reserved_tokens(self, shape: dict[str, Any], document_id: str) -> int:
        """Tokens kept free for the metadata that is embedded in front of each chunk."""
        window = self._counter()
        prefix = window.count_tokens(TextNode(text="", **shape).get_content(metadata_mode=MetadataMode.EMBED))
        reserved = min(prefix, MAX_PREFIX_TOKENS, self.chunk_size // 2)
        if prefix > reserved and window.max_tokens is not None and self.chunk_size - reserved + prefix > window.max_tokens:
            report(
                "warning",
                f"The metadata embedded with each chunk of {document_id!r} takes {prefix} tokens, {reserved} are reserved: "
                "the end of long chunks is not embedded. "
                "Name what need not be embedded in excluded_embed_metadata_keys.",
            )
        return reserved
