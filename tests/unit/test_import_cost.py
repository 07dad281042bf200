"""Importing the package loads nothing heavy: checked on module names, not on time."""

import json
import subprocess
import sys

import pytest

import llama_index_advanced_rag

HEAVY = ["torch", "transformers", "sentence_transformers", "scipy", "neo4j", "bm25s", "openai", "Stemmer", "bs4", "typer", "pypdfium2", "docx", "sklearn"]
SHOW_MODULES = "import sys, json; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def modules_after(statement: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", f"{statement}\n{SHOW_MODULES}"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return set(json.loads(run.stdout))


@pytest.fixture(scope="module")
def core_modules() -> set[str]:
    return modules_after("import llama_index.core")


def test_the_package_itself_adds_nothing(core_modules: set[str]):
    added = modules_after("import llama_index_advanced_rag") - core_modules
    assert added == {"llama_index_advanced_rag"}


def test_importing_every_public_name_loads_nothing_heavy(core_modules: set[str]):
    names = ", ".join(llama_index_advanced_rag.__all__)
    added = modules_after(f"from llama_index_advanced_rag import {names}") - core_modules
    assert sorted(added & set(HEAVY)) == []


@pytest.mark.parametrize("module", ["testing", "prompts", "retrievers.base"])
def test_other_modules_load_nothing_heavy(core_modules: set[str], module: str):
    assert sorted((modules_after(f"import llama_index_advanced_rag.{module}") - core_modules) & set(HEAVY)) == []


def test_public_names_are_listed_and_unknown_ones_are_refused():
    assert set(llama_index_advanced_rag.__all__) <= set(dir(llama_index_advanced_rag))
    with pytest.raises(AttributeError, match="'Nonsense'; it offers AdaptiveQueryEngine"):
        _ = llama_index_advanced_rag.Nonsense
