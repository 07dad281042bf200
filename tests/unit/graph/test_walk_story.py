"""Why a walk reached a passage: the path, as data and as a sentence in the language of the question."""

import numpy as np

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import GraphWalk, entity_weights
from llama_index_advanced_rag.graph.name_fold import ChunkText
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention, Relation
from llama_index_advanced_rag.graph.verbalize import Step
from llama_index_advanced_rag.graph.walk_story import WalkPath, chunk_title, fact_between, walk_path

CHAIN = EntityGraph.from_triples(
    {
        "c1": [("Claude", "créé par", "Anthropic")],
        "c2": [("Claude", "utilise", "Transformer")],
        "c3": [("Transformer", "proposé par", "Vaswani")],
        "c4": [("Paris", "est en", "France")],
    }
)


def path_to(chunk: str, question: str, found: tuple[str, ...] = (), *, graph: EntityGraph = CHAIN) -> WalkPath:
    walk = GraphWalk.of(graph)
    reached = walk.reach(entity_weights(graph, graph.link(question)), [graph.place_of_chunk[one] for one in found], damping=0.7)
    return walk_path(walk, reached, graph.place_of_chunk[chunk], damping=0.7)


def without_facts(*, titles: bool) -> EntityGraph:
    """Three passages that share names two by two."""
    said = {"a": ("Knott", "Lake District"), "b": ("Lake District", "Wainwright"), "c": ("Wainwright", "Blackburn")}
    records = {
        chunk: ChunkText(" and ".join(names), ExtractionRecord(tuple(Mention(name, "name", 0, 1) for name in names), (), (f"Page {chunk}",) if titles else ()))
        for chunk, names in said.items()
    }
    return EntityGraph.from_records(records)


def test_the_path_of_the_course() -> None:
    path = path_to("c3", "Qui a proposé l'architecture utilisée par le modèle créé par Anthropic ?")
    assert path.entities[:3] == ("Anthropic", "Claude", "Transformer")
    assert path.chunks[-1] == "c3"
    assert path.origin is None
    assert [step.fact.object for step in path.steps if step.fact is not None] == ["Anthropic", "Transformer", "Vaswani"]
    assert path.told("fr") == "Anthropic a créé Claude ; Claude utilise Transformer ; Vaswani a proposé Transformer."


def test_the_first_passage_is_told_by_its_own_fact() -> None:
    path = path_to("c1", "Anthropic")
    assert (path.entities[0], path.chunks) == ("Anthropic", ("c1",))
    assert path.told("fr") == "Anthropic a créé Claude."


def test_a_passage_that_another_retriever_found_has_no_path() -> None:
    path = path_to("c4", "Anthropic", ("c4",))
    assert (path.entities, path.chunks, path.origin, path.told()) == ((), ("c4",), None, "")


def test_a_path_that_begins_with_a_passage_found_by_another_retriever() -> None:
    graph = without_facts(titles=True)
    path = path_to("b", "nothing known", ("a",), graph=graph)
    assert (path.entities, path.chunks, path.origin) == (("Lake District",), ("a", "b"), "Page a")
    assert path.told() == "names Lake District, as does “Page a”"
    assert path.told("fr") == "nomme Lake District, comme « Page a »"


def test_a_path_without_facts_says_where_names_stand_together() -> None:
    path = path_to("b", "Where is Knott?", graph=without_facts(titles=True))
    assert path.entities in {("Lake District",), ("Knott", "Lake District")}
    assert path.chunks == ("a", "b")
    assert path.told() == "names Lake District, as does “Page a”"


def test_steps_over_a_passage_are_told_by_its_title() -> None:
    graph = without_facts(titles=True)
    path = path_to("c", "Where is the Lake District?", graph=graph)
    assert path.entities == ("Lake District", "Wainwright")
    assert path.steps == (Step("Lake District", "Wainwright", None, "Page b"),)
    assert path.told().startswith("Lake District and Wainwright are named together in ")
    assert "Page b" in path.told()
    assert path_to("c", "Where is the Lake District?", graph=without_facts(titles=False)).steps[0].source == "b"


def test_a_fact_between_two_in_either_direction_and_the_first_of_several() -> None:
    graph = EntityGraph.from_triples({"a": [("X", "made", "Y"), ("Y", "sold", "X")], "b": [("X", "is", "X")]})
    assert fact_between(graph, 0, 1) == fact_between(graph, 1, 0) == Relation("X", "made", "Y")
    assert fact_between(graph, 1, 1) is None
    assert fact_between(graph, 0, 0) == Relation("X", "is", "X")


def test_what_a_passage_is_called() -> None:
    made_up = "0f8fad5b-d9cb-469f-a165-70867728950e"
    graph = EntityGraph.from_triples({"a": [("X", "made", "Y")], made_up: [("X", "made", "Z")]}, titles={"b": "The Title"})
    assert [chunk_title(graph, chunk) for chunk in range(3)] == ["a", "", "The Title"]


def test_names_of_ten_thousand_characters_are_cut_in_the_sentence() -> None:
    graph = EntityGraph.from_triples({"a": [("Long name " * 1000, "made", "Yeti")], "b": [("Yeti", "made", "Zebra\n\x00 {0} %s")]})
    told = path_to("b", "Yeti", graph=graph).told()
    assert "{0} %s" in told
    assert "\n" not in told
    assert len(path_to("a", "Yeti", graph=graph).told()) < 600


def test_every_passage_that_is_reached_can_be_told() -> None:
    walk = GraphWalk.of(CHAIN)
    for entity in range(CHAIN.n_entities):
        reached = walk.reach({entity: 1.0}, [0, 3])
        for chunk in np.flatnonzero(reached.chunks > 0).tolist():
            path = walk_path(walk, reached, chunk, damping=0.7)
            assert path.chunks[-1:] == (CHAIN.chunk_ids[chunk],)
            assert isinstance(path.told(), str)
