"""An update that is cut short: interrupted, out of disk, without permission, beside another process. Nothing committed is lost."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.errors import StorageError
from llama_index_advanced_rag.testing import DeterministicEmbedding

NUMBERS = range(24)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs the signals and users of a POSIX system")

# What every child process below begins with: an update that can be told by its words, in small batches.
CHILD = """
import json, os, sys
from llama_index.core import Settings
from llama_index.core.schema import Document
from llama_index_advanced_rag import CorpusIndex, cli, indexing
from llama_index_advanced_rag.testing import DeterministicEmbedding
indexing.BATCH_NODES = 2
folder = sys.argv[1]
def document(number, version):
    return Document(text=f"word{number} and version{version} of it", id_=f"d{number}")
class Told(DeterministicEmbedding):
    def _get_text_embedding(self, text):
        os.write(1, b".")
        return super()._get_text_embedding(text)
def update(version):
    place = folder if os.path.exists(folder) else None
    index = CorpusIndex.load(folder, embed_model=Told()) if place else CorpusIndex(persist_dir=folder, embed_model=Told())
    with index:
        index.apply(updated=[document(number, version) for number in range(24)])
"""


def run(code, *arguments, **options):
    environment = {**os.environ, "PYTHONUTF8": "1", **options.pop("environment", {})}
    done = subprocess.run([sys.executable, "-c", CHILD + code, *map(str, arguments)], capture_output=True, text=True, timeout=250, check=False, env=environment)
    assert done.returncode == options.get("code", 0), done.stderr
    return done


def documents(version=0, numbers=NUMBERS):
    return [Document(text=f"word{number} and version{version} of it", id_=f"d{number}") for number in numbers]


def check(folder, numbers=NUMBERS):
    """Every document answers, in both ways of searching, and the file is sound."""
    with CorpusIndex.load(folder, embed_model=DeterministicEmbedding()) as index:
        assert {info.ref_doc_id for info in index.list_documents()} == {f"d{number}" for number in numbers}
        for number in numbers:
            assert index.as_retriever("lexical", similarity_top_k=1).retrieve(f"word{number}")[0].node.ref_doc_id == f"d{number}"
            assert f"d{number}" in {hit.node.ref_doc_id for hit in index.as_retriever("dense", similarity_top_k=len(numbers)).retrieve(f"word{number}")}
        assert index.corpus.database.integrity_problems() == []
        return index.as_retriever("lexical", similarity_top_k=1).retrieve("word0")[0].node.get_content()


def test_ctrl_c_keeps_what_is_done_and_the_command_goes_on(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in NUMBERS:
        (docs / f"d{number}.txt").write_text(f"word{number} sleeps.", encoding="utf-8")
    code = "Settings._embed_model = {}\nsys.argv = ['advanced-rag', 'index', folder, '--json']\ncli.main()"
    heed = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
    command = [sys.executable, "-c", CHILD + heed + code.format("Told(delay_s=0.05)"), str(docs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.read(8) == b"." * 8
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors.decode().splitlines()) == (130, ["interrupted; finished documents are kept, the same command goes on from there"])
    report = json.loads(run(code.format("DeterministicEmbedding()"), docs).stdout)["report"]
    assert len(report["added"]) + len(report["unchanged"]) == len(NUMBERS)
    assert len(report["unchanged"]) >= 4


def test_a_full_disk_during_an_update_keeps_every_batch_before_it(tmp_path):
    with CorpusIndex.from_documents(documents(), persist_dir=tmp_path / "i", embed_model=DeterministicEmbedding()) as index:
        database = index.corpus.database
        before = [(item.node.node_id, item.score) for item in index.as_retriever().retrieve("word3")]
        database.query(f"PRAGMA max_page_count = {database.query('PRAGMA page_count')[0][0] + 8}")
        with pytest.raises(StorageError, match="disk is full"):
            index.apply(updated=[Document(text="long text " * 200 + f"number{number}", id_=f"new{number}") for number in range(300)])
        assert [(item.node.node_id, item.score) for item in index.as_retriever().retrieve("word3")] == before
    assert check(tmp_path / "i") == "word0 and version0 of it"


@pytest.mark.parametrize("kilobytes", [2, 70])
def test_a_disk_that_is_full_at_the_first_build_leaves_nothing_in_the_way(tmp_path, kilobytes):
    limit = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes} * 1024, resource.RLIM_INFINITY))
from llama_index_advanced_rag.errors import StorageError
try:
    update(1)
except StorageError as error:
    print(error, file=sys.stderr)
else:
    sys.exit("the disk was large enough")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
CorpusIndex.from_documents([document(n, 2) for n in range(24)], persist_dir=folder, embed_model=DeterministicEmbedding(), overwrite=True).close()
"""
    assert "disk" in run(limit, tmp_path / "i").stderr
    assert check(tmp_path / "i") == "word0 and version2 of it"


