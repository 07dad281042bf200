import builtins
import inspect
import pickle

import pytest

from llama_index_advanced_rag import errors
from llama_index_advanced_rag.errors import AdvancedRagError, LLMOutputError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, AdvancedRagError)]
OWN = [kind for kind in CLASSES if kind is not AdvancedRagError]


def make(kind: type[AdvancedRagError]) -> AdvancedRagError:
    return kind("condense", 2, "nonsense", "It is no JSON.") if kind is LLMOutputError else kind("What is wrong. What to do.")


@pytest.mark.parametrize("kind", OWN)
def test_each_error_is_also_the_builtin_a_caller_would_catch(kind: type[AdvancedRagError]):
    assert [base for base in kind.__mro__ if base.__module__ == "builtins" and base not in (Exception, BaseException, object)]
    assert getattr(builtins, kind.__name__, None) is None
    assert inspect.getdoc(kind)


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_crosses_processes_and_keeps_its_message(kind: type[AdvancedRagError]):
    again = pickle.loads(pickle.dumps(make(kind)))
    assert type(again) is kind
    assert str(again) == str(make(kind))


@pytest.mark.parametrize("kind", CLASSES)
def test_the_message_is_text_also_for_errors_of_the_operating_system(kind: type[AdvancedRagError]):
    assert ("What is wrong. What to do." in str(make(kind))) or kind is LLMOutputError


def test_an_unusable_answer_carries_prompt_attempts_and_its_beginning():
    error = LLMOutputError("multi_query", 3, "x" * 1000, "It is no JSON array.")
    assert (error.prompt_name, error.attempts, error.output) == ("multi_query", 3, "x" * 300)
    assert str(error) == f"The answer to prompt 'multi_query' could not be used after 3 attempt(s): It is no JSON array. It began with: {'x' * 300!r}"
    again = pickle.loads(pickle.dumps(error))
    assert (again.prompt_name, again.attempts, again.output) == ("multi_query", 3, "x" * 300)
