"""The index where LlamaIndex applications put a VectorStoreIndex: engines, routers, agents, chats, pipelines."""

import json
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import PromptTemplate, StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory
from llama_index.core.objects import ObjectIndex
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine, RouterQueryEngine, TransformQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever, RecursiveRetriever, RouterRetriever
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.retrievers.bm25 import BM25Retriever

from llama_index_advanced_rag import CorpusIndex, FlatVectorStore, HybridRetriever
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError, UnknownArgumentError
from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.query_engines.grounded_chat import GroundedChatEngine
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM

QUESTION = "What was the revenue in 2023?"
agents = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside LlamaIndex's agents and workflows
CHOOSE_SECOND = '[{"choice": 2, "reason": "it is about money"}]'


def documents() -> list[Document]:
    texts = {
        "fox.txt": "The red fox hunts at night. It eats mice and berries.",
        "sea.txt": "The sea is blue and deep. Whales sing under the waves.",
        "tax.txt": "Corporate tax rose to 25 percent in 2023. Revenue in 2023 was 81,797 million dollars.",
    }
    return [Document(text=text, id_=name, metadata={"title": name}) for name, text in texts.items()]


@pytest.fixture
def index() -> CorpusIndex:
    return CorpusIndex.from_documents(documents(), embed_model=DeterministicEmbedding())


def sources(nodes: list[NodeWithScore]) -> list[str | None]:
    return [item.node.ref_doc_id for item in nodes]


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
@pytest.mark.parametrize("response_mode", ["compact", "refine", "tree_summarize"])
def test_retriever_query_engine(index: CorpusIndex, mode: str, response_mode: str):
    llm = ScriptedLLM(["81,797 million"])
    engine = RetrieverQueryEngine.from_args(index.as_retriever(mode, similarity_top_k=2), llm=llm, response_mode=response_mode)
    response = engine.query(QUESTION)
    assert str(response) == "81,797 million"
    assert "tax.txt" in sources(response.source_nodes)
    assert "81,797" in llm.prompts[0]


async def test_query_engine_tool_in_sync_and_async(index: CorpusIndex):
    tool = QueryEngineTool.from_defaults(index.as_query_engine(), name="reports", description="figures of the company")
    called, acalled = tool.call(QUESTION), await tool.acall(QUESTION)
    assert "81,797" in called.content
    assert called.content == acalled.content
    assert sources(called.raw_output.source_nodes) == ["tax.txt"]


def test_retriever_tool(index: CorpusIndex):
    assert "81,797" in RetrieverTool.from_defaults(index.as_retriever(similarity_top_k=1), description="figures").call(QUESTION).content


async def test_router_query_engine(index: CorpusIndex):
    animals = QueryEngineTool.from_defaults(index.as_query_engine(), name="animals", description="about animals")
    money = QueryEngineTool.from_defaults(index.as_query_engine(retriever_mode="lexical"), name="money", description="about money")
    selector = LLMSingleSelector.from_defaults(llm=ScriptedLLM([CHOOSE_SECOND]))
    router = RouterQueryEngine(selector=selector, query_engine_tools=[animals, money], llm=ScriptedLLM())
    response = router.query(QUESTION)
    assert "81,797" in str(response)
    assert "[1]" in str(response)
    assert str(await router.aquery(QUESTION)) == str(response)


def test_router_retriever(index: CorpusIndex):
    tools = [RetrieverTool.from_defaults(index.as_retriever(mode), description=mode) for mode in ("dense", "lexical")]
    router = RouterRetriever.from_defaults(tools, llm=ScriptedLLM([CHOOSE_SECOND]))
    assert sources(router.retrieve(QUESTION)) == ["tax.txt"]


@agents
async def test_react_agent_calls_the_index_as_a_tool(index: CorpusIndex):
    llm = ScriptedLLM(
        [
            f'Thought: I need a tool.\nAction: reports\nAction Input: {{"input": "{QUESTION}"}}',
            "Thought: I can answer without using any more tools.\nAnswer: 81,797 million.",
        ]
    )
    tool = QueryEngineTool.from_defaults(index.as_query_engine(), name="reports", description="figures of the company")
    result = await ReActAgent(tools=[tool], llm=llm, streaming=False).run(QUESTION)
    assert str(result) == "81,797 million."
    assert "81,797" in result.tool_calls[0].tool_output.content
    assert "81,797" in llm.prompts[1], "the agent has read the cited answer"


