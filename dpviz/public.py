"""What `import dpviz as dv` offers. The package imports all of it when the first of these names is used.

What fewer people type is in the rooms: `dv.contrasts`, `dv.attacks`, `dv.mechanisms`, `dv.noise`, `dv.reading` and `dv.evaluation`.
"""

import dpviz.attacks
import dpviz.contrasts
import dpviz.noise
import dpviz.papers
import dpviz.reading  # noqa: F401  (dv.attacks, dv.papers.run and so on)
from dpviz.data.areas import AreaCounts
from dpviz.data.counting.warned import read_areas, read_points, read_trips
from dpviz.data.points import PointCounts
from dpviz.data.reading.outline import land_outline, read_polygons
from dpviz.data.reading.regions import read_regions
from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError, RefusedError, SettingError, UnreadColumnsWarning
from dpviz.evaluation.audits import audit
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import summary, tidy
from dpviz.evaluation.truth import evaluate
from dpviz.mechanisms import (
    MECHANISMS,
    AdaptiveGrid,
    CrossTree,
    Dawa,
    FittedTree,
    FlatAreas,
    FlatGaussian,
    HilbertTree,
    Htf,
    Identity,
    Kdtree,
    PathTree,
    Privelet,
    PrivTree,
    Quadtree,
    RegionTree,
    StabilityHistogram,
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
from dpviz.privacy.receipt import Receipt
from dpviz.privacy.series import Series
from dpviz.publishing.dry_run import expected_errors, find_epsilon
from dpviz.publishing.in_python import publish
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.release.manifest import describe
from dpviz.release.many import read_releases
from dpviz.release.mean_release import MeanRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.publication import Publication
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import verdict
from dpviz.samples.load import load_sample
from dpviz.space.categories import Categories
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from dpviz.space.periods import Period
from dpviz.space.regions import Regions
from dpviz.space.study_area import mask_outside
from dpviz.space.summed import Summed

__all__ = [
    "MECHANISMS",
    "AdaptiveGrid",
    "ApproxBudget",
    "AreaCounts",
    "AreaRelease",
    "BudgetError",
    "Categories",
    "CellMask",
    "CrossRelease",
    "CrossTree",
    "Dawa",
    "Domain",
    "DomainError",
    "DpvizError",
    "Entropy",
    "FittedTree",
    "FlatAreas",
    "FlatGaussian",
    "HilbertTree",
    "Htf",
    "Identity",
    "InputError",
    "Kdtree",
    "Ledger",
    "MeanRelease",
    "Mechanism",
    "PathTree",
    "Period",
    "PointCounts",
    "PointRelease",
    "PrivTree",
    "Privelet",
    "Publication",
    "PureBudget",
    "Quadtree",
    "Receipt",
    "RefusedError",
    "RegionTree",
    "Regions",
    "Series",
    "SettingError",
    "StabilityHistogram",
    "Study",
    "Summed",
    "Terms",
    "TopDown",
    "TripCounts",
    "TripRelease",
    "Tuned",
    "TunedGrid",
    "UniformGrid",
    "UnreadColumnsWarning",
    "ZcdpBudget",
    "audit",
    "compare",
    "describe",
    "evaluate",
    "expected_errors",
    "find_epsilon",
    "land_outline",
    "load_sample",
    "mask_outside",
    "publish",
    "read_areas",
    "read_manifest",
    "read_points",
    "read_polygons",
    "read_regions",
    "read_release",
    "read_releases",
    "read_trips",
    "setting",
    "summary",
    "tidy",
    "verdict",
    "write_release",
]
