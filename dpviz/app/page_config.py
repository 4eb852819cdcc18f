"""What the configurations of the pages of points and trips share: the mode, a run with its budget, a second run, and what maps show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpviz.app.state.kinds import kind_of
from dpviz.app.state.links import run_reader, write_run
from dpviz.app.state.readers import (
    Camera,
    Reader,
    amount_reader,
    choice_reader,
    flag_reader,
    number_reader,
    read_camera,
    read_scales,
    read_settings,
    shortest,
)
from dpviz.app.state.run import Run
from dpviz.app.state.values import (
    CURATE,
    LARGEST_DELTA,
    LARGEST_EPSILON,
    LARGEST_RHO,
    LARGEST_SEED,
    LEAST_CUT,
    MOST_CUT,
    SECOND,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    SMALLEST_RHO,
    TEACH,
)
from dpviz.families import POINT_FAMILY, Family
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.base import GAUSSIAN, LAPLACE, NOISES, Share
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget, exact


@dataclass(frozen=True, kw_only=True)
class PageConfig:
    """Everything on a page that can be shared as a link: parameters only, never data and never a path.

    Attributes:
        mode: "Teach" or "Curate".
        source: "sample", "upload" or "path"; a link always opens a sample.
        mechanism: key of the mechanism.
        settings: its settings that differ from the defaults.
        epsilon: epsilon of the budget; a fraction if no decimal number is equal to it.
        delta: delta of the budget, where it has one; a fraction likewise.
        noise: "Laplace" or "Gaussian", where the kind of the budget decides the noise; Gaussian noise takes a delta.
        rho: rho of the budget in Curate, in place of epsilon and delta, where the budget has a delta; None for epsilon and delta.
            An opened configuration may have it; epsilon and delta are about what it implies.
        shown: what the map shows; in Teach, what the right one of two maps shows.
        left: what the left map shows, in Teach.
        run: number of the run in Teach, the seed of its noise.
        second: mechanism, settings and budget of the second run, in Teach; None until a map shows it.
        editing: whether the controls of mechanism and budget are those of the second run.
        raw: whether counts are shown as first measured, in Teach.
        relative: whether errors are in percent of an average count, or else in records.
        scales: tops of the colour scales that were kept, by what they are for.
        camera: longitude, latitude and zoom of the map; None for the whole area.
        swipe: position of the bar between two maps that lie over each other, as a share of the width; None for maps side by side.
        present: whether the page is shown in large type without the controls on the left, for a projector.
    """

    always_in_link: ClassVar[tuple[str, ...]] = ("mechanism",)
    family: ClassVar[Family]
    view_parts: ClassVar[tuple[str, ...]] = (
        "shown",
        "left",
        "run",
        "second",
        "editing",
        "raw",
        "relative",
        "scales",
        "camera",
        "swipe",
        "present",
    )
    """Parts that do not change what is drawn in Curate."""

    mode: str = TEACH
    source: str = "sample"
    mechanism: str
    settings: dict[str, Any] = field(default_factory=dict)
    epsilon: float | Fraction = 0.5
    delta: float | Fraction = 1e-6
    noise: str = LAPLACE
    rho: float | Fraction | None = None
    shown: str
    left: str
    run: int = 1
    second: Run | None = None
    editing: bool = False
    raw: bool = False
    relative: bool = True
    scales: dict[str, float] = field(default_factory=dict)
    camera: Camera | None = None
    swipe: float | None = None
    present: bool = False

    def build(self) -> Any:
        """Build the mechanism with its settings; raise `SettingError` if one is out of range."""
        return self.family.choices[self.mechanism].from_settings(self.settings)

    def build_all(self) -> list[Any]:
        """Build all mechanisms that one press of Curate releases with."""
        return [self.build()]

    def budget(self) -> Budget:
        """Return the budget of the mechanism."""
        return self.budget_for(self.build())

    def budget_for(self, mechanism: AnyMechanism) -> Budget:
        """Return the budget of one draw with a mechanism; it has a delta, or is a rho, exactly where the noise takes one."""
        if not self._takes_delta(mechanism):
            return PureBudget(self.epsilon)
        return ApproxBudget(self.epsilon, self.delta) if self.rho is None or self.mode == TEACH else ZcdpBudget(self.rho)

    @property
    def takes_delta(self) -> bool:
        """Whether the budget has a delta."""
        return self._takes_delta(self.build())

    def _takes_delta(self, mechanism: AnyMechanism) -> bool:
        return mechanism.needs_delta or (mechanism.noise_by_budget and self.noise == GAUSSIAN)

    @property
    def split_amount(self) -> str:
        """What the shares of the budget are shares of: with a δ the ρ it buys, but ε for mechanisms of points that need a δ for medians."""
        needs_it = self.family is POINT_FAMILY and self.build().needs_delta
        return "ρ" if self.takes_delta and not needs_it else "ε"

    def shares(self, frame: Any) -> list[Share]:
        """List the parts of `split_amount` on a public frame.

        Raises:
            DpvizError: the settings do not fit the frame.
        """
        mechanism = self.build()
        return list(mechanism.shares_of_rho(frame) if self.split_amount == "ρ" else mechanism.shares(frame))

    def same_draw(self, other: Self) -> bool:
        """Return whether both configurations draw from the same data in the same way; what is shown of the release does not matter."""
        return replace(self, **{name: getattr(other, name) for name in self.view_parts}) == other

    @property
    def shows_second(self) -> bool:
        """Whether the left map shows the second run."""
        return self.mode == TEACH and self.left == SECOND

    def second_run(self) -> Self:
        """Return the configuration of the second run: the same data, with a mechanism, settings and budget of its own."""
        run = self.second
        if run is None or run.epsilon is None or run.delta is None:
            return self
        parts: dict[str, Any] = {"mechanism": run.mechanism, "settings": run.settings, "noise": run.noise}
        return replace(self, **parts, epsilon=shortest(run.epsilon), delta=shortest(run.delta), rho=None)

    def as_second(self) -> Run:
        """Return mechanism, settings and budget as the second run."""
        epsilon, delta = exact(self.epsilon, "ε"), exact(self.delta, "δ")
        return Run(mechanism=self.mechanism, settings=self.settings, noise=self.noise, epsilon=epsilon, delta=delta)

    def own_texts(self) -> dict[str, str]:
        """Return the second run as a parameter of a link, without a seed: that of the first run holds for both."""
        if self.second is None:
            return {}
        return {"second": write_run(kind_of(self.family.name), replace(self.second, seed=1), replace(self.as_second(), seed=1))}

    @classmethod
    def run_readers(cls) -> dict[str, Reader]:
        """Return the readers of the parameters of a link that all pages share."""
        return {
            "mode": choice_reader(TEACH, CURATE),
            "mechanism": choice_reader(*cls.family.choices),
            "settings": read_settings,
            "epsilon": amount_reader(SMALLEST_EPSILON, LARGEST_EPSILON),
            "delta": amount_reader(SMALLEST_DELTA, LARGEST_DELTA),
            "noise": choice_reader(*NOISES),
            "rho": amount_reader(SMALLEST_RHO, LARGEST_RHO),
            "run": number_reader(1, LARGEST_SEED, int),
            "second": run_reader(kind_of(cls.family.name), Run()),
            "editing": flag_reader,
            "raw": flag_reader,
            "relative": flag_reader,
            "scales": read_scales,
            "camera": read_camera,
            "swipe": number_reader(LEAST_CUT, MOST_CUT, float),
            "present": flag_reader,
        }
