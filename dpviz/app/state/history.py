"""Undo: the pages before each change. Payments, declarations and looks are in no page, so that undo never takes one back."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dpviz.app.state.linked import names_that_stay
from dpviz.app.state.page import Page

P = TypeVar("P")
MOST_UNDONE = 50  # changes that can be taken back
SECONDS_TOGETHER = 1.5
"""Changes of the same parts that follow one another faster than this are taken back together: a slider makes many."""


@dataclass(frozen=True, kw_only=True)
class History(Generic[P]):
    """What undo goes back to.

    Attributes:
        before: the pages before each change, the oldest first.
        parts: names of the parts of the last change; empty if the next one is a change of its own in any case.
        when: time of the last change, in seconds.

    >>> history = History().keep("a", {"epsilon"}, now=0.0).keep("b", {"epsilon"}, now=1.0).keep("c", {"level"}, now=1.5)
    >>> history.before
    ('a', 'c')
    """

    before: tuple[P, ...] = ()
    parts: frozenset[str] = frozenset()
    when: float = 0.0

    def keep(self, page: P, parts: AbstractSet[str], *, now: float) -> History[P]:
        """Keep a page before a change.

        Args:
            page: as it was.
            parts: names of the parts that change; empty for a change of its own, such as an opened link.
            now: the time, in seconds.
        """
        goes_on = bool(self.before) and bool(parts) and self.parts == parts and now - self.when <= SECONDS_TOGETHER
        before = self.before if goes_on else (*self.before, page)[-MOST_UNDONE:]
        return History(before=before, parts=frozenset(parts), when=now)

    def undo(self) -> tuple[P | None, History[P]]:
        """Return the page before the last change, None if there is none, and the history without it."""
        return (self.before[-1] if self.before else None), History(before=self.before[:-1])


def go_back(before: Page, now: Page) -> Page:
    """Return a page that undo goes back to, with what stays as it is now: the camera and other looks, and what is declared of own files."""

    def with_what_stays(old: Any, new: Any) -> Any:
        return replace(old, **{name: getattr(new, name) for name in names_that_stay(type(new))})

    return Page(draft=with_what_stays(before.draft, now.draft), view=with_what_stays(before.view, now.view))