@agents
async def test_function_agent_calls_the_index_as_a_tool(index: CorpusIndex):
    def reply(messages: list[ChatMessage], **_: Any) -> ChatMessage:
        if any(message.role == MessageRole.TOOL for message in messages):
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"The tool says: {messages[-1].content}")
        call = {"tool_id": "1", "tool_name": "reports", "tool_kwargs": {"input": QUESTION}}
        return ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [ToolSelection(**call)]})

    tool = QueryEngineTool.from_defaults(index.as_query_engine(), name="reports", description="figures of the company")
    result = await FunctionAgent(tools=[tool], llm=MockFunctionCallingLLM(response_generator=reply), streaming=False).run(QUESTION)
    assert "81,797" in str(result)


def test_an_index_of_tools(index: CorpusIndex):
    tools = [QueryEngineTool.from_defaults(index.as_query_engine(), name=name, description=f"about {name}") for name in ("foxes", "taxes")]
    found = ObjectIndex.from_objects(tools, index_cls=CorpusIndex, embed_model=DeterministicEmbedding()).as_retriever(similarity_top_k=1).retrieve("taxes")
    assert [tool.metadata.name for tool in found] == ["taxes"]


def test_stock_retrievers_over_ours(index: CorpusIndex):
    hybrid, words = index.as_retriever("hybrid", similarity_top_k=2), index.as_retriever("lexical")
    assert "tax.txt" in sources(QueryFusionRetriever([hybrid, words], num_queries=1, llm=ScriptedLLM(), use_async=False).retrieve(QUESTION))
    assert "tax.txt" in sources(AutoMergingRetriever(hybrid, index.storage_context).retrieve(QUESTION))
    assert "tax.txt" in sources(RecursiveRetriever("all", retriever_dict={"all": hybrid}).retrieve(QUESTION))


def test_ours_over_a_stock_retriever_of_the_same_index(index: CorpusIndex):
    stock = BM25Retriever.from_defaults(docstore=index.docstore, similarity_top_k=1)
    assert len(stock.corpus) == 3, "each passage once"
    assert sources(HybridRetriever([stock, index.as_retriever("dense")], similarity_top_k=1).retrieve("revenue dollars")) == ["tax.txt"]


def test_stock_engines_over_the_index(index: CorpusIndex):
    cited = CitationQueryEngine.from_args(index, llm=ScriptedLLM(["81,797 million [1]."]), similarity_top_k=1).query(QUESTION)
    assert len(cited.source_nodes) == 1
    hyde = TransformQueryEngine(index.as_query_engine(), HyDEQueryTransform(llm=ScriptedLLM(["Revenue was 81,797 million."])))
    assert "81,797" in str(hyde.query(QUESTION))


def test_arguments_of_a_query_engine_that_llamaindex_users_write(index: CorpusIndex):
    streamed = index.as_query_engine(
        streaming=True, similarity_top_k=2, node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)], verbose=True
    ).query(QUESTION)
    assert isinstance(streamed, StreamingResponse)
    assert "81,797" in "".join(streamed.response_gen)
    prompt = PromptTemplate("{context_str}\nQ: {query_str}\nA with [n]:")
    llm = ScriptedLLM(["81,797 [1]."])
    engine = index.as_query_engine(llm, answer_prompt=prompt)
    engine.query(QUESTION)
    assert llm.prompts[0].endswith(f"Q: {QUESTION}\nA with [n]:")
    engine.update_prompts({"grounded_answer": PromptTemplate("Say it: {context_str} {query_str}")})
    engine.query(QUESTION)
    assert llm.prompts[1].startswith("Say it: ")
    for name in ("response_mode", "text_qa_template", "response_synthesizer", "vector_store_query_mode", "use_async"):
        with pytest.raises(UnknownArgumentError, match=f"For '{name}': "):
            index.as_query_engine(**{name: "x"})


def test_other_queries_come_from_the_engines_llm_or_the_indexs_own(index: CorpusIndex):
    llm = ScriptedLLM(['["income in 2023"]', "81,797 million [1]."])
    assert "81,797" in str(index.as_query_engine(llm, num_queries=2).query(QUESTION))
    assert len(llm.prompts) == 2
    own = CorpusIndex.from_documents(documents(), embed_model=DeterministicEmbedding(), llm=ScriptedLLM(['["income in 2023"]']))
    assert "tax.txt" in sources(own.as_retriever(num_queries=2).retrieve(QUESTION))
    with pytest.raises(ConfigurationError, match="there is no llm"):
        index.as_retriever(num_queries=2)


