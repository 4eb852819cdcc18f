"""State that the pages of points, trips and areas share: mode, limits, configuration and data of a session, and who may see the truth."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpviz.app.server.class_mode import describe_restricted, is_class, restrict
from dpviz.app.session.ledger import LoadedData, record_private_look, record_public_look
from dpviz.app.session.widgets import name_content, widget_for
from dpviz.app.state.changes import Change, apply_change
from dpviz.app.state.draft import Draft
from dpviz.app.state.history import History, go_back
from dpviz.app.state.kinds import PageKind
from dpviz.app.state.linked import names_that_stay
from dpviz.app.state.links import ask_for_files_of_link, describe_linked_files, read_link, read_linked_files, write_link
from dpviz.app.state.page import Page, usual_page
from dpviz.app.state.parts import Files
from dpviz.app.state.readers import LONGEST_NAME
from dpviz.app.state.toml import file_name
from dpviz.app.state.values import CURATE, PATH, SAMPLE, TEACH, UPLOAD
from dpviz.app.state.view import View
from dpviz.errors import SettingError
from dpviz.families import Family
from dpviz.mechanisms import AnyMechanism

DRAFT, DRAFT_WORD = "draft", "draft word"  # a parameter of the address in Curate, and where the session holds it: see `drafts`
Convert = Callable[[Any], Any]
UNPAID = "In Curate every draw is paid for: name the dataset and its cap first. Nothing was drawn or spent."


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, kw_only=True)
class PageState(ABC):
    """What a page is now, and its data, in the session state.

    Attributes:
        key: key of the page's value in the session state.
        families: families of the mechanisms that the page offers; references, which are not private, are for Teach only.
    """

    key: str
    families: Collection[Family]

    @property
    def prefix(self) -> str:
        """Beginning of the keys of the page's widgets and results: "trips ", "areas ", or "" for the page of points."""
        return self.key.removesuffix("config")

    @property
    def mechanisms(self) -> dict[str, type[AnyMechanism]]:
        """All mechanisms of the families, by key."""
        return {key: kind for family in self.families for key, kind in family.choices.items()}

    @abstractmethod
    def read(self, link: Mapping[str, str]) -> tuple[Any, str]:
        """Return the value that a link stands for, and what is to be said of parameters that were not understood or used."""

    @abstractmethod
    def query(self) -> dict[str, str]:
        """Return the parameters of a link to the page as it is."""

    @property
    @abstractmethod
    def looks(self) -> Any:
        """What holds `camera` and `swipe`."""

    @abstractmethod
    def look(self, **parts: Any) -> None:
        """Change how the page is looked at, such as the camera."""

    def value(self) -> Any:
        """Return what the page is in this session; the first visit reads it from the address."""
        if self.key not in st.session_state:
            self._put_link(st.query_params.to_dict())
        return st.session_state[self.key]

    def open(self, link: Mapping[str, str]) -> None:
        """Set the page as the address of a link would."""
        self._put_link(link)

    def _put_link(self, link: Mapping[str, str]) -> None:
        st.session_state[self.key], st.session_state[self._refused] = self.read(link)

    def _put(self, before: Any, after: Any) -> None:
        """Keep a changed value; `write_address` then puts it into the address."""
        if after != before:
            st.session_state.pop(self._refused, None)
            st.session_state[self.key] = after

    @property
    def _refused(self) -> str:
        return f"{self.key} refused"

    @property
    def refused(self) -> str:
        """What of the last link was not understood, until the next change; "" if all was."""
        self.value()
        return str(st.session_state.get(self._refused, ""))

    def refuse(self, text: str) -> None:
        """Say, until the next change, why a draft or a link was not used."""
        st.session_state[self._refused] = text

    def write_address(self) -> None:
        """Write the page into the address bar, unless it was the last to be written there and the browser has it.

        Either alone says too little: an event may bring the address of before the last change.
        """
        query, written = self.query(), f"{self.key} address"
        if st.query_params.to_dict() != query or st.session_state.get(written) != query:
            st.query_params.from_dict(query)
            st.session_state[written] = query


