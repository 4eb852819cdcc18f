"""What a release counts, in words: records or trips, whoever they belong to."""

from __future__ import annotations

from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

RECORDS, TRIPS = "records", "trips"


def noun(release: Release | FlowRelease) -> str:
    """What is counted, in the plural: "records" or "trips", never people.

    With a person column each person adds up to m records, and with `distinct` one record to each cell: a sum over cells still counts
    one person several times. What is protected is another matter, see `Receipt.unit`.
    """
    return TRIPS if isinstance(release, FlowRelease) else RECORDS
