"""A page as a configuration, and a configuration as a page: pure functions in both directions, and *Save this configuration*.

`write_configuration` writes the TOML file with which the command line makes the release that a page shows. `parts_of_page` and the other
functions that take a `ReleaseConfig` say what a page shows for it: parts of the page's configuration, and values of widgets by their keys
in the session state. `opened_config` uses them. What a page cannot show is refused with a sentence, or kept for the next save.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import streamlit as st

from dpviz.app.dataset_block import CURRENCIES, LARGEST_CAP, LARGEST_CAP_DELTA, SMALLEST_CAP, SMALLEST_RHO_CAP
from dpviz.app.ledger import Funding, LoadedData, Source, convert_to_currency
from dpviz.app.page_config import EVERYWHERE, ON_LAND, PageConfig
from dpviz.app.page_state import LARGEST_DELTA, LARGEST_EPSILON, LARGEST_RHO, SMALLEST_DELTA, SMALLEST_EPSILON, SMALLEST_RHO
from dpviz.app.points.state import LARGEST_ORDER
from dpviz.app.session import read_amount
from dpviz.app.trips.state import ALONE
from dpviz.app.unit_controls import EVERY_ROW, MOST_PER_PERSON, PERSON, VOUCHED
from dpviz.data.counting.engines import AUTO
from dpviz.data.reading.outline import LAND
from dpviz.data.reading.safety import format_of
from dpviz.data.reading.text_format import TextFormat
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.data.roles import NO_COUNT, says_none
from dpviz.errors import DpvizError, SettingError
from dpviz.families import AREA_FAMILY
from dpviz.mechanisms.base import GAUSSIAN, LAPLACE, AnyMechanism
from dpviz.privacy.accounts import amount_of
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.publishing.config import (
    BudgetPart,
    DataPart,
    DatasetPart,
    MechanismPart,
    OutputPart,
    PublicationPart,
    RegionsPart,
    ReleaseConfig,
    to_toml,
)
from dpviz.publishing.order import TEXT_NAMES
from dpviz.publishing.toml_tables import TOML
from dpviz.release.tables import FORMATS, USUAL_FORMATS
from dpviz.samples.points import POINT_SAMPLES

FILE_NAME = "release.toml"
USUAL_FOLDER = "release"
NONE = "(none)"
NO_MARK = ""  # stands for a mark of numbers that is not declared
MOST_MADE_UP = 10_000_000
IDS, COORDINATES = "Ids of regions", "Coordinates"
A_FILE, HEXAGONS, SQUARES = "File", "Hexagons", "Squares"
KINDS_OF_REGIONS = (A_FILE, HEXAGONS, SQUARES)
"""Where the regions of areas come from."""
SIDES = ("west", "south", "east", "north")  # keys of the fields of the domain's bounds
OWN_BOUNDS = "Type the bounds"
GRID_SIDES = tuple(f"areas grid {side}" for side in ("west", "east", "south", "north"))  # keys of the box of hexagons or squares
_PATTERN_SIGNS = frozenset("*?[")


class Preset:
    """Stands for the value that a widget has before anybody chooses: the configuration says nothing about it."""


UNSET = Preset()
Values = dict[str, Any]
"""Values of widgets by their keys in the session state."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """What is typed for the publication.

    Attributes:
        words: the curator's texts by name.
        formats: formats of the files.
        folder: folder of the files, for the command line.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    formats: tuple[str, ...] = USUAL_FORMATS
    folder: str = USUAL_FOLDER

    @classmethod
    def typed(cls) -> Texts:
        """Return the texts that this session holds."""
        state = st.session_state
        return cls(
            words={name: str(state.get(f"publication {name}", "") or "") for name in TEXT_NAMES},
            formats=tuple(state.get("publication formats", USUAL_FORMATS)),
            folder=str(state.get("publication folder", USUAL_FOLDER)),
        )


def save_button(data: LoadedData, page_config: Any, funding: Funding | None) -> None:
    """Show a button that downloads the page's configuration; show none for a mechanism that may never be released.

    Args:
        data: data as loaded.
        page_config: the page's configuration.
        funding: the account that pays for draws, None in Teach.
    """
    mechanism = page_config.build()
    if not mechanism.private:
        return
    try:
        text = write_configuration(data, mechanism, page_config.budget(), funding)
    except DpvizError:  # the frame or the file cannot be named in a configuration
        return
    st.download_button(
        "Save this configuration",
        text,
        FILE_NAME,
        "application/toml",
        on_click="ignore",
        type="tertiary",
        help="For the command line: dpviz release release.toml makes a release like this one, from a new draw. Relative file names"
        " start from the folder of the configuration; empty texts under [publication] are yours to fill in. Curate opens it again.",
        key=f"save {type(page_config).__name__}",
    )


