"""HippoRAG 2 without its LLM filter, as a row to compare with: retrieval on MuSiQue over the given triples.

Written from the paper and the authors' code, with their defaults. For each question: the 5 facts whose embedding is nearest are all kept,
their subjects and objects (the 5 best phrases) and all passages restart a personalised PageRank, and passages are ranked by it.

Source: Gutierrez et al. 2025, "From RAG to Memory: Non-Parametric Continual Learning for Large Language Models", arXiv 2502.14802, sections 3.2 to 3.5, and
https://github.com/OSU-NLP-Group/HippoRAG (`src/hipporag/HippoRAG.py`). Where this deviates from the authors' code:

- The recognition memory (an LLM that drops facts unrelated to the question) is left out: the 5 nearest facts are all kept. The code returns the dense
  ranking when the LLM drops all of them; here that happens only when there are no facts at all.
- The triples are given. The named entities that come with them are not used, as in the code: phrases are the subjects and objects of triples.
- One embedding model for facts, phrases, passages and questions, the packaged MiniLM, and no query instructions (it has none); so one vector of
  the question serves for facts and for passages. The paper uses NV-Embed-v2.
- A passage is embedded as in the other rows ("title, blank line, text"; the code has one line break), and is its id: equal texts are not merged.
- Ties (of facts, phrases, passages) break by the order of the names and passages; the code leaves them to the order of a set and of an unstable sort.
- Scores that are all equal are normalised to 1.0; in the code they become NaN, which counts as 0 in the walk.

usage: python benchmarks/hipporag.py --data ../shared/data/multihop --cache FOLDER --json OUT     (needs: pip install igraph)
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import parser, print_table, read_jsonl, write_result
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from numpy.typing import NDArray

Array = NDArray[np.float64]
Embed = Callable[[list[str]], Any]
Fact = tuple[str, str, str]
Edges = dict[tuple[int, int], float]
DATASET = "musique"
TRIPLES = "openie_gpt-3.5-turbo.jsonl"
SYSTEM = "hipporag2-no-filter"
_BLOCK = 2048  # texts embedded and kept together
_ROWS = 1000  # phrases compared with all others at once


@dataclass(frozen=True)
class HippoRAG2Settings:
    """The authors' defaults."""

    linking_top_k: int = 5
    passage_node_weight: float = 0.05
    damping: float = 0.5
    synonymy_edge_topk: int = 2047
    synonymy_edge_sim_threshold: float = 0.8
    synonymy_neighbours: int = 101  # the code stops after the neighbour that makes more than 100


def processed(part: str) -> str:
    """Lower case; all that is not an ASCII letter, a digit or a space becomes a space.

    Example:
        >>> processed("Saint-Étienne (1926)")
        'saint  tienne  1926'
    """
    return re.sub("[^A-Za-z0-9 ]", " ", part.lower()).strip()


def valid_facts(triples: Sequence[Sequence[Any]]) -> list[Fact]:
    """The triples of one passage that have three parts, each once, processed; two that differ only before processing both count.

    Example:
        >>> valid_facts([["BERT", "made by", "Google"], ["BERT", "made by", "Google"], ["BERT", "is old"]])
        [('bert', 'made by', 'google')]
    """
    raw = dict.fromkeys(tuple(str(part) for part in triple) for triple in triples if len(triple) == 3)
    return [(processed(subject), processed(relation), processed(target)) for subject, relation, target in raw]


def min_max(scores: Array) -> Array:
    """The scores between 0 and 1; all 1.0 when they are equal."""
    span = float(np.ptp(scores))
    return (scores - scores.min()) / span if span > 0 else np.ones_like(scores)


def unit_rows(vectors: Any) -> Array:
    """Each row divided by its length; a row of zeros stays."""
    matrix = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def best_first(scores: Array) -> NDArray[np.int64]:
    """Positions by falling score, then by position."""
    return np.argsort(-scores, kind="stable")


def fact_edges(facts: Sequence[Sequence[Fact]], phrase_ids: Mapping[str, int]) -> Edges:
    """One edge each way between the two phrases of a fact, weighted by how often they stand in one, summed over the passages."""
    counts: Counter[tuple[int, int]] = Counter()
    for subject, _, target in (fact for of_passage in facts for fact in of_passage):
        first, second = phrase_ids[subject], phrase_ids[target]
        counts[first, second] += 1
        counts[second, first] += 1
    return {edge: float(count) for edge, count in counts.items()}


def phrases_of(facts: Iterable[Fact]) -> set[str]:
    """Subjects and objects."""
    return {name for fact in facts for name in (fact[0], fact[2])}


def passage_edges(facts: Sequence[Sequence[Fact]], phrase_ids: Mapping[str, int]) -> Edges:
    """One edge of weight 1.0 from each passage (numbered after the phrases) to each of its phrases."""
    first = len(phrase_ids)
    return {(first + passage, phrase_ids[name]): 1.0 for passage, of_passage in enumerate(facts) for name in sorted(phrases_of(of_passage))}


