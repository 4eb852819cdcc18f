"""A package outside dpviz with a mechanism of points, one of trips and one of areas, joined by entry points, as if it were installed."""

import importlib
import sys
from contextlib import contextmanager

from dpviz.families import FAMILIES

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

from dpviz.mechanisms import FlatGaussian, PointMechanism, RegionTree, setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import require_pure
from dpviz.space.grids import quadtree


@dataclass(frozen=True, kw_only=True)
class Halves(PointMechanism):
    """Counts the whole domain and its quarters, each with half of epsilon."""

    key: ClassVar[str] = "their_halves"
    title: ClassVar[str] = "Their halves"
    summary: ClassVar[str] = "Counts the whole and its quarters."

    share: float = setting(0.5, "Share of the whole", low=0.1, high=0.9, help="Part of the budget for the whole.")

    def release(self, points, budget, entropy):
        run, tree = Run.of(self, points, budget, entropy), quadtree(points.domain, 1)
        parts = require_pure(budget, self.title).split([self.share, 1 - self.share])
        return self.make_release(run, tree, *self.count_levels(run, tree, parts))


@dataclass(frozen=True, kw_only=True)
class Pairs(FlatGaussian):
    """All pairs, under another name."""

    key: ClassVar[str] = "their_pairs"
    title: ClassVar[str] = "Their pairs"


@dataclass(frozen=True, kw_only=True)
class Areas(RegionTree):
    """Regions of every level, under another name."""

    key: ClassVar[str] = "their_areas"
    title: ClassVar[str] = "Their areas"
'''
ENTRY_POINTS = """[dpviz.mechanisms]
halves = their_mechanisms:Halves
[dpviz.trip_mechanisms]
pairs = their_mechanisms:Pairs
[dpviz.area_mechanisms]
areas = their_mechanisms:Areas
"""


def install(folder, entry_points=ENTRY_POINTS):
    """Write the package and what an installer would write about it."""
    (folder / "their_mechanisms.py").write_text(MODULE)
    info = folder / "their_mechanisms-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-mechanisms\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(entry_points)


@contextmanager
def installed(folder, entry_points=ENTRY_POINTS):
    """The package is there, and found by every registry; afterwards it is gone."""
    install(folder, entry_points)
    sys.path.insert(0, str(folder))
    try:
        look_again()
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("their_mechanisms", None)
        look_again()


def look_again():
    importlib.invalidate_caches()
    for family in FAMILIES.values():
        family.mechanisms.reload()
