"""Studies in several processes: the same table, stopped, resumed, and what becomes of workers that fail."""

import itertools
import os
import threading
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from dpviz.errors import DpvizError, InputError, SettingError
from dpviz.evaluation import compare as compare_module
from dpviz.evaluation import workers as workers_module
from dpviz.evaluation.compare import compare
from dpviz.evaluation.tables import read_rows, tidy
from dpviz.mechanisms import MECHANISMS, FlatGaussian, Identity, TopDown
from tests.evaluation.slow_mechanisms import Dying, Endless, Failing
from tests.evaluation.test_compare import COMMUTERS, study
from tests.mechanisms.joined import installed
from tests.often import often

ROOT = Path(__file__).parents[2]
PATIENCE = 30


@pytest.fixture
def crews(monkeypatch):
    """Every crew that a test starts, so that it can be seen whether its processes have ended."""
    made = []

    class Watched(compare_module.WorkerPool):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)
            self.started = list(self._processes)

    monkeypatch.setattr(compare_module, "WorkerPool", Watched)
    monkeypatch.setenv("DPVIZ_STARTED_HERE", str(os.getpid()))
    return made


def gone(crew):
    return all(process.poll() is not None for process in crew.started)


def same(one, other):
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), other.drop(columns="seconds"))


@pytest.fixture
def patient(crews, monkeypatch):
    """Crews whose owner makes no run itself: it waits until a worker is ready."""

    def enter(crew):
        assert crew.ready.wait(PATIENCE)
        return crew

    monkeypatch.setattr(compare_module.WorkerPool, "__enter__", enter)
    return crews


OF_TRIPS = {"data": COMMUTERS, "mechanisms": {"top": TopDown(), "flat": FlatGaussian()}, "delta": "1e-8", "repeats": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"repeats": 6, "workloads": ("random", "zooms", "sizes"), "parts": True}, {**OF_TRIPS, "workloads": ("levels", "sizes")}]
)
def test_the_table_is_the_same_whatever_the_number_of_workers(options, patient):
    which = study(**options)
    alone = list(compare(which))
    same(tidy(which, alone), tidy(which, compare(which, workers=2)))
    same(tidy(which, alone).drop(columns="accounting", errors="ignore"), pd.DataFrame(alone))
    assert len(alone) == len(which) * len(which.questions.names())


@pytest.mark.slow
def test_workers_take_over_from_the_process_that_started_them(crews):
    which, own = study(repeats=1000), []
    with closing(compare(which, workers=2)) as rows:
        for made, _ in enumerate(rows):
            own.append(made) if not crews[0].ready.is_set() else None
            if len(which) - len(crews[0]._waiting) > len(own) + 20:
                break
    assert own
    assert gone(crews[0])


def test_a_closed_study_goes_on_where_it_was(tmp_path):
    which = study(repeats=3)
    whole = tidy(which, compare(which))
    with closing(compare(which, workers=2)) as rows:
        first = list(itertools.islice(rows, 5))
    pd.DataFrame(first).to_csv(tmp_path / "rows.csv", index=False)
    before, made = read_rows(tmp_path / "rows.csv"), []
    rest = list(compare(which, workers=2, done=before, progress=lambda *each: made.append(each)))
    assert made[0] == (5, 12)
    assert made[-1] == (12, 12)
    assert not {row["run"] for row in first} & {row["run"] for row in rest}
    same(tidy(which, [*before.to_dict("records"), *rest]), whole)
    assert list(compare(which, done=whole)) == []


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_rows_read_back_are_the_rows_written(tmp_path, ending):
    which = study()
    table = tidy(which, compare(which))
    path = tmp_path / f"rows.{ending}"
    options = {"csv": {"index": False}, "parquet": {}, "json": {"orient": "records", "double_precision": 15}}[ending]
    getattr(table, f"to_{ending}")(path, **options)
    found = tidy(which, read_rows(path))
    pd.testing.assert_frame_equal(found, table, check_dtype=ending == "parquet", rtol=1e-12)
    assert list(compare(which, done=found)) == []


def test_more_repeats_go_on_from_fewer_and_labels_may_change():
    few, many = study(repeats=1), study(repeats=2, mechanisms={"another name": study().mechanisms["tree"], "cells": Identity()})
    first = list(compare(few))
    rest = list(compare(many, done=pd.DataFrame(first)))
    assert len(rest) == 4
    table = tidy(many, [*first, *rest])
    same(table, tidy(many, compare(many)))
    assert table["label"].unique().tolist() == ["another name", "cells"]


def test_incomplete_runs_are_made_again():
    which = study(workloads=("random", "zooms"))
    rows = list(compare(which))
    assert {row["run"] for row in compare(which, done=pd.DataFrame(rows[:-1]))} == {rows[-1]["run"]}


@pytest.mark.parametrize("change", [{"seed": 8}, {"queries": 31}, {"parts": True}])
def test_rows_of_another_study_are_refused(change):
    rows = pd.DataFrame(list(compare(study(**change))))
    with pytest.raises(SettingError, match="another study"):
        next(compare(study(), done=rows))


