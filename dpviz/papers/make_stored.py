"""Run figures of papers at their largest size, and store the runs with the package.

python -m dpviz.papers.make_stored PAPER FIGURE [--seeds N]
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

from dpviz.papers.catalogue import find_figure
from dpviz.papers.figures import Figure, OnData, Paper, run_figure
from dpviz.papers.stored import PACKAGE, digest_sources, stored_file


def main() -> None:
    """Store the run that the command line names, and print its verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper")
    parser.add_argument("figure")
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    print(store_run(*find_figure(arguments.paper, arguments.figure), seeds=arguments.seeds))


def store_run(paper: Paper, figure: Figure, seeds: int | None = None) -> str:
    """Run a figure at its largest size, store the run, and return it as text.

    Args:
        paper: the paper.
        figure: one of its figures.
        seeds: how many; the usual number of the size if None.
    """
    size, prepare = figure.largest, figure.prepare
    settings = figure.size(size).settings
    sources = trace_sources(lambda: next(figure.measure(size, 1)))
    run = run_figure(paper, figure, size=size, seeds=seeds)
    table = run.table.copy()
    table.attrs = {
        "size": size,
        "seconds": round(run.seconds, 1),
        "version": version("dpviz"),
        "data": digest_data(prepare.data(settings)) if isinstance(prepare, OnData) else "",
        "settings": repr(dict(settings)),
        "sources": digest_sources(sources),
    }
    path = stored_file(paper, figure)
    path.parent.mkdir(exist_ok=True)
    table.to_parquet(path, index=False)
    return str(run)


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
