"""What dpviz left on disks on 28 November 2026: made once, by the code of that day. Never run again, and not edited when names change.

`python -m tests.publishing.before.make` wrote all files beside this one, from made-up data; `bundle_2_2.zip` was made by commit 4895a5aa^.
"""

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely
import tomli_w

import dpviz as dv
from dpviz.__main__ import main
from dpviz.app.pages.compare.state import CompareConfig
from dpviz.app.session import widgets
from dpviz.app.session.widgets import read_link
from dpviz.app.state.kinds import KINDS
from dpviz.app.state.links import write_link
from dpviz.cli.release import order_of, publication_texts
from dpviz.privacy.accounts import exact_text
from dpviz.publishing.config import read_config, to_toml
from dpviz.publishing.private_data import fingerprints_of, open_frame
from dpviz.publishing.publish import draw
from tests.app.parts import flat
from tests.app.start import PLACES, areas_uploaded, query_of, trips_uploaded, uploaded
from tests.app.walk import name_dataset, protect

HERE = Path(__file__).parent
IDS = ["0101", "0102", "0103", "0201", "0202", "1001", "1002", "1003"]
SHOPS = pd.DataFrame({"kind": ["k", "k", "j"], "shop": ["s2", "s1", "s3"]})
DOMAIN = {"bounds": [0, 0, 16, 16], "crs": "none", "order": 4}
REGIONS = {"file": "towns.geojson", "levels": ["state", "town"]}
TEXTS = {"name": "A city", "curator": "The town", "description": "Where they were.", "region": "", "intended_use": ""}
FAMILIES = {
    "crowd": ({"points": "crowd.csv", "x": "lon", "y": "lat"}, {"domain": DOMAIN}, {"epsilon": 0.5}, {"unit": "record", "cap_epsilon": 2}),
    "towns": ({"points": "homes.csv", "crs": "EPSG:4326"}, {"regions": REGIONS}, {"epsilon": 1}, {"unit": "record", "cap_epsilon": 3}),
    "trips": (
        {"trips": "trips.csv", "origin": "from", "destination": "to", "count": "n"},
        {"regions": REGIONS},
        {"epsilon": 1, "delta": 1e-6},
        {"unit": "trip", "cap_epsilon": 4, "cap_delta": 1e-5},
    ),
}
PUBLISHED = {
    "crowd": {"key": "path_tree"},
    "towns": {"key": "region_tree", "settings": {"nonnegative": True}},
    "trips": {"key": "top_down"},
}
KEPT = {
    "crowd": {"key": "quadtree", "settings": {"height": 3, "zero": True, "inside": "log-linear", "negative": "spread"}},
    "towns": {"key": "flat", "settings": {"least": 4}},
    "trips": {"key": "flat_gaussian", "settings": {"least": 5}},
}
VARIED = {"crowd": {"key": "quadtree", "vary": {"zero": [True, False]}}, "towns": {"key": "region_tree"}, "trips": {"key": "top_down"}}
LINKS = {
    "points": {"settings": '{"height":3,"inside":"log-linear","zero":true}', "mechanism": "quadtree", "epsilon": "0.25", "order": "6"},
    "trips": {"sample": "northeast_commuters", "settings": '{"least":5}', "mechanism": "flat_gaussian", "level": "2", "top": "250"},
    "areas": {"settings": '{"least":4}', "mechanism": "flat", "level": "2", "asked": "[1,3]", "epsilon": "2.0"},
    "compare": {
        "mechanisms": '["quadtree","htf"]',
        "settings": '{"quadtree":{"height":[4,6],"zero":[true]}}',
        "repeats": "4",
        "order": "6",
    },
}


