"""Write what was chosen as Python: the code that reads the same data and makes the same release, study or lesson.

The code names public parameters only: files and columns as a configuration names them, never a value of the data. Every text is quoted, so
that a name stays a text whatever it contains.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpviz.data.reading.outline import LAND
from dpviz.families import FAMILIES
from dpviz.lessons.lesson import Lesson
from dpviz.mechanisms import AnyMechanism
from dpviz.privacy.budget import Budget
from dpviz.publishing.config import NO_CRS, BudgetPart, CategoriesPart, DataConfig, DataPart, DomainPart, RegionsPart
from dpviz.publishing.study_config import StudyConfig
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.domain import Domain
from dpviz.view.escape import line

WIDTH = 88
"""The longest line, unless a single value is longer."""
SEEDED = "Seeded noise: a simulation, not private."
UNPAID = "To publish, run: dpviz release release.toml. Only that pays in the ledger."
REFERENCE = "NOT PRIVATE: a reference that shows what privacy costs, and is never published."
RANDOM_CHOICE = 'Which records over the bound are left out is random; key=b"..." keeps the choice.'
MADE_UP = "Made-up data, seeded noise: a simulation, not private."
_SHOW_LESSON = """shown = lesson.show()
for figure in shown.figures:
    print(f"{{figure.label}}: {{figure.value}}")
for number, chart in enumerate(shown.charts, start=1):
    chart.save(f"{key}-{{number}}.svg")
