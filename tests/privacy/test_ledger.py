"""The ledger: accounts, marks, terms, draws, payments, looks at the truth, refusals, its place and its modes."""

import datetime as dt
import os
import re
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.privacy import ledger as module
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import LOOSE, MARK, OTHER_MARK, PEOPLE, RECORDS, opened, usual

NEW_MARK, LAST_MARK = "e5" * 32, "f6" * 32
TENTH = PureBudget(0.1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    """A ledger of one dataset, without draws."""
    return opened(path)


@pytest.fixture
def used(ledger):
    """A ledger whose account "visits" has a draw, and whose account "unused" has none."""
    draw(ledger, PureBudget("1/2"))
    ledger.open("unused", [OTHER_MARK], RECORDS)
    return ledger


def draw(ledger, budget=TENTH, account="visits", **more):
    return ledger.spend(account, budget, **{"mechanism": "quadtree"} | more)


def pay(ledger, name, marks, terms, budget, **more):
    return ledger.pay(name, marks, terms, budget, **{"mechanism": "quadtree"} | more)


def test_draws_add_up_exactly_and_are_there_when_the_ledger_is_opened_again(path, ledger):
    ids = [draw(ledger) for _ in range(3)]
    again = Ledger(path)
    account = again.account("visits")
    assert account.spent == {"epsilon": Fraction(3, 10), "delta": 0}
    assert account.left == {"epsilon": Fraction(7, 10), "delta": 0}
    assert (account.draws, account.terms, again.accounts()) == (3, RECORDS, [account])
    assert [entry.id for entry in again.entries("visits")] == ids == sorted(set(ids))


def test_entries_keep_what_was_given_and_rho_counts_half_the_square_of_a_pure_budget(path):
    ledger = opened(path, PEOPLE)
    draw(ledger, PureBudget(1))
    draw(ledger, ZcdpBudget(0.25), mechanism="top_down", purpose="release", contributions=4)
    first, second = ledger.entries("visits")
    assert (first.budget, first.mechanism, first.purpose, first.contributions) == (PureBudget(1), "quadtree", "draw", 1)
    assert (second.budget, second.mechanism, second.purpose, second.contributions) == (ZcdpBudget(0.25), "top_down", "release", 4)
    assert dt.datetime.fromisoformat(first.time).utcoffset() == dt.timedelta(0)
    assert first.published is second.published is None
    assert ledger.account("visits").spent == {"rho": Fraction(3, 4)}


def test_a_ledger_that_is_not_there_yet_is_not_called_unreadable(path):
    with pytest.raises(RefusedError, match="first paid release or draw makes it"):
        usual(path).remaining("visits")


def test_data_are_recognised_by_any_mark_under_any_name(path):
    ledger = opened(path, marks=[MARK, OTHER_MARK])
    draw(ledger, PureBudget(0.9))
    renamed = Ledger(path).open("holiday", [NEW_MARK, OTHER_MARK], RECORDS)
    assert (renamed.name, renamed.left["epsilon"]) == ("visits", Fraction(1, 10))
    assert ledger.find_by_fingerprints([NEW_MARK]).name == "visits", "a new mark is learned beside a known one"
    assert [account.name for account in ledger.accounts()] == ["visits"]
    with pytest.raises(RefusedError, match="no dataset of that name"):
        draw(ledger, account="holiday")
    assert ledger.open(" visits ", [LAST_MARK], RECORDS).left["epsilon"] == Fraction(1, 10), "new content under a known name"
    assert ledger.find_by_fingerprints([LAST_MARK]).name == "visits"


def test_a_name_is_the_same_however_its_accents_are_written(path):
    """A file system may write é as e and an accent; another spelling may not open an account with a cap of its own."""
    ledger = usual(path)
    composed, decomposed = "Caf\u00e9s", "Cafe\u0301s"
    pay(ledger, decomposed, [MARK], RECORDS, TENTH)
    account, _ = pay(ledger, composed, [OTHER_MARK], RECORDS, TENTH)
    assert (account.name, account.draws, len(ledger.accounts())) == (decomposed, 2, 1)
    assert ledger.account(composed) == ledger.find_by_name(composed) == ledger.find_by_name(decomposed) == account
    assert ledger.preview(composed, [NEW_MARK], RECORDS, TENTH).draws == 3
    assert [ledger.find_by_name(other) for other in ("Cafes", "\ud800", "")] == [None] * 3


def test_marks_or_names_that_point_to_two_accounts_are_refused(ledger):
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
def test_data_in_very_many_files_are_recognised_by_any_of_them(ledger):
    ledger.open("visits", [MARK, *(f"{number:064x}" for number in range(100_000))], RECORDS)
    assert ledger.find_by_fingerprints([OTHER_MARK, *(f"{number:064x}" for number in range(99_999, 250_000))]).name == "visits"


def test_unknown_data_are_not_recognised_and_reading_makes_no_ledger(path):
    assert usual(path).find_by_fingerprints([MARK]) is None
    assert not usual(path).seen([MARK])
    for wrong in ([], ["visits.csv"]):
        with pytest.raises(DpvizError):
            usual(path).note_truth_seen(wrong)
    assert list(path.parent.iterdir()) == []
    assert opened(path).find_by_fingerprints([OTHER_MARK]) is None


def test_marks_are_kept_under_a_key_of_each_ledger(tmp_path):
    one, two = (opened(tmp_path / name, marks=[MARK]).path.read_bytes() for name in ("one", "two"))
    assert MARK.encode() not in one
    assert set(re.findall(rb"[0-9a-f]{64}", one)).isdisjoint(re.findall(rb"[0-9a-f]{64}", two))


def test_the_last_release_of_a_draw_is_kept(path, ledger):
    entry = draw(ledger)
    for release in ("release-1", "release-2"):
        ledger.published(entry, release)
        assert [each.published for each in Ledger(path).entries("visits")] == [release]


def test_draws_and_datasets_that_are_not_there_are_refused(ledger):
    for action in (
        lambda: ledger.published(1, "release-1"),
        lambda: ledger.entry(1),
        lambda: ledger.note_account_truth_seen("trips"),
        lambda: ledger.account("trips"),
        lambda: ledger.entries("trips"),
        lambda: draw(ledger, account="trips"),
    ):
        with pytest.raises(RefusedError, match="has no"):
            action()


NAMES = [{"name": name} for name in ("", "two\nlines", "x" * 121, 3)]
MARKS = [{"fingerprints": marks} for marks in ([], ["visits.csv"], [MARK, "ABC"])]
DRAWS = [{"mechanism": ""}, {"purpose": "fun"}, {"contributions": 0}, {"contributions": True}, {"contributions": 1.0}]


@pytest.mark.parametrize("change", [*NAMES, *MARKS, *DRAWS])
def test_names_marks_and_draws_that_make_no_sense_are_refused_and_make_no_ledger(path, change):
    ledger = Ledger(path)
    data, details = {"name": "visits", "fingerprints": [MARK], "terms": RECORDS}, {"budget": TENTH, "mechanism": "quadtree"}
    other = (ledger.spend, {"name": "visits"} | details) if change in DRAWS else (ledger.open, data)
    for action, given in ((ledger.pay, data | details), other):
        with pytest.raises(SettingError) as error:
            action(**given | change)
        assert "visits.csv" not in str(error.value)
    assert not path.exists()


def test_a_clock_that_goes_back_changes_nothing(ledger, monkeypatch):
    times = ["2030-01-01T00:00:00+00:00", "1999-12-31T00:00:00+00:00", "1970-01-01T00:00:00+00:00"]
    monkeypatch.setattr(module, "_now", iter(times).__next__)
    ids = [draw(ledger) for _ in times]
    assert [(entry.id, entry.time) for entry in ledger.entries("visits")] == list(zip(ids, times, strict=True))


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


# Terms are fixed by the first draw.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unit": "person"}, "its unit is record, not person"),
        ({"neighbours": "replace one"}, "its neighbouring relation is add or remove one, not replace one"),
        ({"cap": ZcdpBudget(1)}, "its currency is epsilon, delta, not rho"),
        ({"cap": PureBudget(2)}, "its cap is epsilon 1, delta 0, not epsilon 2, delta 0"),
        ({"cap": ApproxBudget(1, 1e-9)}, "not epsilon 1, delta 1/1000000000"),
    ],
)
def test_other_terms_are_refused_with_what_differs(ledger, change, reason):
    terms = Terms(**{"unit": "record", "neighbours": "add or remove one", "cap": PureBudget(1)} | change)
    draw(ledger, PureBudget("1/1000"))
    for name, mark in (("visits", OTHER_MARK), ("other", MARK)):
        with pytest.raises(RefusedError, match=f"the account 'visits', which was opened with other terms.*{re.escape(reason)}"):
            ledger.open(name, [mark], terms)
    assert ledger.find_by_fingerprints([OTHER_MARK]) is None, "a refusal leaves no mark"


