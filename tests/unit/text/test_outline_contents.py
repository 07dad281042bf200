from llama_index_advanced_rag.text.outline import HeadingSource, Outline, recover_outline
from llama_index_advanced_rag.text.outlines.contents import Entry, find_contents
from llama_index_advanced_rag.text.outlines.lines import read_layout

SAID = "The parties agree on the following terms and shall keep them in good faith at all times.\n"
TOC = (
    "Report header\nContents\n1 Introduction ...... 2\n1.1 Background ...... 2\n2 Methods with a very long title that goes on over the\n"
    "line ...... 3\nPage i\n\fReport header\n3 Results ..... 4\nAppendix A Data ...... 5\n\f"
)


def tree(outline: Outline) -> list[str]:
    return [f"{'  ' * (heading.level - 1)}{heading.title}" for heading in outline.headings]


def entries(text: str) -> list[Entry]:
    return [entry for table in find_contents(read_layout(text)) for entry in table.entries]


def test_contents_over_two_pages_with_wrapped_entries() -> None:
    body = "\fReport header\n".join(
        f"{title}\n{SAID}"
        for title in ("1 Introduction", "1.1 Background", "2 Methods with a very long title that goes on over the line", "3 Results", "Appendix A Data")
    )
    text = f"{TOC}Report header\n{body}"
    assert [entry.title for entry in entries(text)] == [
        "1 Introduction",
        "1.1 Background",
        "2 Methods with a very long title that goes on over the line",
        "3 Results",
        "Appendix A Data",
    ]
    outline = recover_outline(text)
    assert tree(outline) == [
        "1 Introduction",
        "  1.1 Background",
        "2 Methods with a very long title that goes on over the line",
        "3 Results",
        "Appendix A Data",
    ]
    assert outline.headings[0].start > len(TOC)


def test_entries_without_numbers_are_headings_where_their_title_stands() -> None:
    text = f"Summary\n{SAID}\nTable of Contents\nA quiet start 1\nsome facts 2\nthe end 3\n\nA quiet start\n{SAID}some facts\n{SAID}the end\n{SAID}"
    outline = recover_outline(text)
    assert tree(outline)[-3:] == ["A quiet start", "some facts", "the end"]
    assert {heading.source for heading in outline.headings[-3:]} == {HeadingSource.CONTENTS}


def test_an_entry_without_its_title_in_the_text_stands_at_its_page() -> None:
    pages = [
        "Sommaire\nIntroduction .... 1\nLes faits .... 2\nConclusion .... 3\n",
        f"Introduction\n{SAID}1\n",
        f"Ce qui suit est long.\n{SAID}2\n",
        f"Conclusion\n{SAID}3\n",
        f"{SAID}4\n",
    ]
    text = "\f".join(pages)
    outline = recover_outline(text)
    assert tree(outline) == ["Introduction", "Les faits", "Conclusion"]
    assert text[outline.headings[1].start :].startswith("Ce qui suit")
    assert outline.headings[1].start == outline.headings[1].body


def test_an_entry_without_any_place_is_noted() -> None:
    outline = recover_outline(f"Contents\nAlpha thing 1\nBeta thing 2\nGamma thing 3\n\nAlpha thing\n{SAID}Gamma thing\n{SAID}")
    assert tree(outline) == ["Alpha thing", "Gamma thing"]
    assert outline.notes == ("The entry 'Beta thing' of the table of contents has no place in the text.",)


def test_contents_that_contradict_the_text_are_noted() -> None:
    outline = recover_outline(f"Contents\nItem 1. Business ... 1\nItem 2. Property ... 2\n\nItem 1. Business\n{SAID}Item 2. Things we own\n{SAID}")
    assert tree(outline) == ["Item 1. Business", "Item 2. Things we own"]
    assert outline.notes == ("The table of contents says 'Item 2. Property' where the text says 'Item 2. Things we own'.",)


def test_entries_in_another_order_are_placed_and_noted() -> None:
    outline = recover_outline(f"Contents\nAlpha thing ... 1\nBeta thing ... 2\nGamma thing ... 3\n\nBeta thing\n{SAID}Alpha thing\n{SAID}Gamma thing\n{SAID}")
    assert tree(outline) == ["Beta thing", "Alpha thing", "Gamma thing"]
    assert len(outline.notes) == 1


