"""State of the Compare page: its configuration, which a link carries, its data, its study, and their names on screen."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import streamlit as st

from dpviz.app.jobs.study import StudyJob
from dpviz.app.server.class_limits import refuse_large_study
from dpviz.app.server.class_mode import describe_restricted, is_class, restrict
from dpviz.app.server.class_samples import name_files
from dpviz.app.session.page_state import PageState
from dpviz.app.session.widgets import check_link, to_query, widget_for
from dpviz.app.state.linked import in_link
from dpviz.app.state.readers import (
    Camera,
    choice_reader,
    describe_refused,
    list_words,
    number_reader,
    read_camera,
    read_file_name,
    read_settings,
)
from dpviz.app.state.values import EVERYWHERE, LARGEST_DELTA, LARGEST_EPSILON, SMALLEST_DELTA, SMALLEST_EPSILON, STUDY_AREAS
from dpviz.data.reading.outline import LAND
from dpviz.errors import SettingError
from dpviz.evaluation.study import Study
from dpviz.families import FAMILIES, POINT_FAMILY, Family
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.base import GAUSSIAN, LAPLACE
from dpviz.publishing.config import DataPart, PublicDataPart
from dpviz.publishing.private_data import PrivateData
from dpviz.publishing.study_config import StudyConfig, Variant, VariedPart
from dpviz.release.older import say_new_names
from dpviz.samples.load import SAMPLES
from dpviz.view.looks import MOST_VARIANTS
from dpviz.view.points_map import SHOWN
from dpviz.view.study_figures import FIGURES
from dpviz.view.trips_drawing import RELEASED

SAMPLE, OWN = "sample", "own"
NOTHING = "nothing"
"""The sample of a link whose data are not known here."""
MOST_STEPS, MOST_REPEATS, MOST_PICKED, LARGEST_ORDER = 12, 200, 4, 12
MOST_CONFIGURATIONS, LARGEST_TARGET = 24, 1e12
MOST_ZOOM, MOST_LEVELS = 6, 16  # finest zoom level of the maps of points, and most levels of regions that a link may name
JOB = "study"
NOISE = "noise"
"""The name under which the noise is varied, as a setting is."""
_VARIANT, _STUDY = re.compile("[0-9a-f]{8}"), re.compile("[0-9a-f]{16}(-[0-9a-f]{8})?")

_SHOWS = {"shows": True}  # metadata of a part that does not change which releases are made

Pick = tuple[str, float]


def _read_keys(text: str) -> tuple[str, ...]:
    keys = json.loads(text)
    if not isinstance(keys, list) or not keys or not {*keys} <= {*COMPARE.mechanisms}:
        raise ValueError
    return tuple(dict.fromkeys(keys))


def _read_picks(text: str) -> tuple[Pick, ...]:
    pairs = [(str(label), float(epsilon)) for label, epsilon in json.loads(text)]
    return tuple(pairs[:MOST_PICKED])


def _read_study(text: str) -> str:
    if not _STUDY.fullmatch(text):
        raise ValueError
    return text


def _read_looks(text: str) -> dict[str, tuple[str, ...]]:
    looks = {key: tuple(map(str, variants)) for key, variants in read_settings(text).items()}
    if not looks.keys() <= COMPARE.mechanisms.keys() or not all(map(_VARIANT.fullmatch, chain(*looks.values()))):
        raise ValueError
    return {key: variants[: MOST_VARIANTS - 1] for key, variants in looks.items()}


def _read_kind(text: str) -> str:
    return choice_reader(*list_kinds())(text)  # type: ignore[no-any-return]


def _read_sample(text: str) -> str:
    return choice_reader(*(key for family in FAMILIES.values() for key in family.compared.samples))(text)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """Everything on the Compare page that can be shared as a link: parameters only, never data.

    Attributes:
        kind: "Points", "Trips" or "Areas".
        source: "sample", or "own": public data as loaded in Teach.
        file: name of the file of own data that a link says; "" without one.
        sample: key of the sample; empty for the usual one, and `NOTHING` after a link whose data are not known here.
        order: order of the lattice on which a sample of points is counted.
        study_area: where people of a sample of points can be, one of `STUDY_AREAS`; a link that says "file" asks for the file of polygons.
        mechanisms: keys of the compared mechanisms; empty for the usual ones.
        settings: by key of a mechanism, its varied settings with the list of values of each; every combination is compared. Where the
            kind of the budget decides the noise, "noise" stands among them.
        low: the smallest epsilon.
        high: the largest epsilon.
        steps: number of epsilons, evenly spaced on a logarithmic scale.
        delta: delta of mechanisms that need one.
        repeats: releases per configuration and epsilon.
        seed: seed of the noise and of the random queries.
        figure: key of the figure that is shown, one of `FIGURES`; the usual one is shown instead if it is for the other kind of data.
        workload: name of the workload that is shown; empty for the usual one of the figure.
        target: the error that is wanted, in the unit of the figure; None for the usual one.
        picked: up to four pairs of configuration and epsilon, whose releases are shown side by side.
        looks: by key of a mechanism, its variants in the order in which they first appeared, which gives them their colours; see
            `dpviz.app.pages.compare.looks`.
        shown: what the maps show.
        zoom: zoom level of the maps of points; None for the usual one.
        level: geographic level of the maps of trips, 1 for the coarsest; None for the finest one that is easy to read.
        repeat: number of the repeat whose releases are on the maps.
        camera: longitude, latitude and zoom of the maps; None for the whole domain.
        study: id of the study that was started last on a sample, by which it is found again when the page is loaded anew; only the
            fingerprint of its rows if it was stopped by hand, so that it does not start by itself.
    """

    data_parts: ClassVar[tuple[str, ...]] = ("kind", "source", "file", "sample", "order", "study_area")
    """Parts that say on which data a study is made: without them no other data take their place."""

    kind: str = field(default=POINT_FAMILY.title, metadata=in_link(_read_kind))
    source: str = field(default=SAMPLE, metadata=in_link(choice_reader(OWN)))
    file: str = field(default="", metadata=in_link(read_file_name) | _SHOWS)
    sample: str = field(default="", metadata=in_link(_read_sample))
    order: int = field(default=8, metadata=in_link(number_reader(1, LARGEST_ORDER, int)))
    study_area: str = field(default=EVERYWHERE, metadata=in_link(choice_reader(*STUDY_AREAS)))
    mechanisms: tuple[str, ...] = field(default=(), metadata=in_link(_read_keys))
    settings: dict[str, Any] = field(default_factory=dict, metadata=in_link(read_settings))
    low: float = field(default=0.1, metadata=in_link(number_reader(SMALLEST_EPSILON, LARGEST_EPSILON, float)))
    high: float = field(default=2.0, metadata=in_link(number_reader(SMALLEST_EPSILON, LARGEST_EPSILON, float)))
    steps: int = field(default=5, metadata=in_link(number_reader(1, MOST_STEPS, int)))
    delta: float = field(default=1e-8, metadata=in_link(number_reader(SMALLEST_DELTA, LARGEST_DELTA, float)))
    repeats: int = field(default=10, metadata=in_link(number_reader(1, MOST_REPEATS, int)))
    seed: int = field(default=0, metadata=in_link(number_reader(0, 2**53 - 1, int)))
    figure: str = field(default="n3", metadata=in_link(choice_reader(*FIGURES)) | _SHOWS)
    workload: str = field(default="", metadata=in_link(str) | _SHOWS)
    target: float | None = field(default=None, metadata=in_link(number_reader(0, LARGEST_TARGET, float)) | _SHOWS)
    picked: tuple[Pick, ...] = field(default=(), metadata=in_link(_read_picks) | _SHOWS)
    looks: dict[str, tuple[str, ...]] = field(default_factory=dict, metadata=in_link(_read_looks) | _SHOWS)
    shown: str = field(default=RELEASED, metadata=in_link(choice_reader(*SHOWN)) | _SHOWS)
    zoom: int | None = field(default=None, metadata=in_link(number_reader(0, MOST_ZOOM, int)) | _SHOWS)
    level: int | None = field(default=None, metadata=in_link(number_reader(1, MOST_LEVELS, int)) | _SHOWS)
    repeat: int = field(default=1, metadata=in_link(number_reader(1, MOST_REPEATS, int)) | _SHOWS)
    camera: Camera | None = field(default=None, metadata=in_link(read_camera) | _SHOWS)
    study: str = field(default="", metadata=in_link(_read_study) | _SHOWS)

    @property
    def family(self) -> Family:
        """The family of this kind of data."""
        return next(family for family in FAMILIES.values() if family.title == self.kind)

    @property
    def compared(self) -> Any:
        """What the page knows of this kind of data, a `Compared` (`dpviz.app.pages.compare.kinds`)."""
        return self.family.compared

    def offered_data(self) -> Any:
        """Return the data that the page of their kind offers here; None if there are none."""
        page = self.family.page
        return None if page is None else page.state.offered_data()

    def offered_file(self) -> str:
        """Return the name of the file of these data, which a link may carry; "" if there are none."""
        page = self.family.page
        return "" if page is None else str(page.state.offered_files().get("file", ""))

    @property
    def offered(self) -> dict[str, type[AnyMechanism]]:
        """Mechanisms for this kind of data."""
        return self.family.offered

    @property
    def chosen(self) -> tuple[str, ...]:
        """Keys of the mechanisms that are compared; keys that belong to the other kind of data are left out."""
        return tuple(key for key in self.mechanisms if key in self.offered) or self.family.usual

    @property
    def chosen_sample(self) -> str:
        """Key of a sample of this kind."""
        return self.sample if self.sample in self.compared.samples else str(self.compared.usual_sample)

    def epsilons(self) -> tuple[Fraction, ...]:
        """Return epsilons evenly spaced on a logarithmic scale; those between the ends have two digits. One step gives the smallest.

        >>> [float(epsilon) for epsilon in CompareConfig(low=0.1, high=1.0, steps=3).epsilons()]
        [0.1, 0.32, 1.0]
        """
        low, high = min(self.low, self.high), max(self.low, self.high)
        if self.steps == 1:
            return (Fraction(repr(low)),)
        steps = self.steps if high > low else 1
        middle = [f"{epsilon:.2g}" for epsilon in np.geomspace(low, high, steps)[1:-1]]
        return tuple(sorted({Fraction(text) for text in (repr(low), *middle, repr(high))}))

    def build(self) -> dict[str, AnyMechanism]:
        """Build the mechanisms, by their name on screen.

        Raises:
            SettingError: a setting does not exist or is out of range, or there are too many combinations.
        """
        if (number := self.count_configurations()) > MOST_CONFIGURATIONS:
            raise SettingError(
                f"These would be {number:,} configurations, and a chart shows at most {MOST_CONFIGURATIONS}: vary fewer settings,"
                " give fewer values, or choose fewer mechanisms."
            )
        return {label: variant.build(self.family, references=True) for label, variant in self._variants()}

    def gaussian(self) -> tuple[str, ...]:
        """Return the names on screen of mechanisms that get ε and δ, and so Gaussian noise, though ε alone would do."""
        return tuple(label for label, variant in self._variants() if variant.noise == GAUSSIAN)

    def _variants(self) -> Iterator[tuple[str, Variant]]:
        return (variant for part in self.varied_parts() for variant in part.variants())

    def varied_parts(self) -> tuple[VariedPart, ...]:
        """Return the chosen mechanisms with their varied settings as parts of a study's configuration."""
        return tuple(
            VariedPart(
                key=key,
                label=str(self.offered[key].title),
                noise=tuple(self.varied_settings(key).get(NOISE, ())) or LAPLACE,
                vary={name: tuple(values) for name, values in self.varied_settings(key).items() if name != NOISE},
            )
            for key in self.chosen
        )

    def count_configurations(self) -> int:
        """Count the configurations: for each mechanism all combinations of the values of its varied settings.

        >>> varied = {"quadtree": {"height": [4, 6, 8], "split": ["geometric", "uniform"]}}
        >>> CompareConfig(mechanisms=("quadtree", "identity"), settings=varied).count_configurations()
        7
        """
        return sum(math.prod(len(tuple(values)) for values in self.varied_settings(key).values()) for key in self.chosen)

    def varied_settings(self, key: str) -> dict[str, list[Any]]:
        """Return the lists of values of one mechanism, by setting."""
        values = self.settings.get(key, {})
        return values if isinstance(values, dict) else {}

    def same_study(self, other: CompareConfig) -> bool:
        """Return whether both configurations make the same runs; the settings of the display are not compared."""
        view = {item.name: getattr(other, item.name) for item in fields(self) if _SHOWS.items() <= item.metadata.items()}
        return replace(self, sample=self.chosen_sample, **view) == replace(other, sample=other.chosen_sample)

    @property
    def is_usual(self) -> bool:
        """Whether the study is the one with which the page opens, of points or of trips."""
        return self.same_study(CompareConfig(kind=self.kind))

    def misfits(self) -> list[str]:
        """Return the names of parameters that can be read, but do not fit the others, such as a repeat that a study of them lacks."""
        zooms = min(self.order, MOST_ZOOM)
        levels = MOST_LEVELS if self.level is None else self.compared.most_levels(self.chosen_sample) or MOST_LEVELS
        shown = {"repeat": (self.repeat, self.repeats), "zoom": (self.zoom, zooms), "level": (self.level, levels)}
        found = [name for name, (number, most) in shown.items() if number is not None and number > most]
        found += ["sample"] if self.sample and self.sample not in self.compared.samples else []
        return [*found, "file"] if self.file and self.source != OWN else found


