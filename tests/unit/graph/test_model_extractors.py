"""The extractors around models: a real spaCy pipeline, a real transformers pipeline with random weights, and doubles with the documented output."""

import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llama_index_advanced_rag.errors import ConfigurationError, MissingExtraError
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.graph.model_extractors import GLiNERExtractor, SpacyExtractor, TransformersExtractor
from llama_index_advanced_rag.graph.span_extractor import SpanExtractor
from llama_index_advanced_rag.trace import capture_trace

TEXT = "Claude was created by Anthropic in San Francisco."


def surfaces(extractor: Extractor, *texts: str) -> list[list[tuple[str, str]]]:
    records = extractor.extract(texts)
    for text, record in zip(texts, records, strict=True):
        assert all(text[mention.start : mention.end] == mention.surface for mention in record.mentions)
    return [[(mention.surface, mention.kind) for mention in record.mentions] for record in records]


class FakeGLiNER:
    """Finds each capitalised word, and reads `max_len` words as the real one does: what is beyond them is dropped."""

    def __init__(self, max_len: int = 384, refuses: str = "\0") -> None:
        self.config = SimpleNamespace(max_len=max_len, model_name="fake-backbone")
        self.refuses = refuses
        self.calls: list[list[str]] = []

    def inference(self, texts: list[str], labels: list[str], *, threshold: float, batch_size: int) -> list[list[dict[str, Any]]]:
        self.calls.append(texts)
        if any(self.refuses in text for text in texts):
            raise RuntimeError("CUDA out of memory")
        return [self._entities(text, labels) for text in texts]

    def _entities(self, text: str, labels: list[str]) -> list[dict[str, Any]]:
        words = list(re.finditer(r"\w+(?:[-_]\w+)*|\S", text))
        read = text[: words[self.config.max_len - 1].end()] if len(words) > self.config.max_len else text
        return [
            {"start": match.start(), "end": match.end(), "text": match.group(), "label": labels[0], "score": 0.9} for match in re.finditer(r"[A-Z]\w+", read)
        ]


class OldGLiNER(FakeGLiNER):
    inference = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "inference":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def batch_predict_entities(self, texts: list[str], labels: list[str], *, threshold: float) -> list[list[dict[str, Any]]]:
        return [self._entities(text, labels) for text in texts]


class FakePipeline:
    """A token-classification pipeline: one list for each text, of the items given for it."""

    def __init__(self, items: list[dict[str, Any]], strategy: Any = None) -> None:
        self.items = items
        self.model = SimpleNamespace(name_or_path="fake/ner", config=SimpleNamespace(max_position_embeddings=512))
        self.tokenizer = SimpleNamespace(model_max_length=512, is_fast=False)
        self._postprocess_params = {} if strategy is None else {"aggregation_strategy": strategy}
        self.options: dict[str, Any] = {}

    def __call__(self, texts: list[str], **options: Any) -> list[list[dict[str, Any]]]:
        self.options = options
        return [self.items for _ in texts]


def test_gliner_labels_are_kinds():
    extractor = GLiNERExtractor(FakeGLiNER(), ["company", "person"], 0.4)
    assert isinstance(extractor, Extractor)
    assert extractor.identity == "GLiNERExtractor:fake-backbone:company,person:0.4"
    assert surfaces(extractor, TEXT, "", "none")[0] == [("Claude", "company"), ("Anthropic", "company"), ("San", "company"), ("Francisco", "company")]
    assert surfaces(GLiNERExtractor(OldGLiNER(), ["company"]), TEXT)[0][0] == ("Claude", "company")


def test_a_long_text_is_read_whole_in_windows_that_fit():
    text = " ".join(f"word and Name{position} again" for position in range(300))
    model = FakeGLiNER(max_len=50)
    found = surfaces(GLiNERExtractor(model, ["person"], batch_size=4), text)[0]
    assert [surface for surface, _ in found] == [f"Name{position}" for position in range(300)]
    assert all(len(call) <= 4 for call in model.calls)


def test_texts_are_read_in_batches():
    model = FakeGLiNER()
    surfaces(GLiNERExtractor(model, ["person"], batch_size=3), *[TEXT] * 7)
    assert [len(call) for call in model.calls] == [3, 3, 1]


def test_a_text_that_the_model_fails_on_has_the_spans_of_rules():
    bad = f"{TEXT} boom"
    extractor = GLiNERExtractor(FakeGLiNER(refuses="boom"), ["company"])
    with capture_trace() as trace:
        records = extractor.extract([TEXT, bad, TEXT])
    assert records[1] == SpanExtractor().extract([bad])[0]
    assert records[0] == records[2] == extractor.extract([TEXT])[0]
    assert len(trace.notes) == 1
    assert trace.notes[0].level == "warning"
    assert "could not read 1 of 3 texts" in trace.notes[0].message
    assert "RuntimeError: CUDA out of memory" in trace.notes[0].message


def test_a_tokenizer_that_fails_is_a_failure_of_that_text_only():
    pipeline = FakePipeline([])
    pipeline.tokenizer = SimpleNamespace(model_max_length=20, is_fast=True)
    with capture_trace() as trace:
        records = TransformersExtractor(pipeline).extract([TEXT, "short"])
    assert records == SpanExtractor().extract([TEXT, "short"])
    assert "1 of 2" in trace.notes[0].message


