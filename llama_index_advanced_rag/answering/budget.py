"""The part of a context that a token budget holds."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

from llama_index_advanced_rag.answering.context import NumberedContext, NumberedSentence, head_line, inert, numbered_context
from llama_index_advanced_rag.answering.extractive import Extract
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.usage import count_tokens as count_global_tokens

_AROUND = (-1, 1, 2)
_NUMBER_TOKENS = 4  # "[12] " and the end of the line


def fit_context(
    context: NumberedContext, ranked: Sequence[Extract], *, max_tokens: int, count_tokens: Callable[[str], int] = count_global_tokens
) -> NumberedContext:
    """Keep what a token budget holds: by halves, the best sentences with what stands around them, and the best nodes from their beginning.

    A context that fits is returned as it is. What is kept stays in its order and gets new numbers.

    Args:
        context: the whole context.
        ranked: sentences of it that fit the question, best first; each brings its lead, its items, one sentence before and
            two after it.
        max_tokens: most tokens of `prompt_text`, at least 1; one sentence is always kept.
        count_tokens: counts the tokens of a text.

    Raises:
        ConfigurationError: `max_tokens` is below 1.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> from llama_index_advanced_rag.answering.context import number_sentences
        >>> text = " ".join(f"{word} is here." for word in "One Two Three Four Five Six Seven Eight Nine Ten".split())
        >>> context = number_sentences([NodeWithScore(node=TextNode(text=text))])
        >>> best = Extract(context.sentences[9], 1.0)
        >>> print(fit_context(context, [best], max_tokens=30, count_tokens=lambda text: len(text.split())).prompt_text)
        [1] One is here.
        [2] Two is here.
        [3] Nine is here.
        [4] Ten is here.
    """
    if max_tokens < 1:
        raise ConfigurationError(f"max_tokens is {max_tokens!r}. It must be at least 1.")
    if not context.sentences or count_tokens(context.prompt_text) <= max_tokens:
        return context
    kept = _Kept(context, max_tokens, count_tokens)
    kept.fill([_around(extract, context) for extract in ranked], most=max_tokens // 2 if ranked else 0)
    in_rank_order = sorted(context.sentences, key=lambda sentence: (sentence.node_rank, sentence.number))
    kept.fill([(sentence.number,) for sentence in in_rank_order], most=max_tokens)
    kept.fill([_around(extract, context) for extract in ranked], most=max_tokens)
    numbers = kept.numbers or {(ranked[0].sentence if ranked else context.sentences[0]).number}
    left_out = dict.fromkeys(sentence.node_id for sentence in context.sentences if sentence.number not in numbers)
    return numbered_context([sentence for sentence in context.sentences if sentence.number in numbers], left_out=tuple(left_out))


class _Kept:
    def __init__(self, context: NumberedContext, max_tokens: int, count_tokens: Callable[[str], int]) -> None:
        self._context, self._max_tokens, self._count = context, max_tokens, count_tokens
        self._tokens = 0
        self._nodes = Counter[str]()
        self.numbers: set[int] = set()

    def fill(self, groups: Sequence[Sequence[int]], *, most: int) -> None:
        """Add sentences in this order until `most` tokens are used; what does not fit ends it."""
        for number in chain.from_iterable(groups):
            if number in self.numbers:
                continue
            sentence = self._context.sentences[number - 1]
            cost = self._cost(sentence)
            if self._tokens + cost > min(most, self._max_tokens):
                return
            self._tokens += cost
            self.numbers.add(number)
            self._nodes[sentence.node_id] += 1

    def _cost(self, sentence: NumberedSentence) -> int:
        head = 0 if self._nodes[sentence.node_id] else self._count(head_line(sentence)) + 1
        return head + self._count(inert(sentence.text)) + _NUMBER_TOKENS


def _around(extract: Extract, context: NumberedContext) -> list[int]:
    """Numbers of a sentence and of what belongs to it, the most important first."""
    sentence = extract.sentence
    neighbours = (sentence.number + step for step in _AROUND)
    near = [number for number in neighbours if (other := context.sentence(number)) is not None and other.passage == sentence.passage]
    lead = [extract.lead.number] if extract.lead is not None else []
    return [sentence.number, *lead, *(item.number for item in extract.items), *near]