def list_kinds() -> tuple[str, ...]:
    """Return the kinds of data that can be chosen: "Points", "Trips", "Areas"."""
    return tuple(family.title for family in FAMILIES.values())


class CompareState(PageState):
    """The state of the Compare page, one flat configuration, whose links never open other data than those that they say."""

    def read(self, link: Mapping[str, str]) -> tuple[CompareConfig, str]:
        """Return the configuration of a link: parts that were not understood have their defaults.

        It has no data if these are not known here, or are a file, which a class does not have.
        """
        config, names = check_link(CompareConfig, link)
        if any(name in CompareConfig.data_parts for name in names) or (is_class() and config.source == OWN):
            text = f"Not understood in this link: {list_words(names)}. " if names else "A class has samples only. "
            return replace(config, source=SAMPLE, file="", sample=NOTHING, study=""), f"{text}No data are chosen: choose them on the left."
        refused = describe_refused({name: getattr(config, name) for name in names})
        renamed = say_new_names(link["settings"]) if "settings" in names else ""
        return config, " ".join(filter(None, (refused, renamed, describe_restricted(config))))

    def query(self) -> dict[str, str]:
        """Return the parameters of a link; own data are named while they are declared public in this session."""
        config = self.config()
        return to_query(replace(config, file=config.offered_file()) if config.source == OWN and not config.file else config)

    @property
    def looks(self) -> CompareConfig:
        """The configuration, which has the camera."""
        return self.config()

    def look(self, **parts: Any) -> None:
        """Change the camera."""
        self.change_for_good(**parts)

    def config(self) -> CompareConfig:
        """Return the configuration of this session, within what a class may have."""
        config: CompareConfig = restrict(self.value())
        return config

    def change(self, **updates: Any) -> None:
        """Change parts of the configuration, after which nothing is said of the link any more."""
        before = self.config()
        self._put(before, replace(before, **updates))

    def change_for_good(self, **updates: Any) -> None:
        """Change parts of the configuration; what is said of the link stays."""
        st.session_state[self.key] = replace(self.config(), **updates)

    def widget(self, part: str, key: str = "", **resets: Any) -> dict[str, Any]:
        """Let a widget show and change a part of the configuration; return its arguments, as `widget_for` does.

        Args:
            part: name of the part.
            key: key of the widget; "" if it is the name of the part.
            resets: other parts that a change sets, with their values.
        """
        return widget_for(key or part, getattr(self.config(), part), lambda value: self.change(**{part: value}, **resets))


