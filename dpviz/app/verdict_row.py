"""The verdict on a release at the top of a page."""

from __future__ import annotations

import streamlit as st

from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release
from dpviz.release.verdict import verdict
from dpviz.view.escape import markdown


def verdict_row(release: Release | FlowRelease, title: str = "") -> None:
    """Say which levels are usable; nothing of references, which have no noise that could be judged.

    Args:
        release: that is shown.
        title: of its mechanism, where several releases stand side by side.
    """
    if not release.receipt.private:
        return
    found = verdict(release)
    show_verdict(found.headline, found.detail, found.rule, title)


def show_verdict(headline: str, detail: str, rule: str, title: str = "") -> None:
    """The sentences of a verdict, the rule behind a question mark."""
    name = f"{markdown(title)}: " if title else ""
    st.markdown(f"{name}**{markdown(headline)}** {markdown(detail)}", help=markdown(rule))