"""
_IMPORT = "import dpviz as dv"
_INDENT = " " * 4
_PREFIXES = ("", "second_")


@dataclass(frozen=True, kw_only=True)
class CodeRun:
    """One release that the code makes.

    Attributes:
        mechanism: the mechanism with its settings.
        budget: the budget that the release spends.
        seed: the seed of the noise, in Teach; None for noise from the operating system, in Curate.
        title: what the release is called in a comment, such as "Left map"; "" for no name.
    """

    mechanism: AnyMechanism
    budget: Budget
    seed: int | None = None
    title: str = ""


def write_python(inputs: DataConfig, runs: Sequence[CodeRun], *, unit: str | None = None, bad_rows: str = "drop") -> str:
    """Write the Python that makes releases: the data, and for each release its mechanism, budget and noise.

    Args:
        inputs: the data and their public frame: the first parts of a configuration. A `ReleaseConfig` will do.
        runs: the releases; the first is called `release`, the next `second_release`.
        unit: as for `write_data`.
        bad_rows: as for `write_data`.

    Returns:
        Lines of Python. With a seed they make the same release, bit for bit; without one, a comment says how to publish.

    >>> import dpviz as dv
    >>> from dpviz.publishing.config import DataConfig, DataPart
    >>> inputs = DataConfig(data=DataPart(sample="us_places"))
    >>> print(write_python(inputs, [CodeRun(mechanism=dv.Quadtree(height=6), budget=dv.PureBudget("1/3"), seed=1)]), end="")
    import dpviz as dv
    <BLANKLINE>
    points = dv.load_sample("us_places")
    <BLANKLINE>
    # Seeded noise: a simulation, not private.
    mechanism = dv.Quadtree(height=6)
    budget = dv.PureBudget("1/3")
    release = mechanism.release(points, budget, dv.Entropy.seeded(1))
    """
    blocks = [_IMPORT, write_data(inputs, unit, bad_rows)]
    for number, run in enumerate(runs):
        prefix = _PREFIXES[number] if number < len(_PREFIXES) else f"release_{number + 1}_"
        blocks.append(_write_run(run, inputs.family.name, prefix))
    return "\n\n".join(blocks) + "\n"


def write_study_python(config: StudyConfig) -> str:
    """Write the Python that makes the table of a study.

    Args:
        config: the configuration of the study.

    Raises:
        SettingError: as `StudyConfig.build`.

    >>> from dpviz.publishing.config import PublicDataPart
    >>> from dpviz.publishing.study_config import VariedPart
    >>> heights = VariedPart(key="quadtree", vary={"height": (4, 6)})
    >>> data = PublicDataPart(sample="us_places")
    >>> print(write_study_python(StudyConfig(data=data, mechanisms=(heights,), epsilons=(Fraction(1, 3), Fraction(1)))), end="")
    import dpviz as dv
    <BLANKLINE>
    points = dv.load_sample("us_places")
    <BLANKLINE>
    study = dv.Study(
        data=points,
        public=True,
        mechanisms={
            "quadtree height=4": dv.Quadtree(height=4),
            "quadtree height=6": dv.Quadtree(height=6),
        },
        epsilons=("1/3", "1"),
    )
    table = dv.tidy(study, dv.compare(study))
    """
    entries = []
    for label, mechanism in config.build().items():
        key = f"{_quote(label)}: "
        entry = f"{key}{write_mechanism(mechanism, room=WIDTH - 2 * len(_INDENT) - len(key) - 1)},"
        entries.append(textwrap.indent(entry, _INDENT))
    mechanisms = "\n".join(["{", *entries, "}"])
    arguments = [f"data={config.family.name}", "public=True", f"mechanisms={mechanisms}"]
    arguments.append(f"epsilons={_literal(tuple(map(_amount, config.epsilons)))}")
    if config.delta is not None:
        arguments.append(f"delta={_quote(_amount(config.delta))}")
    if config.gaussian:
        arguments.append(f"gaussian={_literal(config.gaussian)}")
    arguments += _keywords(config, ("repeats", "seed", "queries", "workloads", "parts"))
    table = "table = dv.tidy(study, dv.compare(study))"
    return "\n\n".join([_IMPORT, write_data(config, bad_rows="refuse"), f"{_call('study = dv.Study', arguments)}\n{table}"]) + "\n"


def write_lesson_python(lesson: Lesson) -> str:
    """Write the Python that computes the figures and charts of a lesson, and saves the charts as pictures.

    Args:
        lesson: with its settings; those that have their default are left out.

    >>> from dpviz.lessons.sums import Sums
    >>> print(write_lesson_python(Sums(draw=3)), end="")
    from dpviz.lessons.sums import Sums
    <BLANKLINE>
    # Made-up data, seeded noise: a simulation, not private.
    lesson = Sums(draw=3)
    shown = lesson.show()
    for figure in shown.figures:
        print(f"{figure.label}: {figure.value}")
    for number, chart in enumerate(shown.charts, start=1):
        chart.save(f"sums-{number}.svg")
    """
    name, module = type(lesson).__name__, type(lesson).__module__
    arguments = [f"{setting}={_literal(value)}" for setting, value in lesson.non_defaults().items()]
    return f"from {module} import {name}\n\n# {MADE_UP}\n{_call(f'lesson = {name}', arguments)}\n{_SHOW_LESSON.format(key=lesson.key)}"


def write_figure_python(paper: str, figure: str, size: str, seeds: int) -> str:
    """Write the Python that runs a figure of a paper, prints the verdicts on its claims, and draws it.

    Args:
        paper: key of the paper.
        figure: number of the figure.
        size: name of the run's size.
        seeds: how many.

    >>> print(write_figure_python("psd", "3", "small", 10), end="")
    from dpviz import papers
    <BLANKLINE>
    run = papers.run("psd", "3", size="small", seeds=10)
    print(run)  # run.verdicts has each verdict, run.table the numbers of every seed
    run.chart().save("psd-3.svg")
    """
    call = f"run = papers.run({_literal(paper)}, {_literal(figure)}, size={_literal(size)}, seeds={seeds})"
    shown = "print(run)  # run.verdicts has each verdict, run.table the numbers of every seed"
    return f"from dpviz import papers\n\n{call}\n{shown}\nrun.chart().save({_literal(f'{paper}-{figure}.svg')})\n"


def write_data(inputs: DataConfig, unit: str | None = None, bad_rows: str = "drop") -> str:
    """Write the lines that read the data: `points`, `areas` with `regions`, or `trips` with `regions` and perhaps `destinations`.

    Args:
        inputs: the data and their public frame.
        unit: what is declared as protected, "record" or "trip"; "person" if that follows from the columns. None takes what
            `inputs` declare.
        bad_rows: "drop" leaves out rows that cannot be read, as for every release: no single row decides whether there is one. "refuse",
            for public data, refuses the file.

    >>> from dpviz.publishing.config import DataPart, DomainPart
    >>> frame = DomainPart(bounds=(0.0, 0.0, 8.0, 8.0), crs="none", order=3)
    >>> print(write_data(DataConfig(data=DataPart(points="homes.csv", x="lon", y="lat"), domain=frame)))
    points = dv.read_points(
        "homes.csv",
        domain=dv.Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3),
        x="lon",
        y="lat",
        bad_rows="drop",
    )
    """
    data, name = inputs.data, inputs.family.name
    if data.sample is not None:
        arguments = [_quote(data.sample)]
        if inputs.domain is not None and inputs.domain != DomainPart.of(POINT_SAMPLES[data.sample].domain):
            arguments.append(f"domain={_write_domain(inputs.domain)}")
        return _call(f"{name} = dv.load_sample", [*arguments, *_keywords(data, ("size",))])
    lines = [_write_regions(name, part) for name, part in (("regions", inputs.regions), ("destinations", inputs.destinations)) if part]
    frame = [f"domain={_write_domain(inputs.domain)}"] if inputs.domain else ["regions=regions"]
    if inputs.destinations is not None:
        frame.append("destinations=destinations")
    if inputs.categories is not None:
        lines.append(_write_categories(inputs.categories))
        frame.append("categories=categories")
    if data.person is not None:
        lines.append(f"# {RANDOM_CHOICE}")
    unit = unit or inputs.declared_unit
    declared = [f"unit={_literal(unit)}"] if unit not in (None, "person") else []
    files = _quote(data.files[0]) if len(data.files) == 1 else _literal(list(data.files))
    if inputs.during is not None:
        declared.append(_call("during=dv.Period", _keywords(inputs.during, ("name", "time", "zone"))))
    lines.append(_call(f"{name} = dv.read_{name}", [files, *frame, *_columns(data, bad_rows), *declared]))
    return "\n".join(lines)


def write_mechanism(mechanism: AnyMechanism, *, room: int = WIDTH) -> str:
    """Write the expression that builds a mechanism: its class, or its entry in the registry if it is of another package.

    Args:
        mechanism: any mechanism; settings that have their default are left out.
        room: characters that a single line may have.

    >>> import dpviz as dv
    >>> write_mechanism(dv.UniformGrid(total_share=0.25))
    'dv.UniformGrid(total_share=0.25)'
    """
    kind, family = type(mechanism), FAMILIES[mechanism.family]
    if kind in family.references:
        name = f"dv.contrasts.{kind.__name__}"
    else:
        name = f"dv.{kind.__name__}" if kind in family.own else f"dv.MECHANISMS[{_quote(mechanism.key)}]"
    return _call(name, [f"{setting}={_literal(value)}" for setting, value in mechanism.non_defaults().items()], room)


def write_budget(budget: Budget) -> str:
    """Write the expression that builds a budget, with its parts as exact texts.

    Args:
        budget: of any kind.

    >>> import dpviz as dv
    >>> write_budget(dv.ApproxBudget(0.05, 1e-8)), write_budget(dv.ZcdpBudget("1/7"))
    ('dv.ApproxBudget("0.05", "1e-8")', 'dv.ZcdpBudget("1/7")')
    """
    part = BudgetPart.of(budget)
    amounts = [_quote(_amount(value)) for value in (part.epsilon, part.delta, part.rho) if value is not None]
    return f"dv.{type(budget).__name__}({', '.join(amounts)})"


def _write_run(run: CodeRun, data: str, prefix: str) -> str:
    comment = SEEDED if run.seed is not None else UNPAID
    comment = comment if run.mechanism.private else REFERENCE
    title = line(run.title)
    entropy = "dv.Entropy.system()" if run.seed is None else f"dv.Entropy.seeded({run.seed:d})"
    return "\n".join(
        [
            f"# {title}. {comment}" if title else f"# {comment}",
            f"{prefix}mechanism = {write_mechanism(run.mechanism)}",
            f"{prefix}budget = {write_budget(run.budget)}",
            f"{prefix}release = {prefix}mechanism.release({data}, {prefix}budget, {entropy})",
        ]
    )


def _write_domain(part: DomainPart) -> str:
    crs = None if part.crs.lower() == NO_CRS else part.crs
    order = [] if part.order == Domain.order else [f"order={part.order:d}"]
    room = WIDTH - len(f"{_INDENT}domain=,")
    rectangle = _call("dv.Domain", [f"bounds={_literal(part.bounds)}", f"crs={_literal(crs)}", *order], room)
    if part.study_area is None:
        return rectangle
    if part.study_area == LAND:
        return _call("dv.mask_outside", [rectangle, "dv.land_outline()"], room)
    outline = _call("dv.reading.read_outline", [_quote(part.study_area), f"crs={_literal(crs)}"], room)
    return _call("dv.mask_outside", [rectangle, outline], room)


def _write_regions(name: str, part: RegionsPart) -> str:
    """Write the assignment of regions: from their file, or made without one."""
    if part.file is not None:
        levels = [f"levels={_literal(list(part.levels))}"] if part.levels else []
        call = _call(f"{name} = dv.read_regions", [_quote(part.file), *levels, *_keywords(part, ("names", "crs", "denominator"))])
        return f"{call}.grouped({_literal(list(part.prefixes))})" if part.prefixes else call
    if part.squares:
        lattice = _write_domain(DomainPart(bounds=part.bounds, crs=str(part.crs)))
        return _call(f"{name} = dv.Regions.squares", [lattice, f"zooms={_literal(part.squares)}"])
    polygons = _call("dv.read_polygons", [_quote(str(part.path)), *_keywords(part, ("crs",))])
    if part.h3:
        return _call(f"{name} = dv.Regions.h3", [_literal(part.area) if part.area else polygons, f"resolutions={_literal(part.h3)}"])
    return _call(f"{name} = dv.Regions.from_polygons", [polygons])


def _write_categories(part: CategoriesPart) -> str:
    """Write the assignment of categories: from their file, or made without one."""
    if part.file is not None:
        name, arguments = (
            "reading.read_categories",
            [_quote(part.file), f"levels={_literal(list(part.levels))}", *_keywords(part, ("names",))],
        )
    elif part.bins or part.values:
        name = "Categories.bins" if part.bins else "Categories.values"
        arguments = [_literal(list(part.bins or part.values)), *_keywords(part, ("coarser",))]
    elif part.sum_between:
        bounds = zip(("low", "high"), part.sum_between, strict=True)
        name, arguments = "Summed", [*(f"{end}={_literal(bound)}" for end, bound in bounds), *_keywords(part, ("step",))]
    else:
        name = f"Categories.{part.times}s"
        arguments = [_quote(text) for text in (part.first, part.last) if text is not None] + _keywords(part, ("zone",))
    call = _call(f"categories = dv.{name}", arguments)
    return call if part.other is None else f"{call}.with_other({_quote(part.other)})"


def _columns(data: DataPart, bad_rows: str) -> list[str]:
    """Return a reader's arguments that describe columns, rules and engine; defaults are left out."""
    own = ("origin", "destination", "exactly") if data.is_trips else ("x", "y", "geometry", "centroids", "region", "slot")
    people = ("crs", "count", "person", "contributions", "per_slot", "distinct")
    marks = [f"{name}={_literal(value)}" for name, value in data.text_format().declarations().items()]
    written = [_call("text_format=dv.reading.TextFormat", marks, WIDTH - len(f"{_INDENT},"))] if marks else []
    rules = _keywords(data, ("quoted_newlines", "copies"))
    drops = ['bad_rows="drop"'] if bad_rows == "drop" else []
    return [*_keywords(data, (*own, *people)), *written, *rules, *drops, *_keywords(data, ("engine",))]


