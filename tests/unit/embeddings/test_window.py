import pickle

from llama_index.core.schema import TextNode

from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, WordCachedCounter, embedding_window, overlong_node_ids, overlong_warning
from llama_index_advanced_rag.testing import DeterministicEmbedding

WINDOW = EmbeddingWindow(3, lambda text: len(text.split()))


def test_an_unknown_model_has_no_limit_and_the_global_tokenizer() -> None:
    window = embedding_window(DeterministicEmbedding())
    assert window.max_tokens is None
    assert window.count_tokens("Hello, world!") == 4
    assert window.count_tokens("half a pair \ud800") > 3
    assert not window.overflows("word " * 10_000)
    assert pickle.loads(pickle.dumps(window)).count_tokens("Hello, world!") == 4


def test_openai_models_have_theirs() -> None:
    class OpenAIEmbedding(DeterministicEmbedding):
        @classmethod
        def class_name(cls) -> str:
            return "OpenAIEmbedding"

    window = embedding_window(OpenAIEmbedding())
    assert window.max_tokens == 8191
    assert window.overflows("word " * 9000)


def test_nodes_longer_than_the_window_are_named_with_their_metadata_counted() -> None:
    nodes = [TextNode(id_="fits", text="one two three"), TextNode(id_="long", text="one two three", metadata={"title": "more"})]
    assert overlong_node_ids(nodes, WINDOW) == ["long"]
    assert "1 of 2 chunks are longer than the 3 tokens" in (overlong_warning(nodes, WINDOW) or "")
    assert overlong_warning(nodes[:1], WINDOW) is None


def test_words_are_counted_once() -> None:
    asked: list[str] = []

    def count_words(words: list[str]) -> list[int]:
        asked.extend(words)
        return [len(word) for word in words]

    counter = WordCachedCounter(count_words)
    assert counter("aa bb aa\n") == counter("bb aa\taa") == 6
    assert counter("") == counter(" \n ") == 0
    assert counter("x" * 100) == counter("x" * 100) == 100
    assert asked == ["aa", "bb", "x" * 100, "x" * 100]
