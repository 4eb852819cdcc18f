"""Publishing from the app, and what is shown of it afterwards: downloads, manifest and a summary; nothing but what was published."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.app.ledger import Kept, Loaded, Till
from dpviz.app.release_parts import checked_words
from dpviz.app.verdict_row import show_verdict
from dpviz.errors import DpvizError
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import publish
from dpviz.release.files import MANIFEST, zipped
from dpviz.release.manifest import stated_amount
from dpviz.view.escape import markdown

_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was published. PUBLIC.

    Attributes:
        manifest: whole, with the list of files.
        archive: the zip archive, made once.
        report: the report as a page of its own.
    """

    manifest: dict[str, Any]
    archive: bytes
    report: bytes


def publish_new(order: publish.Order, data: Loaded, said: dict[str, Any], place: Till) -> Outcome:
    """A new draw: the words are checked, the ledger accepts it, it is drawn and kept, then written; with no call into Streamlit.

    Raises:
        DpvizError: the text says whether something is spent; a draw that is paid for can be published later.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:
        words = _words(said, folder)
        words.check()
        made = place.keep(publish.draw(order, Ledger(), words=words), data, order.mechanism)
        try:
            return _written(made, words, place)
        except DpvizError as error:
            again = "Choose it under 'A draw that is already paid for' to publish it; do not draw again."
            if made.paid.kept is not None:
                again += f" Should this session be lost, dpviz release CONFIG --paid {made.paid.entry} publishes it."
            raise type(error)(f"{error} The draw is paid for and kept. {again}") from None


def publish_kept(made: Kept, said: dict[str, Any], place: Till) -> Outcome:
    """A draw that is already paid for; spends nothing.

    Raises:
        DpvizError: the words, the ledger or the disk; the draw can be published later.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:
        return _written(made, _words(said, folder), place)


def _words(said: dict[str, Any], folder: str) -> publish.Words:
    return publish.Words(folder=Path(folder) / "release", **checked_words(said))


def _written(made: Kept, words: publish.Words, place: Till) -> Outcome:
    done = publish.write(made.paid, words, Ledger())
    place.published.add(made.paid.entry)
    whole = json.loads((done.folder / MANIFEST).read_bytes())
    return Outcome(manifest=whole, archive=zipped(done.folder), report=(done.folder / publish.REPORT).read_bytes())


def show_outcome(outcome: Outcome) -> None:
    """Downloads, and in short what they say."""
    manifest = outcome.manifest
    name = f"dpviz-{manifest['identity']['release_id'][:8]}"
    st.success(
        f"Published: {markdown(manifest['data_product']['name'])}. Download it now: a reload of this page forgets it, the ledger does not."
    )
    show_verdict(*(manifest["verdict"][part] for part in ("headline", "detail", "rule")))
    zip_name, report_name = f"{name}.zip", f"{name}-report.html"
    with st.container(horizontal=True):
        st.download_button(
            "Download the release (zip)", lambda: outcome.archive, zip_name, "application/zip", on_click="ignore", type="primary", key="zip"
        )
        st.download_button("Download the report", lambda: outcome.report, report_name, "text/html", on_click="ignore", key="report")
        st.button("Publish something else", on_click=_put_away)
    left, right = st.columns([2, 3], gap="large")
    with left:
        _summary(manifest)
    with right:
        _tables(manifest, len(outcome.archive))
    with st.expander("Manifest"):
        st.json(manifest)


def _put_away() -> None:
    st.session_state.pop("outcome", None)


def _summary(manifest: dict[str, Any]) -> None:
    """The report in a few lines."""
    privacy, dataset, product = manifest["privacy"], manifest["dataset"], manifest["data_product"]
    lines = {
        "Curator": product["curator"],
        "Description": product["description"],
        "Region": product["region"],
        "Intended use": product["intended_use"],
        "Mechanism": manifest["contents"]["mechanism"],
        "Whom it protects": privacy["unit_definition"] or "",
        "Protects": f"one {privacy['unit']} ({privacy['neighbouring_relation']}), {privacy['variant']}",
        "Budget": ", ".join(f"{sign} {privacy[part]['decimal']:g}" for part, sign in _SIGNS.items() if privacy[part]),
        "Draws of this dataset": f"{dataset['draws']:,}, this one included",
        "Spent on it in all": f"{stated_amount(dataset['spent'])} (cap {stated_amount(dataset['cap'])})",
        "Truth looked at while tuning": "yes" if manifest["implementation"]["tuning"]["truth_seen"] else "no",
        "Created": manifest["identity"]["created"],
        "Release": manifest["identity"]["release_id"],
    }
    st.markdown("##### What it says")
    st.markdown("\n".join(f"- **{title}**: {markdown(text)}" for title, text in lines.items() if text))


def _tables(manifest: dict[str, Any], size: int) -> None:
    """Expected error by level, and the files."""
    st.markdown("##### Expected error")
    levels = pd.DataFrame(manifest["utility"]["levels"]).drop(columns=["stddev_p95"]).dropna(axis=1, how="all")
    names = {"partitions": "released counts", "stddev_median": "± typical noise", "interval_width_median": "width of the 95 % interval"}
    config = {name: st.column_config.NumberColumn(format="localized") for name in names.values()}
    st.dataframe(levels.rename(columns=names).round(1), hide_index=True, width="stretch", column_config=config)
    st.markdown("##### Files")
    files = [{"file": each["name"], "format": each["format"], "KiB": round(each["bytes"] / 1024, 1)} for each in manifest["files"]]
    st.dataframe(pd.DataFrame(files), hide_index=True, width="stretch")
    left_out = "".join(f" {each['name']} is left out: {each['reason']}" for each in manifest["left_out"])
    st.caption(f"{size / 2**20:,.2f} MiB as a zip archive, which dv.read_release reads back.{markdown(left_out)}")
