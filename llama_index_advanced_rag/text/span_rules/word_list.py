"""Lists of words written as text."""


def words_of(text: str) -> frozenset[str]:
    r"""The words of a text between white space.

    Example:
        >>> sorted(words_of("the quick\nfox"))
        ['fox', 'quick', 'the']
    """
    return frozenset(text.split())
