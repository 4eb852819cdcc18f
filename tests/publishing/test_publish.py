"""Publication: public checks first, then payment, then the release; every later failure says that the budget is spent.

The published release is the paid one, and an account has one definition of a person, as manifest and report have.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.amounts import format_budget
from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.mechanisms import ExactKdtree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.ledger_file import LedgerFile
from dpviz.publishing import publish as module
from dpviz.publishing.order import unit_definition
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import Order, draw, publish, write
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.release.manifest import Publication, describe
from dpviz.space.domain import Domain
from tests.publishing.configs import FLOWS, POINTS, changed, written
from tests.release_cases import flows_on, regions_with_shapes

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
POSITIONS = np.random.default_rng(1).uniform(0, 16, (2, 500))
CROWD = PointCounts.from_xy(*POSITIONS, domain=PLANE)
HALF = PureBudget("1/2")


def order(mechanism=None, **options):
    plain = {"budget": HALF, "dataset": "crowd", "fingerprints": fingerprints_of(CROWD), "cap": PureBudget(1), "data": CROWD}
    return Order(mechanism=mechanism or Quadtree(height=2), **{**plain, **options})


def of_trips(**options):
    """An order of trips, whose person or trip the data say."""
    plain = {"data": flows_on(regions_with_shapes()), "budget": ApproxBudget(1, "1e-6"), "cap": ApproxBudget(4, "1e-5"), "dataset": "trips"}
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


def spend_more(release, points, budget, entropy):
    return release(points, PureBudget(50), entropy)


def spend_more_on_records(release, points, budget, entropy):
    return release(points, PureBudget(50) if len(points.count) else budget, entropy)


def state_another_bound(release, points, budget, entropy):
    made = release(points, budget, entropy)
    return replace(made, receipt=replace(made.receipt, contributions=2))


def state_other_neighbours_of_records(release, points, budget, entropy):
    made = release(points, budget, entropy)
    return replace(made, receipt=replace(made.receipt, neighbours="replace one")) if len(points.count) else made


def test_a_release_is_drawn_described_reported_and_written(ledger, words):
    told, seen = [], []
    mechanism = watched(lambda entropy: seen.append((ledger.account("crowd").draws, entropy.simulation)))
    done = publish(order(mechanism), words, ledger, say=told.append)
    again = read_release(done.folder)
    assert seen == [(1, False)], "the ledger counts the release before records are used"
    assert (again.simulation, again.receipt.spent) == (False, HALF)
    assert {"manifest.json", "report.html"} <= {path.name for path in done.folder.iterdir()}
    assert done.account.spent["epsilon"] == HALF.epsilon
    assert [(entry.purpose, entry.published) for entry in ledger.entries("crowd")] == [("release", done.manifest["identity"]["release_id"])]
    assert len(told) >= 2


@pytest.mark.parametrize(
    ("asked", "texts", "error", "told"),
    [
        ({"budget": PureBudget(2)}, {}, RefusedError, "left"),
        ({"budget": ApproxBudget(1, "1e-6")}, {}, BudgetError, "PureBudget"),
        ({"cap": None}, {}, BudgetError, "cap"),
        ({"cap": ZcdpBudget(1), "budget": ZcdpBudget("1/2")}, {}, BudgetError, "PureBudget"),
        ({"mechanism": ExactKdtree()}, {}, RefusedError, "NOT PRIVATE"),
        ({"mechanism": Quadtree(split="custom", weights=(1.0, 2.0))}, {}, DpvizError, "weights"),
        ({"mechanism": acting(spend_more)}, {}, RefusedError, "another budget"),
        ({"mechanism": acting(state_another_bound)}, {}, RefusedError, "records per unit"),
        ({}, {"curator": " "}, SettingError, "curator"),
        ({}, {"formats": ("csv",)}, SettingError, "geoparquet among them"),
        ({}, {"formats": ("geoparquet", "pickle")}, SettingError, "formats"),
        ({}, {"name": "bell \a"}, SettingError, "control character"),
        ({}, {"folder": "there"}, SettingError, "exists already"),
        ({}, {"folder": "no/out"}, SettingError, "does not exist"),
        *(({}, {"folder": name}, SettingError, "cannot be made") for name in ("n" * 250, "half \ud800", "nul \0")),
    ],
)
def test_what_is_refused_before_payment_spends_nothing(ledger, words, tmp_path, asked, texts, error, told):
    (tmp_path / "there").mkdir()
    texts = {**texts, "folder": tmp_path / texts.get("folder", "out")}
    with pytest.raises(error, match=told) as refused:
        publish(replace(order(), **asked), replace(words, **texts), ledger)
    assert ledger.accounts() == []
    assert ledger.find_by_fingerprints(order().fingerprints) is None
    assert "is spent" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (spend_more_on_records, "another budget"),
        (state_other_neighbours_of_records, "something else than that of its dry run"),
    ],
)
def test_a_release_that_breaks_its_promise_on_records_is_not_published(ledger, words, act, told):
    with pytest.raises(RefusedError, match=rf"{told}; nothing is published\. The budget is spent"):
        publish(order(acting(act)), words, ledger)
    assert not words.folder.exists()


class LibraryError(Exception):
    """What a library might raise, quoting a cell."""


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (LibraryError("Rosa lives here"), DpvizError, "The draw failed (LibraryError). The budget is spent: draw 1 of 'crowd'"),
        (MemoryError(), DpvizError, "There is not enough memory. The budget is spent"),
        (SettingError("Too large."), SettingError, "Too large. The budget is spent"),
        (KeyboardInterrupt(), KeyboardInterrupt, "Interrupted: nothing was published. The budget is spent"),
    ],
)
def test_a_failure_after_payment_says_that_the_budget_is_spent(ledger, words, raised, kind, told):
    def met(_):
        raise raised

    with pytest.raises(kind) as failed:
        publish(order(watched(met)), words, ledger)
    assert str(failed.value).startswith(told)
    assert str(failed.value).count("The budget is spent") == 1
    assert "Rosa" not in str(failed.value)
    assert failed.value.__context__ is None
    assert ledger.account("crowd").draws == 1
    assert not words.folder.exists()


def test_a_draw_of_curate_can_be_published_later_and_the_manifest_counts_all(ledger, words):
    quarter = order(budget=PureBudget("1/4"))
    draw(quarter, ledger)
    kept = draw(quarter, ledger)
    ledger.note_account_truth_seen("crowd")
    done = write(kept, words, ledger)
    again = read_release(done.folder)
    np.testing.assert_array_equal(again.count, kept.release.count)
    told = describe(kept.release, Publication(name="a", curator="b", description="", region="", intended_use="", draws=2, truth_seen=True))
    assert done.manifest["implementation"] == told["implementation"]
    assert '"draws": 2' in (done.folder / "manifest.json").read_text("utf-8")
    assert [(entry.purpose, entry.published is None) for entry in ledger.entries("crowd")] == [("draw", True), ("draw", False)]
    assert ledger.account("crowd").draws == 2


def test_known_data_need_no_cap_and_keep_their_account_under_another_name(ledger):
    draw(order(), ledger)
    told = []
    paid = draw(order(dataset="renamed", cap=None), ledger, say=told.append)
    assert paid.account.name == "crowd"
    assert "crowd" in told[0]
    with pytest.raises(RefusedError, match="left"):
        draw(order(dataset="renamed again", cap=None), ledger)
    assert ledger.account("crowd").draws == 2


def test_a_dataset_has_one_unit_and_one_neighbour_relation(ledger):
    plain = of_trips()
    draw(plain, ledger)
    assert ledger.account("trips").terms.neighbours == "replace one"
    with pytest.raises(RefusedError):
        draw(replace(plain, mechanism=TopDown(neighbours="add_remove")), ledger)
    assert ledger.account("trips").draws == 1


def test_an_order_shows_no_count_and_no_mark():
    assert "500" not in repr(order())
    assert fingerprints_of(CROWD)[0] not in repr(order())


def test_a_lone_surrogate_in_a_region_spends_nothing(ledger):
    regions = regions_with_shapes()
    flows = flows_on(replace(regions, names=(regions.names[0], np.array(["A", "B", "C", "half \ud800"], object))))
    with pytest.raises(SettingError, match="half a character"):
        draw(of_trips(data=flows), ledger)
    assert ledger.accounts() == []


def test_the_ledger_is_not_used_between_payment_and_release(ledger, monkeypatch):
    real = Ledger.pay

    def paid_for(*given, **options):
        found = real(*given, **options)
        monkeypatch.setattr(LedgerFile, "_open_checked", lambda *_: pytest.fail("asked"))
        return found

    monkeypatch.setattr(Ledger, "pay", paid_for)
    told = []
    paid = draw(order(), ledger, say=told.append)
    assert (paid.entry, paid.account.draws, paid.account.spent["epsilon"]) == (1, 1, HALF.epsilon)
    assert told == ["Spent epsilon 0.5; left: epsilon 0.5. Drawing."]


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_paid_release_is_written_elsewhere_if_its_folder_fails(ledger, words, tmp_path, monkeypatch, everywhere):
    temporary, told = tmp_path / "temporary", []
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    def full(release, folder, *rest, **options):
        if everywhere or folder == words.folder:
            raise DpvizError("No room.")
        return write_release(release, folder, *rest, **options)

    monkeypatch.setattr(module, "write_release", full)
    if everywhere:
        with pytest.raises(DpvizError, match=r"^No room\. The budget is spent"):
            publish(order(), words, ledger)
        assert list(temporary.iterdir()) == []
        assert [entry.published for entry in ledger.entries("crowd")] == [None]
        return
    done = publish(order(), words, ledger, say=told.append)
    assert done.folder.parent.parent == temporary
    assert told[-1].startswith(f"No room. It is in {done.folder} instead")
    assert read_release(done.folder).receipt.total == HALF
    assert ledger.entries("crowd")[0].published is not None


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, "Interrupted. Published in {}; the ledger could not note it."),
        (RefusedError("The ledger is full."), RefusedError, "Published in {}; the ledger could not note it. The ledger is full."),
        (OSError("secret"), RefusedError, "Published in {}; the ledger could not note it."),
    ],
)
def test_failures_after_the_files_are_written_say_so(ledger, words, monkeypatch, raised, kind, told):
    def failing(*_):
        raise raised

    monkeypatch.setattr(Ledger, "published", failing)
    with pytest.raises(kind) as failed:
        publish(order(), words, ledger)
    assert str(failed.value).startswith(told.format(words.folder))
    assert "nothing was published" not in str(failed.value)
    assert "secret" not in str(failed.value)
    assert read_release(words.folder).receipt.total == HALF


def test_the_remaining_budget_is_rounded_down_and_the_manifest_is_exact(ledger, words):
    done = publish(order(cap=PureBudget("7/6")), words, ledger)
    left = format_budget(done.account.left)
    assert left == "epsilon 0.666666666"
    draw(order(budget=PureBudget(left.split()[1]), cap=PureBudget("7/6")), ledger)
    dataset = read_manifest(words.folder)["dataset"]
    assert dataset["cap"]["epsilon"] == {"exact": "7/6", "decimal": 7 / 6}
    assert (dataset["spent"]["epsilon"]["exact"], dataset["spent"]["rho"]) == ("1/2", None)


def test_new_data_are_named_and_data_with_two_accounts_refused_with_a_remedy(ledger):
    told, quarter = [], PureBudget("1/4")
    for dataset, marks in (("crowd", order().fingerprints), ("crowd", ("cd" * 32,)), ("others", ("ab" * 32,))):
        draw(order(budget=quarter, dataset=dataset, fingerprints=marks), ledger, say=told.append)
    assert ["These data are new to the account" in line for line in told] == [False, True, False, False]
    with pytest.raises(RefusedError, match=r"'crowd' and 'others'.*give the name that these data had before"):
        draw(order(dataset="others"), ledger)


MARKUP = "<b>user</b>"
EITHER = TopDown(neighbours="add_remove")
TRIPS = changed(FLOWS, "mechanism.settings", {"neighbours": "add_remove"})


def visits(folder, tables):
    """A configuration in a folder with visits, and trips, of users who have several."""
    path = written(folder, tables)
    for name in ("crowd", "trips"):
        table = pd.read_csv(folder / f"{name}.csv")
        table.assign(**{MARKUP: [1, 1, 2, 3, 3][: len(table)], "visit": range(len(table))}).to_csv(folder / f"{name}.csv", index=False)
    return path


def of_persons(tables, column, most=3):
    tables = changed(tables, "data.person", column)
    tables["dataset"].pop("unit", None)
    return changed(tables, "data.contributions", most)


@pytest.mark.parametrize(("tables", "each"), [(POINTS, "records"), (TRIPS, "trips")])
def test_the_same_file_is_not_added_up_under_another_column_of_persons(run, ledger, tmp_path, tables, each):
    assert run("release", visits(tmp_path, of_persons(tables, MARKUP)))[0] == 0
    name = tables["dataset"]["name"]
    assert ledger.account(name).terms.person == MARKUP
    said = f"a person is one value of the column '{MARKUP}', of whom at most 3 {each} were counted"
    assert read_manifest(tmp_path / "out")["privacy"]["unit_definition"] == said
    assert read_release(tmp_path / "out").receipt.unit_definition == said
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "one value of the column &#39;&lt;b&gt;user&lt;/b&gt;&#39;" in page
    assert MARKUP not in page
    assert f"one person (one value of the column '{MARKUP}')" in run("ledger", "show")[1]
    assert json.loads(run("ledger", "show", name, "--json")[1])["person"] == MARKUP
    again = changed(changed(of_persons(tables, "visit"), "output.folder", "again"), "dataset.name", "renamed")
    code, _, err = run("release", visits(tmp_path, again))
    assert code == 1
    assert f"its definition of a person is one value of the column '{MARKUP}', not one value of the column 'visit'" in err
    assert ledger.account(name).draws == 1
    wider = changed(of_persons(tables, MARKUP, 5), "output.folder", "wider")
    assert run("release", visits(tmp_path, wider))[0] == 0, "another bound is the same person"


def several(**options):
    """Trips of persons who have up to four."""
    return replace(flows_on(regions_with_shapes()), contributions=4, unit="person", **options)


def test_persons_without_a_column_are_described_as_vouched_for(ledger):
    asked = of_trips(mechanism=EITHER, data=several())
    assert unit_definition(asked) == "no column says who a person is; the curator vouches that nobody has more than 4 trips"
    paid = draw(asked, ledger)
    assert (paid.account.terms.person, paid.release.receipt.unit_definition) == ("", unit_definition(asked))


def test_an_old_account_says_when_it_takes_a_definition(ledger):
    asked = of_trips(mechanism=EITHER, data=several(enforced=True))
    draw(asked, ledger)
    with ledger._file.writing() as db:
        db.execute("UPDATE dataset SET person = NULL")
    lines = []
    draw(replace(asked, person="user"), ledger, say=lines.append)
    assert lines[0].startswith("The ledger had not noted what a person of 'trips' is: from now on one value of the column 'user'.")
    assert ledger.account("trips").spent["epsilon"] == 2
    with pytest.raises(RefusedError, match="not one value of the column 'visit'"):
        draw(replace(asked, person="visit"), ledger)


def test_records_have_no_unit_definition(run, ledger, tmp_path):
    assert run("release", written(tmp_path, POINTS))[0] == 0
    assert read_manifest(tmp_path / "out")["privacy"]["unit_definition"] is None
    assert "Whom it protects" not in (tmp_path / "out" / "report.html").read_text("utf-8")
