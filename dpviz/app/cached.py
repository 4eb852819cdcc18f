"""Loading that is worth keeping between reruns, keyed on content. Releases are never cached: a draw is a button."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import streamlit as st

from dpviz.data.load import PointsFile, inspect_points, read_points
from dpviz.data.points import PointCounts
from dpviz.data.samples import SAMPLES, load_sample
from dpviz.space.domain import Domain

Options = tuple[tuple[str, object], ...]


def digest_of(content: bytes) -> str:
    """A digest of a file's whole content; one changed byte gives another."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@st.cache_resource(max_entries=6, show_spinner="Loading the sample ...")
def sample(key: str, size: int | None, order: int) -> PointCounts:
    """A public sample, counted; shared by all sessions."""
    frame = SAMPLES[key].domain
    return load_sample(key, size=size, domain=Domain(bounds=frame.bounds, crs=frame.crs, order=order))


@st.cache_resource(max_entries=4, scope="session", show_spinner="Looking at the file ...")
def inspected(digest: str, name: str, _content: bytes) -> PointsFile:  # noqa: ARG001
    """What a file says about itself; `digest` stands for the content in the key."""
    return inspect_points(named(name, _content))


@st.cache_resource(max_entries=2, scope="session", show_spinner="Counting the points ...")
def counted(digest: str, name: str, _content: bytes, domain: Domain, options: Options) -> PointCounts:  # noqa: ARG001
    """A file's points on a domain; `digest` stands for the content in the key."""
    return read_points(named(name, _content), domain=domain, **dict(options))  # type: ignore[arg-type]


def named(name: str, content: bytes) -> io.BytesIO:
    """Bytes as an open file that has a name, whose ending tells the format."""
    file = io.BytesIO(content)
    file.name = Path(name).name
    return file
