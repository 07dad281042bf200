"""Answers of an LLM that a program reads: parsed strictly, asked for once more with what was wrong, and refused after that."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index_advanced_rag.errors import LLMOutputError
from llama_index_advanced_rag.usage import apredict, predict

if TYPE_CHECKING:
    from llama_index.core.bridge.pydantic import BaseModel
    from llama_index.core.llms import LLM
    from llama_index.core.prompts import BasePromptTemplate

T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")
_STARTS_TRIED = 20
_PROBLEM_CHARS = 500


def ask_parsed(llm: "LLM", name: str, prompt: "BasePromptTemplate", variables: Mapping[str, Any], parse: Callable[[str], T], *, attempts: int = 2) -> T:
    """What `parse` makes of an LLM's answer. One call, and one more for each answer that cannot be used, `attempts` in all.

    Args:
        llm: the LLM.
        name: name of the prompt in `llama_index_advanced_rag.prompts`.
        prompt: template with the variables and `note_str`: empty, or what was wrong with the last answer.
        variables: what stands in the prompt, without `note_str`.
        parse: given the answer; raises `ValueError` with what is wrong, in a sentence that the LLM reads.
        attempts: most calls; at least 1.

    Raises:
        LLMOutputError: no answer could be used.
        Exception: what the LLM raised, as it was.

    Example:
        >>> from llama_index.core import PromptTemplate
        >>> from llama_index_advanced_rag.testing import ScriptedLLM
        >>> llm = ScriptedLLM(["four", "4"])
        >>> ask_parsed(llm, "sum", PromptTemplate("{sum_str} = ? {note_str}"), {"sum_str": "2 + 2"}, int)
        4
        >>> print(llm.prompts[1].strip())
        2 + 2 = ? Your last answer could not be used: invalid literal for int() with base 10: 'four' Answer again, with the JSON only.
    """
    dialogue = _dialogue(name, variables, parse, attempts)
    asked = next(dialogue)
    while True:
        answer = predict(llm, name, prompt, **asked)
        try:
            asked = dialogue.send(answer)
        except StopIteration as end:
            return end.value


async def aask_parsed(llm: "LLM", name: str, prompt: "BasePromptTemplate", variables: Mapping[str, Any], parse: Callable[[str], T], *, attempts: int = 2) -> T:
    """The async twin of `ask_parsed`."""
    dialogue = _dialogue(name, variables, parse, attempts)
    asked = next(dialogue)
    while True:
        answer = await apredict(llm, name, prompt, **asked)
        try:
            asked = dialogue.send(answer)
        except StopIteration as end:
            return end.value


def _dialogue(name: str, variables: Mapping[str, Any], parse: Callable[[str], T], attempts: int) -> Generator[dict[str, Any], str, T]:
    """Yields the variables of the next prompt, is sent the answer, and returns what was parsed."""
    answer, problem, note = "", "", ""
    for _ in range(attempts):
        answer = yield {**variables, "note_str": note}
        try:
            return parse(answer)
        except ValueError as error:
            problem = f"{error!s:.{_PROBLEM_CHARS}}"
            note = f"Your last answer could not be used: {problem} Answer again, with the JSON only.\n"
    raise LLMOutputError(name, attempts, answer, problem)


def json_objects(answer: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in an answer, in order, whatever stands around them; objects inside objects are not told apart.

    At most 20 places that look like a beginning are tried.

    Example:
        >>> list(json_objects('Sure! {"a": 1} or {"b": [2]} {'))
        [{'a': 1}, {'b': [2]}]
    """
    decoder, place = json.JSONDecoder(), answer.find("{")
    for _ in range(_STARTS_TRIED):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(answer, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield value
        place = answer.find("{", end)


def validated(model: type[M], value: Any) -> M | str:
    """The value as the model, or a sentence that says where it does not fit and why.

    Example:
        >>> from llama_index.core.bridge.pydantic import BaseModel
        >>> class Point(BaseModel):
        ...     x: int
        >>> validated(Point, {"x": "4"})
        Point(x=4)
        >>> validated(Point, {"y": 4})
        'x: Field required.'
    """
    from llama_index.core.bridge.pydantic import ValidationError

    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}."
