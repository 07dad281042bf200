"""What each sentence of the context is (prose, row, list item, heading) and under what it stands."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from llama_index_advanced_rag.answering.context import NumberedSentence
from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.text.table_rows import figures_start, heads_of_row, is_data_row

Words = frozenset[str]

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_LONGEST_HEADING, _LEAST_PROSE = 90, 40
_LABELLED = re.compile(r"\W*(?P<label>[^|:.!?]{1,80}?)\**\s*[|:]\**\s+\S")
_MARKER = re.compile(r"\W*[\w]{0,4}[.)°]?")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_IN_BRACKETS = re.compile(r"\([^)]*\)")
_GOES_ON = (";", ",")


class Role(str, Enum):
    """What a sentence is. A heading (of a text or a table) or a question is no answer by itself; a fragment is a short line without an end."""

    PROSE = "prose"
    ROW = "row"
    ITEM = "item"
    ANNOUNCEMENT = "announcement"
    HEADING = "heading"
    FRAGMENT = "fragment"


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence with what it stands under.

    Attributes:
        sentence: the sentence.
        role: what it is.
        own: its words.
        label: words of its label when it is a row or has the form "label: value", else None.
        lead: the head of its table, or what announces its list; to be quoted with it.
        title: words of the title of its document.
        heard: words it stands under: its title, heading, lead, or the question before it.
        opens: whether it comes right after a heading or question, or begins the document.
        items: for an announcement, what it announces, in order.
    """

    sentence: NumberedSentence
    role: Role
    own: Words
    label: Words | None
    lead: NumberedSentence | None
    heard: Words
    title: Words
    opens: bool
    items: tuple[NumberedSentence, ...]

    @property
    def titled_text(self) -> str:
        """The sentence, its lead and the title of its document as text."""
        return f"{self.sentence.title}\n{self.text}"

    @property
    def text(self) -> str:
        """The sentence and its lead as text."""
        return f"{self.lead.text}\n{self.sentence.text}" if self.lead is not None else self.sentence.text


def read_units(sentences: Sequence[NumberedSentence], words_of: Callable[[str], Words]) -> list[Unit]:
    r"""The units of a context, one for each sentence, in the same order.

    Args:
        sentences: the numbered sentences.
        words_of: the comparable words of a text; what has a space in it is no word of a label.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> from llama_index_advanced_rag.answering.context import number_sentences
        >>> text = "The trial lasts at most:\n1. Two months for workers;\n2. Four months for managers.\nSales 10 20"
        >>> context = number_sentences([NodeWithScore(node=TextNode(text=text))])
        >>> units = read_units(context.sentences, lambda text: frozenset(text.lower().split()))
        >>> [unit.role.value for unit in units], units[2].lead.number, len(units[0].items)
        (['announcement', 'item', 'item', 'row'], 1, 2)
    """
    words = [words_of(sentence.text) for sentence in sentences]
    titles = {title: words_of(title) for title in {sentence.title for sentence in sentences}}
    return [unit for begin, end in _passages(sentences) for unit in _Passage(sentences[begin:end], words[begin:end], titles, words_of).units()]


def _passages(sentences: Sequence[NumberedSentence]) -> Iterator[tuple[int, int]]:
    begin = 0
    for index in range(1, len(sentences) + 1):
        if index == len(sentences) or sentences[index].passage != sentences[begin].passage:
            yield begin, index
            begin = index


