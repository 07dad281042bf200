import pytest

from llama_index_advanced_rag.hierarchy.prefixes import MAX_HEADING_TOKENS, PrefixRoom, fitting_beginning, fitting_path


def at_most(words: int):
    return lambda line: len(line.split()) <= words


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (7, "Part I > Item 2 > Sales"),
        (6, "… > Item 2 > Sales"),
        (5, "… > Sales"),
        (3, "… > Sales"),
        (2, "Sales"),
        (0, None),
    ],
)
def test_outer_headings_are_left_out_first(words: int, path: str | None) -> None:
    assert fitting_path(["Part I", "Item 2", "Sales"], at_most(words)) == path


def test_the_whole_path_is_kept_where_the_mark_would_be_longer() -> None:
    assert fitting_path(["I", "Sales"], lambda path: len(path) <= 9) == "I > Sales"


def test_one_long_heading_is_cut() -> None:
    assert fitting_path(["Outer", "One two three four five"], at_most(4)) == "One two three …"
    assert fitting_path(["第一章总则第二章分则"], lambda path: len(path) <= 6) == "第一章总 …"
    assert fitting_path([], at_most(9)) is None


def test_very_deep_paths_end_somewhere() -> None:
    path = fitting_path([str(number) for number in range(100_000)], lambda _: True)
    assert path is not None
    assert path.startswith("… > 99984 > ")


def test_beginnings_do_not_end_in_a_sign() -> None:
    assert fitting_beginning("| Name | Price | Stock |", at_most(6)) == "| Name | Price …"
    assert fitting_beginning("July 1, 2023", at_most(2)) == "July …"
    assert fitting_beginning("July", at_most(0)) is None


def test_what_the_document_has_itself_counts_and_stays() -> None:
    shape = {"metadata": {"title": "A B"}, "metadata_template": "{value}"}
    room = PrefixRoom(shape, lambda text: len(text.split()), max_tokens=6)
    assert (room.own_tokens, room.path(["One", "Two"]), room.tokens("One > Two")) == (2, "One > Two", 5)
    assert room.path(["One", "Two", "Three"]) == "… > Three"
    assert room.header("One", "Name and Its Price") == "Name and …"
    taken = PrefixRoom({"metadata": {"heading": "x", "table_header": "y"}}, lambda text: len(text.split()), max_tokens=6)
    assert (taken.path(["One"]), taken.header(None, "Name")) == (None, None)


def test_a_heading_takes_few_tokens_also_where_there_is_room() -> None:
    room = PrefixRoom({"metadata": {"title": "A B"}, "metadata_template": "{value}"}, lambda text: len(text.split()), max_tokens=48)
    own, outer = "word " * (MAX_HEADING_TOKENS - 2), "Part I"
    assert room.path([outer, own.strip()]) == f"… > {own.strip()}"
    assert room.tokens(room.path([outer, own.strip()])) == 2 + MAX_HEADING_TOKENS
    assert room.path([own + own]) == f"{own}word …"
