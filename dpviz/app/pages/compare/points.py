"""Points on the Compare page: samples on a lattice, blocks of a zoom level, and maps of partitions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.app.components.resolution import resolution_slider
from dpviz.app.pages.compare.kinds import Compared, sample_data
from dpviz.app.pages.compare.maps import choose_shown, name_first, show_canvas
from dpviz.app.pages.compare.state import COMPARE, LARGEST_ORDER, MOST_PICKED, MOST_ZOOM, CompareConfig, CompareData
from dpviz.app.pages.points.scales import public_density_top
from dpviz.app.pages.points.study_area import ask_study_area
from dpviz.app.server.class_mode import largest_order
from dpviz.app.session import cached
from dpviz.app.session.widgets import is_dark, widget_for
from dpviz.data.points import PointCounts
from dpviz.data.reading.outline import LAND
from dpviz.evaluation.study import POINT_WORKLOADS
from dpviz.publishing.config import DomainPart
from dpviz.release.point_release import PointRelease
from dpviz.samples.points import POINT_SAMPLES, SampleInfo
from dpviz.view.basemap import map_bounds
from dpviz.view.canvas import Cells, Pane, ground_of, names_of
from dpviz.view.masked_area import find_masked_area
from dpviz.view.points_canvas import ERROR, FALSE_POSITIVES, TRUE, ReleaseView, SquaresView
from dpviz.view.points_map import error_top

RANDOM = "random"
BOXES = {
    RANDOM: "random boxes",
    "small": "blocks of 0.1 % of the area",
    "medium": "blocks of 1 % of the area",
    "large": "blocks of 10 % of the area",
}
USUAL_SIZE = None  # records of a made-up sample; None is its usual number
USUAL_ZOOM = 5
_ZOOM = "Every map shows the level of its release that has about as many partitions as there are blocks at this zoom level."


class ComparedPoints(Compared):
    """Points on the Compare page; see `Compared`."""

    samples: ClassVar[Mapping[str, SampleInfo]] = POINT_SAMPLES
    usual_sample: ClassVar[str] = "la_residents"
    workloads: ClassVar[tuple[str, ...]] = POINT_WORKLOADS
    places: ClassVar[str] = "blocks"
    one_place: ClassVar[str] = "block"
    parts_about: ClassVar[str] = (
        "Noise: how far answers are from those of the same partitions with true counts. Uniformity: how far those are from the truth,"
        " because of what is assumed inside partitions. Their mean sizes are shown; the two can cancel each other."
    )

    def load(self, sample: str) -> PointCounts:
        """Return a sample of its usual size, on the lattice of this session."""
        return cached.sample(sample, USUAL_SIZE, COMPARE.config().order)

    def most_levels(self, sample: str) -> int | None:  # noqa: ARG002
        """Return None: maps of points have zoom levels."""
        return None

    def ask_sample(self, about: SampleInfo, config: CompareConfig) -> CompareData | None:
        """Ask for the lattice and where people can be; None, with a note, while the study area is missing or wrong."""
        order = config.order
        resolution_slider("compare order", order, largest_order(LARGEST_ORDER), lambda order: COMPARE.change(order=order, zoom=None))
        points, digest = cached.sample(about.key, USUAL_SIZE, order), f"{about.key} {USUAL_SIZE}"
        masked = ask_study_area(config.study_area, COMPARE.widget("study_area", "compare study area kind"), points.domain)
        if masked.domain is None:
            st.info(masked.asks)
            return None
        if masked.domain.mask is None:
            return sample_data(about, points, digest, (order,))
        mask = cached.digest_of(masked.domain.mask.packed)
        points = cached.masked_sample(mask, about.key, USUAL_SIZE, masked.domain)
        data = sample_data(about, points, digest, (order, mask))
        return replace(data, title=f"{data.title}, {'on land' if masked.file == LAND else f'in {masked.file}'}", study_area=masked.file)

    def domain_part(self, data: PointCounts, study_area: str | None) -> DomainPart | None:
        """Return the lattice of a sample, and its study area."""
        return DomainPart.of(data.domain, study_area)

    def name_places(self, workload: str) -> str:
        """Return what a workload asks about, in the plural: boxes or blocks."""
        return "boxes" if workload == RANDOM else self.places

    def name_workload(self, name: str) -> str:
        """Return the name of a workload as it is written on screen."""
        return BOXES.get(name, f"all blocks of {name.replace('zoom', 'zoom level')}")

    def by_level(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, str, str, str]:
        """Return the rows of zoom levels; see `Compared.by_level`."""
        rows = rows[rows["workload"].str.startswith("zoom ")]
        rows = rows.assign(x=rows["workload"].str.removeprefix("zoom ").astype(int))
        about = "Zoom z cuts the domain into 2^z x 2^z equal blocks; all are queried."
        return rows, "zoom level", "zoom level", about

    def show_maps(self, data: CompareData, releases: dict[str, PointRelease], link: bool) -> None:
        """Show releases side by side; see `Compared.show_maps`."""
        points: PointCounts = data.data  # type: ignore[assignment]
        domain, height = points.domain, min(points.domain.order, MOST_ZOOM)
        left, right = st.columns([3, 2], vertical_alignment="center")
        shown, zoom, chosen = choose_shown(left), 0, COMPARE.config().zoom
        if height:
            zoom = min(USUAL_ZOOM if chosen is None else chosen, height)
            widget = widget_for(f"compare zoom {height}", zoom, lambda value: COMPARE.change(zoom=value))
            zoom = int(right.slider("Zoom level", 0, height, help=_ZOOM, **widget))
        truths = {title: release.tree.sums(points.column, points.row, points.count).astype(np.int64) for title, release in releases.items()}
        levels = {title: level_like(release, zoom) for title, release in releases.items()}
        cells, made = _make_panes(points, releases, levels, truths, data.unit, shown, zoom)
        parts = {"cells": cells, "ground": ground_of(domain), "masked": find_masked_area(domain), "places": names_of(domain)}
        on_earth = domain.crs is not None
        show_canvas("compare canvas", data, made, domain, on_earth=on_earth, link=link, bounds=map_bounds(domain), **parts)


def _make_panes(
    points: PointCounts, releases: dict[str, PointRelease], levels: dict[str, int], truths: dict[str, Any], unit: str, shown: str, zoom: int
) -> tuple[dict[str, Cells], list[Pane]]:
    """Make the panes of releases of points, the truth first if there is room, and the rectangles that they show, by name."""
    views = [
        ReleaseView.of(release, levels[title], unit=unit, dark=is_dark(), truth=truths[title], about=title)
        for title, release in releases.items()
    ]
    density = public_density_top(points, views[0].release, unit, zoom)
    if shown == FALSE_POSITIVES:
        squares = [SquaresView.of(release, points.blocks, zoom, dark=is_dark(), about=title) for title, release in releases.items()]
        cells = {str(place): view.cells() for place, view in enumerate(squares) if view.fits}
        made = [name_first(view.pane(cells=str(place))) for place, view in enumerate(squares)]
    else:
        cells = {str(place): view.cells() for place, view in enumerate(views) if view.fits}
        top = max(error_top(view.release, view.nodes, view.truth) for view in views) if shown == ERROR else density
        made = [name_first(view.pane(shown, cells=str(place), top=top)) for place, view in enumerate(views)]
    if shown != TRUE and len(made) < MOST_PICKED:
        truth = SquaresView.of(views[0].release, points.blocks, zoom, dark=is_dark())
        made.insert(0, truth.truth_pane(cells="truth", unit=unit, top=density))
        cells |= {"truth": truth.cells()} if truth.fits else {}
    return cells, made


def level_like(release: PointRelease, zoom: int) -> int:
    """Return the level whose number of partitions is nearest, as a ratio, to the 2**zoom x 2**zoom blocks of a zoom level."""
    return min(reversed(range(release.height + 1)), key=lambda level: abs(math.log(len(release.nodes(level))) - zoom * math.log(4)))


COMPARED = ComparedPoints()
