"""The compare command: run a study of a configuration in worker processes and write its table. A stopped study can be resumed."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.cli.console import give, run_with_bar, say, step_bar
from dpviz.cli.ledger import ledger_facts, note_look
from dpviz.cli.output_files import check_target, write_file
from dpviz.data.counting.scheduler import scheduler_at
from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import csv_text, finished_runs, read_rows, tidy
from dpviz.evaluation.workers import MOST_WORKERS
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.study_config import StudyConfig, read_study
from dpviz.view.escape import clean

ENDINGS = (".csv", ".json")

FEW_RUNS = 20  # below this number of runs, starting workers takes longer than the runs
SECONDS_BETWEEN_WRITES = 10.0  # the shortest pause between two writes of the table
PAUSE_PER_WRITE = 20  # the pause is also at least this many times as long as the last write took


def run_compare(arguments: Namespace) -> None:
    """Run a study and write its table."""
    output = None if arguments.output is None else check_target(Path(arguments.output), ENDINGS, "The table's file")
    if arguments.resume and output is None:
        raise SettingError("--resume needs --output, the file of the table.")
    if output is not None and not arguments.resume and os.path.lexists(output):
        raise SettingError(
            "The table's file exists already; tables are never overwritten. Choose another one, or continue it with --resume."
        )
    scheduler = scheduler_at(arguments.address, insecure=arguments.insecure_address)
    config = read_study(Path(arguments.config))
    config = replace(config, data=config.data.with_engine(arguments.engine, scheduler).with_copies(arguments.copies))
    opened = run_with_bar("counting", lambda watch: config.opened(watch, scheduler))
    ledger = _note_look(config, opened.fingerprints)
    study = config.build_study(opened.data)
    earlier_rows = read_rows(output) if arguments.resume and output is not None and output.exists() else None
    finished = len(finished_runs(study, earlier_rows))
    say(f"Making {len(study) - finished:,} runs." + (f" {finished:,} are there already." if finished else ""))
    table = _Table(study, output, earlier_rows, as_json=arguments.json)
    with _saved_on_failure(table):
        most = 1 if len(study) - finished < FEW_RUNS else max(1, min(os.cpu_count() or 1, MOST_WORKERS))
        _make_runs(table, earlier_rows, most if arguments.workers is None else arguments.workers)
        if output is not None:
            table.write()
    if output is None:
        table.write()
    else:
        give({"table": str(output), "runs": len(study), **ledger}, [f"{len(study):,} runs in {output}."], as_json=arguments.json)


def _note_look(config: StudyConfig, fingerprints: tuple[str, ...]) -> dict[str, Any]:
    """Record in the ledger, before anything is compared, that the true data are looked at; return which ledger, as JSON values.

    Raises:
        RefusedError: the look cannot be recorded. For a sample, which is public, this is no error.
    """
    ledger = Ledger()
    try:
        note_look(ledger, fingerprints)
    except RefusedError as error:
        if config.data.sample is not None:
            return {}
        refusal = RefusedError(f"Nothing is compared, since the ledger cannot record that the true data are looked at. {error}")
    else:
        if config.data.sample is None:
            say(f"The ledger {ledger.path} records that the true data are looked at.")
        return ledger_facts(ledger)
    raise refusal


class _Table:
    """The rows of a running study, and where they are written to.

    Args:
        study: the study.
        output: path of the table's file; None for stdout.
        before: rows of an earlier call; None if there are none.
        as_json: whether rows on stdout are JSON; else they are CSV.
    """

    def __init__(self, study: Study, output: Path | None, earlier_rows: pd.DataFrame | None, *, as_json: bool) -> None:
        self.study, self.output = study, output
        self._rows: list[dict[str, Any]] = [] if earlier_rows is None else earlier_rows.to_dict("records")  # type: ignore[assignment]
        self._form = output or Path("table.json" if as_json else "table.csv")
        self._written, self._next = len(self._rows), time.monotonic() + SECONDS_BETWEEN_WRITES

    def add(self, row: dict[str, Any]) -> None:
        """Add a row; write the file from time to time, so that little is lost if the process is killed."""
        self._rows.append(row)
        if self.output is None or time.monotonic() < self._next:
            return
        start = time.monotonic()
        with suppress(DpvizError):  # the write at the end reports errors
            self.write()
        end = time.monotonic()
        self._next = end + max(SECONDS_BETWEEN_WRITES, PAUSE_PER_WRITE * (end - start))

    def write(self) -> None:
        """Write all rows so far to the file or to stdout."""
        table, is_json = tidy(self.study, self._rows), self._form.suffix.lower() == ".json"
        text = table.to_json(orient="records", indent=2, double_precision=15) + "\n" if is_json else csv_text(table)
        if self.output is None:
            sys.stdout.write(clean(text) if sys.stdout.isatty() else text)  # a name must not control a terminal
            sys.stdout.flush()
        else:
            write_file(self.output, text)
        self._written = len(self._rows)

    def keep(self) -> str:
        """Write the rows added since the last write, and return a sentence that says where they are."""
        if not self._rows:
            return "No run was made."
        if self.output is None:
            self.write()
            return "The finished runs were printed; with --output they could be resumed."
        if len(self._rows) > self._written:
            self.write()
        return f"The finished runs are in {self.output}: the same command with --resume continues from there."


@contextmanager
def _saved_on_failure(table: _Table) -> Iterator[None]:
    """If the study stops early, write the finished rows and print how to resume."""
    try:
        yield
    except BaseException as error:
        try:
            outcome = table.keep()
        except (DpvizError, OSError):
            outcome = "The finished runs could not be written: is there room, and may you write there?"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"Interrupted. {outcome}") from None
        say(outcome)
        raise


def _make_runs(table: _Table, earlier_rows: pd.DataFrame | None, workers: int) -> None:
    """Make the runs of the study that are not in `earlier_rows`, and add their rows to the table."""
    with step_bar(len(table.study), "compare") as step:
        reported = 0

        def progress(finished: int, total: int) -> None:  # noqa: ARG001
            nonlocal reported
            step(finished - reported)
            reported = finished

        rows = compare(table.study, workers=workers, done=earlier_rows, progress=progress)
        with closing(rows), redirect_stdout(sys.stderr):  # a mechanism that prints must not write into the table
            for row in rows:
                table.add(row)
