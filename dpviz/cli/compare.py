"""The compare command: a study from a configuration, in worker processes, into one table; one that ended early can be resumed."""

from __future__ import annotations

import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype

from dpviz.cli.console import counted_bar, followed, give, say
from dpviz.data.counting.scheduler import scheduler_at
from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import made_already, read_rows, tidy
from dpviz.evaluation.workers import MOST_WORKERS
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.study_config import StudyConfig, read_study
from dpviz.release.tables import neutral
from dpviz.view.escape import clean

ENDINGS = (".csv", ".json")


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV whose texts no spreadsheet takes for formulas."""
    texts = {str(name): neutral(column.to_numpy(object)) for name, column in table.items() if is_string_dtype(column)}
    return str(table.assign(**texts).to_csv(index=False, lineterminator="\n"))


def checked_target(path: Path) -> Path:
    """The path, if a table can be written there; asked before the long work begins.

    Raises:
        SettingError: another ending than .csv or .json, or no folder to write into.
    """
    if path.suffix.lower() not in ENDINGS:
        raise SettingError("The table's file must end in .csv or .json.")
    parent = path.absolute().parent
    if os.path.isdir(path) or not os.path.isdir(parent) or not os.access(parent, os.W_OK | os.X_OK):  # noqa: PTH112
        raise SettingError("The table's file must lie in a folder that exists and can be written.")
    return path


def write_table(path: Path, text: str) -> None:
    """Write a file, all of it or nothing.

    Raises:
        DpvizError: the disk does not take it; nothing is left behind.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    failed = False
    try:
        with fresh.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        failed = True
    finally:
        fresh.unlink(missing_ok=True)
    if failed:
        raise DpvizError("The table could not be written: is there room, and may you write there?")


FEW_RUNS = 20  # workers would take longer to start than these take
PAUSE = 10.0  # seconds between two writings of the table
LEAST_REST = 20  # times as long as a writing took, until the next


def run_compare(asked: Namespace) -> None:
    """Make a study and give its table."""
    output = _target(asked)
    scheduler = scheduler_at(asked.address, insecure=asked.insecure_address)
    config = read_study(Path(asked.config))
    config = replace(config, data=config.data.counted_by(asked.engine, scheduler))
    opened = followed("counting", lambda watch: config.opened(watch, scheduler))
    _note_look(config, opened.marks)
    study = config.study_on(opened.data)
    before = read_rows(output) if asked.resume and output is not None and output.exists() else None
    there = len(made_already(study, before))
    say(f"Making {len(study) - there:,} runs." + (f" {there:,} are there already." if there else ""))
    table = _Table(study, output, before, as_json=asked.json)
    with _kept(table):
        _make(table, before, _workers(asked.workers, len(study) - there))
        if output is not None:
            table.write()
    if output is None:
        table.write()
    else:
        give({"table": str(output), "runs": len(study)}, [f"{len(study):,} runs in {output}."], as_json=asked.json)


def _note_look(config: StudyConfig, marks: tuple[str, ...]) -> None:
    """Record, before anything is compared with the truth, that it is looked at; samples are public, and are compared on without a ledger.

    Raises:
        RefusedError: it cannot be recorded.
    """
    try:
        Ledger().note_seen(marks)
    except RefusedError as error:
        if config.data.sample is not None:
            return
        refused = RefusedError(f"Nothing is compared, since that the true data are looked at cannot be recorded. {error}")
    else:
        return
    raise refused


def _target(asked: Namespace) -> Path | None:
    """The file for the table, if one is asked for.

    Raises:
        SettingError: it cannot be written, is there already, or is missing where one is resumed.
    """
    output = None if asked.output is None else checked_target(Path(asked.output))
    if asked.resume and output is None:
        raise SettingError("--resume needs the --output file that the table is in, or will be.")
    if output is not None and not asked.resume and os.path.lexists(output):
        raise SettingError(
            "The table's file exists already; tables are never overwritten. Choose another one, or go on with what it holds: --resume."
        )
    return output


class _Table:
    """The rows of a study so far, and the file or the stream that they belong in.

    Args:
        study: whose rows.
        output: None for stdout.
        before: rows of an earlier call.
        as_json: on stdout.
    """

    def __init__(self, study: Study, output: Path | None, before: pd.DataFrame | None, *, as_json: bool) -> None:
        self.study, self.output = study, output
        self._rows: list[dict[str, Any]] = [] if before is None else before.to_dict("records")  # type: ignore[assignment]
        self._form = output or Path("table.json" if as_json else "table.csv")
        self._written, self._next = len(self._rows), time.monotonic() + PAUSE

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row; now and then write the file, so that whoever is killed loses little."""
        self._rows.append(row)
        if self.output is None or time.monotonic() < self._next:
            return
        start = time.monotonic()
        with suppress(DpvizError):  # the disk may have room again at the end, where it is told
            self.write()
        end = time.monotonic()
        self._next = end + max(PAUSE, LEAST_REST * (end - start))

    def write(self) -> None:
        """Give the rows so far: all of them or, where the disk does not take them, nothing."""
        text = _text(tidy(self.study, self._rows), self._form)
        if self.output is None:
            sys.stdout.write(clean(text) if sys.stdout.isatty() else text)  # a name must not command a terminal
            sys.stdout.flush()
        else:
            write_table(self.output, text)
        self._written = len(self._rows)

    def keep(self) -> str:
        """Write what has come since the last time; what became of it, in words."""
        if not self._rows:
            return "No run was made."
        if self.output is None:
            self.write()
            return "What was made was given; with --output it could be gone on from."
        if len(self._rows) > self._written:
            self.write()
        return f"What was made is in {self.output}: the same command with --resume goes on from there."


@contextmanager
def _kept(table: _Table) -> Iterator[None]:
    """However it ends early, what was made is kept, and the person told how to go on."""
    try:
        yield
    except BaseException as error:
        try:
            told = table.keep()
        except (DpvizError, OSError):
            told = "What was made could not be written: is there room, and may you write there?"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"Interrupted. {told}") from None
        say(told)
        raise


def _make(table: _Table, before: pd.DataFrame | None, workers: int) -> None:
    """Add the rows of the runs that are left."""
    with counted_bar(len(table.study), "compare") as step:
        last = 0

        def progress(made: int, total: int) -> None:  # noqa: ARG001
            nonlocal last
            step(made - last)
            last = made

        found = compare(table.study, workers=workers, done=before, progress=progress)
        with closing(found), redirect_stdout(sys.stderr):  # a mechanism that prints must not write into the table
            for row in found:
                table.add(row)


def _workers(asked: int | None, runs: int) -> int:
    """As asked; else one per processor, where there are runs enough."""
    if asked is not None:
        return asked
    return 1 if runs < FEW_RUNS else max(1, min(os.cpu_count() or 1, MOST_WORKERS))


def _text(table: pd.DataFrame, path: Path) -> str:
    if path.suffix.lower() == ".json":
        return table.to_json(orient="records", indent=2, double_precision=15) + "\n"
    return csv_text(table)
