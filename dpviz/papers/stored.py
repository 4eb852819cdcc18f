"""Runs at the paper's size that come with the package, each with the data and the source files that made it.

What does not belong here: making them; `make_stored` does that.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.papers.figures import Figure, Paper, Run

FOLDER = Path(__file__).parent / "stored"
PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run that was made before, at the largest size of its figure.

    Attributes:
        version: of the package that made it.
        data: the digest of its data, in hexadecimal digits; "" where each seed draws its own.
        settings: those of the size, as text.
        sources: the digest of every source file of the package whose functions it called, by path in the package.
    """

    run: Run
    version: str
    data: str
    settings: str
    sources: Mapping[str, str]

    @property
    def changes(self) -> list[str]:
        """What has changed since it was made: paths of source files, and "settings"; nothing if this version would make it again."""
        settings = repr(dict(self.run.figure.size(self.run.size).settings))
        changed = [path for path, digest in self.sources.items() if digest_sources([path])[path] != digest]
        return changed + ["settings"] * (settings != self.settings)


def stored_file(paper: Paper, figure: Figure) -> Path:
    """Return where the run of a figure is stored."""
    return FOLDER / f"{paper.key}-{figure.key}.parquet"


def load_stored(paper: Paper, figure: Figure) -> StoredRun | None:
    """Load the stored run of a figure; None if there is none."""
    path = stored_file(paper, figure)
    if not path.exists():
        return None
    table = pd.read_parquet(path)
    facts: dict[str, Any] = {str(name): fact for name, fact in table.attrs.items()}
    table.attrs = {}
    run = Run(paper=paper, figure=figure, size=facts.pop("size"), table=table, seconds=facts.pop("seconds"))
    return StoredRun(run=run, **facts)


def digest_sources(paths: Iterable[str]) -> dict[str, str]:
    """Compute the digest of each source file, without its comments, docstrings and blank lines; "" where there is no such file.

    Args:
        paths: of the files, in the package.
    """
    files = {path: PACKAGE / path for path in paths}
    return {path: _digest_file(file, file.stat().st_mtime_ns) if file.exists() else "" for path, file in files.items()}


@cache
def _digest_file(file: Path, _changed: int) -> str:
    return _digest(without_comments(file.read_text("utf-8")))


def without_comments(source: str) -> str:
    """Return Python source without docstrings, blank lines and lines of comments, alike for every version of Python."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    blocks = [node.body for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    texts = [each for block in blocks for each in block if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)]
    left_out = {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    lines = [line.rstrip() for number, line in enumerate(source.splitlines(), 1) if number not in left_out]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
