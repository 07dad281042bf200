"""What the rows of tables are called."""

import re

from llama_index_advanced_rag.text.table_rows import figures_start, is_data_row

_LINE = re.compile(r"[^\n]+")
_LABEL = re.compile(r"[^\W\d_](?:.*[^\W_)%])?\)?", re.DOTALL)
_LONGEST_LABEL = 80
_LONGEST_LINE = 400


def row_labels(text: str) -> list[tuple[int, int]]:
    r"""Where the words stand that rows of figures begin with.

    Args:
        text: the text, a row a line.

    Returns:
        First character and one past the last of each label, in order; at most 80 characters each.

    Example:
        >>> text = "Sales rose.\nTotal net sales $ 81,797 $ 82,959\nCost of sales: 45,384 47,074"
        >>> [text[start:end] for start, end in row_labels(text)]
        ['Total net sales', 'Cost of sales']
    """
    found: list[tuple[int, int]] = []
    for line in _LINE.finditer(text):
        row = line.group()
        if len(row) > _LONGEST_LINE or not is_data_row(row):
            continue
        label = _LABEL.search(row, 0, figures_start(row))
        if label is not None and 2 < len(label.group()) <= _LONGEST_LABEL:
            found.append((line.start() + label.start(), line.start() + label.end()))
    return found
