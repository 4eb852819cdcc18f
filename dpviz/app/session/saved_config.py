"""*Save this configuration*: the TOML file with which the command line makes the release that a page shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from dpviz.app.session.ledger import Funding, LoadedData
from dpviz.app.state.draft import Draft
from dpviz.app.state.parts import Account
from dpviz.app.state.toml import source_of
from dpviz.app.state.values import PATH, USUAL_FOLDER
from dpviz.errors import DpvizError
from dpviz.privacy.accounts import amount_of
from dpviz.publishing.config import ReleaseConfig, to_toml
from dpviz.publishing.toml_tables import TOML

FILE_NAME = "release.toml"


def save_button(data: LoadedData, draft: Draft, funding: Funding | None) -> None:
    """Show a button that downloads the page's configuration; show none for a mechanism that may never be released.

    Args:
        data: data as loaded.
        draft: what is chosen on the page.
        funding: the account that pays for draws, None in Teach.
    """
    if not draft.build().private:
        return
    try:
        text = write_configuration(data, draft, funding)
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


def write_configuration(data: LoadedData, draft: Draft, funding: Funding | None) -> str:
    """Write the configuration as TOML.

    Args:
        data: data as loaded.
        draft: what is chosen and typed.
        funding: account that gives the dataset's name and cap. None (in Teach) leaves out the cap.

    Raises:
        DpvizError: the frame or the file cannot be named in a configuration, or the mechanism may never be released.
    """
    account = None if funding is None else funding.account
    amounts: dict[str, Any] = {} if account is None else dict(amount_of(account.terms.cap))
    name = data.title if funding is None or not funding.name else funding.name
    paying = replace(draft, account=Account(name=name, counts_rho="rho" in amounts, **amounts))
    return to_toml(paying.to_config(data.source.inputs))


def describe_kept(config: ReleaseConfig) -> str:
    """Say what of a configuration the page shows nowhere and writes again when it is saved; "" if it shows all."""
    table, by_path = TOML.write(config.data), config.data.sample is None and source_of(config.data) == PATH
    hidden = [f"[data] {name}" for name in ("engine", "may_be_empty") if name in table and not (name == "engine" and by_path)]
    for title, part in (("regions", config.regions), ("destinations", config.destinations)):
        hidden += [f"[{title}] {name}" for name in ("names", "crs") if part is not None and part.file and getattr(part, name)]
    hidden += [f"[categories] {name}" for name in ("coarser", "names") if getattr(config.categories, name, None)]
    hidden += ["[output] folder"] if config.output.folder != USUAL_FOLDER else []
    return f"Not shown here, but written again when you save: {', '.join(hidden)}." if hidden else ""
