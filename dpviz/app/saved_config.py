"""The button *Save this configuration*: the TOML file with which the command line makes the same kind of release."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.ledger import Funding, LoadedData, in_currency
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
    mechanism = page_config.built()
    if not mechanism.private:
        return
    try:
        text = configuration(data, mechanism, page_config.budget(), funding)
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
        " count from the folder of the configuration; empty texts under [publication] are yours to fill in.",
        key=f"save {type(page_config).__name__}",
    )


def configuration(data: LoadedData, mechanism: AnyMechanism, budget: Budget, funding: Funding | None) -> str:
    """Return the configuration as TOML.

    Args:
        data: data as loaded.
        mechanism: the mechanism with its settings.
        budget: the budget as chosen on the page.
        funding: account that gives the dataset's name and cap. None (in Teach) leaves gaps to fill in: the cap, and for own files the unit.
    """
    account = None if funding is None else funding.account
    cap = None if account is None else account.terms.cap
    parts = {} if cap is None else {f"cap_{name}": value for name, value in amount_of(cap).items()}
    name = data.title if funding is None or not funding.name else funding.name
    chosen, defaults = mechanism.chosen(), type(mechanism)().chosen()
    typed = {text: str(st.session_state.get(f"publication {text}", "") or "") for text in TEXTS}
    config = ReleaseConfig(
        data=data.source.data,
        domain=data.source.domain,
        regions=data.source.regions,
        destinations=data.source.destinations,
        mechanism=MechanismPart(key=mechanism.key, settings={key: value for key, value in chosen.items() if value != defaults[key]}),
        budget=BudgetPart.of(in_currency(mechanism, budget, cap)),
        dataset=DatasetPart(name=name, unit=data.private.unit if funding is not None or data.source.data.sample else None, **parts),
        publication=PublicationPart(**{**typed, "name": typed["name"] or name}),
        output=OutputPart(folder="release", formats=tuple(st.session_state.get("publication formats", FORMATS))),
    )
    return to_toml(config)
