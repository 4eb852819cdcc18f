"""Eight processes at once, processes that are killed, calls that fail, full disks: what is granted is always counted."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dpviz.errors import RefusedError
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import FIRST_VERSION, MARK, RECORDS, opened, program, run, usable
from tests.often import often

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks, signals and limits are POSIX's")

SPEND = """
print(json.dumps(attempt(lambda: ledger.pay("visits", [MARK], RECORDS, PureBudget("1/1000"), mechanism="quadtree")[1].id)), flush=True)
"""

DRAW = """
draw = lambda: ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree")
"""

# Half of what this transaction changes is on the disk when the process is killed.
HALF = """
with ledger._file.writing() as db:
    db.execute("PRAGMA cache_size = 1")
    db.execute("UPDATE dataset SET spent = 'epsilon 0, delta 0', cap = 'epsilon 9'")
    for _ in range(2000):
        db.execute("INSERT INTO draw VALUES (NULL, 1, 'now', 'quadtree', 'draw', 1, 'epsilon 1/1000', NULL, NULL)")
    os.kill(os.getpid(), signal.SIGKILL)
"""

# Each child waits for the gate, works, and reports through its own pipe.
FORKS = """
def together(count, work):
    gate, start = os.pipe()
    pipes = []
    for number in range(count):
        back, out = os.pipe()
        if os.fork() == 0:
            os.close(start)
            os.read(gate, 1)
            os.write(out, json.dumps(work(number)).encode())
            os._exit(0)
        os.close(out)
        pipes.append(os.fdopen(back))
    os.close(start)
    return [json.loads(pipe.read()) for pipe in pipes]
"""


@pytest.fixture
def path(tmp_path):
    return opened(tmp_path / "ledger.sqlite").path


@pytest.fixture
def first(tmp_path):
    """A copy of the ledger that version 1 wrote."""
    return Path(shutil.copy(FIRST_VERSION, tmp_path / "ledger.sqlite"))


def drawn(path):
    """How many thousandths were counted; the sum, the draws and the seal agree, or this raises."""
    account = Ledger(path).account("visits")
    assert account.spent["epsilon"] == Fraction(account.draws, 1000) <= 1
    return account.draws


def answers_of(answers):
    """The entries that were granted, and the texts of the refusals."""
    answers = list(answers)
    return [answer for answer in answers if isinstance(answer, int)], [answer for answer in answers if isinstance(answer, str)]


@pytest.mark.parametrize("draws", often([160, 1000], 1))
def test_many_spends_from_eight_processes_grant_exactly_the_cap(draws, tmp_path):
    """The cap has room for seven of ten draws; each process gets entries or refusals, and nothing else."""
    room = draws * 7 // 10
    code = f"""{FORKS}{DRAW}
