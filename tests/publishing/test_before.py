"""What dpviz left on disks on 28 November 2026 is still known: accounts of the same data, paid draws, releases, configurations, studies.

The files in `before` were made once, by the code of that day (`make.py` there), and are never written again. `LATER_SETTINGS` is what has
been renamed since.
"""

import io
import json
import re
import shutil
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w

import dpviz as dv
from dpviz.errors import BudgetError, RefusedError, SettingError
from dpviz.privacy.accounts import exact_text
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import read_config
from dpviz.publishing.kept import kept_draws
from dpviz.publishing.private_data import fingerprints_of
from tests.publishing.configs import frame_of

BEFORE = Path(__file__).parent / "before"
GOLDEN = Path(__file__).parents[1] / "golden"
LATER_SETTINGS: dict[str, str] = {
    "inside": "fill",
    "zero": "shrink_small",
    "least": "threshold",
}  # settings of mechanisms: the name of that day, and today's
FAMILIES = {"crowd": 2, "towns": 4, "trips": 6}  # accounts, and the numbers of their kept draws
TEXTS = {"name": "Once more", "curator": "The town"}
CONFIGS = [f"{name}_{use}.toml" for name in FAMILIES for use in ("published", "kept")]
BUNDLES = {path.stem: path for path in sorted(BEFORE.glob("*bundle*.zip"))} | {
    f"{path.stem} of {path.parent.name}": path
    for version in ("2_0", "2_1", "2_4")
    for path in sorted((GOLDEN / f"bundles_{version}").glob("*.zip"))
}
NOTED = json.loads((BEFORE / "accounts.json").read_text("utf-8"))


@pytest.fixture
def here(tmp_path):
    """A copy of all files."""
    return Path(shutil.copytree(BEFORE, tmp_path / "before"))


@pytest.fixture
def ledger(here, monkeypatch):
    """A copy of the ledger, with the paid draws beside it, that the command line uses, too."""
    shutil.unpack_archive(here / "ledger.zip", here / "ledger")
    monkeypatch.setenv("DPVIZ_LEDGER", str(here / "ledger" / "ledger.sqlite"))
    return Ledger()


def rewritten(here, file, **changes):
    """A configuration in today's names, with changes of its parts; a key of None is left out."""
    tables = tomllib.loads((here / file).read_text("utf-8"))
    settings = tables["mechanism"].get("settings", {})
    tables["mechanism"]["settings"] = {LATER_SETTINGS.get(name, name): value for name, value in settings.items()}
    for part, keys in changes.items():
        tables[part] = {key: value for key, value in (tables[part] | keys).items() if value is not None}
    (here / f"today_{file}").write_text(tomli_w.dumps(tables), "utf-8")
    return here / f"today_{file}"


def named_otherwise(here, name, epsilon):
    """A configuration for the data of an account, under another name and without a cap: refused for data that are new."""
    unnamed = {"name": f"other {name}", "cap_epsilon": None, "cap_delta": None}
    return rewritten(here, f"{name}_published.toml", dataset=unnamed, budget={"epsilon": epsilon})


def table(name):
    return pd.read_csv(BEFORE / f"{name}.csv", dtype={"town": str, "from": str, "to": str}, engine="pyarrow")


def towns():
    return frame_of(read_config(BEFORE / "towns_published.toml"))


def counted(name, rows=None, *, order=4, regions=None, file=None):
    """Data that Python counts from rows, or from a file of them, and a mechanism for them; which rows of a person count is chance."""
    rows = table(name) if rows is None else rows
    source = rows if file is None else file
    person = {"person": "who", "contributions": 2} if "who" in rows else {"unit": "trip" if "from" in rows else "record"}
    regions = towns() if regions is None else regions
    if "town" in rows:
        return dv.read_areas(source, region="town", regions=regions, **person), dv.RegionTree()
    if "from" in rows:
        shops = dv.Regions.from_table(pd.DataFrame({"kind": ["k", "k", "j"], "shop": ["s2", "s1", "s3"]}), levels=["kind", "shop"])
        ends = {"origin": "from", "destination": "to", "destinations": shops if name == "pairs" else None}
        return dv.read_trips(source, regions=regions, **ends, **person), dv.TopDown(neighbours="add_remove")
    domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=order)
    return dv.read_points(source, x="lon", y="lat", domain=domain, **person), dv.Quadtree(height=2)


def publish(counts, ledger, folder, epsilon, **others):
    """Publish under a name that the ledger does not know, without a cap: refused for data that are new."""
    data, mechanism = counts
    budget = dv.ApproxBudget(epsilon, 1e-6) if mechanism.family == "trips" else dv.PureBudget(epsilon)
    person = "who" if data.unit == "person" else ""
    words = {"dataset": "a new name", "publication": TEXTS, "folder": folder, "person": person}
    return dv.publish(data, mechanism, budget, **words, ledger=ledger, **others)


