from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.hierarchy.node_plan import MOST_LEVELS, OwnedChunk, plan_nodes
from llama_index_advanced_rag.hierarchy.sections import Group, SectionTree, group_sections


def tree_of(parents: list[int | None], tokens: list[int], *, heading: int = 2) -> SectionTree:
    """Sections whose headings have two tokens each."""
    return SectionTree(parents, tokens, [tokens[0], *(max(0, count - heading) for count in tokens[1:])])


def test_each_section_is_a_group() -> None:
    tree = tree_of([None, 0, 0], [50, 60, 70, 80])
    assert group_sections(tree, small=20, most=100) == [Group(0, 0, 1), Group(1, 1, 2), Group(2, 2, 3), Group(3, 3, 4)]


def test_small_neighbours_are_one_group_of_their_parent_as_long_as_they_fit() -> None:
    tree = tree_of([None, 0, 0, 0, 0, 0], [0, 40, 20, 20, 20, 20, 90])
    assert group_sections(tree, small=20, most=60) == [Group(1, 0, 2), Group(1, 2, 5), Group(5, 5, 6), Group(6, 6, 7)]


def test_a_small_text_of_the_parent_goes_with_them() -> None:
    assert group_sections(tree_of([None, 0, 0], [0, 20, 15, 15]), small=20, most=60) == [Group(1, 0, 4)]


def test_a_small_section_goes_with_all_that_stands_in_it() -> None:
    assert group_sections(tree_of([None, 0, None], [30, 5, 5, 12]), small=20, most=60) == [Group(0, 0, 1), Group(0, 1, 4)]


def test_a_heading_goes_with_its_first_sub_section_or_with_the_next_section() -> None:
    assert group_sections(tree_of([None, 0, 1, None], [0, 2, 2, 90, 90]), small=20, most=100) == [Group(3, 0, 4), Group(4, 4, 5)]
    assert group_sections(tree_of([None, None], [0, 2, 90]), small=20, most=91) == [Group(2, 0, 3)]
    assert group_sections(tree_of([None, 0, None], [0, 90, 2, 90]), small=20, most=100) == [Group(1, 0, 2), Group(2, 2, 3), Group(3, 3, 4)]


def test_a_document_without_headings_is_one_group() -> None:
    assert group_sections(tree_of([], [500]), small=20, most=100) == [Group(0, 0, 1)]


PARENTS = st.lists(st.integers(0, 6), max_size=30)


def random_parents(depths: list[int]) -> list[int | None]:
    parents: list[int | None] = []
    chain: list[int] = []
    for place, depth in enumerate(depths):
        chain = chain[:depth]
        parents.append(chain[-1] if chain else None)
        chain.append(place)
    return parents


@settings(max_examples=300, deadline=None)
@given(depths=PARENTS, data=st.data())
def test_every_section_is_in_one_group_of_itself_or_its_parent(depths: list[int], data: st.DataObject) -> None:
    parents = random_parents(depths)
    tokens = data.draw(st.lists(st.integers(2, 60), min_size=len(parents) + 1, max_size=len(parents) + 1))
    tree = tree_of(parents, tokens)
    groups = group_sections(tree, small=20, most=80)
    assert [section for group in groups for section in range(group.first, group.after)] == list(range(len(tree)))
    for group in groups:
        texts = [section for section in range(group.first, group.after) if not tree.only_heading[section]]
        assert all(group.owner in chain_of(tree, section) for section in texts)
        large = [section for section in texts if tree.total(section) > 20]
        assert len([section for section in large if section != group.owner]) == 0


def chain_of(tree: SectionTree, section: int) -> list[int]:
    chain = [section]
    while tree.parents[chain[-1]] >= 0:
        chain.append(tree.parents[chain[-1]])
    return chain


def test_sections_with_one_chunk_and_nothing_below_are_no_nodes() -> None:
    tree = tree_of([None, 0, 0], [0, 2, 30, 90])
    chunks = [OwnedChunk(2, 0, 30), OwnedChunk(3, 31, 60), OwnedChunk(3, 61, 90)]
    plan = plan_nodes(tree, chunks, 95)
    assert [(node.section, node.chunk, node.start, node.end, node.parent) for node in plan] == [
        (0, None, 0, 95, None),
        (1, None, 0, 90, 0),
        (2, 0, 0, 30, 1),
        (3, None, 31, 90, 1),
        (3, 1, 31, 60, 3),
        (3, 2, 61, 90, 3),
    ]
    assert [node.children for node in plan] == [[1], [2, 3], [], [4, 5], [], []]


def test_very_deep_sections_hang_on_the_twelfth_level() -> None:
    depth = 5_000
    tree = tree_of([None, *range(depth - 1)], [0, *[90] * depth])
    plan = plan_nodes(tree, [OwnedChunk(section, section, section + 1) for section in range(1, depth + 1)], depth + 1)
    sections = [node.section for node in plan if node.chunk is None]
    assert sections == list(range(MOST_LEVELS + 1))
    assert plan[-1].parent == plan.index(next(node for node in plan if node.section == MOST_LEVELS))