class _Passage:
    """The sentences of one passage; indices below are indices into it."""

    def __init__(self, sentences: Sequence[NumberedSentence], words: Sequence[Words], titles: Mapping[str, Words], words_of: Callable[[str], Words]) -> None:
        self._sentences, self._words, self._titles, self._words_of = sentences, words, titles, words_of
        self._texts = [sentence.text for sentence in sentences]
        self._rows = [is_data_row(text) for text in self._texts]
        self._items = [not row and is_list_item(text) for row, text in zip(self._rows, self._texts, strict=True)]
        self._heads = {row: heads_of_row(self._texts, self._rows, row) for row, is_row in enumerate(self._rows) if is_row}
        self._leads = {index: lead for index in range(len(sentences)) if (lead := self._lead(index)) is not None}
        self._announced: dict[int, list[int]] = {}
        for index, lead in self._leads.items():
            if self._items[index]:
                self._announced.setdefault(lead, []).append(index)

    def units(self) -> Iterator[Unit]:
        in_heads = {index for heads in self._heads.values() for index in heads}
        heading: int | None = None
        for index, sentence in enumerate(self._sentences):
            role = Role.HEADING if index in in_heads else self._role(index)
            if role is Role.HEADING and index not in in_heads and not self._texts[index].endswith("?"):
                heading = index
            lead = self._leads.get(index)
            items = tuple(self._sentences[item] for item in self._announced.get(index, ()))
            heard = self._heard(index, heading)
            opens = (heading is not None and index - 1 == heading) or (index > 0 and self._texts[index - 1].endswith("?"))
            opens = opens or (index == 0 and not sentence.document_start)
            title = self._titles[sentence.title]
            lead_sentence = None if lead is None else self._sentences[lead]
            yield Unit(sentence, role, self._words[index], self._label(index), lead_sentence, heard, title, opens, items)

    def _role(self, index: int) -> Role:
        text = self._texts[index]
        if self._rows[index]:
            return Role.ROW
        if index in self._announced:
            return Role.ANNOUNCEMENT
        if text.endswith("?") or self._is_heading(index):
            return Role.HEADING
        if self._items[index]:
            return Role.ITEM
        return Role.FRAGMENT if len(text) <= _LONGEST_HEADING and not _SENTENCE_END.search(text) else Role.PROSE

    def _is_heading(self, index: int) -> bool:
        """A line marked as heading, one that announces what is not there, or a short one without an end that stands above prose."""
        text = self._texts[index]
        if text.startswith("#") or text.endswith(":"):
            return True
        if len(text) > _LONGEST_HEADING or self._items[index] or _SENTENCE_END.search(text) or text.endswith(_GOES_ON) or _LABELLED.match(text):
            return False
        after = self._texts[index + 1] if index + 1 < len(self._texts) else ""
        return len(after) >= _LEAST_PROSE and _SENTENCE_END.search(after) is not None

    def _lead(self, index: int) -> int | None:
        if self._rows[index]:
            heads = self._heads[index]
            return heads[-1] if heads and _LETTERS.search(_IN_BRACKETS.sub("", self._texts[heads[-1]])) else None
        return self._announcement(index) if self._items[index] else None

    def _announcement(self, item: int) -> int | None:
        """The line above that announces a list: one that ends with a colon, or the item of which it is a part."""
        indent, marker = self._sentences[item].indent, self._marker(item)
        for index in range(item - 1, -1, -1):
            is_item, text = self._items[index], self._texts[index]
            if is_item and self._sentences[index].indent < indent:
                return index
            if text.endswith(":") and not (is_item and self._marker(index) == marker):
                return index
            if not is_item and not text.endswith(_GOES_ON):
                return None
        return None

    def _marker(self, index: int) -> str:
        found = _MARKER.match(self._texts[index])
        return re.sub(r"\w+", "1", found.group()) if found is not None else ""

    def _heard(self, index: int, heading: int | None) -> Words:
        heard = set(self._titles[self._sentences[index].title])
        above = [*self._heads.get(index, ()), *([heading] if heading is not None else [])]
        if index in self._leads:
            above.append(self._leads[index])
        if index > 0 and self._texts[index - 1].endswith("?"):
            above.append(index - 1)
        if self._heads.get(index) and self._heads[index][-1] > 0 and self._texts[self._heads[index][-1] - 1].endswith(":"):
            above.append(self._heads[index][-1] - 1)
        return frozenset(heard.union(*(self._words[place] for place in above)))

    def _label(self, index: int) -> Words | None:
        text = self._texts[index]
        if self._rows[index]:
            label = text[: figures_start(text)]
        elif (self._items[index] or is_table_row(text) or _SENTENCE_END.search(text) is None) and (found := _LABELLED.match(text)) is not None:
            label = found.group("label")
        else:
            return None
        return frozenset(word for word in self._words_of(label) if not word[:1].isdigit() and " " not in word)
