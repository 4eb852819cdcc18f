"""Links: the parameters of a page's address, and the page that they open.

A link is text that a stranger may have written. It carries parameters only, those that the fields of `Draft`, `Run` and `View` name; never
data, never a path. The names of files of one's own are in it only while the files are declared public in a session; the page that it opens
then asks for them by these names. It is read as a whole: if one parameter is not understood, the link is refused in one sentence and
nothing of it is used. Parameters that the page does not have, such as those of a mail program, are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar

from dpviz.app.state.changes import runs_that_count
from dpviz.app.state.kinds import PageKind
from dpviz.app.state.linked import linked_fields, write_text
from dpviz.app.state.page import Page, usual_page
from dpviz.app.state.parts import ChosenRegions, Files
from dpviz.app.state.readers import LONGEST_TEXT, Reader, choice_reader, list_words, number_reader, read_file_name, read_settings, shortest
from dpviz.app.state.run import Run
from dpviz.app.state.values import FURTHER, UPLOAD
from dpviz.app.state.view import Pane
from dpviz.errors import SettingError
from dpviz.families import TRIP_FAMILY
from dpviz.publishing.config import DataKeys
from dpviz.release.older import say_new_names

T = TypeVar("T")
FURTHER_RUNS = ("second", "third", "fourth")
"""Parameters with the runs after the first one."""
LINKED_FILES = {"file": "its data are", "regions": "the regions are", "destinations": "the regions of the destinations are"}
"""Parameters with the names of files that were declared public, and what is in each of them."""
MOST_PANES = len(FURTHER_RUNS) + 1
_MALFORMED = (ValueError, TypeError, OverflowError, RecursionError)  # every error of dpviz is a ValueError
_EDITED = ("False", "True", "2", "3")  # the first two were flags before there were more than two runs


def write_link(page: Page) -> dict[str, str]:
    """Return the parameters of a link to a page: what differs from the page as it opens, and `PageKind.always`.

    What is not chosen or typed yet is not in it.

    >>> from dpviz.app.state.kinds import AREAS
    >>> page = usual_page(AREAS)
    >>> write_link(replace(page, view=replace(page.view, level=2, asked=(3, 5))))
    {'mechanism': 'region_tree', 'asked': '[3,5]', 'level': '2'}
    """
    kind = page.draft.kind
    usual = usual_page(kind)
    first, *others = page.draft.runs
    pairs = ((page.draft, usual.draft), (first, usual.draft.runs[0]), (page.view, usual.view))
    query = {name: text for mine, theirs in pairs for name, text in _write_fields(kind, mine, theirs).items()}
    query |= {name: write_run(kind, run, first) for name, run in zip(FURTHER_RUNS, takewhile(_is_complete, others), strict=False)}
    if page.view.level != usual.view.level or kind.level in kind.always:
        query[kind.level] = str(page.view.level)
    if page.view.edited:
        query["editing"] = _EDITED[page.view.edited]
    return query | _write_panes(page.view.panes, usual.view.panes)


def read_linked_files(kind: PageKind, query: Mapping[str, str]) -> dict[str, str]:
    """Return the names of files that a link to a page says, by parameter; none without one of data.

    Raises:
        SettingError: one is no name.
    """
    reading = Reading(kind=kind, query=query)
    names = {name: str(reading.text(name, read_file_name, "")) for name in LINKED_FILES if name in query}
    reading.refuse()
    return names if "file" in names else {}


def ask_for_files_of_link(page: Page, files: Mapping[str, str]) -> Page:
    """Return a page that asks for uploads of files of these names, as of `read_linked_files`, instead of a sample."""
    data = DataKeys(trips=files["file"]) if page.draft.kind.family is TRIP_FAMILY else DataKeys(points=files["file"])
    ends = ChosenRegions(file=files["destinations"]) if "destinations" in files else None
    regions = ChosenRegions(file=files.get("regions"))
    return replace(page, draft=replace(page.draft, source=UPLOAD, uploaded=Files(data=data), regions=regions, destinations=ends))


def describe_linked_files(files: Mapping[str, str]) -> str:
    """Say which files a link asks for; the names are the words of a stranger, and the text is not escaped."""
    where = list_words([f"{what} in “{files[name]}”" for name, what in LINKED_FILES.items() if name in files])
    them, public = ("these files", "they are") if len(files) > 1 else ("that file", "it is")
    return f"The link says that {where}: choose {them} under Data, and confirm that {public} public."


def _write_fields(kind: PageKind, mine: Any, usual: Any) -> dict[str, str]:
    """Write the fields of a draft, a run or a view that are one parameter each."""
    found = {link.name or name: name for name, link in linked_fields(type(mine), kind).items()}
    return {
        parameter: write_text(getattr(mine, name))
        for parameter, name in found.items()
        if getattr(mine, name) is not None and (parameter in kind.always or getattr(mine, name) != getattr(usual, name))
    }


def _is_complete(run: Run) -> bool:
    return run.mechanism is not None and run.epsilon is not None and run.delta is not None


def write_run(kind: PageKind, run: Run, first: Run) -> str:
    """Write a further run as JSON: its noise where its mechanism has a choice, its seed where it differs from that of the first run."""
    delta = None if run.delta is None else shortest(run.delta)
    parts = {
        "mechanism": run.mechanism,
        "settings": run.settings,
        "epsilon": write_text(run.epsilon),
        "delta": delta if isinstance(delta, float) else write_text(delta),
    }
    has_noise = kind.family.choices[str(run.mechanism)].noise_by_budget or run.noise != first.noise
    parts |= {"noise": run.noise} if has_noise else {}
    return json.dumps(parts | ({"seed": run.seed} if run.seed != first.seed else {}), separators=(",", ":"))


def _write_panes(panes: tuple[Pane, ...], usual: tuple[Pane, ...]) -> dict[str, str]:
    """Write two maps by what they show, where that says all, and otherwise as a list of runs and what is shown of them."""
    if len(panes) == 2 and panes[1].run == 0 and panes[0] in (Pane(run=1), Pane(shows=panes[0].shows)):
        texts = {"left": FURTHER[0] if panes[0].run else panes[0].shows, "shown": panes[1].shows}
        return {name: text for (name, text), pane in zip(texts.items(), usual, strict=True) if text != pane.shows}
    return {"panes": json.dumps([[pane.run, pane.shows] for pane in panes], separators=(",", ":"))}


def read_link(kind: PageKind, query: Mapping[str, str]) -> Page:
    """Read a link to a page.

    Args:
        kind: the page.
        query: the parameters of the address.

    Returns:
        The page as it opens, with what the link says.

    Raises:
        SettingError: a parameter is not understood; the text names all of these and quotes none.

    >>> from dpviz.app.state.kinds import POINTS
    >>> read_link(POINTS, {"epsilon": "1/3", "utm_source": "mail"}).draft.runs[0].epsilon
    Fraction(1, 3)
    >>> read_link(POINTS, {"epsilon": "much", "zoom": "x"})
    Traceback (most recent call last):
    ...
    dpviz.errors.SettingError: Not understood in this link: epsilon and zoom. Nothing of it was used.
    """
    usual, reading = usual_page(kind), Reading(kind=kind, query=query)
    draft = reading.fields(usual.draft)
    first = reading.run(runs_that_count(draft, usual.draft)[0])
    others = [reading.text(name, run_reader(kind, first), None) for name in FURTHER_RUNS]
    view = reading.fields(usual.view)
    panes = _read_panes(reading, usual.view.panes)
    view = replace(
        view,
        panes=panes,
        level=reading.text(kind.level, kind.read_level, usual.view.level),
        edited=reading.text("editing", _EDITED.index, 0),
    )
    reading.refuse()
    runs = (first, *(run for run in others if run is not None))
    missing = max(pane.run for pane in panes) + 1 - len(runs)
    return Page(draft=replace(draft, runs=(*runs, *[first] * missing)), view=view)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A link that is being read.

    Attributes:
        kind: the page.
        query: the parameters.
        refused: names of those that were not understood.
    """

    kind: PageKind
    query: Mapping[str, str]
    refused: list[str] = field(default_factory=list)

    def text(self, name: str, read: Reader, otherwise: Any) -> Any:
        """Read one parameter; return `otherwise` if it is not there or was not understood."""
        if name not in self.query:
            return otherwise
        try:
            if len(self.query[name]) > LONGEST_TEXT:
                raise ValueError
            return read(self.query[name])
        except _MALFORMED:
            self.refused.append(name)
            return otherwise

    def fields(self, usual: T) -> T:
        """Return a draft, a run or a view with the parameters that are one field each."""
        found = linked_fields(type(usual), self.kind)
        values = {name: self.text(link.name or name, link.reader(self.kind), getattr(usual, name)) for name, link in found.items()}
        return replace(usual, **values)  # type: ignore[type-var]

    def run(self, usual: Run) -> Run:
        """Return the first run. Settings that are the page's own, and do not fit the mechanism of the link, are left out."""
        run = self.fields(usual)
        if _can_be_built(self.kind, run):
            return run
        if "settings" in self.query and "settings" not in self.refused:
            self.refused.append("settings")
        return replace(run, settings={})

    def refuse(self) -> None:
        """Raise `SettingError` if a parameter was not understood."""
        if self.refused:
            renamed = say_new_names(self.query["settings"]) if "settings" in self.refused else ""
            said = f"Not understood in this link: {list_words(self.refused)}. Nothing of it was used."
            raise SettingError(" ".join(filter(None, (said, renamed))))