COMPARE = CompareState(key="compare config", families=FAMILIES.values())


@dataclass(frozen=True, kw_only=True)
class CompareData:
    """Public data to compare on.

    Attributes:
        data: counts of a sample, or of a file that was declared public.
        key: identifies content and frame.
        digest: identifies the content; the same as on the Points or Trips page.
        fingerprints: fingerprints by which the ledger recognises the data; never shown.
        title: name of the data on screen.
        unit: what one record or trip is.
        bundled: whether the data are a sample, which comes with the package and is public.
        study_area: name of the file of polygons in which all people of a sample can be, or "land"; None without one.
    """

    data: PrivateData
    key: str
    digest: str
    fingerprints: tuple[str, ...]
    title: str
    unit: str
    bundled: bool = False
    study_area: str | None = None

    @property
    def family(self) -> Family:
        """The family of the data."""
        return FAMILIES[self.data.family]

    @property
    def is_shared(self) -> bool:
        """Whether all sessions share what is made of the data, and a link finds it: of samples, unless a file of one's own masks them."""
        return self.bundled and self.study_area in (None, LAND)


def leave_out_by_mask(data: CompareData, config: CompareConfig) -> tuple[CompareConfig, tuple[str, ...]]:
    """Leave out mechanisms that take no mask, if the data have one.

    Returns:
        The configuration with the others, and the titles of those that are left out.

    Raises:
        SettingError: no mechanism is left.
    """
    has_mask = data.data.is_masked
    taken = tuple(key for key in config.chosen if not has_mask or getattr(config.offered[key], "takes_mask", False))
    titles = tuple(str(config.offered[key].title) for key in config.chosen if key not in taken)
    if not taken:
        raise SettingError(
            f"{list_words(titles)} cannot take a study area into account: choose others, such as the path-budget tree, or say that people"
            " can be anywhere."
        )
    return (replace(config, mechanisms=taken) if titles else config), titles


