"""What a document or a section is about, in a few sentences: written by an LLM if there is one, else the most central sentences."""

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index_advanced_rag import usage
from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import Outcome, arun_all, in_thread, run_all, with_progress
from llama_index_advanced_rag.completion_cache import CompletionCache, use_llm_cache
from llama_index_advanced_rag.hierarchy.summary.extracts import cut_to, extract
from llama_index_advanced_rag.prompts import SECTION_SUMMARY, SECTION_SUMMARY_PROMPT, escape_tags
from llama_index_advanced_rag.stores.llm_cache import LLMCache
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.text.sentences import sentence_spans
from llama_index_advanced_rag.trace import report

MAX_SUMMARY_TOKENS = 128
MAX_PROMPT_TOKENS = 2000
NUM_WORKERS = 4
FAILURES_IN_A_ROW = 3
_WORDS_PER_TOKEN = 0.7
_FENCE = re.compile(r"^\s*```\w*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary.

    Attributes:
        text: the summary, on one line.
        is_fallback: an LLM was to write it and did not, so these are sentences of the text.
    """

    text: str
    is_fallback: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
    """One text; `shown` is what the LLM sees of it, empty when it is not asked."""

    title: str
    text: str
    shown: str


class Summarizer:
    """Summaries of at most `max_tokens` tokens (LlamaIndex's global tokenizer), in the language of the text.

    Without an LLM: the most central sentences of the text as they stand (`ranking.central_sentences`), without rows of tables, headings and
    running heads; a text that is short enough is its own summary. The title is no part of it. No call.

    With an LLM: one counted call a text. Of a text above 2,000 tokens the LLM sees the most central sentences that fit into them, so that a
    book costs one call. Title and text stand between tags and are called data. When the LLM fails or answers nothing, the sentences are taken
    instead and a warning is reported; after three failures in a row the rest of the texts is not tried. A longer answer is cut after
    the last sentence that fits. Neither `Settings.llm` nor any other LLM is asked.

    Args:
        llm: writes the summaries; None = sentences of the text.
        max_tokens: most tokens of a summary.
        language: ISO code of the texts, or "auto".
        cache: keeps the answers of the LLM, by model, prompt, title, text and size; a text that was summarised before costs no call.
            A key-value store is used through `LLMCache`. None = the cache of `use_llm_cache`, if there is one.
        prompt: with the variables `title`, `context_str` and `max_words`; None = `prompts.SECTION_SUMMARY_PROMPT`.
        num_workers: calls side by side.

    Raises:
        ConfigurationError: a number is not a whole one of at least 1, or the language is unknown.

    Example:
        >>> text = "The red fox hunts at night. It is a small predator of the woods. In winter the red fox hunts hens at night."
        >>> Summarizer(max_tokens=12, language="en").summarize("Foxes", text)
        'The red fox hunts at night.'
        >>> from llama_index_advanced_rag.testing import ScriptedLLM
        >>> Summarizer(ScriptedLLM(["Foxes and how they hunt."])).summarize("Foxes", text)
        'Foxes and how they hunt.'
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        max_tokens: int = MAX_SUMMARY_TOKENS,
        language: str = "auto",
        cache: CompletionCache | BaseKVStore | None = None,
        prompt: BasePromptTemplate | None = None,
        num_workers: int = NUM_WORKERS,
    ) -> None:
        self._llm = llm
        self._max_tokens = whole_number("max_tokens", max_tokens)
        self._analyzer = TextAnalyzer(language)
        self._cache = LLMCache(cache) if isinstance(cache, BaseKVStore) else cache
        self._prompt = prompt or SECTION_SUMMARY_PROMPT
        self._num_workers = whole_number("num_workers", num_workers)

    @property
    def llm(self) -> LLM | None:
        """Who writes the summaries."""
        return self._llm

    @property
    def language(self) -> str:
        """The language of the texts."""
        return self._analyzer.language

    @property
    def identity(self) -> str:
        """What a summary depends on besides the text, as one line without secrets: two summarizers that differ in it may write differently."""
        llm = self._llm
        if llm is None:
            return f"extract|{self._max_tokens}|{self.language}"
        return f"{llm.class_name()}|{llm.metadata.model_name}|{self._max_tokens}|{self.language}|{self._prompt.get_template(llm=llm)}"

    def summarize(self, title: str, text: str) -> str:
        """The summary of one text; empty for a text without a visible character. At most one LLM call."""
        return self.write([(title, text)])[0].text

    async def asummarize(self, title: str, text: str) -> str:
        """The async twin of `summarize`."""
        return (await self.awrite([(title, text)]))[0].text

    def summarize_all(self, items: Sequence[tuple[str, str]], *, show_progress: bool = False) -> list[str]:
        """The summaries of several texts, in their order.

        Args:
            items: pairs of title and text.
            show_progress: draw a bar.
        """
        return [summary.text for summary in self.write(items, show_progress=show_progress)]

    async def asummarize_all(self, items: Sequence[tuple[str, str]], *, show_progress: bool = False) -> list[str]:
        """The async twin of `summarize_all`."""
        return [summary.text for summary in await self.awrite(items, show_progress=show_progress)]

    def write(self, items: Sequence[tuple[str, str]], *, show_progress: bool = False) -> list[Summary]:
        """As `summarize_all`; says also which summaries the LLM was to write and did not."""
        round_ = _Round(len(items))
        for batch in self._batches(items, show_progress):
            tasks = self._tasks(batch)
            asked = self._to_ask(tasks, round_)
            with self._caching():
                outcomes = run_all([partial(usage.predict, self._llm, SECTION_SUMMARY, self._prompt, **self._variables(task)) for task in asked])
            self._accept(tasks, asked, outcomes, round_)
        return round_.finished()

    async def awrite(self, items: Sequence[tuple[str, str]], *, show_progress: bool = False) -> list[Summary]:
        """The async twin of `write`: the LLM is awaited, everything else runs in a thread."""
        round_ = _Round(len(items))
        for batch in self._batches(items, show_progress):
            tasks = await in_thread(self._tasks, batch)
            asked = self._to_ask(tasks, round_)
            with self._caching():
                outcomes = await arun_all([partial(usage.apredict, self._llm, SECTION_SUMMARY, self._prompt, **self._variables(task)) for task in asked])
            await in_thread(self._accept, tasks, asked, outcomes, round_)
        return round_.finished()

    def _batches(self, items: Sequence[tuple[str, str]], show_progress: bool) -> Iterable[Sequence[tuple[str, str]]]:
        starts = range(0, len(items), self._num_workers)
        batches = (items[start : start + self._num_workers] for start in starts)
        return with_progress(batches, total=len(starts), description="Summarising", show_progress=show_progress)

    def _caching(self) -> AbstractContextManager[None]:
        return nullcontext() if self._cache is None else use_llm_cache(self._cache)

    def _extract(self, text: str, max_tokens: int) -> str:
        return extract(text, max_tokens=max_tokens, count_tokens=usage.count_tokens, analyzer=self._analyzer, language=self.language)

    def _tasks(self, items: Sequence[tuple[str, str]]) -> list[_Task]:
        return [_Task(title, text, self._shown(text)) for title, text in items]

    def _shown(self, text: str) -> str:
        if self._llm is None or not text.strip():
            return ""
        return text if usage.count_tokens(text) <= MAX_PROMPT_TOKENS else self._extract(text, MAX_PROMPT_TOKENS)

    def _to_ask(self, tasks: Sequence[_Task], round_: "_Round") -> list[_Task]:
        return [] if round_.given_up else [task for task in tasks if task.shown]

    def _variables(self, task: _Task) -> dict[str, Any]:
        words = max(1, int(self._max_tokens * _WORDS_PER_TOKEN))
        return {
            "title": escape_tags(" ".join(task.title.split()), "title", "text"),
            "context_str": escape_tags(task.shown, "title", "text"),
            "max_words": words,
        }

    def _accept(self, tasks: Sequence[_Task], asked: Sequence[_Task], outcomes: Sequence[Outcome[str]], round_: "_Round") -> None:
        answers = {id(task): outcome for task, outcome in zip(asked, outcomes, strict=True)}
        for task in tasks:
            outcome = answers.get(id(task))
            answer = "" if outcome is None or outcome.value is None else self._fitting(outcome.value)
            if outcome is not None:
                round_.note(None if answer else _reason(outcome))
            round_.add(Summary(answer) if answer else Summary(self._extract(task.text, self._max_tokens), is_fallback=bool(task.shown)))

    def _fitting(self, answer: str) -> str:
        fenced = _FENCE.match(answer)
        text = " ".join((fenced.group(1) if fenced else answer).split())
        if usage.count_tokens(text) <= self._max_tokens:
            return text
        ends = [end for _, end in sentence_spans(text, language=self.language) if usage.count_tokens(text[:end]) <= self._max_tokens]
        return text[: ends[-1]] if ends else cut_to(text, max_tokens=self._max_tokens, count_tokens=usage.count_tokens)

    def __repr__(self) -> str:
        return f"Summarizer({None if self._llm is None else self._llm.class_name()}, max_tokens={self._max_tokens}, language={self.language!r})"


class _Round:
    """The summaries of one call so far, and what went wrong."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._summaries: list[Summary] = []
        self._first_reason = ""
        self._in_a_row = 0

    @property
    def given_up(self) -> bool:
        """True after too many failures in a row."""
        return self._in_a_row >= FAILURES_IN_A_ROW

    def note(self, reason: str | None) -> None:
        """Record what an LLM call came to; None = a summary."""
        self._in_a_row = 0 if reason is None else self._in_a_row + 1
        self._first_reason = self._first_reason or reason or ""

    def add(self, summary: Summary) -> None:
        """The next summary."""
        self._summaries.append(summary)

    def finished(self) -> list[Summary]:
        """All summaries; one warning tells of those that the LLM did not write."""
        missed = sum(summary.is_fallback for summary in self._summaries)
        if missed:
            rest = f" It was not asked again after {FAILURES_IN_A_ROW} failures in a row." if self.given_up and self._total > 1 else ""
            report("warning", f"{missed} of {self._total} summaries are sentences of the text, because {self._first_reason}.{rest}")
        return self._summaries


def _reason(outcome: Outcome[str]) -> str:
    return "the LLM answered nothing" if outcome.error is None else f"the LLM failed with {type(outcome.error).__name__}: {outcome.error}".rstrip(".")
