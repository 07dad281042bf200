"""The embedding router: likeness to examples, doubt, and what is embedded when."""

import asyncio
import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError
from llama_index_advanced_rag.routing import embedded_texts
from llama_index_advanced_rag.routing.default_examples import DEFAULT_EXAMPLES
from llama_index_advanced_rag.routing.embedded_texts import EmbeddedTexts
from llama_index_advanced_rag.routing.embedding import EmbeddingRouter
from llama_index_advanced_rag.routing.nearest_examples import Centred, clear_routes, likeness, route_shares
from llama_index_advanced_rag.routing.route import KNOWN_ROUTES, Route, known_route
from llama_index_advanced_rag.testing import DeterministicEmbedding, RendezvousEmbedding

ROUTES = [
    Route("sql", examples=("how many orders came in", "sum of all orders", "number of customers last year")),
    Route("text", examples=("why was the parcel late", "reason of the delay", "what made the customer angry")),
]
EXAMPLES = [text for route in ROUTES for text in route.examples]


def choose(question: str, routes=ROUTES, *, model=None, embedding=None, **options):
    return EmbeddingRouter(model or DeterministicEmbedding(), **options).choose(QueryBundle(question, embedding=embedding), routes)


def test_the_route_of_the_nearest_examples_is_chosen():
    choice = choose("how many orders came in yesterday")
    assert choice.names == ("sql",)
    assert choice.reason == "it is most like 'how many orders came in'"
    assert list(choice.scores) == ["sql", "text"]
    assert all(type(score) is float for score in choice.scores.values())
    assert sum(choice.scores.values()) == pytest.approx(1.0, abs=1e-3)
    assert choose("reason why the parcel was late").names == ("text",)


def test_each_text_is_embedded_once_and_the_question_once():
    model = DeterministicEmbedding()
    router = EmbeddingRouter(model)
    for question in ("how many orders", "why late", "how many orders"):
        router.choose(QueryBundle(question), ROUTES)
    assert model.texts == [*EXAMPLES, "how many orders", "why late", "how many orders"]
    router.choose(QueryBundle("why late"), [*ROUTES, Route("web", examples=("reason of the delay", "the news of today"))])
    assert model.texts[len(EXAMPLES) + 3 :] == ["the news of today", "why late"]


async def test_async_is_as_sync_and_embeds_once():
    model = DeterministicEmbedding()
    router = EmbeddingRouter(model)
    found = [await router.achoose(QueryBundle(question), ROUTES) for question in ("how many orders", "why late")]
    assert found == [choose("how many orders"), choose("why late")]
    assert model.texts == [*EXAMPLES, "how many orders", "why late"]


async def test_tasks_at_once_embed_the_examples_once_and_their_questions_together():
    model = RendezvousEmbedding(3)
    router = EmbeddingRouter(model)
    questions = ["how many orders", "why late", "sum of all orders"]
    found = await asyncio.gather(*(router.achoose(QueryBundle(question), ROUTES) for question in questions))
    assert [choice.names for choice in found] == [("sql",), ("text",), ("sql",)]
    assert sorted(model.texts) == sorted([*EXAMPLES, *questions])


def test_threads_at_once_embed_the_examples_once():
    model = RendezvousEmbedding(4)
    router, found = EmbeddingRouter(model), []
    threads = [threading.Thread(target=lambda: found.append(router.choose(QueryBundle("why late"), ROUTES).names)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [("text",)] * 4
    assert sorted(model.texts) == sorted([*EXAMPLES, *["why late"] * 4])


async def test_a_task_that_is_cancelled_leaves_the_others_alone():
    router = EmbeddingRouter(DeterministicEmbedding(delay_s=0.01))
    first = asyncio.create_task(router.achoose(QueryBundle("why late"), ROUTES))
    second = asyncio.create_task(router.achoose(QueryBundle("why late"), ROUTES))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).names == ("text",)


async def test_a_model_that_fails_is_asked_again():
    model = DeterministicEmbedding(fail_on="parcel")
    router = EmbeddingRouter(model)
    with pytest.raises(ConnectionError, match="down"):
        router.choose(QueryBundle("why late"), ROUTES)
    with pytest.raises(ConnectionError, match="down"):
        await router.achoose(QueryBundle("why late"), ROUTES)
    model.fail_on = None
    assert router.choose(QueryBundle("why late"), ROUTES).names == ("text",)


def test_the_embedding_of_the_question_is_used():
    model = DeterministicEmbedding()
    vector = model.get_query_embedding("why late")
    before = len(model.texts)
    assert choose("how many orders", model=model, embedding=vector).names == ("text",)
    assert model.texts[before:] == EXAMPLES
    with pytest.raises(EmbeddingMismatchError, match=r"of 3 numbers, .* have 64"):
        choose("why", embedding=[1.0, 0.0, 0.0])


@pytest.mark.parametrize("vector", [[0.0] * 64, [float("nan")] * 64, [float("inf")] * 64])
def test_an_embedding_without_direction_is_refused(vector):
    with pytest.raises(ConfigurationError, match="embedding model gave"):
        choose("why", embedding=vector)


def test_a_model_that_gives_zeros_is_refused():
    class Zeros(DeterministicEmbedding):
        def _get_text_embedding(self, text):
            return [0.0] * 64

    with pytest.raises(ConfigurationError, match="vector of zeros"):
        choose("why", model=Zeros())


def test_a_question_like_no_route_more_than_another_is_in_doubt():
    routes = [Route("one", examples=("same words",)), Route("two", examples=("same words",))]
    choice = choose("anything", routes)
    assert choice.names == ()
    assert choice.scores == {"one": 0.5, "two": 0.5}
    assert choice.reason == "no route stands out, 'one' has 0.50, 'two' has 0.50"
    assert choose("anything", routes, margin=0.0).names == ("one",)


def test_a_threshold_makes_doubt():
    assert choose("how many orders", threshold=1.0).names == ()


def test_several_routes_where_they_are_close():
    routes = [Route("one", examples=("red fox",)), Route("two", examples=("red fox",)), Route("three", examples=("blue whale",))]
    assert choose("red fox", routes).names == ()
    assert choose("red fox", routes, max_routes=2).names == ("one", "two")
    assert choose("blue whale", routes, max_routes=2).names == ("three",)


def test_the_known_routes_have_examples_and_others_their_descriptions():
    model = DeterministicEmbedding()
    choose("x", [known_route("none"), Route("web", "What is new."), Route("bare"), Route("simple", examples=("own",))], model=model)
    assert model.texts == [*DEFAULT_EXAMPLES["none"], "What is new.", "bare", "own", "x"]


def test_examples_by_name_are_for_routes_that_bring_none():
    model = DeterministicEmbedding()
    choose(
        "x", [Route("none"), Route("web", examples=("own",)), Route("sql", "Counts.")], model=model, examples={"none": ["hi"], "web": ["no"], "sql": ["sum"]}
    )
    assert model.texts == ["hi", "own", "sum", "x"]


def test_a_long_question_is_embedded_by_its_two_ends():
    model = DeterministicEmbedding()
    choose("how many orders " + "la " * 10_000 + "came in?", model=model)
    assert len(model.texts[-1]) < 2100
    assert model.texts[-1].startswith("how many orders")
    assert model.texts[-1].endswith("came in?")


def test_one_route_is_chosen():
    assert choose("whatever", ROUTES[:1]).names == ("sql",)


def test_the_question_is_only_read():
    query = QueryBundle("why late")
    EmbeddingRouter(DeterministicEmbedding()).choose(query, ROUTES)
    assert query.embedding is None
    assert query.custom_embedding_strs is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda router: pickle.loads(pickle.dumps(router))])
