"""The embedding router: the route whose examples the question is most like."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.embeddings.async_calls import aembed_query
from llama_index_advanced_rag.embeddings.requests import checked
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError
from llama_index_advanced_rag.routing.default_examples import DEFAULT_EXAMPLES
from llama_index_advanced_rag.routing.embedded_texts import EmbeddedTexts
from llama_index_advanced_rag.routing.nearest_examples import Centred, clear_routes, likeness, route_shares
from llama_index_advanced_rag.routing.route import Route
from llama_index_advanced_rag.routing.router import RouteChoice, Router
from llama_index_advanced_rag.text.both_ends import both_ends

_QUESTION_CHARS, _SHOWN_CHARS = 2000, 80


class EmbeddingRouter(Router):
    """Chooses the routes whose examples are most like the question. No LLM call.

    The examples of a route are its own, else those of `examples`, else (for the five known routes) 40 of this package in English and
    French, else its description, else its name; routes are compared fairly where each has about as many. Each text is embedded once, at
    the first question that needs it, the question once. A question of more than 2,000 characters is embedded by its two ends. The scores
    are shares, 0 to 1 and together 1, higher is better.

    The model must know the languages of the questions: the packaged MiniLM knows English, the multilingual E5 French and others too. Asked
    for one of the five known routes in any case, E5 found that of 68 % of the 170 held-out questions of `tests/data/routing.jsonl`, MiniLM that of
    64 % of the English ones; on the half that the examples were tuned on it was 80 % and 77 %. Examples of your own questions are worth more.

    Args:
        embed_model: embeds examples and questions. An embedding that a question brings is used instead, and must be of the same model.
        examples: questions by the name of their route, for routes that bring none.
        threshold: least share of the best route; below, it is in doubt. 0 to 1.
        margin: least distance between the best route and the best that is not chosen; below, it is in doubt. 0 to 1.
        several_within: routes whose share is at most this much below the best are chosen too, where `max_routes` allows several. 0 to 1.
        max_routes: most routes that are chosen.

    Raises:
        ConfigurationError: an argument cannot work.

    Example:
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> routes = [Route("sql", examples=("how many orders came in",)), Route("text", examples=("why was it late",))]
        >>> EmbeddingRouter(DeterministicEmbedding()).choose(QueryBundle("how many orders were late"), routes)
        RouteChoice(names=('sql',), reason="it is most like 'how many orders came in'", scores={'sql': 1.0, 'text': 0.0})

    Source: nearest examples as in the routing layers that are in use (semantic-router); here seen from the middle of all examples, so
    that no number depends on the model.
    """

    name: ClassVar[str] = "embedding"

    def __init__(
        self,
        embed_model: BaseEmbedding,
        *,
        examples: Mapping[str, Sequence[str]] | None = None,
        threshold: float = 0.3,
        margin: float = 0.05,
        several_within: float = 0.15,
        max_routes: int = 1,
    ) -> None:
        self._embed_model, self._embedded = embed_model, EmbeddedTexts(embed_model)
        self._last: tuple[Sequence[Sequence[str]], Centred | None] = ((), None)
        self._examples = _checked_examples(examples or {})
        self._threshold, self._margin = _share("threshold", threshold), _share("margin", margin)
        self._max_routes = whole_number("max_routes", max_routes)
        self._several_within = _share("several_within", several_within) if self._max_routes > 1 else 0.0

    def choose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The routes whose examples are most like the question.

        Raises:
            EmbeddingMismatchError: the question brings an embedding of another length.
            ConfigurationError: the model gave no usable vectors.
            Exception: what the model raised.
        """
        texts = self._texts(routes)
        examples = self._centred(texts) or self._kept(texts, self._embedded.vectors(_flat(texts)))
        vector = query.embedding if query.embedding is not None else self._embed_model.get_agg_embedding_from_queries(_asked(query))
        return self._choice(vector, examples, texts, routes)

    async def achoose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The async twin of `choose`."""
        texts = self._texts(routes)
        examples = self._centred(texts) or self._kept(texts, await self._embedded.avectors(_flat(texts)))
        vector = query.embedding if query.embedding is not None else await aembed_query(self._embed_model, _asked(query))
        return self._choice(vector, examples, texts, routes)

    def _texts(self, routes: Sequence[Route]) -> list[Sequence[str]]:
        """The texts that stand for each route."""
        return [route.examples or self._examples.get(route.name) or DEFAULT_EXAMPLES.get(route.name) or (route.description or route.name,) for route in routes]

    def _centred(self, texts: Sequence[Sequence[str]]) -> Centred | None:
        """What was made of these texts for the question before, None where it had other routes."""
        last_texts, last = self._last
        return last if last_texts == texts else None

    def _kept(self, texts: Sequence[Sequence[str]], vectors: npt.NDArray[Any]) -> Centred:
        examples = Centred.of(vectors)
        self._last = texts, examples
        return examples

    def _choice(self, vector: Sequence[float], examples: Centred, texts: Sequence[Sequence[str]], routes: Sequence[Route]) -> RouteChoice:
        like = likeness(_usable(vector, len(examples.middle)), examples)
        shares = route_shares(like, [len(own) for own in texts]).tolist()
        scores = {route.name: round(share, 4) for route, share in zip(routes, shares, strict=True)}
        limits = {"margin": self._margin, "several_within": self._several_within}
        chosen = clear_routes(shares, threshold=self._threshold, max_routes=self._max_routes, **limits)
        if not chosen:
            best = sorted(scores, key=lambda name: -scores[name])[:2]
            return RouteChoice((), "no route stands out, " + ", ".join(f"{name!r} has {scores[name]:.2f}" for name in best), scores)
        return RouteChoice(tuple(routes[place].name for place in chosen), _nearest(like, texts, chosen[0]), scores)


def _flat(texts: Sequence[Sequence[str]]) -> list[str]:
    return [text for own in texts for text in own]


def _nearest(like: npt.NDArray[Any], texts: Sequence[Sequence[str]], place: int) -> str:
    """Which example of a route the question is most like."""
    start = sum(map(len, texts[:place]))
    return f"it is most like {texts[place][int(np.argmax(like[start : start + len(texts[place])]))][:_SHOWN_CHARS]!r}"


def _asked(query: QueryBundle) -> list[str]:
    return [both_ends(query.query_str, _QUESTION_CHARS)]


def _usable(vector: Sequence[float], dimensions: int) -> npt.NDArray[Any]:
    answer = checked([np.asarray(vector, dtype=np.float32)], 1)
    if isinstance(answer, Exception):
        raise answer
    if answer[0].shape != (dimensions,):
        raise EmbeddingMismatchError(
            f"The question has an embedding of {len(answer[0])} numbers, the examples of the routes have {dimensions}. "
            "They must come from one model: make the router with the model that embeds the questions."
        )
    return answer[0]


def _checked_examples(examples: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for name, own in examples.items():
        if isinstance(own, str) or not own or not all(isinstance(text, str) and text.strip() for text in own):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"The examples of route {name!r} are {own!r:.200}. They must be a list of at least one question, none of them empty.")
    return {name: tuple(own) for name, own in examples.items()}


def _share(argument: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ConfigurationError(f"{argument} is {value!r}. It must be a number from 0 to 1.")
    return float(value)