def study_of(data: CompareData, config: CompareConfig) -> Study:
    """Return the study that a configuration describes, on all workloads.

    Raises:
        SettingError: the study is too large for a class.
        DpvizError: what `Study` raises.
    """
    config, _ = leave_out_by_mask(data, config)
    study = Study(
        data=data.data,
        public=True,
        mechanisms=config.build(),
        epsilons=config.epsilons(),
        delta=Fraction(repr(config.delta)),
        gaussian=config.gaussian(),
        repeats=config.repeats,
        seed=config.seed,
        workloads=config.compared.workloads,
        parts=True,
    )
    refuse_large_study(len(study))
    return study


def study_config_of(study: Study, data: CompareData, config: CompareConfig) -> StudyConfig | None:
    """Return the configuration of a study for the command line.

    None for data that are no longer loaded on their page, and for a sample that only a family of another package has.

    Args:
        study: as `study_of` makes it.
        data: the data of the study.
        config: the page's configuration of this study.
    """
    config, _ = leave_out_by_mask(data, config)
    names = ("epsilons", "repeats", "seed", "workloads", "parts")
    needs_delta = bool(study.gaussian) or any(mechanism.needs_delta for mechanism in study.mechanisms.values())
    options = {name: getattr(study, name) for name in names} | ({"delta": study.delta} if needs_delta else {})
    if config.source != OWN and config.chosen_sample not in SAMPLES:
        return None
    if config.source != OWN:
        domain = config.compared.domain_part(study.data, data.study_area)
        part = PublicDataPart(sample=config.chosen_sample)
        return name_files(StudyConfig(data=part, domain=domain, mechanisms=config.varied_parts(), **options))
    loaded = config.offered_data()
    if loaded is None:
        return None
    frame = {name: getattr(loaded.source, name) for name in ("domain", "regions", "destinations")}
    own = {item.name: getattr(loaded.source.data_part, item.name) for item in fields(DataPart)}
    return StudyConfig(data=PublicDataPart(**own, public=True), **frame, mechanisms=config.varied_parts(), **options)


