import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.text.outline import Bookmark, Outline, recover_outline

SAID = "The parties agree on the following terms and shall keep them in good faith at all times.\n"
DIT = "Le locataire paie le loyer le premier jour de chaque mois, d'avance et sans aucune déduction.\n"


def tree(outline: Outline) -> list[str]:
    return [f"{'  ' * (heading.level - 1)}{heading.title}" for heading in outline.headings]


def test_a_report_of_parts_and_items() -> None:
    text = (
        "PART I\nItem 1\nPART I. FINANCIAL INFORMATION\nITEM 1. FINANCIAL STATEMENTS\n" + SAID + "Note 1 - Basis\n" + SAID + "Note 2 - Leases\n" + SAID
        + "ITEM 2. MANAGEMENT’S DISCUSSION AND ANALYSIS OF FINANCIAL CONDITION AND RESULTS OF\nOPERATIONS\n" + SAID
        + "see Note 2, and\nItem 1A of the Annual Report for more.\n"
        + "PART II. OTHER INFORMATION\nITEM 1. LEGAL PROCEEDINGS\nNone.\nITEM 1A. RISK FACTORS\n" + SAID
    )  # fmt: skip
    assert tree(recover_outline(text)) == [
        "PART I. FINANCIAL INFORMATION",
        "  ITEM 1. FINANCIAL STATEMENTS",
        "    Note 1 - Basis",
        "    Note 2 - Leases",
        "  ITEM 2. MANAGEMENT’S DISCUSSION AND ANALYSIS OF FINANCIAL CONDITION AND RESULTS OF OPERATIONS",
        "PART II. OTHER INFORMATION",
        "  ITEM 1. LEGAL PROCEEDINGS",
        "  ITEM 1A. RISK FACTORS",
    ]


def test_a_french_contract() -> None:
    text = (
        "CONTRAT DE BAIL\n\nEntre les soussignés, il est convenu ce qui suit et rien d'autre que cela.\n\nArticle 1 - Objet\n" + DIT
        + "\nArticle 2 - Durée\n" + DIT + "1° Six mois\n2° Un an\n\nArticle 12 - Résiliation\n" + DIT + "Conformément à\nl'article 2, il paie.\n"
        + "\nArticle 13 – Pénalités\n" + DIT + "\nPénalités de Retard\n" + DIT + "\nAnnexe A\nÉtat des lieux\n" + DIT
    )  # fmt: skip
    assert tree(recover_outline(text)) == [
        "CONTRAT DE BAIL",
        "Article 1 - Objet",
        "Article 2 - Durée",
        "Article 12 - Résiliation",
        "Article 13 – Pénalités",
        "  Pénalités de Retard",
        "Annexe A État des lieux",
    ]


def test_a_legal_code() -> None:
    text = (
        "Livre Ier : Dispositions générales\nTitre Ier : Principes\nChapitre Ier : Objet\nSection 1 : Champ\n"
        "Article L. 411-1\n" + DIT + "Article L. 411-2\n" + DIT
        + "Section 2 : Effets\nArticle L. 411-3\n" + DIT + "Chapitre II : Preuve\nArticle L. 412-1\n" + DIT
        + "Titre II : Contrats\nChapitre Ier : Formation\n" + DIT
    )  # fmt: skip
    assert tree(recover_outline(text)) == [
        "Livre Ier : Dispositions générales",
        "  Titre Ier : Principes",
        "    Chapitre Ier : Objet",
        "      Section 1 : Champ",
        "        Article L. 411-1",
        "        Article L. 411-2",
        "      Section 2 : Effets",
        "        Article L. 411-3",
        "    Chapitre II : Preuve",
        "      Article L. 412-1",
        "  Titre II : Contrats",
        "    Chapitre Ier : Formation",
    ]


def test_sections_stand_below_articles_where_articles_come_first() -> None:
    first = f"ARTICLE I\nDEFINITIONS\nSection 1.1 Certain Terms. As used here, words mean much.\n{SAID}Section 1.2 Rules\n{SAID}"
    text = f"{first}ARTICLE II\nCLOSING\nSection 2.1 The Closing\n{SAID}"
    outline = recover_outline(text)
    assert tree(outline) == [
        "ARTICLE I DEFINITIONS",
        "  Section 1.1 Certain Terms.",
        "  Section 1.2 Rules",
        "ARTICLE II CLOSING",
        "  Section 2.1 The Closing",
    ]
    assert text[outline.headings[1].body :].startswith(" As used here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Teil 1\nAllgemeines\n§ 1 Geltungsbereich\nDas gilt.\n§ 2 Begriffe\nSo ist es.\nTeil 2\nBesonderes\n§ 3 Verfahren\nEinfach.\n",
         ["Teil 1 Allgemeines", "  § 1 Geltungsbereich", "  § 2 Begriffe", "Teil 2 Besonderes", "  § 3 Verfahren"]),
        ("TÍTULO I\nDe todo\nCapítulo I\nObjeto\nArtículo 1. Objeto.\nLa ley lo dice.\nArtículo 2. Todos.\nCapítulo II\nOtros\nArtículo 3. Más.\nSí.\n",
         ["TÍTULO I De todo", "  Capítulo I Objeto", "    Artículo 1. Objeto.", "    Artículo 2. Todos.",
          "  Capítulo II Otros", "    Artículo 3. Más."]),
        ("第一章 总则\n第一条 为了保护合同当事人的合法权益，制定本法。\n第二条 本法所称合同是协议。\n第二章 合同的订立\n第三条 合同应当遵守法律。\n",
         ["第一章 总则", "  第一条", "  第二条", "第二章 合同的订立", "  第三条"]),
        ("第1章 総則\n第1条（目的）\nこの規則は、次のことを定める。\n第2章 雑則\n第3条\n前条の規定は、適用しない。\n",
         ["第1章 総則", "  第1条（目的）", "第2章 雑則", "  第3条"]),
        ("الباب 1 أحكام عامة\nالمادة 1\nنص المادة الأولى هنا.\nالمادة 2\nنص المادة الثانية هنا.\n", ["الباب 1 أحكام عامة", "  المادة 1", "  المادة 2"]),
    ],
    ids=["German", "Spanish", "Chinese", "Japanese", "Arabic"],
)  # fmt: skip
def test_laws_in_other_languages(text: str, expected: list[str]) -> None:
    assert tree(recover_outline(text)) == expected


