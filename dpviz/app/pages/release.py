"""The Release page: the account, a dry run, the texts of the publication, one button, and the result. The page never uses the truth."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.app.components.code import show_release_code
from dpviz.app.components.fields import problem_with, show_lock, start_checks
from dpviz.app.components.panes import load_deck
from dpviz.app.components.words import budget_words, show_table, show_verdict, verdict_row
from dpviz.app.modes.family_page import Pages
from dpviz.app.modes.header import forget_button, show_forgotten
from dpviz.app.payment.confirm_second_payment import choose_again
from dpviz.app.payment.dataset import dataset_block
from dpviz.app.payment.paid_list import ask_dataset, find_kept, show_all_draws, show_kept
from dpviz.app.payment.release_files import Bundle, check_texts, is_published, name_archive, note_download, texts_form
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session.ledger import Funding, LoadedData, PaidDraw, SessionDraws, make_order, open_ledger, paid_draws, session_draws
from dpviz.app.session.saved_config import save_button
from dpviz.app.session.widgets import accept_presses, carry_out, newest_result, result_slot, serve_press, show_error, show_refusal
from dpviz.app.state.draft import Draft
from dpviz.app.state.run import convert_to_currency
from dpviz.errors import DpvizError
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import Entry
from dpviz.privacy.budget import Budget
from dpviz.publishing import publish
from dpviz.publishing.code import CodeRun
from dpviz.publishing.dry_run import ExpectedErrors, expected_errors
from dpviz.release.files import MANIFEST, zip_release
from dpviz.release.manifest import format_amount
from dpviz.release.publication import NOT_RECORDED
from dpviz.release.verdict import compute_needed_total
from dpviz.view.escape import markdown

PAGE = "release"
NEW, PAID, KEPT = "A new draw", "A draw that is already paid for", "A draw that is kept on this computer"
_NO_SIMULATIONS = "Draws in Teach are simulations, whose seed is known, and references are not private: neither can ever be chosen here."
_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def release_page(pages: Pages = MappingProxyType({})) -> None:
    """Show the page; `pages` are those to which its buttons lead."""
    refuse_in_class("Release page")
    if show_forgotten():
        return
    left, right = st.columns([19, 3], vertical_alignment="center")
    left.caption(
        "**What leaves the app.** A release is drawn with noise from the operating system after the ledger has counted it, and comes with"
        " a manifest and a report. No truth is shown or used on this page; settings are those of Points, Trips and Areas in Curate."
    )
    with right:
        forget_button("release")
    outcome: Bundle | None = newest_result("outcome")
    if outcome is not None:
        show_outcome(outcome)
    else:
        _show_preparation(pages)
    accept_presses(PAGE)


def _show_preparation(pages: Pages) -> None:
    """Show everything before publication: data, mechanism and budget, account, dry run and texts."""
    start_checks()
    found = {family.title: family.page.state.loaded() for family in FAMILIES.values()}
    loaded = {title: data_and_config for title, data_and_config in found.items() if data_and_config is not None}
    paid = paid_draws()
    steps = st.container()
    datasets = ask_dataset()
    kept = find_kept({draw.paid.entry for draw in paid}, datasets)
    show_all_draws(datasets)
    with steps:
        if loaded or paid or kept:
            _show_steps(loaded, paid, kept)
        else:
            st.info("Nothing can be released yet: load private data on the Points, Trips or Areas page in *Curate*, then come back.")
            st.caption(_NO_SIMULATIONS)
            with st.container(horizontal=True):
                for name, page in pages.items():
                    if st.button(FAMILIES[name].page_kind.button):
                        st.switch_page(page)


def _show_steps(loaded: dict[str, tuple[LoadedData, Draft]], paid: list[PaidDraw], kept: list[Entry]) -> None:
    left, right = st.columns([3, 2], gap="large")
    with left:
        chosen = _choose_release(loaded, paid, kept)
    if chosen is None:
        return
    data, draft, paid_draw = chosen
    mechanism, budget = (paid_draw.mechanism, _budget_of(paid_draw)) if paid_draw is not None else (draft.build(), draft.budget())
    with left:
        st.markdown("##### 2 Words")
        page = FAMILIES[data.counts.family].page.state
        texts = texts_form(page)
    with right:
        funding = dataset_block(page, data, [] if paid_draw is not None else [(mechanism, budget)], title="##### What is spent")
        converted = convert_to_currency(mechanism, budget, funding.account.terms.cap if funding.account else funding.cap)
        dry_run_block(data, mechanism, converted)
        refusal = problem_with(lambda: check_texts(texts))
        locked = show_lock() or funding.problem is not None or refusal is not None
        if paid_draw is None:
            st.caption(f"One press: the ledger counts {budget_words(converted)}, noise is drawn once, and the files are made.")
            locked = (funding.account is not None and not choose_again(funding.account)) or locked
        if refusal is not None:
            st.caption(markdown(refusal))
        label = "Publish" if paid_draw is not None else f"Pay {budget_words(converted)} and publish"
        if st.button(label, type="primary", disabled=locked, key="publish", width="stretch") and not locked:
            serve_press(PAGE, lambda: _publish_release((data, mechanism, budget), funding, paid_draw, texts), "Publishing ...")
        show_refusal(PAGE)
        if paid_draw is None:
            with st.container(horizontal=True, vertical_alignment="center"):
                save_button(data, draft, funding)
                show_release_code(data, page.draft, [CodeRun(mechanism=mechanism, budget=budget)], funding)


def _choose_release(
    loaded: dict[str, tuple[LoadedData, Draft]], paid: list[PaidDraw], kept: list[Entry]
) -> tuple[LoadedData, Any, PaidDraw | None] | None:
    """Ask what to publish.

    Returns:
        Data, configuration and paid draw. A new draw has no paid draw yet, a paid draw has no configuration; None if nothing is chosen.
    """
    st.markdown("##### 1 What")
    options = [*([NEW] if loaded else []), *([PAID] if paid else []), *([KEPT] if kept else [])]
    if st.session_state.get("release what") not in options:
        waiting = [*([KEPT] if kept else []), *([PAID] if any(not is_published(draw.paid) for draw in paid) else [])]
        st.session_state["release what"] = waiting[0] if waiting else options[0]
    choice = st.segmented_control("What", options, key="release what", required=True, persist_state="session", label_visibility="collapsed")
    st.caption(_NO_SIMULATIONS)
    if choice == KEPT:
        load_deck()
        show_kept(kept)
        return None
    if choice == PAID:
        newest_first = range(len(paid) - 1, -1, -1)
        index = st.selectbox("Draw", newest_first, key="release draw", format_func=lambda number: _describe_draw(paid[number]))
        verdict_row(paid[index].paid.release)
        st.caption("It is published as it was drawn, and costs nothing more. The manifest says how many draws there were in all.")
        return paid[index].data, None, paid[index]
    page = st.segmented_control(
        "Data", list(loaded), default=next(iter(loaded)), key="release data", required=True, persist_state="session"
    )
    if page not in loaded:
        return None
    data, draft = loaded[page]
    mechanism = draft.build()
    chosen, defaults = mechanism.chosen(), type(mechanism)().chosen()
    changed = [f"{rule.label} {chosen[rule.name]}" for rule in mechanism.rules() if chosen[rule.name] != defaults[rule.name]]
    settings = f" ({markdown(', '.join(changed))})" if changed else ""
    st.markdown(f"{markdown(data.title)}: **{mechanism.title}**, {budget_words(draft.budget())}{settings}")
    st.caption(f"Chosen on the {page} page, where it can be changed.")
    return data, draft, None


def _budget_of(paid_draw: PaidDraw) -> Any:
    return paid_draw.paid.release.receipt.total


def _describe_draw(paid_draw: PaidDraw) -> str:
    """Return a draw in one line: time, mechanism, budget and dataset."""
    published = st.session_state.get("published entries", ())
    time = paid_draw.time.astimezone().strftime("%H:%M:%S")
    published_text = ", published" if paid_draw.paid.entry in published else ""
    return f"{time}, {paid_draw.mechanism.title}, {budget_words(_budget_of(paid_draw))}, {paid_draw.paid.account.name}{published_text}"


def _publish_release(release_of: tuple[LoadedData, Any, Any], funding: Funding, paid_draw: PaidDraw | None, texts: dict[str, Any]) -> None:
    """Publish, and keep the outcome in the result slot. If publishing fails, a draw that is paid for can be published later.

    Args:
        release_of: data, mechanism and budget of a new draw.
        funding: the account that pays for it.
        paid_draw: a draw that is already paid for, to be published; None for a new draw.
        texts: texts of the publication, as typed.
    """
    outcomes, draws = result_slot("outcome"), session_draws()  # from here on no call into Streamlit: it could lose what is published
    if paid_draw is not None:
        outcomes.append(publish_kept(paid_draw, texts))
    else:
        outcomes.append(publish_new(make_order(*release_of, funding), release_of[0], texts, draws))


def dry_run_block(data: LoadedData, mechanism: AnyMechanism, budget: Budget) -> None:
    """Show the expected error per level, computed from the mechanism alone."""
    st.markdown("##### Dry run")
    try:
        errors = _cached_dry_run(data, mechanism, budget)
    except DpvizError as error:
        show_error(str(error))
        return
    table = errors.by_level
    rows = pd.DataFrame({"level": table["level"], "of": table["of"]})
    if table["numbers"].notna().any():
        rows["numbers"] = table["numbers"]
    rows["± typical noise"], rows["± 95 % of the noise"] = table["stddev"], table["interval"]
    if table["numbers"].notna().all():
        rows["usable from"] = [compute_needed_total(*row) for row in zip(table["numbers"], table["stddev"], strict=True)]
    config = {name: st.column_config.NumberColumn(format="%.1f" if name.startswith("±") else "localized") for name in rows.columns[2:]}
    show_table(rows, column_config=config)
    if "usable from" in rows:
        st.caption(f"A level is usable from that many {data.unit} in all: its noise is then at most 40 % of an average number.")
    st.caption(f"In {data.unit}, computed without a single record: nothing is spent. {markdown(errors.note)}")


def _cached_dry_run(data: LoadedData, mechanism: AnyMechanism, budget: Budget) -> ExpectedErrors:
    """Return the dry run of these settings. It holds nothing of the data, and is kept until the settings change."""
    key = (data.digest, data.fingerprints, repr(mechanism), str(budget))
    cached_key, cached = st.session_state.get("dry run", (None, None))
    if cached_key != key:
        with st.spinner("Dry run ..."):
            cached = expected_errors(mechanism, data.counts, budget)
        st.session_state["dry run"] = (key, cached)
    return cached  # type: ignore[no-any-return]


def publish_new(order: publish.Order, data: LoadedData, typed: dict[str, Any], draws: SessionDraws) -> Bundle:
    """Publish a new draw: check the texts, pay in the ledger, draw, keep the draw, write its files. No call into Streamlit is made.

    Raises:
        DpvizError: the text says whether something is spent; a draw that is paid for can be published later.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:
        texts = _publication_texts(typed, folder)
        texts.check()
        paid_draw = draws.keep(publish.draw(order, open_ledger(), words=texts), data, order.mechanism)
        try:
            return _write_files(paid_draw, texts)
        except DpvizError as error:
            advice = "Choose it under 'A draw that is already paid for' to publish it; do not draw again."
            if paid_draw.paid.kept is not None:
                advice += f" Should this session be lost, dpviz release CONFIG --paid {paid_draw.paid.entry} publishes it."
            raise type(error)(f"{error} The draw is paid for and kept. {advice}") from None


