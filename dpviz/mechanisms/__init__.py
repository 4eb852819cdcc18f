"""The mechanisms and their common base. A mechanism's release is the only step from private counts to public releases.

Each method is one file in `points/`, `trips/` or `areas/`. Code that knows no mechanism (noise, medians, least squares)
belongs in `dpviz.privacy`.
"""

from typing import Any

from dpviz.families import FAMILIES
from dpviz.mechanisms.areas.base import AreaMechanism as AreaMechanism
from dpviz.mechanisms.base import AnyMechanism as AnyMechanism
from dpviz.mechanisms.base import Mechanism as Mechanism
from dpviz.mechanisms.base import Settings as Settings
from dpviz.mechanisms.base import setting as setting
from dpviz.mechanisms.points.base import PointMechanism as PointMechanism
from dpviz.mechanisms.trips.base import TripMechanism as TripMechanism
from dpviz.registry import Registries

# Every mechanism of this package, in the order of menus: a new one is a line here, and found by its base.
# isort: off
from dpviz.mechanisms.points.path_tree import PathTree as PathTree
from dpviz.mechanisms.points.uniform_grid import UniformGrid as UniformGrid
from dpviz.mechanisms.points.quadtree import Quadtree as Quadtree
from dpviz.mechanisms.points.privtree import PrivTree as PrivTree
from dpviz.mechanisms.points.htf import Htf as Htf
from dpviz.mechanisms.points.kdtree import Kdtree as Kdtree
from dpviz.mechanisms.points.hilbert_tree import HilbertTree as HilbertTree
from dpviz.mechanisms.points.adaptive_grid import AdaptiveGrid as AdaptiveGrid
from dpviz.mechanisms.points.identity import Identity as Identity
from dpviz.mechanisms.points.privelet import Privelet as Privelet
from dpviz.mechanisms.points.dawa import Dawa as Dawa
from dpviz.mechanisms.points.tuned import TunedGrid as TunedGrid, Tuned as Tuned
from dpviz.mechanisms.trips.fitted_tree import FittedTree as FittedTree
from dpviz.mechanisms.trips.top_down import TopDown as TopDown
from dpviz.mechanisms.trips.flat_gaussian import FlatGaussian as FlatGaussian
from dpviz.mechanisms.trips.stability_histogram import StabilityHistogram as StabilityHistogram
from dpviz.mechanisms.areas.region_tree import RegionTree as RegionTree
from dpviz.mechanisms.areas.flat import FlatAreas as FlatAreas
from dpviz.mechanisms.areas.cross_tree import CrossTree as CrossTree

# References that are NOT PRIVATE.
from dpviz.mechanisms.references import ExactKdtree as ExactKdtree, ExactTunedGrid as ExactTunedGrid
from dpviz.mechanisms.points.contrasts import SuppressedCounts as SuppressedCounts, RoundedCounts as RoundedCounts
from dpviz.mechanisms.points.contrasts import MergedCells as MergedCells
from dpviz.mechanisms.points.moved import JitteredPoints as JitteredPoints
from dpviz.mechanisms.points.planar_laplace import PlanarLaplace as PlanarLaplace
from dpviz.mechanisms.trips.contrasts import SuppressedTrips as SuppressedTrips, RoundedTrips as RoundedTrips, MergedTrips as MergedTrips
from dpviz.mechanisms.areas.contrasts import SuppressedAreas as SuppressedAreas, RoundedAreas as RoundedAreas, MergedAreas as MergedAreas
# isort: on


def _list_kinds(base: type[Any]) -> tuple[type[Any], ...]:
    """List the mechanisms above that have a base; those of a part of the menu follow each other."""
    classes: list[Any] = [value for value in globals().values() if isinstance(value, type)]
    kinds = [kind for kind in classes if issubclass(kind, base) and kind is not base]
    groups = list(dict.fromkeys(kind.menu_group for kind in kinds))
    return tuple(sorted(kinds, key=lambda kind: groups.index(kind.menu_group)))


POINT_KINDS, TRIP_KINDS, AREA_KINDS = map(_list_kinds, (PointMechanism, TripMechanism, AreaMechanism))
"""The mechanisms of each family, in the order of menus. A new one needs a file and a line above, or an entry point of another package."""

MECHANISMS = Registries(lambda: {name: family.mechanisms for name, family in FAMILIES.items()})
"""Every private mechanism by key, those of other packages included."""

REFERENCES = Registries(lambda: {name: {kind.key: kind for kind in family.references} for name, family in FAMILIES.items()})
"""Mechanisms that are NOT PRIVATE, by key: for teaching what privacy costs. Their releases refuse to be published."""
