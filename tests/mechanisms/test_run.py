"""A run refuses what does not fit before it draws any noise, so that no mechanism can forget to."""

from dataclasses import dataclass

import numpy as np
import pytest

import dpviz as dv
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.budget_noise import split_budget
from dpviz.mechanisms.points.base import PointMechanism
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.grids import quadtree
from dpviz.space.tree import remove_descendants
from tests.area_cases import areas_of
from tests.trip_cases import person, regular, trip_counts_of

POINTS = dv.PointCounts.from_matrix(np.ones((4, 4), int))


@dataclass(frozen=True, kw_only=True)
class Careless(PointMechanism):
    """Draws Laplace noise, and looks at neither the budget nor the data."""

    key, title, summary = "careless", "Careless", "Counts the quarters."

    def release(self, points, budget, entropy):
        run, tree = Run.of(self, points, budget, entropy), quadtree(points.domain, 1)
        return self.make_release(run, tree, *self.count_levels(run, tree, run.split([0, 1])))


@pytest.fixture
def nothing_is_drawn(monkeypatch):
    """Fails where noise is drawn."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(measure, name, lambda *_: pytest.fail("noise was drawn"))


@pytest.mark.parametrize("budget", [ZcdpBudget(1), ApproxBudget(1, "1e-6"), ApproxBudget(1, 0), 1.0])
@pytest.mark.usefixtures("nothing_is_drawn")
def test_rho_and_delta_are_refused_where_all_noise_is_laplace(budget):
    with pytest.raises(BudgetError, match=r"Careless takes a PureBudget\(epsilon\)"):
        Careless().release(POINTS, budget, Entropy.seeded(1))
    with pytest.raises(BudgetError, match=r"Careless takes a PureBudget\(epsilon\)"):
        split_budget(budget, Careless(), [1], Sensitivity(contributions=1), gaussian=False)


MASKED = dv.PointCounts.from_matrix(
    np.eye(4, dtype=int), domain=dv.Domain(bounds=(0, 0, 4, 4), crs=None, order=2, mask=dv.CellMask.from_open(np.eye(4) > 0))
)
AREAS, TRIPS = areas_of(regular(2, 3), [1] * 6), trip_counts_of(regular(2), {(0, 1): 6})
REFUSED = {
    "a mask": (Careless(), MASKED, DomainError),
    "areas for points": (Careless(), AREAS, InputError),
    "points for trips": (dv.FlatGaussian(), POINTS, InputError),
    "trips for areas": (dv.FlatAreas(), TRIPS, InputError),
    "weights for other levels": (dv.RegionTree(split="custom", weights=(1, 2, 3)), AREAS, DpvizError),
    "m trips, perhaps fewer": (dv.TopDown(), trip_counts_of(regular(2), {(0, 1): 6}, contributions=2, unit="person"), InputError),
    "two trips of a person": (dv.StabilityHistogram(), trip_counts_of(regular(2), {(0, 1): 6}, **person("bounded", 2)), InputError),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("nothing_is_drawn")
def test_data_that_do_not_fit_are_refused_in_every_family(name):
    mechanism, data, error = REFUSED[name]
    with pytest.raises(error):
        Run.of(mechanism, data, ApproxBudget(1, "1e-5") if mechanism.needs_delta else PureBudget(1), Entropy.seeded(1))


def test_exact_accounting_is_refused_where_leaves_have_several_depths():
    mechanism, tree = dv.Quadtree(height=2), quadtree(POINTS.domain, 2)
    uneven, _ = remove_descendants(tree, np.arange(len(tree)) == 1)
    run = Run.of(mechanism, POINTS, ApproxBudget(1, "1e-6"), Entropy.seeded(1))
    amounts, true = run.split([0, 1, 1]), np.ones(len(uneven), np.int64)
    assert run.conversions[0][1] == "exact"
    with pytest.raises(BudgetError, match="one depth"):
        run.measure_levels(uneven, amounts, true)
