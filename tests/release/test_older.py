"""Releases that earlier versions wrote: small ones, kept as they were, are read with today's names."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import InputError, SettingError
from dpviz.families import TRIP_FAMILY
from dpviz.mechanisms import MECHANISMS
from dpviz.publishing.config import MechanismPart
from dpviz.release.files import compute_seal, read_manifest, read_release
from dpviz.release.manifest import describe_utility, find_violation
from dpviz.release.older import translate_manifest

GOLDEN = Path(__file__).parents[1] / "golden"
KEPT = sorted((GOLDEN / "bundles_2_0").glob("*.zip"))


def member(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


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


@pytest.mark.parametrize("version", ["1.0", "2.6", "3.0", ""])
def test_an_unknown_version_is_refused(version, tmp_path):
    folder = altered(KEPT[0], tmp_path, "identity", lambda identity: identity.update(schema_version=version))
    with pytest.raises(
        InputError, match=r"another version of dpviz: the installed one reads manifests of versions 2\.0, 2\.1, 2\.2, 2\.3, 2\.4, 2\.5"
    ):
        read_release(folder)


@pytest.mark.parametrize("name", ["quadtree", "top_down", "flat_gaussian"])
def test_releases_of_schema_2_0_are_read_and_their_mechanism_is_built(name):
    path = GOLDEN / "bundles_2_0" / f"{name}.zip"
    manifest, release = read_manifest(path), read_release(path)
    assert manifest["identity"]["schema_version"] == "2.0"
    assert "conversion" not in release.settings
    assert release.settings.keys() == manifest["contents"]["settings"].keys()
    mechanism = (MECHANISMS.of("points") | MECHANISMS.of("trips"))[release.mechanism].from_settings(release.settings)
    assert mechanism.conversion == ("simple" if name == "top_down" else "tight")
    assert release.receipt.used == release.receipt.available


def test_a_release_of_schema_2_1_is_read_and_has_none_of_the_texts_that_came_later():
    path = GOLDEN / "bundles_2_1" / "quadtree.zip"
    manifest = read_manifest(path)
    assert (manifest["identity"]["schema_version"], find_violation(manifest)) == ("2.1", None)
    assert not {"trust_model", "licence"} & set(manifest["data_product"])
    assert read_release(path).receipt.spent == read_release(path).receipt.total


def test_a_path_budget_tree_of_schema_2_1_is_read_with_its_negative_counts():
    path = GOLDEN / "bundles_2_1" / "path_tree.zip"
    release, table = read_release(path), pd.read_csv(io.BytesIO(member(path, "levels.csv")), engine="pyarrow")
    assert (read_manifest(path)["identity"]["schema_version"], release.nonnegative, release.fill) == ("2.1", False, "interpolated")
    assert release.count.min() < 0
    for column, found in (
        ("count", release.count),
        ("stddev", release.node_stddev),
        ("ci_high", release.node_interval(slice(None))[1]),
    ):
        np.testing.assert_allclose(np.maximum(table[column], 0) if column == "ci_high" else table[column], found, rtol=1e-12)
    assert MECHANISMS.of("points")["path_tree"].from_settings(release.settings).fill == "interpolated"


def test_an_old_name_of_a_setting_is_translated_in_manifests_alone():
    stated = json.loads(member(GOLDEN / "bundles_2_0" / "top_down.zip", "manifest.json"))["contents"]["settings"]
    assert stated["conversion"] == "simple"
    assert read_release(GOLDEN / "bundles_2_0" / "top_down.zip").settings["accounting"] == "paper"
    for refuse in (
        lambda: MECHANISMS.of("trips")["top_down"].from_settings(stated),
        lambda: MechanismPart(key="top_down", settings=stated).build(TRIP_FAMILY),
    ):
        with pytest.raises(SettingError, match=r"'conversion'.* It is called 'accounting' now"):
            refuse()
    with pytest.raises(SettingError, match=r"no setting 'conversion'(?!.*called)"):
        MECHANISMS.of("points")["htf"].from_settings({"conversion": "tight"})


@pytest.mark.parametrize(("split", "weights"), [("uniform", []), ("custom", [1.0, 2.0])])
def test_weights_that_were_stated_without_being_used_are_left_out(split, weights):
    manifest = {"contents": {"kind": "trips", "settings": {"split": split, "weights": [1.0, 2.0], "conversion": "tight"}}}
    settings = translate_manifest(manifest)["contents"]["settings"]
    assert settings == {"split": split, "weights": weights, "accounting": "tight"}
    assert manifest["contents"]["settings"]["weights"] == [1.0, 2.0], "what was read is unchanged"


@pytest.mark.parametrize("name", ["path_tree", "uniform_grid_rho"])
def test_a_release_of_schema_2_4_says_of_its_intervals_what_it_said(name):
    path = GOLDEN / "bundles_2_4" / f"{name}.zip"
    manifest, release = read_manifest(path), read_release(path)
    assert (manifest["identity"]["schema_version"], find_violation(manifest)) == ("2.4", None)
    assert manifest["utility"]["interval"].endswith("neither what is assumed inside partitions nor what was wrong in the data.")
    now = describe_utility(release).interval
    assert now.endswith(f"hold in {release.says_of_cut_boxes}.")
    assert ("tails as normal" in now) == (release.noise == "gaussian")
