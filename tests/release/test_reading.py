"""A release is read only if every file is there, unchanged and listed; whatever else is a clear error."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpviz.errors import InputError
from dpviz.mechanisms import TopDown
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release import files as archive
from dpviz.release import files as reading
from dpviz.release.files import read_manifest, read_release, seal, write_release, zip_release
from dpviz.release.manifest import describe
from tests.release_cases import WORDS, assert_same, flows_on, point_release, regions_with_shapes


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of points and one of trips, written once; tests work on copies."""
    around = tmp_path_factory.mktemp("written")
    trips = TopDown().release(flows_on(regions_with_shapes()), ApproxBudget(1, "1e-6"), Entropy.system())
    for name, release in (("points", point_release()), ("trips", trips)):
        write_release(release, around / name, describe(release, WORDS), files={"report.html": b"<p>text</p>"})
    return around


@pytest.fixture(params=["points", "trips"])
def folder(request, folders, tmp_path):
    return Path(shutil.copytree(folders / request.param, tmp_path / "copy"))


def members_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def resealed(folder: Path, change) -> None:
    """Change the manifest and seal it again, as a forger would; digests of tables are brought up to date."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(manifest)
    for entry in manifest["files"]:
        if (folder / entry["name"]).exists():
            entry.update(facts_of_file(folder / entry["name"]))
    manifest["seal"] = seal(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def facts_of_file(path: Path) -> dict:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}


def assert_only_clear_errors(source) -> None:
    """A release, or an InputError that carries no other error with it."""
    error = None
    try:
        read_release(source)
    except InputError as found:
        error = found
    assert error is None or (error.__cause__, error.__context__) == (None, None)


def packed(files: dict[str, bytes], **options) -> io.BytesIO:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", **options) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return io.BytesIO(target.getvalue())


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_changed_byte_of_every_file_is_noticed(folder):
    for name in members_of(folder):
        path = folder / name
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 2):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with pytest.raises(InputError):
                read_release(folder)
        path.write_bytes(content + b" ")
        if name != "manifest.json":  # whose spaces mean nothing
            with pytest.raises(InputError, match=f"{name} was changed"):
                read_release(folder)
        path.write_bytes(content[:-7])
        with pytest.raises(InputError):
            read_release(folder)
        path.write_bytes(content)
    assert read_release(folder)


def test_every_missing_file_is_named(folder):
    for name in members_of(folder):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(InputError, match=f"has no {name}" if name == "manifest.json" else f"{name} is missing"):
            read_release(folder)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", ["extra.csv", "manifest (1).json", ".hidden"])
def test_an_extra_file_is_noticed(name, folder):
    (folder / name).write_text("x")
    with pytest.raises(InputError, match="does not list"):
        read_release(folder)


def test_folders_and_links_are_not_followed(folder):
    (folder / "more").mkdir()
    with pytest.raises(InputError, match="not a plain file"):
        read_release(folder)
    (folder / "more").rmdir()
    content = (folder / "report.html").rename(folder.parent / "elsewhere.html")
    (folder / "report.html").symlink_to(content)
    with pytest.raises(InputError, match="not a plain file"):
        read_release(folder)


def words_of(facts, found=()):
    """Every place in a manifest, as a path of names and numbers."""
    steps = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for step, below in steps:
        yield (*found, step)
        yield from words_of(below, (*found, step))


def test_every_changed_word_of_the_manifest_is_noticed(folder):
    text = (folder / "manifest.json").read_text("utf-8")
    places = list(words_of(json.loads(text)))
    assert len(places) > 100
    for place in places[::3]:
        manifest = json.loads(text)
        holder = manifest
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = "other" if holder[place[-1]] != "other" else "another"
        (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
        with pytest.raises(InputError, match=r"schema at manifest|seal does not fit|another version of dpviz"):
            read_release(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": NaN}', '{"a": 1, "a": 2}', "\udcff", "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "7"]
)
def test_a_manifest_that_is_none_is_refused(text, folder):
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as refusal:
        read_release(folder)
    assert refusal.value.__cause__ is None


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_forged_manifest_never_gives_another_error(folders, tmp_path, data):
    """Seal and digests fit, but a value is another one: a release or an InputError, nothing else."""
    name = data.draw(st.sampled_from(["points", "trips"]))
    copy = Path(shutil.copytree(folders / name, tmp_path / "forged", dirs_exist_ok=True))
    places = list(words_of(json.loads((copy / "manifest.json").read_text("utf-8"))))
    place = data.draw(st.sampled_from([each for each in places if each[0] in ("privacy", "accounting", "contents", "files")]))
    value = data.draw(st.none() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5) | st.just([]))

    def change(manifest):
        holder = manifest
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value

    try:
        resealed(copy, change)
    except (AttributeError, KeyError, TypeError, ValueError, OSError):
        return
    assert_only_clear_errors(copy)


def replaced_column(path: Path, name: str, values) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    pq.write_table(table.set_column(place, name, pa.array(values, table.schema.field(name).type)), path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parent", lambda values: np.roll(values, 1)),
        ("parent", lambda values: values - 1),
        ("children", lambda values: values + 1),
        ("first_child", lambda values: values + 1),
        ("level", lambda values: values + 1),
        ("east_line", lambda values: values + 9),
        ("west_line", lambda values: values[::-1]),
        ("north_line", lambda values: values * 0),
    ],
)
def test_a_forged_tree_is_noticed(name, change, folders, tmp_path):
    copy = Path(shutil.copytree(folders / "points", tmp_path / "copy"))
    column = pq.read_table(copy / "levels.parquet").column(name).to_numpy()
    replaced_column(copy / "levels.parquet", name, change(column).astype(column.dtype))
    resealed(copy, lambda manifest: None)
    with pytest.raises(InputError, match="no tree of nested rectangles"):
        read_release(copy)


@pytest.mark.parametrize(
    ("table", "name", "change"),
    [
        ("stages.parquet", "origin", lambda values: ["nowhere", *values[1:]]),
        ("regions.parquet", "region_id", lambda values: [values[0]] * len(values)),
        ("regions.parquet", "parent_id", lambda values: ["nowhere"] * len(values)),
    ],
)
def test_forged_regions_are_noticed(table, name, change, folders, tmp_path):
    copy = Path(shutil.copytree(folders / "trips", tmp_path / "copy"))
    replaced_column(copy / table, name, change(pq.read_table(copy / table).column(name).to_pylist()))
    resealed(copy, lambda manifest: None)
    with pytest.raises(InputError):
        read_release(copy)


@pytest.mark.parametrize(("kind", "table", "name"), [("points", "partitions.parquet", "count"), ("trips", "flows.parquet", "count")])
def test_a_main_table_with_other_counts_than_the_release_is_noticed(kind, table, name, folders, tmp_path):
    copy = Path(shutil.copytree(folders / kind, tmp_path / "copy"))
    replaced_column(copy / table, name, pq.read_table(copy / table).column(name).to_numpy() + 1)
    resealed(copy, lambda manifest: None)
    with pytest.raises(InputError, match=f"{table} has other counts"):
        read_release(copy)


def test_a_receipt_that_spends_more_than_its_budget_is_refused(folders, tmp_path):
    copy = Path(shutil.copytree(folders / "points", tmp_path / "copy"))
    resealed(copy, lambda manifest: manifest["privacy"]["epsilon"].update(exact="1/2"))
    with pytest.raises(InputError, match="spend more than the budget"):
        read_release(copy)


def test_a_release_without_geoparquet_cannot_be_read_back(tmp_path):
    release = point_release()
    folder = write_release(release, tmp_path / "out", describe(release, WORDS), formats=("csv",))
    with pytest.raises(InputError, match="without GeoParquet"):
        read_release(folder)
    assert read_manifest(folder)["data_product"]["name"] == WORDS.name


def test_a_zip_is_read_from_a_path_or_an_open_file_with_or_without_a_folder_inside(folder, tmp_path):
    expected, content = read_release(folder), contents_of(folder)
    (tmp_path / "out.zip").write_bytes(zip_release(folder))
    with (tmp_path / "out.zip").open("rb") as file:
        assert_same(read_release(file), expected)
    assert_same(read_release(tmp_path / "out.zip"), expected)
    assert_same(read_release(str(tmp_path / "out.zip")), expected)
    inside = {"county/": b"", **{f"county/{name}": each for name, each in content.items()}}
    assert_same(read_release(packed(inside)), expected)


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["../evil"], "leads out"),
        (["/etc/passwd"], "leads out"),
        (["a\\..\\evil"], "leads out"),
        (["C:evil"], "leads out"),
        (["one/evil"], "all in one folder"),
        (["a/b/evil"], "all in one folder"),
        ([f"more{number}" for number in range(300)], "more files than the limit of 256"),
        (["evil.csv"], "does not list"),
    ],
)
def test_members_of_a_zip_that_do_not_belong_are_refused(names, rule, folder):
    content = contents_of(folder) | dict.fromkeys(names, b"x")
    with pytest.raises(InputError, match=rule):
        read_release(packed(content))
    assert not Path("evil").exists()


def test_members_of_a_zip_of_one_name_are_refused(folder):
    target = io.BytesIO(zip_release(folder))
    with zipfile.ZipFile(target, "a") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("manifest.json", b"{}")
    with pytest.raises(InputError, match="two members of one name"):
        read_release(io.BytesIO(target.getvalue()))


def test_links_encryption_and_unusual_compression_in_a_zip_are_refused(folder):
    content = contents_of(folder)
    with pytest.raises(InputError, match="unusual way"):
        read_release(packed(content, compression=zipfile.ZIP_LZMA))
    link = zipfile.ZipInfo("manifest.json")
    link.external_attr = 0o120777 << 16
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        made.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="a link"):
        read_release(io.BytesIO(target.getvalue()))
    data = bytearray(zip_release(folder))
    place = data.rindex(b"PK\x01\x02")
    data[place + 8] |= 1
    with pytest.raises(InputError, match="encrypted"):
        read_release(io.BytesIO(bytes(data)))


def test_a_zip_bomb_is_refused_by_what_it_declares(folder, monkeypatch):
    content = contents_of(folder) | {"report.html": bytes(10**6)}
    monkeypatch.setattr(archive, "MOST_BYTES", 500_000)
    with pytest.raises(InputError, match="files are larger than the limit of 500,000 bytes together"):
        read_release(packed(content, compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(InputError, match="archive is larger than the limit"):
        read_release(packed(content))


def test_a_table_that_unpacks_to_too_much_is_refused(folder, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 2_000)
    with pytest.raises(InputError, match="limit of 2,000 bytes"):
        read_release(folder)


@pytest.mark.parametrize("cut", [0, 1, 100, 1000, -1])
def test_what_is_no_zip_or_half_of_one_is_refused(cut, folder, tmp_path):
    data = zip_release(folder)[:cut]
    with pytest.raises(InputError, match="not a zip"):
        read_release(io.BytesIO(data))
    (tmp_path / "half.zip").write_bytes(data)
    with pytest.raises(InputError, match="not a zip"):
        read_release(tmp_path / "half.zip")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_any_changed_byte_of_a_zip_gives_the_same_release_or_a_clear_error(folders, place, value):
    data = bytearray(zip_release(folders / "trips"))
    data[int(place * len(data))] = value
    assert_only_clear_errors(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("source", ["missing", 7, None, io.StringIO("x"), b"PK"])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(InputError):
        read_release(source)


FRESH = """
import sys
import dpviz as dv
points, trips = (dv.read_release(path) for path in sys.argv[1:])
count, stddev = points.answer([points.domain.bounds], spread=True)
moved, apart = trips.answer(["a"], ["b"], spread=True)
print(repr((count.tolist(), stddev.tolist(), moved.tolist(), apart.tolist(), str(points.receipt.spent), points.simulation)))
points.refuse_unpublishable()
print(len(points.to_frame()), len(trips.level("town", spread=True)))
"""


def test_a_release_answers_in_a_fresh_process(folders, tmp_path):
    points, trips = point_release(), read_release(folders / "trips")
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(folders / "points"), str(folders / "trips")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
    count, stddev = points.answer([points.domain.bounds], spread=True)
    moved, apart = trips.answer(["a"], ["b"], spread=True)
    expected = (count.tolist(), stddev.tolist(), moved.tolist(), apart.tolist(), str(points.receipt.spent), False)
    assert done.stdout.splitlines() == [repr(expected), f"{len(points.to_frame())} {len(trips.level('town'))}"]


def test_what_was_read_can_be_written_again_and_is_still_the_same(folder, tmp_path):
    release = read_release(folder)
    write_release(release, tmp_path / "again", describe(release, WORDS))
    assert_same(read_release(tmp_path / "again"), release)
    release.receipt.refuse_unpublishable(simulation=release.simulation)


def test_arrays_that_were_read_are_ones_own(folders):
    release = read_release(folders / "points")
    release.count[:] = -1
    assert_same(read_release(folders / "points"), point_release())


def test_what_file_managers_leave_behind_is_no_part_of_a_release(folder):
    whole = read_release(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in (".DS_Store", "Thumbs.db"):
        (folder / name).write_bytes(b"x")
    assert_same(read_release(folder), whole)
    assert_same(read_release(packed(files | {".DS_Store": b"x"})), whole)


def test_strangers_are_named(folder):
    (folder / "extra.csv").write_text("x")
    with pytest.raises(InputError, match=r"its manifest does not list: 'extra\.csv'"):
        read_release(folder)


@pytest.mark.parametrize(
    ("at", "value", "told"),
    [
        (("utility", "levels", 0, "stddev_median"), 0.5, "utility"),
        (("accounting", "used"), {"exact": "1/9", "decimal": 1 / 9}, "accounting"),
        (("privacy", "spent", "epsilon"), {"exact": "1/9", "decimal": 1 / 9}, "privacy"),
        (("accounting", "steps", 0, "amount", "decimal"), 0.25, "accounting"),
    ],
)
def test_a_manifest_sealed_again_that_contradicts_its_release_is_refused(folder, at, value, told):
    def change(manifest):
        *path, name = at
        for step in path:
            manifest = manifest[step]
        manifest[name] = value

    resealed(folder, change)
    with pytest.raises(InputError, match=f"contradicts the release that it describes, at {told}"):
        read_release(folder)


def test_a_manifest_of_the_other_kind_is_refused(folder):
    kinds = {"points": "trips", "trips": "points"}
    resealed(folder, lambda manifest: manifest["identity"].update(kind=kinds[manifest["identity"]["kind"]]))
    with pytest.raises(InputError, match="contradicts"):
        read_release(folder)
