"""The ledger: accounts, marks, terms, draws, refusals, its place and its modes."""

import datetime as dt
import os
import re
import stat
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.privacy import ledger as module
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import LOOSE, MARK, OTHER_MARK, PEOPLE, RECORDS, opened

THIRD_MARK = "c3" * 32


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def test_draws_add_up_exactly_and_are_there_for_the_next_to_ask(path):
    ledger = opened(path)
    ids = [ledger.spend("visits", PureBudget(0.1), mechanism="quadtree") for _ in range(3)]
    again = Ledger(path)
    account = again.account("visits")
    assert account.spent == {"epsilon": Fraction(3, 10), "delta": 0}
    assert account.left == {"epsilon": Fraction(7, 10), "delta": 0}
    assert (account.draws, account.terms, again.accounts()) == (3, RECORDS, [account])
    assert [entry.id for entry in again.entries("visits")] == ids == sorted(set(ids))


def test_an_entry_says_all_that_was_asked(path):
    ledger = opened(path, LOOSE)
    ledger.spend("visits", ApproxBudget("1/3", 1e-8), mechanism="kdtree", purpose="release", contributions=4)
    ledger.spend("visits", PureBudget(0.2), mechanism="htf")
    first, second = ledger.entries("visits")
    assert (first.budget, first.mechanism, first.purpose, first.contributions) == (ApproxBudget("1/3", 1e-8), "kdtree", "release", 4)
    assert (second.budget, second.mechanism, second.purpose, second.contributions) == (PureBudget(0.2), "htf", "draw", 1)
    assert dt.datetime.fromisoformat(first.time).utcoffset() == dt.timedelta(0)
    assert first.published is second.published is None


def test_the_cap_is_granted_to_the_last_hundredth_and_then_nothing(path):
    ledger = opened(path)
    for _ in range(10):
        ledger.spend("visits", PureBudget(0.1), mechanism="quadtree")
    with pytest.raises(RefusedError, match=r"would spend epsilon 0\.1, delta 0; left: epsilon 0, delta 0 \(of epsilon 1, delta 0\)"):
        ledger.spend("visits", PureBudget(0.1), mechanism="quadtree")
    assert (ledger.account("visits").draws, ledger.account("visits").spent["epsilon"]) == (10, 1)


def test_what_is_refused_is_not_counted(path):
    ledger = opened(path)
    for wrong in (PureBudget(1.5), ZcdpBudget(0.1), ApproxBudget(0.1, 1e-9), 0.5):
        with pytest.raises(DpvizError):
            ledger.spend("visits", wrong, mechanism="quadtree")
    assert ledger.account("visits").spent == {"epsilon": 0, "delta": 0}
    assert ledger.entries("visits") == []


def test_rho_takes_pure_draws_as_half_their_square(path):
    ledger = opened(path, PEOPLE)
    ledger.spend("visits", PureBudget(1), mechanism="quadtree")
    ledger.spend("visits", ZcdpBudget(0.25), mechanism="top_down")
    assert ledger.account("visits").spent == {"rho": Fraction(3, 4)}
    assert [entry.budget for entry in ledger.entries("visits")] == [PureBudget(1), ZcdpBudget(0.25)]
    with pytest.raises(RefusedError, match=r"left: rho 1\.25 \(of rho 2\)"):
        ledger.spend("visits", PureBudget(1.6), mechanism="quadtree")


def test_data_are_recognised_by_any_mark_under_any_name(path):
    ledger = opened(path, marks=[MARK, OTHER_MARK])
    ledger.spend("visits", PureBudget(0.9), mechanism="quadtree")
    renamed = Ledger(path).open("holiday", [THIRD_MARK, OTHER_MARK], RECORDS)
    assert (renamed.name, renamed.left["epsilon"]) == ("visits", Fraction(1, 10))
    assert ledger.find_by_fingerprints([THIRD_MARK]).name == "visits", "a new mark is learned beside a known one"
    assert [account.name for account in ledger.accounts()] == ["visits"]
    with pytest.raises(RefusedError, match="no dataset of that name"):
        ledger.spend("holiday", PureBudget(0.1), mechanism="quadtree")


def test_new_content_under_a_known_name_stays_on_its_account(path):
    ledger = opened(path)
    ledger.spend("visits", PureBudget(0.9), mechanism="quadtree")
    assert ledger.open(" visits ", [OTHER_MARK], RECORDS).left["epsilon"] == Fraction(1, 10)
    assert ledger.find_by_fingerprints([OTHER_MARK]).name == "visits"


def test_marks_or_names_that_point_to_two_accounts_are_refused(path):
    ledger = opened(path)
    ledger.open("trips", [OTHER_MARK], PEOPLE)
    for action in (
        lambda: ledger.open("new", [MARK, OTHER_MARK], RECORDS),
        lambda: ledger.open("trips", [MARK], RECORDS),
        lambda: ledger.find_by_fingerprints([MARK, OTHER_MARK]),
    ):
        with pytest.raises(RefusedError, match="different accounts in the ledger, 'visits' and 'trips'"):
            action()
    assert [account.name for account in ledger.accounts()] == ["visits", "trips"]


@pytest.mark.slow
def test_data_in_very_many_files_are_recognised_by_any_of_them(path):
    ledger = opened(path)
    ledger.open("visits", [MARK, *(f"{number:064x}" for number in range(100_000))], RECORDS)
    assert ledger.find_by_fingerprints([OTHER_MARK, *(f"{number:064x}" for number in range(99_999, 250_000))]).name == "visits"


