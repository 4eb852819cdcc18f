"""The table of a study: sort its rows, read it from a file, summarise it over the repeats, and find the frontier."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from pyarrow import csv

from dpviz.errors import InputError, SettingError
from dpviz.evaluation.study import Study
from dpviz.privacy.receipt import NOT_PRIVATE, SIMULATION
from dpviz.release.tables import escape_texts

METRICS = ("n3", "mae", "mean20", "median20")
KEYS = ("label", "mechanism", "private", "status", "settings", "epsilon", "delta", "workload")
CONFIDENCE = 0.95
BAND = (0.1, 0.9)
_SUMMARY = ("figure", "runs", "mean", "stddev", "low", "high", "p10", "p90", "least", "most")
_MOST_LISTED = 6  # missing columns that a message names
_TEXTS = csv.ConvertOptions(column_types={"study": pa.string(), "run": pa.string(), "label": pa.string()})
_NO_FIGURES = {*KEYS, "study", "repeat", "run", "questions", "package", "dpviz", "numpy", "python", "accounting", "link"}
_NUMBERS = ("epsilon", "delta", "repeat", "questions", "seconds", *METRICS)
_FILLED = ("study", "run", "label", "mechanism", "settings", "workload", "epsilon", "repeat")
_AS_DOWNLOADED = "Load the table as it was downloaded."


def csv_text(table: pd.DataFrame) -> str:
    """Write a table as CSV text; texts that a spreadsheet would read as formulas are escaped."""
    return str(escape_texts(table).to_csv(index=False, lineterminator="\n"))


def tidy(study: Study, rows: Iterable[dict[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Make a table of a study's rows, in the study's order and with its labels.

    Args:
        study: the study of the rows.
        rows: from one or several calls of `compare`, or a table of such rows; repeated rows and rows of other studies are left out.

    Returns:
        One row per run and workload: the columns of the rows, and where a delta is spent also accounting (see `accounting_of`).

    Raises:
        DpvizError: `rows` is a call of `compare`, which raises it while its rows are taken.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> study = dv.Study(data=points, public=True, mechanisms={"quad": dv.Quadtree(height=2)}, epsilons=(1,), repeats=2)
    >>> table = dv.tidy(study, dv.compare(study))
    >>> table[["label", "epsilon", "repeat"]].values.tolist()
    [['quad', 1.0, 1], ['quad', 1.0, 2]]
    """
    table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if not len(table):
        return pd.DataFrame(columns=[*KEYS, "repeat", "run", *METRICS, "seconds"])
    runs = {run.id: (position, run.label) for position, run in enumerate(study.runs())}
    names = {name: position for position, name in enumerate(study.questions.names())}
    status = pd.Series(np.where(table["private"].astype(bool), SIMULATION, NOT_PRIVATE), table.index, dtype=object)
    table = table.assign(status=table["status"].fillna(status) if "status" in table else status)  # older tables have none
    table = table[table["run"].isin(runs.keys()) & table["workload"].isin(names)].drop_duplicates(["run", "workload"])
    table = table.assign(
        label=table["run"].map({run: label for run, (_, label) in runs.items()}),
        _run=table["run"].map({run: position for run, (position, _) in runs.items()}),
        _name=table["workload"].map(names),
    )
    accounting = {run.id: study.accounting(run.label) for run in study.runs()}
    if any(accounting.values()):
        table = table.assign(accounting=table["run"].map(accounting))
    return table.sort_values(["_run", "_name"]).drop(columns=["_run", "_name"]).reset_index(drop=True)


