import pytest
from llama_index.core.base.llms.types import ChatMessage

from llama_index_advanced_rag.answering.history import ListMemory, refers_back, with_history_terms
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

ENGLISH, FRENCH = TextAnalyzer("en"), TextAnalyzer("fr")


def told(*texts: str) -> list[ChatMessage]:
    return [ChatMessage(role="user" if index % 2 == 0 else "assistant", content=text) for index, text in enumerate(texts)]


@pytest.mark.parametrize("message", ["When was she born?", "And in 2022?", "Why?", "What about services?"])
def test_english_messages_that_refer_back(message: str) -> None:
    assert refers_back(message, analyzer=ENGLISH)


@pytest.mark.parametrize("message", ["Et en 2022 ?", "Quand est-elle née ?", "Pourquoi ?", "Quelles sont ses obligations ?"])
def test_french_messages_that_refer_back(message: str) -> None:
    assert refers_back(message, analyzer=FRENCH)


@pytest.mark.parametrize("message", ["What is the capital of France?", "How many people work for the state railway company?"])
def test_messages_that_stand_alone(message: str) -> None:
    assert not refers_back(message, analyzer=ENGLISH)
    assert with_history_terms(message, told("Who founded Acme?", "Jane Doe [1]."), analyzer=ENGLISH) == message


def test_terms_come_from_the_last_questions_and_the_names_of_the_last_answer() -> None:
    history = told("Tell me about bees.", "Bees fly.", "Who founded Acme?", "Acme was founded by Jane Doe in spring [1].")
    question = with_history_terms("When was she born?", history, analyzer=ENGLISH)
    assert question.startswith("When was she born? founded Acme ")
    assert question.endswith("Jane Doe")
    assert "spring" not in question


def test_history_is_bounded_and_not_changed() -> None:
    history = told("word" + " ".join(f"w{i}x" for i in range(100)), " ".join(f"Name{i}" for i in range(100)))
    before = [message.model_copy(deep=True) for message in history]
    assert len(with_history_terms("And it?", history, analyzer=ENGLISH).split()) <= 2 + 10 + 5
    assert history == before


def test_no_history_and_no_message() -> None:
    assert with_history_terms("Why?", [], analyzer=ENGLISH) == "Why?"
    assert with_history_terms(" ", told("a", "b"), analyzer=ENGLISH) == " "


async def test_list_memory_keeps_the_interface_of_llamaindex() -> None:
    first = ChatMessage(role="user", content="one")
    memory = ListMemory.from_defaults(chat_history=[first])
    await memory.aput(ChatMessage(role="assistant", content="two"))
    assert [message.content for message in await memory.aget(input="x")] == ["one", "two"]
    memory.set([first])
    assert memory.get_all() == [first]
    memory.reset()
    assert memory.get() == []
