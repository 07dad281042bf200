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
# # The router: each question the way that suits it
#
# One index, five ways to answer, and a router that chooses among them for each question. On quarterly reports and encyclopedia passages in one
# index, this notebook
#
# 1. builds the index,
# 2. asks it questions of several kinds and shows which way each one took,
# 3. looks at one decision and at what the other ways would have found,
# 4. compares three routers, and shows what happens in doubt and when a router fails,
# 5. adds routes of your own, and puts the decision into LlamaIndex's own `RouterQueryEngine`,
# 6. takes several routes at once under a time limit,
# 7. measures, on a few questions, what the choice brings.
#
# It calls no LLM, downloads nothing and takes about a minute. [docs/router.md](../docs/router.md) is the reference.
#
# **En bref.** *Le routeur lit chaque question et choisit comment y répondre : sans document (`none`), par une recherche simple (`simple`), en suivant
# les noms d'un passage à l'autre (`moderate`), en reliant plusieurs choses (`complex`) ou par la structure des documents et leurs tableaux
# (`structural`). En cas de doute ou d'échec il prend une voie sûre, et le dit. Les règles connaissent le français et l'anglais ; on peut les
# remplacer par des exemples, par un LLM ou par une fonction. La dernière partie mesure ce que ce choix apporte.*
#
# ## Install
#
# `offline` brings a small English embedding model, `files` reads PDF. Skip this cell if you have both.

# %% tags=["skip-execution"]
# %pip install --quiet "llama-index-advanced-rag[offline,files]"

# %%
import html
import json
import os
import time
from collections import Counter
from pathlib import Path
from textwrap import shorten

from IPython.display import HTML
from llama_index.core import Document
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag import CorpusIndex, capture_trace
from llama_index_advanced_rag.reading.folder import read_file, read_folder

# %% [markdown]
# ## 1. One index over everything
#
# The environment variable `ADVANCED_RAG_DATA` names a folder with the data sets: the reports of Apple and NVIDIA for one quarter (PDF), and 300 passages
# of HotpotQA, whose questions need two passages each. They do not come with the repository. Without them this notebook runs on the documents in
# `examples/docs`, with other questions.

# %%
DATA = Path(os.environ["ADVANCED_RAG_DATA"]) if os.environ.get("ADVANCED_RAG_DATA") else None


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def data_sets():
    """Two reports and 300 passages, and the questions whose passages are among them."""
    reports = [read_file(DATA / "sec-10-q" / "docs" / f"2023 Q2 {company}.pdf") for company in ("AAPL", "NVDA")]
    passages = read_lines(DATA / "multihop" / "hotpotqa" / "corpus.jsonl")
    questions = read_lines(DATA / "multihop" / "hotpotqa" / "questions.jsonl")
    needed = {passage for question in questions for passage in question["gold"]}
    passages.sort(key=lambda passage: passage["id"] not in needed)  # those first, all others as they come
    documents = [Document(id_=item["id"], text=item["text"], metadata={"title": item["title"]}) for item in passages[:300]]
    return reports + documents, [(question["question"], question["gold"]) for question in questions]


def examples():
    """The documents of the repository, and questions that need one of them each."""
    folder = next(folder / "examples" for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "examples" / "docs").is_dir())
    print(f"ADVANCED_RAG_DATA is not set, so the data sets are not here. Everything below runs on {folder.name}/docs instead.")
    questions = [(item["question"], [item["file"]]) for item in read_lines(folder / "questions.jsonl")]
    return read_folder(folder / "docs").documents, questions


documents, measured = data_sets() if DATA else examples()
print(f"{len(documents)} documents, {len(measured)} questions to measure with")

# %%
index = CorpusIndex.from_documents(documents, embed_model="packaged", language="en" if DATA else "auto")
index

# %% [markdown]
# ## 2. Ask
#
# One engine, seven questions. There is no LLM, so answers are sentences of the documents; the greeting needs none of them.

# %%
if DATA:
    questions = {
        "figure of a report": "How much did Apple spend on research and development in the quarter that ended on April 1, 2023?",
        "section": "In which section does NVIDIA describe its legal proceedings?",
        "fact": "What is the official dog breed of Texas?",
        "bridge": "What is the population of the town in which Kerry Saxby-Junna was born?",
        "comparison": "Are Medici and Senet both board games?",
        "in French": "Quel est le lien entre Yoko Ono et John Lennon ?",
        "greeting": "Thanks, that was very helpful!",
    }
