"""*Open a configuration* in Curate: a TOML file of the command line sets the page; its data are asked for by name, never opened by a path.

What needs no file is set at once, all or nothing. What belongs to a file (columns, unit, how it is written) or to the counted data (the
account) is set once the person has chosen that file, and only the first time: later changes stay.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import streamlit as st

from dpviz.app.components.fields import REFUSED
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session import saved_config
from dpviz.app.session.ledger import LoadedData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.saved_config import UNSET, Values
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.app.state.toml import file_name, read_for_page
from dpviz.app.state.values import CURATE
from dpviz.errors import DpvizError
from dpviz.families import AREA_FAMILY, family_of
from dpviz.publishing.config import DataPart, RegionsPart, ReleaseConfig, from_tables
from dpviz.publishing.toml_tables import LARGEST_FILE
from dpviz.view.escape import markdown

POINTS, TRIPS, AREAS = "points", "trips", "areas"  # kinds of data; [data] names the points of areas as points
_FILLED, _PROBLEM, _TURN = "opened filled in", "opened problem", "opened turn"
_OF_AREAS = "areas regions"  # role of the regions of areas, as "regions" and "ends" are of trips
_SLOTS = {POINTS: "uploaded", TRIPS: "trips uploaded", AREAS: "areas uploaded"}
OUTLINE = "areas outline"  # role of the polygons that H3 cells of areas cover
_SLOTS |= {role: f"{role} uploaded" for role in ("regions", "ends", _OF_AREAS, OUTLINE)}


def show_uploader(page: FamilyState) -> None:
    """Show the field that opens a configuration, why the last one was refused, and what the page does not show of the last one."""
    refuse_in_class("configurations to open")
    kind, turn = _kind_of(page), st.session_state.get(_TURN, 0)
    key = f"open {kind} {turn}"
    with st.popover("Open a configuration", width="stretch", key=f"opener {kind} {turn}"):  # closed again by its new key
        st.file_uploader(
            "Configuration of a release (TOML)",
            key=key,
            max_upload_size=1,
            on_change=carry_out(lambda: _receive(page, key)),
            help="A file of *Save this configuration* or of the command line. It sets this page; the data are asked for by name.",
        )
    if problem := st.session_state.get(f"{_PROBLEM} {kind}"):
        show_error(f"{problem} The page is as it was.")
    if (config := opened(kind)) is not None and (hidden := saved_config.describe_kept(config)):
        st.caption(markdown(hidden))


def opened(kind: str) -> ReleaseConfig | None:
    """Return the configuration that was opened last on the page of a kind; None if there is none."""
    text, known = st.session_state.get(f"opened {kind}"), f"opened tables {kind}"
    if not text:
        return None
    if st.session_state.get(known, (None,))[0] != text:
        try:
            st.session_state[known] = text, from_tables(tomllib.loads(str(text)), asks_unit=True)
        except (DpvizError, ValueError):  # a draft of another version
            return None
    return st.session_state[known][1]  # type: ignore[no-any-return]


def _kind_of(page: FamilyState) -> str:
    return str(next(iter(page.families)).name)


def _receive(page: FamilyState, key: str) -> None:
    """Open the file that was chosen, or keep why it is refused; the field is empty again afterwards."""
    file = st.session_state[key]
    if file is None:
        return
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    problem = f"{_PROBLEM} {_kind_of(page)}"
    st.session_state.pop(problem, None)
    try:
        open_text(page, file.read(LARGEST_FILE + 1))
    except DpvizError as error:
        st.session_state[problem] = str(error)


def open_text(page: FamilyState, body: bytes) -> None:
    """Set a page by a configuration, all or nothing.

    Args:
        page: state of the page.
        body: the TOML.

    Raises:
        DpvizError: it is no configuration of a release for this page, or says what the page cannot show; nothing has changed.
    """
    refuse_in_class("configurations to open")
    kind = _kind_of(page)
    config = read_for_page(body, kind)
    names = _names_of_files(config)
    change, values = saved_config.change_by(config, page.page), saved_config.values_at_once(config)
    _set(values)
    page.apply(change)
    st.session_state.update({f"opened {kind}": body.decode("utf-8"), _FILLED: [], REFUSED: {}})
    if names:
        st.session_state["draft files"] = {**st.session_state.get("draft files", {}), **names}


def _names_of_files(config: ReleaseConfig) -> dict[str, str]:
    """Return the names of the files that are asked for, by the slots that hold them."""
    if config.data.sample is not None:
        return {}
    files, role_of_regions = {config.family.name: config.data.files[0]}, _OF_AREAS if config.family is AREA_FAMILY else "regions"
    parts = ((role_of_regions, config.regions), ("ends", config.destinations))
    files |= {role if part.file else OUTLINE: part.path for role, part in parts if part is not None and part.path is not None}
    return {_SLOTS[role]: file_name(path) for role, path in files.items()}


def _set(values: Values) -> None:
    """Set widgets; those of which nothing is said go back to how they begin."""
    for key, value in values.items():
        if value is UNSET:
            st.session_state.pop(key, None)
        else:
            st.session_state[key] = value


def _fill_in(name: str, values: Values) -> None:
    """Set the widgets of a file or an account, the first time since the configuration was opened."""
    filled = st.session_state.get(_FILLED, [])
    if name not in filled:
        _set(values)
        st.session_state[_FILLED] = [*filled, name]


def fill_in_upload(kind: str, name: str, digest: str, text_key: str) -> DataPart | None:
    """Set the widgets of an uploaded file, if it has the name that the opened configuration asks for.

    Args:
        kind: "points", "trips" or "areas".
        name: of the file.
        digest: identifies the file in the keys of widgets.
        text_key: identifies it in the keys of the question how it is written.

    Returns:
        The configuration's [data], for `with_kept`; None if there is none for this file.
    """
    config = opened(kind)
    if config is None or config.data.sample is not None:
        return None
    wanted = file_name(config.data.files[0])
    if wanted != name:
        st.caption(f":orange[The opened configuration is for {markdown(wanted)}: columns and unit are filled in once you choose it.]")
        return None
    written = saved_config.written_values(config.data, name, text_key)
    _fill_in(f"{kind} {digest}", written | saved_config.values_of_file(config, digest, CURATE))
    return config.data


def fill_in_format(kind: str, path: str, first: str) -> None:
    """Say how files by path are written, and whether copies count, if their path is that of the opened configuration.

    Args:
        kind: "points", "trips" or "areas".
        path: of the files.
        first: path of the first of them, by which the question how they are written is known.
    """
    if (config := _opened_for(kind, path)) is not None:
        _fill_in(
            f"{kind} written {first}",
            saved_config.written_values(config.data, PurePath(first).name, first) | {f"copies {path}": config.data.copies},
        )


def fill_in_path(kind: str, path: str, digest: str) -> DataPart | None:
    """Set the widgets of files by path, if their path is that of the opened configuration; return its table [data] then."""
    config = _opened_for(kind, path)
    if config is None:
        return None
    _fill_in(f"{kind} {digest}", saved_config.values_of_file(config, digest, CURATE))
    return config.data


def _opened_for(kind: str, path: str) -> ReleaseConfig | None:
    """Return the opened configuration, if it names these files: by their whole path, or by its end, since folders may differ."""
    config = opened(kind)
    if config is None or config.data.sample is not None:
        return None
    named, typed = PurePath(config.data.files[0]), PurePath(path)
    same = named == typed if named.is_absolute() else named.parts == typed.parts[-len(named.parts) :]
    return config if same else None


def offer_path(kind: str, key: str) -> None:
    """Offer the path of the opened configuration, which is read only once it is chosen or typed."""
    config = opened(kind)
    if config is None or config.data.sample is not None or st.session_state.get(key):
        return
    path = config.data.files[0]
    is_whole = PurePath(path).is_absolute()
    st.caption(f"The opened configuration names {markdown(path)}: {'press to read it' if is_whole else 'type where it is'}.")
    if is_whole:
        st.button(f"Read {markdown(path)}", key=f"offered {key}", on_click=carry_out(lambda: st.session_state.update({key: path})))


def fill_in_regions(role: str, name: str, digest: str) -> RegionsPart | None:
    """Set the widgets of a file of regions, if it has the name that the opened configuration asks for; return its table then.

    Args:
        role: "regions", "ends" or "areas regions".
        name: of the file.
        digest: identifies the file in the keys of widgets.
    """
    part = opened_regions(role)
    if part is None or part.file is None:
        return None
    if (wanted := file_name(part.file)) != name:
        st.caption(f":orange[The opened configuration is for {markdown(wanted)}: its levels are filled in once you choose it.]")
        return None
    _fill_in(f"{role} {digest}", saved_config.values_of_regions(part, role, digest))
    return part


def with_kept_regions(part: RegionsPart, role: str) -> RegionsPart:
    """Return the table of a file of regions with the path, the names and the CRS of the opened configuration, if it is for this file."""
    opened_part = opened_regions(role)
    if opened_part is None or opened_part.file is None or file_name(opened_part.file) != part.file:
        return part
    return replace(part, file=opened_part.file, names=opened_part.names, crs=opened_part.crs)


def opened_regions(role: str) -> RegionsPart | None:
    """Return the regions of the opened configuration; None if there is none. The roles are those of `fill_in_regions`."""
    config = opened(AREAS if role == _OF_AREAS else TRIPS)
    return None if config is None else config.destinations if role == "ends" else config.regions


def fill_in_account(data: LoadedData) -> None:
    """Set name and cap of the account of counted data, if they are those of the opened configuration."""
    part = data.source.data_part
    family = family_of(data.counts)
    config = None if family is None else opened(family.name)
    if config is not None and (config.data.sample, config.data.files) == (part.sample, part.files):
        _fill_in(f"account {data.digest}", saved_config.values_of_account(config, data.digest))


def with_kept(fields: dict[str, Any], part: DataPart | None, *, asks_for_crs: bool = True) -> DataPart:
    """Make the table of the data, with the path and the fields of the opened configuration that the page does not show.

    Args:
        fields: what the page shows.
        part: the table of the opened configuration, if it is for these files.
        asks_for_crs: whether the page asks for the CRS of the coordinates.
    """
    if part is None:
        return DataPart(**fields)
    named = {name: getattr(part, name) for name in (POINTS, TRIPS) if getattr(part, name) is not None}
    return DataPart(**{**saved_config.kept_of_data(part, asks_for_crs=asks_for_crs), **fields, **named})
