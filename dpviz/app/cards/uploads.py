"""Files that are chosen in the browser: in Curate in one drop zone, which asks of each file what it is; elsewhere in fields of their own.

A file of the private data is shown nowhere. Every other one is public, which a person says of it before anything of it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session import cached
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out, name_content, widget_for
from dpviz.app.state.toml import file_name
from dpviz.data.reading.formats import is_table
from dpviz.data.reading.safety import FORMATS
from dpviz.data.roles import suspect_persons
from dpviz.errors import DpvizError
from dpviz.view.escape import markdown

Kept = tuple[str, bytes]
"""Name and bytes of a file. The session keeps them, because Streamlit empties an upload widget when the user visits another page."""
_HELP = (
    "Private data, and the public files that say where they are counted, all at once if you like: CSV, GeoJSON, GeoPackage, GeoParquet,"
    " FlatGeobuf or a zipped Shapefile. For others, dpviz check FILE says what converts them."
)


def upload_types(*, tables: bool = False) -> tuple[str, ...]:
    """Return the endings of files that may be uploaded, without their points; those of tables alone, if `tables`."""
    return tuple(ending.removeprefix(".") for ending, name in FORMATS.items() if is_table(name) or not tables)


@dataclass(frozen=True, kw_only=True)
class Role:
    """What a file may be.

    Attributes:
        slot: beginning of the key under which the session keeps it; "" for points.
        words: what it is, as an answer, such as "Public: regions".
        digest: of the file that a person said to be that before, such as before a reload; "" for none.
        named: name of the file that is expected: that of a draft, or of an opened configuration.
        when_chosen: called with the name of a file that is chosen, and with None when it is removed.
    """

    slot: str
    words: str
    digest: str = ""
    named: str | None = None
    when_chosen: Callable[[str | None], object] = lambda _: None

    @property
    def kept(self) -> Kept | None:
        """The file that is chosen; None without one."""
        return kept_file(self.slot)

    def keep(self, kept: Kept | None) -> None:
        """Keep a file as the one that is chosen, or none."""
        st.session_state[_slot(self.slot)] = kept
        self.when_chosen(None if kept is None else kept[0])


def kept_file(role: str) -> Kept | None:
    """Return the file that is chosen for a role; None without one."""
    return st.session_state.get(_slot(role))


def _slot(role: str) -> str:
    return f"{role} uploaded".strip()


@dataclass(frozen=True, kw_only=True)
class DropZone:
    """The drop zone of Curate, with what a file may be. A file is private until something else is said of it.

    Attributes:
        page: state of the page.
        private: the private data; None where they are found by a path.
        public: what else a file may be.
    """

    page: FamilyState
    private: Role | None
    public: Sequence[Role]

    @property
    def roles(self) -> list[Role]:
        """What a file may be, the private data first."""
        return [*([] if self.private is None else [self.private]), *self.public]

    @property
    def undecided(self) -> list[Kept]:
        """The files of which it is not known yet what they are."""
        return st.session_state.setdefault(f"{self.page.prefix}undecided", [])  # type: ignore[no-any-return]

    def show(self, cards: Cards) -> None:
        """Show the drop zone, and of each file what it is; say what is not known yet."""
        refuse_in_class("files")
        chosen = {kept[0] for kept in (*(role.kept for role in self.roles), *self.undecided) if kept is not None}
        for role in self.roles:
            if role.named and role.kept is None and file_name(role.named) not in chosen:
                st.caption(f":orange[Choose {markdown(file_name(role.named))} again: the file itself is never kept.]")
        turn = f"{self.page.prefix}dropped"
        key = f"{turn} {st.session_state.setdefault(turn, 0)}"

        def take() -> None:
            for file in st.session_state[key]:
                self._place((file.name, file.getvalue()))
            st.session_state[turn] += 1  # an empty drop zone: the files are listed below it

        st.file_uploader("Files", upload_types(), accept_multiple_files=True, key=key, on_change=take, help=_HELP)
        for role in self.roles:
            if role.kept is not None:
                self._show_file(role.kept, role, cards)
        for kept in self.undecided:
            self._show_file(kept, None, cards)
            cards.ask(FILES, f"Say what {kept[0]} is, or remove it.")

    def _place(self, kept: Kept) -> None:
        """Keep a new file as what it was said to be before, or as the private data if there are none; otherwise it is undecided."""
        digest = cached.digest_of(kept[1])
        known = next((role for role in self.public if role.digest == digest), None)
        if known is not None:
            known.keep(kept)
        elif self.private is not None and self.private.kept is None:
            self.private.keep(kept)
        elif kept not in self.undecided:
            self.undecided.append(kept)

    def _show_file(self, kept: Kept, role: Role | None, cards: Cards) -> None:
        """Show a file with the question what it is, and the button that removes it."""
        name, body = kept
        slot = "undecided" if role is None else role.slot
        key, roles = f"{self.page.prefix}{slot} {name_content(cached.digest_of(body))}", {role.words: role for role in self.roles}
        with st.container(border=True):
            left, right = st.columns([4, 1], vertical_alignment="center")
            left.markdown(f"**{markdown(name)}**")
            right.button("Remove", key=f"remove {key}", type="tertiary", on_click=carry_out(partial(self._move, kept, role, None)))
            shown = widget_for(f"what {key}", None if role is None else role.words, lambda text: self._move(kept, role, roles.get(text)))
            st.segmented_control("What is it?", list(roles), required=role is not None, **shown)
            if role is not None and role != self.private and not _confirm_public(kept, role.slot):
                cards.ask(FILES, f"Say whether everybody may see each line of {name}, or that it is private.")

    def _move(self, kept: Kept, old: Role | None, new: Role | None) -> None:
        """Keep a file as something else, or remove it. What was there before is undecided, and a single undecided file is private again."""
        undecided = self.undecided
        if old is None:
            undecided.remove(kept)
        else:
            old.keep(None)
        if new is not None:
            if new.kept is not None and new.kept not in undecided:
                undecided.append(new.kept)
            new.keep(kept)
        if len(undecided) == 1 and self.private is not None and self.private.kept is None:
            self.private.keep(undecided.pop())


def _confirm_public(kept: Kept, slot: str) -> bool:
    """Of a public file that looks like private data want a tick before anything of it is shown; return whether it may be.

    It looks so if a column has a word for people, or if its places are points, such as homes.
    """
    name, body = kept
    digest = cached.digest_of(body)
    try:
        columns = suspect_persons(cached.inspect_regions_file(digest, name, body).columns)
        if not (columns or cached.regions_hold_points(digest, name, body)):
            return True
    except DpvizError:  # what reads the file says so
        return True
    looks = (
        f"It has a column {markdown(columns[0])}, which looks like ids of people." if columns else "Its places are points, as homes are."
    )
    st.warning(f"{looks} A file of people is private, however few its columns are.")
    return st.checkbox("Everybody may see each line of it", key=_confirmed(kept, slot), persist_state="session")


def _confirmed(kept: Kept, slot: str) -> str:
    return f"seen by everybody {slot} {cached.digest_of(kept[1])}"


def ask_for_file(
    page: FamilyState | None,
    title: str,
    types: tuple[str, ...],
    role: str,
    text: str,
    *,
    named: str | None = None,
    what: str = "file",
    when_chosen: Callable[[str | None], object] = lambda _: None,
    asks_if_public: bool = True,
) -> Kept | None:
    """Return a file; None until it is chosen and said to be public. In Curate the drop zone asks for it, elsewhere a field right here.

    Args:
        page: state of the page; None where there is no drop zone.
        title: of the widget.
        types: endings of the files that may be chosen.
        role: beginning of the keys of the widget and of what is kept; "" for that of points.
        text: help of the widget.
        named: name of the file that is expected: that of a draft, or of an opened configuration.
        what: what it is, such as "file of regions".
        when_chosen: called with the name of a file that is chosen, and with None when it is removed.
        asks_if_public: whether to ask right here if the file is public.
    """
    refuse_in_class("files")
    if page is not None and page.drops_files:
        kept = kept_file(role)
        may_be_shown = kept is None or not asks_if_public or st.session_state.get(_confirmed(kept, role), True)
        return kept if may_be_shown else None
    key = f"{role} file".strip()
    chosen = Role(slot=role, words="", when_chosen=when_chosen)

    def keep() -> None:
        file = st.session_state[key]
        chosen.keep(None if file is None else (file.name, file.getvalue()))

    if named and chosen.kept is None:
        st.caption(f":orange[Choose {markdown(file_name(named))} again: the {what} itself is never kept.]")
    st.file_uploader(title, types, key=key, on_change=keep, help=text)
    kept = chosen.kept
    if kept is not None and st.session_state[key] is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"{title}: kept from before.")
            st.button("Forget it", key=f"{role} forget", on_click=carry_out(partial(chosen.keep, None)))
    if kept is None or not asks_if_public:
        return kept
    is_public = f"public {role} file {cached.digest_of(kept[1])}"
    if st.checkbox("This file is already public", key=is_public, persist_state="session"):
        return kept
    st.info("Nothing of it is used before you say that it is public.")
    return None
