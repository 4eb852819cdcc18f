"""Another kind of private data needs a family and its questions, and nothing else: studies, audits and configurations find it.

The family is as small as one can be: counts of areas, a mechanism on them, and what a study asks of its releases.
"""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.errors import SettingError
from dpviz.evaluation.audits import audit, audit_targets
from dpviz.evaluation.compare import compare
from dpviz.evaluation.metrics import error_figures
from dpviz.evaluation.study import Questions, Study
from dpviz.evaluation.tables import summary, tidy
from dpviz.families import FAMILIES, Family, family_of
from dpviz.mechanisms import Quadtree
from dpviz.mechanisms.base import LevelError, Mechanism, setting
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.budget import PureBudget, require_pure
from dpviz.privacy.noise import discrete_laplace, laplace_variance
from dpviz.privacy.receipt import SIMULATION, Receipt, Step
from dpviz.publishing.config import MechanismPart
from dpviz.space.regions import Regions
from tests.mechanisms import test_contract_settings as contract
from tests.trip_cases import regular


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaCounts:
    """(k,) people per finest region, each of whom is counted in `contributions` regions at most. PRIVATE."""

    family: ClassVar[str] = "districts"

    regions: Regions
    count: np.ndarray
    contributions: int = 1
    unit: str = "record"


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaRelease:
    """(k,) noisy people per finest region."""

    regions: Regions
    count: np.ndarray
    variance: float
    receipt: Receipt
    mechanism: str
    settings: dict
    simulation: bool

    @property
    def status(self):
        return SIMULATION if self.simulation else "private"


@dataclass(frozen=True, kw_only=True)
class AreaMechanism(Mechanism[AreaCounts, Regions, AreaRelease]):
    """Base of every mechanism of areas."""

    family: ClassVar[str] = "districts"

    def check_data(self, data):
        self.check(data.regions)

    def depends_on_data(self, release):
        return False

    def level_errors(self, release):
        stddev = release.variance**0.5
        return [LevelError(level=1, of="regions", numbers=len(release.count), stddev=stddev, interval=1.96 * stddev)]

    def audit_pairs(self, budget):
        regions = regular(3)

        def run(count):
            areas = AreaCounts(regions=regions, count=np.array(count))
            return lambda entropy: Observation(numbers=dict(enumerate(self.release(areas, budget, entropy).count.tolist())))

        return [Neighbours(words="one person more", one=run([1, 0, 0]), other=run([0, 0, 0]))]


@dataclass(frozen=True, kw_only=True)
class EveryArea(AreaMechanism):
    """Laplace noise on every area.

    Protects: adding or removing one person.

    Source:
        Made up, for tests.
    """

    key: ClassVar[str] = "every_area"
    title: ClassVar[str] = "Every area"
    summary: ClassVar[str] = "Counts every area with noise."

    threshold: int = setting(0, "Smallest count kept", low=0, high=100, help="Smaller ones become 0.")

    def release(self, areas, budget, entropy):
        budget = require_pure(budget, self.title)
        count = discrete_laplace(areas.count, PureBudget(budget.epsilon), entropy, areas.contributions)
        scale = areas.contributions / budget.epsilon
        step = Step(purpose="counts", amount=budget.epsilon, sensitivity=areas.contributions, noise="discrete Laplace", scale=scale)
        receipt = Receipt(total=budget, steps=(step,), unit=areas.unit, contributions=areas.contributions)
        return AreaRelease(
            regions=areas.regions,
            count=np.where(count < self.threshold, 0, count),
            variance=laplace_variance(scale),
            receipt=receipt,
            mechanism=self.key,
            settings=self.chosen(),
            simulation=entropy.simulation,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaQuestions(Questions):
    """How far the count of every area is off."""

    arrays: ClassVar[tuple[str, ...]] = ("count",)

    areas: AreaCounts

    @staticmethod
    def check_workloads(areas, workloads):
        if set(workloads) - {"districts"}:
            raise SettingError("There is no such workload.")
        return ("districts",)

    @staticmethod
    def frame_facts(areas):
        return ("districts", areas.contributions, areas.unit, [*areas.regions.ids[-1]])

    @classmethod
    def of(cls, areas, workloads, queries, seed):
        return cls(areas=areas)

    def names(self):
        return ["districts"]

    def rows(self, release, *, parts):
        true = self.areas.count
        return [{"workload": "districts", "questions": len(true), **error_figures(release.count, true, int(true.sum()))}]


AREA_FAMILY = Family(
    name="districts",
    noun="record",
    group="dpviz.district_mechanisms",
    usual=("every_area",),
    frame=Regions,
    counts=AreaCounts,
    base=AreaMechanism,
    kinds=(EveryArea,),
    release=AreaRelease,
    questions=AreaQuestions,
)
AREAS = AreaCounts(regions=regular(2, 3), count=np.array([5, 0, 40, 7, 0, 300]))


@pytest.fixture(autouse=True)
def areas(monkeypatch):
    monkeypatch.setitem(FAMILIES, "districts", AREA_FAMILY)


def test_its_data_say_which_family_takes_them():
    assert family_of(AREAS) is AREA_FAMILY
    assert family_of("districts") is None
    assert AREA_FAMILY.choices == {"every_area": EveryArea}


def test_it_keeps_the_contract_of_every_mechanism():
    contract.test_it_names_itself(EveryArea)
    contract.test_settings_are_frozen_and_unknown_ones_refused(EveryArea)
    contract.test_settings_out_of_range_are_refused_by_their_label(EveryArea)
    contract.test_only_what_is_set_differs_from_the_defaults_and_it_builds_the_same_again(EveryArea)


def test_a_configuration_finds_it_by_its_key():
    assert MechanismPart(key="every_area", settings={"threshold": 3}).build(AREA_FAMILY) == EveryArea(threshold=3)
    with pytest.raises(SettingError, match="one of every_area for districts"):
        MechanismPart(key="quadtree").build(AREA_FAMILY)


def test_a_study_compares_it():
    made = {"plain": EveryArea(), "zeroed": EveryArea(threshold=10)}
    study = Study(data=AREAS, public=True, mechanisms=made, epsilons=(1, "1/3"), repeats=3)
    table = tidy(study, compare(study))
    assert len(table) == 12
    assert {*table["workload"]} == {"districts"}
    assert table["status"].str.startswith("SIMULATION").all()
    assert len(summary(table).query("figure == 'mae'")) == 4
    again = pd.DataFrame(list(compare(study, done=table[:6])))
    assert len(again) == 6


@pytest.mark.parametrize(
    ("made", "more", "words"),
    [(Quadtree(), {}, "for points, and the data are districts"), (EveryArea(), {"workloads": ("zooms",)}, "no such workload")],
)
def test_a_study_refuses_what_does_not_fit(made, more, words):
    with pytest.raises(SettingError, match=words):
        Study(data=AREAS, public=True, mechanisms={"a": made}, epsilons=(1,), **more)


def test_the_audit_sees_its_epsilon_and_the_command_line_takes_it(capsys):
    assert "every_area" in audit_targets()
    found = audit(EveryArea(), runs=300)
    assert found.passed
    assert found.lower_bound > 0.5
    assert main(["audit", "every_area", "--runs", "100", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)[0]["mechanism"] == "every_area"
