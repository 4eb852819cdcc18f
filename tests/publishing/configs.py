"""Configurations for tests: the tables of a small release and of a small comparison, their files, and the data that they open."""

import numpy as np
import pandas as pd
import tomli_w

from dpviz.publishing.config import read_config
from dpviz.publishing.private_data import make_frame, open_sources, read_data

CROWD = pd.DataFrame({"lon": [1.5, 1.5, 2.5, 9.0, 99.0], "lat": [1.5, 1.5, 3.5, 9.0, 1.0], "secret": ["Rosa"] * 5})
PEOPLE = pd.DataFrame({"lon": np.arange(60) % 16 + 0.5, "lat": np.arange(60) // 16 + 0.5, "who": np.arange(60) % 7})
TOWNS = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
TRIPS = pd.DataFrame({"from": ["a", "b", "c", "zzz"], "to": ["c", "c", "a", "a"], "count": [900, 40, 500, 7]})

POINTS = {
    "data": {"points": "crowd.csv"},
    "domain": {"bounds": [0, 0, 16, 16], "crs": "none", "order": 4},
    "mechanism": {"key": "quadtree", "settings": {"height": 3}},
    "budget": {"epsilon": 0.5},
    "dataset": {"name": "crowd", "unit": "record", "cap_epsilon": 1},
    "publication": {"name": "A crowd", "curator": "The town", "description": "Where they stood."},
    "output": {"folder": "out"},
}
FLOWS = {
    **POINTS,
    "data": {"trips": "trips.csv"},
    "regions": {"file": "towns.csv", "levels": ["state", "town"]},
    "mechanism": {"key": "top_down"},
    "budget": {"epsilon": 1, "delta": 1e-6},
    "dataset": {"name": "trips", "unit": "trip", "cap_epsilon": 2, "cap_delta": 1e-5},
}
del FLOWS["domain"]

STUDY = {
    "seed": 7,
    "repeats": 2,
    "epsilons": [0.5, "1/3"],
    "queries": 20,
    "data": {"sample": "gaussian_cluster", "size": 500},
    "domain": {"bounds": [0, 0, 1024, 1024], "crs": "none", "order": 4},
    "mechanism": [{"key": "quadtree", "vary": {"height": [2, 3]}}, {"key": "identity"}],
}


def changed(tables, path, value):
    """A copy with one key changed, or left out for None; `path` is "section.key" or "key"."""
    first, _, rest = path.partition(".")
    if rest:
        return {**tables, first: changed(tables.get(first, {}), rest, value)}
    others = {name: each for name, each in tables.items() if name != path}
    return others if value is None else others | {path: value}


def per_person(tables, data):
    """A copy of a configuration whose columns say who a row belongs to, so that no unit is declared."""
    return changed(changed(tables, "data", data), "dataset.unit", None)


def written(folder, tables, name="release.toml"):
    """The path of a configuration in a folder that holds its data, too."""
    for file, table in (("crowd", CROWD), ("towns", TOWNS), ("trips", TRIPS)):
        table.to_csv(folder / f"{file}.csv", index=False)
    (folder / name).write_text(tomli_w.dumps(tables), "utf-8")
    return folder / name


def frame_of(config):
    """The public frame of a configuration."""
    return make_frame(open_sources(config))


def data_of(config, bad_rows="drop"):
    """The private data of a configuration, counted in its frame."""
    return read_data(sources := open_sources(config), make_frame(sources), bad_rows=bad_rows)


def opened(folder, tables, bad_rows="drop"):
    """The data of a configuration that is written to a folder."""
    return data_of(read_config(written(folder, tables)), bad_rows)


def parts(folder, ending="parquet"):
    """People cut into three files; gives the folder."""
    (folder / "parts").mkdir()
    for number, (first, last) in enumerate(((0, 10), (10, 40), (40, 60))):
        path, part = folder / "parts" / f"{number}.{ending}", PEOPLE.iloc[first:last]
        part.to_parquet(path, index=False) if ending == "parquet" else part.to_csv(path, index=False)
    return folder / "parts"


def counted(folder, data, tables=POINTS):
    """What another section [data] opens, if no row is bad."""
    tables = per_person(tables, data) if "person" in data else changed(tables, "data", data)
    return opened(folder, tables, "refuse")
