"""The subcommand `dpviz paper`: every figure of the papers with its claims, or one figure, run again and judged."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpviz.cli.console import finite, give, say, step_bar
from dpviz.cli.output_files import check_target, write_file
from dpviz.errors import SettingError
from dpviz.papers.catalogue import PAPERS, find_figure
from dpviz.papers.claims import Verdict
from dpviz.papers.figures import Run, run_figure

Facts = dict[str, Any]

LIST = "list"
WRITERS: dict[str, Callable[[Run], str | bytes]] = {
    ".svg": lambda run: run.picture("svg"),
    ".png": lambda run: run.picture("png"),
    ".csv": lambda run: run.table.to_csv(index=False, lineterminator="\n"),
    ".html": lambda run: run.html(),
}
"""What is written, by the ending of the file."""


def run_paper(arguments: Namespace) -> None:
    """Print every figure with its claims; or run one, print the verdicts, and write what --output asks for."""
    if arguments.paper == LIST:
        give(_list_facts(), _list_lines(), as_json=arguments.json)
        return
    if arguments.figure is None and arguments.paper in PAPERS:
        raise SettingError(f"Give the number of a figure: {', '.join(PAPERS[arguments.paper].figures)}.")
    paper, figure = find_figure(arguments.paper, arguments.figure or "")
    output = None if arguments.output is None else _check_output(Path(arguments.output))
    number = figure.seeds(arguments.size, arguments.seeds)
    say(f"{paper.source}, Figure {figure.key}: {number} seed{'s' * (number != 1)}. {figure.size(arguments.size).about}")
    with step_bar(number, f"figure {figure.key}") as step:
        run = run_figure(paper, figure, size=arguments.size, seeds=number, progress=lambda *_: step())
    if output is not None:
        write_file(output, WRITERS[output.suffix.lower()](run))
    written = [] if output is None else [f"Written to {output}."]
    give(_facts(run, output), [*str(run).splitlines(), *written], as_json=arguments.json)


def _check_output(path: Path) -> Path:
    """Check, before the run, that a file can be written, and return its path.

    Raises:
        SettingError: another ending, an existing file, no folder to write into, or no library that draws.
    """
    check_target(path, WRITERS, "The file of --output")
    if os.path.lexists(path):
        raise SettingError("The file of --output exists already; nothing is overwritten. Choose another one.")
    if path.suffix.lower() != ".csv" and not (find_spec("altair") and find_spec("vl_convert")):
        raise SettingError('Pictures need the extra app: pip install "dpviz[app]". A table (.csv) does without.')
    return path


def _list_facts() -> list[Facts]:
    return [
        {
            "paper": paper.key,
            "figure": figure.key,
            "section": figure.section,
            "title": figure.title,
            "source": paper.source,
            "claims": [claim.text for claim in figure.claims],
            "sizes": {name: {"about": size.about, "seeds": size.seeds, "seconds": size.seconds} for name, size in figure.sizes.items()},
        }
        for paper in PAPERS.values()
        for figure in paper.figures.values()
    ]


def _list_lines() -> list[str]:
    lines = []
    for paper in PAPERS.values():
        lines.append(f"{paper.title} ({paper.source}):")
        for figure in paper.figures.values():
            lines.append(f"  dpviz paper {paper.key} {figure.key}  {figure.title} ({figure.section})")
            lines += [f"      {claim.text}{' (ours)' * claim.ours}" for claim in figure.claims]
    return lines


def _facts(run: Run, output: Path | None) -> Facts:
    return {
        "paper": run.paper.key,
        "figure": run.figure.key,
        "section": run.figure.section,
        "title": run.figure.title,
        "size": run.size,
        "about": run.figure.size(run.size).about,
        "differs": run.figure.differs,
        "seeds": int(run.table["seed"].nunique()),
        "seconds": run.seconds,
        "claims": [_verdict_facts(verdict) for verdict in run.verdicts],
        "output": None if output is None else str(output),
    }


def _verdict_facts(verdict: Verdict) -> Facts:
    case, value, low, high = verdict.decisive
    return {
        "claim": verdict.claim.text,
        "ours": verdict.claim.ours,
        "verdict": verdict.answer,
        "sentence": verdict.sentence,
        "reason": verdict.reason or None,
        "case": case,
        **finite({"value": value, "low": low, "high": high}),
        "cases": [finite(row) for row in verdict.cases.to_dict("records")],
    }