HISTORY = [ChatMessage(role=MessageRole.USER, content="I like foxes."), ChatMessage(role=MessageRole.ASSISTANT, content="So do I.")]


@pytest.mark.parametrize("llm", [None, "scripted"])
def test_memory_and_history_go_to_our_chat(index: CorpusIndex, llm: str | None):
    model = ScriptedLLM([QUESTION, "81,797 million [1]."]) if llm else None
    memory = Memory.from_defaults(session_id="one")
    chat = index.as_chat_engine(llm=model, memory=memory, chat_history=HISTORY)
    assert isinstance(chat, GroundedChatEngine)
    assert "81,797" in str(chat.chat(QUESTION))
    assert [message.content for message in memory.get_all()][:3] == ["I like foxes.", "So do I.", QUESTION]
    assert chat.chat_history == memory.get_all()


def test_the_prompt_that_condenses_is_ours_to_choose(index: CorpusIndex):
    llm = ScriptedLLM([QUESTION, "81,797 [1]."])
    prompt = PromptTemplate("Condense: {chat_history} | {question}")
    index.as_chat_engine(ChatMode.CONDENSE_QUESTION, llm, chat_history=HISTORY, condense_prompt=prompt).chat("And the revenue?")
    assert llm.prompts[0].startswith("Condense: ")


@pytest.mark.parametrize("mode", ["context", "condense_plus_context"])
def test_stock_chat_modes_get_their_arguments_and_the_retriever_its_own(index: CorpusIndex, mode: str):
    memory = Memory.from_defaults(session_id="two")
    chat = index.as_chat_engine(mode, ScriptedLLM(["81,797"]), memory=memory, system_prompt="Be brief.", similarity_top_k=1, retriever_mode="lexical")
    assert sources(chat.chat(QUESTION).source_nodes) == ["tax.txt"]
    assert memory.get_all()
    with pytest.raises(UnknownArgumentError, match=f"'smilarity'.*LlamaIndex's chat mode '{mode}'"):
        index.as_chat_engine(mode, ScriptedLLM(), smilarity=1)


def test_simple_chat_takes_no_retriever_arguments(index: CorpusIndex):
    assert str(index.as_chat_engine("simple", ScriptedLLM(["hello"])).chat("hi")) == "hello"
    with pytest.raises(UnknownArgumentError, match="'similarity_top_k'"):
        index.as_chat_engine("simple", ScriptedLLM(), similarity_top_k=1)


def test_an_unknown_chat_mode_lists_the_modes(index: CorpusIndex):
    with pytest.raises(ConfigurationError, match="chat_mode is 'talk'. It must be one of 'simple'"):
        index.as_chat_engine("talk")
    with pytest.raises(UnknownArgumentError, match=r"For 'system_prompt': .*ChatMode\.CONTEXT"):
        index.as_chat_engine(system_prompt="Be brief.")


def test_ingestion_pipeline_into_our_store():
    model, store = DeterministicEmbedding(), FlatVectorStore()
    pipeline = IngestionPipeline(
        transformations=[SentenceChunkParser(), model], vector_store=store, docstore=SimpleDocumentStore(), docstore_strategy=DocstoreStrategy.UPSERTS
    )
    assert len(pipeline.run(documents=documents())) == 3
    assert pipeline.run(documents=documents()) == []
    pipeline.run(documents=[Document(text="Revenue in 2023 was 99 dollars.", id_="tax.txt", metadata={"title": "tax.txt"})])
    found = VectorStoreIndex.from_vector_store(store, embed_model=model).as_retriever(similarity_top_k=5).retrieve(QUESTION)
    assert sorted(sources(found)) == ["fox.txt", "sea.txt", "tax.txt"]
    assert "99 dollars" in found[0].node.get_content()


async def test_ingestion_pipeline_runs_async_and_feeds_an_index():
    pipeline = IngestionPipeline(transformations=[SentenceChunkParser(), DeterministicEmbedding()], vector_store=FlatVectorStore())
    nodes = await pipeline.arun(documents=documents())
    index = CorpusIndex(nodes, embed_model=DeterministicEmbedding())
    assert sources(index.as_retriever("lexical").retrieve("revenue dollars")) == ["tax.txt"]
    assert set(index.ref_doc_info) == {"fox.txt", "sea.txt", "tax.txt"}
    index.delete_ref_doc("tax.txt")
    assert index.as_retriever("lexical").retrieve("revenue dollars") == []


