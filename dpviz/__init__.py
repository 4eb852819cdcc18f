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

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("dpviz needs Python 3.11 or newer; this is Python %d.%d." % sys.version_info[:2])  # noqa: UP031

from dpviz.data.counting.engines import ENGINES
from dpviz.data.counting.files import read_flows, read_points
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.data.reading.flows import inspect_flows
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.regions import inspect_regions, read_regions
from dpviz.data.reading.safety import Limits
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError, RefusedError, SettingError
from dpviz.evaluation.audits import audit_all, audit_mechanism, audit_targets
from dpviz.evaluation.compare import compare
from dpviz.evaluation.flow_metrics import FlowEvaluation, error_bounds, evaluate_flows
from dpviz.evaluation.matching import Blocking, Holders, block, made_up_holders
from dpviz.evaluation.metrics import Errors, Evaluation, error_by_size, evaluate, expected_error, true_answers, workload_errors
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.mechanisms import (
    FLOW_MECHANISMS,
    POINT_MECHANISMS,
    REFERENCES,
    AdaptiveGrid,
    ExactKdtree,
    ExactTunedGrid,
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
    StabilityHistogram,
    TopDown,
    Tuned,
    TunedGrid,
    UniformGrid,
)
from dpviz.privacy.accounts import Account, Entry, Terms
from dpviz.privacy.audit import AuditPlan, AuditResult, Neighbours, Observation, audit
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.medians import cell_medians, exponential_medians, noisy_mean_medians
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace, gaussian_variance, laplace_variance
from dpviz.privacy.receipt import Receipt, Step
from dpviz.privacy.sampling import amplified_epsilon, amplified_epsilon_in_paper
from dpviz.privacy.smooth import smooth_medians
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.release.files import read_manifest, read_release, write_release, zip_release
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import Publication, describe, manifest_schema
from dpviz.release.point_release import Release
from dpviz.release.verdict import Verdict, verdict
from dpviz.samples.flows import FLOW_SAMPLES, load_flow_sample
from dpviz.samples.points import SAMPLES, gaussian_cluster, load_sample, los_angeles, road_points
from dpviz.space.domain import Domain
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import Regions
from dpviz.space.tree import Tree
from dpviz.space.workloads import area_share, fixed_size, random_rectangles

__all__ = [
    "ENGINES",
    "FLOW_MECHANISMS",
    "FLOW_SAMPLES",
    "POINT_MECHANISMS",
    "REFERENCES",
    "SAMPLES",
    "Account",
    "AdaptiveGrid",
    "ApproxBudget",
    "AuditPlan",
    "AuditResult",
    "Blocking",
    "BudgetError",
    "Domain",
    "DomainError",
    "DpvizError",
    "Entropy",
    "Entry",
    "Errors",
    "Evaluation",
    "ExactKdtree",
    "ExactTunedGrid",
    "FlatGaussian",
    "FlowEvaluation",
    "FlowMechanism",
    "FlowRelease",
    "Flows",
    "HilbertTree",
    "Holders",
    "Htf",
    "Identity",
    "InputError",
    "Kdtree",
    "Ledger",
    "Limits",
    "Neighbours",
    "NodeValues",
    "Observation",
    "PairTree",
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
    "Regions",
    "Release",
    "SettingError",
    "StabilityHistogram",
    "Step",
    "Study",
    "Terms",
    "TopDown",
    "Tree",
    "Tuned",
    "TunedGrid",
    "UniformGrid",
    "Verdict",
    "ZcdpBudget",
    "amplified_epsilon",
    "amplified_epsilon_in_paper",
    "area_share",
    "audit",
    "audit_all",
    "audit_mechanism",
    "audit_targets",
    "block",
    "cell_medians",
    "compare",
    "describe",
    "discrete_gaussian",
    "discrete_laplace",
    "error_bounds",
    "error_by_size",
    "evaluate",
    "evaluate_flows",
    "expected_error",
    "exponential_medians",
    "fixed_size",
    "frontier",
    "gaussian_cluster",
    "gaussian_variance",
    "inspect_flows",
    "inspect_points",
    "inspect_regions",
    "laplace_variance",
    "least_squares",
    "load_flow_sample",
    "load_sample",
    "los_angeles",
    "made_up_holders",
    "manifest_schema",
    "nearest_whole_numbers",
    "noisy_mean_medians",
    "random_rectangles",
    "read_flows",
    "read_manifest",
    "read_points",
    "read_regions",
    "read_release",
    "road_points",
    "smooth_medians",
    "summary",
    "tidy",
    "true_answers",
    "verdict",
    "workload_errors",
    "write_release",
    "zip_release",
]