def publish_kept(paid_draw: PaidDraw, typed: dict[str, Any]) -> Bundle:
    """Make the bundle of a draw that is already paid for; nothing is spent.

    Raises:
        DpvizError: the texts do not fit, or the ledger or the disk failed; the draw can be published later.
    """
    with tempfile.TemporaryDirectory(prefix="dpviz-") as folder:
        return _write_files(paid_draw, _publication_texts(typed, folder))


def _publication_texts(typed: dict[str, Any], folder: str) -> publish.PublicationTexts:
    return publish.PublicationTexts(folder=Path(folder) / "release", **check_texts(typed))


def _write_files(paid_draw: PaidDraw, texts: publish.PublicationTexts) -> Bundle:
    """Make the bundle; the ledger says that it is published once it is downloaded, and the draw is kept until then."""
    written = publish.write(paid_draw.paid, texts, open_ledger(), notes=False)
    manifest, report = json.loads((written.folder / MANIFEST).read_bytes()), (written.folder / publish.REPORT).read_bytes()
    return Bundle(manifest=manifest, archive=zip_release(written.folder), report=report, paid=paid_draw.paid)


def show_outcome(outcome: Bundle) -> None:
    """Show the downloads, and a summary of the manifest. The first download publishes."""
    manifest, paid = outcome.manifest, outcome.paid
    name, done = manifest["data_product"]["name"], paid is None or is_published(paid)
    if done:
        st.success(f"Published: {markdown(name)}. The bundle was downloaded, and the ledger says so.")
    else:
        where = "kept on this computer until you download it" if paid is not None and paid.kept is not None else "kept in this session only"
        st.info(f"The bundle of {markdown(name)} is made and paid for, and {where}. Nothing is published yet.")
    if paid is not None:
        st.caption(f"Ledger: {markdown(str(open_ledger().path))}")
    show_verdict(*(manifest["verdict"][part] for part in ("headline", "detail", "rule")))
    zip_name = name_archive(name)
    report_name = zip_name.replace("release.zip", "report.html")
    on_click: Any = "ignore" if done else carry_out(lambda: note_download(outcome))
    with st.container(horizontal=True):
        st.download_button(
            "Download the release (zip)", lambda: outcome.archive, zip_name, "application/zip", on_click=on_click, type="primary", key="zip"
        )
        st.download_button("Download the report", lambda: outcome.report, report_name, "text/html", on_click="ignore", key="report")
        st.button("Publish something else", on_click=lambda: st.session_state.pop("outcome", None))
    left, right = st.columns([2, 3], gap="large")
    with left:
        _show_summary(manifest)
    with right:
        _show_tables(manifest, len(outcome.archive))
    with st.expander("Manifest"):
        st.json(manifest)