BAD_ROWS = {
    "draw.budget": ("epsilon -5", "epsilon 1/0", "sigma 3", "epsilon", "rho 1/10"),
    "dataset.cap": ("epsilon 0",),
    "dataset.spent": ("epsilon a, delta 0", "epsilon 1/10", "epsilon 1/5, delta 0"),
    "dataset.unit": ("house",),
    "dataset.series": ("{}", "[]", '{"periods": 1}'),
    "draw.period": ("2026-11",),
}


@pytest.mark.parametrize(("place", "value"), [(place, value) for place, values in BAD_ROWS.items() for value in values])
def test_rows_that_no_ledger_writes_are_refused(ledger, place, value):
    """Under a right seal, as a faulty or older program might have written them."""
    draw(ledger)
    table, column = place.split(".")
    with ledger._file.writing() as db:
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))  # noqa: S608
    for action in (lambda: ledger.account("visits"), ledger.accounts, lambda: ledger.open("visits", [MARK], RECORDS), lambda: draw(ledger)):
        with pytest.raises(RefusedError, match=r"cannot be right|not the sum of its draws|does not determine"):
            action()


def test_terms_may_change_as_long_as_nothing_was_drawn(ledger):
    ledger.note_account_truth_seen("visits")
    account = ledger.open("visits", [MARK], PEOPLE)
    assert (account.terms, account.spent, account.truth_seen) == (PEOPLE, {"rho": 0}, True)
    other = ledger.open("other", [MARK], LOOSE)
    assert (other.name, other.terms, other.left["epsilon"]) == ("visits", LOOSE, 5)
    with pytest.raises(RefusedError, match="other terms"):
        draw(ledger, PureBudget(1), account)
    assert draw(ledger, PureBudget(5), other) == 1
    with pytest.raises(RefusedError, match="first draw has fixed"):
        ledger.open("visits", [MARK], RECORDS)
    assert ledger.account("visits").terms == LOOSE


