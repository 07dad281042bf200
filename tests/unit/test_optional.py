import sys
from pathlib import Path

import pytest

from llama_index_advanced_rag._optional import require
from llama_index_advanced_rag.errors import MissingExtraError


def test_an_installed_module_is_imported():
    assert require("json.decoder", extra="files", feature="Reading JSON") is sys.modules["json.decoder"]


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part", "json.no_such_part"])
def test_a_missing_module_names_the_feature_and_the_exact_command(module: str):
    with pytest.raises(MissingExtraError) as caught:
        require(module, extra="files", feature="Reading PDF files")
    message = str(caught.value)
    assert message.startswith("Reading PDF files needs the package")
    assert message.endswith("Install it with: pip install 'llama-index-advanced-rag[files]'")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_module_that_misses_another_one_is_not_mistaken_for_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "half_installed.py").write_text("import its_own_missing_dependency", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="its_own_missing_dependency") as caught:
        require("half_installed", extra="files", feature="Anything")
    assert not isinstance(caught.value, MissingExtraError)


def test_a_broken_module_raises_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('a library is missing')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RuntimeError, match="a library is missing"):
        require("broken_module", extra="files", feature="Anything")
