import copy

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.stores.postings.term_table import encode_term, make_term_table

# few letters, so that many terms share their first eight bytes; lone surrogates and zero characters are terms too
terms_of = st.text(st.sampled_from("ab\0é\ud800\U0001f600"), max_size=12)


@given(st.sets(terms_of, max_size=40), st.sets(terms_of, max_size=10))
def test_every_term_is_found_at_its_place_and_no_other(held, others):
    ordered = sorted(map(encode_term, held))
    table = make_term_table(ordered)
    assert table.terms() == ordered
    assert {term: table.find(term) for term in held} == {term: ordered.index(encode_term(term)) for term in held}
    assert all(table.find(term) is None for term in others - held)


def test_terms_that_begin_with_the_greatest_and_the_least_prefix():
    ordered = [b"", b"\0", b"\0" * 8, b"\0" * 9, b"\xff" * 8, b"\xff" * 9]
    table = make_term_table(ordered)
    assert [table.find(term) for term in ("", "\0", "\0" * 8, "\0" * 9)] == [0, 1, 2, 3]
    assert table.find("\0" * 10) is None


def test_a_used_table_can_be_copied():
    table = make_term_table([b"a", b"b"])
    assert table.find("b") == 1
    again = copy.deepcopy(table)
    assert (again.find("b"), np.array_equal(again.text, table.text)) == (1, True)
