"""The noun for what a release counts: records or trips."""

from __future__ import annotations

from dpviz.release.area_release import AreaRelease
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

RECORDS, TRIPS = "records", "trips"


def counted_noun(release: Release | FlowRelease | AreaRelease) -> str:
    """Name what is counted, in the plural: "records" or "trips", never "people".

    With a person column, each person contributes up to m records, or with `distinct` one record per cell. So a sum over cells may
    count one person several times. `Receipt.unit` states separately what is protected.
    """
    return TRIPS if isinstance(release, FlowRelease) else RECORDS
