"""Long questions: what is asked stands at their beginning or at their end."""


def both_ends(question: str, most_chars: int) -> str:
    """The question, the middle of a long one left out.

    Args:
        question: the question.
        most_chars: longest text that is kept whole, and what is kept of a longer one.

    Example:
        >>> both_ends("Here is my letter: " + "very " * 100 + "Is it polite?", 40)
        'Here is my letter: v … y very Is it polite?'
        >>> both_ends("Is it polite?", 40)
        'Is it polite?'
    """
    if len(question) <= most_chars:
        return question
    half = most_chars // 2
    return f"{question[:half].rstrip()} … {question[-half:].lstrip()}"
