"""See what a differentially private release of locations would look like, then publish it safely.

The whole way, from private points to an answer:

>>> import numpy as np
>>> import dpviz as dv

A public frame, declared and never taken from the data; private points, counted on its lattice.

>>> domain = dv.Domain(bounds=(0.0, 0.0, 16.0, 16.0), crs=None, order=4)
>>> x, y = np.random.default_rng(1).normal([[5.0], [9.0]], 2.0, (2, 1000))
>>> points = dv.PointCounts.from_xy(x, y, domain=domain)

A mechanism spends a budget once; a seed makes a simulation, `Entropy.system()` something that may be published.

>>> release = dv.Quadtree(height=4).release(points, dv.PureBudget(0.5), dv.Entropy.seeded(7))
>>> release.receipt.spent == release.receipt.total
True

A release holds nothing private: ask it anything, as often as you like.

>>> count, stddev = release.answer([[0, 0, 8, 16]], spread=True)
>>> bool(abs(count[0] - 930) < 4 * stddev[0])
True
>>> release.to_frame(level=2).columns.tolist()[:3]
['partition_id', 'level', 'count_noisy']

Trips go the same way: public nested regions, private trips between them, a mechanism, a release.

>>> import pandas as pd
>>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
>>> regions = dv.Regions.from_table(table, levels=["state", "town"])
>>> trips = pd.DataFrame({"origin": ["a", "b", "c"], "destination": ["c", "c", "a"], "count": [900, 40, 500]})
>>> flows = dv.Flows.from_table(trips, regions=regions)
>>> released = dv.TopDown().release(flows, dv.ApproxBudget(2.0, 1e-6), dv.Entropy.seeded(7))
>>> released.level("state")["count"].sum() == released.level("town")["count"].sum() == 1440
np.True_

What was drawn from the operating system's entropy may be published: files, and a manifest by which a stranger can judge them.

>>> import tempfile
>>> from pathlib import Path
>>> private = dv.Quadtree(height=4).release(points, dv.PureBudget(0.5), dv.Entropy.system())
>>> words = dict(name="Walks", curator="A town", description="Made up.", region="A plane", intended_use="An example")
>>> manifest = dv.describe(private, dv.Publication(**words, draws=1, truth_seen=False))
>>> with tempfile.TemporaryDirectory() as around:
...     folder = dv.write_release(private, Path(around) / "walks", manifest)
...     dv.read_release(folder).receipt == private.receipt
True
"""

import importlib.metadata
import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("dpviz needs Python 3.11 or newer; this is Python %d.%d." % sys.version_info[:2])  # noqa: UP031

from dpviz.data.areas import AreaCounts
from dpviz.data.counting.files import read_areas, read_flows, read_points
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.data.reading.flows import inspect_flows
from dpviz.data.reading.outline import read_outline, read_polygons
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.regions import inspect_regions, read_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat, detect_text_format
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError, RefusedError, SettingError
from dpviz.evaluation.area_metrics import evaluate_areas
from dpviz.evaluation.audits import audit_all, audit_mechanism
from dpviz.evaluation.compare import compare
from dpviz.evaluation.flow_metrics import evaluate_flows
from dpviz.evaluation.metrics import evaluate, expected_error
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.mechanisms import (
    AREA_MECHANISMS,
    FLOW_MECHANISMS,
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
    Kdtree,
    PathTree,
    PointMechanism,
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

try:
    __version__ = importlib.metadata.version("dpviz")
    """The installed version; "unknown" where the package is imported from a folder that was never installed."""
except importlib.metadata.PackageNotFoundError:
    __version__ = "unknown"

__all__ = [
    "AREA_MECHANISMS",
    "AREA_SAMPLES",
    "FLOW_MECHANISMS",
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
    "Kdtree",
    "Ledger",
    "Limits",
    "Mechanism",
    "PathTree",
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
    "SettingError",
    "StabilityHistogram",
    "Study",
    "Terms",
    "TextFormat",
    "TopDown",
    "Tuned",
    "TunedGrid",
    "UniformGrid",
    "ZcdpBudget",
    "audit_all",
    "audit_mechanism",
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
    "inspect_flows",
    "inspect_points",
    "inspect_regions",
    "load_area_sample",
    "load_flow_sample",
    "load_sample",
    "mask_outside",
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
    "setting",
    "summary",
    "tidy",
    "verdict",
    "write_release",
]
