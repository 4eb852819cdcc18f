"""Releases that earlier versions wrote: small ones, kept as they were, are read with levels as they are counted today."""

import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import InputError
from dpviz.mechanisms import FLOW_MECHANISMS, POINT_MECHANISMS
from dpviz.release.files import compute_seal, read_manifest, read_release
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import describe_utility, find_violation, read_schema

KEPT = sorted((Path(__file__).parents[1] / "golden" / "bundles_1_0").glob("*.zip"))
TRIPS = [path for path in KEPT if path.stem in ("top_down", "stability_histogram", "flat_gaussian")]
POINTS = [path for path in KEPT if path not in TRIPS]


def member(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@by_name(POINTS)
def test_points_are_what_their_csv_says_and_level_0_is_the_whole(path):
    release, table = read_release(path), pd.read_csv(io.BytesIO(member(path, "partitions.csv")), engine="pyarrow")
    np.testing.assert_array_equal(release.count, table["count"])
    np.testing.assert_array_equal(release.noisy, table["count_noisy"])
    np.testing.assert_array_equal(release.tree.depth, release.height - table["level"])
    assert release.tree.leaves.tolist() == table.loc[table["leaf"], "partition_id"].tolist()
    assert len(release.to_frame(level=0)) == 1
    assert len(release.to_frame(level=release.height)) == table["leaf"].sum()


@by_name(POINTS)
def test_what_was_spent_on_points_and_how_accurate_they_are_is_stated_by_todays_levels(path):
    before, now, release = json.loads(member(path, "manifest.json")), read_manifest(path), read_release(path)
    planned = {"htf_short": 6}.get(path.stem, release.height)
    steps = [(step["level"], step["amount"]) for step in before["accounting"]["steps"]]
    wanted = [(None if level is None else planned - level, amount) for level, amount in steps]
    assert [(step["level"], step["amount"]) for step in now["accounting"]["steps"]] == wanted
    assert [step.level for step in release.receipt.steps] == [level for level, _ in wanted]
    assert [row["level"] for row in now["utility"]["levels"]] == list(range(release.height + 1))
    assert [row["partitions"] for row in now["utility"]["levels"]] == [len(release.nodes(level)) for level in range(release.height + 1)]
    for row, today in zip(now["utility"]["levels"], describe_utility(release)["levels"], strict=True):
        assert row["interval_width_median"] >= today["interval_width_median"]  # intervals are cut at 0 today
        assert row | {"interval_width_median": 0} == pytest.approx(today | {"interval_width_median": 0})


@by_name(TRIPS)
def test_trips_are_what_their_csv_files_say(path):
    release = read_release(path)
    assert isinstance(release, FlowRelease)
    assert read_manifest(path) == json.loads(member(path, "manifest.json")), "levels of trips always counted from the whole"
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"flows_\d_.*\.csv", name)]
    assert len(names) == release.depth
    for level, name in enumerate(sorted(names), start=1):
        table = pd.read_csv(io.BytesIO(member(path, name)), dtype={"origin": str, "dest": str}, engine="pyarrow")
        frame = release.level(level, spread=True)
        for column, own in (("origin", "origin"), ("dest", "destination"), ("count", "count"), ("stddev", "stddev")):
            assert table[column].tolist() == frame[own].tolist()


@by_name(KEPT)
def test_they_are_judged_by_the_schema_of_their_time(path):
    manifest = json.loads(member(path, "manifest.json"))
    assert json.loads(member(path, "manifest.schema.json")) == read_schema("1.0")
    assert find_violation(manifest, "1.0") is None
    assert find_violation(manifest) is not None


def altered(path, folder, section, change):
    """A kept release, unpacked, with a change in a section of its manifest, which is sealed again."""
    shutil.unpack_archive(path, folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(manifest[section])
    (folder / "manifest.json").write_text(json.dumps(manifest | {"seal": compute_seal(manifest)}), "utf-8")
    return folder


@pytest.mark.parametrize("name", ["quadtree", "top_down"])
def test_a_changed_manifest_is_noticed(name, tmp_path):
    folder = altered(KEPT[0].with_stem(name), tmp_path, "utility", lambda utility: utility["levels"][0].update(stddev_median=1234.5))
    with pytest.raises(InputError, match="contradicts the release that it describes, at utility"):
        read_release(folder)


@pytest.mark.parametrize("version", ["2.5", "3.0", ""])
def test_an_unknown_version_is_refused(version, tmp_path):
    folder = altered(KEPT[0], tmp_path, "identity", lambda identity: identity.update(schema_version=version))
    with pytest.raises(
        InputError, match=r"another version of dpviz: the installed one reads manifests of versions 1\.0, 2\.0, 2\.1, 2\.2, 2\.3, 2\.4"
    ):
        read_release(folder)


@pytest.mark.parametrize("name", ["quadtree", "top_down", "flat_gaussian"])
def test_releases_of_schema_2_0_are_read_and_their_mechanism_is_built(name):
    path = KEPT[0].parents[1] / "bundles_2_0" / f"{name}.zip"
    manifest, release = read_manifest(path), read_release(path)
    assert manifest["identity"]["schema_version"] == "2.0"
    mechanism = (POINT_MECHANISMS | FLOW_MECHANISMS)[release.mechanism].from_settings(release.settings)
    assert mechanism.conversion == ("simple" if name == "top_down" else "tight")
    assert release.receipt.used == release.receipt.available


def test_a_release_of_schema_2_1_is_read_and_has_none_of_the_texts_that_came_later():
    path = KEPT[0].parents[1] / "bundles_2_1" / "quadtree.zip"
    manifest = read_manifest(path)
    assert (manifest["identity"]["schema_version"], find_violation(manifest, "2.1")) == ("2.1", None)
    assert not {"trust_model", "licence"} & set(manifest["data_product"])
    assert read_release(path).receipt.spent == read_release(path).receipt.total


def test_a_path_budget_tree_of_schema_2_1_is_read_with_its_negative_counts():
    path = KEPT[0].parents[1] / "bundles_2_1" / "path_tree.zip"
    release, table = read_release(path), pd.read_csv(io.BytesIO(member(path, "levels.csv")), engine="pyarrow")
    assert (read_manifest(path)["identity"]["schema_version"], release.nonnegative, release.inside) == ("2.1", False, "interpolated")
    assert release.count.min() < 0
    for column, found in (
        ("count", release.count),
        ("stddev", release.node_stddev),
        ("ci_high", release.node_interval(slice(None))[1]),
    ):
        np.testing.assert_allclose(np.maximum(table[column], 0) if column == "ci_high" else table[column], found, rtol=1e-12)
    assert POINT_MECHANISMS["path_tree"].from_settings(release.settings).inside == "interpolated"
