"""One run of a study as rows of the study's table: its settings, the errors of its answers, its duration, and the versions used."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from dpviz.errors import DpvizError
from dpviz.evaluation.study import Run, Study, version_of
from dpviz.families import FAMILIES

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The reason why a run gave no rows. Data of studies are public, so the text may quote errors of other packages."""

    text: str


def make_rows(study: Study, run: Run) -> list[Row]:
    """Make one row per workload of a run. The rows depend on the study and the run alone, except for the seconds and the versions.

    Returns:
        Rows of study (a fingerprint: rows with equal ones belong in one table), label, mechanism (key), private (whether the mechanism is
        private), status (of the release: a simulation, or not private), settings (those that differ from the defaults, as JSON), epsilon,
        delta, repeat, run (its id), workload, questions (how many), n3, mae, mean20, median20, further figures (see
        `dpviz.evaluation.study`), seconds (that the release took), and the versions: package (that has the mechanism), dpviz,
        numpy and python.
    """
    start = time.perf_counter()
    release = study.release(run)
    seconds = time.perf_counter() - start
    description = {
        "study": study.fingerprint,
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
    circumstances = {"seconds": seconds, "package": package_of(type(run.mechanism).__module__), **_versions()}
    return [{**description, **figures, **circumstances} for figures in study.questions.rows(release, parts=study.parts)]


def attempt(study: Study, run: Run) -> list[Row] | Failure:
    """Make the rows of a run, or return the reason why it failed."""
    name = run_name(run)
    try:
        return make_rows(study, run)
    except DpvizError as error:
        return Failure(text=f"{name}: {error}")
    except MemoryError:
        return Failure(text=f"{name}: there is not enough memory.")
    except Exception as error:  # noqa: BLE001  (a mechanism of another package may raise anything)
        return Failure(text=f"{name}: failed with {type(error).__name__}: {str(error)[:300]}")


def run_name(run: Run) -> str:
    """Return a run's name for messages about its failure."""
    return f"{run.label[:80]}, epsilon {float(run.budget.epsilon):g}, repeat {run.repeat}"


@cache
def package_of(module: str) -> str:
    """Return name and version of the package that contains a module; for an unknown package, the first part of the module's name."""
    top_package = module.partition(".")[0]
    if top_package == "dpviz":
        return f"dpviz {version_of('dpviz')}"
    for family in FAMILIES.values():
        for entry in entry_points(group=family.group):
            if entry.module.partition(".")[0] == top_package and entry.dist is not None:
                return f"{entry.dist.name} {entry.dist.version}"
    return top_package


@cache
def _versions() -> dict[str, str]:
    return {"dpviz": version_of("dpviz"), "numpy": version_of("numpy"), "python": platform.python_version()}
