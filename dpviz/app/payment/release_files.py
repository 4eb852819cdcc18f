"""From a paid release to files in the curator's hands, on the page of the release: its texts, the bundle, the download.

A paid release stays on the disk, beside the ledger, until its bundle is downloaded or it is discarded. Only then the ledger says that it
is published.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import streamlit as st

from dpviz.app.components.fields import at_most, problem_with, show_problem
from dpviz.app.session.ledger import open_ledger
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import drawn_slot
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.errors import DpvizError, SettingError
from dpviz.families import FAMILIES
from dpviz.publishing import publish
from dpviz.publishing.kept import discard
from dpviz.release.files import MANIFEST, zip_release
from dpviz.release.publication import check_url
from dpviz.release.tables import FORMATS
from dpviz.view.escape import markdown

BUNDLE = "bundle"
_FAILED = "download failed"
LONGEST_LINE, LONGEST_TEXT = 200, 4000
_LONGEST_SLUG = 60
REQUIRED = ("name", "curator", "description")
_LABELS = {
    "name": ("Name of the publication", "for example Homes by neighbourhood, 2024"),
    "curator": ("Curator", "who answers for it, and how to reach them"),
    "region": ("Region, if you like", "for example the city of Lyon"),
    "description": ("Description", "what was counted, when and how it was collected"),
    "intended_use": ("Intended use, if you like", "what it is good for, and what not"),
}
_MORE_LABELS = {
    "unit_in_words": ("Whom it protects, in words", "for example each household with its phones"),
    "budget_reason": ("Why this budget", "for example a rule of your office, or the error that readers need"),
    "trust_model": ("Who is trusted with the records", "if it is not you alone, as dpviz assumes"),
    "licence": ("Licence", "for example CC BY 4.0"),
    "contact": ("Contact", "for example a mail address"),
    "url": ("Address on the web", "https://..."),
    "citation": ("How to cite it", ""),
}
"""Texts that may be left out, in the order in which More shows them."""
_LONG_TEXTS = ("description", "intended_use", "unit_in_words", "budget_reason", "trust_model", "citation")


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The files of a release. PUBLIC.

    Attributes:
        manifest: the whole manifest, with the list of files.
        archive: bytes of the zip archive.
        report: bytes of the report, an HTML page.
        paid: the release that was paid for; None where it is not known.
    """

    manifest: dict[str, Any]
    archive: bytes
    report: bytes
    paid: publish.PaidRelease | None = None


class Maker:
    """Makes the bundle of a release once, whoever asks first: the browser that wants its bytes, or the page that shows it.

    Args:
        paid: the release.
        typed: the texts of the publication, as typed.
    """

    def __init__(self, paid: publish.PaidRelease, typed: dict[str, Any]) -> None:
        self._paid, self._typed, self._lock = paid, typed, Lock()
        self.bundle: Bundle | None = None

    def make(self) -> Bundle:
        """Return the bundle; nothing here calls into Streamlit.

        Raises:
            DpvizError: the texts do not fit, or the ledger or the disk failed.
        """
        with self._lock:
            if self.bundle is None:
                self.bundle = make_bundle(self._paid, self._typed)
            return self.bundle


def show_bundle(paid: publish.PaidRelease) -> None:
    """Show how a paid release gets into the curator's hands: its texts, one button that makes the bundle and downloads it."""
    page: FamilyState = FAMILIES[paid.release.family].page.state
    st.subheader("Publish it", anchor=BUNDLE)
    bundle = _published().get(paid.entry)
    if bundle is not None:
        _show_published(bundle)
        return
    where = "on this computer, beside the ledger," if paid.kept is not None else "in this session only"
    st.caption(f"Paid for, and kept {where} until you download its bundle or discard it. Nothing is published yet.")
    texts = texts_form(page, paid.account.name)
    refusal = problem_with(lambda: check_texts(texts))
    maker = Maker(paid, texts)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Make and download the bundle",
            lambda: maker.make().archive,
            name_archive(texts["name"]),
            "application/zip",
            on_click=carry_out(lambda: _note_download(maker)),
            type="primary",
            key="bundle",
            disabled=refusal is not None,
        )
        _discard_button(paid)
    if refusal is not None:
        st.caption(markdown(refusal))
    if failure := st.session_state.pop(_FAILED, ""):
        show_error(failure)


def name_archive(title: object) -> str:
    """Return the file name of a bundle with this title.

    >>> name_archive(" Homes, 2024 "), name_archive("")
    ('homes-2024-release.zip', 'release.zip')
    """
    slug = re.sub(r"\W+", "-", str(title or "").lower()).strip("-")[:_LONGEST_SLUG]
    return f"{slug}-release.zip" if slug else "release.zip"


def is_published(paid: publish.PaidRelease) -> bool:
    """Return whether this session has downloaded the bundle of a release."""
    return paid.entry in _published()


