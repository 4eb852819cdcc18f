"""A page as the configuration of a release in TOML, and such a configuration as a page: all of it, or a sentence why not."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import KINDS
from dpviz.app.state.page import Page
from dpviz.app.state.parts import TIMES_OF, Account, Box, ChosenCategories, ChosenRegions, Files
from dpviz.app.state.readers import read_amount
from dpviz.app.state.run import Run
from dpviz.app.state.values import (
    A_FILE,
    ALONE,
    BINS,
    EVERY_ROW,
    EVERYWHERE,
    HEXAGONS,
    IN_A_FILE,
    LARGEST_CAP,
    LARGEST_CAP_DELTA,
    LARGEST_DELTA,
    LARGEST_EPSILON,
    LARGEST_ORDER,
    LARGEST_RHO,
    MOST_MADE_UP,
    MOST_PER_PERSON,
    NO_ZONE,
    ON_LAND,
    PATH,
    PERSON,
    PLACE_ALONE,
    SAMPLE,
    SMALLEST_CAP,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    SMALLEST_RHO,
    SMALLEST_RHO_CAP,
    SQUARES,
    SUMS,
    UPLOAD,
    VALUES,
    VOUCHED,
)
from dpviz.data.reading.outline import LAND
from dpviz.errors import InputError, SettingError
from dpviz.families import AREA_FAMILY, POINT_FAMILY
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.base import GAUSSIAN, LAPLACE
from dpviz.privacy.accounts import amount_of
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget, exact
from dpviz.publishing.config import CategoriesKeys, DataKeys, DataPart, RegionsKeys, RegionsPart, ReleaseConfig, from_tables, to_toml
from dpviz.publishing.toml_tables import read_tables
from dpviz.release.tables import FORMATS
from dpviz.samples.points import POINT_SAMPLES

_STUDY = "This is the configuration of a study, which dpviz compare runs: choose the configuration of a release."
_PATTERN_SIGNS = frozenset("*?[")


def write_toml(page: Page) -> str:
    """Write the configuration with which the command line makes the release of the first run of a page, with new noise.

    Raises:
        DpvizError: something is missing, or does not fit together; the text says what, as the page does.
    """
    return to_toml(page.draft.to_config())


def read_toml(body: bytes, page: Page) -> Page:
    """Return a page with what a configuration says.

    Args:
        body: the TOML.
        page: the page as it is; what a configuration says nothing of stays.

    Raises:
        DpvizError: it is no configuration of a release for this page, or says what the page cannot show; the text says why.
    """
    return page_of(read_for_page(body, page.draft.family), page)


def read_for_page(body: bytes, family: str) -> ReleaseConfig:
    """Read the configuration of a release of a family; whom it protects may be left open.

    Raises:
        DpvizError: the text says why it cannot be opened, and what to do.
    """
    tables = read_tables(body)
    if isinstance(tables.get("mechanism"), list) or "study" in tables:
        raise InputError(_STUDY)
    config = from_tables(tables, asks_unit=True)
    if config.dataset.series is not None:
        raise SettingError("This is the configuration of a series of releases: dpviz release CONFIG --period NAME makes them.")
    name = config.family.name
    if name != family:
        other = f"open it on the {name.capitalize()} page" if name in KINDS else "there is no page for it"
        raise SettingError(f"This is a configuration of {name}: {other}.")
    return config


def page_of(config: ReleaseConfig, page: Page) -> Page:
    """Return a page with what a configuration of its family says; it goes back to its own level, and asks for no region.

    Raises:
        SettingError: the page cannot show a value.
    """
    _check_limits(config)
    draft = page.draft
    run, source = run_of(config, draft.runs[0]), source_of(config.data)
    draft = replace(draft, source=source, runs=(run, *draft.runs[1:]), texts=config.publication, output=config.output, beside=ALONE)
    draft = replace(draft, opened=config, path="")
    draft = replace(draft, account=account_of(config), order=_order_of(config) if config.family is POINT_FAMILY else draft.order)
    if source == SAMPLE:
        draft = replace(draft, sample=config.data.sample, size=_size_of(config.data) if config.family is POINT_FAMILY else None)
    else:
        files = replace(files_of(config), drop_bad_rows=draft.files.drop_bad_rows)
        draft = replace(draft, uploaded=files) if source == UPLOAD else replace(draft, by_path=files)
    draft = replace(_with_domain(config, draft), **_regions_of(config), **_categories_of(config))
    return Page(draft=draft, view=replace(page.view, level=None, asked=(), region=None))


def run_of(config: ReleaseConfig, run: Run) -> Run:
    """Return mechanism, settings and budget of a configuration as a run; δ is that of `run` where there is only a ρ.

    Raises:
        SettingError: the page cannot show the budget, or the mechanism does not take it.
    """
    mechanism, budget = config.mechanism.build(config.family), config.budget.budget()
    takes_delta = not isinstance(budget, PureBudget) if mechanism.noise_by_budget else mechanism.needs_delta
    noise = (GAUSSIAN if takes_delta else LAPLACE) if mechanism.noise_by_budget else run.noise
    amounts = _amounts_of(mechanism, budget, run.delta, takes_delta=takes_delta)
    return Run(mechanism=mechanism.key, settings=mechanism.non_defaults(), noise=noise, seed=run.seed, **amounts)


def _amounts_of(mechanism: AnyMechanism, budget: Budget, delta: Fraction | None, *, takes_delta: bool) -> dict[str, Any]:
    """Return epsilon, delta and rho of a run."""
    rho = None
    if isinstance(budget, ZcdpBudget):
        if not takes_delta:
            raise SettingError(f"{mechanism.title} spends ε alone: give epsilon under [budget] in place of rho.")
        rho = exact(read_amount(budget.rho, "ρ", SMALLEST_RHO, LARGEST_RHO), "ρ")
        implied = round(float(budget.to_approx(delta or exact(LARGEST_DELTA, "δ"), mechanism.conversion).epsilon), 6)
        epsilon = exact(min(max(implied, SMALLEST_EPSILON), LARGEST_EPSILON), "ε")  # shown only; it is rho that is spent
    else:
        if takes_delta != isinstance(budget, ApproxBudget):
            needs = "needs a delta: give one" if takes_delta else "spends ε alone: leave delta out"
            raise SettingError(f"{mechanism.title} {needs} under [budget].")
        epsilon = exact(read_amount(budget.epsilon, "On this page, ε", SMALLEST_EPSILON, LARGEST_EPSILON), "ε")
    if isinstance(budget, ApproxBudget):
        delta = exact(read_amount(budget.delta, "On this page, δ", SMALLEST_DELTA, LARGEST_DELTA), "δ")
    return {"epsilon": epsilon, "delta": delta, "rho": rho}


def source_of(data: DataPart) -> str:
    """Return whether data are a sample, a file that the page takes as an upload, or files that it asks for by path.

    Raises:
        SettingError: several files are listed, of which the page takes none.
    """
    if data.sample is not None:
        return SAMPLE
    if len(data.files) > 1:
        raise SettingError(
            "The page takes one file, one pattern or one folder, and this configuration lists several files: put them into one folder,"
            " or run it with the command line."
        )
    path = data.files[0]
    plain = not _PATTERN_SIGNS & set(path) and not PurePath(path).is_absolute() and PurePath(path).suffix != ""
    return UPLOAD if plain else PATH


def file_name(path: str) -> str:
    """Return the name of a file without its folders, whichever way they are written.

    >>> file_name("data/homes.csv"), file_name("C:/data/homes.csv")
    ('homes.csv', 'homes.csv')
    """
    return PurePath(path.replace("\\", "/")).name


def _size_of(data: DataPart) -> int | None:
    """Return the number of records of a sample of points; None for its usual number."""
    about = POINT_SAMPLES[str(data.sample)]
    if data.size is not None and not (about.synthetic and 1 <= data.size <= MOST_MADE_UP):
        most = f"give [data] size from 1 to {MOST_MADE_UP:,}" if about.synthetic else "leave [data] size out"
        raise SettingError(f"{about.title}: {most}.")
    return data.size


def _order_of(config: ReleaseConfig) -> int:
    """Return the order of the domain of points, which must be the sample's own if it is a sample."""
    own = None if config.data.sample is None else POINT_SAMPLES[config.data.sample].domain
    domain = own if config.domain is None else config.domain.domain()
    if domain is None:
        raise SettingError("Points need a [domain].")
    if own is not None and (domain.bounds, domain.crs) != (own.bounds, own.crs):
        raise SettingError("The page counts a sample on its own domain only: run this configuration with the command line.")
    if own is not None and config.domain is not None and config.domain.study_area not in (None, LAND):
        raise SettingError("The page cannot open the study area of a sample: run this configuration with the command line.")
    if own is None and config.domain is not None and config.domain.study_area == LAND:
        raise SettingError("The page masks files by polygons of a file, not by land: run this configuration with the command line.")
    if domain.order > LARGEST_ORDER:
        raise SettingError(f"The page takes an order of at most {LARGEST_ORDER}: run finer domains with the command line.")
    return domain.order


