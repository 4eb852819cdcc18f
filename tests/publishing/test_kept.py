"""A paid release is not lost: publication is rehearsed before payment, and the release is kept on the disk until it is published."""

import json
import os
import re
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.mechanisms import StabilityHistogram
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import kept as module
from dpviz.publishing.kept import kept_draws, recover
from dpviz.publishing.publish import draw, publish, write
from dpviz.release.files import read_manifest, read_release
from dpviz.view import report, report_kinds
from tests.publishing.configs import POINTS, changed, written
from tests.publishing.test_publish import of_trips, order

fcntl = pytest.importorskip("fcntl") if os.name == "posix" else None


def failing(*_, **__):
    raise ZeroDivisionError("a library's text")


def full(*_, **__):
    raise RefusedError("No space left on device.")


@pytest.fixture
def report_fails(monkeypatch):
    """The rehearsal succeeds, but the report of the release itself cannot be made."""
    with monkeypatch.context() as patch:
        patch.setattr(report, "report_html", failing)
        yield patch


def test_a_release_whose_report_fails_is_kept_and_published_later(ledger, words, report_fails):
    with pytest.raises(DpvizError, match=r"The draw failed \(ZeroDivisionError\).*is spent.*dpviz release CONFIG --paid 1 publishes it"):
        publish(order(), words, ledger)
    report_fails.undo()
    ((account, entry),) = kept_draws(ledger)
    assert (account.name, entry.id, entry.published) == ("crowd", 1, None)
    done = write(recover(1, ledger), words, ledger)
    assert read_release(done.folder).receipt.total == order().budget
    assert done.manifest["data_product"]["name"] == "A crowd"
    assert ledger.entries("crowd")[0].published == done.manifest["identity"]["release_id"]
    assert (kept_draws(ledger), ledger.account("crowd").draws) == ([], 1)
    assert list((ledger.path.parent / "ledger.sqlite.paid").iterdir()) == []


@pytest.mark.parametrize(("looks_recorded", "said"), [(True, False), (False, "not recorded")])
def test_a_kept_release_remembers_whether_looks_were_recorded_where_it_was_drawn(ledger, words, report_fails, looks_recorded, said):
    with pytest.raises(DpvizError):
        publish(order(looks_recorded=looks_recorded), words, ledger)
    report_fails.undo()
    paid = recover(1, ledger)
    assert read_manifest(paid.kept)["implementation"]["tuning"]["truth_seen"] == said
    assert write(paid, words, ledger).manifest["implementation"]["tuning"]["truth_seen"] == said


def test_a_kept_folder_is_private_to_its_owner_and_has_the_release_only(ledger, words, report_fails):
    with pytest.raises(DpvizError):
        publish(order(), words, ledger)
    folder = recover(1, ledger).kept
    folders, files = ({stat.S_IMODE(path.stat().st_mode) for path in paths} for paths in ((folder, folder.parent), folder.iterdir()))
    assert os.name != "posix" or (folders, files) == ({0o700}, {0o600})
    assert {path.suffix for path in folder.iterdir()} == {".parquet", ".json"}
    assert read_manifest(folder)["data_product"]["name"] == "Draw 1, paid for and not yet published"


def test_only_what_will_be_published_is_kept_and_only_until_then(ledger, words):
    assert draw(order(budget=PureBudget("1/4")), ledger).kept is None, "it will not be published"
    publish(order(), words, ledger)
    assert kept_draws(ledger) == []
    with pytest.raises(SettingError, match="No release of draw 1 is kept beside the ledger; releases are kept of draws: none"):
        recover(1, ledger)


def test_a_failure_to_keep_a_release_is_reported_and_the_release_is_published(ledger, words, monkeypatch):
    monkeypatch.setattr(module, "write_release", full)
    lines = []
    done = publish(order(), words, ledger, say=lines.append)
    assert "Draw 1 is paid for, but its release could not be kept beside the ledger: No space left on device." in lines
    assert read_release(done.folder).receipt.total == order().budget
    assert ledger.entries("crowd")[0].published is not None


def test_releases_kept_for_another_ledger_are_not_confused_with_this_ones(ledger, words, report_fails, monkeypatch):
    monkeypatch.setattr("dpviz.privacy.ledger._now", lambda: "2020-01-01T00:00:00+00:00")
    with pytest.raises(DpvizError):
        publish(order(), words, ledger)
    ledger.path.unlink()
    Ledger.new(ledger.path)
    monkeypatch.setattr("dpviz.privacy.ledger._now", lambda: "2020-01-01T00:00:01+00:00")
    draw(order(), ledger)
    assert kept_draws(ledger) == []