def write_configuration(data: LoadedData, mechanism: AnyMechanism, budget: Budget, funding: Funding | None) -> str:
    """Write the configuration as TOML.

    Args:
        data: data as loaded.
        mechanism: the mechanism with its settings.
        budget: the budget as chosen on the page.
        funding: account that gives the dataset's name and cap. None (in Teach) leaves out the cap, and for own files the unit.
    """
    account = None if funding is None else funding.account
    cap = None if account is None else account.terms.cap
    name = data.title if funding is None or not funding.name else funding.name
    unit = data.counts.unit if funding is not None or data.source.data_part.sample else None
    return to_toml(make_configuration(data.source, mechanism, budget, make_dataset(name, unit, cap), Texts.typed()))


def make_dataset(name: str, unit: str | None, cap: Budget | None) -> DatasetPart:
    """Make the table of the account; without a cap it has none."""
    parts = {} if cap is None else {f"cap_{part}": value for part, value in amount_of(cap).items()}
    return DatasetPart(name=name, unit=unit, **parts)


def make_configuration(source: Source, mechanism: AnyMechanism, budget: Budget, dataset: DatasetPart, texts: Texts) -> ReleaseConfig:
    """Make the configuration of a release from what a page holds.

    Args:
        source: files or sample, and the public frame.
        mechanism: the mechanism with its settings.
        budget: the budget as chosen; it is converted to the account's currency.
        dataset: the account.
        texts: what is typed for the publication.
    """
    return ReleaseConfig(
        data=source.data_part,
        domain=source.domain,
        regions=source.regions,
        destinations=source.destinations,
        mechanism=MechanismPart(key=mechanism.key, settings=mechanism.non_defaults()),
        budget=BudgetPart.of(convert_to_currency(mechanism, budget, dataset.cap())),
        dataset=dataset,
        publication=PublicationPart(**{**dict.fromkeys(TEXT_NAMES, ""), **texts.words, "name": texts.words.get("name") or dataset.name}),
        output=OutputPart(folder=texts.folder, formats=texts.formats),
    )


def parts_of_page(config: ReleaseConfig, page: PageConfig) -> dict[str, Any]:
    """Return the parts of a page's configuration that a configuration sets.

    Args:
        config: the configuration.
        page: the page's configuration, as it is now.

    Raises:
        DpvizError: the page cannot show a value.
    """
    mechanism, data = config.mechanism.build(config.family), config.data
    budget, is_area = config.budget.budget(), config.family is AREA_FAMILY
    takes_delta = not isinstance(budget, PureBudget) if mechanism.noise_by_budget else mechanism.needs_delta
    parts = {"mechanism": mechanism.key, "settings": mechanism.non_defaults()}
    parts |= _budget_parts(mechanism, budget, page, takes_delta=takes_delta)
    if mechanism.noise_by_budget:
        parts["noise"] = GAUSSIAN if takes_delta else LAPLACE
    parts["source"] = "sample" if data.sample is not None else _source_of_files(data)
    if data.sample is not None:
        parts["sample"] = data.sample
    if is_area:
        return parts | {"level": None, "asked": ()}
    if not data.is_points:
        return parts | {"beside": ALONE, "level": None, "region": None}
    parts["study_area"] = ON_LAND if config.domain is not None and config.domain.study_area == LAND else EVERYWHERE
    return parts | {"order": _order_of(config), "zoom": None} | ({"size": _size_of(data)} if data.sample is not None else {})


def _budget_parts(mechanism: AnyMechanism, budget: Budget, page: PageConfig, *, takes_delta: bool) -> dict[str, Any]:
    """Return epsilon, delta and rho of a page."""
    rho, delta = None, page.delta
    if isinstance(budget, ZcdpBudget):
        if not takes_delta:
            raise SettingError(f"{mechanism.title} spends ε alone: give epsilon under [budget] in place of rho.")
        rho = read_amount(budget.rho, "ρ", SMALLEST_RHO, LARGEST_RHO)
        implied = round(float(budget.to_approx(delta, mechanism.conversion).epsilon), 6)
        epsilon = Fraction(repr(min(max(implied, SMALLEST_EPSILON), LARGEST_EPSILON)))  # shown only; it is rho that is spent
    else:
        if takes_delta != isinstance(budget, ApproxBudget):
            needs = "needs a delta: give one" if takes_delta else "spends ε alone: leave delta out"
            raise SettingError(f"{mechanism.title} {needs} under [budget].")
        epsilon = budget.epsilon
    if isinstance(budget, ApproxBudget):
        delta = read_amount(budget.delta, "On this page, δ", SMALLEST_DELTA, LARGEST_DELTA)
    return {"epsilon": read_amount(epsilon, "On this page, ε", SMALLEST_EPSILON, LARGEST_EPSILON), "delta": delta, "rho": rho}


