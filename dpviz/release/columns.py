"""What the columns of a release's tables mean."""

from __future__ import annotations

from dpviz.privacy.consistency import Spread
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.intervals import NO_UPPER_ENDS, OF_RELEASED_PAIRS
from dpviz.release.mean_release import MeanRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import ESTIMATED, TripRelease
from dpviz.space.denominators import RATES_PER

COUNT_COLUMNS = {
    "count": "Released count, after post-processing.",
    "count_noisy": "The count as it was first measured; missing where it was not measured.",
    "stddev": "Standard deviation of the noise in the count.",
    "ci_low": "Lower end of the interval around the count.",
    "ci_high": "Upper end of the interval around the count.",
    "reliability": "high: standard deviation up to 12 % of the count; medium: up to 40 %; low: above.",
    "status": "What the release is: the same in every row.",
}
JOINT_COLUMNS = {
    "all_low": "Lower end of an interval that holds for all numbers of the release at once.",
    "all_high": "Upper end of this interval.",
}
_POINT_COLUMNS = {
    "partition_id": "Number of the partition, the same in every table; 0 is the whole domain.",
    "level": "Level of the partition, 0 for the whole domain; one that is not divided stands for itself on all finer levels.",
    **COUNT_COLUMNS,
    **JOINT_COLUMNS,
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
_TRIP_COLUMNS = {
    "stage": "Stage of the tree of pairs, 0 for the pair of everything.",
    "origin_level": "Level of the origins, 0 for everything.",
    "destination_level": "Level of the destinations, 0 for everything.",
    "origin": "Id of the region where trips begin.",
    "destination": "Id of the region where trips end.",
    "dest": "The same, under the name that flowmap.blue wants.",
    **COUNT_COLUMNS,
    **JOINT_COLUMNS,
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
    "origin_lng": "Longitude of a place inside the origin, in degrees.",
    "origin_lat": "Latitude of it.",
    "dest_lng": "Longitude of a place inside the destination, in degrees.",
    "dest_lat": "Latitude of it.",
    "geometry": "The region's own shape.",
}
_AREA_COLUMNS = {
    "level": "Level of the region, 0 for the whole, 1 for the coarsest regions.",
    "level_name": "Name of the level.",
    "region_id": "Id of the region.",
    "parent_id": "Id of the region that it lies in; missing for the whole.",
    "name": "Name of the region.",
    **COUNT_COLUMNS,
    "count_unbiased": "The best unbiased estimate of the count, from the noisy counts of all levels, on which the intervals are centred.",
    "ci_low": "Lower end of an interval that holds for a region chosen without looking at the counts.",
    "ci_high": "Upper end of this interval.",
    **JOINT_COLUMNS,
    "share": "How much of the error of the region that it lies in is in this one's: see spread.",
    "slack": "Variance of what is this region's own in its error: see spread.",
    "geometry": "The region's shape.",
}


def describe_trip_columns(release: TripRelease) -> dict[str, str]:
    """Describe the meaning of every column that a table of a release of trips may have, by name."""
    columns = dict(_TRIP_COLUMNS)
    if release.for_released:
        columns["ci_low"] = f"Lower end of the interval. {OF_RELEASED_PAIRS}"
        if release.lacks_pairs:
            columns["ci_high"] = f"{COUNT_COLUMNS['ci_high'][:-1]}; {NO_UPPER_ENDS}"
    if ESTIMATED in release.steps:
        columns["count_noisy"] = "The best unbiased estimate of the count, from the noisy counts of all stages."
    if release.totals is not None:
        columns["direction"] = "leaving or arriving: whether the trips begin or end in the region."
    return columns


_MEAN_COLUMNS = {
    "sum": "Sum of the values of the records.",
    "sum_low": "Lower end of a 95 % interval of the sum, around the best unbiased estimate.",
    "sum_high": "Upper end of this interval.",
    "mean": "Mean of the values; missing where its interval is wider than half of the bounds.",
    "mean_low": "Lower end of a 95 % interval of the mean, never outside the bounds of the values.",
    "mean_high": "Upper end of this interval.",
}


def describe_area_columns(release: AreaRelease) -> dict[str, str]:
    """Describe the meaning of every column that a table of a release of areas may have, by name."""
    columns, numbers = dict(_AREA_COLUMNS), release.regions.denominator
    if numbers is not None:
        public = f"the column {str(numbers.name)!r} of the file of regions, added up over finest regions"
        columns["denominator"] = f"A public number, not of the data: {public}."
        columns["rate"] = f"The released count per {RATES_PER:,.0f} of the denominator; missing where the denominator is 0."
        columns["rate_low"] = "Lower end of the rate's interval: ci_low divided in the same way."
        columns["rate_high"] = "Upper end of the rate's interval: ci_high divided in the same way."
    if isinstance(release, CrossRelease):
        del columns["share"], columns["slack"]
        columns["slot_level"] = "Level of the category, 0 for the whole, 1 for the coarsest categories."
        columns["slot_id"] = "Id of the category."
    if isinstance(release, MeanRelease):
        low, high = release.categories.low, release.categories.high
        columns["slot_id"] = f"low or high: each record lies in both, split between the bounds {low:,.15g} and {high:,.15g} by its value."
        columns |= _MEAN_COLUMNS
    if release.hidden is not None:
        columns["hidden"] = "Whether the region's numbers are missing elsewhere, since its noisy count is under a public threshold."
    return columns


def describe_point_columns(release: PointRelease) -> dict[str, str]:
    """Describe the meaning of every column that a table of a release of points may have, by name."""
    columns = dict(_POINT_COLUMNS)
    if release.unbiased is not None:
        columns["count_unbiased"] = "The count before a biased step, on which the interval is centred."
    if release.nonnegative:
        columns["count_outside"] = "Whether the released count lies outside its own interval, because a biased step moved it."
    if release.second_measurement is not None:
        columns["count_again"] = "The second measurement; missing where there was none."
    if isinstance(release.spread, Spread):
        columns["share"] = "How much of the parent's error is in this one's: see spread."
        columns["slack"] = "Variance of what is this partition's own in its error: see spread."
    if release.domain.mask is not None:
        columns["noise_variance"] = f"{columns['noise_variance'][:-1]}, and 0 where the domain's mask leaves no cell open."
    if release.tree.curve is not None:
        columns["curve_first"] = "First place of the partition's stretch of the curve."
        columns["curve_last"] = "The place after its last one."
    return columns
