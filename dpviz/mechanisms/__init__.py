"""The mechanisms, and what they share: the only step from private counts to public releases.

Each method is one file in `points/` or `trips/`. What knows no mechanism (noise, medians, least squares) belongs in `dpviz.privacy`.
"""

from importlib.metadata import entry_points
from typing import Any

from dpviz.mechanisms.base import FlowMechanism, PointMechanism, Settings
from dpviz.mechanisms.points.adaptive_grid import AdaptiveGrid
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.mechanisms.points.htf import Htf
from dpviz.mechanisms.points.identity import Identity
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.path_tree import PathTree
from dpviz.mechanisms.points.privelet import Privelet
from dpviz.mechanisms.points.privtree import PrivTree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.mechanisms.points.tuned import Tuned, TunedGrid
from dpviz.mechanisms.points.uniform_grid import UniformGrid
from dpviz.mechanisms.references import ExactKdtree, ExactTunedGrid
from dpviz.mechanisms.trips.flat_gaussian import FlatGaussian
from dpviz.mechanisms.trips.stability_histogram import StabilityHistogram
from dpviz.mechanisms.trips.top_down import TopDown

POINT_MECHANISMS: dict[str, type[Any]] = {
    mechanism.key: mechanism
    for mechanism in (
        Quadtree,
        PathTree,
        PrivTree,
        Htf,
        Kdtree,
        HilbertTree,
        AdaptiveGrid,
        UniformGrid,
        TunedGrid,
        Tuned,
        Privelet,
        Identity,
        *(entry.load() for entry in entry_points(group="dpviz.mechanisms")),
    )
}
"""Every private point mechanism by key. A new one is one file and one line here, or an entry point of another package."""

REFERENCES: dict[str, type[Any]] = {reference.key: reference for reference in (ExactKdtree, ExactTunedGrid)}
"""Point references that are NOT PRIVATE, by key: for teaching what privacy costs. Their releases refuse to be published."""

FLOW_MECHANISMS: dict[str, type[Any]] = {
    mechanism.key: mechanism
    for mechanism in (
        TopDown,
        FlatGaussian,
        StabilityHistogram,
        *(entry.load() for entry in entry_points(group="dpviz.flow_mechanisms")),
    )
}
"""Every private trip mechanism by key."""

__all__ = [
    "FLOW_MECHANISMS",
    "POINT_MECHANISMS",
    "REFERENCES",
    "AdaptiveGrid",
    "ExactKdtree",
    "ExactTunedGrid",
    "FlatGaussian",
    "FlowMechanism",
    "HilbertTree",
    "Htf",
    "Identity",
    "Kdtree",
    "PathTree",
    "PointMechanism",
    "PrivTree",
    "Privelet",
    "Quadtree",
    "Settings",
    "StabilityHistogram",
    "TopDown",
    "Tuned",
    "TunedGrid",
    "UniformGrid",
]
