"""Data are found relative to the configuration's folder, and recognised by their content."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.publishing.config import read_config
from dpviz.publishing.private_data import fingerprints_of, open_data, open_frame, without_records
from dpviz.samples.flows import load_flow_sample
from dpviz.space.domain import Domain
from tests.publishing.configs import CROWD, FLOWS, POINTS, changed, per_person, written

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
PUBLIC = PointCounts.from_xy([1.5, 1.5], [2.5, 2.5], domain=PLANE)


def opened(folder, tables, bad_rows="drop"):
    config = read_config(written(folder, tables))
    return open_data(config, open_frame(config), bad_rows=bad_rows)


def test_points_come_from_the_folder_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    found = opened(tmp_path, POINTS)
    assert found.data.count.tolist() == [2, 1, 1]
    assert found.data.dropped == 1


def test_trips_between_regions_and_bad_rows_are_dropped(tmp_path):
    found = opened(tmp_path, FLOWS)
    assert found.data.count.tolist() == [900, 40, 500]
    assert found.data.dropped == 7
    with pytest.raises(InputError):
        opened(tmp_path, FLOWS, bad_rows="refuse")


def test_other_columns_prefixes_and_persons(tmp_path):
    tables = per_person(POINTS, {"points": "crowd.csv", "x": "lat", "y": "lon", "person": "secret", "contributions": 2})
    found = opened(tmp_path, tables)
    assert (found.data.unit, found.data.contributions, found.data.count.sum()) == ("person", 2, 2)


@pytest.mark.parametrize("share", ["//far/crowd.csv", r"\\\\far\crowd.csv", r"\/far/*.csv", "http://far/crowd.csv"])
@pytest.mark.parametrize(("tables", "key"), [(POINTS, "data.points"), (FLOWS, "data.trips"), (FLOWS, "regions.file")])
def test_nothing_on_another_computer_is_opened(tmp_path, share, tables, key):
    with pytest.raises(InputError, match=r"network share|URLs"):
        opened(tmp_path, changed(tables, key, share))


def test_coarser_regions_by_the_first_characters_of_ids(tmp_path):
    (tmp_path / "codes.csv").write_text("code\nAa\nAb\nBc\n", "utf-8")
    config = read_config(written(tmp_path, changed(FLOWS, "regions", {"file": "codes.csv", "levels": ["code"], "prefixes": [1]})))
    assert [side.ids_of(1).tolist() for side in open_frame(config)] == [["A", "B"], ["A", "B"]]


def test_a_sample_on_its_own_domain_or_another(tmp_path):
    sample = changed(changed(POINTS, "data", {"sample": "gaussian_cluster", "size": 50}), "domain", None)
    assert opened(tmp_path, sample).data.domain.order == 10
    assert opened(tmp_path, sample | {"domain": {"bounds": [0, 0, 1024, 1024], "crs": "none", "order": 2}}).data.domain.order == 2


def test_the_same_records_in_another_file_share_a_mark(tmp_path):
    first = opened(tmp_path, POINTS)
    CROWD.sample(frac=1, random_state=1).to_parquet(tmp_path / "other.parquet")
    second = opened(tmp_path, changed(POINTS, "data.points", "other.parquet"))
    assert len(set(first.fingerprints) & set(second.fingerprints)) == 1
    assert len(set(first.fingerprints) | set(second.fingerprints)) == 3


def test_the_same_file_on_another_lattice_shares_a_mark(tmp_path):
    first, second = opened(tmp_path, POINTS), opened(tmp_path, changed(POINTS, "domain.order", 3))
    assert len(set(first.fingerprints) & set(second.fingerprints)) == 1


def test_a_sample_shares_a_mark_on_every_domain_and_only_with_its_size(tmp_path):
    plain = changed(changed(POINTS, "data", {"sample": "gaussian_cluster", "size": 50}), "domain", None)
    other = plain | {"domain": {"bounds": [0, 0, 1024, 1024], "crs": "none", "order": 2}}
    first, second = opened(tmp_path, plain), opened(tmp_path, other)
    assert len(set(first.fingerprints) & set(second.fingerprints)) == 1
    assert not set(first.fingerprints) & set(opened(tmp_path, changed(other, "data.size", 51)).fingerprints)


def test_one_more_record_changes_all_fingerprints():
    more = PointCounts.from_xy([1.5, 1.5, 1.5], [2.5, 2.5, 2.5], domain=PLANE)
    assert not set(fingerprints_of(PUBLIC, b"a")) & set(fingerprints_of(more, b"b"))


def test_counts_after_random_bounding_have_no_fingerprint():
    bounded = replace(PUBLIC, unit="person", contributions=2)
    assert len(fingerprints_of(bounded, b"file")) == 1
    assert fingerprints_of(bounded, b"file") == fingerprints_of(replace(bounded, count=np.array([9])), b"file")


def test_different_files_without_records_are_not_confused():
    nobody = without_records(PUBLIC)
    assert not set(fingerprints_of(nobody, b"a")) & set(fingerprints_of(nobody, b"b"))
    assert len(fingerprints_of(nobody)) == 1


def test_fingerprints_are_digests_and_are_not_shown(tmp_path):
    found = opened(tmp_path, POINTS)
    assert all(len(mark) == 64 and set(mark) <= set("0123456789abcdef") for mark in found.fingerprints)
    assert not any(mark in repr(found) for mark in found.fingerprints)
    assert "4" not in repr(found).partition("PointCounts")[2].replace("order=4", "")


def test_emptied_keeps_what_is_public_and_nothing_else():
    person = replace(PUBLIC, unit="person", contributions=3, dropped=8)
    assert without_records(person) != person
    assert (without_records(person).domain, without_records(person).unit, without_records(person).contributions) == (PLANE, "person", 3)
    assert (len(without_records(person).count), without_records(person).dropped) == (0, 0)
    flows = replace(load_flow_sample("northeast_commuters"), exactly=True, notes=("a total",), dropped=3)
    assert (without_records(flows).regions, without_records(flows).exactly) == (flows.regions, True)
    assert (len(without_records(flows).count), without_records(flows).notes, without_records(flows).dropped) == (0, (), 0)
