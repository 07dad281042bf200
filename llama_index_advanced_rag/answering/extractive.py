"""An answer without an LLM: the best sentences of the best nodes, each cited."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from llama_index_advanced_rag.answering.context import NumberedSentence, inert
from llama_index_advanced_rag.answering.tables import head_of_row, is_data_row
from llama_index_advanced_rag.answering.wording import answer_kind, gives
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

Words = frozenset[str]

_SENTENCE_SHARE, _NODE_SHARE = 0.7, 0.3
_LABEL_SHARE = 0.4  # of a row of figures: how much of its label the question says
_KIND_BONUS = 0.15
_RANK_DECAY = 0.05
_KEEP_ABOVE = 0.6  # of the best score
_SAME_ABOVE = 0.8  # share of common words from which two sentences say the same
_LEAST_COVERAGE, _ENOUGH_WORDS = 0.4, 6
_NAME_WEIGHT = 2.0
_NAME = re.compile(r"(?<=[\w,;:(] )[A-ZÀ-ÖØ-Þ][\w'’.-]*")
_LEAST_SIMILARITY, _LEAST_LEAD = 0.5, 0.1
_SIMILARITY_SHARE = 0.3
_COMPARED, _COMPARED_WITHOUT_WORDS = 16, 48


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
    similarities: Mapping[int, float] | None = None,
    max_sentences: int = 3,
) -> list[Extract]:
    """Choose the sentences that answer a question; none when no passage does.

    Words of the question are weighted by `ln(1 + n / n(word))` over the n sentences. Score = (0.7 x share of the question in
    the sentence + 0.3 x share in its node and title + 0.15 when the sentence holds the kind of thing asked for) / (1 + 0.05
    (node rank - 1)). With similarities, 0.3 of the score of prose is its similarity, scaled from 0 to the best score.

    A row of figures speaks together with the head of its table, and 0.4 of its share is how much of its label the question
    says: "Total net sales" fits better than "Percentage of total net sales". The sentence behind a question (FAQ) speaks with
    that question, the first one of a document with its title. A question is no answer, nor is a heading that only repeats it.

    A sentence that, so completed, has a word of the question is relevant when its node and title have 0.4 of the question's
    words (a name counts twice) or 6 of them. Where there is none, sentences are whose similarity is at least 0.5 and 0.1 above
    the median.

    Args:
        question: the question.
        sentences: the numbered sentences of the context, in order.
        analyzer: turns question and sentences into comparable words.
        similarities: sentence number -> cosine with the question, at least for `sentences_to_compare`; None = words only.
        max_sentences: most sentences returned.

    Returns:
        At most `max_sentences`, no two saying the same: nodes by their best score, within a node as the text runs.
    """
    scored = _score(question, sentences, analyzer)
    if similarities:
        scored = _ranked(_blended(scored, similarities) if scored else _leading(sentences, similarities, analyzer))
    return _in_reading_order(_distinct(scored, max_sentences))


def sentences_to_compare(question: str, sentences: Sequence[NumberedSentence], *, analyzer: TextAnalyzer) -> list[NumberedSentence]:
    """The sentences worth an embedding: the 16 best by their words; where no words fit, the first 48."""
    scored = _score(question, sentences, analyzer)
    return [extract.sentence for extract, _ in scored[:_COMPARED]] or list(sentences[:_COMPARED_WITHOUT_WORDS])


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
            piece = f"{inert(extract.head.text).rstrip(': ')} [{extract.head.number}]: {piece}"
        joint = "" if previous is None else " " if previous.sentence.text.endswith((".", "!", "?", "…")) and extract.head is None else "\n"
        pieces.append(joint + piece)
    return pieces


def _quoted(sentence: NumberedSentence) -> str:
    return f"{inert(sentence.text)} [{sentence.number}]"


def _ranked(scored: Iterable[tuple[Extract, Words]]) -> list[tuple[Extract, Words]]:
    return sorted(scored, key=lambda item: (-item[0].score, item[0].sentence.number))


def _score(question: str, sentences: Sequence[NumberedSentence], analyzer: TextAnalyzer) -> list[tuple[Extract, Words]]:
    """The relevant sentences scored by their words, best first."""
    asked = frozenset(analyzer.query_tokens(question))
    words = [frozenset(analyzer.tokens(sentence.text)) for sentence in sentences]
    weights = _weights(asked, words)
    needed = _needed(question, asked, analyzer)
    titles = {sentence.node_id: frozenset(analyzer.tokens(sentence.title)) for sentence in sentences}
    nodes = _node_words(sentences, words, titles)
    heads = _heads(sentences)
    kind = answer_kind(question)
    result: list[tuple[Extract, Words]] = []
    for index, sentence in enumerate(sentences):
        own, node = words[index], nodes[sentence.node_id]
        head = heads.get(index)
        spoken = own | (words[head] if head is not None else _said_before(index, sentences, words, titles))
        relevant = bool(spoken & asked) and (_share(node, needed) >= _LEAST_COVERAGE or len(node & asked) >= _ENOUGH_WORDS)
        if _says_nothing(sentence.text, own, asked) or not relevant:
            continue
        by_words = _SENTENCE_SHARE * _own_share(sentence.text, own, spoken, weights) + _NODE_SHARE * _share(node, weights)
        bonus = _KIND_BONUS if gives(kind, sentence.text, question=question) else 0.0
        score = (by_words + bonus) / (1 + _RANK_DECAY * (sentence.node_rank - 1))
        result.append((Extract(sentence, score, None if head is None else sentences[head]), own))
    return _ranked(result)


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


def _own_share(text: str, own: Words, spoken: Words, weights: Mapping[str, float]) -> float:
    coverage = _share(spoken, weights)
    if not is_data_row(text):
        return coverage
    label = [word for word in own if not word[:1].isdigit()]
    fit = sum(word in weights for word in label) / len(label) if label else 0.0
    return (1 - _LABEL_SHARE) * coverage + _LABEL_SHARE * fit


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


def _blended(scored: Sequence[tuple[Extract, Words]], similarities: Mapping[int, float]) -> list[tuple[Extract, Words]]:
    """Scores of prose mixed with its similarity; embedding models cannot read rows of figures, so these keep their score."""
    known = [similarities[extract.sentence.number] for extract, _ in scored if extract.sentence.number in similarities]
    if not known:
        return list(scored)
    low, width, best = min(known), (max(known) - min(known)) or 1.0, scored[0][0].score
    return [(_closer(extract, similarities, low=low, scale=best / width), words) for extract, words in scored]


def _closer(extract: Extract, similarities: Mapping[int, float], *, low: float, scale: float) -> Extract:
    similarity = similarities.get(extract.sentence.number)
    if similarity is None or is_data_row(extract.sentence.text):
        return extract
    return replace(extract, score=(1 - _SIMILARITY_SHARE) * extract.score + _SIMILARITY_SHARE * (similarity - low) * scale)


def _leading(sentences: Sequence[NumberedSentence], similarities: Mapping[int, float], analyzer: TextAnalyzer) -> list[tuple[Extract, Words]]:
    least = max(_LEAST_SIMILARITY, median(similarities.values()) + _LEAST_LEAD)
    return [
        (Extract(sentence, similarities[sentence.number]), frozenset(analyzer.tokens(sentence.text)))
        for sentence in sentences
        if similarities.get(sentence.number, 0.0) >= least and not sentence.text.endswith("?")
    ]


def _distinct(scored: Sequence[tuple[Extract, Words]], most: int) -> list[Extract]:
    chosen: list[tuple[Extract, Words]] = []
    for extract, words in scored:
        if len(chosen) == most or extract.score < _KEEP_ABOVE * scored[0][0].score:
            break
        if not any(_same(words, other) for _, other in chosen):
            chosen.append((extract, words))
    return [extract for extract, _ in chosen]


def _same(one: Words, other: Words) -> bool:
    return len(one & other) >= _SAME_ABOVE * len(one | other)


def _in_reading_order(extracts: Iterable[Extract]) -> list[Extract]:
    best: dict[str, float] = {}
    chosen = list(extracts)
    for extract in chosen:
        best[extract.sentence.node_id] = max(extract.score, best.get(extract.sentence.node_id, 0.0))
    return sorted(chosen, key=lambda item: (-best[item.sentence.node_id], item.sentence.node_rank, item.sentence.number))
