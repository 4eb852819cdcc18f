"""A release compared with the counts that it was made from, whatever it counts. CURATOR ONLY."""

from __future__ import annotations

from typing import Any, overload

from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.errors import InputError
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.evaluation.metrics import Evaluation
from dpviz.evaluation.trip_metrics import TripEvaluation
from dpviz.families import family_of_counts
from dpviz.release.area_release import AreaRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease


@overload
def evaluate(release: PointRelease, private: PointCounts) -> Evaluation: ...
@overload
def evaluate(release: TripRelease, private: TripCounts) -> TripEvaluation: ...
@overload
def evaluate(release: AreaRelease, private: AreaCounts) -> AreaEvaluation: ...
def evaluate(release: Any, private: Any) -> Any:
    """Compare a release with the counts that it was made from. CURATOR ONLY: the result holds true counts.

    Args:
        release: of points, trips or areas, by any mechanism.
        private: the private counts, on the same domain or between the same regions.

    Returns:
        Of points an `Evaluation` by node and by zoom level, of trips a `TripEvaluation` by stage, of areas an `AreaEvaluation` by level.

    Raises:
        InputError: not a release and counts of the same kind.
        DomainError: the counts are on another domain, or of other regions.

    >>> import dpviz as dv
    >>> areas = dv.load_sample("made_up_city")
    >>> dv.evaluate(dv.RegionTree().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1)), areas).by_level["name"].tolist()
    ['the whole', 'district', 'tract', 'block']
    """
    family = family_of_counts(private)
    if family is not None and isinstance(release, family.release):
        return family.evaluate(release, private)
    raise InputError(
        "evaluate compares a release with what it was made from: a PointRelease with PointCounts, a TripRelease with TripCounts, an"
        " AreaRelease with AreaCounts."
    )
