"""Extractors around models that recognise names: spaCy, GLiNER, and token classification of transformers.

Each takes a loaded object, or a name that is loaded at first use, and reads texts in batches; what is longer than the model reads is cut into
overlapping windows. A text that the model fails on is reported, and has the mentions of `SpanExtractor` instead.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index_advanced_rag._optional import require
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.model_reading import Found, ModelExtractor
from llama_index_advanced_rag.graph.reading_windows import Place, windows_of, word_places
from llama_index_advanced_rag.text.span_rules.letters import LETTER

_EXTRA = "ner"
_GLINER_WORDS = 384
_TRANSFORMERS_TOKENS = 512
_SPECIAL_TOKENS = 8
_NO_LIMIT = 1_000_000
_SPACY_CHARS_A_WORD = 65
_LONGEST_PART = 40
_LETTERS = re.compile(rf"{LETTER}{{1,{_LONGEST_PART}}}")
_LAST_LETTERS = re.compile(rf"{LETTER}{{1,{_LONGEST_PART}}}\Z")


class SpacyExtractor(ModelExtractor):
    """The entities of a spaCy pipeline (`doc.ents`), its labels as kinds.

    Args:
        nlp: a loaded pipeline, or the name or folder of one.
        batch_size: texts that spaCy reads at once.

    Raises:
        ConfigurationError: `batch_size` is below 1.

    Example:
        >>> SpacyExtractor("en_core_web_sm").identity
        'SpacyExtractor:en_core_web_sm'
    """

    def __init__(self, nlp: Any, *, batch_size: int = 64) -> None:
        super().__init__(nlp, batch_size=batch_size)

    @property
    def identity(self) -> str:
        """The class and the pipeline: its name, or what a loaded one says of itself."""
        if isinstance(self._source, str):
            return f"{type(self).__name__}:{self._source}"
        return f"{type(self).__name__}:{self._source.meta['lang']}_{self._source.meta['name']}"

    def _load(self, name: str) -> Any:
        spacy = require("spacy", extra=_EXTRA, feature="Reading names with a spaCy pipeline")
        try:
            return spacy.load(name)
        except OSError as error:
            raise ConfigurationError(
                f"The spaCy pipeline {name!r} could not be loaded: {error} Install it (python -m spacy download {name}), or give the folder of a saved one "
                "or a loaded pipeline."
            ) from error

    def _windows(self, model: Any, text: str) -> list[Place]:
        limit: int = model.max_length
        if len(text) <= limit:
            return [(0, len(text))] if text.strip() else []
        return windows_of(text, word_places(text), size=max(1, limit // _SPACY_CHARS_A_WORD))

    def _read(self, model: Any, pieces: list[str]) -> list[list[Found]]:
        return [[(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents] for doc in model.pipe(pieces, batch_size=self._batch_size)]


class GLiNERExtractor(ModelExtractor):
    """The entities that a GLiNER model finds for labels of your choice, which become the kinds.

    Args:
        model: a loaded `gliner.GLiNER`, or the name or folder of one.
        labels: what to look for, in words: "person", "company", "law".
        threshold: least confidence of an entity, from 0 to 1.
        batch_size: windows that the model reads at once.

    Raises:
        ConfigurationError: no labels, one that is empty, a threshold outside 0 to 1, or `batch_size` below 1.

    Example:
        >>> GLiNERExtractor("urchade/gliner_small-v2.1", ["person", "company"]).identity
        'GLiNERExtractor:urchade/gliner_small-v2.1:person,company:0.5'
    """

    def __init__(self, model: Any, labels: Sequence[str], threshold: float = 0.5, *, batch_size: int = 8) -> None:
        super().__init__(model, batch_size=batch_size)
        if isinstance(labels, str) or not labels or not all(label.strip() for label in labels):
            raise ConfigurationError(f"labels is {labels!r}. Expected a list of what to look for, such as ['person', 'company'].")
        if not 0 <= threshold <= 1:
            raise ConfigurationError(f"threshold is {threshold!r}. It must lie between 0 and 1.")
        self._labels = list(labels)
        self._threshold = threshold

    @property
    def identity(self) -> str:
        """The class, the model, the labels and the threshold."""
        name = self._source if isinstance(self._source, str) else _name_of(self._source)
        return f"{type(self).__name__}:{name}:{','.join(self._labels)}:{self._threshold:g}"

    def _load(self, name: str) -> Any:
        gliner = require("gliner", extra=_EXTRA, feature="Reading names with a GLiNER model")
        try:
            return gliner.GLiNER.from_pretrained(name)
        except (OSError, ValueError) as error:
            raise _not_loaded("GLiNER model", name, error) from error

    def _windows(self, model: Any, text: str) -> list[Place]:
        # GLiNER drops what is beyond its limit, with a warning, and counts words and signs as `word_places` does.
        limit: int = getattr(getattr(model, "config", None), "max_len", None) or _GLINER_WORDS
        return windows_of(text, word_places(text), size=limit)

    def _read(self, model: Any, pieces: list[str]) -> list[list[Found]]:
        if hasattr(model, "inference"):
            found = model.inference(pieces, self._labels, threshold=self._threshold, batch_size=self._batch_size)
        else:
            found = model.batch_predict_entities(pieces, self._labels, threshold=self._threshold)
        return [[(entity["start"], entity["end"], entity["label"]) for entity in entities] for entities in found]


class TransformersExtractor(ModelExtractor):
    """The entities of a token-classification pipeline of transformers, its groups as kinds.

    Names are completed to whole words, as a model may label only a part of one. A pipeline without an aggregation strategy is asked for "simple".

    Args:
        pipeline: a loaded pipeline, or the name or folder of a model.
        batch_size: windows that the model reads at once.

    Raises:
        ConfigurationError: `batch_size` is below 1.

    Example:
        >>> TransformersExtractor("Jean-Baptiste/camembert-ner").identity
        'TransformersExtractor:Jean-Baptiste/camembert-ner'
    """

    def __init__(self, pipeline: Any, *, batch_size: int = 8) -> None:
        super().__init__(pipeline, batch_size=batch_size)

    @property
    def identity(self) -> str:
        """The class and the model."""
        name = self._source if isinstance(self._source, str) else _name_of(getattr(self._source, "model", self._source))
        return f"{type(self).__name__}:{name}"

    def _load(self, name: str) -> Any:
        transformers = require("transformers", extra=_EXTRA, feature="Reading names with a transformers pipeline")
        try:
            return transformers.pipeline("token-classification", model=name, aggregation_strategy="simple")
        except (OSError, ValueError) as error:
            raise _not_loaded("token-classification model", name, error) from error

    def _windows(self, model: Any, text: str) -> list[Place]:
        limit = max(1, _tokens_read(model) - _SPECIAL_TOKENS)
        return windows_of(text, _token_places(model.tokenizer, text) if len(text) > limit else [], size=limit)

    def _read(self, model: Any, pieces: list[str]) -> list[list[Found]]:
        chosen = getattr(model, "_postprocess_params", {}).get("aggregation_strategy")
        options = {"aggregation_strategy": "simple"} if getattr(chosen, "value", chosen) in (None, "none") else {}
        found = model(pieces, batch_size=self._batch_size, **options)
        return [list(_whole_words(piece, entities)) for piece, entities in zip(pieces, found, strict=True)]


def _name_of(model: Any) -> str:
    """What a loaded model says of where it comes from, or its class."""
    config = getattr(model, "config", None)
    places = (getattr(model, "name_or_path", None), getattr(config, "_name_or_path", None), getattr(config, "model_name", None))
    return next((place for place in places if isinstance(place, str) and place), type(model).__name__)


def _not_loaded(what: str, name: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"The {what} {name!r} could not be loaded: {error} Give the name of one that this machine can reach, the folder of a saved one, or a loaded one."
    )


def _tokens_read(pipeline: Any) -> int:
    """The tokens that a pipeline reads before it cuts: the least of what its tokenizer and its model say."""
    said = (pipeline.tokenizer.model_max_length, getattr(pipeline.model.config, "max_position_embeddings", None))
    limits = [limit for limit in said if isinstance(limit, int) and 0 < limit < _NO_LIMIT]
    return min(limits, default=_TRANSFORMERS_TOKENS)


def _token_places(tokenizer: Any, text: str) -> list[Place]:
    """Start and end of each token; of each character where the tokenizer does not say."""
    if not getattr(tokenizer, "is_fast", False):
        return [(position, position + 1) for position in range(len(text))]
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    return [(start, end) for start, end in encoded["offset_mapping"] if end > start]


def _whole_words(text: str, entities: Iterable[Mapping[str, Any]]) -> Iterable[Found]:
    position = 0
    for entity in entities:
        start, end = entity.get("start"), entity.get("end")
        if start is None or end is None:  # A slow tokenizer gives words without their places.
            word = entity["word"].strip()
            start = text.find(word, position)
            end = start + len(word)
            if start < 0:
                continue
        position = end
        yield _word_start(text, start), _word_end(text, end), entity["entity_group"]


def _word_start(text: str, start: int) -> int:
    begun = _LAST_LETTERS.search(text, max(0, start - _LONGEST_PART), start)
    return start if begun is None or not _LETTERS.match(text, start) else begun.start()


def _word_end(text: str, end: int) -> int:
    if not _LAST_LETTERS.search(text, max(0, end - 1), end):
        return end
    rest = _LETTERS.match(text, end)
    return end if rest is None else rest.end()