else:
    questions = {
        "figure of a report": "What were the Treasury's revenues in the fiscal year ending June 30, 1862?",
        "section": "In which section does the Factbook speak of the climate of Iceland?",
        "fact": "What is the first of the four essential human freedoms?",
        "bridge": "Which natural hazards threaten the country where the Althing sits?",
        "comparison": "Compare the climate of Iceland and France.",
        "in French": "Que dit l'article 16 de la Déclaration de 1789 ?",
        "greeting": "Thanks, that was very helpful!",
    }


def table(heads, rows):
    """Rows of texts as a table."""

    def line(tag, cells):
        texts = (html.escape(str(cell)).replace("$", "<span>$</span>") for cell in cells)  # else two dollars would make a formula
        return "<tr>" + "".join(f"<{tag} style='text-align:left;vertical-align:top'>{text}</{tag}>" for text in texts) + "</tr>"

    return HTML("<table>" + line("th", heads) + "".join(line("td", row) for row in rows) + "</table>")


def place(node):
    """Where a passage stands, for a person: title, page and heading, as far as it has them."""
    page, section = node.metadata.get("page_label"), node.metadata.get("section_path", "").split(" > ")[-1]
    return ", ".join(dict.fromkeys(part for part in (node.metadata["title"], page and f"p. {page}", section) if part))


engine = index.as_query_engine(retriever_mode="auto")
rows = []
for kind, question in questions.items():
    response = engine.query(question)
    route = response.metadata["route"]
    source = place(response.source_nodes[0].node) if response.source_nodes else "none"
    rows.append((f"{question} ({kind})", ", ".join(route["taken"]), route["reason"], source, shorten(str(response), 200, placeholder=" …")))
table(("question", "route", "because", "first source", "answer"), rows)

# %% [markdown]
# The reason begins with the words of the question that decided. Without an LLM an answer quotes the sentences most like the question, so over a bridge it
# tends to stop at the first passage; the next cells show what else was found, which an LLM would read.
#
# ## 3. Look at one decision
#
# With `explain=True` the routes that were not taken are asked too, for the trace only. That costs their searches, so it is for looking and not for serving.

# %%
question = questions["bridge"]
curious = index.as_query_engine(retriever_mode="auto", explain=True, similarity_top_k=5)
with capture_trace(question) as trace:
    response = curious.query(question)
trace

# %% [markdown]
# The same for a program: `metadata["route"]` holds the decision and the node ids that the other routes found. The engine's retriever gives both with the
# nodes themselves; here for the bridge and for the figure.


# %%
def first_passages(nodes, most=3):
    return "; ".join(list(dict.fromkeys(place(node) for node in nodes))[:most])


rows = []
for question in (questions["bridge"], questions["figure of a report"]):
    routed = curious.retriever.search(QueryBundle(question))
    found = {routed.taken[0]: [hit.node for hit in routed.hits]}
    found |= {name: [index.docstore.get_node(node_id) for node_id in node_ids] for name, node_ids in routed.others.items()}
    for name, nodes in found.items():
        rows.append((question if name in routed.taken else "", name, f"{routed.elapsed_ms[name]:.0f}", first_passages(nodes)))
table(("question", "route (the first was taken)", "ms", "first passages"), rows)

# %% [markdown]
# With the data sets: over the bridge, the walks over names (`moderate`, `complex`) have the right town in the second place, where words and meaning have
# other towns. For the figure, all begin with the note that repeats it; `structural` and `simple` have the income statement behind it, the walks other pages.
#
# ## 4. Who decides
#
# `router=` takes a name, a `Router` or a function. Rules read the words of the question; `"embedding"` compares it with examples of each route;
# `"llm"` shows an LLM the names and descriptions of the routes and checks its answer. A scripted LLM stands in here with answers written beforehand;
# any LlamaIndex LLM goes in its place.

# %%
from llama_index_advanced_rag.testing import ScriptedLLM

by_hand = ["structural", "structural", "simple", "moderate", "complex", "complex" if DATA else "structural", "none"]
llm = ScriptedLLM([json.dumps({"routes": [{"name": name, "reason": "as written in the script"}]}) for name in by_hand])
# llm = OpenAI(model="gpt-4o-mini")  # from llama_index.llms.openai import OpenAI

