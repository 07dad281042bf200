"""A tree of summaries: what is made, what is made again, what is found."""

import asyncio
import copy
import json
import time
from dataclasses import replace

import numpy as np
import pytest
from llama_index.core.schema import MetadataMode, QueryBundle

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError, IndexFormatError
from llama_index_advanced_rag.hierarchy.summaries import Summarizer
from llama_index_advanced_rag.hierarchy.summary.node import UnitText
from llama_index_advanced_rag.hierarchy.summary_tree import SummaryTree
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM
from llama_index_advanced_rag.trace import capture_trace

ANIMALS = ["fox", "hen", "whale", "wolf", "crow", "eel", "ant", "bee", "cow", "dog"]


def unit(number, **changes):
    animal = ANIMALS[number % len(ANIMALS)]
    text = " ".join(f"The {animal} of house {number} eats food {kind} in the {animal} shed every day." for kind in range(12))
    return replace(UnitText(f"u{number:03}", f"d{number // 10}", f"{animal.title()} {number}", 1, text), **changes)


def units_of(count):
    return [unit(number) for number in range(count)]


def tree_of(units, *, llm=None, model=None, **options):
    return SummaryTree.build(units, Summarizer(llm, max_tokens=40, language="en"), embed_model=model or DeterministicEmbedding(), **options)


def found_in(tree, query, **options):
    return [unit_id for unit_id, _ in tree.search(query, **options)]


def test_each_unit_is_summarised_and_embedded_once():
    llm, model = ScriptedLLM([lambda prompt: f"About {prompt.split('<title>')[1].split('</title>')[0].strip()}."]), DeterministicEmbedding()
    tree = tree_of(units_of(12), llm=llm, model=model)
    assert len(llm.prompts) == len(model.texts) == len(tree) == 12
    assert "Fox 0\nAbout Fox 0." in model.texts


def test_nodes_tell_what_they_are_summaries_of():
    tree = tree_of(units_of(12), tree=True)
    nodes = {node.node_id: node for node in tree.nodes()}
    assert nodes["u003"].metadata == {"title": "Wolf 3", "level": 1, "summary_of": "u003"}
    assert nodes["u003"].ref_doc_id == "d0"
    for cluster, members in tree.children.items():
        assert nodes[cluster].metadata["summary_of"] == members
        assert nodes[cluster].metadata["level"] < 0
        assert nodes[cluster].ref_doc_id is None
    for summary in tree.summaries():
        assert nodes[summary.node_id].get_content(MetadataMode.EMBED) == summary.embedded_text


def test_the_tree_has_one_root_and_every_unit_is_under_it_once():
    tree = tree_of(units_of(57), tree=True, cluster_size=4)
    (root,) = tree.roots
    assert sorted(tree.descend(root)) == [f"u{number:03}" for number in range(57)]
    assert len(tree.descend(root)) == 57
    assert max(map(len, tree.children.values())) <= 4
    assert tree.descend("u003") == ["u003"]
    assert tree.descend("nothing") == []


def test_clusters_gather_what_is_alike():
    tree = tree_of(units_of(40), tree=True, cluster_size=4)
    lowest = [members for members in tree.children.values() if all(member.startswith("u") for member in members)]
    alike = [len({int(member[1:]) % 10 for member in members}) == 1 for members in lowest]
    assert sum(alike) > len(alike) / 2


def test_the_same_units_in_another_order_give_the_same_tree():
    forwards, backwards = tree_of(units_of(30), tree=True), tree_of(units_of(30)[::-1], tree=True)
    assert forwards.children == backwards.children
    assert forwards.search("the whale", top_k=5) == backwards.search("the whale", top_k=5)


def test_without_clusters_a_search_ranks_the_units():
    tree = tree_of(units_of(30))
    found = tree.search("whale in the whale shed", top_k=3)
    assert [unit_id for unit_id, _ in found] == ["u002", "u012", "u022"]
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(isinstance(score, float) and 0 < score <= 1 for score in scores)


