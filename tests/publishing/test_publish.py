"""Publication: public checks first, then payment, then the release; every later failure says that the budget is spent.

The published release is the paid one, and an account has one definition of a person, as manifest and report have.
"""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.mechanisms import ExactKdtree, PathTree, PlanarLaplace, Quadtree, SuppressedCounts, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.ledger_file import LedgerFile
from dpviz.publishing import publish as module
from dpviz.publishing.kept import kept_draws
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import Order, draw, publish, write
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.space.domain import Domain
from tests.publishing.configs import FLOWS, POINTS, changed, per_person, written
from tests.release_cases import regions_with_shapes, trip_counts_on

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
POSITIONS = np.random.default_rng(1).uniform(0, 16, (2, 500))
CROWD = PointCounts.from_xy(*POSITIONS, domain=PLANE)
HALF = PureBudget("1/2")
REGIONS = regions_with_shapes()


def order(mechanism=None, **options):
    plain = {"budget": HALF, "dataset": "crowd", "fingerprints": fingerprints_of(CROWD), "cap": PureBudget(1), "data": CROWD}
    return Order(mechanism=mechanism or Quadtree(height=2), **{**plain, **options})


def of_trips(**options):
    """An order of trips, whose person or trip the data say."""
    plain = {"data": trip_counts_on(REGIONS), "budget": ApproxBudget(1, "1e-6"), "cap": ApproxBudget(4, "1e-5"), "dataset": "trips"}
    plain |= options
    return order(plain.pop("mechanism", TopDown()), **{"fingerprints": fingerprints_of(plain["data"]), **plain})


def acting(act):
    """A quadtree whose releases `act` makes from how a quadtree releases, the points, the budget and the entropy."""

    class Acting(Quadtree):
        def release(self, points, budget, entropy):
            return act(super().release, points, budget, entropy)

    return Acting(height=2)


def watched(met):
    """A quadtree that calls `met` only on the real records, not in a rehearsal, whose records are made up."""

    def act(release, points, budget, entropy):
        if points.count.sum() == len(POSITIONS[0]):
            met(entropy)
        return release(points, budget, entropy)

    return acting(act)


def stating(*, always=True, **changes):
    """A quadtree whose receipts state something else than what was done, always or only where there are records."""

    def act(release, points, budget, entropy):
        made = release(points, budget, entropy)
        return replace(made, receipt=replace(made.receipt, **changes)) if always or len(points.count) else made

    return acting(act)


def test_a_release_is_drawn_described_reported_and_written(ledger, words):
    seen = []
    mechanism = watched(lambda entropy: seen.append((ledger.account("crowd").draws, entropy.simulation)))
    done = publish(order(mechanism), words, ledger)
    again = read_release(done.folder)
    assert seen == [(1, False)], "the ledger counts the release before records are used"
    assert (again.simulation, again.receipt.spent) == (False, HALF)
    assert done.account.spent["epsilon"] == HALF.epsilon
    assert [(entry.purpose, entry.published) for entry in ledger.entries("crowd")] == [("release", done.manifest["identity"]["release_id"])]
    assert done.manifest["privacy"]["unit_definition"] is None, "a record needs none"
    assert "Whom it protects" not in (done.folder / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("changes", "texts", "error", "message"),
    [
        ({"budget": PureBudget(2)}, {}, RefusedError, "left"),
        ({"mechanism": PathTree(), "budget": ApproxBudget(1, "1e-6")}, {}, BudgetError, "epsilon alone.*mechanisms says which take rho"),
        ({"budget": ApproxBudget(1, "1e-6")}, {}, RefusedError, "delta 0"),
        ({"cap": None}, {}, BudgetError, "cap"),
        ({"mechanism": ExactKdtree()}, {}, RefusedError, "NOT PRIVATE"),
        ({"mechanism": SuppressedCounts()}, {}, RefusedError, "NOT PRIVATE"),
        ({"mechanism": PlanarLaplace()}, {}, RefusedError, "NOT PRIVATE"),
        ({"mechanism": Quadtree(split="custom", weights=(1.0, 2.0))}, {}, DpvizError, "weights"),
        ({"mechanism": stating(total=PureBudget(50))}, {}, RefusedError, "another budget"),
        ({"mechanism": stating(contributions=2)}, {}, RefusedError, "records per unit"),
        ({}, {"curator": " "}, SettingError, "curator"),
        ({}, {"formats": ("csv",)}, SettingError, "geoparquet among them"),
        ({}, {"formats": ("geoparquet", "pickle")}, SettingError, "formats"),
        ({}, {"name": "bell \a"}, SettingError, "control character"),
        ({}, {"folder": "there"}, SettingError, "exists already"),
        ({}, {"folder": "no/out"}, SettingError, "does not exist"),
        *(({}, {"folder": name}, SettingError, "cannot be made") for name in ("n" * 250, "half \ud800", "nul \0")),
    ],
)
def test_what_is_refused_before_payment_spends_nothing(ledger, words, tmp_path, changes, texts, error, message):
    (tmp_path / "there").mkdir()
    texts = {**texts, "folder": tmp_path / texts.get("folder", "out")}
    with pytest.raises(error, match=message) as refused:
        publish(replace(order(), **changes), replace(words, **texts), ledger)
    assert ledger.accounts() == []
    assert ledger.find_by_fingerprints(order().fingerprints) is None
    assert "is spent" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_draw_that_could_not_be_published_spends_nothing(ledger):
    names = (REGIONS.names[0], np.array(["A", "B", "C", "half \ud800"], object))
    with pytest.raises(SettingError, match="half a character"):
        draw(of_trips(data=trip_counts_on(replace(REGIONS, names=names))), ledger)
    assert ledger.accounts() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"total": PureBudget(50)}, "another budget"), ({"neighbours": "replace one"}, "something else than that of its dry run")],
)
def test_a_release_that_breaks_its_promise_on_records_is_not_published(ledger, words, changes, message):
    with pytest.raises(RefusedError, match=rf"{message}; nothing is published\. The budget is spent"):
        publish(order(stating(always=False, **changes)), words, ledger)
    assert not words.folder.exists()


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (ZeroDivisionError("Rosa lives here"), DpvizError, "The draw failed (ZeroDivisionError). The budget is spent: draw 1 of 'crowd'"),
        (MemoryError(), DpvizError, "There is not enough memory. The budget is spent"),
        (SettingError("Too large."), SettingError, "Too large. The budget is spent"),
        (KeyboardInterrupt(), KeyboardInterrupt, "Interrupted: nothing was published. The budget is spent"),
    ],
)
def test_a_failure_after_payment_says_that_the_budget_is_spent(ledger, words, raised, kind, message):
    def met(_):
        raise raised

    with pytest.raises(kind) as failed:
        publish(order(watched(met)), words, ledger)
    assert str(failed.value).startswith(message)
    assert str(failed.value).count("The budget is spent") == 1
    assert "Rosa" not in str(failed.value)
    assert failed.value.__context__ is None
    assert ledger.account("crowd").draws == 1
    assert not words.folder.exists()