@pytest.mark.parametrize("trips", [False, True])
def test_public_inputs_that_break_the_report_spend_nothing(ledger, words, monkeypatch, trips):
    """A report without trips has no examples, one of made-up trips has them."""
    examples = report_kinds.list_trip_examples
    monkeypatch.setattr(report_kinds, "list_trip_examples", lambda *given: [1 / 0 for _ in examples(*given)])
    monkeypatch.setattr(report_kinds, "draw_points", failing)
    with pytest.raises(DpvizError, match=r"report of such a release cannot be made \(ZeroDivisionError\): nothing was released or spent"):
        publish(of_trips(mechanism=StabilityHistogram()) if trips else order(), words, ledger)
    assert ledger.accounts() == []


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.slow
def test_a_release_survives_a_process_killed_before_writing(run, ledger, tmp_path):
    config = written(tmp_path, POINTS)
    code = """
import os, signal, sys
from dpviz.view import report
report.report_html = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
from dpviz.__main__ import main
main(["release", sys.argv[1]])
"""
    killed = subprocess.run([sys.executable, "-c", code, str(config)], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    noisy = recover(1, ledger).release.noisy
    assert "Draw 1 of 'crowd' is paid for and kept until it is published" in run("ledger", "show")[1]
    assert '"kept": [\n    1\n  ]' in run("ledger", "show", "crowd", "--json")[1]
    changes = {"budget.epsilon": 0.25, "dataset.name": "others", "mechanism.settings": {"height": 1}, "domain.bounds": [0, 0, 2, 2]}
    for key, value in changes.items():
        err = run("release", written(tmp_path, changed(POINTS, key, value), "other.toml"), "--paid", 1)[2]
        assert re.search(rf"another \[{key.split('.')[0]}\].*: give the configuration that it was drawn with", err)
    code, out, err = run("release", config, "--paid", 1)
    assert (code, out.splitlines()[-1]) == (0, "crowd: 1 draw, left epsilon 0.5.")
    assert "nothing is spent" in err
    np.testing.assert_array_equal(read_release(tmp_path / "out").noisy, noisy)
    assert "kept" not in run("ledger", "show")[1]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize(
    ("killed_in", "state", "kept"),
    [
        ("_make_release", "release, neither published nor kept", []),
        ("discard", "release, published as ", ["is published and still kept: dpviz release CONFIG --paid 1 writes it once more"]),
    ],
)
def test_the_ledger_shows_what_became_of_a_release_whose_process_was_killed_around_its_keeping(
    run, ledger, tmp_path, killed_in, state, kept
):
    config = written(tmp_path, POINTS)
    code = f"""
import os, signal, sys
from dpviz.publishing import publish
publish.{killed_in} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from dpviz.__main__ import main
main(["release", sys.argv[1]])
"""
    killed = subprocess.run([sys.executable, "-c", code, str(config)], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    for _ in range(2):
        _, entry, *lines = run("ledger", "show", "crowd")[1].splitlines()
        assert state in entry
        assert len(lines) == len(kept)
        assert all(text in line for text, line in zip(kept, lines, strict=True))


KILLED_WHILE = """
import os, signal, sys
from pathlib import Path
from dpviz.release import files
sync = files._sync
files._sync = lambda path: os.kill(os.getpid(), signal.SIGKILL) if path.name == "manifest.json" and sys.argv[1] in str(path) else sync(path)
from dpviz.__main__ import main
main(["release", sys.argv[2]])
"""


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("where", [".paid", ".out."], ids=["while it is kept", "while it is written"])
def test_what_a_killed_process_left_is_named_and_removed_and_what_a_live_one_writes_stays(run, ledger, tmp_path, where):
    config = written(tmp_path, POINTS)
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE, where, str(config)], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    kept = ledger.path.with_name("ledger.sqlite.paid")
    (left,) = hidden(kept if where == ".paid" else tmp_path)
    if where == ".paid":
        live = os.open(kept / left, os.O_RDONLY)  # as a second process holds the folder that it fills
        fcntl.flock(live, fcntl.LOCK_EX)
        assert "interrupted" not in "".join(map(str, run("ledger", "show")))
        assert hidden(kept) == [left]
        os.close(live)
        _, out, err = run("ledger", "show", "crowd", "--json")
        assert "Draw 1 of 'crowd' was paid for and interrupted while it was kept: nothing can be recovered" in err
        assert (json.loads(out)["interrupted"], json.loads(out)["spent"]["epsilon"]) == ([1], "1/2")
        assert (hidden(kept), kept_draws(ledger)) == ([], [])
    else:
        assert run("release", config, "--paid", 1)[0] == 0
        assert hidden(tmp_path) == []
        assert read_release(tmp_path / "out").receipt.total == PureBudget("1/2")
