"""What is odd comes back as it was: texts, settings, frames and shapes that are unexpected."""

import json
from dataclasses import replace

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms import FlatGaussian, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.release.manifest import accounting_facts, contents_facts, describe, first_violation, privacy_facts, receipt_of, settings_of
from dpviz.space.regions import Regions
from tests.flow_cases import flows_of, regular
from tests.release_cases import WORDS, assert_same, flows_on, point_release, regions_with_shapes, trip_release
from tests.strategies import domains

BUDGET = ApproxBudget(2, "1e-5")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inside: st.lists(inside, max_size=4).map(tuple),
    max_leaves=6,
)
HOSTILE = ["</script><b>", "a\nb\r\"c'", "\u202eevil\u2066", "=1+1\x00\t,;\\N"]


def back(release, folder):
    return read_release(write_release(release, folder, describe(release, WORDS)))


def through_json(facts):
    return json.loads(json.dumps(facts))


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_any_settings_survive_json_with_their_types(chosen):
    facts = contents_facts(replace(point_release(), settings=chosen))
    assert_same(settings_of(through_json(facts)), chosen)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.dictionaries(TEXTS, VALUES, max_size=3), words=st.lists(TEXTS, min_size=4, max_size=4))
def test_any_settings_and_texts_survive_the_files(chosen, words, tmp_path_factory):
    odd = {"settings": chosen, "mechanism": words[0], "steps": tuple(words), "approximate": words[1]}
    receipt = replace(point_release().receipt, notes=tuple(words), unprotected=(words[2],), neighbours=words[3])
    for release in (point_release(), trip_release(1)):
        made = replace(release, **odd, receipt=receipt)
        assert_same(back(made, tmp_path_factory.mktemp("odd") / "out"), made)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), (1.0, float("-inf")), {1: 2}, object(), np.float32(1), b"x"])
def test_settings_that_no_file_can_hold_are_refused_by_their_name(value):
    with pytest.raises(SettingError, match="'odd' cannot be written"):
        describe(replace(point_release(), settings={"odd": value}), WORDS)


@pytest.mark.parametrize("odd", [{"settings": {"a": "\ud800"}}, {"settings": {"\udfff": 1}}, {"mechanism": "\ud800"}])
def test_half_characters_are_refused(odd, tmp_path):
    release = replace(point_release(), **odd)
    with pytest.raises(SettingError, match="half a character"):
        write_release(release, tmp_path / "out", describe(release, WORDS))
    assert list(tmp_path.iterdir()) == []


FRACTIONS = st.fractions(min_value="1/1000000", max_value=1000)


@given(st.lists(st.tuples(FRACTIONS, FRACTIONS, st.booleans(), st.integers(0, 9) | st.none()), min_size=1, max_size=5), TEXTS)
def test_any_receipt_comes_back_exactly(spendings, text):
    steps = tuple(
        Step(
            purpose=text,
            amount=amount,
            sensitivity=scale,
            noise=text,
            scale=scale / 7,
            level=level,
            counts=level,
            replaces_later=replaces_later,
        )
        for amount, scale, replaces_later, level in [*spendings, (spendings[0][0], spendings[0][1], False, None)]
    )
    total = sum(step.amount for step in steps if not step.replaces_later)
    for kind in (PureBudget(total), ApproxBudget(total, "1e-9")):
        receipt = Receipt(total=kind, steps=steps, notes=(text,), contributions=3, unit="person")
        assert receipt_of(through_json(privacy_facts(receipt)), through_json(accounting_facts(receipt))) == receipt


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(domain=domains())
def test_any_domain_comes_back(domain, tmp_path_factory):
    west, south, east, north = domain.bounds
    points = PointCounts.from_xy([(west + east) / 2], [(south + north) / 2], domain=domain)
    release = Quadtree(height=2).release(points, PureBudget(1), Entropy.system())
    assert_same(back(release, tmp_path_factory.mktemp("domain") / "out"), release)


@pytest.mark.parametrize("crs", ["OGC:CRS84", "ESRI:102003", "EPSG:2263", "+proj=laea +lat_0=52 +lon_0=10 +ellps=GRS80 +units=m"])
def test_frames_in_unusual_systems_come_back(crs, tmp_path):
    regions = regions_with_shapes(crs=crs)
    release = TopDown().release(flows_on(regions), BUDGET, Entropy.system())
    assert_same(back(release, tmp_path / "trips"), release)
    bounds = tuple(regions.geometry[-1].total_bounds)
    points = PointCounts.from_xy([bounds[0]], [bounds[1]], domain=replace(point_release().domain, bounds=bounds, crs=crs))
    release = Quadtree(height=2).release(points, PureBudget(1), Entropy.system())
    assert_same(back(release, tmp_path / "points"), release)


def test_hostile_names_come_back_and_stay_text(tmp_path):
    levels = (HOSTILE[0], HOSTILE[2])
    release = TopDown().release(flows_on(regions_with_shapes(names=HOSTILE, levels=levels)), BUDGET, Entropy.system())
    read = back(release, tmp_path / "out")
    assert_same(read, release)
    assert read.tree.origins.names_of(2).tolist() == HOSTILE
    words = replace(WORDS, name=HOSTILE[0], curator=HOSTILE[2], description="=cmd()\n{{7*7}}")
    folder = write_release(release, tmp_path / "words", describe(release, words))
    manifest = read_manifest(folder)
    assert manifest["data_product"]["description"] == words.description
    assert first_violation(manifest) is None


@pytest.mark.parametrize("part", ["ids", "names", "levels"])
def test_regions_with_half_characters_are_refused_before_anything_is_written(part):
    regions = regular(2)
    odd = ("\ud800",) if part == "levels" else (np.array(["a", "\ud800"], object),)
    release = FlatGaussian().release(flows_on(replace(regions, **{part: odd})), BUDGET, Entropy.system())
    with pytest.raises(SettingError, match="half a character"):
        describe(release, WORDS)


SHAPES = {
    "points": [shapely.Point(x, 0.1 + 1 / 3) for x in range(3)],
    "holes and parts": [
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)]),
        shapely.Polygon([(5, 5), (9, 5), (9, 9), (5, 9)], [[(6, 6), (7, 6), (7, 7), (6, 7)]]),
        shapely.Point(20, 20).buffer(1 / 3),
    ],
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_shapes_come_back_bit_for_bit_on_the_levels_that_have_some(shapes, tmp_path):
    ids = np.array(["x", "y", "z"], object)
    own = geopandas.GeoSeries(shapes, crs="EPSG:4326")
    for place, geometry in enumerate([(None, own), (own.iloc[:1], own), (own.iloc[:1], None)]):
        regions = Regions(
            levels=("all of it", "part"),
            ids=(np.array(["root"], object), ids),
            parent=(np.zeros(1, np.int32), np.zeros(3, np.int32)),
            names=(np.array(["root"], object), ids),
            geometry=geometry,
        )
        release = FlatGaussian().release(flows_of(regions, {(0, 1): 9}), BUDGET, Entropy.system())
        assert_same(back(release, tmp_path / str(place)), release)
