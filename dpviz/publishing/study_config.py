"""The configuration of a study (`dpviz compare`) as a TOML file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpviz.codec import keys_of
from dpviz.data.counting.job import Progress
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import SettingError, check_choice
from dpviz.evaluation.study import MOST_RUNS, Study
from dpviz.families import Family
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.base import GAUSSIAN, LAPLACE, NOISES
from dpviz.publishing.config import DataConfig, MechanismPart, PublicDataPart
from dpviz.publishing.private_data import UNWATCHED, OpenedData, PrivateData, make_frame, open_sources, read_data
from dpviz.publishing.toml_tables import TOML, read_file, to_text


@dataclass(frozen=True, kw_only=True)
class Variant(MechanismPart):
    """A mechanism with its settings, and the noise that it gets where the kind of the budget decides.

    Attributes:
        noise: "Laplace" for epsilon alone, or "Gaussian" for epsilon and delta.
    """

    noise: str = LAPLACE

    def build(self, family: Family, *, references: bool = False) -> AnyMechanism:
        """Build the mechanism, as `MechanismPart.build`; raises `SettingError` also for a noise that it does not have."""
        mechanism = super().build(family, references=references)
        check_choice(self.noise, NOISES, "[[mechanism]] noise")
        if self.noise == GAUSSIAN and not mechanism.noise_by_budget:
            keys = ", ".join(key for key, kind in family.mechanisms.items() if kind.noise_by_budget)
            choice = f"; there is a choice for {keys}" if keys else ""
            raise SettingError(f"[[mechanism]] noise: {self.key} has one kind of noise, so leave noise out{choice}.")
        return mechanism


@dataclass(frozen=True, kw_only=True)
class VariedPart(MechanismPart):
    """[[mechanism]]: one mechanism, or several that differ in some settings, or in their noise.

    Attributes:
        label: the mechanism's name in the table; its key by default.
        noise: "Laplace" for epsilon alone, "Gaussian" for epsilon and delta, or a list to compare both; for mechanisms whose noise the kind
            of the budget decides.
        vary: for each varied setting a list of values; all combinations are compared.
    """

    label: str | None = None
    noise: str | tuple[str, ...] = LAPLACE
    vary: dict[str, Any] = field(default_factory=dict)

    def variants(self) -> Iterator[tuple[str, Variant]]:
        """Yield all combinations with their labels, such as "quadtree height=6 split=uniform" or "quadtree noise=Gaussian".

        Raises:
            SettingError: a value of `vary` is not a list, or a setting is given twice.
        """
        noises = [(self.noise, "")] if isinstance(self.noise, str) else [(noise, f" noise={noise}") for noise in self.noise]
        for name, values in self.vary.items():
            if not isinstance(values, tuple) or not values:
                raise SettingError(f"[mechanism.vary] {name[:40]} must be a list of values.")
            if name in self.settings:
                raise SettingError(f"[mechanism.vary] {name[:40]} is also under [mechanism.settings]: leave one out.")
        lists = [[(name, tuple(value) if isinstance(value, list) else value) for value in values] for name, values in self.vary.items()]
        for combination in itertools.islice(itertools.product(*lists), MOST_RUNS + 1):
            texts = {name: "/".join(map(str, value)) if isinstance(value, tuple) else str(value) for name, value in combination}
            words = [self.label or self.key, *(f"{name}={text}" for name, text in texts.items())]
            for noise, named in noises:
                yield " ".join(words) + named, Variant(key=self.key, settings={**self.settings, **dict(combination)}, noise=noise)


@dataclass(frozen=True, kw_only=True)
class StudyConfig(DataConfig):
    """The configuration of a study.

    Attributes:
        mechanisms: the mechanisms to compare.
        epsilons: epsilons of the budgets, as exact fractions.
        delta: for mechanisms that need one, and for those with the noise "Gaussian".
        repeats: releases per mechanism and epsilon.
        seed: equal seeds give equal tables, except for run times.
        queries: number of random boxes per workload of points.
        workloads: of points: random, small, medium, large, zooms, sizes; of trips: names of levels, levels, sizes. By default random
            boxes, or the finest level.
        parts: whether to split errors of points into noise and uniformity.
    """

    data: PublicDataPart
    mechanisms: tuple[VariedPart, ...]
    epsilons: tuple[Fraction, ...]
    delta: Fraction | None = None
    repeats: int = 1
    seed: int = 0
    queries: int = 500
    workloads: tuple[str, ...] = ()
    parts: bool = False

    def build(self) -> dict[str, AnyMechanism]:
        """Build the mechanisms, by label.

        Raises:
            SettingError: as `MechanismPart.build`, or two mechanisms with equal labels.
        """
        mechanisms: dict[str, AnyMechanism] = {}
        for part in self.mechanisms:
            for label, variant in part.variants():
                if label in mechanisms:
                    raise SettingError(f"Two mechanisms are called {label[:80]!r}: give one another label.")
                mechanisms[label] = variant.build(self.family, references=True)
                if len(mechanisms) > MOST_RUNS:
                    raise SettingError(f"There are more than {MOST_RUNS:,} combinations of settings.")
        return mechanisms

    @property
    def gaussian(self) -> tuple[str, ...]:
        """Labels of mechanisms that get (epsilon, delta) though epsilon alone would do: those with the noise "Gaussian"."""
        return tuple(label for part in self.mechanisms for label, variant in part.variants() if variant.noise == GAUSSIAN)

    def opened(self, watch: Progress = UNWATCHED, scheduler: Scheduler | None = None) -> OpenedData:
        """Check the mechanisms and read the data.

        Args:
            watch: reports progress, and may cancel.
            scheduler: a running Dask scheduler; None for workers on this computer.

        Raises:
            DpvizError: mechanisms, data, domain or regions cannot be used.
        """
        self.build()
        sources = open_sources(self)
        frame = make_frame(sources, lambda _: watch.report(0.0))
        return read_data(sources, frame, bad_rows="refuse", watch=watch, scheduler=scheduler)

    def build_study(self, data: PrivateData) -> Study:
        """Build the study of data that `opened` read.

        Raises:
            DpvizError: mechanisms that do not fit the domain or the regions.
        """
        mechanisms = self.build()
        names = {item.name for item in fields(Study)} - {"data", "public", "mechanisms"}
        return Study(data=data, public=True, mechanisms=mechanisms, **{name: getattr(self, name) for name in names})


PARTS: dict[str, type[Any]] = {
    name: key.kind for name, key in keys_of(StudyConfig).items() if isinstance(key.kind, type) and is_dataclass(key.kind)
}
"""The tables of a study's configuration that are there once, by name."""
OWN_KEYS = {name: key for name, key in keys_of(StudyConfig).items() if name not in (*PARTS, "mechanisms")}
"""Its keys that are in no table."""