ledger.open("visits", [MARK], Terms(unit="record", neighbours="add or remove one", cap=PureBudget("{room}/1000")))
for answers in together(8, lambda _: [attempt(draw) for _ in range({draws // 8})]):
    print(json.dumps(answers))
"""
    granted, refused = answers_of(itertools.chain.from_iterable(run(code, tmp_path / "ledger.sqlite")))
    assert sorted(granted) == list(range(1, room + 1))
    assert len(refused) == draws - room
    assert all("would be exceeded" in text for text in refused)
    account = Ledger(tmp_path / "ledger.sqlite").account("visits")
    assert (account.draws, account.spent["epsilon"], account.left["epsilon"]) == (room, Fraction(room, 1000), 0)


def test_processes_that_make_the_ledger_and_the_dataset_at_once_share_them(tmp_path):
    """Under one name and under names of their own: one account, which is charged for all."""
    code = f"""{FORKS}
def work(number):
    def draw():
        name = ledger.open(names[number], [MARK], RECORDS).name
        return ledger.spend(name, PureBudget("3/10"), mechanism="quadtree")
    return attempt(draw)

folder = sys.argv[1]
for turn in range(6):
    ledger = usual(f"{{folder}}/new-{{turn}}/ledger.sqlite")
    names = ["visits"] * 5 if turn % 2 else ["a", "b", "c", "d", "e"]
    answers = together(5, work)
    print(json.dumps([answers, len(ledger.accounts()), str(ledger.accounts()[0].left["epsilon"]), os.listdir(ledger.path.parent)]))
"""
    turns = run(code, tmp_path)
    assert len(turns) == 6
    for answers, accounts, left, files in turns:
        granted, refused = answers_of(answers)
        assert sorted(granted) == [1, 2, 3]
        assert sum("would be exceeded" in text for text in refused) == 2
        assert (accounts, left, files) == (1, "1/10", ["ledger.sqlite"])


def test_processes_that_race_for_the_terms_agree_on_those_of_the_first_draw(tmp_path):
    """Two open a dataset with caps of their own and draw at once: the first draw fixes the cap, the other process draws nothing."""
    code = f"""{FORKS}
def work(number):
    def draw():
        account = ledger.open("visits", [MARK], Terms(unit="record", neighbours="add or remove one", cap=PureBudget(2 + 8 * number)))
        return ledger.spend(account, PureBudget(2), mechanism="quadtree")
    return attempt(draw)

folder = sys.argv[1]
for turn in range(8):
    ledger = usual(f"{{folder}}/new-{{turn}}.sqlite")
    ledger.open("visits", [MARK], RECORDS)
    answers = together(2, work)
    account = ledger.account("visits")
    print(json.dumps([answers, account.draws, str(account.terms.limit["epsilon"])]))
"""
    for answers, draws, cap in run(code, tmp_path):
        granted = [number for number, answer in enumerate(answers) if answer == 1]
        assert (len(granted), draws, cap) == (1, 1, str(2 + 8 * granted[0]))
        assert "other terms" in answers[1 - granted[0]]


def test_a_process_that_forks_while_its_threads_use_the_ledger_leaves_its_child_a_working_one(path):
    code = """
import threading, warnings
warnings.simplefilter("ignore")
going = True
def busy():
    while going:
        ledger.account("visits")
        attempt(lambda: ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree"))
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(8):
    if (child := os.fork()) == 0:
        signal.alarm(20)
        ledger.spend("visits", PureBudget("1/1000"), mechanism="htf")
        os._exit(0)
    print(json.dumps(os.waitpid(child, 0)[1]), flush=True)
going = False
for thread in threads:
    thread.join()
"""
    assert run(code, path) == [0] * 8
    assert sum(entry.mechanism == "htf" for entry in Ledger(path).entries("visits")) == 8
    assert drawn(path) > 8


def test_a_process_killed_with_half_a_transaction_on_the_disk_has_spent_nothing(path, tmp_path):
    """The journal that it left brings the ledger back; taken away from its journal the ledger is refused."""
    before = path.read_bytes()
    run(HALF, path, code_expected=-signal.SIGKILL)
    assert path.read_bytes() != before, "half of it is on the disk"
    with pytest.raises(RefusedError, match="altered"):
        Ledger(shutil.copy(path, tmp_path / "copy")).account("visits")
    assert drawn(path) == 0
    assert not path.with_name(f"{path.name}-journal").exists()
    assert Ledger(path).spend("visits", PureBudget("1/1000"), mechanism="quadtree") == 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_a_process_killed_at_any_moment_has_paid_for_all_it_was_granted(path, seed):
    endless = f"while True:{SPEND.replace(chr(10), chr(10) + '    ')}"
    with subprocess.Popen(program(endless, path), stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0.0, 0.3))
        process.kill()
        granted = [json.loads(line) for line in [first, *process.stdout.read().splitlines()]]
    assert granted == list(range(1, len(granted) + 1))
    assert len(granted) <= drawn(path) <= len(granted) + 1


def test_a_disk_that_fills_up_refuses_and_forgets_nothing(path):
    """Files may grow by a few pages only; refusals follow, and the ledger goes on where it was once there is room again."""
    code = """
import resource
size = os.path.getsize(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
for _ in range(200):
    print(json.dumps(attempt(draw)))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(attempt(draw)))
"""
    *answers, last = run(DRAW + code, path)
    granted, refused = answers_of(answers)
    assert len(granted) > 20
    assert len(refused) > 20
    assert all("the disk is full or does not answer" in text for text in refused)
    assert last == len(granted) + 1 == drawn(path)


def test_a_disk_too_small_for_a_ledger_gets_none(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    under = usable("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=8k none {disk} && exec "$@"', "sh")
    code = 'print(json.dumps([attempt(lambda: ledger.open("visits", [MARK], RECORDS)), os.listdir(ledger.path.parent)]))'
    [[refused, files]] = run(code, disk / "ledger.sqlite", under=under)
    assert "the disk is full or does not answer" in refused
    assert files == []


EVERY = "trace=/^(pwrite|fsync|fdatasync|unlink|write)"
KINDS = {"pwrite": "/^pwrite", "fsync": "/^(fsync|fdatasync)", "unlink": "/^unlink"}


def traced(path, *rules):
    """A prefix that runs a program under strace, which writes to `path` and may tamper with calls."""
    strace = ("strace", "-f", "-qq", "-y", "-e", EVERY)
    usable(*strace, "-o", "/dev/null", "-e", "inject=/^unlink:error=EIO:when=9999")
    return (*strace, "-o", str(path), *itertools.chain.from_iterable(("-e", rule) for rule in rules))


def calls(path):
    """What a traced program did to which file, in order."""
    found = re.findall(r"^\d+ +(pwrite|fsync|fdatasync|unlink|write)\w*\((?:\d+<|\")([^>\"]+)", path.read_text(), re.MULTILINE)
    return [(call.replace("fdatasync", "fsync"), file) for call, file in found]


def failing(path, tmp_path, faults):
    """Kill at, or fail, chosen ones of the calls that a draw needs; what was granted is compared with what is counted each time."""
    trace, counted = tmp_path / "trace", 1
    assert run(SPEND, path, under=traced(trace)) == [1]
    made = calls(trace)
    for kind, fault, every in faults:
        needed, grants = [call for call, file in made].count(kind), []
        assert needed >= {"pwrite": 8, "fsync": 4, "unlink": 1}[kind]
        for number in range(1 if every else needed, needed + 1):
            under = traced(trace, f"inject={KINDS[kind]}:{fault}:when={number}")
            done = subprocess.run(program(SPEND, path, under), capture_output=True, text=True, timeout=240, check=False)
            assert "Traceback" not in done.stderr
            grants.append(done.stdout.strip().isdigit())
            before, counted = counted, Ledger(path).account("visits").draws
            assert before + grants[-1] <= counted <= before + 1, number
        assert not grants[-1], "the last call of each kind is needed: without it nothing is granted"
        assert sum(grants) <= 1, "only the result of the folder's first sync is ignored"
    assert run(SPEND, path) == [counted + 1]
    return made


def test_everything_is_synced_before_a_draw_is_granted_and_one_that_fails_at_the_last_call_of_its_kind_is_not(path, tmp_path):
    """The journal, its folder, the ledger and, after the journal is gone, the folder again; only then is the entry's id written."""
    made = failing(path, tmp_path, [("pwrite", "signal=KILL", False), ("fsync", "error=EIO", False), ("unlink", "signal=KILL", False)])
    names = {f"{path}-journal": "journal", str(path): "ledger", str(path.parent): "folder"}
    steps = [f"{call} {names.get(file, 'answer')}" for call, file in made]
    assert ", ".join(step for step, _ in itertools.groupby(steps)) == (
        "pwrite journal, fsync journal, fsync folder, pwrite journal, fsync journal, "
        "pwrite ledger, fsync ledger, unlink journal, fsync folder, write answer"
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["signal=KILL", "error=EIO"])
def test_a_draw_that_fails_at_any_call_is_counted_if_it_was_granted(path, tmp_path, fault):
    failing(path, tmp_path, [(kind, fault, True) for kind in KINDS])


def test_a_process_killed_while_it_brings_an_older_ledger_up_to_date_changes_nothing(first):
    before = first.read_bytes()
    run(HALF, first, code_expected=-signal.SIGKILL)
    assert first.read_bytes() != before, "half of it is on the disk"
    assert Ledger(first).account("visits").spent["epsilon"] == Fraction(13, 30)
    assert first.read_bytes() == before, "the journal brings the old ledger back, in its old version"
    assert Ledger(first).pay("visits", [MARK], RECORDS, PureBudget("1/10"), mechanism="htf")[1].id == 5


def test_processes_that_bring_an_older_ledger_up_to_date_at_once_agree(first):
    """Six draw at once; the cap has room for five more."""
    code = f"""{FORKS}
draw = lambda number: attempt(lambda: ledger.pay("visits", [MARK], RECORDS, PureBudget("17/150"), mechanism="htf")[1].id)
for answer in together(6, draw):
    print(json.dumps(answer))
"""
    granted, refused = answers_of(run(code, first))
    assert sorted(granted) == [5, 6, 7, 8, 9]
    assert sum("would be exceeded" in text for text in refused) == 1
    assert Ledger(first).account("visits").left["epsilon"] == 0
    assert Ledger(first).account("people").spent == {"rho": 1}
