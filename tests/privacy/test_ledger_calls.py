"""A draw that is killed, or fails, at a single call to the operating system: it is counted if it was granted."""

import itertools
import os
import re
import shutil
import subprocess

import pytest

from dpviz.privacy.ledger import Ledger
from tests.ledgers import opened, program, run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and system calls are POSIX's")

SPEND = """
print(json.dumps(attempt(lambda: ledger.pay("visits", [MARK], RECORDS, PureBudget("1/1000"), mechanism="quadtree")[1].id)), flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return opened(tmp_path / "ledger.sqlite").path


def traced(path, *rules):
    """A prefix that runs a program under strace, which writes to `path` and may tamper with calls."""
    under = ("strace", "-f", "-qq", "-y", "-o", str(path), *itertools.chain.from_iterable(("-e", rule) for rule in rules))
    if not shutil.which("strace") or subprocess.run([*under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace is not there, or may not trace here")
    return under


def calls(path):
    """What a traced program did to which file, in order."""
    found = re.findall(r"^\d+ +(pwrite|fsync|fdatasync|unlink|write)\w*\((?:\d+<|\")([^>\"]+)", path.read_text(), re.MULTILINE)
    return [(call.replace("fdatasync", "fsync"), file) for call, file in found]


EVERY = "trace=/^(pwrite|fsync|fdatasync|unlink|write)"
KINDS = {"pwrite": "/^pwrite", "fsync": "/^(fsync|fdatasync)", "unlink": "/^unlink"}


def failing(path, tmp_path, kind, fault, chosen):
    """Kill at, or fail, chosen ones of the calls that a draw needs; what was granted is compared with what is counted each time."""
    trace = tmp_path / "trace"
    assert run(SPEND, path, under=traced(trace, EVERY)) == [1]
    needed = [call for call, file in calls(trace)].count(kind)
    assert needed >= {"pwrite": 8, "fsync": 4, "unlink": 1}[kind]
    counted, grants = 1, []
    for number in chosen(needed):
        under = traced(trace, f"inject={KINDS[kind]}:{fault}:when={number}")
        done = subprocess.run(program(SPEND, path, under), capture_output=True, text=True, timeout=60, check=False)
        assert "Traceback" not in done.stderr
        grants.append(done.stdout.strip().isdigit())
        before, counted = counted, Ledger(path).account("visits").draws
        assert before + grants[-1] <= counted <= before + 1, number
    assert not grants[-1], "the last call of each kind is needed: without it nothing is granted"
    assert sum(grants) <= 1, "only the folder's first sync is not asked for its result"
    assert run(SPEND, path) == [counted + 1]


@pytest.mark.parametrize(("kind", "fault"), [("pwrite", "signal=KILL"), ("fsync", "error=EIO"), ("unlink", "signal=KILL")])
def test_a_draw_that_fails_at_the_last_call_of_its_kind_is_not_granted(path, tmp_path, kind, fault):
    failing(path, tmp_path, kind, fault, lambda needed: [needed])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["signal=KILL", "error=EIO"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_that_fails_at_any_call_is_counted_if_it_was_granted(path, tmp_path, kind, fault):
    failing(path, tmp_path, kind, fault, lambda needed: range(1, needed + 1))


def test_everything_is_synced_before_a_draw_is_granted(path, tmp_path):
    """The journal, its folder, the ledger and, after the journal is gone, the folder again; only then is the entry's id written."""
    assert run(SPEND, path, under=traced(tmp_path / "trace", EVERY)) == [1]
    names = {f"{path}-journal": "journal", str(path): "ledger", str(path.parent): "folder"}
    steps = [(call, names.get(file, "answer")) for call, file in calls(tmp_path / "trace")]
    assert [step for step, _ in itertools.groupby(steps)] == [
        ("pwrite", "journal"),
        ("fsync", "journal"),
        ("fsync", "folder"),
        ("pwrite", "journal"),
        ("fsync", "journal"),
        ("pwrite", "ledger"),
        ("fsync", "ledger"),
        ("unlink", "journal"),
        ("fsync", "folder"),
        ("write", "answer"),
    ]