@pytest.mark.parametrize("mode", ["collapsed", "top_down"])
def test_a_tree_finds_units_in_either_way(mode):
    tree = tree_of(units_of(60), tree=True, cluster_size=5)
    assert set(found_in(tree, "whale in the whale shed", top_k=6, mode=mode)) == {f"u{number:03}" for number in range(2, 60, 10)}
    assert set(found_in(tree, "whale", top_k=100, mode=mode)) <= {f"u{number:03}" for number in range(60)}


@pytest.mark.parametrize("mode", ["collapsed", "top_down"])
def test_candidates_restrict_before_the_cut(mode):
    tree = tree_of(units_of(60), tree=True, cluster_size=5)
    allowed = {"u013", "u022", "u044"}
    found = found_in(tree, "whale in the whale shed", top_k=3, mode=mode, unit_ids=allowed)
    assert found[0] == "u022"
    assert set(found) <= allowed
    assert found_in(tree, "whale", top_k=3, mode=mode, unit_ids=["unknown"]) == []


async def test_async_gives_the_same():
    units = units_of(30)
    tree, other = (
        tree_of(units, tree=True),
        await SummaryTree.abuild(units, Summarizer(max_tokens=40, language="en"), embed_model=DeterministicEmbedding(), tree=True),
    )
    assert tree.to_dict() == other.to_dict()
    for mode in ("collapsed", "top_down"):
        assert await other.asearch("the crow", top_k=5, mode=mode) == tree.search("the crow", top_k=5, mode=mode)
    assert await other.aupdate(units[:20]) == tree.update(units[:20])


async def test_async_with_an_llm_gives_the_same():
    def answer(prompt):
        return prompt.split("<text>")[1][:60]

    tree = tree_of(units_of(15), llm=ScriptedLLM([answer]), tree=True)
    other = await SummaryTree.abuild(
        units_of(15), Summarizer(ScriptedLLM([answer]), max_tokens=40, language="en"), embed_model=DeterministicEmbedding(), tree=True
    )
    assert tree.to_dict() == other.to_dict()


def test_an_update_without_a_change_does_nothing():
    model = DeterministicEmbedding()
    tree = tree_of(units_of(20), model=model, tree=True)
    before, count = tree.to_dict(), len(model.texts)
    update = tree.update(units_of(20))
    assert (update.summarised, update.embedded, update.removed, update.units) == (0, 0, 0, 20)
    assert len(model.texts) == count
    assert tree.to_dict() == before


def test_an_update_makes_only_what_changed():
    tree = tree_of(units_of(20))
    update = tree.update([unit(3, text="The gnu of the zoo grazes on green grass."), *units_of(20)[:3], *units_of(21)[4:]])
    assert (update.summarised, update.embedded, update.removed, update.units) == (2, 2, 0, 21)
    assert found_in(tree, "a gnu grazes", top_k=1) == ["u003"]
    assert tree.update(units_of(5)).removed == 16
    assert set(found_in(tree, "crow whale dog", top_k=50)) <= {f"u{number:03}" for number in range(5)}


@pytest.mark.parametrize("tree", [True, False])
def test_an_updated_tree_of_mostly_new_units_is_that_of_a_fresh_build(tree):
    grown = tree_of(units_of(25), tree=tree)
    grown.update(units_of(51)[20:])
    fresh = tree_of(units_of(51)[20:], tree=tree)
    assert grown.search("a bee", top_k=9) == fresh.search("a bee", top_k=9)
    assert grown.to_dict() == fresh.to_dict()


def test_a_changed_unit_costs_a_summary_for_each_level():
    units = units_of(200)
    tree = tree_of(units, tree=True, cluster_size=5)
    levels = -min(node.level for node in tree.summaries())
    for number in (3, 77, 150):
        update = tree.update([unit(place, text="The gnu eats grass in the green valley.") if place == number else one for place, one in enumerate(units)])
        assert update.summarised <= 2 * (1 + 2 * levels)
    (root,) = tree.roots
    assert sorted(tree.descend(root)) == [one.unit_id for one in units]


