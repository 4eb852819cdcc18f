"""What a release is of (points, trips or areas), and the noun for what it counts (records or trips)."""

from __future__ import annotations

from dpviz.release.area_release import AreaRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease

AnyRelease = PointRelease | TripRelease | AreaRelease
"""A release of any family of mechanisms."""
POINTS, TRIPS, AREAS = "points", "trips", "areas"
"""The kinds of releases: the names of the families of mechanisms that make them."""
RECORDS = "records"
_KINDS: dict[type, str] = {PointRelease: POINTS, TripRelease: TRIPS, AreaRelease: AREAS}


def kind_of(release: AnyRelease) -> str:
    """Return what a release is of: "points", "trips" or "areas"."""
    return next(kind for kind_type, kind in _KINDS.items() if isinstance(release, kind_type))


def counted_noun(release: AnyRelease) -> str:
    """Name what is counted, in the plural: "records" or "trips", never "people".

    With a person column, each person contributes up to m records, or with `distinct` one record per cell. So a sum over cells may
    count one person several times. `Receipt.unit` states separately what is protected.
    """
    return TRIPS if isinstance(release, TripRelease) else RECORDS
