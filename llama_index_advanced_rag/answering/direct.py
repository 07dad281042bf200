"""An answer without documents, to a question that needs none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from llama_index_advanced_rag.answering.context import NumberedContext, escape_answer_tags
from llama_index_advanced_rag.answering.turn import Turn
from llama_index_advanced_rag.answering.wording import no_document, only_broken_off
from llama_index_advanced_rag.answering.writer import AnswerWriter
from llama_index_advanced_rag.prompts import DIRECT_ANSWER
from llama_index_advanced_rag.text.question_routes.talk import courtesy_language


@dataclass(frozen=True)
class DirectWriter(AnswerWriter):
    """Answers from what an LLM knows, in one call; without one, or when it fails, a sentence says that the question needs no document.

    Nothing is cited, marks like `[1]` are taken out. `prompt` is a template with `query_str`.
    """

    prompt_name: ClassVar[str] = DIRECT_ANSWER

    def _asks(self, turn: Turn) -> bool:
        return bool(turn.question)

    def _variables(self, turn: Turn) -> dict[str, str]:
        return {"query_str": escape_answer_tags(turn.question)}

    def _read(self, turn: Turn) -> None:
        turn.read(NumberedContext())

    def _without_llm(self, turn: Turn, similarities: Mapping[int, float] | None) -> list[str]:
        return [no_document(courtesy_language(turn.question) or turn.message_language)]

    def _after_break(self, instead: list[str], language: str) -> list[str]:
        return [f"\n\n{only_broken_off(language)}"]