def test_unknown_data_are_not_recognised(path):
    assert Ledger(path).find_by_fingerprints([MARK]) is None
    assert not path.exists(), "asking makes no ledger"
    assert opened(path).find_by_fingerprints([OTHER_MARK]) is None


def test_marks_are_kept_under_a_key_of_each_ledger(tmp_path):
    one, two = (opened(tmp_path / name, marks=[MARK]).path.read_bytes() for name in ("one", "two"))
    assert MARK.encode() not in one
    kept = set(re.findall(rb"[0-9a-f]{64}", one)) & set(re.findall(rb"[0-9a-f]{64}", two))
    assert kept == set()


def test_what_was_published_and_looked_at_is_kept(path):
    ledger = opened(path)
    entry = ledger.spend("visits", PureBudget(0.1), mechanism="quadtree")
    assert not ledger.account("visits").truth_seen
    ledger.published(entry, "release-1")
    ledger.note_account_truth_seen("visits")
    ledger.note_account_truth_seen("visits")
    assert Ledger(path).account("visits").truth_seen
    assert [each.published for each in ledger.entries("visits")] == ["release-1"]
    ledger.published(entry, "release-2")
    assert [each.published for each in ledger.entries("visits")] == ["release-2"]
    assert ledger.open("visits", [MARK], RECORDS).truth_seen, "opening does not unset it"


def test_draws_and_datasets_that_are_not_there_are_refused(path):
    ledger = opened(path)
    for action in (
        lambda: ledger.published(1, "release-1"),
        lambda: ledger.note_account_truth_seen("trips"),
        lambda: ledger.account("trips"),
        lambda: ledger.entries("trips"),
        lambda: ledger.spend("trips", PureBudget(0.1), mechanism="quadtree"),
    ):
        with pytest.raises(RefusedError, match="has no"):
            action()


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": "two\nlines"},
        {"name": "x" * 121},
        {"name": 3},
        {"fingerprints": []},
        {"fingerprints": ["visits.csv"]},
        {"fingerprints": [MARK, "ABC"]},
    ],
)
def test_names_and_marks_that_make_no_sense_are_refused(path, change):
    with pytest.raises(SettingError) as error:
        Ledger(path).open(**{"name": "visits", "fingerprints": [MARK], "terms": RECORDS} | change)
    assert "visits.csv" not in str(error.value)
    assert not path.exists()


@pytest.mark.parametrize(
    "change", [{"mechanism": ""}, {"purpose": "fun"}, {"contributions": 0}, {"contributions": True}, {"contributions": 1.0}]
)
def test_draws_that_make_no_sense_are_refused(path, change):
    ledger = opened(path)
    with pytest.raises(SettingError):
        ledger.spend("visits", PureBudget(0.1), **{"mechanism": "quadtree"} | change)
    assert ledger.account("visits").draws == 0


def test_a_budget_with_too_many_digits_is_refused_and_never_in_the_way_of_others(path):
    ledger = opened(path)
    for long in (Fraction(1, 10**5000), Fraction(1, 7**1170)):
        with pytest.raises(BudgetError, match="too many digits"):
            ledger.spend("visits", PureBudget(long), mechanism="quadtree")
    for prime in (7, 11, 13, 17, 19, 23, 29, 31):
        ledger.spend("visits", PureBudget(Fraction(1, prime**60)), mechanism="quadtree")
    ledger.spend("visits", PureBudget(0.1), mechanism="quadtree")
    assert Ledger(path).account("visits").draws == 9


def test_a_clock_that_goes_back_changes_nothing(path, monkeypatch):
    ledger = opened(path)
    times = iter(["2030-01-01T00:00:00+00:00", "1999-12-31T00:00:00+00:00", "1970-01-01T00:00:00+00:00"])
    monkeypatch.setattr(module, "_now", lambda: next(times))
    ids = [ledger.spend("visits", PureBudget(0.1), mechanism="quadtree") for _ in range(3)]
    assert [entry.id for entry in ledger.entries("visits")] == ids
    assert ledger.entries("visits")[-1].time.startswith("1970")
    assert ledger.account("visits").spent["epsilon"] == Fraction(3, 10)


def test_the_place_is_the_environment_s_or_the_user_s(tmp_path, monkeypatch):
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "mine"))
    assert Ledger().path == tmp_path / "mine"
    assert Ledger(tmp_path / "named").path == tmp_path / "named"
    monkeypatch.setenv("DPVIZ_LEDGER", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert (Ledger().path.name, Ledger().path.parent.name) == ("ledger.sqlite", "dpviz")
    monkeypatch.chdir(tmp_path)
    assert Ledger("here").path == Path.cwd() / "here"
    assert Ledger("~/there").path == Path.home() / "there"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_file_and_folder_are_the_owner_s_alone_whatever_the_mask(tmp_path):
    before = os.umask(0)
    try:
        path = opened(tmp_path / "new" / "deep?&%# é" / "ledger.sqlite").path
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}
    assert [each.name for each in path.parent.iterdir()] == ["ledger.sqlite"], "nothing is left beside it"


def test_one_ledger_may_be_used_from_many_threads(path):
    ledger, refused = opened(path), []

    def draw():
        for _ in range(5):
            try:
                ledger.spend("visits", PureBudget("1/10"), mechanism="quadtree")
            except RefusedError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ledger.account("visits").draws, len(refused)) == (10, 10)
