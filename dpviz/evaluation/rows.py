"""One run of a study as rows of its table: what it is, how far off its answers are, how long it took, and by which versions."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from dpviz.errors import DpvizError
from dpviz.evaluation.study import Run, Study, version_of
from dpviz.mechanisms import FAMILIES

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a run gave no rows, in words; data of studies are public, so texts of others may stand in it."""

    text: str


def make_rows(study: Study, run: Run) -> list[Row]:
    """A row per workload of one run, whichever process makes it: a function of the study and the run alone, but for the seconds.

    Returns:
        Rows of study (a fingerprint: rows with equal ones belong in one table), label, mechanism (key), private (whether the mechanism is),
        status (of the release: a simulation, or not even that), settings (those that differ from the defaults, as JSON), epsilon,
        delta, repeat, run (its id), workload, questions (how many), n3, mae, mean20, median20, further figures (see
        `dpviz.evaluation.study`), seconds (of drawing the release), and the versions: package (that the mechanism comes from), dpviz,
        numpy and python.
    """
    start = time.perf_counter()
    release = study.release(run)
    seconds = time.perf_counter() - start
    known = {
        "study": study.mark,
        "label": run.label,
        "mechanism": run.mechanism.key,
        "private": run.mechanism.private,
        "status": release.status,
        "settings": run.settings,
        "epsilon": float(run.budget.epsilon),
        "delta": float(run.delta),
        "repeat": run.repeat,
        "run": run.id,
    }
    end = {"seconds": seconds, "package": package_of(type(run.mechanism).__module__), **_versions()}
    return [{**known, **figures, **end} for figures in study.questions.rows(release, parts=study.parts)]


def attempt(study: Study, run: Run) -> list[Row] | Failure:
    """The rows of a run, or why there are none."""
    where = run_name(run)
    try:
        return make_rows(study, run)
    except DpvizError as error:
        return Failure(text=f"{where}: {error}")
    except MemoryError:
        return Failure(text=f"{where}: there is not enough memory.")
    except Exception as error:  # noqa: BLE001  (a mechanism of another package may raise anything)
        return Failure(text=f"{where}: failed with {type(error).__name__}: {str(error)[:300]}")


def run_name(run: Run) -> str:
    """A run's name in messages about its failure."""
    return f"{run.label[:80]}, epsilon {float(run.budget.epsilon):g}, repeat {run.repeat}"


@cache
def package_of(module: str) -> str:
    """Name and version of the package that a module comes from; of an unknown one its first name."""
    top = module.partition(".")[0]
    if top == "dpviz":
        return f"dpviz {version_of('dpviz')}"
    for family in FAMILIES.values():
        for entry in entry_points(group=family.group):
            if entry.module.partition(".")[0] == top and entry.dist is not None:
                return f"{entry.dist.name} {entry.dist.version}"
    return top


@cache
def _versions() -> dict[str, str]:
    return {"dpviz": version_of("dpviz"), "numpy": version_of("numpy"), "python": platform.python_version()}