def job() -> StudyJob | None:
    """Return the study of this session, running or not; None before the first."""
    return st.session_state.get(JOB)


def still_public(study_job: StudyJob) -> bool:
    """Return whether the data of a study are a sample, or still loaded as public data in Teach."""
    config, data = study_job.of.config
    loaded = config.offered_data() if config.source == OWN else data
    return loaded is not None and loaded.digest == data.digest


def is_current(study_job: StudyJob, data: CompareData | None) -> bool:
    """Return whether a study is the one that is chosen on the left, on the data chosen there; `data` is None while they are missing."""
    config, data_of_study = study_job.of.config
    return bool(data is not None and config.same_study(COMPARE.config()) and data.key == data_of_study.key)


def changed_parts(before: CompareConfig, now: CompareConfig) -> list[str]:
    """List in words what of the runs differs between two studies, but for their data."""
    words = {
        "mechanisms": ("chosen", "settings"),
        "ε": ("low", "high", "steps"),
        "δ": ("delta",),
        "repeats": ("repeats",),
        "seed": ("seed",),
    }
    return [word for word, names in words.items() if any(getattr(before, name) != getattr(now, name) for name in names)]


def is_in_address(study_job: StudyJob) -> bool:
    """Return whether the address of the page opens this study for somebody else: one on a sample, with the settings on the left."""
    config, data = study_job.of.config
    shown: CompareConfig = COMPARE.config()
    is_named = shown.study in (study_job.key, study_job.of.study.fingerprint) or (shown.is_usual and not shown.study)
    return bool(data.is_shared and config.source != OWN and config.same_study(shown) and is_named)