# One transaction opens an account and pays.


def test_a_payment_opens_the_account_and_is_an_entry(used):
    budget = ApproxBudget(1, "1e-6")
    account, entry = pay(used, " new ", [NEW_MARK], LOOSE, budget, mechanism="kdtree", purpose="release", contributions=4)
    assert (account.name, account.terms, account.draws, account.spent["epsilon"]) == ("new", LOOSE, 1, 1)
    assert (entry.id, entry.budget, entry.mechanism, entry.purpose, entry.contributions) == (2, budget, "kdtree", "release", 4)
    assert used.entry(2) == (account, entry)
    assert used.find_by_fingerprints([NEW_MARK]) == account


@pytest.mark.parametrize(
    ("name", "marks", "terms", "budget", "error"),
    [
        ("new", [NEW_MARK], RECORDS, PureBudget(2), RefusedError),
        ("new", [NEW_MARK], RECORDS, ZcdpBudget("1/2"), RefusedError),
        ("new", [NEW_MARK], RECORDS, 0.5, BudgetError),
        ("visits", [NEW_MARK], RECORDS, PureBudget("3/4"), RefusedError),
        ("visits", [NEW_MARK], LOOSE, PureBudget("1/4"), RefusedError),
        ("other", [MARK, NEW_MARK], RECORDS, PureBudget("3/4"), RefusedError),
        ("unused", [NEW_MARK], LOOSE, PureBudget(6), RefusedError),
        ("unused", [MARK], RECORDS, PureBudget("1/4"), RefusedError),
    ],
)
def test_a_refused_payment_leaves_no_trace(used, name, marks, terms, budget, error):
    before = used.path.read_bytes()
    for refused in (lambda: used.preview(name, marks, terms, budget), lambda: pay(used, name, marks, terms, budget)):
        with pytest.raises(error):
            refused()
    assert used.path.read_bytes() == before
    assert used.find_by_fingerprints([NEW_MARK]) is None
    assert used.account("unused").terms == RECORDS


