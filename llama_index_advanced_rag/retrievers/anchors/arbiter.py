"""The arbiter: one LLM call that sees the outline and the candidates and says which parts answer, with reasons."""

from dataclasses import dataclass
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index_advanced_rag.errors import LLMOutputError
from llama_index_advanced_rag.prompts import ANCHOR_ARBITER
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate
from llama_index_advanced_rag.retrievers.anchors.outline import MOST_ENTRIES, NumberedOutline
from llama_index_advanced_rag.structured_answers import aask_parsed, ask_parsed, json_objects, validated
from llama_index_advanced_rag.trace import report

Chosen = list[tuple[Candidate, str]]
_REASON_CHARS = 300
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
        try:
            verdict = ask_parsed(self.llm, ANCHOR_ARBITER, self.prompt, self._variables(question, outline), parse_verdict)
        except Exception as error:  # noqa: BLE001 - the scores still rank; the trace says what happened
            return _unheard(error)
        return _entries(verdict, outline, self.max_units)

    async def achoose(self, question: str, outline: NumberedOutline) -> Chosen:
        """The async twin of `choose`."""
        try:
            verdict = await aask_parsed(self.llm, ANCHOR_ARBITER, self.prompt, self._variables(question, outline), parse_verdict)
        except Exception as error:  # noqa: BLE001 - as in choose
            return _unheard(error)
        return _entries(verdict, outline, self.max_units)

    def _variables(self, question: str, outline: NumberedOutline) -> dict[str, Any]:
        return {
            "outline_str": outline.outline_text,
            "candidates_str": outline.candidates_text,
            "query_str": question,
            "max_units": self.max_units,
        }


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
    for value in json_objects(answer):
        found = validated(Verdict, value)
        if isinstance(found, Verdict):
            return found
        problem = found
    raise ValueError(problem)


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


def _unheard(error: Exception) -> Chosen:
    reason = str(error) if isinstance(error, LLMOutputError) else f"the LLM failed with {type(error).__name__}: {error}"
    report("warning", f"The candidates stand in the order of their scores, because the arbiter could not be heard: {reason}")
    return []
