"""One method per file: the only door from private to public."""

from importlib.metadata import entry_points
from typing import Any

from dpviz.mechanisms.base import PointMechanism, Settings
from dpviz.mechanisms.identity import Identity
from dpviz.mechanisms.quadtree import Quadtree
from dpviz.mechanisms.uniform_grid import UniformGrid

POINT_MECHANISMS: dict[str, type[Any]] = {
    mechanism.key: mechanism
    for mechanism in (
        Quadtree,
        UniformGrid,
        Identity,
        *(entry.load() for entry in entry_points(group="dpviz.mechanisms")),
    )
}
"""Every private point mechanism by key. A new one is one file and one line here, or an entry point of another package."""

__all__ = ["POINT_MECHANISMS", "Identity", "PointMechanism", "Quadtree", "Settings", "UniformGrid"]
