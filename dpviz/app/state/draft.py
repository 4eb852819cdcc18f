"""What is chosen and typed on a page, and the configuration of a release that is made of it. A page that is half filled in is a draft, too.

What a configuration says of data, regions, publication and output, a draft holds in the same classes (`dpviz.publishing.config`), only
not checked yet. A text that is no value, such as a number with a letter in it, stays in its field and is in no draft.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Any

from dpviz.app.state.kinds import PageKind, kind_of
from dpviz.app.state.linked import STAYS, in_link, in_link_of, in_parts
from dpviz.app.state.parts import Account, Box, ChosenCategories, ChosenRegions, Files, Guess, no_texts
from dpviz.app.state.readers import choice_reader, number_reader
from dpviz.app.state.run import Run, convert_to_currency
from dpviz.app.state.values import (
    A_FILE,
    ALONE,
    CURATE,
    EVERYWHERE,
    HEXAGONS,
    IN_A_FILE,
    LARGEST_ORDER,
    MOST_MADE_UP,
    ON_LAND,
    PATH,
    PLACE_ALONE,
    SAMPLE,
    SQUARES,
    STUDY_AREAS,
    TEACH,
    UPLOAD,
    USUAL_FOLDER,
)
from dpviz.data.reading.outline import LAND
from dpviz.errors import SettingError
from dpviz.families import AREA_FAMILY, POINT_FAMILY
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.base import Share
from dpviz.privacy.budget import Budget
from dpviz.publishing.config import (
    BudgetPart,
    DataConfig,
    DataPart,
    DatasetPart,
    DomainPart,
    MechanismPart,
    OutputPart,
    PublicationPart,
    RegionsPart,
    ReleaseConfig,
)
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.cross import Cross

_KEYS_OF_FILE = ("file", "levels", "names", "prefixes", "denominator", "crs")
NO_GRID = {
    HEXAGONS: "Declare the area of the hexagons: a place, its west, south, east and north, or a file of polygons.",
    SQUARES: "Declare the bounds of the squares and their CRS: a place, or west, south, east and north.",
}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What is chosen on a page: data, public frame, account, texts and runs.

    Attributes:
        family: name of the page's family.
        mode: Teach or Curate.
        source: where the data come from: "sample", "upload" or "path". A link always opens a sample.
        sample: key of the sample.
        size: records of a made-up sample of points; None for its usual number.
        uploaded: the files of "upload".
        by_path: the files of "path".
        path: of the files of "path", as it was typed; nothing is read from a path that only an opened configuration names.
        opened: the configuration that was opened last: what it says of files holds once they are chosen.
        domain: the rectangle in which points of files are counted.
        order: of points, order of the domain's lattice.
        study_area: of points, where people can be, one of `STUDY_AREAS`; a link that says "file" asks for the file of polygons.
        outline: name of the public file of polygons: the study area, or what hexagons cover; None without one.
        regions_from: of areas, where the regions come from, one of `KINDS_OF_REGIONS`.
        regions: of areas and trips, the file of regions, or the levels of the cells.
        destinations: of trips, the file of the regions in which they end; None if these are the same.
        grid: the box of hexagons or squares.
        counted_by: of areas from files, by what records are counted beside the place, one of `COUNTED_BY`.
        categories: what is said of that.
        account: the account that pays.
        texts: the curator's texts for the publication.
        output: folder and formats of the files.
        guess: the public guess from which errors are expected.
        runs: one for each pane, or less; the first one is what Curate pays for.
        beside: of trips in Curate, key of a second mechanism that the same press pays for; "nothing" for none.
    """

    family: str = POINT_FAMILY.name
    mode: str = TEACH
    source: str = SAMPLE
    sample: str | None = field(default=None, metadata=in_link_of(lambda kind: choice_reader(*kind.samples)))
    size: int | None = field(default=None, metadata=in_link(number_reader(1, MOST_MADE_UP, int), of=("points",)))
    uploaded: Files = field(default_factory=Files, metadata=STAYS)
    by_path: Files = field(default_factory=Files, metadata=STAYS)
    path: str = field(default="", metadata=STAYS)
    opened: ReleaseConfig | None = field(default=None, metadata=STAYS)
    domain: Box = field(default_factory=Box, metadata=STAYS)
    order: int = field(default=10, metadata=in_link(number_reader(1, LARGEST_ORDER, int), of=("points",)))
    study_area: str = field(default=EVERYWHERE, metadata=in_link(choice_reader(*STUDY_AREAS), of=("points",)))
    outline: str | None = field(default=None, metadata=STAYS)
    regions_from: str = field(default=A_FILE, metadata=STAYS)
    regions: ChosenRegions = field(default_factory=ChosenRegions, metadata=STAYS)
    destinations: ChosenRegions | None = field(default=None, metadata=STAYS)
    grid: Box = field(default_factory=Box, metadata=STAYS)
    counted_by: str = field(default=PLACE_ALONE, metadata=STAYS)
    categories: ChosenCategories = field(default_factory=ChosenCategories, metadata=STAYS)
    account: Account = field(default_factory=Account, metadata=STAYS)
    texts: PublicationPart = field(default_factory=no_texts, metadata=STAYS)
    output: OutputPart = field(default_factory=lambda: OutputPart(folder=USUAL_FOLDER), metadata=STAYS)
    guess: Guess = field(default_factory=Guess, metadata=STAYS)
    runs: tuple[Run, ...] = field(default=(Run(),), metadata=in_parts("second", "third", "fourth"))
    beside: str = field(
        default=ALONE,
        metadata=in_link_of(lambda kind: choice_reader(ALONE, *kind.family.mechanisms), of=("trips",)),
    )

    @property
    def kind(self) -> PageKind:
        """What the page may hold."""
        return kind_of(self.family)

    @property
    def files(self) -> Files:
        """The files of the source; those of "upload" for a sample."""
        return self.uploaded if self.source in (SAMPLE, UPLOAD) else self.by_path

    @property
    def by_category(self) -> bool:
        """Whether records are counted by category, such as the hour, beside the place."""
        if self.source != SAMPLE:
            return self.kind.family is AREA_FAMILY and self.counted_by != PLACE_ALONE
        return bool(getattr(self.kind.samples.get(str(self.sample)), "slot_levels", ()))

    @property
    def run(self) -> Run:
        """The first run."""
        return self.runs[0]

    def part(self, holder: str) -> Any:
        """Return a part by the name of what holds it: "files" are those of the source, and "data" says how they are read."""
        return self.files.data if holder == "data" else getattr(self, holder)

    def with_part(self, holder: str, **values: Any) -> Draft:
        """Return the draft with new values in a part of it, as of `part`.

        >>> Draft(source="path").with_part("data", x="lon").by_path.data.x
        'lon'
        """
        if holder == "data":
            return self.with_part("files", data=replace(self.files.data, **values))
        name = {"files": "by_path" if self.source == PATH else "uploaded"}.get(holder, holder)
        return replace(self, **{name: replace(self.part(holder), **values)})

    def of_run(self, index: int) -> Draft:
        """Return the draft with one of its runs alone; with the first one if there is no such run."""
        return replace(self, runs=(self.runs[index if index < len(self.runs) else 0],))

    def build(self) -> Any:
        """Build the mechanism of the first run; errors are those of `Run.build`."""
        return self.run.build(self.kind.family)

    def build_all(self) -> list[Any]:
        """Build all mechanisms that one press of Curate releases with.

        In Curate the one beside the first has its page settings, but the same neighbours and accounting.
        """
        first = self.build()
        if self.beside == ALONE or self.mode == TEACH:
            return [first]
        other, chosen = self.kind.family.choices[self.beside], first.chosen()
        known = {rule.name for rule in other.rules()} & chosen.keys() & {"neighbours", "accounting"}
        return [first, other.from_settings({**other.page_settings, **{name: chosen[name] for name in known}})]

    def budget(self) -> Budget:
        """Return the budget of the first run; errors are those of `Run.budget`."""
        return self.budget_for(self.build())

    def budget_for(self, mechanism: AnyMechanism) -> Budget:
        """Return the budget of one draw with a mechanism, as for `budget`."""
        return self.run.budget_for(mechanism, mode=self.mode)

    @property
    def takes_delta(self) -> bool:
        """Whether the budget of the first run has a δ."""
        return self.run.takes_delta(self.build())

    @property
    def split_amount(self) -> str:
        """What the shares of the budget are shares of: with a δ the ρ it buys, but ε for mechanisms of points that need a δ for medians."""
        mechanism = self.build()
        needs_it = self.kind.family is POINT_FAMILY and mechanism.needs_delta
        return "ρ" if self.run.takes_delta(mechanism) and not needs_it else "ε"

    def shares(self, frame: Any) -> list[Share]:
        """List the parts of `split_amount` on a public frame.

        Raises:
            DpvizError: the settings do not fit the frame.
        """
        mechanism = self.build()
        return list(mechanism.shares_of_rho(frame) if self.split_amount == "ρ" else mechanism.shares(frame))

    def slot_shares(self, frame: Any) -> list[Share]:
        """List the parts of `split_amount` over levels of categories, as `shares` does; none where the mechanism counts places alone."""
        mechanism = self.build()
        counts_so = mechanism.by_category and isinstance(frame, Cross)
        return list(mechanism.slot_shares(frame, gaussian=self.split_amount == "ρ")) if counts_so else []

    def same_draw(self, other: Draft) -> bool:
        """Return whether both draw from the same data in the same way in Curate; texts, account, guess and seeds do not matter."""
        return self._of_draw() == other._of_draw()

    def _of_draw(self) -> Draft:
        usual = {name: getattr(_USUAL, name) for name in ("account", "texts", "output", "guess", "opened")}
        return replace(self, runs=(replace(self.run, seed=1),), **usual)

    def to_inputs(self) -> DataConfig:
        """Return data and public frame as a configuration has them.

        Raises:
            SettingError: something is missing, which the text names as the page does; or parts do not fit together.
            DomainError: the domain is not valid.
        """
        if self.source == SAMPLE:
            return self._inputs_of_sample()
        categories = self.categories.checked(self.counted_by) if self.by_category else None
        data = self.checked_data()
        if self.kind.family is POINT_FAMILY:
            return DataConfig(data=data, domain=self._domain_of_files(data))
        return DataConfig(data=data, regions=self._checked_regions(), destinations=_checked(self.destinations), categories=categories)

    def checked_data(self) -> DataPart:
        """Return the table [data] of files, with the errors of `to_inputs`."""
        return self.files.checked(self.kind, self.mode, by_category=self.by_category)

    def to_config(self, inputs: DataConfig | None = None) -> ReleaseConfig:
        """Return the configuration of a release of the first run, with new noise: it has no seed.

        Args:
            inputs: data and frame as they were loaded, where a file says more than the draft, such as its CRS; None for `to_inputs`.

        Raises:
            SettingError: as for `to_inputs`, or mechanism or budget are missing.
            RefusedError: the mechanism is a reference, which is not private.
        """
        inputs, run, family = inputs or self.to_inputs(), self.runs[0], self.kind.family
        mechanism, cap = run.build(family), self.account.cap()
        MechanismPart(key=mechanism.key).build(family)  # a reference is refused
        budget = convert_to_currency(mechanism, run.budget(family), cap)
        unit = inputs.data.unit if self.source == SAMPLE or self.mode == CURATE else None
        name = self.account.name or self._usual_name(inputs.data)
        caps = {} if cap is None else {f"cap_{part}": value for part, value in vars(BudgetPart.of(cap)).items() if value is not None}
        return ReleaseConfig(
            **{item.name: getattr(inputs, item.name) for item in fields(DataConfig) if item.compare},
            mechanism=MechanismPart(key=mechanism.key, settings=mechanism.non_defaults()),
            budget=BudgetPart.of(budget),
            dataset=DatasetPart(name=name, unit=unit, **caps),
            publication=replace(self.texts, name=self.texts.name or name),
            output=self.output,
        )

    def _inputs_of_sample(self) -> DataConfig:
        if self.sample is None:
            raise SettingError("Choose a sample.")
        if self.kind.family is not POINT_FAMILY:
            return DataConfig(data=DataPart(sample=self.sample))
        about = POINT_SAMPLES[self.sample]
        data = DataPart(sample=self.sample, size=self.size if about.synthetic else None)
        return DataConfig(data=data, domain=DomainPart.of(replace(about.domain, order=self.order), self._study_area()))

    def _study_area(self) -> str | None:
        """Return the study area as a configuration names it; None if people can be everywhere."""
        if self.study_area == IN_A_FILE and self.outline is None:
            raise SettingError("Choose the file of polygons again: nobody can be outside them.")
        return {ON_LAND: LAND, IN_A_FILE: self.outline}.get(self.study_area)

    def _domain_of_files(self, data: DataPart) -> DomainPart:
        bounds, crs = self.domain.bounds(), self.domain.crs or data.crs
        if bounds is None:
            raise SettingError("Declare the domain: west, south, east and north.")
        if crs is None:
            raise SettingError("Say which CRS the domain is in.")
        return DomainPart(bounds=bounds, crs=crs, order=self.order, study_area=self._study_area())

    def _checked_regions(self) -> RegionsPart:
        if self.regions_from == A_FILE:
            if self.regions.file is None:
                raise SettingError("Choose a public file of regions.")
            return RegionsPart(**{name: getattr(self.regions, name) for name in _KEYS_OF_FILE})
        bounds, crs = self.grid.bounds(), self.grid.crs or None
        if self.regions_from == HEXAGONS and self.outline is not None:
            return RegionsPart(h3=self.regions.h3, area_file=self.outline, crs=crs)
        if bounds is None or (self.regions_from == SQUARES and crs is None):
            raise SettingError(NO_GRID[self.regions_from])
        if self.regions_from == HEXAGONS:
            return RegionsPart(h3=self.regions.h3, area=bounds)
        return RegionsPart(squares=self.regions.squares, bounds=bounds, crs=crs)

    def _usual_name(self, data: DataPart) -> str:
        return self.kind.samples[data.sample].title if data.sample is not None else PurePath(data.files[0]).stem


_USUAL = Draft()


def _checked(regions: ChosenRegions | None) -> RegionsPart | None:
    """Return regions of a file as the table of a configuration; None without them."""
    return None if regions is None else RegionsPart(**{name: getattr(regions, name) for name in _KEYS_OF_FILE})