def test_a_tree_that_grows_and_shrinks_stays_a_tree():
    tree = tree_of(units_of(30), tree=True, cluster_size=3)
    for first, last in [(0, 33), (0, 40), (3, 44), (10, 44), (12, 44), (12, 45), (13, 30), (13, 16), (13, 14), (13, 15)]:
        tree.update(units_of(50)[first:last])
        units = [f"u{number:03}" for number in range(first, last)]
        (root,) = tree.roots
        assert sorted(tree.descend(root)) == units
        assert all(2 <= len(members) <= 3 for members in tree.children.values())
        assert len(tree.children) < max(2, len(units))
        loaded = SummaryTree.from_dict(tree.to_dict(), tree.summarizer, embed_model=DeterministicEmbedding(), tree=True, cluster_size=3)
        assert loaded.update(units_of(50)[first:last]).summarised == 0


def test_unchanged_clusters_are_not_summarised_again():
    llm = ScriptedLLM([lambda prompt: prompt.split("<text>")[1].strip()[:80]])
    tree = tree_of(units_of(60), llm=llm, tree=True, cluster_size=5)
    before = len(llm.prompts)
    tree.update(units_of(59))
    assert len(llm.prompts) - before < before / 4


def test_a_summary_that_the_llm_did_not_write_is_tried_again():
    llm = ScriptedLLM(["", "About the fox."])
    tree = tree_of(units_of(1), llm=llm)
    assert tree.update(units_of(1)).summarised == 1
    assert tree.summaries()[0].summary == "About the fox."
    assert tree.update(units_of(1)).summarised == 0


def test_what_was_written_before_the_embedding_failed_is_not_paid_twice():
    llm, model = ScriptedLLM(["About animals."]), DeterministicEmbedding(fail_on="Wolf")
    tree = SummaryTree(Summarizer(llm), embed_model=model)
    with pytest.raises(ConnectionError, match="the embedding service is down"):
        tree.update(units_of(5))
    assert len(tree) == 0
    model.fail_on = None
    tree.update(units_of(5))
    assert len(tree) == 5
    assert len(llm.prompts) == 5


def test_a_failed_update_leaves_the_tree_as_it_was():
    model = DeterministicEmbedding(fail_on="Gnu")
    tree = tree_of(units_of(10), model=model)
    before = tree.search("crow", top_k=3)
    with pytest.raises(ConnectionError):
        tree.update([unit(1, title="Gnu")])
    assert tree.search("crow", top_k=3) == before


