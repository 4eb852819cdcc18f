"""Pages as typed values in tests: made and changed by the names of their parts alone, whichever of draft, run and view has them."""

from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction

from dpviz.app.cards.text_format import propose_text_format
from dpviz.app.session.cached import digest_of, named_file
from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import kind_of
from dpviz.app.state.links import read_link
from dpviz.app.state.page import usual_page
from dpviz.app.state.parts import Files
from dpviz.app.state.run import Run
from dpviz.app.state.values import FURTHER
from dpviz.app.state.view import Pane
from dpviz.errors import DpvizError
from dpviz.privacy.budget import exact
from dpviz.publishing.config import DataKeys

_OF_DRAFT, _OF_RUN = ({field.name for field in fields(kind)} for kind in (Draft, Run))


def page_with(family, **parts):
    """The page of a family as it opens, with other parts."""
    return changed_page(usual_page(kind_of(family)), **parts)


def changed_page(page, **parts):
    """A page with other parts: those of its first run, `second` as its second one, and `left` and `shown` as what the maps show."""
    runs = [replace(page.draft.run, **{name: _typed(name, parts.pop(name)) for name in _OF_RUN & parts.keys()}), *page.draft.runs[1:]]
    runs[1:] = [parts.pop("second")] if "second" in parts else runs[1:]
    draft = replace(page.draft, runs=tuple(runs), **{name: parts.pop(name) for name in _OF_DRAFT & parts.keys()})
    view = page.view
    if "left" in parts:
        left = parts.pop("left")
        view = replace(view, panes=view.with_pane(0, Pane(run=1) if left == FURTHER[0] else Pane(shows=left)))
    if "shown" in parts:
        view = replace(view, panes=view.with_shown(parts.pop("shown")))
    return replace(page, draft=draft, view=replace(view, **parts))


def _typed(name, value):
    return exact(value, name) if name in ("epsilon", "delta", "rho") and value is not None else value


def page_of_link(kind, link):
    """The page of a link; the mode, which no link carries, is taken from it all the same."""
    link = dict(link)
    mode = link.pop("mode", "Teach")
    return changed_page(read_link(kind, link), mode=mode)


def files_with(name, content, *, mode="Curate", whom=None, **data):
    """The answers for an uploaded file: how it seems to be written, and keys of [data] that were said."""
    key = "trips" if "origin" in data or name.startswith("trips") else "points"
    with suppress(DpvizError):
        data = {**propose_text_format(named_file(name, content), name), **data}
    return Files(data=DataKeys(**{key: name, **data}), digest=digest_of(content), whom=whom, said_in_teach=mode == "Teach")


def run_with(family, **parts):
    """The first run of a page as it opens, with other parts."""
    return page_with(family, **parts).draft.run


def change(app, key, **parts):
    """Change the page that an app holds under a key."""
    app.session_state[key] = changed_page(app.session_state[key], **parts)


def flat(page):
    """The parts of a page by name, as links and older versions know them."""
    level = {"zoom": page.view.level} if page.draft.kind.level == "zoom" else {"level": page.view.level}
    run = {name: _plain(getattr(page.draft.run, name)) for name in _OF_RUN} | {"run": page.draft.run.seed}
    left = page.view.panes[0]
    maps = {"left": FURTHER[0] if left.run else left.shows, "shown": page.view.shown, "editing": bool(page.view.edited)}
    return vars(page.view) | vars(page.draft) | run | maps | level


def _plain(value):
    return float(value) if isinstance(value, Fraction) else value