def test_asked_while_another_process_writes(tmp_path):
    with CorpusIndex.from_documents(documents(), persist_dir=tmp_path / "i", embed_model=DeterministicEmbedding()) as index:
        retriever = index.as_retriever("lexical", similarity_top_k=1)
        with subprocess.Popen(
            [sys.executable, "-c", CHILD + "for version in range(1, 6): update(version)", str(tmp_path / "i")], stdout=subprocess.DEVNULL
        ) as child:
            while child.poll() is None:
                for number in NUMBERS:
                    assert retriever.retrieve(f"word{number}")[0].node.ref_doc_id == f"d{number}"
        assert child.returncode == 0
        assert retriever.retrieve("word7")[0].node.get_content() == "word7 and version5 of it"


PERMISSIONS = """
from typer.testing import CliRunner
Settings._embed_model = DeterministicEmbedding()
def call(*arguments):
    result = CliRunner().invoke(cli.app, [*arguments, "--json"])
    assert "Traceback" not in result.stderr, result.stderr
    return [result.exit_code, json.loads(result.stdout)]
root = folder
call("ask", "What does word1 do in warm places?", "--docs", root + "/warm")  # everything is imported while this may read it
if os.getuid() == 0:
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
cases = {
    "unreadable": ["index", root + "/docs", "--index-dir", root + "/open/i"],
    "nowhere": ["ask", "word1", "--docs", root + "/docs"],
    "readonly": ["ask", "word1", "--docs", root + "/indexed"],
    "update": ["update", "--docs", root + "/indexed"],
    "closed": ["ask", "word1", "--docs", root + "/closed"],
}
print(json.dumps({name: call(*arguments) for name, arguments in cases.items()}), file=sys.stderr)
"""


@pytest.fixture
def places():
    """Folders that another user may reach, with and without permissions."""
    with tempfile.TemporaryDirectory(prefix="arag-") as root:
        Path(root).chmod(0o755)
        for name in ("warm", "docs", "docs/below", "indexed", "closed"):
            (Path(root) / name).mkdir()
            (Path(root) / name / "one.txt").write_text(f"word1 in {name}.", encoding="utf-8")
        (Path(root) / "open").mkdir(mode=0o777)
        (Path(root) / "open").chmod(0o777)
        yield Path(root)
        for path in Path(root).rglob("*"):
            path.chmod(0o755)


def test_files_and_folders_without_permission(places):
    for name in ("indexed", "closed"):
        place = places / name / ".advanced-rag"
        CorpusIndex.from_documents([Document(text="word1 sleeps.", id_="one.txt")], persist_dir=place, embed_model=DeterministicEmbedding()).close()
        for file in place.iterdir():
            file.chmod(0o444)
    (places / "docs" / "secret.txt").write_text("secret", encoding="utf-8")
    for path, mode in {
        "docs/secret.txt": 0,
        "docs/below": 0,
        "docs": 0o555,
        "indexed/.advanced-rag": 0o555,
        "indexed": 0o555,
        "closed/.advanced-rag": 0,
    }.items():
        (places / path).chmod(mode)
    cases = json.loads(run(PERMISSIONS, places, environment={"XDG_CACHE_HOME": "/nonexistent/cache"}).stderr.splitlines()[-1])
    code, facts = cases["unreadable"]
    assert (code, facts["report"]["added"]) == (3, ["one.txt"])
    assert {item["path"]: item["reason"] for item in facts["skipped_files"]} == {
        "secret.txt": "may not be read (permission denied)",
        "below": "is a folder that cannot be listed (Permission denied)",
    }
    assert cases["nowhere"][0] == 1
    assert "Name another folder with --index-dir" in cases["nowhere"][1]["error"]["message"]
    code, answer = cases["readonly"]
    assert (code, answer.get("error"), answer["citations"][0]["file"]) == (0, None, "one.txt")
    assert "cannot be written: 1 new or changed" in answer["index"]["warnings"][-1]
    assert cases["update"][0] == 3
    assert cases["closed"][0] == 1
    assert "Check its permissions" in cases["closed"][1]["error"]["message"]


def test_documents_in_a_folder_that_cannot_be_listed_now_stay_indexed(tmp_path, monkeypatch):
    from llama_index_advanced_rag.folder_index import sync_folder
    from llama_index_advanced_rag.reading import walk

    (tmp_path / "docs" / "below").mkdir(parents=True)
    for place in ("a.txt", "below/b.txt"):
        (tmp_path / "docs" / place).write_text(f"text of {place}", encoding="utf-8")
    sync_folder(tmp_path / "docs", embed_model=DeterministicEmbedding()).index.close()
    entries = walk._entries

    def refuse(folder):
        if folder.name == "below":
            raise PermissionError(13, "Permission denied")
        return entries(folder)

    monkeypatch.setattr(walk, "_entries", refuse)
    update = sync_folder(tmp_path / "docs", embed_model=DeterministicEmbedding())
    with update.index as index:
        assert [info.ref_doc_id for info in index.list_documents()] == ["a.txt", "below/b.txt"]
    assert update.warnings == ["below/b.txt: cannot be read now; the version indexed before is kept"]