async def test_a_cancelled_update_keeps_what_was_written():
    started = asyncio.Event()

    class Stuck(DeterministicEmbedding):
        async def _aget_text_embedding(self, text):
            started.set()
            await asyncio.Event().wait()

    llm = ScriptedLLM(["About animals."])
    tree = SummaryTree(Summarizer(llm), embed_model=Stuck())
    task = asyncio.create_task(tree.aupdate(units_of(3)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    tree.update(units_of(3))
    assert len(llm.prompts) == 3


def test_a_stored_tree_is_the_same_and_costs_nothing():
    model = DeterministicEmbedding()
    tree = tree_of(units_of(30), tree=True)
    data = json.loads(json.dumps(tree.to_dict()))
    loaded = SummaryTree.from_dict(data, Summarizer(max_tokens=40, language="en"), embed_model=model, tree=True)
    assert model.texts == []
    assert loaded.search("a dog", top_k=7) == tree.search("a dog", top_k=7)
    assert all(np.array_equal(vector, tree.vectors()[node_id]) for node_id, vector in loaded.vectors().items())
    assert loaded.update(units_of(30)).embedded == 0
    assert SummaryTree.from_dict(SummaryTree(embed_model=model).to_dict(), embed_model=model).search("x", top_k=1) == []


def test_another_embedding_model_keeps_the_summaries_and_embeds_anew():
    llm = ScriptedLLM(["About animals."])
    data = tree_of(units_of(5), llm=llm).to_dict()
    with capture_trace() as trace:
        loaded = SummaryTree.from_dict(data, Summarizer(llm, max_tokens=40, language="en"), embed_model=DeterministicEmbedding(32))
    assert "embedded with" in trace.all_notes()[0].message
    assert loaded.search("fox", top_k=3) == []
    assert loaded.update(units_of(5)).embedded > 0
    assert len(llm.prompts) == 5
    assert found_in(loaded, "Fox", top_k=1) == ["u000"]


@pytest.mark.parametrize(
    "damage",
    [{"format": 2}, {"vectors": "AAAA"}, {"vectors": "?"}, {"nodes": [{"id": "a"}]}, {"nodes": None}, {"dimension": 7}],
    ids=lambda damage: str(damage)[:20],
)
def test_a_damaged_tree_is_refused(damage):
    data = {**tree_of(units_of(3)).to_dict(), **damage}
    with pytest.raises(IndexFormatError, match="Build them again"):
        SummaryTree.from_dict(data, embed_model=DeterministicEmbedding())


def test_inputs_are_left_alone_and_an_embedding_in_the_query_is_used():
    model = DeterministicEmbedding()
    tree = tree_of(units_of(10), model=model)
    bundle = QueryBundle("the crow", embedding=model.get_query_embedding("the whale"))
    before, count = copy.deepcopy(bundle), len(model.texts)
    assert "u002" in found_in(tree, bundle, top_k=3)
    plain = QueryBundle("the crow")
    tree.search(plain, top_k=3)
    assert plain.embedding is None
    assert bundle == before
    assert len(model.texts) == count + 1


def test_a_query_vector_of_another_model_is_refused():
    with pytest.raises(EmbeddingMismatchError, match="2 numbers, the summaries have 64"):
        tree_of(units_of(3)).search(QueryBundle("fox", embedding=[1.0, 0.0]), top_k=1)


def test_empty_things():
    tree = SummaryTree(embed_model=DeterministicEmbedding(), tree=True)
    assert tree.search("anything", top_k=3) == []
    assert tree.update([]).units == 0
    tree.update([unit(1, title="", text=" "), unit(2, text=""), unit(3, title="")])
    assert {node.node_id for node in tree.summaries() if not node.members} == {"u002", "u003"}
    assert tree.search("  ", top_k=3) == []


def test_units_with_equal_texts_are_summarised_once_and_found_in_order():
    llm = ScriptedLLM(["Equal."])
    tree = tree_of([replace(unit(1), unit_id=name, ref_doc_id=document) for name, document in (("x", "d2"), ("y", "d1"), ("z", "d1"))], llm=llm)
    assert len(llm.prompts) == 1
    assert found_in(tree, "Equal", top_k=3) == ["y", "z", "x"]


def test_arguments_are_checked():
    model = DeterministicEmbedding()
    with pytest.raises(ConfigurationError, match="'u001' for example"):
        tree_of([unit(1), unit(1)])
    with pytest.raises(ConfigurationError, match="dense_weight is 2"):
        SummaryTree(embed_model=model, dense_weight=2)
    with pytest.raises(ConfigurationError, match="cluster_size is 1"):
        SummaryTree(embed_model=model, tree=True, cluster_size=1)
    with pytest.raises(ConfigurationError, match="mode is 'sideways'"):
        tree_of(units_of(2)).search("fox", top_k=1, mode="sideways")
    with pytest.raises(ConfigurationError, match="top_k is 0"):
        tree_of(units_of(2)).search("fox", top_k=0)


def test_surrogates_and_odd_titles_are_harmless():
    tree = tree_of([unit(1, unit_id="caf\udce9", title="{title} {0}"), unit(2)], tree=True)
    assert tree.update([unit(1, unit_id="caf\udce9", title="{title} {0}"), unit(2)]).embedded == 0
    assert "{title} {0}" in next(node for node in tree.nodes() if node.node_id == "caf\udce9").get_content(MetadataMode.EMBED)


def test_many_units_take_seconds():
    units = [unit(number, text=f"The {ANIMALS[number % 10]} number {number} eats.") for number in range(3000)]
    started = time.process_time()
    tree = tree_of(units, tree=True)
    tree.search("whale", top_k=10)
    assert time.process_time() - started < 90