def test_parts_and_statements_of_an_entry_stand_below_it() -> None:
    parts = "a) Income for the year 3\nb) Notes to the statements 4\n"
    contents = f"INDEX\nPage\nPART I. FIGURES\nItem 1. Statements\n{parts}Item 2. Discussion 5\nPART II. REST\nItem 1. Suits 6\nSIGNATURE 7\n\n"
    text = f"{contents}PART I. FIGURES\nITEM 1. STATEMENTS\nINCOME FOR THE YEAR\n{SAID}NOTES TO THE STATEMENTS\nNOTE 1 - RULES\n{SAID}NOTE 2 - RENT\n{SAID}"
    text += f"ITEM 2. DISCUSSION\n{SAID}PART II. REST\nITEM 1. SUITS\n{SAID}SIGNATURE\n{SAID}"
    assert tree(recover_outline(text)) == [
        "PART I. FIGURES",
        "  ITEM 1. STATEMENTS",
        "    INCOME FOR THE YEAR",
        "    NOTES TO THE STATEMENTS",
        "      NOTE 1 - RULES",
        "      NOTE 2 - RENT",
        "  ITEM 2. DISCUSSION",
        "PART II. REST",
        "  ITEM 1. SUITS",
        "SIGNATURE",
    ]


def test_groups_without_a_page_stand_above_their_entries() -> None:
    contents = "Contents\nOpening words 1\nFigures of the year\nIncome and costs 2\nAssets and debts 3\n\n"
    text = f"{contents}Opening words\n{SAID}Figures of the year\nIncome and costs\n{SAID}Assets and debts\n{SAID}"
    assert tree(recover_outline(text)) == ["Opening words", "Figures of the year", "  Income and costs", "  Assets and debts"]


def test_a_cross_reference_index_at_the_end_names_the_sections() -> None:
    pages = [f"Opening\n{SAID}1\n", f"Figures\n{SAID}2\n", f"Market Risk\n{SAID}3\n", f"Controls and Procedures\n{SAID}4\n", f"{SAID}5\n"]
    items = "Item 3. Market Risk Page 3\nItem 4. Controls and Procedures Page 4\nItem 5. Mines Not applicable\n"
    index = f"Cross-Reference Index\nPart I - Figures\nItem 1. Statements Pages 2 - 3\n{items}Item 6. Lists Page 5\n6\n"
    text = "\f".join([*pages, index])
    outline = recover_outline(text)
    where = {heading.title: text[heading.start : heading.start + 11] for heading in outline.headings}
    assert where["Part I - Figures"] == "Figures\nThe"
    assert where["Item 1. Statements"] == "The parties"
    assert where["Item 3. Market Risk"] == "Market Risk"
    assert where["Item 4. Controls and Procedures"] == "Controls an"
    assert where["Item 5. Mines"] == "Item 5. Min"
    assert [heading.title for heading in outline.headings if heading.level > 1][-1] == "Item 5. Mines"


def test_contents_without_page_numbers_are_no_headings() -> None:
    body = f"Article 1 - Alpha\n{SAID}Article 2 - Beta\n{SAID}Article 3 - Gamma\n{SAID}"
    outline = recover_outline(f"Article 1 - Alpha\nArticle 2 - Beta\nArticle 3 - Gamma\n\n{body}")
    assert tree(outline) == ["Article 1 - Alpha", "Article 2 - Beta", "Article 3 - Gamma"]
    assert outline.headings[0].start > 40


def test_rows_of_a_table_are_no_contents() -> None:
    assert entries("Apples 12\nPears 14\nPlums 19\nCherries 25\nGrapes 31\n") == []


def test_contents_cut_off_are_fine() -> None:
    text = f"Contents\n1 Aim ... 1\n2 Means ... 2\n\n1 Aim\n{SAID}2 Means\n{SAID}3 End\n{SAID}"
    assert tree(recover_outline(text)) == ["1 Aim", "2 Means", "3 End"]
