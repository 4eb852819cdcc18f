"""A page as a configuration, and a configuration as a page: pure functions in both directions, and *Save this configuration*.

`write_configuration` writes the TOML file with which the command line makes the release that a page shows. `parts_of_page` and the other
functions that take a `ReleaseConfig` say what a page shows for it: parts of the page's configuration, and values of widgets by their keys
in the session state. `opened_config` uses them. What a page cannot show is refused with a sentence, or kept for the next save.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import streamlit as st

from dpviz.app.session.ledger import Funding, LoadedData, Source
from dpviz.app.state.changes import Change
from dpviz.app.state.draft import Draft
from dpviz.app.state.page import Page
from dpviz.app.state.run import convert_to_currency
from dpviz.app.state.toml import page_of, source_of
from dpviz.app.state.values import (
    A_FILE,
    CURRENCIES,
    EVERY_ROW,
    EVERYWHERE,
    HEXAGONS,
    IN_A_FILE,
    PATH,
    PERSON,
    SAMPLE,
    SQUARES,
    USUAL_FOLDER,
    VOUCHED,
)
from dpviz.data.counting.engines import AUTO
from dpviz.data.reading.outline import LAND
from dpviz.data.reading.safety import format_of
from dpviz.data.reading.text_format import TextFormat
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.data.roles import NO_COUNT, says_none
from dpviz.errors import DpvizError
from dpviz.families import AREA_FAMILY, POINT_FAMILY
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import amount_of
from dpviz.privacy.budget import Budget
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
from dpviz.release.tables import USUAL_FORMATS

FILE_NAME = "release.toml"
NONE = "(none)"
NO_MARK = ""  # stands for a mark of numbers that is not declared
IDS, COORDINATES = "Ids of regions", "Coordinates"
SIDES = ("west", "south", "east", "north")  # keys of the fields of the domain's bounds
OWN_BOUNDS = "Type the bounds"
GRID_SIDES = tuple(f"areas grid {side}" for side in ("west", "east", "south", "north"))  # keys of the box of hexagons or squares


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


def save_button(data: LoadedData, draft: Draft, funding: Funding | None) -> None:
    """Show a button that downloads the page's configuration; show none for a mechanism that may never be released.

    Args:
        data: data as loaded.
        draft: what is chosen on the page.
        funding: the account that pays for draws, None in Teach.
    """
    mechanism = draft.build()
    if not mechanism.private:
        return
    try:
        text = write_configuration(data, mechanism, draft.budget(), funding)
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
        key=f"save {draft.family}",
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


def change_by(config: ReleaseConfig, page: Page) -> Change:
    """Return the change of a page that a configuration brings: what it says in widgets of their own is in `values_at_once`.

    Args:
        config: the configuration.
        page: the page as it is.

    Raises:
        DpvizError: the page cannot show a value.
    """
    opened = page_of(config, page).draft
    parts: dict[str, Any] = {name: getattr(opened, name) for name in ("source", "runs", "beside")}
    parts |= {"sample": opened.sample} if opened.source == SAMPLE else {}
    if config.family is POINT_FAMILY:
        area = EVERYWHERE if opened.study_area == IN_A_FILE else opened.study_area  # Curate has a switch for the polygons of a file
        parts |= {"study_area": area, "order": opened.order} | ({"size": opened.size} if opened.source == SAMPLE else {})
    return Change(draft=parts, view={"level": None, "asked": (), "region": None})


def values_at_once(config: ReleaseConfig) -> Values:
    """Return the values of widgets that need no file: texts of the publication, domain, CRS, engine."""
    data, texts = config.data, config.publication
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
    """Return the values of the widgets of the regions of areas; none for trips."""
    part = config.regions
    if part is None or config.family is not AREA_FAMILY:
        return {}
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
    table, by_path = TOML.write(config.data), config.data.sample is None and source_of(config.data) == PATH
    hidden = [f"[data] {name}" for name in ("engine", "may_be_empty") if name in table and not (name == "engine" and by_path)]
    for title, part in (("regions", config.regions), ("destinations", config.destinations)):
        hidden += [f"[{title}] {name}" for name in ("names", "crs") if part is not None and part.file and getattr(part, name)]
    hidden += ["[output] folder"] if config.output.folder != USUAL_FOLDER else []
    return f"Not shown here, but written again when you save: {', '.join(hidden)}." if hidden else ""
