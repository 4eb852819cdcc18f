"""The mechanisms and their common base. A mechanism's release is the only step from private counts to public releases.

Each method is one file in `points/`, `trips/` or `areas/`. Code that knows no mechanism (noise, medians, least squares)
belongs in `dpviz.privacy`.
"""

from dpviz.data.areas import AreaCounts
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.mechanisms.areas.base import AreaMechanism
from dpviz.mechanisms.areas.contrasts import MergedAreas, RoundedAreas, SuppressedAreas
from dpviz.mechanisms.areas.flat import FlatAreas
from dpviz.mechanisms.areas.region_tree import RegionTree
from dpviz.mechanisms.base import AnyFamily, AnyMechanism, Family, Mechanism, Registry, Settings, setting
from dpviz.mechanisms.points.adaptive_grid import AdaptiveGrid
from dpviz.mechanisms.points.base import PointMechanism
from dpviz.mechanisms.points.contrasts import MergedCells, RoundedCounts, SuppressedCounts
from dpviz.mechanisms.points.dawa import Dawa
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.mechanisms.points.htf import Htf
from dpviz.mechanisms.points.identity import Identity
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.moved import JitteredPoints
from dpviz.mechanisms.points.path_tree import PathTree
from dpviz.mechanisms.points.planar_laplace import PlanarLaplace
from dpviz.mechanisms.points.privelet import Privelet
from dpviz.mechanisms.points.privtree import PrivTree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.mechanisms.points.tuned import Tuned, TunedGrid
from dpviz.mechanisms.points.uniform_grid import UniformGrid
from dpviz.mechanisms.references import ExactKdtree, ExactTunedGrid
from dpviz.mechanisms.trips.base import FlowMechanism
from dpviz.mechanisms.trips.contrasts import MergedFlows, RoundedFlows, SuppressedFlows
from dpviz.mechanisms.trips.fitted_tree import FittedTree
from dpviz.mechanisms.trips.flat_gaussian import FlatGaussian
from dpviz.mechanisms.trips.stability_histogram import StabilityHistogram
from dpviz.mechanisms.trips.top_down import TopDown
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

POINT_FAMILY: Family[PointMechanism] = Family(
    name="points",
    data=PointCounts,
    frame=Domain,
    base=PointMechanism,  # type: ignore[type-abstract]
    own=(
        PathTree,
        UniformGrid,
        Quadtree,
        PrivTree,
        Htf,
        Kdtree,
        HilbertTree,
        AdaptiveGrid,
        Identity,
        Privelet,
        Dawa,
        TunedGrid,
        Tuned,
    ),
    group="dpviz.mechanisms",
    references=(ExactKdtree, ExactTunedGrid, SuppressedCounts, RoundedCounts, MergedCells, JitteredPoints, PlanarLaplace),
    usual=("path_tree", "quadtree", "uniform_grid"),
)
TRIP_FAMILY: Family[FlowMechanism] = Family(
    name="trips",
    data=Flows,
    frame=Regions,
    base=FlowMechanism,  # type: ignore[type-abstract]
    own=(FittedTree, TopDown, FlatGaussian, StabilityHistogram),
    group="dpviz.flow_mechanisms",
    references=(SuppressedFlows, RoundedFlows, MergedFlows),
    usual=("fitted_tree", "top_down", "flat_gaussian", "stability_histogram"),
)
AREA_FAMILY: Family[AreaMechanism] = Family(
    name="areas",
    data=AreaCounts,
    frame=Regions,
    base=AreaMechanism,  # type: ignore[type-abstract]
    own=(RegionTree, FlatAreas),
    group="dpviz.area_mechanisms",
    references=(SuppressedAreas, RoundedAreas, MergedAreas),
    usual=("region_tree", "flat"),
)

POINT_MECHANISMS = POINT_FAMILY.mechanisms
"""Every private point mechanism by key. A new one needs a file and its name in `own` above, or an entry point of another package."""

FLOW_MECHANISMS = TRIP_FAMILY.mechanisms
"""Every private trip mechanism by key, as for points."""

AREA_MECHANISMS = AREA_FAMILY.mechanisms
"""Every private mechanism of areas by key, as for points."""

REFERENCES = {reference.key: reference for reference in POINT_FAMILY.references}
"""Point references that are NOT PRIVATE, by key: for teaching what privacy costs. Their releases refuse to be published."""

FLOW_REFERENCES = {reference.key: reference for reference in TRIP_FAMILY.references}
"""Trip references that are NOT PRIVATE, by key, as for points."""

AREA_REFERENCES = {reference.key: reference for reference in AREA_FAMILY.references}
"""References of areas that are NOT PRIVATE, by key, as for points."""

FAMILIES: dict[str, AnyFamily] = {family.name: family for family in (POINT_FAMILY, TRIP_FAMILY, AREA_FAMILY)}
"""Every family by name. Another kind of private data needs another family."""


def family_of(data: object) -> AnyFamily | None:
    """Return the family of mechanisms that take these private data; None for other objects.

    >>> family_of(PointCounts.from_matrix([[1, 0], [0, 2]])).name
    'points'
    """
    return next((family for family in FAMILIES.values() if isinstance(data, family.data)), None)


__all__ = [
    "AREA_FAMILY",
    "AREA_MECHANISMS",
    "AREA_REFERENCES",
    "FAMILIES",
    "FLOW_MECHANISMS",
    "FLOW_REFERENCES",
    "POINT_FAMILY",
    "POINT_MECHANISMS",
    "REFERENCES",
    "TRIP_FAMILY",
    "AdaptiveGrid",
    "AnyFamily",
    "AnyMechanism",
    "AreaMechanism",
    "Dawa",
    "ExactKdtree",
    "ExactTunedGrid",
    "Family",
    "FittedTree",
    "FlatAreas",
    "FlatGaussian",
    "FlowMechanism",
    "HilbertTree",
    "Htf",
    "Identity",
    "JitteredPoints",
    "Kdtree",
    "Mechanism",
    "MergedAreas",
    "MergedCells",
    "MergedFlows",
    "PathTree",
    "PlanarLaplace",
    "PointMechanism",
    "PrivTree",
    "Privelet",
    "Quadtree",
    "RegionTree",
    "Registry",
    "RoundedAreas",
    "RoundedCounts",
    "RoundedFlows",
    "Settings",
    "StabilityHistogram",
    "SuppressedAreas",
    "SuppressedCounts",
    "SuppressedFlows",
    "TopDown",
    "Tuned",
    "TunedGrid",
    "UniformGrid",
    "family_of",
    "setting",
]
