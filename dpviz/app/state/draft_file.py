"""The file that keeps the pages of a session on the disk, as JSON with a version. It is read as a whole, or refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import kind_of
from dpviz.app.state.links import read_link, write_link
from dpviz.app.state.page import Page
from dpviz.app.state.values import COUNTED_BY, EVERY_ROW, KINDS_OF_REGIONS, PERSON, SOURCES, VOUCHED
from dpviz.errors import SettingError
from dpviz.publishing.public_guess import SPREADS
from dpviz.publishing.toml_tables import TOML

VERSION = 1
_REFUSED = "The draft of this page is damaged, or of another version of dpviz, and was not opened: choose again what it held."
_CODEC = replace(TOML, says_none=True, refused={})
_CHOICES = {"source": SOURCES, "regions_from": KINDS_OF_REGIONS, "counted_by": COUNTED_BY}


def write_drafts(pages: Mapping[str, Page]) -> str:
    """Write the pages of a session, by the names of their families.

    >>> from dpviz.app.state.kinds import AREAS
    >>> from dpviz.app.state.page import usual_page
    >>> page = usual_page(AREAS)
    >>> read_drafts(write_drafts({"areas": page})) == {"areas": page}
    True
    """
    written = {name: _CODEC.write(page) for name, page in pages.items()}
    return json.dumps({"version": VERSION, "pages": written}, sort_keys=True, ensure_ascii=False)


def read_drafts(text: str) -> dict[str, Page]:
    """Read the pages of a session.

    Raises:
        SettingError: the text is damaged, of another version, or has a value that no page of this version can hold; none of it is used.
    """
    try:
        return _read_all(text)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise SettingError(_REFUSED) from None


def _read_all(text: str) -> dict[str, Page]:
    file: Any = json.loads(text)
    if file["version"] != VERSION:
        raise ValueError
    return {name: _read_page(name, table) for name, table in file["pages"].items()}


def _read_page(name: str, table: object) -> Page:
    """Read a page, and check every value that a link or a field would check."""
    page = _CODEC.read(Page, table, "A page")
    read_link(kind_of(name), write_link(page))
    if page.draft.family != name or not page.draft.runs or not page.view.panes:
        raise ValueError
    if max(pane.run for pane in page.view.panes) >= len(page.draft.runs) or page.view.edited >= len(page.draft.runs):
        raise ValueError
    _check_choices(page.draft)
    return page


def _check_choices(draft: Draft) -> None:
    whom = {draft.uploaded.whom, draft.by_path.whom}
    known = all(getattr(draft, name) in choices for name, choices in _CHOICES.items()) and draft.guess.spread in (None, *SPREADS)
    if not known or not whom <= {None, PERSON, VOUCHED, EVERY_ROW}:
        raise ValueError
