"""Texts of configurations, files and the ledger cannot control the terminal or break a line."""

import re
from contextlib import nullcontext
from dataclasses import fields

import pytest

from dpviz.errors import SettingError
from dpviz.privacy.budget import PureBudget
from dpviz.publishing import config as parts
from tests.hostile import NAMES, points_file, regions_file
from tests.ledgers import RECORDS
from tests.publishing.configs import FLOWS, POINTS, changed, written

HOSTILE = "\x1b[2J\x07\u202ea\nb\r[x](y)\x9b"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SECTIONS = ("data", "domain", "regions", "mechanism", "dataset", "publication", "output")


def texts():
    """Every key of a configuration that may hold a text, from the parts' own fields."""
    found = {section: fields(getattr(parts, f"{section.capitalize()}Part")) for section in SECTIONS}
    return [f"{section}.{each.name}" for section, keys in found.items() for each in keys if "str" in str(each.type)]


def test_no_section_of_a_configuration_is_left_out():
    kinds = {each.name for each in fields(parts.ReleaseConfig) if "Part" in str(each.type)}
    assert kinds - {*SECTIONS, "destinations", "budget"} == set()
    assert {"publication.name", "data.person", "regions.file", "dataset.name"} <= set(texts())


@pytest.mark.parametrize("key", texts())
def test_texts_of_a_configuration_cannot_control_the_terminal(run, tmp_path, key):
    config = changed(FLOWS if key.startswith("regions") else POINTS, key, HOSTILE)
    for words in (("--dry-run",), ()):
        _, out, err = run("release", written(tmp_path, config), *words)
        assert OBEYED.search(out + err) is None
        assert "\nb" not in out + err


@pytest.mark.parametrize("name", [HOSTILE, *NAMES])
def test_names_of_columns_levels_and_datasets_cannot_control_the_terminal(run, tmp_path, name):
    table, frame, trips = (tmp_path / each for each in ("a.csv", "r.csv", "t.csv"))
    quoted = '"' + name.replace('"', '""').replace("\n", " ").replace("\r", " ") + '"'
    table.write_text(f"lon,lat,{quoted}\n1,2,3\n", "utf-8")
    frame.write_text(f"{quoted},b\nx,{quoted}\ny,w\n", "utf-8")
    trips.write_text(f"from,to,count\n{quoted},w,9\nw,w,8\n", "utf-8")
    level = name.replace("\n", " ").replace("\r", " ")
    config = changed(changed(FLOWS, "data.trips", "t.csv"), "regions", {"file": "r.csv", "levels": [level, "b"]})
    found = [run("check", table), run("check", frame), run("release", written(tmp_path, config), "--dry-run")]
    assert found[0][0] == 0
    assert OBEYED.search("".join(out + err for _, out, err in found)) is None


def test_names_in_the_ledger_cannot_control_the_terminal(run, ledger):
    for number, name in enumerate([HOSTILE, *NAMES]):
        with nullcontext() if name.isprintable() else pytest.raises(SettingError, match="one line of text"):
            ledger.pay(name, [f"{number:064x}"], RECORDS, PureBudget(1), mechanism="quadtree")
    assert len(ledger.accounts()) > 20
    for words in ((), *([account.name] for account in ledger.accounts()), (HOSTILE,)):
        _, out, err = run("ledger", "show", *words)
        assert OBEYED.search(out + err) is None


def test_files_of_hostile_names_are_checked(run, tmp_path):
    for name, body in (("regions.geojson", regions_file()), ("points.csv", points_file())):
        (tmp_path / name).write_bytes(body)
        code, out, err = run("check", tmp_path / name)
        assert (code, OBEYED.search(out + err)) == (0, None)
        assert NAMES[0] in out