def synonym_edges(phrases: Sequence[str], vectors: NDArray[np.floating[Any]], settings: HippoRAG2Settings) -> Edges:
    """From each phrase of more than two letters or digits to its nearest phrases, weighted by their cosine, down to the threshold.

    An empty phrase is nobody's synonym. `vectors` are (n, dimension) unit vectors of the phrases (the code compares in 32 bits).
    """
    edges: Edges = {}
    for start in range(0, len(phrases), _ROWS):
        similarities = vectors[start : start + _ROWS] @ vectors.T
        for offset, row in enumerate(similarities):
            phrase = start + offset
            if len(phrases[phrase].replace(" ", "")) <= 2:
                continue
            near = np.flatnonzero(row >= settings.synonymy_edge_sim_threshold)
            nearest = near[best_first(row[near])][: settings.synonymy_edge_topk].tolist()
            others = [other for other in nearest if other != phrase and phrases[other]]
            edges |= {(phrase, other): float(row[other]) for other in others[: settings.synonymy_neighbours]}
    return edges


class HippoRAG2:
    """Passages ranked by a personalised PageRank that restarts at the phrases of the nearest facts and, weakly, at all passages. No LLM call.

    Args:
        passages: `id`, `title` and `text` of each passage.
        triples: passage id -> (subject, relation, object) triples; a passage may have none.
        embed: texts -> (n, dimension) vectors.
        embed_query: question -> vector; None embeds it as a text.
        passage_vectors: (n, dimension) vectors of the passages, in their order; None embeds "title, blank line, text".
        settings: the authors' defaults when None.

    Raises:
        ModuleNotFoundError: igraph is not installed.

    Example:
        >>> passages = [{"id": name, "title": name, "text": ""} for name in ("BERT", "Google", "Rain")]
        >>> triples = {"BERT": [["BERT", "made by", "Google"]], "Google": [["Google", "seat", "Mountain View"]]}
        >>> letters = lambda texts: [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        >>> HippoRAG2(passages, triples, embed=letters).ranked("who made bert")
        ['BERT', 'Google', 'Rain']
    """

    def __init__(
        self,
        passages: Sequence[Mapping[str, str]],
        triples: Mapping[str, Sequence[Sequence[Any]]],
        *,
        embed: Embed,
        embed_query: Callable[[str], Any] | None = None,
        passage_vectors: Any | None = None,
        settings: HippoRAG2Settings | None = None,
    ) -> None:
        self.settings = settings or HippoRAG2Settings()
        self.passage_ids = [passage["id"] for passage in passages]
        self._embed, self._embed_query = embed, embed_query
        of_passages = [valid_facts(triples.get(passage_id, ())) for passage_id in self.passage_ids]
        self.facts: list[Fact] = sorted({fact for of_passage in of_passages for fact in of_passage})
        self.phrases: list[str] = sorted(phrases_of(self.facts))
        self._phrase_ids = {phrase: position for position, phrase in enumerate(self.phrases)}
        self._passages_of = Counter(name for of_passage in of_passages for name in phrases_of(of_passage))
        texts = [f"{passage['title']}\n\n{passage['text']}" for passage in passages]
        self._passage_vectors = unit_rows(embed(texts) if passage_vectors is None else passage_vectors)
        self._fact_vectors = unit_rows(embed([str(fact) for fact in self.facts])) if self.facts else None
        self._graph = self._linked_graph(of_passages)

    def _linked_graph(self, of_passages: Sequence[Sequence[Fact]]) -> Any:
        from igraph import Graph

        edges = fact_edges(of_passages, self._phrase_ids) | passage_edges(of_passages, self._phrase_ids)
        if self.phrases:
            vectors = unit_rows(self._embed(self.phrases)).astype(np.float32)
            edges |= synonym_edges(self.phrases, vectors, self.settings)  # in place of the count, where there is a fact too
        edges = {edge: weight for edge, weight in edges.items() if edge[0] != edge[1]}
        graph = Graph(n=len(self.phrases) + len(self.passage_ids), directed=False)
        graph.add_edges(list(edges), attributes={"weight": list(edges.values())})
        return graph

    @property
    def sizes(self) -> dict[str, int]:
        """How many facts, phrases, passages and edges there are."""
        return {"facts": len(self.facts), "phrases": len(self.phrases), "passages": len(self.passage_ids), "edges": self._graph.ecount()}

    def ranked(self, question: str) -> list[str]:
        """Ids of all passages, best first."""
        return [self.passage_ids[position] for position in best_first(self.scores(question)).tolist()]

    def scores(self, question: str) -> Array:
        """One score a passage, in their order: PageRank, or the normalised similarity (0 to 1) when there are no facts."""
        query = unit_rows([self._embed_query(question)] if self._embed_query else self._embed([question]))[0]
        dense = min_max(self._passage_vectors @ query)
        if self._fact_vectors is None:
            return dense
        restart = np.zeros(len(self.phrases) + len(self.passage_ids))
        for phrase, weight in self.seeds(min_max(self._fact_vectors @ query)).items():
            restart[self._phrase_ids[phrase]] = weight
        restart[len(self.phrases) :] = dense * self.settings.passage_node_weight
        return self._walk(restart)[len(self.phrases) :]

    def seeds(self, fact_scores: Array) -> dict[str, float]:
        """The best phrases of the best facts: mean over these facts of the score of the fact divided by the number of passages of the phrase.

        `fact_scores` is one score a fact, 0 to 1.
        """
        weights: defaultdict[str, list[float]] = defaultdict(list)
        for position in best_first(fact_scores)[: self.settings.linking_top_k].tolist():
            subject, _, target = self.facts[position]
            for phrase in (subject, target):
                weights[phrase].append(float(fact_scores[position]) / self._passages_of[phrase])
        means = {phrase: float(np.mean(values)) for phrase, values in weights.items()}
        return dict(sorted(means.items(), key=lambda item: -item[1])[: self.settings.linking_top_k])

    def _walk(self, restart: Array) -> Array:
        scores = self._graph.personalized_pagerank(
            vertices=range(self._graph.vcount()),
            damping=self.settings.damping,
            directed=False,
            weights="weight",
            reset=restart.tolist(),
            implementation="prpack",
        )
        return np.asarray(scores)