def _with_domain(config: ReleaseConfig, draft: Draft) -> Draft:
    """Return a draft of points with the rectangle and the study area of a configuration; of other data as it is."""
    if config.family is not POINT_FAMILY:
        return draft
    part = config.domain
    file = None if part is None or part.study_area in (None, LAND) else part.study_area
    area = IN_A_FILE if file is not None else EVERYWHERE if part is None or part.study_area is None else ON_LAND
    draft = replace(draft, study_area=area, outline=file)
    return draft if part is None or draft.source == SAMPLE else replace(draft, domain=_box_of(part.bounds, part.crs))


def _box_of(bounds: tuple[float, ...], crs: str | None) -> Box:
    west, south, east, north = bounds
    return Box(west=west, south=south, east=east, north=north, crs=crs or "")


def files_of(config: ReleaseConfig) -> Files:
    """Return the files of a configuration, for which nothing is chosen yet: they are known by their name alone."""
    data = config.data
    values = {item.name: getattr(data, item.name) for item in fields(DataKeys)}
    each = None if config.dataset.unit is None else EVERY_ROW
    return Files(data=DataKeys(**values), whom=PERSON if data.person is not None else VOUCHED if data.contributions is not None else each)


def _regions_of(config: ReleaseConfig) -> dict[str, Any]:
    """Return the parts of a draft that say in which regions is counted; none where the page has none.

    Raises:
        SettingError: the page takes only a file of regions with ids, or for areas hexagons and squares as well.
    """
    part = config.regions
    if part is None:
        return {}
    takes_grids = config.family is AREA_FAMILY
    if any(each.polygons or (each.file is None and not takes_grids) for each in (part, config.destinations) if each is not None):
        others = ", H3 cells or squares" if takes_grids else ""
        raise SettingError(f"The page takes a file of regions with ids{others}: run this configuration with the command line.")
    values = {
        "regions": keys_of_regions(part),
        "destinations": None if config.destinations is None else keys_of_regions(config.destinations),
    }
    if part.file is not None:
        return {**values, "regions_from": A_FILE}
    box = _box_of(part.area or part.bounds, part.crs) if part.area or part.bounds else Box(crs=part.crs or "")
    return {**values, "regions_from": HEXAGONS if part.h3 else SQUARES, "grid": box, "outline": part.area_file}


