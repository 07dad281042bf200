"""Prompts of parts inside parts: LlamaIndex names them `part:inner:prompt`, and takes back only names with one colon."""

from collections import defaultdict
from collections.abc import Mapping

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixin


def update_nested_prompts(component: PromptMixin, prompts: Mapping[str, BasePromptTemplate]) -> None:
    """Replace prompts of a component by the names that its `get_prompts` gives, at any depth; the others stay.

    Raises:
        ValueError: a name speaks of a part that does not exist.
    """
    modules = component._get_prompt_modules()  # noqa: SLF001 - what LlamaIndex's own `update_prompts` does, but for the split
    component._update_prompts(dict(prompts))  # noqa: SLF001
    inner: dict[str, dict[str, BasePromptTemplate]] = defaultdict(dict)
    for name, prompt in prompts.items():
        part, colon, rest = name.partition(":")
        if colon and part not in modules:
            raise ValueError(f"There is no part {part!r} here, as {name!r} says. The parts with prompts are {', '.join(map(repr, modules)) or 'none'}.")
        if colon:
            inner[part][rest] = prompt
    for part, some in inner.items():
        modules[part].update_prompts(some)
