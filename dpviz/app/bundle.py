"""From a paid release to files in the curator's hands, on the page of the release: its texts, the bundle, the download.

A paid release stays on the disk, beside the ledger, until its bundle is downloaded or it is discarded. Only then the ledger says that it
is published.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.fields import at_most, show_problem
from dpviz.app.ledger import PaidDraw
from dpviz.app.session import carry_out, serve_press, show_error, show_refusal
from dpviz.errors import DpvizError, SettingError
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import publish
from dpviz.publishing.kept import discard
from dpviz.release.files import MANIFEST, zip_release
from dpviz.release.tables import FORMATS
from dpviz.view.escape import markdown

BUNDLE = "bundle"
LONGEST_LINE, LONGEST_TEXT = 200, 4000
REQUIRED = ("name", "curator", "description")
_LABELS = {
    "name": ("Name of the publication", "for example Homes by neighbourhood, 2024"),
    "curator": ("Curator", "who answers for it, and how to reach them"),
    "region": ("Region, if you like", "for example the city of Lyon"),
    "description": ("Description", "what was counted, when and how it was collected"),
    "intended_use": ("Intended use, if you like", "what it is good for, and what not"),
}
_LONG_TEXTS = ("description", "intended_use")


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The files of a release. PUBLIC.

    Attributes:
        manifest: the whole manifest, with the list of files.
        archive: bytes of the zip archive.
        report: bytes of the report, an HTML page.
    """

    manifest: dict[str, Any]
    archive: bytes
    report: bytes


def show_bundle(page: str, paid_draw: PaidDraw) -> None:
    """Show how a paid release gets into the curator's hands.

    Args:
        page: key of the page, whose presses are counted once.
        paid_draw: the release.
    """
    st.subheader("Publish it", anchor=BUNDLE)
    entry = paid_draw.paid.entry
    bundle: Bundle | None = _bundles().get(entry)
    if bundle is not None:
        _show_downloads(paid_draw, bundle)
        return
    where = "on this computer, beside the ledger," if paid_draw.paid.kept is not None else "in this session only"
    st.caption(f"Paid for, and kept {where} until you download its bundle or discard it. Nothing is published yet.")
    texts = texts_form()
    missing = [_LABELS[name][0].lower() for name in REQUIRED if not str(texts[name] or "").strip()]
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Make the bundle", type="primary", disabled=bool(missing), key="make bundle") and not missing:
            serve_press(page, lambda: _bundles().update({entry: make_bundle(paid_draw, texts)}), "Writing files ...")
        _discard_button(paid_draw)
        if missing:
            st.caption(f"Still missing: {', '.join(missing)}.")
    show_refusal(page)


def _bundles() -> dict[int, Bundle]:
    """Return the bundles of this session by the numbers of their payments: a plain dictionary, which a run may change."""
    return st.session_state.setdefault("bundles", {})  # type: ignore[no-any-return]