def read_study(path: Path) -> StudyConfig:
    """Read the configuration of a study; paths in it are relative to its folder.

    Raises:
        InputError: the file cannot be read, or is not TOML.
        SettingError: an unknown or missing key, or a value of the wrong kind or out of range.
        RefusedError: files that are not declared public.
    """
    return study_from(read_file(path), base=path.parent)


def study_from(tables: dict[str, Any], *, base: Path = Path()) -> StudyConfig:
    """Build the configuration of a study from its tables. Raises the errors of `read_study`."""
    TOML.check_keys(tables, [*OWN_KEYS, "mechanism", *PARTS], "A comparison's configuration")
    if missing := [name for name in ("epsilons", "data", "mechanism") if name not in tables]:
        raise SettingError(f"The configuration lacks {', '.join(missing)}.")
    mechanism_tables = tables["mechanism"]
    if not isinstance(mechanism_tables, list):
        raise SettingError("Mechanisms are compared one by one: write [[mechanism]] with double brackets.")
    parts = {name: TOML.read(kind, tables[name], f"[{name}]") for name, kind in PARTS.items() if name in tables}
    values = {name: TOML.read_value(key.kind, tables[name], name) for name, key in OWN_KEYS.items() if name in tables}
    mechanisms = tuple(TOML.read(VariedPart, item, "[[mechanism]]") for item in mechanism_tables)
    return replace(StudyConfig(**parts, **values, mechanisms=mechanisms), base=base)


def study_to_toml(config: StudyConfig) -> str:
    """Write the configuration of a study as TOML, from which `read_study` makes the same study; default values are left out.

    Args:
        config: the configuration; the folder that its paths start from is not written.

    Raises:
        SettingError: a varied setting has the value None, which TOML cannot say.

    >>> heights = VariedPart(key="quadtree", vary={"height": (4, 6)})
    >>> config = StudyConfig(data=PublicDataPart(sample="us_places"), mechanisms=(heights,), epsilons=(Fraction(1, 2), Fraction(1, 3)))
    >>> print(study_to_toml(config), end="")
    epsilons = [
        0.5,
        "1/3",
    ]
    <BLANKLINE>
    [data]
    sample = "us_places"
    <BLANKLINE>
    [[mechanism]]
    key = "quadtree"
    <BLANKLINE>
    [mechanism.vary]
    height = [
        4,
        6,
    ]
    """
    if any(None in values for part in config.mechanisms for values in part.vary.values()):
        raise SettingError("A configuration cannot say None: leave the setting out of [mechanism.vary], or give values.")
    tables = TOML.write(config)
    mechanisms = [to_text({"mechanism": part}).replace("[mechanism]", "[[mechanism]]", 1) for part in tables.pop("mechanisms")]
    return "\n".join([to_text(tables), *mechanisms])
