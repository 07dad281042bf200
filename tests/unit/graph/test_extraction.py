"""Choosing an extractor, finding it again, and reading nodes with it."""

from collections.abc import Sequence

import pytest
from llama_index.core.schema import ImageNode, TextNode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph import extraction
from llama_index_advanced_rag.graph.extraction import read_records, resolve_extractor, stored_extractor
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention


class FirstWords:
    """Finds the first word of each text."""

    def __init__(self, identity: str = "first-words") -> None:
        self.identity, self.asked = identity, list[list[str]]()

    def extract(self, texts: Sequence[str]) -> list[ExtractionRecord]:
        self.asked.append(list(texts))
        return [
            ExtractionRecord((Mention(text.split()[0], "name", text.index(text.split()[0]), text.index(text.split()[0]) + len(text.split()[0])),))
            for text in texts
        ]


def test_choices() -> None:
    own = FirstWords()
    assert resolve_extractor(None, language="en") is None
    assert resolve_extractor(own, language="en") is own
    spans = resolve_extractor("spans", language="fr")
    assert isinstance(spans, Extractor)
    assert spans.identity.startswith("spans-")
    for wrong in ("gliner", 7, object(), FirstWords):
        with pytest.raises(ConfigurationError, match="extractor is .*must be 'spans', None, or an object"):
            resolve_extractor(wrong, language="en")  # type: ignore[arg-type]


def test_ours_is_found_again_in_the_language_it_was_made_for() -> None:
    spans = resolve_extractor("spans", language="fr")
    assert spans is not None
    for given in (None, "spans", spans):
        found = stored_extractor(spans.identity, given)
        assert found is not None
        assert found.identity == spans.identity
    assert stored_extractor(None, None) is None


def test_anothers_must_be_passed_and_be_the_same() -> None:
    own = FirstWords()
    assert stored_extractor("first-words", own) is own
    with pytest.raises(ConfigurationError, match="read by the extractor 'first-words'.*pass the same one"):
        stored_extractor("first-words", None)
    with pytest.raises(ConfigurationError, match="built with the extractor 'other', and 'first-words' would read other.*pass the one it was built with"):
        stored_extractor("other", own)
    with pytest.raises(ConfigurationError, match="built without an extractor, and 'first-words'.*leave extractor out"):
        stored_extractor(None, own)
    with pytest.raises(ConfigurationError, match="built with the extractor 'first-words', and 'spans-"):
        stored_extractor("first-words", "spans")
    with pytest.raises(ConfigurationError, match="built with the extractor 'spans-0:en', and 'spans-"):  # of an older release
        stored_extractor("spans-0:en", None)


def test_a_name_like_ours_is_not_ours() -> None:
    with pytest.raises(ConfigurationError, match=r"by the extractor 'spans-mine'. .*pass the same one"):
        stored_extractor("spans-mine", None)


def test_nodes_are_read_in_batches_and_those_without_text_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "_READ_AT_ONCE", 2)
    own = FirstWords()
    nodes = [TextNode(text=text, metadata={"title": "Big cats"}) for text in ("one a", " \n", "two b", "three c")]
    records = read_records(own, [*nodes, ImageNode(image="")])
    assert own.asked == [["one a", "two b"], ["three c"]], "without metadata"
    assert [[mention.surface for mention in record.mentions] for record in records] == [["one"], [], ["two"], ["three"], []]
    assert [record.names for record in records] == [("Big cats",), (), ("Big cats",), ("Big cats",), ()]


def test_a_record_for_each_text_is_expected() -> None:
    own = FirstWords()
    own.extract = lambda texts: []  # type: ignore[method-assign]
    with pytest.raises(ConfigurationError, match="'first-words' gave 0 records for 1 texts. Expected one for each"):
        read_records(own, [TextNode(text="one")])