def test_what_is_no_table_of_a_study_is_refused(tmp_path):
    with pytest.raises(SettingError, match="are no rows of a study"):
        next(compare(study(), done=pd.DataFrame({"run": ["a"]})))
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "a.txt").write_text("run")
    for name, words in (("a.csv", "cannot be read"), ("no.csv", "cannot be read"), ("a.txt", ".csv, .json or .parquet")):
        with pytest.raises(InputError, match=words):
            read_rows(tmp_path / name)


@pytest.mark.parametrize("workers", [0, 65, True, 1.5])
def test_a_number_of_workers_out_of_range_is_refused(workers):
    with pytest.raises(SettingError, match="workers must be a whole number"):
        next(compare(study(), workers=workers))


@pytest.mark.slow
def test_a_stop_ends_workers_in_the_middle_of_a_run(patient):
    which, stop = study(mechanisms={"endless": Endless()}, repeats=100), threading.Event()
    threading.Timer(0.3, stop.set).start()
    assert list(compare(which, workers=2, stop=stop)) == []
    assert gone(patient[0])
    assert list(compare(study(), stop=stop)) == list(compare(study(), workers=2, stop=stop)) == [], "stopped before the first run"


def rows_and_error(which, **options):
    rows = []
    try:
        for row in compare(which, **options):
            rows.append(row)  # noqa: PERF402  (what comes before the error is wanted)
    except DpvizError as error:
        return rows, str(error)
    return rows, None


@pytest.mark.parametrize("workers", often([1, 2], 1))
def test_a_study_goes_on_without_what_fails_and_names_it_at_the_end(workers, patient):
    """Also in workers, where the failing mechanism prints between the rows."""
    which = study(mechanisms={"failing": Failing(), "cells": Identity()}, epsilons=(1, 2, "1/2"), repeats=5)
    rows, error = rows_and_error(which, workers=workers)
    made = {("cells", 0.5): 5, ("cells", 1): 5, ("cells", 2): 5, ("failing", 1): 5}
    assert pd.DataFrame(rows).groupby(["label", "epsilon"]).size().to_dict() == made
    assert error.startswith("2 configurations of the study failed")
    assert error.count("failing, epsilon 2, repeat") == error.count("there is too much budget") == 1
    assert error.count("failing, epsilon 0.5, repeat") == error.count("failed with KeyError: 'spent'") == 1
    again, _ = rows_and_error(which, workers=workers, done=pd.DataFrame(rows))
    assert again == []
    assert all(gone(crew) for crew in patient)


def test_what_failed_is_not_tried_again_in_the_same_study(monkeypatch):
    tried, real = [], Failing.release
    monkeypatch.setattr(Failing, "release", lambda *given: tried.append(given[2].epsilon) or real(*given))
    which, made = study(mechanisms={"failing": Failing()}, epsilons=(1, 2), repeats=9), []
    with pytest.raises(DpvizError, match=r"One configuration .* repeat 1: there is too much budget"):
        list(compare(which, progress=lambda *each: made.append(each)))
    assert tried.count(2) == 1
    assert made[-1] == (9, 18)


def test_a_long_list_of_failures_is_cut():
    rows, error = rows_and_error(study(mechanisms={"failing": Failing()}, epsilons=range(2, 40), repeats=1))
    assert rows == []
    assert error.count("there is too much budget") == 20
    assert error.endswith("; and 18 more")


def test_a_worker_that_dies_is_named_and_another_one_goes_on(patient):
    which = study(mechanisms={"dying": Dying(), "cells": Identity()}, epsilons=(1,), repeats=10)
    rows, error = rows_and_error(which, workers=2)
    assert [row["label"] for row in rows] == ["cells"] * 10
    assert error.count("its worker ended unexpectedly") == 1
    assert gone(patient[0])


def test_workers_that_cannot_start_are_an_error(monkeypatch):
    monkeypatch.setattr(workers_module, "_START", "raise SystemExit")
    monkeypatch.setattr(compare_module, "_take_next", lambda left: None)
    with pytest.raises(DpvizError, match="before its first run"):
        list(compare(study(), workers=2))


def test_a_mechanism_of_the_running_script_needs_one_process():
    class Local(Identity):
        pass

    which = study(mechanisms={"mine": Local()})
    assert len(list(compare(which))) == 4
    with pytest.raises(SettingError, match="Put it into a module"):
        list(compare(which, workers=2))


@pytest.mark.slow
def test_mechanisms_of_other_packages_join_in_workers_too(patient, tmp_path):
    with installed(tmp_path):
        which = study(mechanisms={"theirs": MECHANISMS.of("points")["their_halves"](share=0.3), "cells": Identity()})
        table = tidy(which, compare(which, workers=2))
        same(table, tidy(which, compare(which)))
    assert table["package"][0] == "their-mechanisms 2.5"
