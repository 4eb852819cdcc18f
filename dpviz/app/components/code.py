"""The popover *Code*: the Python and the configuration that make the release, the study or the lesson that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from dpviz.app.server.class_samples import name_files
from dpviz.app.session.ledger import Funding, LoadedData
from dpviz.app.session.saved_config import write_configuration
from dpviz.app.state.draft import Draft
from dpviz.errors import DpvizError
from dpviz.publishing.code import CodeRun, write_python

PYTHON, CONFIGURATION = "Python", "Configuration"
NO_CONFIGURATION = "There is no configuration for this: the command line does not make it."
OF_RELEASE = "dpviz release release.toml: such a release with new noise, paid for in the ledger"
OF_STUDY = "dpviz compare study.toml: the same study"


def show_code(python: str, toml: str | None, *, note: str = OF_RELEASE) -> None:
    """Show the popover with the Python and the configuration, each with a button that copies it.

    Args:
        python: the Python.
        toml: the configuration; None if the command line cannot make what is shown.
        note: a comment above the configuration: which command reads it, and what that makes.
    """
    with st.popover("Code", help="The Python that makes what is shown, and the configuration for the command line, to copy."):
        in_python, in_toml = st.tabs([PYTHON, CONFIGURATION])
        in_python.code(python, language="python")
        if toml is None:
            in_toml.caption(NO_CONFIGURATION)
        else:
            in_toml.code(f"# {note}\n{toml}", language="toml")


def show_release_code(data: LoadedData, draft: Draft, runs: Sequence[CodeRun], funding: Funding | None = None) -> None:
    """Show the popover with the code of one release or more; the configuration is that of the first, since a configuration makes one.

    Args:
        data: data as loaded.
        draft: what the first release was made by.
        runs: the releases, the most important first.
        funding: the account that pays, None in Teach.
    """
    source = data.source
    inputs = source.inputs
    named = name_files(inputs)
    unit = None if funding is None else data.counts.unit
    first, toml = runs[0], None
    if first.mechanism.private and named is inputs:  # else it may never be published, or the command line knows no such sample
        with suppress(DpvizError):  # what cannot be named in a configuration has none
            toml = write_configuration(data, draft, funding)
    show_code(write_python(named, runs, unit=unit, bad_rows=source.bad_rows), toml)
