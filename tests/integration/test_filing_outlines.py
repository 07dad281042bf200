"""The outlines of twenty quarterly reports: every Part and Item once, in its place, with the statements and notes below."""

import re
from pathlib import Path

import pytest

from llama_index_advanced_rag.reading.folder import read_folder
from llama_index_advanced_rag.text.outline import Heading, HeadingSource, Outline, recover_outline

pytestmark = [pytest.mark.data, pytest.mark.timeout(300)]
PART = re.compile(r"part\s+(I{1,3})\b", re.IGNORECASE)
ITEM = re.compile(r"item\s+(\d+A?)\.", re.IGNORECASE)
NOTE = re.compile(r"note\s+(\d+)\b", re.IGNORECASE)
FIRST = ["1", "2", "3", "4"]
ALL_OF_SECOND = ["1", "1A", "2", "3", "4", "5", "6"]
SECOND = {"AAPL": ALL_OF_SECOND, "AMZN": ALL_OF_SECOND, "MSFT": ["1", "1A", "2", "6"], "NVDA": ["1", "1A", "2", "6"]}
WITH_ITEM_5 = ("2023 Q3 MSFT.pdf", "2023 Q2 NVDA.pdf", "2023 Q3 NVDA.pdf")
ITEMS_OF_INTEL = [*FIRST, *ALL_OF_SECOND]

Read = dict[str, tuple[str, Outline]]


@pytest.fixture(scope="module")
def outlines(data_root: Path) -> Read:
    documents = read_folder(str(data_root / "sec-10-q" / "docs")).documents
    return {
        document.metadata["file_name"]: (document.text, recover_outline(document.text, page_starts=document.metadata["page_starts"])) for document in documents
    }


def of_company(outlines: Read, *companies: str) -> Read:
    return {name: read for name, read in outlines.items() if name[8:12] in companies}


def below(outline: Outline, parent: int, pattern: re.Pattern[str]) -> list[str]:
    return [match[1] for heading in outline.headings if heading.parent == parent and (match := pattern.match(heading.title))]


def all_below(outline: Outline, top: int) -> list[Heading]:
    end = outline.headings[top].end
    return [heading for heading in outline.headings[top + 1 :] if heading.start < end]


def place_of(outline: Outline, pattern: str) -> int:
    return next(place for place, heading in enumerate(outline.headings) if re.match(pattern, heading.title, re.IGNORECASE))


def test_twenty_filings_are_read(outlines: Read) -> None:
    assert len(outlines) == 20


def test_each_part_has_each_of_its_items_once(outlines: Read) -> None:
    for name, (_, outline) in of_company(outlines, *SECOND).items():
        parts = [place for place, heading in enumerate(outline.headings) if PART.match(heading.title)]
        assert [(outline.headings[place].level, outline.headings[place].title.split()[1].strip(".:")) for place in parts] == [(1, "I"), (1, "II")], name
        second = SECOND[name[8:12]]
        if name in WITH_ITEM_5:
            second = [*second[:-1], "5", "6"]
        assert below(outline, parts[0], ITEM) == FIRST, name
        assert below(outline, parts[1], ITEM) == second, name
        items = [heading for heading in outline.headings if ITEM.match(heading.title)]
        assert len(items) == len(FIRST) + len(second), name


def test_items_stand_in_the_body_and_not_in_the_contents(outlines: Read) -> None:
    for name, (text, outline) in of_company(outlines, *SECOND).items():
        first = outline.headings[place_of(outline, r"item 1\.")]
        assert "three months ended" in text[first.body : first.body + 600].casefold(), name
        for heading in outline.headings:
            if ITEM.match(heading.title):
                assert text[heading.start : heading.start + 4].casefold() == "item", (name, heading.title)
                assert not re.search(r"\d$", heading.title), (name, heading.title)


def test_statements_and_notes_stand_below_the_first_item(outlines: Read) -> None:
    for name, (_, outline) in of_company(outlines, *SECOND).items():
        titles = [heading.title for heading in all_below(outline, place_of(outline, r"item 1\."))]
        for words in ("income statement|statements of (?:income|operations)", "balance sheets", "cash flows? ?statements|statements of cash flows", "notes to"):
            assert any(re.search(words, title, re.IGNORECASE) for title in titles), (name, words)
        notes = [int(match[1]) for title in titles if (match := NOTE.match(title))]
        assert len(notes) >= 8, name
        assert notes == list(range(1, len(notes) + 1)), name


def test_the_discussion_has_headings_of_its_own(outlines: Read) -> None:
    words = {"AAPL": "Gross Margin", "AMZN": "Free Cash Flow", "MSFT": "OVERVIEW", "NVDA": "Liquidity"}
    for name, (_, outline) in of_company(outlines, *SECOND).items():
        titles = [heading.title for heading in all_below(outline, place_of(outline, r"item 2\. management"))]
        assert words[name[8:12]] in titles, name
        assert len(titles) >= 10, name


def test_the_cross_reference_index_of_a_free_form_filing_names_sections(outlines: Read) -> None:
    for name, (text, outline) in of_company(outlines, "INTC").items():
        items = [(match[1].upper(), heading) for heading in outline.headings if (match := ITEM.match(heading.title))]
        assert sorted(number for number, _ in items) == sorted(ITEMS_OF_INTEL), name
        index = outline.headings[place_of(outline, "form 10-q cross-reference index")]
        early = {number for number, heading in items if heading.end <= index.start}
        assert {"1", "1A", "3", "4", "6"} <= early, name
        risk = next(heading for number, heading in items if number == "3" and "Market Risk" in heading.title)
        assert text[risk.start : risk.body].strip().casefold() == "quantitative and qualitative disclosures about market risk", name


def test_contents_without_numbers_give_the_top_of_the_tree(outlines: Read) -> None:
    for name, (_, outline) in of_company(outlines, "INTC").items():
        tops = [heading.title for heading in outline.headings if heading.level == 1]
        assert {"Forward-Looking Statements", "Other Key Information"} <= set(tops), name
        notes = outline.headings[place_of(outline, "notes to consolidated condensed financial statements")]
        assert sum(heading.source is HeadingSource.NUMBER and notes.start < heading.start < notes.end for heading in outline.headings) >= 10, name


def test_spans_are_nested_and_in_order(outlines: Read) -> None:
    for name, (text, outline) in outlines.items():
        starts = [heading.start for heading in outline.headings]
        assert starts == sorted(set(starts)), name
        for heading in outline.headings:
            assert 0 <= heading.start <= heading.body <= heading.end <= len(text), (name, heading.title)
            if heading.parent is not None:
                assert outline.headings[heading.parent].end >= heading.end, (name, heading.title)
