from enum import Enum

import numpy as np
import pytest

from llama_index_advanced_rag._choices import parse_choice, positive_number, whole_number
from llama_index_advanced_rag.errors import ConfigurationError


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


def test_a_choice_is_given_as_member_or_value():
    assert parse_choice(Colour, "red", argument="colour") is parse_choice(Colour, Colour.RED, argument="colour") is Colour.RED


@pytest.mark.parametrize("value", ["green", "RED", None, 3, ["red"]])
def test_an_unknown_choice_lists_those_there_are(value: object):
    with pytest.raises(ConfigurationError) as caught:
        parse_choice(Colour, value, argument="colour")
    assert str(caught.value) == f"colour is {value!r}. It must be one of 'red', 'blue'."


@pytest.mark.parametrize("value", [1, 7, np.int64(7)])
def test_a_whole_number_is_a_plain_int(value: int):
    assert type(whole_number("top_n", value)) is int
    assert whole_number("top_n", value) == value


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True, float("nan"), [1]])
def test_what_is_no_whole_number_is_refused(value: object):
    with pytest.raises(ConfigurationError, match="It must be a whole number of at least 1"):
        whole_number("top_n", value)


def test_the_least_can_be_chosen():
    assert whole_number("min_nodes", 0, least=0) == 0
    with pytest.raises(ConfigurationError, match=r"min_nodes is -1\. It must be a whole number of at least 0\."):
        whole_number("min_nodes", -1, least=0)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), float("inf")])
def test_a_positive_number_is_a_plain_float(value: float):
    assert type(positive_number("timeout_s", value)) is float


@pytest.mark.parametrize("value", [0, -0.1, float("nan"), "1", None, True])
def test_what_is_no_positive_number_is_refused(value: object):
    with pytest.raises(ConfigurationError, match="It must be a number above 0"):
        positive_number("timeout_s", value)
