"""What the columns of a release's tables mean: for the manifest, where readers of the files look it up."""

from __future__ import annotations

from dpviz.privacy.consistency import Spread
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

_COUNTS = {
    "count": "Released count, after post-processing.",
    "count_noisy": "The count as it was first measured; missing where it was not measured.",
    "stddev": "Standard deviation of the noise in the count.",
    "ci_low": "Lower end of the interval around the count.",
    "ci_high": "Upper end of the interval around the count.",
    "reliability": "high: standard deviation up to 12 % of the count; medium: up to 40 %; low: above.",
    "status": "What the release is: the same in every row.",
}
_POINTS = {
    "partition_id": "Number of the partition, the same in every table; 0 is the whole domain.",
    "level": "Level of the partition, 0 for the whole domain; one that is not divided stands for itself on all finer levels.",
    **_COUNTS,
    "leaf": "Whether the partition is not divided: these, and no others, are in the main table.",
    "west": "Western bound, in the domain's CRS.",
    "south": "Southern bound.",
    "east": "Eastern bound.",
    "north": "Northern bound.",
    "noise_variance": "Variance of the noise on what was measured; infinite where nothing was.",
    "parent": "partition_id of the partition that was divided into this one and others; -1 for the whole domain.",
    "first_child": "partition_id of the first of its parts; the others follow it.",
    "children": "Number of its parts.",
    "west_line": "Western bound as a line of the lattice, 0 in the west.",
    "south_line": "Southern bound, 0 in the south.",
    "east_line": "Eastern bound.",
    "north_line": "Northern bound.",
    "geometry": "The partition as a polygon.",
}
_TRIPS = {
    "stage": "Stage of the tree of pairs, 0 for the pair of everything.",
    "origin_level": "Level of the origins, 0 for everything.",
    "destination_level": "Level of the destinations, 0 for everything.",
    "origin": "Id of the region where trips begin.",
    "destination": "Id of the region where trips end.",
    "dest": "The same, under the name that flowmap.blue wants.",
    **_COUNTS,
    "level": "Level of the region, 1 for the coarsest.",
    "level_name": "Name of the level.",
    "region_id": "Id of the region.",
    "parent_id": "Id of the region that it lies in.",
    "name": "Name of the region.",
    "leaving": "Released trips that begin in the region, wherever they end.",
    "leaving_stddev": "Standard deviation of the noise in them.",
    "arriving": "Released trips that end in the region, wherever they begin.",
    "arriving_stddev": "Standard deviation of the noise in them.",
    "id": "Id of the region.",
    "lat": "Latitude of a place inside the region, in degrees.",
    "lon": "Longitude of it.",
    "geometry": "The region's own shape.",
}


def columns_of(release: Release | FlowRelease) -> dict[str, str]:
    """Every column that a table of a release may have, with its meaning."""
    if isinstance(release, FlowRelease):
        return dict(_TRIPS)
    columns = dict(_POINTS)
    if release.unbiased is not None:
        columns["count_unbiased"] = "The count before a biased step, on which the interval is centred."
    if release.again is not None:
        columns["count_again"] = "The second measurement; missing where there was none."
    if isinstance(release.spread, Spread):
        columns["share"] = "How much of the parent's error is in this one's: see spread."
        columns["slack"] = "Variance of what is this partition's own in its error: see spread."
    if release.tree.curve is not None:
        columns["curve_first"] = "First place of the partition's stretch of the curve."
        columns["curve_last"] = "The place after its last one."
    return columns
