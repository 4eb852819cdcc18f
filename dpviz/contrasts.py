"""`dv.contrasts`: what people do today, and what privacy costs. NOT PRIVATE: nothing of it may be published."""

from dpviz.mechanisms import (
    REFERENCES,
    ExactKdtree,
    ExactTunedGrid,
    JitteredPoints,
    MergedAreas,
    MergedCells,
    MergedTrips,
    PlanarLaplace,
    RoundedAreas,
    RoundedCounts,
    RoundedTrips,
    SuppressedAreas,
    SuppressedCounts,
    SuppressedTrips,
)

__all__ = [
    "REFERENCES",
    "ExactKdtree",
    "ExactTunedGrid",
    "JitteredPoints",
    "MergedAreas",
    "MergedCells",
    "MergedTrips",
    "PlanarLaplace",
    "RoundedAreas",
    "RoundedCounts",
    "RoundedTrips",
    "SuppressedAreas",
    "SuppressedCounts",
    "SuppressedTrips",
]