def make_bundle(paid: publish.PaidRelease, typed: dict[str, Any]) -> Bundle:
    """Write the files of a paid release; nothing is spent, and the ledger does not say yet that it is published.

    Raises:
        DpvizError: the texts do not fit, or the ledger or the disk failed.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:
        texts = publish.PublicationTexts(folder=Path(folder) / "release", **check_texts(typed))
        written = publish.write(paid, texts, open_ledger(), notes=False)
        manifest = json.loads((written.folder / MANIFEST).read_bytes())
        report = (written.folder / publish.REPORT).read_bytes()
        return Bundle(manifest=manifest, archive=zip_release(written.folder), report=report, paid=paid)


def _published() -> dict[int, Bundle]:
    """Return the bundles that this session has downloaded, by the numbers of their payments."""
    return st.session_state.setdefault("bundles", {})  # type: ignore[no-any-return]


def _note_download(maker: Maker) -> None:
    """Note in the ledger that a bundle was downloaded that may not be made yet. A failure is shown, and the copy on the disk stays."""
    try:
        bundle = maker.make()
    except DpvizError as error:
        st.session_state[_FAILED] = str(error)
        return
    note_download(bundle)


def note_download(bundle: Bundle) -> None:
    """Note in the ledger that a bundle was downloaded. A failure is shown, and the copy on the disk stays."""
    paid = bundle.paid
    if paid is None:
        return
    bundles = _published()
    try:
        publish.note_publication(paid, bundle.manifest["identity"]["release_id"], open_ledger())
    except DpvizError as error:
        st.session_state[_FAILED] = str(error)
        return
    bundles[paid.entry] = bundle


def _show_published(bundle: Bundle) -> None:
    """Show what was downloaded, and offer it again."""
    name = bundle.manifest["data_product"]["name"]
    title = markdown(name)
    st.success(f"Published: {title}. The bundle was downloaded, and the ledger says so.")
    zip_name = name_archive(name)
    report_name = zip_name.replace("release.zip", "report.html")
    with st.container(horizontal=True):
        st.download_button("Download it again (zip)", lambda: bundle.archive, zip_name, "application/zip", on_click="ignore", key="zip")
        st.download_button("Download the report", lambda: bundle.report, report_name, "text/html", on_click="ignore", key="report")
    with st.expander("Manifest"):
        st.json(bundle.manifest)


def _discard_button(paid: publish.PaidRelease) -> None:
    """Offer to discard a release that is kept on the disk; a second press confirms, since what it cost stays spent."""
    kept, key = paid.kept, f"discard {paid.entry}"
    if kept is None or not kept.exists():
        return
    if not st.session_state.get(key):
        st.button("Discard ...", key=f"{key} first", on_click=lambda: st.session_state.update({key: True}))
        return
    st.button("Discard it for good: what it cost stays spent", key=f"{key} second", on_click=carry_out(lambda: _discard(paid, kept)))
    st.button("Keep it", key=f"{key} not", on_click=lambda: st.session_state.pop(key, None))


def _discard(paid: publish.PaidRelease, kept: Path) -> None:
    """Remove a release from the disk and from the session."""
    discard(kept)
    st.toast(f"Draw {paid.entry:d} was discarded; what it cost stays spent.")
    for family in FAMILIES.values():
        results = st.session_state.get(drawn_slot(family.page.state), ())
        for each in [each for each in results if any(run.paid is paid for run in each.runs)]:
            results.remove(each)


def texts_form(page: FamilyState, name: str = "") -> dict[str, Any]:
    """Show the form for the curator's texts. Return the typed texts.

    Args:
        page: state of the page of the data, which holds the texts.
        name: that is proposed while none is typed.
    """
    if name and not page.draft.texts.name:
        page.set("texts", name=name)
    st.caption("All of this is published as it is. Write nothing that is known from the private data only.")
    left, right = st.columns(2)
    places = (("name", left), ("curator", right), ("description", st), ("intended_use", st), ("region", st))
    for text, column in places:
        _text_field(page, text, *_LABELS[text], column)
    with st.expander("More", key="publication more"):
        for text, (label, example) in _MORE_LABELS.items():
            _text_field(page, text, label, example, st)
    help_text = "geoparquet is lossless and always written: only it can be read back. Manifest and report are always there."
    shown = page.widget("output", "formats", "publication formats", show=list, take=tuple)
    st.multiselect("Formats", FORMATS, help=help_text, **shown)
    return {**vars(page.draft.texts), "formats": list(page.draft.output.formats)}


def _text_field(page: FamilyState, name: str, label: str, example: str, column: Any) -> None:
    """Show the field of one text in a column of the page, and what is wrong with it."""
    key, is_long = f"publication {name}", name in _LONG_TEXTS
    common: dict[str, Any] = {"placeholder": example, **page.widget("texts", name, key, take=lambda typed: typed or "")}
    column.text_area(label, height=80, **common) if is_long else column.text_input(label, **common)
    typed = page.part("texts", name)
    too_long = at_most(label, LONGEST_TEXT if is_long else LONGEST_LINE)(typed)
    show_problem(key, problem_with(lambda: check_url(typed.strip())) if too_long is None and name == "url" else too_long)


def check_texts(typed: dict[str, Any]) -> dict[str, Any]:
    """Check the typed texts and return them without surrounding space.

    Raises:
        SettingError: a required text is missing, or a text is too long.
    """
    labels = _LABELS | _MORE_LABELS
    texts = {name: str(typed.get(name) or "").strip() for name in labels}
    missing = [_LABELS[name][0].lower() for name in REQUIRED if not texts[name]]
    if missing:
        raise SettingError(f"Still missing: {', '.join(missing)}.")
    for name, text in texts.items():
        longest = LONGEST_TEXT if name in _LONG_TEXTS else LONGEST_LINE
        if len(text) > longest:
            raise SettingError(f"{labels[name][0]}: at most {longest:,} characters.")
    check_url(texts["url"])
    formats = [name for name in FORMATS if name == FORMATS[0] or name in typed["formats"]]
    return {**texts, "formats": formats}