@pytest.mark.parametrize(
    ("name", "marks", "terms", "budget"),
    [
        ("new", [NEW_MARK], PEOPLE, PureBudget(1)),
        ("visits", [NEW_MARK], RECORDS, PureBudget("1/4")),
        ("other", [MARK, NEW_MARK], RECORDS, PureBudget("1/2")),
        ("unused", [NEW_MARK], LOOSE, ApproxBudget(5, "1e-6")),
    ],
)
def test_a_preview_is_the_account_after_the_payment_and_leaves_no_trace(used, path, name, marks, terms, budget):
    before = used.path.read_bytes()
    foreseen = used.preview(name, marks, terms, budget)
    assert used.path.read_bytes() == before
    account, _ = pay(used, name, marks, terms, budget)
    assert replace(foreseen, created=account.created) == account
    nowhere = usual(path.parent / "none.sqlite")
    assert nowhere.preview(name, marks, terms, budget).draws == 1
    assert not nowhere.path.exists()


def test_how_many_records_of_a_person_are_counted_may_differ(used):
    """A draw protects all that a person has, whatever its bound is: its noise is scaled by its own bound, and the budgets add up."""
    for most in (1, 5, 2):
        account, _ = pay(used, "people", [NEW_MARK], PEOPLE, PureBudget(1), contributions=most)
    assert (account.spent["rho"], [entry.contributions for entry in used.entries("people")]) == (Fraction(3, 2), [1, 5, 2])


def test_a_look_before_there_is_an_account_is_remembered(path):
    """Also one in another process, or one at the same file on another frame."""
    usual(path).note_truth_seen([MARK, OTHER_MARK])
    ledger = Ledger(path)
    assert ledger.accounts() == []
    assert ledger.seen([NEW_MARK, OTHER_MARK])
    assert not ledger.seen([NEW_MARK])
    assert pay(ledger, "visits", [NEW_MARK, OTHER_MARK], RECORDS, TENTH)[0].truth_seen
    assert not pay(ledger, "others", [LAST_MARK], RECORDS, TENTH)[0].truth_seen


def test_a_search_for_persons_is_no_look_and_is_remembered_under_every_mark(path):
    ledger = Ledger.new(path)
    ledger.note_persons_searched([MARK])
    assert not ledger.seen([MARK])
    searched, others = (pay(ledger, name, [mark], RECORDS, TENTH)[0] for name, mark in (("visits", MARK), ("others", OTHER_MARK)))
    assert [(each.persons_searched, each.truth_seen) for each in (searched, others)] == [(True, False), (False, False)]


def test_a_look_afterwards_counts_for_the_account_and_for_all_its_marks(used):
    used.open("visits", [NEW_MARK], RECORDS)
    used.note_truth_seen([MARK])
    used.note_truth_seen([MARK])
    assert used.account("visits").truth_seen
    assert used.seen([NEW_MARK]), "the account has both marks"
    assert not used.account("unused").truth_seen
    used.note_truth_seen([MARK, OTHER_MARK])
    assert [account.truth_seen for account in used.accounts()] == [True, True], "a look that is at two accounts counts for both"
