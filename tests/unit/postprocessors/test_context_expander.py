"""ContextExpander: what is added, what becomes one, what a budget leaves, and what broken relations do."""

import asyncio
import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.schema import Document, ImageNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.embeddings.window import default_window
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.postprocessors.context_expander import ContextExpander, ExpansionMode
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import check_postprocessor_contract
from llama_index_advanced_rag.testing.observing import snapshot
from llama_index_advanced_rag.trace import capture_trace

PREVIOUS, NEXT, PARENT, SOURCE = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.PARENT, NodeRelationship.SOURCE
tokens = default_window().count_tokens


class Watched(DictNodeSource):
    """Remembers what was asked for."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.asked = []

    def get_nodes(self, node_ids):
        self.asked.append(list(node_ids))
        return super().get_nodes(node_ids)


def sentences(count):
    return [f"Sentence number {number} is here." for number in range(count)]


def document(count=40, separator=" ", **options):
    return Document(text=separator.join(sentences(count)), id_="doc", **options)


def chunks(given, size=24, overlap=0):
    return SentenceChunkParser(chunk_size=size, chunk_overlap=overlap, language="en").get_nodes_from_documents([given])


def with_section(nodes):
    """The nodes below one section, which comes last."""
    text = " ".join(sentences(40))
    section = TextNode(id_="section", text=text, start_char_idx=0, end_char_idx=len(text), relationships={SOURCE: nodes[0].relationships[SOURCE]})
    for node in nodes:
        node.relationships[PARENT] = RelatedNodeInfo(node_id="section")
    return [*nodes, section]


def without_offsets(nodes):
    return [node.model_copy(update={"start_char_idx": None, "end_char_idx": None}) for node in nodes]


def numbers(text):
    return [int(number) for number in re.findall(r"number (\d+)", text)]


def hit(node, score=0.5):
    return NodeWithScore(node=node, score=score)


def linked(*texts, source="d", **metadata):
    """Nodes without offsets, each linked to the next."""
    ids = [f"n{number}" for number in range(len(texts))]
    nodes = []
    for number, text in enumerate(texts):
        relationships = {SOURCE: RelatedNodeInfo(node_id=source)}
        if number:
            relationships[PREVIOUS] = RelatedNodeInfo(node_id=ids[number - 1])
        if number + 1 < len(texts):
            relationships[NEXT] = RelatedNodeInfo(node_id=ids[number + 1])
        nodes.append(TextNode(id_=ids[number], text=text, relationships=relationships, metadata=dict(metadata)))
    return nodes


def expand(nodes, hits, **options):
    return ContextExpander(nodes, **{"max_tokens": None, "language": "en", **options}).postprocess_nodes(hits)


@pytest.mark.parametrize("mode", list(ExpansionMode))
def test_it_keeps_the_contract(mode):
    nodes = with_section(chunks(document(), overlap=8))
    hits = [hit(node, 1 / (rank + 1)) for rank, node in enumerate((nodes[5], nodes[1], nodes[2], nodes[9]))]
    check_postprocessor_contract(lambda: ContextExpander(nodes, mode=mode, max_tokens=400), hits, "a question")


@pytest.mark.parametrize("overlap", [0, 8])
@pytest.mark.parametrize("offsets", [True, False])
def test_sentences_before_and_after(overlap, offsets):
    nodes = chunks(document(), overlap=overlap)
    nodes = nodes if offsets else without_offsets(nodes)
    held = numbers(nodes[3].text)
    (result,) = expand(nodes, [hit(nodes[3])], window=2)
    assert numbers(result.text) == list(range(held[0] - 2, held[-1] + 3))
    assert result.node_id == nodes[3].node_id
    if offsets:
        assert document().text[result.node.start_char_idx : result.node.end_char_idx] == result.text


@pytest.mark.parametrize("offsets", [True, False])
def test_neighbours_do_not_repeat_what_chunks_share(offsets):
    nodes = chunks(document(), overlap=8)
    nodes = nodes if offsets else without_offsets(nodes)
    (result,) = expand(nodes, [hit(nodes[3])], mode="neighbours", window=1)
    assert numbers(result.text) == list(range(numbers(nodes[2].text)[0], numbers(nodes[4].text)[-1] + 1))
    assert result.node.prev_node.node_id == nodes[1].node_id
    assert result.node.next_node.node_id == nodes[5].node_id
    assert result.node.source_node.node_id == "doc"


def test_line_ends_between_chunks_keep_offsets_true_in_length():
    given = document(separator="\n\n")
    nodes = chunks(given)
    (result,) = expand(nodes, [hit(nodes[3])], mode="neighbours", window=1)
    assert given.text[result.node.start_char_idx : result.node.end_char_idx] == result.text


def test_expansions_that_overlap_or_touch_are_one_node_of_the_best():
    nodes = chunks(document())
    given = [hit(nodes[2], 0.4), hit(nodes[10], 0.3), hit(nodes[3], 0.2)]
    result = expand(nodes, given, window=2)
    assert [(found.node_id, found.score) for found in result] == [(nodes[2].node_id, 0.4), (nodes[10].node_id, 0.3)]
    everything = [number for found in result for number in numbers(found.text)]
    assert len(everything) == len(set(everything))
    assert set(numbers(nodes[2].text) + numbers(nodes[3].text)) <= set(numbers(result[0].text))


def test_the_best_node_lends_id_and_place_also_when_it_is_not_the_first():
    nodes = chunks(document())
    result = expand(nodes, [hit(nodes[2], 0.1), hit(nodes[10], 0.5), hit(nodes[3], 0.9)], window=1)
    assert [(found.node_id, found.score) for found in result] == [(nodes[10].node_id, 0.5), (nodes[3].node_id, 0.9)]


def test_nodes_of_two_documents_never_meet():
    one, two = chunks(document()), SentenceChunkParser(chunk_size=24, chunk_overlap=0).get_nodes_from_documents([Document(text=document().text, id_="two")])
    result = expand([*one, *two], [hit(one[2]), hit(two[2])], window=2)
    assert [found.node.ref_doc_id for found in result] == ["doc", "two"]
    crossing = linked("One.", "Two.", "Three.")
    crossing[2].relationships[SOURCE] = RelatedNodeInfo(node_id="other")
    (found,) = expand(crossing, [hit(crossing[1])], window=2)
    assert found.text == "One. Two."


def test_neighbours_must_match_the_filters():
    nodes = linked("One.", "Two.", "Three.")
    nodes[2].metadata["secret"] = "yes"
    filters = MetadataFilters(filters=[MetadataFilter(key="secret", value=None, operator="is_empty")])
    with capture_trace() as trace:
        assert [found.text for found in expand(nodes, [hit(nodes[1])], filters=filters)] == ["One. Two."]
    assert any("do not match the filters" in note.message for note in trace.all_notes())


def test_a_section_is_given_whole_when_it_fits():
    nodes = with_section(chunks(document()))
    (result,) = expand(nodes, [hit(nodes[3], 0.9), hit(nodes[10], 0.2)], mode="section", max_tokens=1000)
    assert (result.text, result.node_id, result.score) == (nodes[-1].text, nodes[3].node_id, 0.9)
    assert (result.node.start_char_idx, result.node.end_char_idx) == (0, len(result.text))
    assert PREVIOUS not in result.node.relationships
    assert result.node.parent_node.node_id == "section"


def test_of_a_long_section_as_much_around_the_node_as_fits():
    nodes = with_section(chunks(document()))
    held = numbers(nodes[8].text)
    (result,) = expand(nodes, [hit(nodes[8])], mode="section", max_tokens=80)
    found = numbers(result.text)
    assert tokens(result.text) <= 80
    assert found == list(range(found[0], found[-1] + 1))
    assert found[0] < held[0] <= held[-1] < found[-1]
    assert len(found) >= 8
    assert document().text[result.node.start_char_idx : result.node.end_char_idx] == result.text


@pytest.mark.parametrize("offsets", [True, False])
def test_a_section_inside_another_one_is_not_repeated(offsets):
    *nodes, outer = with_section(chunks(document()))
    inner = outer.model_copy(update={"id_": "inner", "text": outer.text[: nodes[5].end_char_idx], "end_char_idx": nodes[5].end_char_idx})
    for node in nodes[:6]:
        node.relationships[PARENT] = RelatedNodeInfo(node_id="inner")
    used = [*nodes, outer, inner]
    used = used if offsets else without_offsets(used)
    (result,) = expand(used, [hit(used[2], 0.9), hit(used[9], 0.8)], mode="section")
    assert (result.text, result.node_id) == (outer.text, nodes[2].node_id)
    with capture_trace() as trace:
        found = expand(used, [hit(inner, 0.9), hit(used[9], 0.8), hit(used[2], 0.7)], mode="section", max_tokens=100)
    shown = [number for passage in found for number in numbers(passage.text)]
    assert len(shown) == len(set(shown))
    assert set(numbers(inner.text) + numbers(used[9].text)) <= set(shown)
    assert trace.children[0].evidence[0].details["hits"] == 2


@pytest.mark.parametrize("mode", ["sentences", "neighbours"])
@pytest.mark.parametrize("offsets", [True, False])
def test_a_section_and_its_part_become_one(mode, offsets):
    nodes = with_section(chunks(document()))
    nodes = nodes if offsets else without_offsets(nodes)
    (result,) = expand(nodes, [hit(nodes[-1], 0.9), hit(nodes[3], 0.5)], mode=mode)
    assert (result.node_id, result.text) == ("section", nodes[-1].text)


def test_the_trace_says_when_it_is_the_whole_section():
    nodes = with_section(chunks(document()))
    with capture_trace() as trace:
        expand(nodes, [hit(nodes[2])], mode="section")
        expand(nodes, [hit(nodes[2])], mode="section", max_tokens=60)
    whole, part = (stage.evidence[0].why for stage in trace.children)
    assert whole == "with its whole section"
    assert re.match(r"with \d+ sentences? before", part)


def test_a_section_that_is_not_there_is_put_together_from_its_nodes():
    nodes = with_section(chunks(document()))
    for node in nodes[6:]:
        node.relationships[PARENT] = RelatedNodeInfo(node_id="another section")
    (result,) = expand(nodes[:-1], [hit(nodes[3])], mode="section", max_tokens=1000)
    assert numbers(result.text) == list(range(numbers(nodes[5].text)[-1] + 1))
    lonely = [node.model_copy(update={"relationships": {SOURCE: node.relationships[SOURCE]}}) for node in nodes[:3]]
    assert expand(lonely, [hit(lonely[1])], mode="section")[0].text == lonely[1].text


def test_the_budget_goes_to_the_best_first_and_nothing_given_is_cut():
    nodes = chunks(document())
    given = [hit(nodes[4], 0.9), hit(nodes[12], 0.5)]
    base = sum(tokens(found.node.text) for found in given)
    best, other = expand(nodes, given, window=2, max_tokens=base + 16)
    assert len(numbers(best.text)) == len(numbers(nodes[4].text)) + 2
    assert other.text == nodes[12].text
    assert [found.text for found in expand(nodes, given, window=2, max_tokens=1)] == [nodes[4].text, nodes[12].text]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whatever_is_asked(data):
    given = document(data.draw(st.integers(1, 30)), separator=data.draw(st.sampled_from([" ", "\n", "\n\n"])))
    nodes = with_section(chunks(given, size=data.draw(st.sampled_from([10, 24, 40])), overlap=data.draw(st.sampled_from([0, 8]))))
    whole = nodes.pop()
    nodes.append(whole.model_copy(update={"text": given.text, "end_char_idx": len(given.text)}))
    used = without_offsets(nodes) if data.draw(st.booleans()) else nodes
    picked = data.draw(st.lists(st.sampled_from(range(len(nodes) - 1)), min_size=1, max_size=5, unique=True))
    hits = [hit(used[number], 1.0 / (rank + 1)) for rank, number in enumerate(picked)]
    base = tokens(" ".join(found.node.text for found in hits)) + 8 * len(hits)
    budget = data.draw(st.sampled_from([None, 20, 60, 200]))
    before = snapshot(hits)
    mode, window = data.draw(st.sampled_from(list(ExpansionMode))), data.draw(st.integers(1, 3))
    result = expand(used, hits, mode=mode, window=window, max_tokens=budget)
    assert snapshot(hits) == before
    shown = [number for found in result for number in numbers(found.text)]
    assert len(shown) == len(set(shown))
    assert {number for found in hits for number in numbers(found.node.text)} <= set(shown)
    assert all(numbers(found.text) == sorted(numbers(found.text)) for found in result)
    assert budget is None or sum(tokens(found.text) for found in result) <= max(budget, base)
    for found in result:
        if found.node.start_char_idx is not None:
            part = given.text[found.node.start_char_idx : found.node.end_char_idx]
            assert len(part) == len(found.text)
            assert part.split() == found.text.split()


def test_broken_relations_end():
    circle = linked("One.", "Two.", "Three.")
    circle[2].relationships[NEXT] = RelatedNodeInfo(node_id="n0")
    circle[0].relationships[PREVIOUS] = RelatedNodeInfo(node_id="n2")
    (found,) = expand(circle, [hit(circle[1])], mode="neighbours", window=9)
    assert sorted(found.text.split()) == ["One.", "Three.", "Two."]
    alone = linked("One.")
    alone[0].relationships.update({NEXT: RelatedNodeInfo(node_id="n0"), PREVIOUS: RelatedNodeInfo(node_id="gone")})
    assert [found.text for found in expand(alone, [hit(alone[0])])] == ["One."]


def test_one_batch_a_step_for_all_hits():
    nodes = linked(*sentences(30))
    source = Watched(nodes)
    expand(source, [hit(nodes[5]), hit(nodes[20])], mode="neighbours", window=2)
    assert source.asked == [["n6", "n4", "n21", "n19"], ["n7", "n3", "n22", "n18"]]


def test_pages_become_a_range():
    nodes = chunks(document(metadata={"page_starts": [0, 300, 600, 900]}))
    place = next(number for number, node in enumerate(nodes) if node.metadata["page_label"] == "2")
    (result,) = expand(nodes, [hit(nodes[place])], mode="neighbours", window=1)
    assert result.node.metadata["page_label"].startswith("1-2")
    assert nodes[place].metadata["page_label"] == "2"


def test_what_stands_between_two_nodes_and_in_none_is_not_invented():
    text = "First part. " + "x" * 100 + " Second part."
    first, second = linked("First part.", "Second part.")
    first.start_char_idx, first.end_char_idx = 0, 11
    second.start_char_idx, second.end_char_idx = len(text) - 12, len(text)
    (found,) = expand([first, second], [hit(first)], window=1)
    assert found.text == "First part.\n\nSecond part."
    assert (found.node.start_char_idx, found.node.end_char_idx) == (None, None)


def test_offsets_that_are_not_true_are_not_used():
    nodes = linked("One two. Three four.", "Three four. Five six.", "Seven eight.")
    for node in nodes:
        node.start_char_idx, node.end_char_idx = 0, len(node.text)
    (found,) = expand(nodes, [hit(nodes[1])], mode="neighbours", window=1)
    assert found.text == "One two. Three four. Five six. Seven eight."
    assert found.node.start_char_idx is None


@pytest.mark.parametrize("parser", [SentenceSplitter(chunk_size=60, chunk_overlap=20), SentenceWindowNodeParser(window_size=1)])
def test_nodes_of_llama_index_from_docstore_and_index(parser):
    nodes = parser.get_nodes_from_documents([document()])
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(4))
    middle = len(nodes) // 2
    for source in (docstore, index, nodes):
        (found,) = expand(source, [hit(nodes[middle])], mode="neighbours", window=1)
        shown = numbers(found.text)
        assert shown == list(range(shown[0], shown[-1] + 1))
        assert shown[0] < numbers(nodes[middle].text)[0]
        assert shown[-1] > numbers(nodes[middle].text)[-1]


def test_pictures_and_empty_nodes_pass_through():
    picture, empty = ImageNode(id_="picture", text="A caption."), TextNode(id_="empty", text=" ")
    result = expand([], [hit(picture, 0.9), hit(empty, 0.8)])
    assert [found.node for found in result] == [picture, empty]
    assert expand([], []) == []


def test_scores_may_be_missing():
    nodes = linked(*sentences(9))
    result = expand(nodes, [hit(nodes[1], None), hit(nodes[7], None)], window=1)
    assert [(found.node_id, found.score) for found in result] == [("n1", None), ("n7", None)]


def test_the_trace_says_what_was_added():
    nodes = linked(*sentences(20))
    with capture_trace() as trace:
        expand(nodes, [hit(nodes[0], 0.9), hit(nodes[10], 0.8), hit(nodes[11], 0.7)], window=2)
    assert [item.why for item in trace.children[0].evidence] == ["with 2 sentences after", "2 retrieved nodes in one, with 2 sentences before and after"]


def test_async_gives_the_same():
    nodes = chunks(document())
    expander = ContextExpander(nodes, window=1)
    given = [hit(nodes[3])]
    assert asyncio.run(expander.apostprocess_nodes(given))[0].text == expander.postprocess_nodes(given)[0].text


def test_a_section_of_five_megabytes_is_read_around_the_nodes_only():
    text = " ".join(sentences(180_000))
    assert len(text) > 5_000_000
    section = TextNode(id_="s", text=text, start_char_idx=0, end_char_idx=len(text), relationships={SOURCE: RelatedNodeInfo(node_id="d")})
    up = {SOURCE: RelatedNodeInfo(node_id="d"), PARENT: RelatedNodeInfo(node_id="s")}
    spans = [(place, text.index(".", place) + 1) for place in (text.index(f"Sentence number {number} ") for number in (10, 90_000, 170_000))]
    hits = [hit(TextNode(id_=str(start), text=text[start:end], start_char_idx=start, end_char_idx=end, relationships=up)) for start, end in spans]
    started = time.perf_counter()
    assert len(expand([section], hits, mode="section", max_tokens=300)) == 3
    assert time.perf_counter() - started < 5


def test_nodes_of_five_megabytes_are_read_at_their_ends_only():
    first, big, last = linked("One.", " ".join(sentences(180_000)), "Three.")
    started = time.perf_counter()
    (found,) = expand([first, big, last], [hit(big)], window=1)
    assert (found.text[:5], found.text[-7:]) == ("One. ", " Three.")
    assert len(found.text) == len(big.text) + 12
    (found,) = expand([first, big, last], [hit(last)], window=1)
    assert found.text == "Sentence number 179999 is here. Three."
    assert time.perf_counter() - started < 5


def test_it_shows_its_settings_and_refuses_wrong_ones():
    expander = ContextExpander([], mode="neighbours", window=3)
    assert repr(expander) == "ContextExpander(mode='neighbours', window=3, max_tokens=1024)"
    assert json.loads(expander.to_json()) == {"mode": "neighbours", "window": 3, "max_tokens": 1024, "language": "auto", "class_name": "ContextExpander"}
    with pytest.raises(ConfigurationError, match="mode is 'page'. It must be one of 'sentences', 'neighbours', 'section'"):
        ContextExpander([], mode="page")
    with pytest.raises(ConfigurationError, match="window is 0. It must be a whole number of at least 1"):
        ContextExpander([], window=0)
    with pytest.raises(ConfigurationError, match="nodes is None. It must be a docstore"):
        ContextExpander(None)
