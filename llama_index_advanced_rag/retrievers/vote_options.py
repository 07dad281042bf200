"""The numbers an entity vote can be tuned by."""

from dataclasses import dataclass
from typing import Any

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.entity_vote import SHARE_WEIGHT, TOP_N
from llama_index_advanced_rag.retrievers.tunable import TunableOptions

SHARES = ("document_weight", "share_weight", "neighbour_decay")


@dataclass(frozen=True)
class VoteOptions(TunableOptions):
    """How entities vote; see `EntityVoteRetriever`.

    Raises:
        ConfigurationError: a value cannot work.
    """

    top_n: int = TOP_N
    document_weight: float = 0.15
    share_weight: float = SHARE_WEIGHT
    neighbour_decay: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in SHARES:
            value: Any = getattr(self, name)
            if not 0 <= value <= 1:
                raise ConfigurationError(f"{name} is {value!r}. It must be from 0 to 1.")
        whole_number("top_n", self.top_n)