class TestAccounts:
    def test_all_say_what_was_spent_looked_at_and_searched(self, ledger):
        found = {
            account.name: [account.draws, exact_text(account.left), account.truth_seen, account.persons_searched]
            for account in ledger.accounts()
        }
        assert found == NOTED
        assert [entry.published is None for name in FAMILIES for entry in ledger.entries(name)] == [False, True] * 3
        with zipfile.ZipFile(BEFORE / "crowd_bundle.zip") as archive:
            manifest = json.loads(archive.read("manifest.json"))
        assert ledger.entries("crowd")[0].published == manifest["identity"]["release_id"]

    @pytest.mark.parametrize("name", FAMILIES)
    def test_files_under_another_name_have_the_account_and_its_cap(self, here, run, ledger, name):
        code, _, err = run("release", named_otherwise(here, name, 50))
        assert code != 0
        assert re.search(r"cap|left", err)
        assert "new to the ledger" not in err
        code, out, err = run("release", named_otherwise(here, name, 0.125))
        assert code == 0, err
        assert f"The ledger knows these data as {name!r}" in err
        assert out.splitlines()[-1].startswith(f"{name}: 3 draws, left ")
        assert {account.name for account in ledger.accounts()} == NOTED.keys()

    @pytest.mark.parametrize("name", FAMILIES)
    def test_counts_of_files_are_known_when_python_gives_them_without_the_file(self, here, ledger, tmp_path, name):
        config = read_config(rewritten(here, f"{name}_published.toml"))
        rows = table(Path(config.data.files[0]).stem)
        options = {"bad_rows": "drop", **{key: value for key, value in config.data.options().items() if key in ("x", "y", "crs", "count")}}
        frame = frame_of(config)
        if name == "crowd":
            data = dv.read_points(rows, domain=frame, unit="record", **options)
        elif name == "towns":
            data = dv.read_areas(rows, regions=frame, unit="record", **options)
        else:
            data = dv.read_trips(rows, regions=frame[0], origin="from", destination="to", unit="trip", **options)
        with pytest.raises(RefusedError, match=r"cap|left"):
            publish((data, config.mechanism.build(config.family)), ledger, tmp_path / "out", 50)

    @pytest.mark.parametrize("name", [name for name in NOTED if name not in FAMILIES])
    def test_data_in_memory_have_their_account(self, ledger, tmp_path, name):
        with pytest.raises(RefusedError, match=r"cap|left"):
            publish(counted(name), ledger, tmp_path / "out", 50)
        assert publish(counted(name), ledger, tmp_path / "out", 0.125).account.name == name
        assert {account.name for account in ledger.accounts()} == NOTED.keys()

    @pytest.mark.parametrize("name", ["visitors", "guests", "riders"])
    @pytest.mark.parametrize("change", ["frame", "order of rows", "names of persons", "a file"])
    def test_rows_of_persons_have_their_account(self, ledger, tmp_path, name, change):
        rows = table(name)
        if change == "order of rows":
            rows = rows.iloc[::-1]
        if change == "names of persons":
            rows = rows.assign(who="x" + rows["who"])
        whole = pd.DataFrame({"all": "a", "town": towns().ids[-1]})
        frame = {"order": 5, "regions": dv.Regions.from_table(whole, levels=["all", "town"])} if change == "frame" else {}
        if change == "a file":
            frame = {"file": tmp_path / "rows.tsv"}
            rows.to_csv(frame["file"], index=False, sep="\t")
        with pytest.raises(RefusedError, match=r"cap|left"):
            publish(counted(name, rows, **frame), ledger, tmp_path / "out", 50)

    def test_other_data_are_new(self, ledger, tmp_path):
        with pytest.raises(BudgetError, match="new to the ledger"):
            publish(counted("grid", table("grid").iloc[1:]), ledger, tmp_path / "out", 50)

    def test_a_look_at_data_without_an_account_is_remembered(self, ledger):
        assert ledger.seen(fingerprints_of(counted("seen")[0]))
        assert not ledger.seen(fingerprints_of(counted("seen", table("seen").iloc[1:])[0]))


def cut(table):
    """A table whose intervals are cut at 0: a count is never negative, but some files say what was before this."""
    return table.assign(**{name: table[name].clip(lower=0) for name in table if re.match("(ci|all)_", name)})


def noisy_tables(folder):
    """The numbers of a release's files."""
    tables = {path.stem: cut(pd.read_parquet(path)) for path in sorted(folder.glob("*.parquet"))}
    return {stem: table[[name for name in table if re.match("count|stddev|ci_|all_", name)]] for stem, table in tables.items()}