def write_data(folder):
    """Files of records, of public towns, and of records that only Python will count."""
    rng = np.random.default_rng(28)
    shapes = [shapely.box(x, 50 + y, x + 1, 51 + y) for x in range(4) for y in range(2)]
    towns = {"state": [code[:2] for code in IDS], "town": IDS, "people": [10, 0, 30, 40, 5, 6, 70, 8]}
    geopandas.GeoDataFrame(towns, geometry=shapes, crs="EPSG:4326").to_file(folder / "towns.geojson", driver="GeoJSON")
    places = lambda n: {"lon": rng.uniform(0, 16, n).round(3), "lat": (16 * rng.beta(2, 5, n)).round(3)}  # noqa: E731
    homes = lambda n: {"lon": rng.uniform(-0.2, 4, n).round(3), "lat": rng.uniform(50, 52, n).round(3)}  # noqa: E731
    pairs = lambda n: {"from": rng.choice(IDS[:6], n), "to": rng.choice(IDS[2:], n)}  # noqa: E731
    who = lambda n: {"who": [f"p{number:02}" for number in rng.integers(0, n // 5, n)]}  # noqa: E731
    tables = {"crowd": places(120), "towns": homes(150), "trips": pairs(60) | {"n": rng.integers(1, 90, 60)}}
    tables |= {"visitors": places(90) | who(90), "guests": {"town": rng.choice(IDS, 90)} | who(90), "riders": pairs(90) | who(90)}
    tables |= {"grid": places(70), "blocks": {"town": rng.choice(IDS, 70)}}
    tables |= {"pairs": {"from": rng.choice(IDS, 70), "to": rng.choice(SHOPS["shop"], 70)}, "seen": places(50)}
    for name, columns in tables.items():
        pd.DataFrame(columns).to_csv(folder / f"{'homes' if name == 'towns' else name}.csv", index=False)


def configuration(name, mechanism, file):
    """A configuration of a family, written as a page saves it, and read."""
    data, frame, budget, account = FAMILIES[name]
    tables = {"data": data, **frame, "mechanism": mechanism, "budget": budget, "dataset": {"name": name, **account}}
    (HERE / file).write_text(tomli_w.dumps(tables | {"publication": TEXTS, "output": {"folder": "out", "formats": ["geoparquet", "csv"]}}))
    (HERE / file).write_text(to_toml(read_config(HERE / file)), "utf-8")
    return read_config(HERE / file)


def publish_family(name, ledger):
    """Publish one release, keep another one that is paid for, and write a study's table."""
    order, _ = order_of(published := configuration(name, PUBLISHED[name], f"{name}_published.toml"))
    assert main(["release", str(HERE / f"{name}_published.toml")]) == 0
    shutil.make_archive(HERE / f"{name}_bundle", "zip", HERE / "out")
    shutil.rmtree(HERE / "out")
    (ledger.note_persons_searched if name == "towns" else ledger.note_truth_seen)(order.fingerprints)
    kept = configuration(name, KEPT[name], f"{name}_kept.toml")
    draw(order_of(kept)[0], ledger, words=publication_texts(kept))
    study = {"seed": 7, "repeats": 2, "epsilons": [0.5, "1/3"], "data": {**FAMILIES[name][0], "public": True}, **FAMILIES[name][1]}
    study |= {"mechanism": [VARIED[name]]} | ({"delta": 1e-6} if name == "trips" else {"queries": 9} if name == "crowd" else {})
    (HERE / f"{name}_study.toml").write_text(tomli_w.dumps(study), "utf-8")
    assert main(["compare", str(HERE / f"{name}_study.toml"), "--output", str(HERE / f"{name}_study.csv"), "--workers", "1"]) == 0
    return open_frame(published)


def count_tables(regions):
    """Data that only Python counts: of rows with persons, and of records whose counts alone can be recognised."""
    read = lambda name: pd.read_csv(HERE / f"{name}.csv", dtype={"town": str, "from": str, "to": str})  # noqa: E731
    domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    shops = dv.Regions.from_table(SHOPS, levels=["kind", "shop"])
    person, each = {"person": "who", "contributions": 2}, {"unit": "record"}
    ends = {"origin": "from", "destination": "to"}
    return {
        "visitors": dv.read_points(read("visitors"), x="lon", y="lat", domain=domain, **person),
        "guests": dv.read_areas(read("guests"), region="town", regions=regions, **person),
        "riders": dv.read_flows(read("riders"), regions=regions, **ends, **person),
        "grid": dv.read_points(read("grid"), x="lon", y="lat", domain=domain, **each),
        "blocks": dv.read_areas(read("blocks"), region="town", regions=regions, **each),
        "pairs": dv.read_flows(read("pairs"), regions=regions, destinations=shops, **ends, unit="trip"),
        "seen": dv.read_points(read("seen"), x="lon", y="lat", domain=domain, **each),
    }


def write_drafts():
    """Let the pages keep the choices of three sessions beside the ledger, and note the addresses that find them."""
    apps = {"points": uploaded(PLACES, "homes.csv", unit=None), "trips": trips_uploaded(unit=None), "areas": areas_uploaded(unit=None)}
    addresses = {}
    for page, app in apps.items():
        protect(app, {"points": "note", "trips": "rider", "areas": "visitor"}[page], 1 if page == "trips" else 3)
        addresses[page] = query_of(name_dataset(app, f"{page} 2026", cap=7.0))
    (HERE / "drafts.json").write_text(json.dumps(addresses, indent=1) + "\n", "utf-8")


def write_before():
    """Write everything."""
    work = Path(tempfile.mkdtemp()) / "ledger"
    work.mkdir()
    os.environ["DPVIZ_LEDGER"] = str(work / "ledger.sqlite")
    ledger = dv.Ledger.new(work / "ledger.sqlite")
    write_drafts()
    write_data(HERE)
    frames = [publish_family(name, ledger) for name in FAMILIES]
    counted = count_tables(frames[1])
    ledger.note_truth_seen(fingerprints_of(counted.pop("seen")))
    mechanisms = {"PointCounts": dv.Quadtree(height=2), "AreaCounts": dv.RegionTree(), "Flows": dv.TopDown(neighbours="add_remove")}
    for name, data in counted.items():
        trips = type(data).__name__ == "Flows"
        price, cap = [dv.ApproxBudget(e, d) if trips else dv.PureBudget(e) for e, d in ((1, 1e-6), (3, 1e-5))]
        words = {"dataset": name, "publication": TEXTS, "folder": work.parent / name, "cap": cap, "ledger": ledger}
        dv.publish(data, mechanisms[type(data).__name__], price, **words, person="who" if data.unit == "person" else "")
    facts = {
        account.name: [account.draws, exact_text(account.left), account.truth_seen, account.persons_searched]
        for account in ledger.accounts()
    }
    pages = {page: read_link(KINDS[page], link) for page, link in LINKS.items() if page != "compare"}
    study = widgets.read_link(CompareConfig, LINKS["compare"])
    written = {page: (write_link(value), flat(value)) for page, value in pages.items()}
    written["compare"] = (widgets.to_query(study), asdict(study))
    links = {page: {"link": link, "opens": {name: opens[name] for name in LINKS[page]}} for page, (link, opens) in written.items()}
    (HERE / "links.json").write_text(json.dumps(links, indent=1, default=list) + "\n", "utf-8")
    (HERE / "accounts.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    with closing(sqlite3.connect(ledger.path)) as db:
        db.execute("VACUUM")
    shutil.make_archive(HERE / "ledger", "zip", work)


if __name__ == "__main__":
    write_before()
