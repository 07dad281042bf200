import pytest

from llama_index_advanced_rag.text.outline import Bookmark, HeadingSource, recover_outline


def titles(text: str) -> list[str]:
    return [heading.title for heading in recover_outline(text).headings]


def test_marks_of_markdown() -> None:
    text = "---\ntitle: x\n---\n# A\n\ntext\n## B ##\nSet\n===\nfoo\n---\n####### seven\n#nothing\n"
    outline = recover_outline(text)
    assert [(heading.title, heading.level) for heading in outline.headings] == [("A", 1), ("B", 2), ("Set", 1), ("foo", 2)]
    assert {heading.source for heading in outline.headings} == {HeadingSource.MARKUP}
    assert text[outline.headings[2].start : outline.headings[2].body] == "Set\n===\n"


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_code_is_not_read(fence: str) -> None:
    assert titles(f"# A\n{fence}python\n# comment\n{fence}\n# B\n") == ["A", "B"]


def test_rules_tables_and_lists_are_no_setext_headings() -> None:
    assert titles("# A\n\n---\n| a | b |\n---\n- item\n---\n# B\n") == ["A", "B"]


def test_numbers_are_not_guessed_in_a_text_with_marks() -> None:
    assert titles("# A\n\n1. Aim\ntext\n\n2. Means\ntext\n\n## B\n") == ["A", "B"]


def test_windows_line_ends() -> None:
    text = "# A\r\ntext\r\n## B\r\ntext\r\n"
    outline = recover_outline(text)
    assert [text[heading.start : heading.body] for heading in outline.headings] == ["# A\r\n", "## B\r\n"]


def test_bookmarks_stand_at_their_lines() -> None:
    text = "Cover\n\fHeader\n1 Scope\nWhat it is about.\n\fHeader\nMore of it.\n\f2 Means\nHow it is done.\n"
    marks = [Bookmark("1. SCOPE", 1, text.index("Header")), Bookmark("Hidden", 2, text.index("More")), Bookmark("2 Means", 1, text.index("2 Means"))]
    outline = recover_outline(text, bookmarks=marks)
    assert [(heading.title, heading.level, heading.source) for heading in outline.headings] == [
        ("1. SCOPE", 1, HeadingSource.BOOKMARK),
        ("Hidden", 2, HeadingSource.BOOKMARK),
        ("2 Means", 1, HeadingSource.BOOKMARK),
    ]
    assert [text[heading.start :].split("\n")[0] for heading in outline.headings] == ["1 Scope", "More of it.", "2 Means"]
    assert outline.notes == (f"The bookmark 'Hidden' has no line with its title near offset {text.index('More')}.",)


def test_bookmarks_outside_the_text_are_noted() -> None:
    outline = recover_outline("text\n", bookmarks=[Bookmark("Gone", 1, 99)])
    assert outline.headings == ()
    assert outline.notes == ("The bookmark 'Gone' points to 99, outside the text of 5 characters.",)
