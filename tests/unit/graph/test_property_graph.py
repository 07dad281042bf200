"""The entity graph of property graph stores: Simple, filled by hand and by an index, and one that answers as Neo4j does."""

import time

import pytest
from llama_index.core import Document, MockEmbedding, PropertyGraphIndex
from llama_index.core.graph_stores import ChunkNode, EntityNode, Relation, SimplePropertyGraphStore
from llama_index.core.graph_stores.types import PropertyGraphStore
from llama_index.core.indices.property_graph import ImplicitPathExtractor, SimpleLLMPathExtractor
from llama_index.core.schema import TextNode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import STORE_FACT, EntityGraph
from llama_index_advanced_rag.graph.property_graph import graph_of_store
from llama_index_advanced_rag.graph.store_rows import read_store
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import ScriptedLLM
from llama_index_advanced_rag.trace import capture_trace

SOURCE = "triplet_source_id"


def relation(source, label, target, **properties):
    return Relation(source_id=source, label=label, target_id=target, properties=properties)


def filled(nodes, relations):
    store = SimplePropertyGraphStore()
    store.upsert_nodes(nodes)
    store.upsert_relations(relations)
    return store


def entities(*names, **properties):
    return [EntityNode(name=name, properties=dict(properties)) for name in names]


def facts(graph):
    """Each fact with the chunk that says it."""
    return [
        (fact.subject, fact.predicate, fact.object, graph.chunk_ids[chunk])
        for fact, chunk in zip(graph.facts.relations, graph.facts.chunks.tolist(), strict=True)
    ]


def named(graph):
    """The names of the entities of each chunk."""
    mentions = graph.mentions
    return {
        chunk: sorted(graph.names[entity] for entity in mentions.indices[mentions.indptr[place] : mentions.indptr[place + 1]])
        for place, chunk in enumerate(graph.chunk_ids)
    }


class Neo4jLike(PropertyGraphStore):
    """Answers in the shapes of Neo4jPropertyGraphStore 0.8: chunks by `get`, both directions of relations among entities only, the rest by Cypher."""

    supports_structured_queries = True

    def __init__(self, *, refuses=False, empty_without_arguments=False):
        self.refuses, self.empty_without_arguments, self.asked = refuses, empty_without_arguments, []

    def get(self, properties=None, ids=None):
        text = ChunkNode(id_="c1", text="Claude, from Anthropic.", properties={"ref_doc_id": "d1", "document_id": "d1", "title": "Models"})
        names = [EntityNode(name=f"id of {name}", label="Thing", properties={"name": name, SOURCE: "c1"}) for name in ("Claude", "Anthropic")]
        return [
            text,
            *names,
            EntityNode(name="c2", label="__Node__"),
            EntityNode(name="d1", label="__Node__"),
            EntityNode(name="id of Vaswani", label="Person", properties={"name": "Vaswani"}),
        ]

    def get_triplets(self, entity_names=None, relation_names=None, properties=None, ids=None):
        if self.empty_without_arguments and not ids:
            return []
        ends = [EntityNode(name=name, label="Thing", properties={"id": f"id of {name}", SOURCE: "c1"}) for name in ("Claude", "Anthropic")]
        return [[ends[0], relation("Claude", "MADE_BY", "Anthropic", year=2023, triplet_source_id="c1"), ends[1]] for _ in range(2)]

    def structured_query(self, query, param_map=None):
        self.asked.append(query)
        if self.refuses:
            raise RuntimeError("no such function")
        return [
            {"source": "c1", "label": "MENTIONS", "target": "id of Claude"},
            {"source": "c2", "label": "MENTIONS", "target": "id of Claude"},
            {"source": "c1", "label": "SOURCE", "target": "d1"},
            {"source": "c1", "label": "NEXT", "target": "c2"},
            {"source": "elsewhere", "label": "KNOWS", "target": "nobody"},
        ]

    def get_rel_map(self, graph_nodes, depth=2, limit=30, ignore_rels=None):
        raise NotImplementedError

    upsert_nodes = upsert_relations = delete = vector_query = get_rel_map


def test_facts_keep_their_chunks_their_names_and_their_properties():
    chunks = [ChunkNode(id_="c1", text="", properties={"title": "Deals"}), ChunkNode(id_="c2", text="Nothing but Acme.")]
    told = relation(
        "Acme", "SIGNED_CONTRACT_WITH", "GlobalTech", triplet_source_id="c1", date="2026-01-15", title="Deals", _order=3, doc_id="x", tags=["a", "b"]
    )
    graph = graph_of_store(filled([*chunks, *entities("Acme", "GlobalTech")], [told]))
    assert facts(graph) == [("Acme", "SIGNED_CONTRACT_WITH", "GlobalTech", "c1")]
    assert graph.facts.relations[0].properties == {"date": "2026-01-15", "tags": "a, b"}
    assert named(graph) == {"c1": ["Acme", "Deals", "GlobalTech"], "c2": ["Acme"]}


