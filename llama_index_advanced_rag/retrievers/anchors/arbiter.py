"""The arbiter: one LLM call that sees the outline and the candidates and says which parts answer, with reasons."""

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, ValidationError
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index_advanced_rag.errors import LLMOutputError
from llama_index_advanced_rag.prompts import ANCHOR_ARBITER
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate
from llama_index_advanced_rag.retrievers.anchors.outline import MOST_ENTRIES, NumberedOutline
from llama_index_advanced_rag.trace import report
from llama_index_advanced_rag.usage import apredict, predict

Chosen = list[tuple[Candidate, str]]
_Dialogue = Generator[dict[str, Any], str, Chosen]
_ATTEMPTS = 2
_REASON_CHARS = 300
_STARTS_TRIED = 20
_LEAST_ENTRIES, _FRAME_TOKENS, _ENTRY_TOKENS = 30, 1500, 20
_DEFAULT_OUTPUT_TOKENS = 256


class ChosenUnit(BaseModel):
    """A part that the arbiter names."""

    number: int
    reason: str | None = None


class Verdict(BaseModel):
    """What the arbiter answers: parts, best first."""

    units: list[ChosenUnit]


@dataclass(frozen=True)
class Arbiter:
    """Asks an LLM which parts of documents answer a question; holds no state of a question.

    One call; a second one, with the error, when the answer does not fit the schema. An LLM that fails, or fails the schema twice,
    has no say: a warning is reported and nothing is chosen.

    Attributes:
        llm: the LLM.
        prompt: template with `outline_str`, `candidates_str`, `query_str`, `max_units` and `note_str` (empty, or what was wrong with the last answer).
        max_units: most parts taken from an answer.
    """

    llm: LLM
    prompt: BasePromptTemplate
    max_units: int

    @property
    def most_entries(self) -> int:
        """How long an outline the LLM's window holds."""
        about = self.llm.metadata
        output = about.num_output if about.num_output > 0 else _DEFAULT_OUTPUT_TOKENS
        return max(_LEAST_ENTRIES, min(MOST_ENTRIES, (about.context_window - output - _FRAME_TOKENS) // _ENTRY_TOKENS))

    def choose(self, question: str, outline: NumberedOutline) -> Chosen:
        """The parts that the LLM names, best first, each once, with its reasons. One LLM call, or two."""
        dialogue = self._dialogue(question, outline)
        variables = next(dialogue)
        while True:
            try:
                answer = predict(self.llm, ANCHOR_ARBITER, self.prompt, **variables)
            except Exception as error:  # noqa: BLE001 - the scores still rank; the trace says what happened
                return _unheard(f"the LLM failed with {type(error).__name__}: {error}")
            try:
                variables = dialogue.send(answer)
            except StopIteration as end:
                return end.value

    async def achoose(self, question: str, outline: NumberedOutline) -> Chosen:
        """The async twin of `choose`."""
        dialogue = self._dialogue(question, outline)
        variables = next(dialogue)
        while True:
            try:
                answer = await apredict(self.llm, ANCHOR_ARBITER, self.prompt, **variables)
            except Exception as error:  # noqa: BLE001 - as in choose
                return _unheard(f"the LLM failed with {type(error).__name__}: {error}")
            try:
                variables = dialogue.send(answer)
            except StopIteration as end:
                return end.value

    def _dialogue(self, question: str, outline: NumberedOutline) -> _Dialogue:
        """Yields the variables of the next prompt, is sent the answer, and returns what was chosen."""
        variables = {
            "outline_str": outline.outline_text,
            "candidates_str": outline.candidates_text,
            "query_str": question,
            "max_units": self.max_units,
            "note_str": "",
        }
        answer, reason = "", ""
        for _ in range(_ATTEMPTS):
            answer = yield variables
            try:
                verdict = parse_verdict(answer)
            except ValueError as error:
                reason = str(error)
                variables = {**variables, "note_str": f"Your last answer could not be used: {reason} Answer again, with the JSON only.\n"}
            else:
                return _entries(verdict, outline, self.max_units)
        return _unheard(str(LLMOutputError(ANCHOR_ARBITER, _ATTEMPTS, answer, reason)))


def parse_verdict(answer: str) -> Verdict:
    """The verdict in an LLM's answer: the first JSON object that fits, whatever stands around it.

    Raises:
        ValueError: there is none; the message says what is wrong.

    Example:
        >>> parse_verdict('Sure: {"units": [{"number": 4, "reason": "It ends the contract."}]}').units[0].number
        4
        >>> parse_verdict('{"units": [{"name": "Termination"}]}')
        Traceback (most recent call last):
        ValueError: units.0.number: Field required.
    """
    problem = "It holds no JSON object."
    for value in _json_objects(answer):
        found = _validated(value)
        if isinstance(found, Verdict):
            return found
        problem = found
    raise ValueError(problem)


def _validated(value: Any) -> Verdict | str:
    """The verdict, or what is wrong with it."""
    try:
        return Verdict.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}."


def _json_objects(answer: str) -> Iterator[Any]:
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


def _entries(verdict: Verdict, outline: NumberedOutline, max_units: int) -> Chosen:
    """The entries that were named, those that do not exist reported and left out."""
    reasons: dict[int, str] = {}
    for unit in verdict.units:
        reasons.setdefault(unit.number, " ".join((unit.reason or "").split())[:_REASON_CHARS])
    unknown = [number for number in reasons if not 1 <= number <= len(outline.entries)]
    if unknown:
        report("warning", f"The arbiter named numbers {unknown[:10]!r}, which the outline of {len(outline.entries)} entries does not have. They were left out.")
    known = [(outline.entries[number - 1], reason) for number, reason in reasons.items() if number not in set(unknown)]
    if not known:
        report("info", "The arbiter named no part; the candidates stand in the order of their scores.")
    return known[:max_units]


def _unheard(reason: str) -> Chosen:
    report("warning", f"The candidates stand in the order of their scores, because the arbiter could not be heard: {reason}")
    return []
