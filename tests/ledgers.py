"""Ledgers to test with, and programs that use one in a process of their own."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import dpviz
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.ledger_file import TABLES, LedgerFile

FIRST_VERSION = Path(__file__).parent / "golden" / "ledger_1.sqlite"  # as version 1 wrote it: never written again
MARK = "a1" * 32
OTHER_MARK = "b2" * 32
RECORDS = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(1))
PEOPLE = Terms(unit="person", neighbours="replace one", cap=ZcdpBudget(2))
LOOSE = Terms(unit="record", neighbours="add or remove one", cap=ApproxBudget(5, "1e-5"))

# The package's front is left out: a program then starts in a tenth of a second, with the same ledger.
_START = f"""
import json, os, signal, sys, types
package = types.ModuleType("dpviz")
package.__path__ = [{str(Path(dpviz.__file__).parent)!r}]
sys.modules["dpviz"] = package
from dpviz.errors import RefusedError
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy import ledger_file
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.ledger_file import LedgerFile

MARK = {MARK!r}
RECORDS = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(1))

def usual(path):
    # made when it is used first, as the usual one is
    ledger = Ledger(path)
    ledger._file = LedgerFile(ledger.path)
    return ledger

ledger_file.BUSY = 60.0  # these programs write without a pause
ledger = usual(sys.argv[1])

def attempt(action):
    try:
        return action()
    except RefusedError as error:
        return str(error)
"""


def program(code, path, under=()):
    """The command that runs `code` on the ledger at `path`; `under` goes before it (a tracer, a namespace)."""
    return [*under, sys.executable, "-c", _START + code, str(path)]


def run(code, path, *, under=(), code_expected=0):
    """The lines that the program printed as JSON; it must end with the code that is expected and without a traceback."""
    done = subprocess.run(program(code, path, under), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code_expected, done.stderr
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def usable(*under):
    """The prefix of a program, if its tool is there and works; else the test is skipped."""
    if not _works(*under):
        pytest.skip(f"{under[0]} is not there, or may not work here")
    return under


@cache
def _works(*under):
    return shutil.which(under[0]) and not subprocess.run([*under, "true"], capture_output=True, check=False).returncode


def usual(path):
    """A ledger that is made when it is used first, as the usual one is."""
    ledger = Ledger(path)
    ledger._file = LedgerFile(ledger.path)
    return ledger


def is_empty(ledger):
    """Whether a ledger knows of nothing: no account, and no look or search."""
    with ledger._file.reading() as db:
        return not any(db.execute(f"SELECT 1 FROM {table}").fetchone() for table in TABLES.keys() - {"ledger"})  # noqa: S608


def opened(path, terms=RECORDS, name="visits", marks=(MARK,)):
    """A ledger with one dataset."""
    ledger = usual(path)
    ledger.open(name, marks, terms)
    return ledger