def _keywords(part: object, names: Sequence[str]) -> list[str]:
    """Return the fields of a part as keyword arguments; those that have their default are left out."""
    values = {name: getattr(part, name) for name in names}
    return [f"{name}={_literal(value)}" for name, value in values.items() if value not in (None, getattr(type(part), name, {}))]


def _amount(value: Fraction) -> str:
    """Return the shortest text that stands for exactly this number: "2", "0.05", "1e-8" or "1/3"."""
    if value.denominator == 1:
        return str(value.numerator)
    text = repr(float(value)).replace("e-0", "e-")
    return text if Fraction(text) == value else str(value)


def _call(function: str, arguments: Sequence[str], room: int = WIDTH) -> str:
    """Write a call in one line, or with an argument per line if that is too long."""
    short = f"{function}({', '.join(arguments)})"
    if "\n" not in short and len(short) <= room:
        return short
    return "\n".join([f"{function}(", *(textwrap.indent(f"{argument},", _INDENT) for argument in arguments), ")"])


def _literal(value: object) -> str:
    """Write a value as a literal. Long lists of numbers are filled into lines, long lists of texts have a text per line."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(each)}' for key, each in value.items())}}}"
    if not isinstance(value, tuple | list):
        return repr(value)
    left, right = "()" if isinstance(value, tuple) else "[]"
    parts = [_literal(each) for each in value]
    short = f"{left}{', '.join(parts)}{',' if isinstance(value, tuple) and len(parts) == 1 else ''}{right}"
    if len(short) <= WIDTH - len(_INDENT):
        return short
    are_texts = any(isinstance(each, str) for each in value)
    body = ",\n".join(parts) if are_texts else textwrap.fill(", ".join(parts), WIDTH - 2 * len(_INDENT), break_on_hyphens=False)
    return f"{left}\n{textwrap.indent(body, _INDENT)},\n{right}"


def _quote(text: str) -> str:
    r"""Write a text as a literal in double quotes, with characters that cannot be seen as escapes.

    >>> print(_quote('a "b"'), _quote("it's"), _quote("end" + chr(10) + chr(0x202E)))
    'a "b"' "it's" "end\n\u202e"
    """
    quoted = repr(text)
    return f'"{quoted[1:-1]}"' if quoted.startswith("'") and '"' not in quoted else quoted
