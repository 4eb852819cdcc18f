"""A paper's figures as things that run: what is measured for one seed, in which sizes, how it is drawn, and which claims are judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpviz.errors import SettingError, did_you_mean
from dpviz.papers.claims import Claim, Verdict

if TYPE_CHECKING:
    from pandas.api.typing import DataFrameGroupBy

SMALL, MEDIUM, PAPER = "small", "medium", "paper"
MOST_SEEDS = 100
STAMP = "dpviz, Papers: made-up or public data and seeded noise. A simulation, not a release."

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ font-size: 1.05rem; margin: 1.5rem 0 0; }} svg {{ max-width: 100%; height: auto; }}
th, td {{ padding: 0 0.6rem; text-align: right; }}
</style></head><body>
{body}
</body></html>
"""

OneSeed = Callable[[int], pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a run of a figure is.

    Attributes:
        about: what it runs on and how that differs from the paper, in one sentence.
        settings: keyword arguments of the figure's `prepare`.
        seeds: the usual number of seeds.
        seconds: of one core, about, that such a run takes: tests/benchmarks/test_papers.py measures it, for larger runs from one seed.
    """

    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 10
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure or table of a paper.

    Attributes:
        key: its number, in lower case and without blanks: "4a".
        section: where the paper says what its claims say: "Section VIII-B".
        title: what it shows, without a full stop.
        differs: what is always different from the paper, in whole sentences.
        sizes: from the smallest to the largest, by name (`SMALL`, `MEDIUM`, `PAPER`).
        prepare: takes the settings of a size, makes the data, and returns the function that measures one seed: it takes a seed and returns
            the rows of the figure's table, the same rows for the same seed (measured seconds apart).
        draw: takes the rows of all seeds, and returns charts in the form of the paper, one per panel.
        claims: what the paper, or we, say about it.
        explanation: what a reader must know to understand it, in whole sentences; "" where title and claims say enough.
        exact: whether nothing in it is random: then one seed is run.
    """

    key: str
    section: str
    title: str
    differs: str
    sizes: Mapping[str, Size]
    prepare: Callable[..., OneSeed]
    draw: Callable[[pd.DataFrame], Sequence[Any]]
    claims: tuple[Claim, ...]
    explanation: str = ""
    exact: bool = False

    def size(self, name: str) -> Size:
        """Return a size by its name.

        Raises:
            SettingError: there is none of this name.
        """
        if name not in self.sizes:
            raise SettingError(f"This figure has no size {name!r}; it has {', '.join(self.sizes)}.{did_you_mean(name, self.sizes)}")
        return self.sizes[name]

    def seeds(self, size: str, seeds: int | None = None) -> int:
        """Return the number of seeds of a run: the usual one of its size for None.

        Raises:
            SettingError: there is no such size, or the number is not from 1 to `MOST_SEEDS`.
        """
        usual = self.size(size).seeds
        if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
            raise SettingError(f"The number of seeds must be from 1 to {MOST_SEEDS}.")
        return 1 if self.exact else usual if seeds is None else seeds

    @property
    def largest(self) -> str:
        """The name of the largest size, which is the paper's."""
        return list(self.sizes)[-1]

    def measure(self, size: str = SMALL, seeds: int | None = None, *, first: int = 1) -> Iterator[pd.DataFrame]:
        """Measure the figure seed by seed.

        Args:
            size: the name of a size.
            seeds: how many; the usual number of the size if None.
            first: the first seed; the others follow it.

        Yields:
            The rows of each seed, with the seed in a first column `seed`.

        Raises:
            SettingError: there is no such size, or the number of seeds is out of range.
        """
        number = self.seeds(size, seeds)
        yield from map(self.one_seed(size), range(first, first + number))

    def one_seed(self, size: str = SMALL) -> OneSeed:
        """Make the data of a size, and return the function that measures one seed, with the seed in a first column `seed`.

        Raises:
            SettingError: there is no such size.
        """
        measure = self.prepare(**self.size(size).settings)

        def with_seed(seed: int) -> pd.DataFrame:
            rows = measure(seed)
            rows.insert(0, "seed", seed)
            return rows

        return with_seed


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and its figures.

    Attributes:
        key: its short name.
        source: authors, venue and year.
        figures: by their keys, in the paper's order.
    """

    key: str
    title: str
    source: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run:
    """A figure that was run. CURATOR ONLY where its data are private: the errors in it are measured against the truth.

    Attributes:
        size: the name of the figure's size.
        table: the rows of all seeds, with a first column `seed`.
        seconds: that the run took.

    >>> from dpviz import papers
    >>> run = papers.run("psd", "2")
    >>> print(run.verdicts[0].answer, run.table.columns.tolist())
    holds ['seed', 'height', 'split', 'error']
    """

    paper: Paper
    figure: Figure
    size: str
    table: pd.DataFrame
    seconds: float

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict on each claim."""
        return tuple(claim.judge(self.table, exact=self.figure.exact) for claim in self.figure.claims)

    @property
    def is_demonstration(self) -> bool:
        """Whether it is smaller than the paper's, so that its verdicts say little of the figure."""
        return self.size != self.figure.largest

    @property
    def sentences(self) -> list[str]:
        """The verdicts in words, in the order of the claims; those of a demonstration say so."""
        lead = "In this demonstration on less data: " if self.is_demonstration else ""
        return [f"{lead}{verdict.sentence}" for verdict in self.verdicts]

    def charts(self) -> list[Any]:
        """Draw the figure as Altair charts, one per panel. It needs the extra `app`."""
        return list(self.figure.draw(self.table))

    def chart(self) -> Any:
        """Draw the figure as one Altair chart with its panels one above the other. It needs the extra `app`."""
        from dpviz.view.charts import stack  # noqa: PLC0415  (Altair is an extra)

        return stack(self.charts())

    def picture(self, kind: str = "svg", *, dark: bool = False) -> bytes:
        """Draw the figure, with the verdicts under its title, as the content of a file. It needs the extra `app`.

        Args:
            kind: "svg" or "png".
            dark: light lines and texts on a dark background.
        """
        from dpviz.view.charts import picture  # noqa: PLC0415

        judged = (f"{claim.text} {sentence}" for claim, sentence in zip(self.figure.claims, self.sentences, strict=True))
        texts = [self.source, self.figure.size(self.size).about, *judged]
        return picture(self.charts(), self.figure.title, "\n".join(texts), kind, dark=dark, stamp=STAMP)

    def html(self) -> str:
        """Write the figure as a page of its own, without scripts: claims and verdicts, picture, every case, table."""
        from dpviz.view.escape import html  # noqa: PLC0415

        parts = [
            f"<h1>{html(self.figure.title)}</h1>",
            *(f"<p>{html(text)}</p>" for text in (self.source, self._about, self.figure.explanation, STAMP) if text),
        ]
        for verdict, sentence in zip(self.verdicts, self.sentences, strict=True):
            reason = f"<p>{html(verdict.reason)}</p>" if verdict.reason else ""
            parts += [f"<h2>{html(verdict.claim.text)}</h2><p><b>{html(sentence)}</b></p>{reason}"]
            parts += [f"<details><summary>Every case</summary>{verdict.cases.to_html(index=False, border=0)}</details>"]
        rows = f"<details><summary>Table</summary>{self.table.to_html(index=False, border=0)}</details>"
        return _PAGE.format(title=html(self.figure.title), body="\n".join([*parts, self.picture().decode(), rows]))

    @property
    def source(self) -> str:
        """Authors, venue, year, the number of the figure, and the section of its claims."""
        return f"{self.paper.source}, Figure {self.figure.key} and {self.figure.section}"

    @property
    def _about(self) -> str:
        return f"{self.figure.size(self.size).about} {self.figure.differs}"

    def __str__(self) -> str:
        lines = [f"{self.source}: {self.figure.title}", self._about]
        for verdict, sentence in zip(self.verdicts, self.sentences, strict=True):
            lines += ["", f"Claim{' (ours)' if verdict.claim.ours else ''}: {verdict.claim.text}", sentence]
            lines += [f"Why: {verdict.reason}"] if verdict.reason else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Run({self.paper.key}, {self.figure.key}, size={self.size!r}, {self.table['seed'].nunique()} seeds)"


def run_figure(
    paper: Paper, figure: Figure, *, size: str = SMALL, seeds: int | None = None, progress: Callable[[int, int], object] | None = None
) -> Run:
    """Run a figure of a paper.

    Args:
        paper: the paper.
        figure: one of its figures.
        size: the name of a size of the figure.
        seeds: how many; the usual number of the size if None.
        progress: called with the number of seeds that are done, and with their number; what it raises ends the run.

    Raises:
        SettingError: there is no such size, or the number of seeds is out of range.
    """
    start, parts, number = time.perf_counter(), list[pd.DataFrame](), figure.seeds(size, seeds)
    for part in figure.measure(size, number):
        parts.append(part)
        if progress is not None:
            progress(len(parts), number)
    table = pd.concat(parts, ignore_index=True)
    return Run(paper=paper, figure=figure, size=size, table=table, seconds=time.perf_counter() - start)


@dataclass(frozen=True)
class OnData:
    """A figure's `prepare`, which makes the data once and measures one run on it for each seed.

    Attributes:
        make: makes the data.
        measure: takes the data, `repeats` and `seed`, and returns the rows of the figure's table.
        of_data: the settings of a size that `make` takes; `measure` takes the others.
    """

    make: Callable[..., Any]
    measure: Callable[..., pd.DataFrame]
    of_data: tuple[str, ...]

    def data(self, settings: Mapping[str, Any]) -> Any:
        """Make the data of a size, by its settings."""
        return self.make(**{name: settings[name] for name in self.of_data if name in settings})

    def __call__(self, **settings: Any) -> OneSeed:
        """Make the data, and return the function that measures a seed on it."""
        data, others = self.data(settings), {name: value for name, value in settings.items() if name not in self.of_data}
        return lambda seed: self.measure(data, repeats=1, seed=seed, **others)


def on_data(make: Callable[..., Any], measure: Callable[..., pd.DataFrame], *of_data: str) -> OnData:
    """Return a figure's `prepare`; the arguments are those of `OnData`."""
    return OnData(make, measure, of_data)


def group_cases(table: pd.DataFrame, *values: str) -> DataFrameGroupBy[Any, Any]:
    """Group the rows of all seeds by case: by all columns but `seed` and those of values."""
    keys = [name for name in table.columns if name not in ("seed", *values)]
    return table.groupby(keys, sort=False, dropna=False)


def average(table: pd.DataFrame, *values: str, spread: str = "spread") -> pd.DataFrame:
    """Average columns of a figure's table over the seeds, for a chart.

    Args:
        table: rows of all seeds; all columns but `seed`, the values and the spread tell the rows of a seed apart.
        values: the columns of numbers.
        spread: the column for the standard deviation of the first of them over the seeds, NaN for one seed; what it held is replaced.

    >>> average(pd.DataFrame({"seed": [1, 2], "method": "tree", "error": [1.0, 3.0]}), "error").round(3).to_dict("records")
    [{'method': 'tree', 'error': 2.0, 'spread': 1.414}]
    """
    groups = group_cases(table, spread, *values)
    return groups[list(values)].mean().assign(**{spread: groups[values[0]].std()}).reset_index()