routers = {
    "rules": index.as_retriever("auto"),
    "embedding": index.as_retriever("auto", router="embedding"),
    "llm (scripted)": index.as_retriever("auto", router="llm", llm=llm),
}


def told(decision):
    return f"{decision.routes[0]}{' (in doubt)' if decision.in_doubt else ''}: {decision.reason}"


decisions = {name: [retriever.decider.decide(QueryBundle(question)) for question in questions.values()] for name, retriever in routers.items()}
table(("question", *routers), [(question, *map(told, row)) for question, row in zip(questions.values(), zip(*decisions.values(), strict=True), strict=True)])

# %% [markdown]
# Rules and examples do not always agree, and neither is always right: how often the embedding router is, on questions that were held out, its docstring
# says. The packaged embedding model knows English only, so do not trust that column on French questions; `multilingual` knows both.
#
# ### In doubt
#
# A router that does not know says so, and the question takes the default route: `"moderate"`, unless `default=` names another. The same goes for a router
# that fails, and for an answer that names no route there is. Nothing is silent: decisions and warnings are in the trace, in `metadata["route"]` and in the log.


# %%
from llama_index_advanced_rag.routing.llm import LLMRouter


def broken(question):
    raise ConnectionError("the service that decides is not reachable")


def inventive(question):
    return "telepathy"


in_doubt = {
    "rules": {},
    "rules, another default": {"default": "simple"},
    "a function that fails": {"router": broken},
    "a function that invents a route": {"router": inventive},
    "an LLM that answers nonsense twice": {"router": LLMRouter(ScriptedLLM(["Good question!"]))},
}
title = "Demon Dice" if DATA else "Iceland"  # a title alone: it says nothing of the way to answer it
rows = []
for name, options in in_doubt.items():
    response = index.as_query_engine(retriever_mode="auto", **options).query(title)
    route = response.metadata["route"]
    rows.append((name, ", ".join(route["taken"]), route["in_doubt"], route["reason"], shorten(str(response), 60, placeholder=" …")))
table(("router", "route", "in doubt", "because", "answer"), rows)

# %% [markdown]
# ## 5. Your own routes
#
# **A function** decides: the question in, the name of a route out, or `None` for the default.


# %%
def short_is_simple(question):
    return "simple" if len(question) <= 60 else None


own = index.as_query_engine(retriever_mode="auto", router=short_is_simple)
rows = []
for question in (questions["fact"], questions["bridge"]):
    route = own.query(question).metadata["route"]
    rows.append((question, len(question), ", ".join(route["taken"]), route["in_doubt"], route["reason"]))
table(("question", "characters", "route", "in doubt", "because"), rows)

# %% [markdown]
# **A stock LlamaIndex engine** as a sixth route, here a `VectorStoreIndex` over notes about the reading room. The rules do not know it, so a small router
# looks for it first and leaves all else to them.

# %%
from llama_index.core import VectorStoreIndex

from llama_index_advanced_rag.routing.router import RouteChoice
from llama_index_advanced_rag.routing.rules import RuleRouter

notes = [Document(text="The reading room opens at nine and closes at six."), Document(text="Books are borrowed for three weeks.")]
desk = VectorStoreIndex.from_documents(notes, embed_model=index.embed_model).as_query_engine(llm=ScriptedLLM(["It opens at nine."]), similarity_top_k=1)


class DeskFirst(RuleRouter):
    name = "desk first"

    def choose(self, query, routes):
        if "reading room" in query.query_str.lower():
            return RouteChoice(("desk",), "it is about the reading room")
        return super().choose(query, routes)


with_desk = index.as_query_engine(retriever_mode="auto", routes={"desk": desk}, router=DeskFirst())
rows = []
for question in ("When does the reading room open?", questions["fact"]):
    response = with_desk.query(question)
    rows.append((question, response.metadata["route"]["taken"][0], response.metadata["route"]["reason"], shorten(str(response), 160, placeholder=" …")))
table(("question", "route", "because", "answer"), rows)

# %% [markdown]
# **In LlamaIndex's own router**, `RouteSelector` makes the decision among its tools. (`RouterQueryEngine` wants an LLM for merging several answers; one tool
# is chosen here, so it is never called.)

# %%
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.tools import QueryEngineTool

from llama_index_advanced_rag.routing.selector import RouteSelector

