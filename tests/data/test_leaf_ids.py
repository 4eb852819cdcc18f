"""Ids of leaves: as they are written, else by plain forms that depend on the regions alone; on every engine, row by row."""

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.data.leaf_ids import LeafIds, find_leaves
from dpviz.space.regions import Regions

ENGINES = ("numpy", "duckdb", "dask")
NFD = unicodedata.normalize("NFD", "Łódź é")
CASES = {  # ids of the leaves; how an id is written -> the leaf, or None
    "lost zeros": (["01001", "36061"], {"01001": 0, "1001": 0, " 1001 ": 0, "1001.0": 0, "36061": 1, "0001001": None, "36": None}),
    "names": (["Łódź é", "b", "7"], {NFD: 0, "b ": 1, "7.0": 2, "7.00": 2, "7.1": None, "07": None, "B": None}),
    "stations": (["6140.05", "5379.10"], {"6140.05": 0, "5379.1": None, "5379.10": 1}),
    "H3": (["89283082803ffff", "89283082807ffff"], {"617700169957507071": 0, "617700169957769215": 1, "1": None, "89283082807ffff": 1}),
    "one form of two": (["1", "1.0", "e\u0301", "\u00e9"], {"1": 0, "1.0": 1, "1.00": None, "e\u0301": 2, "\u00e9": 3}),
    "digits of two lengths": (["01", "001"], {"01": 0, "001": 1, "1": None}),
    "not whole": (["0.0", "b"], {"0": 0, "-0.0": None}),
}

spellings = st.text("01.é\u0301e ", max_size=4)


def regions_of(ids):
    return Regions.from_table(pd.DataFrame({"leaf": ids}), levels=["leaf"])


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.sets(spellings.filter(lambda text: text == text.strip() != ""), min_size=1, max_size=8), st.lists(spellings, max_size=12))
def test_each_id_is_found_by_itself_and_exact_matches_go_first(ids, texts):
    leaves = LeafIds(texts=tuple(sorted(ids)))
    assert leaves.find(list(leaves.texts)).tolist() == list(range(len(ids)))
    assert leaves.find(texts).tolist() == [leaves.find([text])[0] for text in texts]


@pytest.mark.parametrize("case", CASES)
def test_an_id_written_otherwise_is_that_of_the_one_leaf_with_its_plain_form(case, tmp_path, counted_by):
    ids, written = CASES[case]
    regions = regions_of(ids)
    expected = [-1 if leaf is None else leaf for leaf in written.values()]
    assert LeafIds.from_regions(regions).find(list(written)).tolist() == find_leaves(list(written), regions).tolist() == expected
    counts = np.bincount([leaf for leaf in expected if leaf >= 0], minlength=len(ids))
    rows = pd.DataFrame({"id": list(written), "to": ids[0]})
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.to_parquet(tmp_path / "a.parquet")
    for source, engine in [(tmp_path / name, engine) for name in ("a.csv", "a.parquet") for engine in ENGINES] + [(rows, "numpy")]:
        areas = dv.read_areas(source, regions=regions, region="id", bad_rows="drop", **counted_by(engine))
        assert (areas.leaf.tolist(), areas.outside) == (np.flatnonzero(counts).tolist(), expected.count(-1))
        trips = dv.read_trips(source, regions=regions, origin="id", destination="to", bad_rows="drop", **counted_by(engine))
        assert (trips.origin.tolist(), trips.count.tolist()) == (np.flatnonzero(counts).tolist(), counts[counts > 0].tolist())


@pytest.mark.parametrize(("ids", "numbers"), [(["01001", "36061"], [1001, 36061]), (["89283082803ffff"], [617700169957507071])])
def test_ids_that_are_stored_as_numbers_are_found_on_every_engine(ids, numbers, tmp_path, counted_by):
    pd.DataFrame({"id": numbers}).to_parquet(tmp_path / "a.parquet")
    for engine in ENGINES:
        for bad_rows in ("refuse", "drop"):
            areas = dv.read_areas(tmp_path / "a.parquet", regions=regions_of(ids), region="id", bad_rows=bad_rows, **counted_by(engine))
            assert areas.leaf.tolist() == list(range(len(ids)))


def test_block_codes_that_lost_a_zero_are_cut_as_others():
    regions = Regions.from_prefixes(["01001", "36001"], lengths=[2, 5], levels=["state", "county"])
    table = pd.DataFrame({"h_geocode": [10010201001000, 360010001001000], "w_geocode": ["010010201001000", "36001"], "S000": [2, 3]})
    assert dv.read_trips(table, regions=regions).count.tolist() == [2, 3]


def test_a_row_of_many_accents_takes_no_time_that_grows_with_their_square():
    text = "e" + "\u0301\u0323" * 400_000  # to bring this into NFC takes longer than the tests may
    assert LeafIds(texts=("\u00e9", "b")).find([text, "e\u0301"]).tolist() == [-1, 0]
