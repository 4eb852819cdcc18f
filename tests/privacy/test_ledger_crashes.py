"""Eight processes at once, killed processes, full disks: what is granted is always counted."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from fractions import Fraction

import pytest

from dpviz.privacy.budget import PureBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import opened, program, run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks, signals and limits are POSIX's")

SPEND = """
print(json.dumps(attempt(lambda: ledger.pay("visits", [MARK], RECORDS, PureBudget("1/1000"), mechanism="quadtree")[1].id)), flush=True)
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


def drawn(path):
    """How many thousandths were counted; the sum, the draws and the seal agree, or this raises."""
    account = Ledger(path).account("visits")
    assert account.spent["epsilon"] == Fraction(account.draws, 1000) <= 1
    return account.draws


def test_a_thousand_spends_from_eight_processes_grant_exactly_the_cap(tmp_path):
    """The cap is 700 of the 1,000 that are asked for; each process gets entries or refusals, and nothing else."""
    code = f"""{FORKS}
ledger.open("visits", [MARK], Terms(unit="record", neighbours="add or remove one", cap=PureBudget("7/10")))
draw = lambda: ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree")
for answers in together(8, lambda _: [attempt(draw) for _ in range(125)]):
    print(json.dumps(answers))
"""
    answers = list(itertools.chain.from_iterable(run(code, tmp_path / "ledger.sqlite")))
    granted = [answer for answer in answers if isinstance(answer, int)]
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert sorted(granted) == list(range(1, 701))
    assert len(refused) == 300
    assert all("would be exceeded" in text for text in refused)
    account = Ledger(tmp_path / "ledger.sqlite").account("visits")
    assert (account.draws, account.spent["epsilon"], account.left["epsilon"]) == (700, Fraction(7, 10), 0)


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
    ledger = Ledger(f"{{folder}}/new-{{turn}}/ledger.sqlite")
    names = ["visits"] * 5 if turn % 2 else ["a", "b", "c", "d", "e"]
    answers = together(5, work)
    print(json.dumps([answers, len(ledger.accounts()), str(ledger.accounts()[0].left["epsilon"]), os.listdir(ledger.path.parent)]))
"""
    turns = run(code, tmp_path)
    assert len(turns) == 6
    for answers, accounts, left, files in turns:
        assert sorted(answer for answer in answers if isinstance(answer, int)) == [1, 2, 3]
        assert sum("would be exceeded" in answer for answer in answers if isinstance(answer, str)) == 2
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
    ledger = Ledger(f"{{folder}}/new-{{turn}}.sqlite")
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


def test_a_process_killed_between_paying_and_drawing_has_paid(path):
    code = f"{SPEND}\nos.kill(os.getpid(), signal.SIGKILL)"
    assert run(code, path, code_expected=-signal.SIGKILL) == [1]
    assert drawn(path) == 1


def test_a_process_killed_with_half_a_transaction_on_the_disk_has_spent_nothing(path):
    """Its pages were written over the ledger already; the journal that it left brings the ledger back."""
    drawn_before, before = drawn(path), path.read_bytes()
    code = """
with ledger._file.writing() as db:
    db.execute("PRAGMA cache_size = 1")
    for _ in range(2000):
        db.execute("INSERT INTO draw VALUES (NULL, 1, 'now', 'quadtree', 'draw', 1, 'epsilon 1/1000', NULL)")
    db.execute("UPDATE dataset SET spent = 'epsilon 2, delta 0'")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    run(code, path, code_expected=-signal.SIGKILL)
    journal = path.with_name(f"{path.name}-journal")
    assert journal.stat().st_size > 0
    assert path.read_bytes() != before, "half of it is on the disk"
    assert drawn(path) == drawn_before
    assert not journal.exists()
    assert Ledger(path).spend("visits", PureBudget("1/1000"), mechanism="quadtree") == drawn_before + 1


def test_a_ledger_taken_away_from_its_journal_is_refused(path, tmp_path):
    code = """
with ledger._file.writing() as db:
    db.execute("PRAGMA cache_size = 1")
    db.execute("UPDATE dataset SET spent = 'epsilon 0, delta 0', cap = 'epsilon 9'")
    for _ in range(2000):
        db.execute("INSERT INTO draw VALUES (NULL, 1, 'now', 'quadtree', 'draw', 1, 'epsilon 1/1000', NULL)")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    run(code, path, code_expected=-signal.SIGKILL)
    shutil.copy(path, tmp_path / "copy")
    copied = "print(json.dumps(attempt(lambda: ledger.account('visits').draws)))"
    assert "altered" in run(copied, tmp_path / "copy")[0]


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
    print(json.dumps(attempt(lambda: ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree"))))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(attempt(lambda: ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree"))))
"""
    *answers, last = run(code, path)
    granted = [answer for answer in answers if isinstance(answer, int)]
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert len(granted) > 20
    assert len(refused) > 20
    assert all("the disk is full or does not answer" in text for text in refused)
    assert last == len(granted) + 1 == drawn(path)


def private_disk(tmp_path, kilobytes):
    """A prefix that gives a program a tiny disk of its own at `tmp_path`/disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    under = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size={kilobytes}k none {disk} && exec "$@"', "sh")
    if not shutil.which("unshare") or subprocess.run([*under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets no test mount anything")
    return under, disk / "ledger.sqlite"


@pytest.mark.parametrize("kilobytes", [8, *(pytest.param(size, marks=pytest.mark.slow) for size in (32, 48)), 64])
def test_a_disk_that_is_really_full_refuses_and_forgets_nothing(tmp_path, kilobytes):
    """From too small for a ledger at all, over too small for a draw, to room for some."""
    under, path = private_disk(tmp_path, kilobytes)
    code = """
print(json.dumps(attempt(lambda: ledger.open("visits", [MARK], RECORDS).draws)))
for _ in range(400):
    print(json.dumps(attempt(lambda: ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree"))))
print(json.dumps(attempt(lambda: ledger.account("visits").draws)))
"""
    made, *answers, counted = run(code, path, under=under)
    granted = [answer for answer in answers if isinstance(answer, int)]
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert len(refused) > 50
    if made == 0:
        assert counted == len(granted)
        assert all("the disk is full or does not answer" in text for text in refused)
    else:
        assert granted == []
        assert "disk is full" in made or "No space left" in made
    assert kilobytes > 8 or made != 0
    assert kilobytes < 64 or len(granted) > 20