@pytest.mark.parametrize("packaged", [False, True])
def test_pipeline_in_several_processes_gives_the_same_nodes(packaged: bool, request: pytest.FixtureRequest):
    """Offline: a worker that wanted to fetch a tokenizer or a model would hang."""
    model = request.getfixturevalue("minilm") if packaged else DeterministicEmbedding()
    parser = SentenceChunkParser.for_model(model, chunk_size=12) if packaged else SentenceChunkParser(chunk_size=12, chunk_overlap=0)
    pipeline = IngestionPipeline(transformations=[parser, DeterministicEmbedding()], disable_cache=True)
    assert pipeline.run(documents=documents(), num_workers=2) == pipeline.run(documents=documents())


def test_embeddings_of_a_pipeline_are_used_when_asked_for():
    nodes = IngestionPipeline(transformations=[SentenceChunkParser(), DeterministicEmbedding()]).run(documents=documents())
    model = DeterministicEmbedding()
    index, own = CorpusIndex(embed_model=model), CorpusIndex(nodes, embed_model=DeterministicEmbedding())
    index.insert_nodes([*nodes[:-1], nodes[-1].model_copy(update={"embedding": None})], use_embeddings=True)
    assert model.texts == [nodes[-1].get_content(metadata_mode=MetadataMode.EMBED)]
    for mode in ("dense", "hybrid"):
        hits = [[(hit.node_id, hit.score) for hit in one.as_retriever(mode).retrieve(QUESTION)] for one in (index, own)]
        assert hits[0] == hits[1]
    assert index.corpus.settings.embedding == own.corpus.settings.embedding


async def test_embeddings_of_nodes_are_not_used_unasked_and_are_checked():
    model = DeterministicEmbedding()
    index = CorpusIndex(embed_model=model)
    wrong = TextNode(text="The red fox", id_="wrong", embedding=[1.0, *[0.0] * 63])
    await index.ainsert_nodes([wrong])
    assert model.texts == ["The red fox"]
    await index.ainsert_nodes(
        [wrong.model_copy(update={"id_": "again"}), TextNode(text="other", id_="other", embedding=[0.0, 1.0, *[0.0] * 62])], use_embeddings=True
    )
    assert model.texts == ["The red fox"]  # the text is known and keeps its vector
    hits = index.as_retriever("dense", similarity_top_k=3).retrieve("The red fox")
    assert [(hit.node_id, round(hit.score or 0.0, 5)) for hit in hits[:2]] == [("again", 1.0), ("wrong", 1.0)]
    with pytest.raises(EmbeddingMismatchError, match=r"\[3\].*length 64"):
        await index.ainsert_nodes([TextNode(text="short", embedding=[1.0, 0.0, 0.0])], use_embeddings=True)
    for bad, what in ((0.0, "is zero"), (float("nan"), "has NaN"), (1e300, "infinite")):
        with pytest.raises(ConfigurationError, match=f"'bad' carries .*{what}"):
            await index.ainsert_nodes([TextNode(text="bad", id_="bad", embedding=[bad] * 64)], use_embeddings=True)
    assert index.corpus.counts()["nodes"] == 3


def test_our_store_under_a_stock_index_with_a_storage_context():
    context = StorageContext.from_defaults(vector_store=FlatVectorStore())
    stock = VectorStoreIndex.from_documents(documents(), storage_context=context, embed_model=DeterministicEmbedding())
    hybrid = HybridRetriever.from_index(stock, similarity_top_k=1)
    assert sources(hybrid.retrieve("revenue dollars 2023")) == ["tax.txt"]


def test_a_hybrid_from_a_reopened_index_of_ours_finds_its_model(tmp_path: Path):
    CorpusIndex.from_documents(documents(), embed_model=DeterministicEmbedding(), persist_dir=tmp_path / "i").close()
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as opened:
        hybrid = HybridRetriever.from_index(opened, similarity_top_k=1)
        assert hybrid.retrievers["dense"].embed_model is opened.embed_model
        assert sources(hybrid.retrieve("revenue dollars 2023")) == ["tax.txt"]


def test_a_response_can_be_stored_as_json(index: CorpusIndex):
    response = index.as_query_engine().query(QUESTION)
    assert json.loads(json.dumps(response.metadata))["citations"][0]["ref_doc_id"] == "tax.txt"
