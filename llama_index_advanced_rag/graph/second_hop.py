"""Where a question leads from the entities it names: to what the same passages name close to the question's own words."""

import math
from collections.abc import Iterable, Mapping, Sequence

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.text.languages import FALLBACK, LANGUAGES, detect_language, stem_words
from llama_index_advanced_rag.text.name_words import function_words, name_words

WINDOW = 8
MOST_PASSAGES = 30


def near_question_words(
    graph: EntityGraph, query: str, entities: Iterable[int], passages: Mapping[str, str], *, language: str = "auto", window: int = WINDOW
) -> dict[int, float]:
    """How near other entities stand to words of the question, in passages that name the question's entities.

    The score of an entity is the largest share of the question's words, weighted by how rare they are in these passages, that stands within
    `window` words of one of its mentions. Words of the question's own names do not count.

    Args:
        graph: finds names.
        query: the question.
        entities: the entities it names.
        passages: texts by node id.
        language: of the stemmer, as an ISO code or "auto".
        window: words on either side.

    Returns:
        Scores in (0, 1] of the other entities, higher is better.

    Example:
        >>> graph = EntityGraph.from_triples({"c": [("Knott", "lies in", "Lake District"), ("Knott", "seen by", "Wainwright")]})
        >>> text = "Knott is a fell whose district is the Lake District, far from towns and roads, and it was visited once by Wainwright."
        >>> found = near_question_words(graph, "Where is the district of Knott?", graph.link("Knott"), {"c": text}, language="en")
        >>> {graph.names[entity]: score for entity, score in found.items()}
        {'Lake District': 1.0}
    """
    stemmer = _stemmer(language, query)
    asked = set(_question_stems(graph, query, stemmer))
    stems = {chunk: stem_words(stemmer, [word.key for word in name_words(text)]) for chunk, text in passages.items()}
    weights = _rarities(asked, list(stems.values()))
    total, own = sum(weights.values()), set(entities)
    nearest: dict[int, float] = {}
    for chunk, text in passages.items() if total else ():
        for name in graph.gazetteer.find(name_words(text)):
            around = {*stems[chunk][max(0, name.first - window) : name.first], *stems[chunk][name.last : name.last + window]}
            share = sum(weight for stem, weight in weights.items() if stem in around) / total
            for entity in graph.entities_of(name.key):
                if share and entity not in own:
                    nearest[entity] = max(nearest.get(entity, 0.0), share)
    return nearest


def _stemmer(language: str, query: str) -> str:
    chosen = detect_language(query) if language not in LANGUAGES else language
    return chosen or FALLBACK


def _question_stems(graph: EntityGraph, query: str, stemmer: str) -> Sequence[str]:
    words = name_words(query)
    named = {place for name in graph.names_in(words) for place in range(name.first, name.last)}
    return stem_words(stemmer, [word.key for place, word in enumerate(words) if place not in named and word.key not in function_words()])


def _rarities(asked: Iterable[str], passages: Sequence[Sequence[str]]) -> dict[str, float]:
    sets = [set(stems) for stems in passages]
    return {stem: math.log(1 + (len(sets) + 1) / (sum(stem in one for one in sets) + 0.5)) for stem in sorted(asked)}
