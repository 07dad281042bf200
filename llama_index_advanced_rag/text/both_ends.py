"""Long texts, the middle left out: what is asked stands at the beginning or at the end."""

_GAP = " … "


def both_ends(text: str, max_chars: int) -> str:
    """A text of at most `max_chars` characters: a longer one keeps its beginning and its end, cut between words.

    Example:
        >>> both_ends("one two three four five six", 20)
        'one two … six'
        >>> both_ends("Is it polite?", 20)
        'Is it polite?'
    """
    if len(text) <= max_chars:
        return text
    head = max_chars // 2
    tail = max_chars - head - len(_GAP)
    beginning, end = text[:head], text[-tail:]
    if not text[head].isspace():
        beginning = beginning.rsplit(maxsplit=1)[0]
    if not text[-tail - 1].isspace():
        end = end.split(maxsplit=1)[-1]
    return f"{beginning.rstrip()}{_GAP}{end.lstrip()}"
