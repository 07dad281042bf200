from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode

from llama_index_advanced_rag.stores.documents.metadata_codec import MetadataBase, dumps
from llama_index_advanced_rag.stores.documents.relation_codec import full_relation, pack_id, short_relation, unpack_id

KEYS = st.sampled_from(["title", "section_path", "page_label", "page_starts", "n"])
TEXTS = st.sampled_from(["Costs > Leases > Rents", "Costs > Leases > Taxes", "3", ""])
METADATA = st.dictionaries(KEYS, st.one_of(TEXTS, st.integers(0, 3), st.none(), st.lists(st.integers(0, 3), max_size=2)), max_size=5)


@given(document=METADATA, nodes=st.lists(METADATA, max_size=6))
def test_metadata_come_back_in_their_order(document: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    made = [TextNode(text="x", metadata=metadata) for metadata in nodes]
    base = MetadataBase.of_nodes(document, made)
    read = MetadataBase.from_stored(document, base.to_stored() or None)
    for node in made:
        assert dumps(read.restored(base.difference(node.metadata, node)), node) == dumps(node.metadata, node)


def test_what_nodes_lack_and_what_they_share_is_said_once() -> None:
    nodes = [TextNode(text="x", metadata={"title": "T", "section_path": "A long heading", "page_label": str(page)}) for page in range(3)]
    base = MetadataBase.of_nodes({"title": "T", "page_starts": [0, 9]}, nodes)
    assert base.to_stored() == {"without": ["page_starts"], "shared": ["A long heading"]}
    assert base.difference(nodes[1].metadata, nodes[1]) == {"more": {"section_path": None, "page_label": "1"}, "refs": {"section_path": 0}}


@given(st.one_of(st.uuids().map(str), st.text(max_size=40), st.uuids().map(lambda value: str(value).upper())))
def test_ids_and_plain_relations_come_back(node_id: str) -> None:
    if not node_id.startswith("="):
        assert unpack_id(pack_id(node_id)) == node_id
    relation = {"node_id": node_id, "node_type": "1", "metadata": {}, "hash": None}
    base = MetadataBase()
    assert full_relation(short_relation("2", relation, [], base, TextNode(text="x")), [], base) == relation