@pytest.mark.parametrize(
    "row",
    [
        relation("c1", "MENTIONS", "Claude"),
        relation("Claude", "SOURCE", "c1"),
        relation("Claude", "HAS_SOURCE", "c1"),
        relation("c1", "HAS_ENTITY", "Claude"),
    ],
    ids=lambda row: row.label,
)
def test_any_relation_between_a_chunk_and_an_entity_is_a_mention(row):
    graph = graph_of_store(filled([ChunkNode(id_="c1", text="It writes."), *entities("Claude")], [row]))
    assert named(graph) == {"c1": ["Claude"]}
    assert facts(graph) == []


def test_a_fact_without_a_source_belongs_to_the_first_chunk_that_names_both_ends_or_stands_alone():
    nodes = (
        [ChunkNode(id_=chunk, text="") for chunk in ("c2", "c1")] + entities("Claude", "Anthropic", triplet_source_id="c2") + entities("Vaswani", "Transformer")
    )
    mentions = [relation("c1", "MENTIONS", "Claude"), relation("c1", "MENTIONS", "Anthropic")]
    graph = graph_of_store(filled(nodes, [*mentions, relation("Claude", "MADE_BY", "Anthropic"), relation("Vaswani", "PROPOSED", "Transformer")]))
    alone = f"{STORE_FACT}Vaswani | PROPOSED | Transformer"
    assert facts(graph) == [("Claude", "MADE_BY", "Anthropic", "c1"), ("Vaswani", "PROPOSED", "Transformer", alone)]
    assert [graph.names[entity] for entity in graph.link("Who is Vaswani?")] == ["Vaswani"]


def test_several_sources_of_one_fact_each_say_it():
    graph = graph_of_store(filled(entities("A", "B"), [relation("A", "KNOWS", "B", triplet_source_id=["c2", "c1"])]))
    assert [chunk for *_, chunk in facts(graph)] == ["c1", "c2"]


def test_names_are_found_in_texts_also_in_texts_that_the_store_does_not_keep():
    store = filled([ChunkNode(id_="c1", text="Claude writes."), *entities("Claude", "Lake District", "Nobody")], [])
    with capture_trace() as trace:
        graph = graph_of_store(store, texts={"c2": "He swims in the lake district."}, titles={"c1": "Writers"})
    assert named(graph) == {"c1": ["Claude", "Writers"], "c2": ["Lake District"]}
    assert [note.message for note in trace.all_notes()] == [
        "1 entities of the store are left out, as 'Nobody': they have no relation, and no chunk names them."
    ]


def test_deleted_ends_quotes_in_names_and_keys_that_collide_are_read():
    store = filled(
        entities('Dwayne "The Rock" Johnson', "Moana", "gone", "a_b", "c"),
        [
            relation('Dwayne "The Rock" Johnson', "ACTED_IN", "Moana"),
            relation("gone", "KNOWS", "Moana"),
            relation("a_b", "c", "c"),
            relation("a", "b_c", "c", year=1),
        ],
    )
    store.graph.delete_node(store.graph.nodes["gone"])
    with pytest.raises(KeyError):
        store.get_triplets(ids=["Moana"])
    graph = graph_of_store(store)
    assert [(fact.subject, fact.predicate, fact.object, dict(fact.properties)) for fact in graph.facts.relations] == [
        ('Dwayne "The Rock" Johnson', "ACTED_IN", "Moana", {}),
        ("a", "b_c", "c", {"year": 1}),
        ("a_b", "c", "c", {}),
    ]


def test_an_index_with_llm_facts_and_implicit_relations():
    answers = ["Claude -> made by -> Anthropic\n(Claude, made by, Anthropic)", "(Claude, uses, Transformer)"]
    store = SimplePropertyGraphStore()
    documents = [
        Document(text=text, id_=f"d{number}", metadata={"file_name": f"part-{number}.txt"}) for number, text in enumerate(["Claude is made.", "It uses."])
    ]
    PropertyGraphIndex.from_documents(
        documents,
        llm=ScriptedLLM(answers),
        property_graph_store=store,
        kg_extractors=[SimpleLLMPathExtractor(ScriptedLLM(answers), num_workers=1), ImplicitPathExtractor()],
        embed_kg_nodes=False,
        use_async=False,
        embed_model=MockEmbedding(embed_dim=4),
    )
    graph = EntityGraph.from_property_graph(store)
    said = {(subject.lower(), predicate.lower(), target.lower()) for subject, predicate, target, _ in facts(graph)}
    assert said == {("claude", "made by", "anthropic"), ("claude", "uses", "transformer")}
    assert all(not fact.properties for fact in graph.facts.relations)
    assert not {"d0", "d1"} & set(graph.names)
    assert {"part 0", "part 1"} <= set(graph.names)
    assert graph.n_chunks == 2


