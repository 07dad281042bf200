import pytest

from llama_index_advanced_rag.text.outline import Outline, recover_outline
from llama_index_advanced_rag.text.outlines.numbers import read_numbered

SAID = "The parties agree on the following terms and shall keep them in good faith at all times.\n"


def tree(outline: Outline) -> list[str]:
    return [f"{'  ' * (heading.level - 1)}{heading.title}" for heading in outline.headings]


@pytest.mark.parametrize(
    ("line", "kind", "number"),
    [
        ("ITEM 2.", "item", (2,)),
        ("PART II — OTHER INFORMATION", "part", (2,)),
        ("Item 1A. Risk Factors", "item", (1, 1)),
        ("Article L. 411-1", "article", (411, 1)),
        ("Chapitre Ier", "chapter", (1,)),
        ("Livre premier", "book", (1,)),
        ("DEUXIÈME PARTIE", "part", (2,)),
        ("Sec. 2. Definitions.", "section", (2,)),
        ("Chapter One: Start", "chapter", (1,)),
        ("§ 5 Fristen", "paragraph", (5,)),
        ("Annexe A", "appendix", (1,)),
        ("Schedule 1", "appendix", (1,)),
        ("Note 7 — Leases", "note", (7,)),
        ("Abschnitt 3 Verfahren", "section", (3,)),
        ("Sección 4", "section", (4,)),
        ("1.2.3 Scope of Work", "decimal", (1, 2, 3)),
        ("IV - Objet", "roman", (4,)),
        ("B. Aim", "letter", (2,)),
        ("第十二章 附则", "chapter", (12,)),
        ("第３条", "article", (3,)),
        ("제2조(정의)", "article", (2,)),
    ],
)
def test_numbered_lines(line: str, kind: str, number: tuple[int, ...]) -> None:
    found = read_numbered(line)
    assert found is not None
    assert (found.kind, found.number) == (kind, number)


@pytest.mark.parametrize(
    "line",
    [
        "Item 1A of the Company’s Annual Report",
        "Item 1, 1A",
        "Part I, “Financial Statements — Note 3”",
        "Section 13(a) or 15(d)",
        "SECTION 906 OF THE ACT",
        "Title of each class",
        "Exhibit Number Description",
        "2022 Notes",
        "12 % of sales",
        "1. I have read the report;",
        "3.1 with a small beginning",
        "1° Six mois",
        "a) Income Statements",
        "Article 12 of the lease says",
        "1 234 567",
        "Note 4 12 15",
    ],
)
def test_other_lines(line: str) -> None:
    assert read_numbered(line) is None


def test_lists_inside_sections_are_no_headings() -> None:
    text = f"1. Purpose\n{SAID}2. Definitions\n2.1 Terms\n{SAID}2.2 Other Terms\n{SAID}The list:\n1. Apples\n2. Pears\n3. Plums\nSo much.\n3. Duration\n{SAID}"
    assert tree(recover_outline(text)) == ["1. Purpose", "2. Definitions", "  2.1 Terms", "  2.2 Other Terms", "3. Duration"]


@pytest.mark.parametrize("text", ["Shopping:\n1. Milk\n2. Bread\n3. Eggs\nThat is all.\n", "31.1 Certification of the Officer\n" + SAID, "1. Alone\n" + SAID])
def test_numbers_that_do_not_go_on_are_no_headings(text: str) -> None:
    assert recover_outline(text).headings == ()


def test_roman_letters_and_figures_nest() -> None:
    text = f"I. Start\n{SAID}A. Background\n{SAID}B. Aim\n{SAID}II. Methods\n{SAID}A. Data\n{SAID}B. Models\n1. Linear\n{SAID}2. Other\n{SAID}III. End\n{SAID}"
    assert tree(recover_outline(text)) == [
        "I. Start",
        "  A. Background",
        "  B. Aim",
        "II. Methods",
        "  A. Data",
        "  B. Models",
        "    1. Linear",
        "    2. Other",
        "III. End",
    ]


def test_numbers_begin_again_below_an_annex() -> None:
    text = f"1 Scope\n{SAID}2 Terms\n{SAID}Annex A\n1 Forms\n{SAID}2 Fees\n{SAID}Annex B\n1 Maps\n{SAID}2 Plans\n{SAID}"
    assert tree(recover_outline(text)) == ["1 Scope", "2 Terms", "Annex A", "  1 Forms", "  2 Fees", "Annex B", "  1 Maps", "  2 Plans"]


def test_a_cross_reference_at_the_beginning_of_a_line_is_no_heading() -> None:
    told = "This is told at greater length and with all the figures of the year under the heading\nItem 7. Discussion\nand elsewhere.\n"
    text = f"Item 1. Business\n{SAID}{told}Item 2. Land\n{SAID}"
    assert tree(recover_outline(text)) == ["Item 1. Business", "Item 2. Land"]


def test_running_headers_with_numbers_are_no_headings() -> None:
    heads = [
        ("Chapter 1", "Chapter 1: The Hill"),
        ("Chapter 1", ""),
        ("Chapter 1", ""),
        ("Chapter 1", ""),
        ("Chapter 2", "Chapter 2: The Sea"),
        ("Chapter 2", ""),
        ("Chapter 2", ""),
        ("Chapter 2", ""),
    ]
    text = "\f".join(f"{head}\n{title}\n{SAID}{place}\n" for place, (head, title) in enumerate(heads))
    assert tree(recover_outline(text)) == ["Chapter 1: The Hill", "Chapter 2: The Sea"]


def test_the_first_of_running_headers_stands_for_its_series() -> None:
    text = "\f".join(f"Chapter {1 + place // 4}\n{SAID}{place}\n" for place in range(8))
    outline = recover_outline(text)
    assert tree(outline) == ["Chapter 1", "Chapter 2"]
    assert outline.headings[1].start == text.index("Chapter 2")


def test_a_title_below_its_label_belongs_to_it() -> None:
    text = "Chapter 1\nThe Beginning\nIt was a dark night.\n\nChapter 2\n\nThe Middle\nIt was morning.\n\nChapter 3\nIt ended well for everyone in the town.\n"
    assert tree(recover_outline(text)) == ["Chapter 1 The Beginning", "Chapter 2 The Middle", "Chapter 3"]


def test_titles_with_text_in_the_same_line_end_at_their_period() -> None:
    text = f"1. Definitions. In this contract words mean what they say.\n{SAID}2. Term and Renewal. The term is a year.\n{SAID}3. Fees.\n{SAID}"
    outline = recover_outline(text)
    assert tree(outline) == ["1. Definitions.", "2. Term and Renewal.", "3. Fees."]
    assert text[outline.headings[1].body :].startswith(" The term")


def test_a_mark_at_the_beginning_of_a_numbered_text_is_its_title() -> None:
    outline = recover_outline(f"# Lease\n\n1. Aim\n{SAID}2. Fees\n{SAID}Annex A\n{SAID}")
    assert tree(outline) == ["Lease", "  1. Aim", "  2. Fees", "  Annex A"]