def _source_of_files(data: DataPart) -> str:
    """Return whether the page asks for an upload or for a path."""
    if len(data.files) > 1:
        raise SettingError(
            "The page takes one file, one pattern or one folder, and this configuration lists several files: put them into one folder,"
            " or run it with the command line."
        )
    path = data.files[0]
    plain = not _PATTERN_SIGNS & set(path) and not PurePath(path).is_absolute() and PurePath(path).suffix != ""
    return "upload" if plain else "path"


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


def values_at_once(config: ReleaseConfig) -> Values:
    """Return the values of widgets that need no file: texts of the publication, domain, CRS, engine.

    Raises:
        SettingError: the page cannot show a value.
    """
    data, texts = config.data, config.publication
    if unknown := [name for name in config.output.formats if name not in FORMATS]:
        raise SettingError(f"[output] formats has {unknown[0][:40]!r}; there are {', '.join(FORMATS)}.")
    values: Values = {f"publication {name}": getattr(texts, name) for name in TEXT_NAMES}
    values |= {"publication formats": list(config.output.formats), "publication folder": config.output.folder}
    if data.sample is not None:
        return values
    prefix = _prefix_of(config)
    values |= {f"{prefix}engine": data.engine, f"{prefix}crs": data.crs or ""}
    if (part := config.domain) is not None:
        values |= {"frame": OWN_BOUNDS, "place": "", "domain crs": part.crs, "only inside": part.study_area not in (None, LAND)}
        values |= dict(zip(SIDES, part.bounds, strict=True))
    if config.regions is not None:
        values |= _regions_values(config)
    return values if data.is_points else values | {"trips apart": config.destinations is not None}


def _regions_values(config: ReleaseConfig) -> Values:
    """Return the values of the widgets of regions without a file of ids.

    Raises:
        SettingError: the page takes only a file of regions.
    """
    parts = [part for part in (config.regions, config.destinations) if part is not None]
    takes_grids = config.family is AREA_FAMILY
    if any(part.polygons or (part.file is None and not takes_grids) for part in parts):
        others = ", H3 cells or squares" if takes_grids else ""
        raise SettingError(f"The page takes a file of regions with ids{others}: run this configuration with the command line.")
    if not takes_grids:
        return {}
    part = parts[0]
    values: Values = {"areas regions kind": HEXAGONS if part.h3 else SQUARES if part.squares else A_FILE}
    if part.file is not None:
        return values
    west, south, east, north = part.area or part.bounds or (UNSET,) * len(SIDES)
    values |= dict(zip(GRID_SIDES, (west, east, south, north), strict=True))
    values |= {"areas grid place": "", "areas outline uploaded": None}
    levels = ", ".join(map(str, part.h3 or part.squares))
    return values | (
        {"areas h3": levels, "areas outline crs": part.crs or ""} if part.h3 else {"areas squares": levels, "areas grid crs": part.crs}
    )


def values_of_file(config: ReleaseConfig, digest: str, mode: str) -> Values:
    """Return the values of the widgets of a file of points or trips: its columns, and whom the release protects.

    Args:
        config: the configuration, with files.
        digest: identifies the file in the keys of widgets.
        mode: Teach or Curate.
    """
    data, prefix = config.data, _prefix_of(config)
    columns = _point_columns(data, digest) if data.is_points else _trip_columns(data, digest)
    if config.family is AREA_FAMILY:
        columns |= {
            f"areas ends {digest}": COORDINATES if data.region is None else IDS,
            f"areas column region {digest}": data.region or UNSET,
            f"areas column count {digest}": _count_value(data),
        }
    return columns | _unit_values(config, f"{prefix}{mode} {digest}")


def written_values(data: DataPart, name: str, key: str) -> Values:
    """Return the values of the widgets that say how a text table is written, for a file's name and the key of the question."""
    kind, written = format_of(name), data.text_format()
    if kind not in SEPARATORS:
        return {}
    return {f"{question} {key}": value for question, value in {**text_format_values(written, kind), "text format": True}.items()}


def text_format_values(written: TextFormat, kind: str) -> dict[str, str]:
    """Return the answers to the questions, by their names, that a declared format of CSV or TSV files stands for."""
    marks = {"decimal": written.decimal or NO_MARK, "thousands": written.thousands or NO_MARK}
    return {"separator": written.separator_of(kind), **marks, "encoding": written.encoding}


def _point_columns(data: DataPart, digest: str) -> Values:
    """Return the columns of points; one that is left out is found by its usual name, as the command line finds it."""
    without_text = UNSET if data.x is None and data.y is None else NONE
    return {
        f"centroids {digest}": data.centroids,
        f"column geometry {digest}": data.geometry or without_text,
        f"column x {digest}": data.x or UNSET,
        f"column y {digest}": data.y or UNSET,
        f"column count {digest}": _count_value(data),
    }