def read_rows(path: Path) -> pd.DataFrame:
    """Read the rows of a study from a table (.csv, .json or .parquet), to resume it.

    Raises:
        InputError: another kind of file, or a file that cannot be read.
    """
    readers: dict[str, Callable[[], pd.DataFrame]] = {
        ".csv": lambda: csv.read_csv(path, convert_options=_TEXTS).to_pandas(),  # numbers are read exactly, in every version of pandas
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


def parse_rows(content: bytes) -> pd.DataFrame:
    """Read the rows of one study from the content of a CSV file, such as the Compare page gives, and check every column.

    Args:
        content: of the file.

    Returns:
        The rows. All of them have the same fingerprint in the column study.

    Raises:
        InputError: no CSV file, no rows, rows of several studies, or a column that is missing, unknown or malformed; the text names it.
    """
    try:
        table: pd.DataFrame = csv.read_csv(io.BytesIO(content), convert_options=_TEXTS).to_pandas()
    except (ValueError, pa.ArrowException):
        raise InputError(f"The file cannot be read as a table with commas between its columns. {_AS_DOWNLOADED}") from None
    _check_columns(table)
    if len(set(table["study"])) != 1:
        raise InputError(f"Column study: the rows must all belong to one study, with one fingerprint. {_AS_DOWNLOADED}")
    return table


def _check_columns(table: pd.DataFrame) -> None:
    """Raise `InputError`, which names the column, unless a table has the columns of a study, and they hold what they should."""
    needed = dict.fromkeys((*_NUMBERS, *_FILLED, "private"))
    if lacking := [name for name in needed if name not in table.columns]:
        more = f" and {len(lacking) - _MOST_LISTED} more" if len(lacking) > _MOST_LISTED else ""
        raise InputError(f"The table lacks the columns {', '.join(lacking[:_MOST_LISTED])}{more}. {_AS_DOWNLOADED}")
    if repeated := table.columns[table.columns.duplicated()].tolist():
        raise InputError(f"The column {repeated[0][:40]} is there twice. {_AS_DOWNLOADED}")
    if not len(table):
        raise InputError("The table has no rows: no release of that study was finished.")
    for name, column in table.items():
        if problem := _problem_of(str(name), column):
            raise InputError(f"Column {str(name)[:40]}: {problem} {_AS_DOWNLOADED}")


def _problem_of(name: str, column: pd.Series[Any]) -> str:
    """Say what is wrong with a column of a study's table; "" if nothing is."""
    empty = (column.isna() | column.eq("")).to_numpy()
    if name in _FILLED and empty.any():
        return f"row {int(empty.argmax()) + 1:,} is empty."
    if name == "private":
        return "" if is_bool_dtype(column) else "every value must be True or False."
    if (name in _NUMBERS or name not in _NO_FIGURES) and not column.isna().all():
        numeric = is_numeric_dtype(column) and not is_bool_dtype(column)
        if not numeric or np.isinf(column.to_numpy(np.float64)).any():
            return "every value must be a number."
    return ""


def finished_runs(study: Study, rows: pd.DataFrame | None) -> set[str]:
    """Find the ids of a study's runs all of whose rows are in a table.

    Args:
        study: the study to resume.
        rows: the table of an earlier run of the study; None if there is none.

    Raises:
        SettingError: `rows` is not a table, or has rows of another study.
    """
    if rows is None:
        return set()
    if not isinstance(rows, pd.DataFrame):
        raise SettingError("The rows to resume from (done) must be a table: give pd.DataFrame(rows), or the result of read_rows.")
    if not len(rows):
        return set()
    if not {"study", "run", "workload"} <= set(rows.columns) or not set(METRICS) <= set(rows.columns):
        raise SettingError("The rows to resume from are no rows of a study: columns study, run, workload and the metrics are needed.")
    if set(rows["study"].astype(str)) != {study.fingerprint}:
        raise SettingError(
            "The rows to resume from belong to another study: other data, another seed, other queries, or another version of dpviz."
            " Leave them out, or make this study equal to that one."
        )
    names = set(study.questions.names())
    workloads_per_run = rows[rows["workload"].isin(names)].groupby("run")["workload"].nunique()
    return {str(run) for run in workloads_per_run.index[workloads_per_run == len(names)]}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise every metric over the repeats.

    Args:
        table: from `tidy`; it need not be complete.

    Returns:
        One row per label, epsilon, workload and metric, in the table's order: `KEYS`, figure (the metric), runs, mean, stddev, low and
        high (95 % confidence interval of the mean by Student's t; NaN for a single run), p10 and p90 (percentiles of the runs), least and
        most (of the runs).

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> study = dv.Study(data=points, public=True, mechanisms={"quad": dv.Quadtree(height=2)}, epsilons=(1,), repeats=2)
    >>> found = dv.summary(dv.tidy(study, dv.compare(study)))
    >>> found[["figure", "runs"]].values.tolist()[0]
    ['n3', 2]
    """
    figures = [name for name in table.columns if name not in _NO_FIGURES]
    long = table.melt(id_vars=[*KEYS], value_vars=figures, var_name="figure", value_name="value").dropna(subset="value")
    if not len(long):
        return pd.DataFrame(columns=[*KEYS, *_SUMMARY])
    grouped = long.groupby([*KEYS, "figure"], sort=False, observed=True)["value"]
    table_of_means = grouped.agg(runs="size", mean="mean", stddev="std", least="min", most="max").reset_index()
    for name, share in zip(("p10", "p90"), BAND, strict=True):
        table_of_means[name] = grouped.quantile(share).to_numpy()
    runs = table_of_means["runs"].to_numpy()
    width = scipy.special.stdtrit(np.maximum(runs - 1, 1), (1 + CONFIDENCE) / 2) * table_of_means["stddev"] / np.sqrt(runs)
    return table_of_means.assign(low=table_of_means["mean"] - width, high=table_of_means["mean"] + width)[[*KEYS, *_SUMMARY]]


def frontier(points: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of a summary that are not dominated: no other row has both an epsilon and a mean that are as small or smaller.

    Of rows with equal epsilon and mean, the first one is selected.

    Args:
        points: rows of one workload and one metric. References that are not private are left out.

    >>> import dpviz as dv
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"label": ["a", "b", "a"], "epsilon": [1, 1, 2], "mean": [5.0, 3.0, 4.0], "private": True})
    >>> dv.evaluation.frontier(rows)["label"].tolist()
    ['b']
    """
    private = points[points["private"].astype(bool)].sort_values(["epsilon", "mean"], kind="stable")
    best = private["mean"].cummin().shift(fill_value=np.inf)
    return private[private["mean"] < best]
