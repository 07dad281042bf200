"""SIGKILL at any instant of an update: the index is what the last commit made of it, sound, and goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs the signals of a POSIX system")
SCRIPT = Path(__file__).with_name("killed_updates.py")


def kills(place: Path, n_instants: int, what: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(SCRIPT), str(place), str(n_instants), what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env={**os.environ, "PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["points"] > 5 * n_instants, "the instants are not different ones"
    return found["kills"]


@pytest.mark.parametrize(("what", "n_instants"), [("update", 50), ("build", 8)])
def test_after_a_kill_at_any_instant_every_commit_is_there_whole(tmp_path: Path, what: str, n_instants: int) -> None:
    found = kills(tmp_path, n_instants, what)
    assert len(found) == n_instants
    for one in found:
        assert one["killed"] or one["delay_s"], one  # a delay may be longer than the rest of the update
        assert one["known"], ("not what the commits made", one)
        assert (one["problems"], one["unanswered"]) == ([], []), one
        assert one["after"] == {"skipped": 0, "found": "d30", "leftovers": [], "problems": []}, one