def make_bundle(paid_draw: PaidDraw, typed: dict[str, Any]) -> Bundle:
    """Write the files of a paid release; nothing is spent, and the ledger does not say yet that it is published.

    Raises:
        DpvizError: the texts do not fit, or the ledger or the disk failed.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:
        texts = publish.PublicationTexts(folder=Path(folder) / "release", **check_texts(typed))
        written = publish.write(paid_draw.paid, texts, Ledger(), notes=False)
        manifest = json.loads((written.folder / MANIFEST).read_bytes())
        return Bundle(manifest=manifest, archive=zip_release(written.folder), report=(written.folder / publish.REPORT).read_bytes())


def _show_downloads(paid_draw: PaidDraw, bundle: Bundle) -> None:
    name = f"dpviz-{bundle.manifest['identity']['release_id'][:8]}"
    published = paid_draw.paid.entry in _downloaded()
    title = markdown(bundle.manifest["data_product"]["name"])
    if published:
        st.success(f"Published: {title}. The ledger says so since you downloaded it.")
    else:
        st.info(f"The bundle of {title} is ready: {len(bundle.archive) / 2**20:.2f} MiB. It counts as published once you download it.")
    with st.container(horizontal=True):
        note = carry_out(lambda: _note_download(paid_draw, bundle))
        zip_name = f"{name}.zip"
        st.download_button(
            "Download the release (zip)", lambda: bundle.archive, zip_name, "application/zip", on_click=note, type="primary", key="zip"
        )
        report_name = f"{name}-report.html"
        st.download_button("Download the report", lambda: bundle.report, report_name, "text/html", on_click="ignore", key="report")
        if not published:
            st.button("Change the texts", key="change texts", on_click=carry_out(lambda: _bundles().pop(paid_draw.paid.entry, None)))
    if refusal := st.session_state.pop("download refused", ""):
        show_error(refusal)
    with st.expander("Manifest"):
        st.json(bundle.manifest)


def _downloaded() -> set[int]:
    return st.session_state.setdefault("published entries", set())  # type: ignore[no-any-return]


def _note_download(paid_draw: PaidDraw, bundle: Bundle) -> None:
    """Note in the ledger that a bundle was downloaded; a failure is shown, and the copy on the disk stays."""
    try:
        publish.note_publication(paid_draw.paid, bundle.manifest["identity"]["release_id"], Ledger())
    except DpvizError as error:
        st.session_state["download refused"] = f"The ledger could not note the publication. {error}"
        return
    _downloaded().add(paid_draw.paid.entry)


def _discard_button(paid_draw: PaidDraw) -> None:
    """Offer to discard a release that is kept on the disk: the budget stays spent, so a second press confirms."""
    kept, key = paid_draw.paid.kept, f"discard {paid_draw.paid.entry}"
    if kept is None or not kept.exists():
        return
    if not st.session_state.get(key):
        st.button("Discard ...", key=f"{key} first", on_click=lambda: st.session_state.update({key: True}))
        return
    st.button("Discard it for good: what it cost stays spent", key=f"{key} second", on_click=lambda: discard(kept))
    st.button("Keep it", key=f"{key} not", on_click=lambda: st.session_state.pop(key, None))


def texts_form() -> dict[str, Any]:
    """Show the form for the curator's texts. Return the typed texts; they are kept for the session, and escaped when shown."""
    st.caption("All of this is published as it is. Write nothing that is known from the private data only.")
    typed: dict[str, Any] = {}
    left, right = st.columns(2)
    for name, column in (("name", left), ("curator", right), ("description", st), ("intended_use", st), ("region", st)):
        label, example = _LABELS[name]
        common: dict[str, Any] = {"key": f"publication {name}", "placeholder": example, "persist_state": "session"}
        if name in _LONG_TEXTS:
            typed[name] = column.text_area(label, height=80, **common)
        else:
            typed[name] = column.text_input(label, **common)
        show_problem(common["key"], at_most(label, LONGEST_TEXT if name in _LONG_TEXTS else LONGEST_LINE)(typed[name]))
    st.session_state.setdefault("publication formats", list(FORMATS))
    typed["formats"] = st.multiselect(
        "Formats",
        FORMATS,
        key="publication formats",
        persist_state="session",
        help="geoparquet is lossless and always written: only it can be read back. Manifest and report are always there.",
    )
    return typed


def check_texts(typed: dict[str, Any]) -> dict[str, Any]:
    """Check the typed texts and return them without surrounding space.

    Raises:
        SettingError: a required text is missing, or a text is too long.
    """
    texts = {name: str(typed[name] or "").strip() for name in _LABELS}
    missing = [_LABELS[name][0].lower() for name in REQUIRED if not texts[name]]
    if missing:
        raise SettingError(f"Still missing: {', '.join(missing)}. Nothing was drawn or spent.")
    for name, text in texts.items():
        longest = LONGEST_TEXT if name in _LONG_TEXTS else LONGEST_LINE
        if len(text) > longest:
            raise SettingError(f"{_LABELS[name][0]}: at most {longest:,} characters. Nothing was drawn or spent.")
    formats = [name for name in FORMATS if name == FORMATS[0] or name in typed["formats"]]
    return {**texts, "formats": formats}
