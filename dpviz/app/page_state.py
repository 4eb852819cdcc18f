"""State that the pages of points, trips and areas share: mode, limits, configuration and data of a session, and who may see the truth."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpviz.app.class_mode import describe_restricted, restrict
from dpviz.app.ledger import LoadedData, record_private_look, record_public_look
from dpviz.app.session import check_link, to_query, widget_for
from dpviz.app.state.history import History
from dpviz.app.state.linked import names_that_stay
from dpviz.app.state.readers import describe_refused
from dpviz.app.state.values import CURATE, TEACH
from dpviz.app.state.view import View
from dpviz.errors import SettingError
from dpviz.families import Family
from dpviz.mechanisms import AnyMechanism
from dpviz.release.older import say_new_names

DRAFT, DRAFT_WORD = "draft", "draft word"  # a parameter of the address in Curate, and where the session holds it: see `drafts`
UNPAID = "In Curate every draw is paid for: name the dataset and its cap first. Nothing was drawn or spent."


@dataclass(frozen=True, kw_only=True)
class PageState:
    """A page's configuration and data in the session state.

    Attributes:
        key: key of the configuration in the session state.
        kind: class of the configuration; its defaults are those of the page.
        families: families of the mechanisms that the page offers; references, which are not private, are for Teach only.
    """

    key: str
    kind: type[Any]
    families: Collection[Family]

    @property
    def prefix(self) -> str:
        """Beginning of the keys of the page's widgets and results: "trips ", "areas ", or "" for the page of points."""
        return self.key.removesuffix("config")

    @property
    def mechanisms(self) -> dict[str, type[AnyMechanism]]:
        """All mechanisms of the families, by key."""
        return {key: kind for family in self.families for key, kind in family.choices.items()}

    def config(self) -> Any:
        """Return the configuration of this session, within what a class may have; the first visit reads it from the address."""
        if self.key not in st.session_state:
            st.session_state[self.key] = self._read(st.query_params.to_dict())
        return restrict(st.session_state[self.key])

    def change(self, **updates: Any) -> None:
        """Change parts of the configuration, which `undo` can take back; `write_address` then puts them into the address."""
        before = self.config()
        if hasattr(before, "rho") and updates.keys() & {"epsilon", "delta"}:  # chosen in place of the rho of a configuration
            updates = {"rho": None, **updates}
        after = replace(before, **updates)
        if after == before:
            return
        self._keep_for_undo(before, updates.keys())
        st.session_state.pop(self._refused, None)
        st.session_state[self.key] = after

    def widget(self, part: str, key: str = "", **resets: Any) -> dict[str, Any]:
        """Let a widget show and change a part of the configuration; return its arguments, as `widget_for` does.

        Args:
            part: name of the part.
            key: key of the widget; "" if it is the name of the part.
            resets: other parts that a change sets, with their values.
        """
        return widget_for(key or part, getattr(self.config(), part), lambda value: self.change(**{part: value}, **resets))

    def change_for_good(self, **updates: Any) -> None:
        """Change parts of the configuration that `undo` does not take back, such as the camera."""
        st.session_state[self.key] = replace(self.config(), **updates)

    def open(self, link: Mapping[str, str]) -> None:
        """Set the configuration as the address of a link would; `undo` takes it back."""
        before, after = self.config(), self._read(link)
        if after != before:
            self._keep_for_undo(before, frozenset())
        st.session_state[self.key] = after

    def _read(self, link: Mapping[str, str]) -> Any:
        """Return the configuration of a link, and keep what was not understood for `refused`."""
        read, names = check_link(self.kind, link)
        refused = describe_refused({name: getattr(read, name) for name in names})
        renamed = say_new_names(link["settings"]) if "settings" in names else ""
        st.session_state[self._refused] = " ".join(filter(None, (refused, renamed, describe_restricted(read))))
        return read

    @property
    def _refused(self) -> str:
        return f"{self.key} refused"

    @property
    def refused(self) -> str:
        """Which parameters of the last link were not understood, until the next change; "" if all were."""
        self.config()
        return str(st.session_state.get(self._refused, ""))

    def _keep_for_undo(self, before: Any, names: AbstractSet[str]) -> None:
        """Keep a configuration for `undo`, before parts of these names change; no names stand for a change of its own."""
        st.session_state[self._history_key] = self._history.keep(before, names, now=time.monotonic())

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
            kept = {name: getattr(self.config(), name) for name in names_that_stay(View) if hasattr(before, name)}
            st.session_state.pop(self._refused, None)
            st.session_state[self.key] = replace(before, **kept)
            st.session_state[self._history_key] = history

    def offered_mechanisms(self) -> list[str]:
        """Return the keys of the mechanisms that may be used in the present mode: all of them in Teach, the private ones in Curate."""
        return [key for key, mechanism in self.mechanisms.items() if mechanism.private or self.config().mode == TEACH]

    def refuse_reference(self) -> None:
        """Raise `SettingError` if a reference, which is not private, is chosen in Curate."""
        how = self.config()
        if how.mechanism not in self.offered_mechanisms():
            raise SettingError(
                f"{self.mechanisms[how.mechanism].title} is for Teach only: it would reveal private data, whatever the budget."
                " Choose another mechanism, or go back to Teach. Nothing was drawn or spent."
            )

    def remember(self, data: LoadedData | None) -> None:
        """Keep data loaded in Curate, with the configuration, for the Release page; None removes them while something is missing."""
        if data is None:
            st.session_state.pop(f"loaded {self.key}", None)
        else:
            st.session_state[f"loaded {self.key}"] = (data, self.config())

    def offer(self, data: Any | None) -> None:
        """Offer data of a file loaded in Teach, which are public, to the Compare page; otherwise withdraw the last offer.

        What the data protect is kept in either mode, for `protected`.
        """
        st.session_state[self._protected] = "" if data is None else data.counts.unit
        if data is None or self.config().mode != TEACH or self.config().source == "sample":
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

    def offered_data(self) -> Any | None:
        """Return the data of a file that was declared public and loaded in Teach in this session; None if there are none."""
        return st.session_state.get(f"public {self.key}")

    def loaded(self) -> tuple[LoadedData, Any] | None:
        """Return the data last loaded in Curate in this session, and the configuration that they had then; None if there are none."""
        return st.session_state.get(f"loaded {self.key}")

    def write_address(self) -> None:
        """Write the configuration into the address bar, unless it was the last to be written there and the browser has it.

        Either alone says too little: an event may bring the address of before the last change.
        """
        query, written = to_query(self.config()), f"{self.key} address"
        if getattr(self.config(), "mode", TEACH) == CURATE:
            query[DRAFT] = str(st.session_state.get(DRAFT_WORD, ""))
        if st.query_params.to_dict() != query or st.session_state.get(written) != query:
            st.query_params.from_dict(query)
            st.session_state[written] = query


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
    return f"curator truth {data.digest}"


def truth_wanted(data: LoadedData) -> bool:
    """Return whether the curator requested to see this dataset's truth."""
    return bool(st.session_state.get(truth_key(data), False))