async def test_a_copy_works_for_itself(copied):
    router = EmbeddingRouter(DeterministicEmbedding())
    expected = await router.achoose(QueryBundle("why late"), ROUTES)
    other = copied(router)
    assert await other.achoose(QueryBundle("why late"), ROUTES) == expected
    assert other.choose(QueryBundle("why late"), ROUTES) == expected


def test_what_is_kept_has_a_bound(monkeypatch):
    monkeypatch.setattr(embedded_texts, "_MOST_TEXTS", 5)
    model = DeterministicEmbedding()
    texts = EmbeddedTexts(model)
    for start in range(0, 40, 4):
        assert texts.vectors([str(number) for number in range(start, start + 4)]).shape == (4, 64)
        assert len(texts._kept) <= 5
    assert texts.vectors([str(number) for number in range(9)]).shape == (9, 64)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"margin": -0.1}, "margin is -0.1"),
        ({"margin": "0"}, "margin is '0'"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"several_within": True, "max_routes": 2}, "several_within is True"),
        ({"max_routes": 0}, "max_routes is 0"),
        ({"examples": {"sql": "how many"}}, "examples of route 'sql'"),
        ({"examples": {"sql": []}}, "examples of route 'sql'"),
        ({"examples": {"sql": [" "]}}, "examples of route 'sql'"),
    ],
)
def test_what_cannot_work_is_refused(options, told):
    with pytest.raises(ConfigurationError, match=told):
        EmbeddingRouter(DeterministicEmbedding(), **options)


def test_the_default_examples_are_balanced_and_distinct():
    assert set(DEFAULT_EXAMPLES) == set(KNOWN_ROUTES)
    assert {len(own) for own in DEFAULT_EXAMPLES.values()} == {40}
    everything = [text.casefold() for own in DEFAULT_EXAMPLES.values() for text in own]
    assert len(set(everything)) == 200


vectors = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.floats(-10, 10))


@given(vectors, hnp.arrays(np.float64, 4, elements=st.floats(-10, 10)))
def test_likeness_is_a_cosine_and_never_fails(examples, question):
    like = likeness(question, Centred.of(examples))
    assert like.shape == (len(examples),)
    assert np.isfinite(like).all()
    assert (np.abs(like) <= 1 + 1e-6).all()


def test_likeness_does_not_depend_on_what_all_texts_share():
    rng = np.random.default_rng(0)
    plain = rng.standard_normal((9, 16))
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    narrow = plain[:8] * 0.3 + 5 * np.eye(16)[0]
    raw = likeness(plain[8], Centred.of(plain[:8]))
    shared = likeness(plain[8] * 0.3 + 5 * np.eye(16)[0], Centred.of(narrow))
    assert np.corrcoef(raw, shared)[0, 1] > 0.95
    assert shared.std() == pytest.approx(raw.std(), rel=0.3)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=1, max_size=5), min_size=1, max_size=5))
def test_shares_are_shares(parts):
    shares = route_shares(np.array([value for part in parts for value in part]), [len(part) for part in parts])
    assert shares.shape == (len(parts),)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 4))
def test_clear_routes_are_ranked_and_clear(shares, threshold, margin, several_within, max_routes):
    taken = clear_routes(shares, threshold=threshold, margin=margin, several_within=several_within, max_routes=max_routes)
    assert len(set(taken)) == len(taken) <= max_routes
    if taken:
        assert shares[taken[0]] == max(shares) >= threshold
        assert [shares[place] for place in taken] == sorted((shares[place] for place in taken), reverse=True)
        others = [share for place, share in enumerate(shares) if place not in taken]
        assert all(max(shares) - share >= margin for share in others)
