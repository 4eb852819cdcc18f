"""The table of a study: in its own order, read back from a file, summed up with intervals, and the frontier of the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy
from pyarrow import csv

from dpviz.errors import InputError, SettingError
from dpviz.evaluation.study import Study
from dpviz.privacy.receipt import NOT_PRIVATE, SIMULATION

METRICS = ("n3", "mae", "mean20", "median20")
KEYS = ("label", "mechanism", "private", "status", "settings", "epsilon", "delta", "workload")
CONFIDENCE = 0.95
BAND = (0.1, 0.9)
_TEXTS = csv.ConvertOptions(column_types={"study": pa.string(), "run": pa.string(), "label": pa.string()})
_NO_FIGURES = {*KEYS, "study", "repeat", "run", "questions", "package", "dpviz", "numpy", "python"}


def tidy(study: Study, rows: Iterable[dict[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Rows in the study's own order, whatever order they came in, with its labels; rows of runs that it has not are left out.

    Args:
        study: whose rows.
        rows: as `compare` gave them, or a table of them, or of several calls one after the other.
    """
    table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if not len(table):
        return pd.DataFrame(columns=[*KEYS, "repeat", "run", *METRICS, "seconds"])
    runs = {run.id: (place, run.label) for place, run in enumerate(study.runs())}
    names = {name: place for place, name in enumerate(study.questions.names())}
    table = _with_status(table)
    table = table[table["run"].isin(runs.keys()) & table["workload"].isin(names)].drop_duplicates(["run", "workload"])
    table = table.assign(
        label=table["run"].map({run: label for run, (_, label) in runs.items()}),
        _run=table["run"].map({run: place for run, (place, _) in runs.items()}),
        _name=table["workload"].map(names),
    )
    return table.sort_values(["_run", "_name"]).drop(columns=["_run", "_name"]).reset_index(drop=True)


def _with_status(table: pd.DataFrame) -> pd.DataFrame:
    """The same rows; those of tables that were written without a status get theirs."""
    status = pd.Series(np.where(table["private"].astype(bool), SIMULATION, NOT_PRIVATE), table.index, dtype=object)
    return table.assign(status=table["status"].fillna(status) if "status" in table else status)


def read_rows(path: Path) -> pd.DataFrame:
    """Rows of a study from a table that was written before (.csv, .json or .parquet), to resume it.

    Raises:
        InputError: another kind of file, or none that can be read.
    """
    readers: dict[str, Callable[[], pd.DataFrame]] = {
        ".csv": lambda: csv.read_csv(path, convert_options=_TEXTS).to_pandas(),  # exact, whatever the version of pandas
        ".json": lambda: pd.read_json(path, precise_float=True, dtype={"run": str, "study": str}),
        ".parquet": lambda: pd.read_parquet(path),
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError("A study resumes from a table in .csv, .json or .parquet.")
    try:
        return reader()
    except (OSError, ValueError, pa.ArrowException):
        raise InputError("The table to resume from cannot be read: is it the table of a study?") from None


def made_already(study: Study, rows: pd.DataFrame | None) -> set[str]:
    """Ids of the runs that are complete in a table.

    Raises:
        SettingError: no table, or rows of another study, which do not belong in one table with this one's.
    """
    if rows is None:
        return set()
    if not isinstance(rows, pd.DataFrame):
        raise SettingError("The rows to resume from (done) must be a table: give pd.DataFrame(rows), or what read_rows gives.")
    if not len(rows):
        return set()
    if not {"study", "run", "workload"} <= set(rows.columns) or not set(METRICS) <= set(rows.columns):
        raise SettingError("The rows to resume from are none of a study: columns study, run, workload and the figures are needed.")
    if set(rows["study"].astype(str)) != {study.mark}:
        raise SettingError(
            "The rows to resume from belong to another study: other data, another seed, other queries, or another version of dpviz."
            " Leave them out, or give this study the same."
        )
    names = set(study.questions.names())
    known = rows[rows["workload"].isin(names)].groupby("run")["workload"].nunique()
    return {str(run) for run in known.index[known == len(names)]}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Every figure over the repeats.

    Args:
        table: from `tidy`, whole or as far as it is.

    Returns:
        One row per label, epsilon, workload and figure, in the table's order: `KEYS`, figure, runs, mean, stddev, low and high (95 %
        interval of the mean over all noise, Student's t over the repeats; NaN for a single one), p10 and p90 (of the repeats).
    """
    figures = [name for name in table.columns if name not in _NO_FIGURES]
    long = table.melt(id_vars=[*KEYS], value_vars=figures, var_name="figure", value_name="value").dropna(subset="value")
    if not len(long):
        return pd.DataFrame(columns=[*KEYS, "figure", "runs", "mean", "stddev", "low", "high", "p10", "p90"])
    grouped = long.groupby([*KEYS, "figure"], sort=False, observed=True)["value"]
    found = grouped.agg(runs="size", mean="mean", stddev="std").reset_index()
    for name, share in zip(("p10", "p90"), BAND, strict=True):
        found[name] = grouped.quantile(share).to_numpy()
    runs = found["runs"].to_numpy()
    width = scipy.special.stdtrit(np.maximum(runs - 1, 1), (1 + CONFIDENCE) / 2) * found["stddev"] / np.sqrt(runs)
    ordered = ["figure", "runs", "mean", "stddev", "low", "high", "p10", "p90"]
    return found.assign(low=found["mean"] - width, high=found["mean"] + width)[[*KEYS, *ordered]]


def frontier(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of a summary that no other one beats: none has as small an epsilon and a smaller mean. References never count.

    Args:
        points: of one workload and one figure.
    """
    private = points[points["private"].astype(bool)].sort_values(["epsilon", "mean"], kind="stable")
    best = private["mean"].cummin().shift(fill_value=np.inf)
    return private[private["mean"] < best]