def test_a_transformers_pipeline_gives_groups_as_kinds_and_whole_words():
    items = [
        {"entity_group": "MISC", "score": 0.9, "word": "Clau", "start": 0, "end": 4},
        {"entity_group": "ORG", "score": 0.9, "word": "##thropic", "start": 24, "end": 31},
        {"entity_group": "LOC", "score": 0.8, "word": " San Francisco", "start": 34, "end": 48},
    ]
    extractor = TransformersExtractor(FakePipeline(items))
    assert extractor.identity == "TransformersExtractor:fake/ner"
    assert surfaces(extractor, TEXT) == [[("Claude", "MISC"), ("Anthropic", "ORG"), ("San Francisco", "LOC")]]


def test_a_slow_tokenizer_gives_words_without_places():
    items = [{"entity_group": "LOC", "score": 0.8, "word": word, "start": None, "end": None} for word in ("San Francisco", "Atlantis")]
    assert surfaces(TransformersExtractor(FakePipeline(items)), TEXT) == [[("San Francisco", "LOC")]]


def test_words_of_scripts_without_spaces_are_not_completed():
    items = [{"entity_group": "ORG", "score": 0.8, "word": "ソニー", "start": 3, "end": 6}]
    assert surfaces(TransformersExtractor(FakePipeline(items)), "昨日、ソニーは東京で") == [[("ソニー", "ORG")]]


def test_aggregation_is_asked_for_only_where_none_was_chosen():
    chosen, unset = FakePipeline([], SimpleNamespace(value="first")), FakePipeline([], SimpleNamespace(value="none"))
    for pipeline in (chosen, unset):
        TransformersExtractor(pipeline).extract([TEXT])
    assert "aggregation_strategy" not in chosen.options
    assert unset.options["aggregation_strategy"] == "simple"


@pytest.fixture(scope="module")
def random_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    import torch

    folder = tmp_path_factory.mktemp("tokenizer")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "claude", "was", "created", "by", "an", "##thro", "##pic", "in", "san", "francisco", "."]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(vocab={word: place for place, word in enumerate(words)}, do_lower_case=True, model_max_length=32)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=32, num_labels=3
    )
    config.id2label = {0: "O", 1: "B-ORG", 2: "B-LOC"}
    model = transformers.BertForTokenClassification(config)
    torch.nn.init.normal_(model.classifier.weight, std=2.0)
    return transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple")


def test_a_real_pipeline_reads_long_texts_whole(random_pipeline: Any):
    extractor = TransformersExtractor(random_pipeline)
    once = extractor.extract([TEXT])[0].mentions
    assert once
    assert {mention.kind for mention in once} <= {"ORG", "LOC"}
    long = " ".join([TEXT] * 40)
    mentions = extractor.extract([long])[0].mentions
    assert all(long[mention.start : mention.end] == mention.surface for mention in mentions)
    assert mentions[-1].end > len(long) - len(TEXT), "the end of a long text is read"


@pytest.fixture
def nlp() -> Any:
    spacy = pytest.importorskip("spacy", reason="spaCy (extra `ner`) is not installed")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ORG", "pattern": "Anthropic"}, {"label": "GPE", "pattern": [{"LOWER": "san"}, {"LOWER": "francisco"}]}])
    return pipeline


def test_a_spacy_pipeline_gives_its_entities(nlp: Any):
    extractor = SpacyExtractor(nlp)
    assert extractor.identity == "SpacyExtractor:en_pipeline"
    assert surfaces(extractor, TEXT, "", "none of them") == [[("Anthropic", "ORG"), ("San Francisco", "GPE")], [], []]


def test_a_text_beyond_what_spacy_reads_is_cut(nlp: Any):
    nlp.max_length = 700
    text = " ".join([TEXT] * 100)
    assert surfaces(SpacyExtractor(nlp), text) == [[("Anthropic", "ORG"), ("San Francisco", "GPE")] * 100]


def test_a_spacy_pipeline_that_is_not_there_is_named(nlp: Any):
    with pytest.raises(ConfigurationError, match=r"'no_such_pipeline' could not be loaded.*spacy download no_such_pipeline"):
        SpacyExtractor("no_such_pipeline").extract([TEXT])


def test_a_spacy_pipeline_is_loaded_by_the_name_of_its_folder(nlp: Any, tmp_path: Path):
    nlp.to_disk(tmp_path / "saved")
    extractor = SpacyExtractor(str(tmp_path / "saved"))
    assert surfaces(extractor, TEXT)[0][0] == ("Anthropic", "ORG")


@pytest.mark.parametrize(
    ("extractor", "module"),
    [(SpacyExtractor("en_core_web_sm"), "spacy"), (GLiNERExtractor("urchade/gliner_small-v2.1", ["person"]), "gliner")],
)
def test_a_missing_library_is_named_with_its_extra(extractor: Extractor, module: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs the package '{module}'.*llama-index-advanced-rag\[ner\]"):
        extractor.extract([TEXT])


def test_a_model_of_transformers_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"token-classification model .* could not be loaded"):
        TransformersExtractor(str(tmp_path / "nothing")).extract([TEXT])


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigurationError, match="labels is 'person'"):
        GLiNERExtractor("model", "person")
    with pytest.raises(ConfigurationError, match=r"labels is \[\]"):
        GLiNERExtractor("model", [])
    with pytest.raises(ConfigurationError, match="threshold is 2"):
        GLiNERExtractor("model", ["person"], 2)
    with pytest.raises(ConfigurationError, match="batch_size is 0"):
        SpacyExtractor("model", batch_size=0)


def test_a_copy_loads_for_itself():
    copy = pickle.loads(pickle.dumps(GLiNERExtractor("urchade/gliner_small-v2.1", ["person"])))
    assert copy.identity == "GLiNERExtractor:urchade/gliner_small-v2.1:person:0.5"
