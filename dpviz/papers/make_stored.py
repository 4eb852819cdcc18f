"""Run figures of papers at their largest size, and store the runs with the package.

python -m dpviz.papers.make_stored PAPER FIGURE [--seeds N] [--confirm]
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

from dpviz.errors import SettingError
from dpviz.papers.catalogue import find_figure
from dpviz.papers.figures import Figure, OnData, Paper, run_figure
from dpviz.papers.stored import PACKAGE, digest_sources, load_stored, stored_file


def main() -> None:
    """Store the run that the command line names, and print its verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper")
    parser.add_argument("figure")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--confirm", action="store_true", help="run the first seed alone, and keep the stored run if it is the same")
    arguments = parser.parse_args()
    found = find_figure(arguments.paper, arguments.figure)
    print(confirm_run(*found) if arguments.confirm else store_run(*found, seeds=arguments.seeds))


def store_run(paper: Paper, figure: Figure, seeds: int | None = None) -> str:
    """Run a figure at its largest size, store the run, and return it as text.

    Args:
        paper: the paper.
        figure: one of its figures.
        seeds: how many; the usual number of the size if None.
    """
    size = figure.largest
    settings = figure.size(size).settings
    sources = trace_sources(lambda: next(figure.measure(size, 1)))
    run = run_figure(paper, figure, size=size, seeds=seeds)
    table = run.table.copy()
    table.attrs = {
        "size": size,
        "seconds": round(run.seconds, 1),
        "version": version("dpviz"),
        "data": _digest_data_of(figure, size),
        "settings": repr(dict(settings)),
        "sources": digest_sources(sources),
    }
    path = stored_file(paper, figure)
    path.parent.mkdir(exist_ok=True)
    table.to_parquet(path, index=False)
    return str(run)


def confirm_run(paper: Paper, figure: Figure) -> str:
    """Run the first seed of a stored run again; if all of its numbers but times are the same, note that this version makes them.

    Raises:
        SettingError: there is no stored run with these settings and data.
        AssertionError: other numbers come out: run the figure again.
    """
    stored = load_stored(paper, figure)
    if stored is None or "settings" in stored.changes or stored.data != _digest_data_of(figure, stored.run.size):
        raise SettingError("There is no stored run with these settings and data: run the figure.")
    first = list[pd.DataFrame]()
    sources = trace_sources(lambda: first.append(next(figure.measure(stored.run.size, 1))))
    again, kept = (_without_times(table) for table in (first[0], stored.run.table.head(len(first[0]))))
    pd.testing.assert_frame_equal(again, kept, check_dtype=False, check_exact=True)
    path = stored_file(paper, figure)
    table = pd.read_parquet(path)
    table.attrs |= {"version": version("dpviz"), "sources": digest_sources(sources)}
    table.to_parquet(path, index=False)
    return f"{paper.key} {figure.key}: the first seed makes the same {len(first[0]):,} rows"


def _without_times(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns and rows that hold no times, which depend on the computer."""
    columns = table[[name for name in table if name not in ("seconds", "lexsorts")]]
    return columns[columns["measure"] != "seconds"] if "measure" in columns else columns


def trace_sources(measure: Callable[[], object]) -> list[str]:
    """Return the paths, in the package, of the source files whose functions a call runs."""
    files = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        measure()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    folder = f"{PACKAGE}/"
    return sorted(file.removeprefix(folder) for file in files - {__file__} if file.startswith(folder))


def _digest_data_of(figure: Figure, size: str) -> str:
    """Compute a digest of the data of a figure; "" if each seed draws its own."""
    prepare = figure.prepare
    return digest_data(prepare.data(figure.size(size).settings)) if isinstance(prepare, OnData) else ""


def digest_data(data: object) -> str:
    """Compute a digest of the arrays of numbers in data sets, in hexadecimal digits."""
    digest = hashlib.sha256()
    _add(digest, data)
    return digest.hexdigest()[:16]


def _add(digest: Any, value: object) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for key, each in value.items():
            digest.update(repr(key).encode())
            _add(digest, each)
    elif is_dataclass(value):
        for field in fields(value):
            _add(digest, getattr(value, field.name))


if __name__ == "__main__":
    main()