def picks(study_job: StudyJob) -> list[Pick]:
    """Return the picked pairs of configuration and epsilon that the study has."""
    possible = set(possible_picks(study_job))
    return [pick for pick in dict.fromkeys(settle_pick(study_job, pick) for pick in COMPARE.config().picked) if pick in possible]


def possible_picks(study_job: StudyJob) -> Iterator[Pick]:
    """Return every pair of configuration and epsilon of a study; of a configuration without ε only one."""
    pairs = ((label, float(epsilon)) for label in study_job.of.study.mechanisms for epsilon in study_job.of.study.epsilons)
    return (pick for pick in pairs if settle_pick(study_job, pick) == pick)


def settle_pick(study_job: StudyJob, pick: Pick) -> Pick:
    """Return a pick as it is, or with the middle ε of the study if the configuration has no ε, as its releases are alike at every ε."""
    return pick if _spends(study_job, pick) else (pick[0], middle_of(map(float, study_job.of.study.epsilons)))


def middle_of(epsilons: Iterable[float]) -> float:
    """Return the middle one of some ε, the larger one of two.

    >>> middle_of([1.0, 0.1, 0.5, 2.0])
    1.0
    """
    ascending = sorted(epsilons)
    return ascending[len(ascending) // 2]


def _spends(study_job: StudyJob, pick: Pick) -> bool:
    mechanism = study_job.of.study.mechanisms.get(pick[0])
    return mechanism is None or mechanism.spends


def describe_pick(study_job: StudyJob, pick: Pick) -> str:
    """Return a configuration and its epsilon, if it has one, as one text."""
    return f"{pick[0]}, ε {pick[1]:g}" if _spends(study_job, pick) else pick[0]