@dataclass(frozen=True, kw_only=True)
class FamilyState(PageState):
    """The state of the page of a family: a `Page` (`dpviz.app.state`), seen from one of its runs.

    Attributes:
        kind: what the page may hold.
        index: the run whose mechanism, settings, budget and seed `draft` has and `change` changes.
    """

    kind: PageKind
    index: int = 0

    def read(self, link: Mapping[str, str]) -> tuple[Page, str]:
        """Return the page of a link; the usual one if the link is not understood."""
        try:
            page, files = read_link(self.kind, link), read_linked_files(self.kind, link)
        except SettingError as error:
            return usual_page(self.kind), str(error)
        if files and is_class():
            return page, "This link is to a file, and a class has samples only: a sample is shown instead."
        if files:
            return ask_for_files_of_link(page, files), describe_linked_files(files)
        return page, describe_restricted(page.draft)

    def query(self) -> dict[str, str]:
        """Return the parameters of a link to the page: in Teach with the names of files that are declared public, in Curate with a word.

        By the word, the draft of Curate is found.
        """
        if self.page.draft.mode != TEACH:
            return write_link(self.page) | {DRAFT: str(st.session_state.get(DRAFT_WORD, ""))}
        waits_for = st.session_state.get(self._linked, {}) if self.page.draft.source == UPLOAD else {}
        return write_link(self.page) | (self.offered_files() or waits_for)

    def _put_link(self, link: Mapping[str, str]) -> None:
        super()._put_link(link)
        asks = st.session_state[self.key].draft.source == UPLOAD
        st.session_state[self._linked] = read_linked_files(self.kind, link) if asks else {}

    @property
    def _linked(self) -> str:
        return f"{self.key} linked files"

    @property
    def refused(self) -> str:
        """As of `PageState`; of files that a link names, until data of files of these names are declared public."""
        text, linked = super().refused, st.session_state.get(self._linked, {})
        is_there = bool(linked) and linked.items() <= self.offered_files().items()
        return "" if is_there and text == describe_linked_files(linked) else text

    def open(self, link: Mapping[str, str]) -> None:
        """Set the page as the address of a link would; `undo` takes it back."""
        before = self.value()
        super().open(link)
        if self.value() != before:
            self._keep_for_undo(before, frozenset())

    def _put_and_keep(self, after: Page, parts: AbstractSet[str]) -> None:
        """Keep a changed page, which `undo` can take back."""
        before = self.page
        if after != before:
            self._keep_for_undo(before, parts)
            self._put(before, after)

    def _keep_for_undo(self, before: Any, parts: AbstractSet[str]) -> None:
        """Keep a value for `undo`, before parts of these names change; no names stand for a change of its own."""
        st.session_state[self._history_key] = self._history.keep(before, parts, now=time.monotonic())

    @property
    def _history_key(self) -> str:
        return f"{self.key} history"

    @property
    def _history(self) -> History[Any]:
        return st.session_state.get(self._history_key, History())  # type: ignore[no-any-return]

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._history.before)

    def undo(self) -> None:
        """Take the last change back; the camera, the swipe bar, the scales and the box stay."""
        before, history = self._history.undo()
        if before is not None:
            st.session_state.pop(self._refused, None)
            st.session_state[self.key] = go_back(before, self.page)
            st.session_state[self._history_key] = history

    def offered_data(self) -> Any | None:
        """Return the data of a file that was declared public and loaded in Teach in this session; None if there are none."""
        return st.session_state.get(f"public {self.key}")

    def offered_files(self) -> dict[str, str]:
        """Return the names of the files of `offered_data`, without their folders, by the parameters of the link that may carry them."""
        if (data := self.offered_data()) is None:
            return {}
        source = data.source
        said = source.data_part.trips or source.data_part.points
        frames = {"regions": source.regions, "destinations": source.destinations}
        paths = {"file": said if isinstance(said, str) else said[0]}
        paths |= {name: frame.file for name, frame in frames.items() if frame is not None and frame.file is not None}
        return {name: file_name(path)[:LONGEST_NAME] for name, path in paths.items()}

    @property
    def page(self) -> Page:
        """The page of this session, within what a class may have."""
        page: Page = self.value()
        return replace(page, draft=restrict(page.draft))

    @property
    def draft(self) -> Draft:
        """What is chosen, with the run of `index` alone."""
        return self.page.draft.of_run(self.index)

    @property
    def view(self) -> View:
        """What is looked at."""
        return self.page.view

    @property
    def looks(self) -> View:
        """What is looked at."""
        return self.view

    def look(self, **parts: Any) -> None:
        """Change parts of the view for good."""
        self.change_for_good(view=parts)

    def change(self, **parts: Mapping[str, Any]) -> None:
        """Change parts of the page, which `undo` can take back, except for those that stay then.

        Args:
            parts: new values by name under `draft`, `run` (that of `index`) and `view`, as of `Change`.
        """
        change = Change(index=self.index, **parts)
        if change.parts <= names_that_stay(Draft) | names_that_stay(View):
            self.change_for_good(**parts)
        else:
            self.apply(change)

    def apply(self, change: Change) -> None:
        """Apply a change, which `undo` can take back."""
        self._put_and_keep(apply_change(self.page, change), change.parts)

    def replace(self, page: Page) -> None:
        """Set the whole page, as an opened configuration does; `undo` takes back what does not stay."""
        self._put_and_keep(page, frozenset())

    def change_for_good(self, **parts: Mapping[str, Any]) -> None:
        """Change parts of the page that `undo` does not take back; as for `change`."""
        st.session_state[self.key] = apply_change(self.page, Change(index=self.index, **parts))

    def part(self, holder: str, name: str) -> Any:
        """Return a part of the page.

        Args:
            holder: what has it: "draft", "run", "view", or what `Draft.part` knows, such as "data".
            name: of the part.
        """
        has_it = {"draft": self.draft, "run": self.draft.run, "view": self.view}
        return getattr(has_it[holder] if holder in has_it else self.draft.part(holder), name)

    def set(self, holder: str, **values: Any) -> None:
        """Change parts of one holder, as of `part`; `undo` does not take back what is declared of own data."""
        if holder in ("draft", "run", "view"):
            self.change(**{holder: values})
        else:
            page = self.page
            st.session_state[self.key] = replace(page, draft=page.draft.with_part(holder, **values))

    def keep_files(self, files: Files) -> None:
        """Keep what was answered of the files of the present source."""
        self.change_for_good(draft={"by_path" if self.draft.source == PATH else "uploaded": files})

    def widget(self, holder: str, part: str, key: str = "", *, show: Convert = _as_it_is, take: Convert = _as_it_is) -> dict[str, Any]:
        """Let a widget show and change a part of the page; return its arguments, as `widget_for` does.

        Args:
            holder: what has the part, as of `part`.
            part: name of the part.
            key: key of the widget; "" if it is the name of the part.
            show: returns what the widget shows for a value.
            take: returns the value for what was chosen.
        """
        return widget_for(key or part, show(self.part(holder, part)), lambda value: self.set(holder, **{part: take(value)}))

    @property
    def mechanisms(self) -> dict[str, type[AnyMechanism]]:
        """All mechanisms of the family, by key."""
        return self.kind.family.choices

    def offered_mechanisms(self) -> list[str]:
        """Return the keys of the mechanisms that may be used in the present mode: all of them in Teach, the private ones in Curate.

        One that counts by category is among them where records are counted so, and where it is chosen already.
        """
        draft = self.draft
        return [
            key
            for key, kind in self.mechanisms.items()
            if (kind.private or draft.mode == TEACH) and (not kind.by_category or draft.by_category or key == draft.run.mechanism)
        ]

    @property
    def drops_files(self) -> bool:
        """Whether the page asks for files in the drop zone of Curate."""
        return self.draft.mode == CURATE and self.draft.source != SAMPLE

    def refuse_reference(self) -> None:
        """Raise `SettingError` if a reference, which is not private, is chosen in Curate."""
        chosen = self.draft.run.mechanism
        if chosen in self.mechanisms and self.mechanisms[chosen].by_category and not self.draft.by_category:
            raise SettingError(f"{self.mechanisms[chosen].title} counts by category, and these data have none: choose another mechanism.")
        if chosen not in self.offered_mechanisms():
            raise SettingError(
                f"{self.mechanisms[str(chosen)].title} is for Teach only: it would reveal private data, whatever the budget."
                " Choose another mechanism, or go back to Teach. Nothing was drawn or spent."
            )

    def offer(self, data: Any | None) -> None:
        """Offer data of a file loaded in Teach, which are public, to the Compare page; otherwise withdraw the last offer.

        What the data protect is kept in either mode, for `protected`.
        """
        st.session_state[self._protected] = "" if data is None else data.counts.unit
        if data is None or self.draft.mode != TEACH or self.draft.source == SAMPLE:
            st.session_state.pop(f"public {self.key}", None)
        else:
            st.session_state[f"public {self.key}"] = data

    @property
    def _protected(self) -> str:
        return f"{self.key} protects"

    @property
    def protected(self) -> str:
        """What a release of the data last loaded protects one of: "record", "trip" or "person"; "" while none are loaded."""
        return str(st.session_state.get(self._protected, ""))


def truth_allowed(data: LoadedData, account: str | None) -> bool:
    """Return whether the truth may be shown. In Curate the curator must have requested it.

    The look is recorded first, as `record_public_look` and `record_private_look` say.

    Args:
        data: data whose truth is to be shown.
        account: name of the account in the ledger; None in Teach.
    """
    if account is not None:
        return truth_wanted(data) and record_private_look(data, account)
    return record_public_look(data)


def truth_key(data: LoadedData) -> str:
    """Return the key of the switch that shows a dataset's truth in Curate; each dataset has its own, so that no truth is shown unasked."""
    return f"curator truth {name_content(data.digest)}"


def truth_wanted(data: LoadedData) -> bool:
    """Return whether the curator requested to see this dataset's truth."""
    return bool(st.session_state.get(truth_key(data), False))
