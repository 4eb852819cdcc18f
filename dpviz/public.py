"""What `import dpviz as dv` offers. The package imports all of it when the first of these names is used."""

import dpviz.papers  # noqa: F401  (for dv.papers.run)
from dpviz.data.areas import AreaCounts
from dpviz.data.counting.warned import read_areas, read_points, read_trips
from dpviz.data.points import PointCounts
from dpviz.data.reading.outline import land_outline, read_outline, read_polygons
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.regions import inspect_regions, read_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat, detect_text_format
from dpviz.data.reading.trips import inspect_trips
from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError, RefusedError, SettingError, UnreadColumnsWarning
from dpviz.evaluation.area_metrics import evaluate_areas
from dpviz.evaluation.attacks.differencing import recover_hidden
from dpviz.evaluation.attacks.game import guess_bound, membership_bound
from dpviz.evaluation.attacks.rounding import bound_counts
from dpviz.evaluation.audits import audit, audit_all
from dpviz.evaluation.compare import compare
from dpviz.evaluation.metrics import evaluate_points, expected_error
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import (
    AREA_FAMILY,
    POINT_FAMILY,
    REFERENCES,
    TRIP_FAMILY,
    AdaptiveGrid,
    AreaMechanism,
    Dawa,
    ExactKdtree,
    ExactTunedGrid,
    FittedTree,
    FlatAreas,
    FlatGaussian,
    HilbertTree,
    Htf,
    Identity,
    JitteredPoints,
    Kdtree,
    MergedAreas,
    MergedCells,
    MergedTrips,
    PathTree,
    PlanarLaplace,
    PointMechanism,
    Privelet,
    PrivTree,
    Quadtree,
    RegionTree,
    RoundedAreas,
    RoundedCounts,
    RoundedTrips,
    StabilityHistogram,
    SuppressedAreas,
    SuppressedCounts,
    SuppressedTrips,
    TopDown,
    TripMechanism,
    Tuned,
    TunedGrid,
    UniformGrid,
)
from dpviz.mechanisms.base import Mechanism, setting
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.privacy.receipt import Receipt
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.publishing.in_python import publish
from dpviz.release.area_fitness import fitness
from dpviz.release.area_release import AreaRelease
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.release.manifest import Publication, describe
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import verdict
from dpviz.samples.areas import AREA_SAMPLES, load_area_sample
from dpviz.samples.points import POINT_SAMPLES, load_point_sample
from dpviz.samples.trips import TRIP_SAMPLES, load_trip_sample
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from dpviz.space.regions import Regions
from dpviz.space.study_area import mask_outside
from dpviz.space.workloads import random_rectangles

__all__ = [
    "AREA_MECHANISMS",
    "AREA_REFERENCES",
    "AREA_SAMPLES",
    "POINT_MECHANISMS",
    "POINT_SAMPLES",
    "REFERENCES",
    "TRIP_MECHANISMS",
    "TRIP_REFERENCES",
    "TRIP_SAMPLES",
    "AdaptiveGrid",
    "ApproxBudget",
    "AreaCounts",
    "AreaMechanism",
    "AreaRelease",
    "BudgetError",
    "CellMask",
    "Dawa",
    "Domain",
    "DomainError",
    "DpvizError",
    "Entropy",
    "ExactKdtree",
    "ExactTunedGrid",
    "FittedTree",
    "FlatAreas",
    "FlatGaussian",
    "HilbertTree",
    "Htf",
    "Identity",
    "InputError",
    "JitteredPoints",
    "Kdtree",
    "Ledger",
    "Limits",
    "Mechanism",
    "MergedAreas",
    "MergedCells",
    "MergedTrips",
    "PathTree",
    "PlanarLaplace",
    "PointCounts",
    "PointMechanism",
    "PrivTree",
    "Privelet",
    "Publication",
    "PureBudget",
    "Quadtree",
    "Receipt",
    "RefusedError",
    "RegionTree",
    "Regions",
    "Release",
    "RoundedAreas",
    "RoundedCounts",
    "RoundedTrips",
    "SettingError",
    "StabilityHistogram",
    "Study",
    "SuppressedAreas",
    "SuppressedCounts",
    "SuppressedTrips",
    "Terms",
    "TextFormat",
    "TopDown",
    "TripCounts",
    "TripMechanism",
    "TripRelease",
    "Tuned",
    "TunedGrid",
    "UniformGrid",
    "UnreadColumnsWarning",
    "ZcdpBudget",
    "audit_all",
    "audit_mechanism",
    "bound_counts",
    "compare",
    "describe",
    "detect_text_format",
    "discrete_gaussian",
    "discrete_laplace",
    "evaluate",
    "evaluate_areas",
    "evaluate_trips",
    "expected_error",
    "fitness",
    "frontier",
    "guess_bound",
    "inspect_points",
    "inspect_regions",
    "inspect_trips",
    "land_outline",
    "load_area_sample",
    "load_sample",
    "load_trip_sample",
    "mask_outside",
    "membership_bound",
    "nearest_whole_numbers",
    "publish",
    "random_rectangles",
    "read_areas",
    "read_manifest",
    "read_outline",
    "read_points",
    "read_polygons",
    "read_regions",
    "read_release",
    "read_trips",
    "recover_hidden",
    "setting",
    "summary",
    "tidy",
    "verdict",
    "write_release",
]
