"""An LLM by name for the command line: OpenAI's models, and any server that speaks OpenAI's chat interface."""

import os
from typing import TYPE_CHECKING

from llama_index_advanced_rag.errors import ConfigurationError

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from llama_index.llms.openai import OpenAI

PROVIDER = "openai"
UNKNOWN_MODEL_WINDOW = 8192
_NO_KEY = "not-needed"  # the client refuses an empty key, a local server ignores it


def resolve_llm_name(name: str, *, api_base: str | None = None, context_window: int = UNKNOWN_MODEL_WINDOW) -> "LLM":
    """The LLM that a name like "openai:gpt-4o-mini" stands for.

    The key is the environment variable OPENAI_API_KEY. With a server of one's own (`api_base`, or OPENAI_API_BASE) the
    model may have any name and the key may be missing.

    Args:
        name: provider and model, joined by a colon.
        api_base: address of an OpenAI-compatible server, up to and with "/v1".
        context_window: tokens that a model LlamaIndex does not know can read.

    Raises:
        ConfigurationError: another provider, no model, an address that is none, no key for OpenAI's own server, or a model it does not know.
    """
    provider, _, model = name.partition(":")
    if provider != PROVIDER or not model:
        raise ConfigurationError(f"There is no LLM {name!r}. Expected '{PROVIDER}:MODEL', for example 'openai:gpt-4o-mini'; other servers with --api-base URL.")
    base = api_base or os.environ.get("OPENAI_API_BASE") or None
    if base is not None and not base.startswith(("http://", "https://")):
        raise ConfigurationError(f"{base!r} is not the address of a server. Expected one with http:// or https://, for example http://localhost:8000/v1.")
    key = os.environ.get("OPENAI_API_KEY") or None
    if base is None and key is None:
        raise ConfigurationError(
            f"The LLM {name!r} needs a key. Set the environment variable OPENAI_API_KEY, or name a server of your own with --api-base URL."
        )
    return _openai(model, base, key, context_window)


def _openai(model: str, base: str | None, key: str | None, context_window: int) -> "LLM":
    from llama_index.llms.openai import OpenAI
    from llama_index.llms.openai.utils import ALL_AVAILABLE_MODELS

    if model in ALL_AVAILABLE_MODELS:
        return OpenAI(model=model, api_base=base, api_key=key or _NO_KEY, temperature=0.0)
    if base is None:
        raise ConfigurationError(f"LlamaIndex does not know an OpenAI model {model!r}. Check the name, or name the server that has it with --api-base URL.")
    return _with_any_model_name()(model=model, api_base=base, api_key=key or _NO_KEY, temperature=0.0, context_window=context_window)


def _with_any_model_name() -> "type[OpenAI]":
    from llama_index.core.base.llms.types import LLMMetadata
    from llama_index.core.bridge.pydantic import Field
    from llama_index.llms.openai import OpenAI

    class OpenAICompatible(OpenAI):
        """LlamaIndex's OpenAI class for chat models whose names it does not know."""

        context_window: int = Field(default=UNKNOWN_MODEL_WINDOW, description="tokens the model can read")

        @classmethod
        def class_name(cls) -> str:
            return "openai_compatible_llm"

        @property
        def _tokenizer(self) -> None:
            return None

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(context_window=self.context_window, num_output=self.max_tokens or -1, is_chat_model=True, model_name=self.model)

    return OpenAICompatible