def test_spans_paths_and_parents() -> None:
    text = "Before.\n1. Aim\r\nWe say it in words.\r\n1.1 Part\r\nWe say more of it.\r\n2. Means\r\nWe do it.\r\n"
    outline = recover_outline(text)
    first, part, second = outline.headings
    assert text[first.start : first.body] == "1. Aim\r\n"
    assert (first.end, part.end, second.end) == (second.start, second.start, len(text))
    assert (first.parent, part.parent, second.parent) == (None, 0, None)
    assert outline.path_at(0) == ()
    assert outline.index_at(0) is None
    assert outline.path_at(text.index("more of it")) == ("1. Aim", "1.1 Part")
    assert outline.path_at(len(text) + 10) == ("2. Means",)


@pytest.mark.parametrize("text", ["", "\n\n \n", "Just a sentence.", "word " * 1000, "\f\f\f", "12\n13\n14\n", "....\n....\n"])
def test_a_text_without_headings_has_an_empty_outline(text: str) -> None:
    outline = recover_outline(text)
    assert outline.headings == ()
    assert outline.path_at(3) == ()


def test_skipped_levels_are_closed_and_noted() -> None:
    outline = recover_outline("# A\ntext\n### C\ntext\n## B\ntext\n")
    assert [(heading.title, heading.level) for heading in outline.headings] == [("A", 1), ("C", 2), ("B", 2)]
    assert outline.notes == ("The heading 'C' has level 3 below level 1: the levels between are missing.",)


def test_notes_are_bounded() -> None:
    outline = recover_outline("text\n", bookmarks=[Bookmark(f"B {place}", 1, 1000) for place in range(50)])
    assert len(outline.notes) == 21
    assert outline.notes[-1] == "and 30 more"


def test_repeated_titles_are_kept_apart() -> None:
    outline = recover_outline("# A\n## Same\none\n# B\n## Same\ntwo\n")
    assert outline.path_at(12) == ("A", "Same")
    assert outline.headings[3].parent == 2


@pytest.mark.parametrize(
    "text",
    [
        "word and more words. " * 250_000,
        "".join(f"# Heading {place}\ntext\n" for place in range(10_000)),
        "".join(f"Article {place} - Heading\nSome running text that says something.\n" for place in range(1, 10_000)),
        "Article 1 - Heading\nSome running text.\n" * 10_000,
        "1. Heading\nSome running text.\n" * 10_000,
        "Contents\n" + "".join(f"Same title ..... {place}\n" for place in range(1, 2_500)) + "Same title\nSome running text.\n\n" * 2_500,
        ("." * 390 + "\n") * 2_000,
        ("a   b   " * 40 + "\n") * 2_000,
        "\f".join(f"Head\nPART I\nItem {place}. Foo\ntext {place}\n{place}" for place in range(3_000)),
    ],
    ids=["paragraph", "marks", "articles", "one article", "ones", "contents", "dots", "columns", "pages"],
)
def test_long_texts_take_seconds(text: str) -> None:
    begin = time.perf_counter()
    recover_outline(text)
    assert time.perf_counter() - begin < 20


LINES = st.sampled_from([
    "# One", "### Three", "Title", "===", "---", "PART I", "Part II - Other", "Item 1. Business", "Item 2. Things", "1. Aim", "1.1 Part", "2. Means",
    "A. First", "I. Start", "IV", "Contents", "Aim ..... 1", "Means ..... 2", "Item 3. Last Page 4", "Page 2", "NOTES", "LATE PAYMENT",
    "Late Payment", SAID.strip(), "Total 10 20",
    "- item", "```", "", " ", "\f", "第一章 总则", "Article 1 - Objet", "3", "Exhibit 1.1", "of the things", "(In millions)",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(LINES, max_size=40),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.tuples(st.sampled_from(["Aim", "Other"]), st.integers(0, 4), st.integers(-5, 400)), max_size=3),
    st.booleans(),
)
def test_an_outline_is_always_a_tree_in_the_order_of_the_text(lines: list[str], end: str, marks: list[tuple[str, int, int]], paged: bool) -> None:
    text = end.join(lines)
    pages = range(0, len(text), 50) if paged else ()
    outline = recover_outline(text, page_starts=pages, bookmarks=[Bookmark(*mark) for mark in marks])
    headings = outline.headings
    starts = [heading.start for heading in headings]
    assert starts == sorted(set(starts))
    for place, heading in enumerate(headings):
        assert 0 <= heading.start <= heading.body <= heading.end <= len(text)
        assert heading.title
        assert heading.title == " ".join(heading.title.split())
        assert len(heading.title) <= 200
        if heading.parent is None:
            assert heading.level == 1
        else:
            assert heading.parent < place
            assert heading.level == headings[heading.parent].level + 1
            assert headings[heading.parent].start < heading.start
            assert heading.end <= headings[heading.parent].end
        for after in headings[place + 1 :]:
            assert after.start >= heading.end or after.level > heading.level
        assert outline.path_at(heading.start)[-1] == heading.title