def test_a_draw_can_be_published_later_and_its_manifest_has_the_exact_sums_of_all_draws(ledger, words):
    quarter = order(budget=PureBudget("1/4"), cap=PureBudget("7/6"))
    draw(quarter, ledger)
    paid = draw(quarter, ledger)
    ledger.note_account_truth_seen("crowd")
    done = write(paid, words, ledger)
    np.testing.assert_array_equal(read_release(done.folder).count, paid.release.count)
    dataset = done.manifest["dataset"]
    assert (dataset["draws"], dataset["spent"]["epsilon"]["exact"], dataset["spent"]["rho"]) == (2, "1/2", None)
    assert dataset["cap"]["epsilon"] == {"exact": "7/6", "decimal": 7 / 6}
    assert done.manifest["implementation"]["tuning"]["truth_seen"] is True
    assert [(entry.purpose, entry.published is None) for entry in ledger.entries("crowd")] == [("draw", True), ("draw", False)]


def test_known_data_need_no_cap_and_keep_their_account_under_another_name(ledger):
    draw(order(), ledger)
    said = []
    paid = draw(order(dataset="renamed", cap=None), ledger, say=said.append)
    assert paid.account.name == "crowd"
    assert "crowd" in said[0]
    with pytest.raises(RefusedError, match="left"):
        draw(order(dataset="renamed again", cap=None), ledger)
    assert ledger.account("crowd").draws == 2


def test_an_order_shows_no_count_and_no_mark():
    assert "500" not in repr(order())
    assert fingerprints_of(CROWD)[0] not in repr(order())


def test_the_ledger_is_not_used_between_payment_and_release(ledger, monkeypatch):
    real = Ledger.pay

    def paid_for(*given, **options):
        found = real(*given, **options)
        monkeypatch.setattr(LedgerFile, "_open_checked", lambda *_: pytest.fail("used"))
        return found

    monkeypatch.setattr(Ledger, "pay", paid_for)
    said = []
    paid = draw(order(), ledger, say=said.append)
    assert (paid.entry, paid.account.draws, paid.account.spent["epsilon"]) == (1, 1, HALF.epsilon)
    assert said == ["Spent epsilon 0.5; left: epsilon 0.5. Drawing."]


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_paid_release_is_written_elsewhere_if_its_folder_fails(ledger, words, tmp_path, monkeypatch, everywhere):
    temporary, said = tmp_path / "temporary", []
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    def full(release, folder, *rest, **options):
        if everywhere or folder == words.folder:
            raise DpvizError("No room.")
        return write_release(release, folder, *rest, **options)

    monkeypatch.setattr(module, "write_release", full)
    with pytest.raises(DpvizError, match=r"^No room\. The budget is spent") if everywhere else nullcontext():
        done = publish(order(), words, ledger, say=said.append)
        assert done.folder.parent.parent == temporary
        assert said[-1].startswith(f"No room. It is in {done.folder} instead")
        assert read_release(done.folder).receipt.total == HALF
    assert [entry.published is None for entry in ledger.entries("crowd")] == [everywhere]
    assert (list(temporary.iterdir()) == []) == everywhere
    assert [entry.id for _, entry in kept_draws(ledger)] == [1], "a temporary folder does not last"


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, "Interrupted. Published in {}; the ledger could not note it."),
        (RefusedError("The ledger is full."), RefusedError, "Published in {}; the ledger could not note it. The ledger is full."),
        (OSError("secret"), RefusedError, "Published in {}; the ledger could not note it."),
    ],
)
def test_failures_after_the_files_are_written_say_so_and_keep_the_release(ledger, words, monkeypatch, raised, kind, message):
    def failing(*_):
        raise raised

    monkeypatch.setattr(Ledger, "published", failing)
    with pytest.raises(kind) as failed:
        publish(order(), words, ledger)
    assert str(failed.value).startswith(message.format(words.folder))
    assert "nothing was published" not in str(failed.value)
    assert "secret" not in str(failed.value)
    assert read_release(words.folder).receipt.total == HALF
    assert [entry.id for _, entry in kept_draws(ledger)] == [1]


