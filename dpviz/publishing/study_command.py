"""The compare command: a study from a configuration, in worker processes, into one table; an interrupted one can be resumed."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype

from dpviz.answers.compare import compare
from dpviz.answers.study import Study
from dpviz.answers.study_table import made_already, read_rows, tidy
from dpviz.answers.workers import MOST_WORKERS
from dpviz.errors import DpvizError, SettingError
from dpviz.publishing.console import counted_bar, followed, give, say
from dpviz.publishing.study_config import read_study
from dpviz.publishing.table_file import checked_target, write_table
from dpviz.release.members import neutral

FEW_RUNS = 20  # workers would take longer to start than these take


def run_compare(asked: Namespace) -> None:
    """Make a study and give its table."""
    output = None if asked.output is None else checked_target(Path(asked.output))
    if asked.resume and output is None:
        raise SettingError("--resume needs the --output file that the table is in, or will be.")
    config = read_study(Path(asked.config))
    config = replace(config, data=config.data.counted_by(asked.engine, asked.address))
    study = followed("counting", config.study)
    before = read_rows(output) if asked.resume and output is not None and output.exists() else None
    there = len(made_already(study, before))
    say(f"Making {len(study) - there:,} runs." + (f" {there:,} are there already." if there else ""))
    rows: list[dict[str, Any]] = [] if before is None else before.to_dict("records")  # type: ignore[assignment]
    try:
        _make(study, rows, before, _workers(asked.workers, len(study) - there))
    except (KeyboardInterrupt, DpvizError):
        if asked.resume and output is not None and rows:
            write_table(output, _text(tidy(study, rows), output))
            say(f"What was made is in {output}: the same command goes on from there.")
        raise
    table = tidy(study, rows)
    if output is None:
        sys.stdout.write(_text(table, Path("table.json" if asked.json else "table.csv")))
        sys.stdout.flush()
        return
    write_table(output, _text(table, output))
    give({"table": str(output), "runs": len(study)}, [f"{len(study):,} runs in {output}."], as_json=asked.json)


def _make(study: Study, rows: list[dict[str, Any]], before: pd.DataFrame | None, workers: int) -> None:
    """Add the rows of the runs that are left."""
    with counted_bar(len(study), "compare") as step:
        last = 0

        def progress(made: int, total: int) -> None:  # noqa: ARG001
            nonlocal last
            step(made - last)
            last = made

        with closing(compare(study, workers=workers, done=before, progress=progress)) as found:
            rows.extend(found)


def _workers(asked: int | None, runs: int) -> int:
    """As asked; else one per processor, where there are runs enough."""
    if asked is not None:
        return asked
    return 1 if runs < FEW_RUNS else max(1, min(os.cpu_count() or 1, MOST_WORKERS))


def _text(table: pd.DataFrame, path: Path) -> str:
    if path.suffix.lower() == ".json":
        return table.to_json(orient="records", indent=2, double_precision=15) + "\n"
    texts = {str(name): neutral(column.to_numpy(object)) for name, column in table.items() if is_string_dtype(column)}
    return str(table.assign(**texts).to_csv(index=False, lineterminator="\n"))
