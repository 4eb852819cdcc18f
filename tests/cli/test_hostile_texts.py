"""Texts of configurations, files and the ledger cannot control the terminal or break a line."""

import re
from contextlib import nullcontext
from dataclasses import fields

import pytest

from dpviz.errors import SettingError
from dpviz.privacy.budget import PureBudget
from dpviz.publishing.config import PARTS
from tests.hostile import NAMES
from tests.ledgers import RECORDS
from tests.publishing.configs import FLOWS, POINTS, changed, written

HOSTILE = "\x1b[2J\x07\u202ea\nb\r[x](y)\x9b"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TEXTS = [f"{section}.{each.name}" for section, part in PARTS.items() for each in fields(part) if "str" in str(each.type)]


@pytest.mark.parametrize("key", TEXTS)
def test_texts_of_a_configuration_cannot_control_the_terminal(run, tmp_path, key):
    config = changed(FLOWS if key.startswith(("regions", "destinations")) else POINTS, key, HOSTILE)
    for words in (("--dry-run",), ()):
        _, out, err = run("release", written(tmp_path, config), *words)
        assert OBEYED.search(out + err) is None
        assert "\nb" not in out + err


@pytest.mark.parametrize("name", [HOSTILE, *NAMES])
def test_names_of_columns_levels_and_datasets_cannot_control_the_terminal(run, tmp_path, name):
    level = name.replace("\n", " ").replace("\r", " ")
    quoted = '"' + level.replace('"', '""') + '"'
    contents = {"a": f"lon,lat,{quoted}\n1,2,3\n", "r": f"{quoted},b\nx,{quoted}\ny,w\n", "t": f"from,to,count\n{quoted},w,9\nw,w,8\n"}
    for file, content in contents.items():
        (tmp_path / f"{file}.csv").write_text(content, "utf-8")
    config = changed(changed(FLOWS, "data.trips", "t.csv"), "regions", {"file": "r.csv", "levels": [level, "b"]})
    found = [run("check", tmp_path / "a.csv"), run("check", tmp_path / "r.csv"), run("release", written(tmp_path, config), "--dry-run")]
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