class HippoRAG2Retriever(BaseRetriever):
    """The ranking as a retriever; scores as `HippoRAG2.scores` gives them. The id of each node is that of its passage."""

    def __init__(self, ranker: HippoRAG2, nodes: Sequence[TextNode], *, similarity_top_k: int = 10) -> None:
        super().__init__()
        self._ranker, self._nodes, self._top_k = ranker, {node.node_id: node for node in nodes}, similarity_top_k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        scores = self._ranker.scores(query_bundle.query_str)
        best = best_first(scores)[: self._top_k].tolist()
        return [NodeWithScore(node=self._nodes[self._ranker.passage_ids[position]], score=float(scores[position])) for position in best]


def kept(embed: Embed, folder: Path | None, *, model: str) -> Embed:
    """The same vectors, kept in a folder by a hash of the model's name and the texts; texts of like length are embedded together."""

    def of_block(texts: list[str]) -> Any:
        if folder is None:
            return np.asarray(embed(texts), dtype=np.float32)
        key = hashlib.sha256(json.dumps([model, texts]).encode()).hexdigest()
        file = folder / f"vectors-{key[:32]}.npz"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(".part.npz")
            np.savez(part, vectors=np.asarray(embed(texts), dtype=np.float32))
            part.replace(file)
        with np.load(file) as stored:
            return stored["vectors"]

    def embed_all(texts: list[str]) -> Any:
        order = sorted(range(len(texts)), key=lambda position: (len(texts[position]), position))
        blocks = [of_block([texts[position] for position in order[start : start + _BLOCK]]) for start in range(0, len(order), _BLOCK)]
        vectors = np.empty((len(texts), blocks[0].shape[1]), dtype=np.float32)
        vectors[order] = np.concatenate(blocks)
        return vectors

    return embed_all


def load_hipporag(folder: Path, corpus: Sequence[Mapping[str, str]], *, cache: Path | None = None, passage_vectors: Any | None = None) -> HippoRAG2:
    """HippoRAG 2 over a data set's corpus and triples with the packaged MiniLM.

    Args:
        folder: the data set's folder, where the file of triples lies.
        corpus: the passages.
        cache: folder to keep the vectors in (those of facts and phrases take ten minutes); None keeps none.
        passage_vectors: vectors of the passages, in their order; None embeds them.
    """
    from llama_index_advanced_rag.embeddings.packaged import load_packaged_embedding

    model = load_packaged_embedding(embed_batch_size=128)
    triples = {row["id"]: row["triples"] for row in read_jsonl(folder / TRIPLES)}
    embed = kept(model.get_text_embedding_batch, cache / "hipporag" if cache else None, model=model.model_name)
    return HippoRAG2(corpus, triples, embed=embed, embed_query=model.get_query_embedding, passage_vectors=passage_vectors)


def main() -> None:
    from multihop import COLUMNS, TOP_K, measure, passages

    options = parser(__doc__ or "", "../shared/data/multihop").parse_args()
    folder = options.data / DATASET
    corpus, questions = read_jsonl(folder / "corpus.jsonl"), read_jsonl(folder / "questions.jsonl")
    ranker = load_hipporag(folder, corpus, cache=options.cache)
    figures = measure(HippoRAG2Retriever(ranker, passages(corpus), similarity_top_k=TOP_K), questions)
    rows = [{"dataset": DATASET, "system": SYSTEM, **figures}]
    print_table(rows, COLUMNS)
    data = {name: folder / file for name, file in (("corpus", "corpus.jsonl"), ("questions", "questions.jsonl"), ("triples", TRIPLES))}
    write_result(options.json, benchmark="hipporag", data=data, rows=rows, extra={"sizes": ranker.sizes})


if __name__ == "__main__":
    main()