def test_new_data_are_named_and_data_with_two_accounts_refused_with_a_remedy(ledger):
    said, quarter = [], PureBudget("1/4")
    for dataset, marks in (("crowd", order().fingerprints), ("crowd", ("cd" * 32,)), ("others", ("ab" * 32,))):
        draw(order(budget=quarter, dataset=dataset, fingerprints=marks), ledger, say=said.append)
    assert ["These data are new to the account" in line for line in said] == [False, True, False, False]
    with pytest.raises(RefusedError, match=r"'crowd' and 'others'.*give the name that these data had before"):
        draw(order(dataset="others"), ledger)


MARKUP = "<b>user</b>"
TRIPS = changed(FLOWS, "mechanism.settings", {"neighbours": "add_remove"})


def visits(folder, tables, column=MARKUP, most=3):
    """A configuration in a folder with visits, and trips, of users who have several."""
    path = written(folder, changed(per_person(tables, {**tables["data"], "person": column}), "data.contributions", most))
    for name in ("crowd", "trips"):
        table = pd.read_csv(folder / f"{name}.csv")
        table.assign(**{MARKUP: [1, 1, 2, 3, 3][: len(table)], "visit": range(len(table))}).to_csv(folder / f"{name}.csv", index=False)
    return path


@pytest.mark.parametrize(("tables", "each"), [(POINTS, "records"), (TRIPS, "trips")])
def test_the_same_file_is_not_added_up_under_another_column_of_persons(run, ledger, tmp_path, tables, each):
    assert run("release", visits(tmp_path, tables))[0] == 0
    name = tables["dataset"]["name"]
    assert ledger.account(name).terms.person == MARKUP
    said = f"a person is one value of the column '{MARKUP}', of whom at most 3 {each} were counted"
    said += "; each row counts as one record" if each == "records" else ""  # of columns that nobody named, no other name is published
    assert read_manifest(tmp_path / "out")["privacy"]["unit_definition"] == said
    assert read_release(tmp_path / "out").receipt.unit_definition == said
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "one value of the column &#39;&lt;b&gt;user&lt;/b&gt;&#39;" in page
    assert MARKUP not in page
    assert f"one person (one value of the column '{MARKUP}')" in run("ledger", "show")[1]
    assert json.loads(run("ledger", "show", name, "--json")[1])["person"] == MARKUP
    code, _, err = run("release", visits(tmp_path, changed(tables, "dataset.name", "renamed"), "visit"), "--output", tmp_path / "again")
    assert code == 1
    assert f"its definition of a person is one value of the column '{MARKUP}', not one value of the column 'visit'" in err
    assert ledger.account(name).draws == 1
    assert run("release", visits(tmp_path, tables, most=5), "--output", tmp_path / "wider")[0] == 0, "another bound is the same person"


def of_persons(**options):
    """An order of trips of persons who have up to four."""
    return of_trips(
        mechanism=TopDown(neighbours="add_remove"), data=replace(trip_counts_on(REGIONS), contributions=4, unit="person", **options)
    )


def test_persons_without_a_column_are_described_as_vouched_for(ledger):
    paid = draw(of_persons(), ledger)
    definition = "no column says who a person is; the curator vouches that nobody has more than 4 trips"
    assert (paid.account.terms.person, paid.release.receipt.unit_definition) == ("", definition)


def test_an_old_account_says_when_it_takes_a_definition(ledger):
    visitors = of_persons(enforced=True)
    draw(visitors, ledger)
    with ledger._file.writing() as db:
        db.execute("UPDATE dataset SET person = NULL")
    said = []
    draw(replace(visitors, person="user"), ledger, say=said.append)
    assert said[0].startswith("The ledger had not noted what a person of 'trips' is: from now on one value of the column 'user'.")
    assert ledger.account("trips").spent["epsilon"] == 2
    with pytest.raises(RefusedError, match="not one value of the column 'visit'"):
        draw(replace(visitors, person="visit"), ledger)