def _categories_of(config: ReleaseConfig) -> dict[str, Any]:
    """Return the parts of a draft that say by what is counted beside the place."""
    part = config.categories
    if part is None:
        return {"counted_by": PLACE_ALONE}
    values = {item.name: getattr(part, item.name) for item in fields(CategoriesKeys)}
    by = next((by for by, times in TIMES_OF.items() if times == part.times), BINS if part.bins else SUMS if part.sum_between else VALUES)
    return {"counted_by": by, "categories": ChosenCategories(**values | {"zone": part.zone or (NO_ZONE if part.times else None)})}


def keys_of_regions(part: RegionsPart) -> ChosenRegions:
    """Return what regions of a configuration say, of a file that is not chosen yet."""
    values = {item.name: getattr(part, item.name) for item in fields(RegionsKeys)}
    return ChosenRegions(**values) if part.file is not None else ChosenRegions(h3=part.h3, squares=part.squares)


def account_of(config: ReleaseConfig) -> Account:
    """Return the account of a configuration."""
    cap = config.dataset.cap()
    amounts: dict[str, Any] = {} if cap is None else dict(amount_of(cap))
    return Account(name=config.dataset.name, counts_rho=isinstance(cap, ZcdpBudget), **amounts)


def _check_limits(config: ReleaseConfig) -> None:
    """Refuse values that the page's fields would not take.

    Raises:
        SettingError: the bound per person, the cap, or a format of files.
    """
    if unknown := [name for name in config.output.formats if name not in FORMATS]:
        raise SettingError(f"[output] formats has {unknown[0][:40]!r}; there are {', '.join(FORMATS)}.")
    if not 1 <= (config.data.contributions or 1) <= MOST_PER_PERSON:
        raise SettingError(f"On this page, [data] contributions must be from 1 to {MOST_PER_PERSON:,}.")
    cap = config.dataset.cap()
    for name, amount in ({} if cap is None else amount_of(cap)).items():
        low, high = {
            "epsilon": (SMALLEST_CAP, LARGEST_CAP),
            "delta": (0, LARGEST_CAP_DELTA),
            "rho": (SMALLEST_RHO_CAP, LARGEST_CAP),
        }[name]
        if not low <= amount <= high:
            raise SettingError(f"On this page, [dataset] cap_{name} must be from {low:g} to {high:g}.")
