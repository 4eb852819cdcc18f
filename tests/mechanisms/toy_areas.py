"""A third family, as small as one can be: counts of areas, a mechanism on them, and what a study asks of its releases."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.errors import InputError, SettingError
from dpviz.evaluation.metrics import error_figures
from dpviz.evaluation.study import Questions
from dpviz.mechanisms.base import Family, LevelError, Mechanism, setting
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.budget import PureBudget, require_pure
from dpviz.privacy.noise import discrete_laplace, laplace_variance
from dpviz.privacy.receipt import SIMULATION, Receipt, Step
from dpviz.space.regions import Regions
from tests.flow_cases import regular


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaCounts:
    """(k,) people per finest region, each of whom is counted in `contributions` regions at most. PRIVATE."""

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

    family: ClassVar[str] = "areas"

    def check_data(self, data):
        if not isinstance(data, AreaCounts):
            raise InputError("A mechanism of areas takes AreaCounts.")
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

    least: int = setting(0, "Smallest count kept", low=0, high=100, help="Smaller ones become 0.")

    def release(self, areas, budget, entropy):
        budget = require_pure(budget, self.title)
        if not hasattr(entropy, "simulation"):
            raise SettingError("Noise needs a stream: Entropy.system(), or Entropy.seeded(seed).")
        self.check_data(areas)
        count = discrete_laplace(areas.count, PureBudget(budget.epsilon), entropy, areas.contributions)
        scale = areas.contributions / budget.epsilon
        step = Step(purpose="counts", amount=budget.epsilon, sensitivity=areas.contributions, noise="discrete Laplace", scale=scale)
        receipt = Receipt(total=budget, steps=(step,), unit=areas.unit, contributions=areas.contributions)
        return AreaRelease(
            regions=areas.regions,
            count=np.where(count < self.least, 0, count),
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
        if set(workloads) - {"areas"}:
            raise SettingError("There is no such workload.")
        return ("areas",)

    @staticmethod
    def frame_facts(areas):
        return ("areas", areas.contributions, areas.unit, [*areas.regions.ids[-1]])

    @classmethod
    def of(cls, areas, workloads, queries, seed):
        return cls(areas=areas)

    def names(self):
        return ["areas"]

    def rows(self, release, *, parts):
        true = self.areas.count
        return [{"workload": "areas", "questions": len(true), **error_figures(release.count, true, int(true.sum()))}]


AREA_FAMILY = Family(
    name="areas",
    data=AreaCounts,
    frame=Regions,
    base=AreaMechanism,
    own=(EveryArea,),
    group="dpviz.area_mechanisms",
    usual=("every_area",),
)
