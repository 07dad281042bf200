"""An answer without an LLM: the best sentences of the best nodes, each cited."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from llama_index_advanced_rag.answering.context import NumberedSentence, inert
from llama_index_advanced_rag.answering.tables import head_of_row, is_data_row
from llama_index_advanced_rag.answering.wording import answer_kind, gives
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

Words = frozenset[str]

_SENTENCE_SHARE, _NODE_SHARE = 0.7, 0.3
_KIND_BONUS = 0.15
_RANK_DECAY = 0.05
_KEEP_ABOVE = 0.6  # of the best score
_SAME_ABOVE = 0.8  # share of common words from which two sentences say the same
_LEAST_COVERAGE, _ENOUGH_WORDS = 0.5, 6
_NAME_WEIGHT = 2.0
_NAME = re.compile(r"(?<=[\w,;:(] )[A-ZÀ-ÖØ-Þ][\w'’.-]*")
_LEAST_SIMILARITY, _LEAST_LEAD = 0.5, 0.1


@dataclass(frozen=True, slots=True)
class Extract:
    """A sentence chosen for the answer.

    Attributes:
        sentence: the sentence.
        score: higher is better, 0 to 1.15.
        head: head of the table when the sentence is a row of figures and has one.
    """

    sentence: NumberedSentence
    score: float
    head: NumberedSentence | None = None


def extract_sentences(
    question: str,
    sentences: Sequence[NumberedSentence],
    *,
    analyzer: TextAnalyzer,
    similarities: Sequence[float] | None = None,
    max_sentences: int = 3,
) -> list[Extract]:
    """Choose the sentences that answer a question; none when no passage does.

    Words of the question are weighted by `ln(1 + n / n(word))` over the n sentences. `words = 0.7 x share of the question in
    the sentence + 0.3 x share in its node and title`; with
    similarities, half of that and half of the similarity scaled to 0-1. Score = (words + 0.15 when the sentence holds the kind
    of thing asked for) / (1 + 0.05 (node rank - 1)). A row of figures speaks together with the head of its table, the sentence
    behind a question (FAQ) with that question, the first one of a document with its title. A question is no answer, nor is a
    heading that only repeats the question.

    A sentence that (so completed) has a word of the question is relevant when its node and title have half of the question's words (a name
    counts twice) or 6 of them; any sentence is when its similarity is at least 0.5 and 0.1 above the median.

    Args:
        question: the question.
        sentences: the numbered sentences of the context, in order.
        analyzer: turns question and sentences into comparable words.
        similarities: cosine of question and sentence, one a sentence; None = words only.
        max_sentences: most sentences returned.

    Returns:
        At most `max_sentences`, no two saying the same: nodes by their best score, within a node as the text runs.
    """
    scored = _score(question, sentences, analyzer, similarities)
    scored.sort(key=lambda item: (-item[0].score, item[0].sentence.number))
    chosen: list[tuple[Extract, Words]] = []
    for extract, words in scored:
        if len(chosen) == max_sentences or extract.score < _KEEP_ABOVE * scored[0][0].score:
            break
        if not any(_same(words, other) for _, other in chosen):
            chosen.append((extract, words))
    return _in_reading_order([extract for extract, _ in chosen])


def compose_answer(extracts: Sequence[Extract]) -> list[str]:
    """The extracts as pieces of text, each followed by the `[number]` of its sentence in the context; joined they are the answer.

    Sentences follow each other on a line, rows and headings get a line of their own, the head of a table is said once.
    """
    pieces: list[str] = []
    said = set[int]()
    for previous, extract in zip([None, *extracts], extracts, strict=False):
        piece = _quoted(extract.sentence)
        if extract.head is not None and extract.head.number not in said:
            said.add(extract.head.number)
            piece = f"{_quoted(extract.head)}: {piece}"
        joint = "" if previous is None else " " if previous.sentence.text.endswith((".", "!", "?", "…")) and extract.head is None else "\n"
        pieces.append(joint + piece)
    return pieces


def _quoted(sentence: NumberedSentence) -> str:
    return f"{inert(sentence.text)} [{sentence.number}]"


def _score(question: str, sentences: Sequence[NumberedSentence], analyzer: TextAnalyzer, similarities: Sequence[float] | None) -> list[tuple[Extract, Words]]:
    asked = frozenset(analyzer.query_tokens(question))
    words = [frozenset(analyzer.tokens(sentence.text)) for sentence in sentences]
    weights = _weights(asked, words)
    needed = _needed(question, asked, analyzer)
    titles = {sentence.node_id: frozenset(analyzer.tokens(sentence.title)) for sentence in sentences}
    nodes = _node_words(sentences, words, titles)
    heads = _heads(sentences)
    kind = answer_kind(question)
    close, leading = _scaled(similarities, len(sentences))
    result: list[tuple[Extract, Words]] = []
    for index, sentence in enumerate(sentences):
        own, node = words[index], nodes[sentence.node_id]
        head = heads.get(index)
        spoken = own | (words[head] if head is not None else _said_before(index, sentences, words, titles))
        relevant = bool(spoken & asked) and (_share(node, needed) >= _LEAST_COVERAGE or len(node & asked) >= _ENOUGH_WORDS)
        if _says_nothing(sentence.text, own, asked) or not (relevant or leading[index]):
            continue
        by_words = _SENTENCE_SHARE * _share(spoken, weights) + _NODE_SHARE * _share(node, weights)
        base = by_words if similarities is None else (by_words + close[index]) / 2
        bonus = _KIND_BONUS if gives(kind, sentence.text, question=question) else 0.0
        score = (base + bonus) / (1 + _RANK_DECAY * (sentence.node_rank - 1))
        result.append((Extract(sentence, score, None if head is None else sentences[head]), own))
    return result


def _weights(asked: Words, documents: Sequence[Words]) -> dict[str, float]:
    """Weight of each word of the question that stands somewhere in the context, in a fixed order so that sums are equal in every process."""
    counts = {word: sum(word in document for document in documents) for word in sorted(asked)}
    return {word: math.log(1 + len(documents) / count) for word, count in counts.items() if count}


def _needed(question: str, asked: Words, analyzer: TextAnalyzer) -> dict[str, float]:
    names = {word for name in _NAME.findall(question) for word in analyzer.query_tokens(name)}
    return {word: _NAME_WEIGHT if word in names else 1.0 for word in sorted(asked)}


def _share(words: Words, weights: Mapping[str, float]) -> float:
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def _node_words(sentences: Sequence[NumberedSentence], words: Sequence[Words], titles: Mapping[str, Words]) -> dict[str, Words]:
    nodes = dict(titles)
    for sentence, own in zip(sentences, words, strict=True):
        nodes[sentence.node_id] |= own
    return nodes


def _says_nothing(text: str, own: Words, asked: Words) -> bool:
    """Whether a sentence cannot be an answer: a question, or a heading made of words of the question."""
    return not own or text.endswith("?") or (own <= asked and not text.endswith((".", "!", "…")))


def _said_before(index: int, sentences: Sequence[NumberedSentence], words: Sequence[Words], titles: Mapping[str, Words]) -> Words:
    """Words under which a sentence stands: the question right before it, or the title when it opens the document."""
    sentence = sentences[index]
    if index > 0 and sentences[index - 1].node_id == sentence.node_id:
        return words[index - 1] if sentences[index - 1].text.endswith("?") else frozenset()
    return titles[sentence.node_id] if sentence.start == (sentence.document_start or sentence.start) else frozenset()


def _heads(sentences: Sequence[NumberedSentence]) -> dict[int, int]:
    texts = [sentence.text for sentence in sentences]
    first: dict[str, int] = {}
    heads: dict[int, int] = {}
    for index, sentence in enumerate(sentences):
        begin = first.setdefault(sentence.node_id, index)
        if is_data_row(sentence.text):
            head = head_of_row(texts[begin : index + 1], index - begin)
            heads.update({} if head is None else {index: begin + head})
    return heads


def _scaled(similarities: Sequence[float] | None, n: int) -> tuple[list[float], list[bool]]:
    if not similarities:
        return [0.0] * n, [False] * n
    low, high, middle = min(similarities), max(similarities), median(similarities)
    width = (high - low) or 1.0
    leading = [value >= _LEAST_SIMILARITY and value - middle >= _LEAST_LEAD for value in similarities]
    return [(value - low) / width for value in similarities], leading


def _same(one: Words, other: Words) -> bool:
    return len(one & other) >= _SAME_ABOVE * len(one | other)


def _in_reading_order(extracts: Iterable[Extract]) -> list[Extract]:
    best: dict[str, float] = {}
    chosen = list(extracts)
    for extract in chosen:
        best[extract.sentence.node_id] = max(extract.score, best.get(extract.sentence.node_id, 0.0))
    return sorted(chosen, key=lambda item: (-best[item.sentence.node_id], item.sentence.node_rank, item.sentence.number))
