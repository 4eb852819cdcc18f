"""What a comparison is made of, as a TOML file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpviz.data.counting.job import Watch
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import SettingError
from dpviz.evaluation.study import MOST_RUNS, Study
from dpviz.mechanisms import AnyMechanism
from dpviz.publishing.config import DomainPart, MechanismPart, PublicDataPart, RegionsPart, Sourced
from dpviz.publishing.private_data import UNWATCHED, Opened, PrivateData, open_data, open_frame
from dpviz.publishing.toml_tables import check_keys, read_file, table_of, value_of

PARTS: dict[str, type[Any]] = {
    "data": PublicDataPart,
    "domain": DomainPart,
    "regions": RegionsPart,
    "destinations": RegionsPart,
}


@dataclass(frozen=True, kw_only=True)
class VariedPart(MechanismPart):
    """[[mechanism]]: one mechanism, or several that differ in some settings.

    Attributes:
        label: for the table; the key if left out.
        vary: lists of values by setting; every combination is compared.
    """

    label: str | None = None
    vary: dict[str, Any] = field(default_factory=dict)

    def variants(self) -> Iterator[tuple[str, MechanismPart]]:
        """Each combination with its label: quadtree, or quadtree height=6 split=uniform.

        Raises:
            SettingError: a value of `vary` that is no list, or a setting that is given twice.
        """
        for name, values in self.vary.items():
            if not isinstance(values, tuple) or not values:
                raise SettingError(f"[mechanism.vary] {name[:40]} must be a list of values.")
            if name in self.settings:
                raise SettingError(f"[mechanism.vary] {name[:40]} stands under [mechanism.settings], too: leave one out.")
        lists = [[(name, tuple(value) if isinstance(value, list) else value) for value in values] for name, values in self.vary.items()]
        for chosen in itertools.islice(itertools.product(*lists), MOST_RUNS + 1):
            words = [self.label or self.key, *(f"{name}={_spelt(value)}" for name, value in chosen)]
            yield " ".join(words), MechanismPart(key=self.key, settings={**self.settings, **dict(chosen)})


def _spelt(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, kw_only=True)
class StudyConfig(Sourced):
    """Everything that decides a comparison.

    Attributes:
        mechanisms: what is compared.
        epsilons: of the budgets; exact, as all budgets.
        delta: of those mechanisms that need one.
        repeats: runs of each.
        seed: the same seed gives the same table, but for the seconds.
        queries: random boxes in each list that points are asked.
        workloads: what releases are asked: random, small, medium, large, zooms, sizes (points), or names of levels, levels, sizes
            (trips); left out: random boxes, or the finest level.
        parts: also take errors of points apart into noise and uniformity.
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

    def built(self) -> dict[str, AnyMechanism]:
        """The mechanisms by label.

        Raises:
            SettingError: as `MechanismPart.built`, or two of one label.
        """
        made: dict[str, AnyMechanism] = {}
        for part in self.mechanisms:
            for label, plain in part.variants():
                if label in made:
                    raise SettingError(f"Two mechanisms are called {label[:80]!r}: give one another label.")
                made[label] = plain.built(self.data.family, references=True)
                if len(made) > MOST_RUNS:
                    raise SettingError(f"There are more than {MOST_RUNS:,} combinations of settings.")
        return made

    def opened(self, watch: Watch = UNWATCHED, scheduler: Scheduler | None = None) -> Opened:
        """The data, which are read now; `watch` follows that.

        Raises:
            DpvizError: whatever is wrong with the mechanisms, the data or their frame.
        """
        self.built()
        return open_data(self, open_frame(self), bad_rows="refuse", watch=watch, scheduler=scheduler)

    def study_on(self, data: PrivateData) -> Study:
        """The study on the data that `opened` gave.

        Raises:
            DpvizError: mechanisms that do not fit the data's frame.
        """
        mechanisms = self.built()
        own = {each.name for each in fields(Study)} - {"data", "public", "mechanisms"}
        return Study(data=data, public=True, mechanisms=mechanisms, **{name: getattr(self, name) for name in own})


def read_study(path: Path) -> StudyConfig:
    """Read a comparison's configuration; paths in it are relative to its own folder.

    Raises:
        InputError: the file cannot be read, or is no TOML.
        SettingError: an unknown or missing key, or a value of the wrong kind or out of range.
        RefusedError: data that are not public.
    """
    return study_from(read_file(path), base=path.parent)


def study_from(found: dict[str, Any], *, base: Path = Path()) -> StudyConfig:
    """A comparison from its tables; raises as `read_study`."""
    plain = {each.name: str(each.type) for each in fields(StudyConfig)}
    plain = {name: kind for name, kind in plain.items() if name not in (*PARTS, "mechanisms", "base")}
    check_keys(found, {**plain, "mechanism": None, **PARTS}, "A comparison's configuration")
    if missing := [name for name in ("epsilons", "data", "mechanism") if name not in found]:
        raise SettingError(f"The configuration lacks {', '.join(missing)}.")
    listed = found["mechanism"]
    if not isinstance(listed, list):
        raise SettingError("Mechanisms are compared one by one: write [[mechanism]] with double brackets.")
    parts = {name: table_of(kind, found[name], f"[{name}]") for name, kind in PARTS.items() if name in found}
    values = {name: value_of(kind, found[name], name) for name, kind in plain.items() if name in found}
    mechanisms = tuple(table_of(VariedPart, each, "[[mechanism]]") for each in listed)
    return replace(StudyConfig(**parts, **values, mechanisms=mechanisms), base=base)