def _can_be_built(kind: PageKind, run: Run) -> bool:
    try:
        run.build(kind.family)
    except _MALFORMED:
        return False
    return True


def run_reader(kind: PageKind, first: Run) -> Callable[[str], Run]:
    """Return a reader of a further run; seed and noise are those of the first run where the text says nothing of them."""

    def read(text: str) -> Run:
        values = read_settings(text)
        if values.keys() - {"noise", "seed"} != {"mechanism", "settings", "epsilon", "delta"}:
            raise ValueError
        parts = linked_fields(Run, kind)
        texts = {name: json.dumps(value) if name == "settings" else str(value) for name, value in values.items()}
        run = replace(first, rho=None, **{name: parts[name].reader(kind)(text) for name, text in texts.items()})
        run.build(kind.family)
        return run

    return read


def _read_panes(reading: Reading, usual: tuple[Pane, ...]) -> tuple[Pane, ...]:
    """Read the maps: two, by what they show, or a list of any of the runs that a link can have."""
    kinds, read_run = reading.kind.shown, number_reader(0, len(FURTHER_RUNS), int)

    def read_all(text: str) -> tuple[Pane, ...]:
        panes = tuple(Pane(run=read_run(str(run)), shows=choice_reader(*kinds)(shows)) for run, shows in json.loads(text))
        if not 1 <= len(panes) <= MOST_PANES:
            raise ValueError
        return panes

    left = reading.text("left", choice_reader(*kinds, FURTHER[0]), usual[0].shows)
    right = reading.text("shown", choice_reader(*kinds), usual[1].shows)
    pair = (Pane(run=1) if left == FURTHER[0] else Pane(shows=left), Pane(shows=right))
    panes: tuple[Pane, ...] = reading.text("panes", read_all, pair)
    return panes