class TestKeptDraws:
    def test_all_are_listed(self, run, ledger):
        assert [(account.name, entry.id) for account, entry in kept_draws(ledger)] == [*FAMILIES.items()]
        out = run("ledger", "show")[1]
        assert all(f"Draw {entry} of {name!r} is paid for and kept until it is published" in out for name, entry in FAMILIES.items())

    @pytest.mark.parametrize("name", FAMILIES)
    def test_each_is_published_with_its_own_configuration_and_its_own_noise(self, here, run, ledger, name):
        (kept,) = (here / "ledger" / "ledger.sqlite.paid").glob(f"{FAMILIES[name]}-*")
        before = noisy_tables(kept)
        other = run("release", rewritten(here, f"{name}_published.toml"), "--paid", FAMILIES[name])
        assert "another [mechanism] key" in other[2]
        code, out, err = run("release", rewritten(here, f"{name}_kept.toml"), "--paid", FAMILIES[name])
        assert (code, "nothing is spent" in err) == (0, True), err
        assert out.splitlines()[-1].startswith(f"{name}: 2 draws, left ")
        after = noisy_tables(here / "out")
        assert "count" in {column for columns in before.values() for column in columns}
        for stem, columns in before.items():
            for column in columns:
                now, then = after[stem][column], columns[column]
                if column.startswith("all_"):  # held for one level of areas, and hold for all levels now
                    then = (np.minimum if column == "all_low" else np.maximum)(now, then)
                np.testing.assert_allclose(now, then, rtol=1e-12, err_msg=f"{stem}: {column}")
        assert not kept.exists()
        assert ledger.entries(name)[1].published == dv.read_manifest(here / "out")["identity"]["release_id"]


def table_of(release):
    """The finest level of a release as a table, with the columns that identify its rows as its files name them."""
    if hasattr(release, "to_frame"):
        table = release.to_frame()
    elif hasattr(release, "regions"):
        table = release.level(release.regions.depth)
    else:
        table = release.level(release.depth, spread=True)
    return table.rename(columns={"region": "region_id", "destination": "dest"})


def finest_table(archive):
    """The CSV file of the finest level, and the columns that identify its rows."""
    names = [name for name in archive.namelist() if re.fullmatch(r"partitions\.csv|(areas|flows)_\d_.*\.csv", name)]
    ids = {"p": ["partition_id"], "a": ["region_id"], "f": ["origin", "dest"]}[names[0][0]]
    return pd.read_csv(io.BytesIO(archive.read(max(names))), dtype={"region_id": str, "origin": str, "dest": str}), ids


@pytest.mark.parametrize("bundle", BUNDLES)
def test_bundles_say_the_same_counts_intervals_and_receipt(bundle):
    path = BUNDLES[bundle]
    release, manifest = dv.read_release(path), dv.read_manifest(path)
    with zipfile.ZipFile(path) as archive:
        before, (wanted, ids) = json.loads(archive.read("manifest.json")), finest_table(archive)
    assert manifest["identity"] == before["identity"]
    assert manifest["accounting"] == before["accounting"]
    assert [str(step.amount) for step in release.receipt.steps] == [step["amount"]["exact"] for step in before["accounting"]["steps"]]
    found, wanted = (cut(table.set_index(ids).sort_index()) for table in (table_of(release), wanted))
    assert found.index.tolist() == wanted.index.tolist()
    for column in ("count", "count_noisy", "stddev", "ci_low", "ci_high"):
        np.testing.assert_allclose(found[column], wanted[column], rtol=1e-12, err_msg=column)


@pytest.mark.parametrize("file", CONFIGS)
def test_saved_configurations_are_read_or_say_the_new_name(here, file):
    settings = tomllib.loads((here / file).read_text("utf-8"))["mechanism"].get("settings", {})
    renamed = [LATER_SETTINGS[name] for name in settings if name in LATER_SETTINGS]
    if renamed:
        with pytest.raises(SettingError, match="|".join(renamed)):
            (old := read_config(here / file)).mechanism.build(old.family)
    config = read_config(rewritten(here, file))
    chosen = config.mechanism.build(config.family).chosen()
    assert {LATER_SETTINGS.get(name, name): value for name, value in settings.items()}.items() <= chosen.items()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_finished_study_has_nothing_left_to_run(here, run, ledger, name):
    config = here / f"{name}_study.toml"
    tables = tomllib.loads(config.read_text("utf-8"))
    for mechanism in tables["mechanism"]:
        for part in ("vary", "settings"):
            mechanism[part] = {LATER_SETTINGS.get(key, key): value for key, value in mechanism.get(part, {}).items()}
    config.write_text(tomli_w.dumps(tables), "utf-8")
    code, _, err = run("compare", config, "--output", here / f"{name}_study.csv", "--resume", "--workers", 1)
    assert (code, "Making 0 runs." in err) == (0, True), err
