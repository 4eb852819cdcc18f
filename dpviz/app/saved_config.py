"""The button *Save this configuration*: the TOML file with which the command line makes the same kind of release."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.ledger import Funding, LoadedData, convert_to_currency
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import amount_of
from dpviz.privacy.budget import Budget
from dpviz.publishing.config import BudgetPart, DatasetPart, MechanismPart, OutputPart, PublicationPart, ReleaseConfig, to_toml
from dpviz.release.tables import FORMATS

FILE_NAME = "release.toml"
TEXTS = ("name", "curator", "description", "region", "intended_use")


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
        " start from the folder of the configuration; empty texts under [publication] are yours to fill in.",
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
    parts = {} if cap is None else {f"cap_{name}": value for name, value in amount_of(cap).items()}
    dataset = data.title if funding is None or not funding.name else funding.name
    typed = {name: str(st.session_state.get(f"publication {name}", "") or "") for name in TEXTS}
    config = ReleaseConfig(
        data=data.source.data_part,
        domain=data.source.domain,
        regions=data.source.regions,
        destinations=data.source.destinations,
        mechanism=MechanismPart(key=mechanism.key, settings=mechanism.non_defaults()),
        budget=BudgetPart.of(convert_to_currency(mechanism, budget, cap)),
        dataset=DatasetPart(name=dataset, unit=data.private.unit if funding is not None or data.source.data_part.sample else None, **parts),
        publication=PublicationPart(**{**typed, "name": typed["name"] or dataset}),
        output=OutputPart(folder="release", formats=tuple(st.session_state.get("publication formats", FORMATS))),
    )
    return to_toml(config)
