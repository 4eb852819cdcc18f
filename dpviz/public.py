"""What `import dpviz as dv` offers. The package imports all of it when the first of these names is used."""

import dpviz.papers  # noqa: F401  (for dv.papers.run)
from dpviz.data.areas import AreaCounts
from dpviz.data.counting.warned import read_areas, read_flows, read_points
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.data.reading.flows import inspect_flows
from dpviz.data.reading.outline import land_outline, read_outline, read_polygons
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.regions import inspect_regions, read_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat, detect_text_format
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError, RefusedError, SettingError, UnreadColumnsWarning
from dpviz.evaluation.area_metrics import evaluate_areas
from dpviz.evaluation.attacks.differencing import recover_hidden
from dpviz.evaluation.attacks.game import guess_bound, membership_bound
from dpviz.evaluation.attacks.rounding import bound_counts
from dpviz.evaluation.audits import audit_all, audit_mechanism
from dpviz.evaluation.compare import compare
from dpviz.evaluation.flow_metrics import evaluate_flows
from dpviz.evaluation.metrics import evaluate, expected_error
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.mechanisms import (
    AREA_MECHANISMS,
    AREA_REFERENCES,
    FLOW_MECHANISMS,
    FLOW_REFERENCES,
    POINT_MECHANISMS,
    REFERENCES,
    AdaptiveGrid,
    AreaMechanism,
    Dawa,
    ExactKdtree,
    ExactTunedGrid,
    FittedTree,
    FlatAreas,
    FlatGaussian,
    FlowMechanism,
    HilbertTree,
    Htf,
    Identity,
    JitteredPoints,
    Kdtree,
    MergedAreas,
    MergedCells,
    MergedFlows,
    PathTree,
    PlanarLaplace,
    PointMechanism,
    Privelet,
    PrivTree,
    Quadtree,
    RegionTree,
    RoundedAreas,
    RoundedCounts,
    RoundedFlows,
    StabilityHistogram,
    SuppressedAreas,
    SuppressedCounts,
    SuppressedFlows,
    TopDown,
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
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import Publication, describe
from dpviz.release.point_release import Release
from dpviz.release.verdict import verdict
from dpviz.samples.areas import AREA_SAMPLES, load_area_sample
from dpviz.samples.flows import FLOW_SAMPLES, load_flow_sample
from dpviz.samples.points import SAMPLES, load_sample
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from dpviz.space.regions import Regions
from dpviz.space.study_area import mask_outside
from dpviz.space.workloads import random_rectangles

__all__ = [
    "AREA_MECHANISMS",
    "AREA_REFERENCES",
    "AREA_SAMPLES",
    "FLOW_MECHANISMS",
    "FLOW_REFERENCES",
    "FLOW_SAMPLES",
    "POINT_MECHANISMS",
    "REFERENCES",
    "SAMPLES",
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
    "FlowMechanism",
    "FlowRelease",
    "Flows",
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
    "MergedFlows",
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
    "RoundedFlows",
    "SettingError",
    "StabilityHistogram",
    "Study",
    "SuppressedAreas",
    "SuppressedCounts",
    "SuppressedFlows",
    "Terms",
    "TextFormat",
    "TopDown",
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
    "evaluate_flows",
    "expected_error",
    "fitness",
    "frontier",
    "guess_bound",
    "inspect_flows",
    "inspect_points",
    "inspect_regions",
    "land_outline",
    "load_area_sample",
    "load_flow_sample",
    "load_sample",
    "mask_outside",
    "membership_bound",
    "nearest_whole_numbers",
    "publish",
    "random_rectangles",
    "read_areas",
    "read_flows",
    "read_manifest",
    "read_outline",
    "read_points",
    "read_polygons",
    "read_regions",
    "read_release",
    "recover_hidden",
    "setting",
    "summary",
    "tidy",
    "verdict",
    "write_release",
]