tools = [
    QueryEngineTool.from_defaults(index.as_query_engine(), name="simple", description="one fact"),
    QueryEngineTool.from_defaults(index.as_query_engine(retriever_mode="anchor"), name="structural", description="sections and pages"),
    QueryEngineTool.from_defaults(desk, name="desk", description="about the reading room"),
]
stock = RouterQueryEngine(RouteSelector(DeskFirst(), default="simple"), tools, llm=MockLLM())
rows = []
for question in (questions["section"], questions["fact"], "When does the reading room open?"):
    response = stock.query(question)
    chosen = response.metadata["selector_result"].selections[0]
    rows.append((question, tools[chosen.index].metadata.name, chosen.reason, shorten(str(response), 160, placeholder=" …")))
table(("question", "tool", "because", "answer"), rows)

# %% [markdown]
# ## 6. Several routes at once, under a time limit
#
# With `max_routes` the routes that a router names are searched side by side and their lists merged: the best of each first. `timeout_s` is for each
# route: one that is late is dropped, and the answer comes from the others. The slow route here sleeps for three seconds, as a service on the web may.

# %%
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode


class Web(BaseRetriever):
    def _retrieve(self, query_bundle):
        time.sleep(3)
        return [NodeWithScore(node=TextNode(text="Too late."), score=1.0)]


careful = index.as_query_engine(
    retriever_mode="auto", routes={"web": Web()}, router=lambda question: ["simple", "moderate", "web"], max_routes=3, timeout_s=1, max_seconds=2
)
started = time.perf_counter()
response = careful.query(questions["bridge"])
print(f"{time.perf_counter() - started:.1f} s")
route = response.metadata["route"]
table(
    ("route", "ms", "what came of it"),
    [(name, f"{route['elapsed_ms'][name]:.0f}", "taken" if name in route["taken"] else route["dropped"][name]) for name in route["routes"]],
)

# %% [markdown]
# ## 7. Does it pay here?
#
# The questions of HotpotQA whose passages are all in this index, on two fixed routes and on `auto`. A search counts when the documents of *all* needed
# passages are behind its first eight passages (all-gold@8). The time is that of a search, router included, with the question embedded beforehand; the
# fastest of three passes, as other programs may be running.

# %%
retrievers = {
    "always simple": index.as_retriever("hybrid", similarity_top_k=8),
    "always moderate": index.as_retriever("graph", similarity_top_k=8),
    "auto": index.as_retriever("auto", similarity_top_k=8),
}
asked = [(QueryBundle(text, embedding=index.embed_model.get_query_embedding(text)), set(gold)) for text, gold in measured]
complete = {name: [] for name in retrievers}
times = {name: [] for name in retrievers}
for bundle, gold in asked:
    passes, found = {name: [] for name in retrievers}, {}
    for _ in range(3):  # in turns, so that a busy moment of the machine does not hit one alone
        for name, retriever in retrievers.items():
            started = time.perf_counter()
            hits = retriever.retrieve(bundle)
            passes[name].append(time.perf_counter() - started)
            found[name] = {hit.node.ref_doc_id for hit in hits}
    for name in retrievers:
        complete[name].append(gold <= found[name])
        times[name].append(1000 * min(passes[name]))

# %%
count = len(asked)
rows = [(name, f"{sum(complete[name])} of {count}", f"{sum(times[name]) / count:.1f}") for name in retrievers]
taken = Counter(retrievers["auto"].decider.decide(bundle).routes[0] for bundle, _ in asked)
print("auto took:", ", ".join(f"{name} {number}" for name, number in taken.most_common()))
table(("search", "all-gold@8", "ms a search"), rows)

# %% [markdown]
# **What this shows, and what not.** Every question of HotpotQA goes over two passages. The walk over names finds both where words and meaning miss one
# (49 against 43 of 50 when this was written, and 49 for `auto`). The router sends nearly all of these questions to that walk or to its dearer variant, so
# it keeps the gain, and costs more than the walk alone: on questions of one kind, the fixed route for that kind is as good and cheaper. A router is for
# the mixture of section 2, where no fixed route suits all: a greeting needs no search, a section needs the headings. (The ten questions to the
# examples need one document each, and any route finds it.)
#
# With 50 questions in a small index, one or two more or less are chance, and the times are those of one machine.
# [docs/benchmarks.md](../docs/benchmarks.md) has the figures on more data, with intervals.

# %%
index.close()