def _count_value(data: DataPart) -> str | None:
    """Return the answer to how many records a row stands for; None where the configuration does not say it."""
    return NO_COUNT if says_none(data.count) else data.count


def _prefix_of(config: ReleaseConfig) -> str:
    """Return how the keys of a page's widgets begin."""
    if config.family is AREA_FAMILY:
        return "areas "
    return "" if config.data.is_points else "trips "


def _trip_columns(data: DataPart, digest: str) -> Values:
    values: Values = {f"trips ends {digest}": COORDINATES if isinstance(data.origin, tuple) else IDS}
    for role, end in (("origin", data.origin), ("destination", data.destination)):
        pair = end if isinstance(end, tuple) else (UNSET, UNSET)
        values |= {f"trips column {role} {axis} {digest}": column for axis, column in zip("xy", pair, strict=True)}
        values[f"trips column {role} {digest}"] = end if isinstance(end, str) else UNSET
    return values | {f"trips column count {digest}": _count_value(data) or UNSET}


def _unit_values(config: ReleaseConfig, key: str) -> Values:
    """Return the answers to the question whom the release protects; none where the configuration does not say it."""
    data = config.data
    if data.person is not None:
        unit: Any = PERSON
    elif not data.is_points and data.contributions is not None:
        unit = VOUCHED
    else:
        unit = UNSET if config.dataset.unit is None else EVERY_ROW
    bound = UNSET if unit in (UNSET, EVERY_ROW) or data.contributions is None else data.contributions
    return {
        f"unit {key}": unit,
        f"person {key}": data.person or UNSET,
        f"contributions {key}": bound,
        f"distinct {key}": data.distinct,
        f"exactly {key}": data.exactly,
    }


def values_of_regions(part: RegionsPart, role: str, digest: str) -> Values:
    """Return the values of the widgets of a file of regions; `role` is "regions", "ends" or "areas regions"."""
    levels: Any = list(part.levels) or UNSET
    values = {f"{role} levels {digest}": levels, f"{role} prefixes {digest}": ", ".join(map(str, part.prefixes))}
    return values | {f"{role} denominator {digest}": part.denominator or UNSET}


def values_of_account(config: ReleaseConfig, digest: str) -> Values:
    """Return the values of the widgets of the account of data; `digest` identifies them. Caps that are no decimals are kept exactly."""
    cap = config.dataset.cap()
    amounts = {} if cap is None else amount_of(cap)
    values: Values = {f"dataset name {digest}": config.dataset.name}
    values[f"dataset currency {digest}"] = UNSET if cap is None else CURRENCIES["rho" in amounts]
    for name, symbol in (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ")):
        amount = amounts.get(name, Fraction(0) if name == "delta" and cap is not None else None)
        values[f"dataset cap {symbol} {digest}"] = UNSET if amount is None else float(amount)
        values[f"dataset cap {symbol} exactly {digest}"] = "" if amount is None else str(amount)
    return values


def check_limits(config: ReleaseConfig) -> None:
    """Refuse numbers that the page's fields would not take.

    Raises:
        SettingError: the bound per person, or the cap, is out of the page's range.
    """
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


def kept_of_data(data: DataPart, *, asks_for_crs: bool) -> dict[str, Any]:
    """Return the fields of [data] that a page shows nowhere; they are written again when the page is saved.

    Args:
        data: the table of the configuration.
        asks_for_crs: whether the page asks for the CRS; if not, the file states it, and the configuration may repeat it.
    """
    names = ["may_be_empty", *([] if asks_for_crs else ["crs"])]
    kept = {name: getattr(data, name) for name in names if getattr(data, name)}
    if data.is_points and data.person is None and data.contributions is not None:
        kept["contributions"] = data.contributions
    return kept | ({"engine": data.engine} if data.engine != AUTO else {})


def describe_kept(config: ReleaseConfig) -> str:
    """Say what of a configuration the page shows nowhere and writes again when it is saved; "" if it shows all."""
    table, by_path = TOML.write(config.data), config.data.sample is None and _source_of_files(config.data) == "path"
    hidden = [f"[data] {name}" for name in ("engine", "may_be_empty") if name in table and not (name == "engine" and by_path)]
    for title, part in (("regions", config.regions), ("destinations", config.destinations)):
        hidden += [f"[{title}] {name}" for name in ("names", "crs") if part is not None and part.file and getattr(part, name)]
    hidden += ["[output] folder"] if config.output.folder != USUAL_FOLDER else []
    return f"Not shown here, but written again when you save: {', '.join(hidden)}." if hidden else ""