def test_a_store_that_answers_as_neo4j_does():
    store = Neo4jLike()
    graph = graph_of_store(store)
    assert facts(graph) == [("Claude", "MADE_BY", "Anthropic", "c1")]
    assert graph.facts.relations[0].properties == {"year": 2023}
    assert named(graph) == {"c2": ["Claude"], "c1": ["Anthropic", "Claude", "Models"]}
    assert len(store.asked) == 1


def test_without_cypher_what_the_properties_say_still_counts():
    with capture_trace() as trace:
        graph = graph_of_store(Neo4jLike(refuses=True))
    assert named(graph) == {"c1": ["Anthropic", "Claude", "Models"]}
    assert [(note.level, note.message.split(" (")[0]) for note in trace.all_notes() if note.level == "warning"] == [
        ("warning", "Neo4jLike did not say which chunk names which entity")
    ]


def test_a_store_that_gives_no_triplets_without_arguments_is_asked_for_those_of_its_nodes():
    assert read_store(Neo4jLike(empty_without_arguments=True)).relations == read_store(Neo4jLike()).relations


def test_the_order_of_the_store_leaves_no_trace_but_documents_keep_theirs():
    nodes = [
        ChunkNode(id_=chunk, text=chunk, properties={"ref_doc_id": "d", "_node_content": f'{{"start_char_idx": {start}}}'})
        for chunk, start in (("a", 90), ("b", 5))
    ]
    names = entities("Claude", "Anthropic", "OpenAI")
    rows = [relation("Claude", "MADE_BY", "Anthropic", triplet_source_id="a"), relation("OpenAI", "KNOWS", "Claude", triplet_source_id="a")]
    one, other = graph_of_store(filled([*nodes, *names], rows)), graph_of_store(filled([*names, *nodes][::-1], rows[::-1]))
    assert one.chunk_ids == other.chunk_ids == ["b", "a"]
    assert facts(one) == facts(other)
    assert named(one) == named(other)


def test_odd_properties_are_no_error():
    chunk = ChunkNode(id_="c", text="Claude", properties={"_node_content": "no json", "ref_doc_id": 7})
    graph = graph_of_store(
        filled([chunk, *entities("Claude", "—"), EntityNode(name="x" * 10_000)], [relation("—", "IS", "Claude"), relation("x" * 10_000, "IS", "Claude")])
    )
    assert len(graph.facts.relations) == 1


def test_an_empty_store_and_what_is_no_store():
    assert graph_of_store(SimplePropertyGraphStore()).n_chunks == 0
    with pytest.raises(ConfigurationError, match="It must be a PropertyGraphStore"):
        graph_of_store("bolt://")  # type: ignore[arg-type]


def test_the_store_is_not_changed_and_llama_nodes_are_read():
    store = SimplePropertyGraphStore()
    store.upsert_llama_nodes([TextNode(id_="c1", text="Claude writes.", metadata={"title": "Writers"})])
    store.upsert_nodes(entities("Claude"))
    before = store.graph.model_dump_json()
    assert named(graph_of_store(store)) == {"c1": ["Claude", "Writers"]}
    assert store.graph.model_dump_json() == before


def test_many_relations_take_linear_time():
    names = entities(*(f"N{number}" for number in range(20_000)))
    rows = [relation(f"N{number % 10_000}", "KNOWS", f"N{(number * 7 + 1) % 10_000}", triplet_source_id=f"c{number % 1_000}") for number in range(20_000)]
    store = filled(names, rows)
    began = time.perf_counter()
    graph = graph_of_store(store)
    assert len(graph.facts.relations) > 9_000
    assert time.perf_counter() - began < 20


def test_a_retriever_walks_on_a_store():
    from llama_index_advanced_rag.retrievers.graph_source import graph_source_of

    assert graph_source_of(filled(entities("A", "B"), [relation("A", "KNOWS", "B")]), DictNodeSource()).graph().n_entities == 2