_LOOKS = {True: "yes", False: "no", NOT_RECORDED: NOT_RECORDED}


def _show_summary(manifest: dict[str, Any]) -> None:
    """Show the main facts of the manifest as a list."""
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
        "Spent on it in all": f"{format_amount(dataset['spent'])} (cap {format_amount(dataset['cap'])})",
        "Truth looked at while tuning": _LOOKS[manifest["implementation"]["tuning"]["truth_seen"]],
        "Columns searched for persons": "yes" if manifest["implementation"]["tuning"]["persons_searched"] else "no",
        "Created": manifest["identity"]["created"],
        "Release": manifest["identity"]["release_id"],
    }
    st.markdown("##### What it says")
    st.markdown("\n".join(f"- **{title}**: {markdown(text)}" for title, text in lines.items() if text))


def _show_tables(manifest: dict[str, Any], size: int) -> None:
    """Show the expected error by level, and the files."""
    st.markdown("##### Expected error")
    levels = pd.DataFrame(manifest["utility"]["levels"]).drop(columns=["stddev_p95"]).dropna(axis=1, how="all")
    names = {"partitions": "released counts", "stddev_median": "± typical noise", "interval_width_median": "width of the 95 % interval"}
    config = {name: st.column_config.NumberColumn(format="localized") for name in names.values()}
    show_table(levels.rename(columns=names).round(1), column_config=config)
    st.markdown("##### Files")
    files = [{"file": entry["name"], "format": entry["format"], "KiB": round(entry["bytes"] / 1024, 1)} for entry in manifest["files"]]
    show_table(pd.DataFrame(files))
    left_out = "".join(f" {entry['name']} is left out: {entry['reason']}" for entry in manifest["left_out"])
    st.caption(f"{size / 2**20:,.2f} MiB as a zip archive, which dv.read_release reads back.{markdown(left_out)}")
