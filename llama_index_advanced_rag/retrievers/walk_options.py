"""The numbers a graph walk can be tuned by."""

from dataclasses import dataclass

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.fact_index import TOP_FACTS
from llama_index_advanced_rag.graph.graph_walk import DAMPING, PRIOR_SHARE, SPECIFIC_UP_TO
from llama_index_advanced_rag.retrievers.tunable import TunableOptions

SHARES = ("prior_share", "damping")
NUMBERS = ("fact_weight", "second_hop")


@dataclass(frozen=True)
class WalkOptions(TunableOptions):
    """How a question walks; see `EntityGraphRetriever`.

    Raises:
        ConfigurationError: a value cannot work.
    """

    prior_share: float = PRIOR_SHARE
    damping: float = DAMPING
    prior_top_n: int = 100
    guard: int = 1
    top_facts: int = TOP_FACTS
    fact_weight: float = 1.0
    second_hop: float = 0.0
    specific_up_to: int = SPECIFIC_UP_TO

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in SHARES:
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ConfigurationError(f"{name} is {value!r}. It must be at least 0 and below 1.")
        for name in NUMBERS:
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ConfigurationError(f"{name} is {value!r}. It must be a number of at least 0.")
        whole_number("prior_top_n", self.prior_top_n)
        whole_number("top_facts", self.top_facts, least=0)
        whole_number("specific_up_to", self.specific_up_to, least=0)
