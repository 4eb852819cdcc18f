"""Another kind of private data needs a frame, counts, a release, a base and a `Family`, and no edit elsewhere.

`roads.py` has all of one. Mechanisms, configurations, studies, audits, the verdict, files, the manifest, the report and Compare take it.
"""

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

import dpviz as dv
from dpviz.__main__ import main
from dpviz.errors import InputError, RefusedError, SettingError
from dpviz.evaluation.audits import audit, audit_targets
from dpviz.families import FAMILIES, family_of, family_of_counts, register_family
from dpviz.mechanisms import MECHANISMS, Quadtree
from dpviz.publishing.config import MechanismPart
from dpviz.release.files import read_manifest, read_release, write_release, zip_release
from dpviz.release.manifest import describe
from dpviz.view.report import report_html
from tests.mechanisms import test_contract_settings as contract
from tests.mechanisms.roads import ROADS, SAMPLE, Halving, Road, RoadCounts, RoadRelease

FAMILIES.pop("roads", None)  # which joined when its module was imported: other tests have only the families of this package
WORDS = {"name": "Coast road", "curator": "A town", "description": "Made up.", "region": "A coast", "intended_use": "A test"}
PUBLICATION = dv.Publication(**WORDS, draws=1, truth_seen=False)


@pytest.fixture(autouse=True)
def roads(monkeypatch):
    monkeypatch.setitem(FAMILIES, "roads", ROADS)


@pytest.fixture(name="release")
def _release():
    return Halving().release(SAMPLE, dv.PureBudget(2), dv.Entropy.system())


def test_counts_release_and_mechanism_say_which_family_they_are_of(release):
    assert {family_of(each) for each in (SAMPLE, release, Halving(), Halving)} == {ROADS}
    assert family_of("roads") is None
    assert (family_of_counts(SAMPLE), family_of_counts(release)) == (ROADS, None)
    assert (ROADS.choices, release.counted) == ({"halving": Halving}, "accidents")
    assert MECHANISMS["halving"] is MECHANISMS.of("roads")["halving"] is Halving


def test_it_keeps_the_contract_of_every_mechanism():
    contract.test_it_names_itself(Halving)
    contract.test_settings_are_frozen_and_unknown_ones_refused(Halving)
    contract.test_settings_out_of_range_are_refused_by_their_label(Halving)
    contract.test_only_what_is_set_differs_from_the_defaults_and_it_builds_the_same_again(Halving)


def test_its_counts_are_checked_as_all_are():
    assert RoadCounts.of_segments(Road("B", 2), [0, 3, 0, 1]).node_counts().tolist() == [4, 3, 1, 0, 3, 0, 1]
    with pytest.raises(InputError, match="of the road"):
        RoadCounts(road=Road("B", 1), segment=np.array([2]), count=np.array([1]))
    with pytest.raises(InputError, match="takes RoadCounts"):
        Halving().release(dv.PointCounts.from_matrix([[1, 0], [0, 2]]), dv.PureBudget(1), dv.Entropy.seeded(1))


def test_a_configuration_finds_it_by_its_key():
    assert MechanismPart(key="halving", settings={"finest": 0.25}).build(ROADS) == Halving(finest=0.25)
    with pytest.raises(SettingError, match="one of halving for roads"):
        MechanismPart(key="quadtree").build(ROADS)


def test_a_study_compares_it():
    made = {"plain": Halving(), "segments": Halving(finest=0.9)}
    study = dv.Study(data=SAMPLE, public=True, mechanisms=made, epsilons=(1, "1/3"), repeats=3)
    table = dv.tidy(study, dv.compare(study))
    assert len(table) == 12
    assert {*table["workload"]} == {"8 parts"}
    assert table["status"].str.startswith("SIMULATION").all()
    assert len(dv.summary(table).query("figure == 'mae'")) == 4
    again = pd.DataFrame(list(dv.compare(study, done=table[:6])))
    assert len(again) == 6


@pytest.mark.parametrize(
    ("made", "more", "words"),
    [(Quadtree(), {}, "for points, and the data are roads"), (Halving(), {"workloads": ("zooms",)}, "no such workload")],
)
def test_a_study_refuses_what_does_not_fit(made, more, words):
    with pytest.raises(SettingError, match=words):
        dv.Study(data=SAMPLE, public=True, mechanisms={"a": made}, epsilons=(1,), **more)


def test_a_release_is_compared_with_the_truth(release):
    assert dv.evaluate(release, SAMPLE).error.tolist() == (release.count - SAMPLE.node_counts()).tolist()
    with pytest.raises(InputError):
        dv.evaluate(release, dv.PointCounts.from_matrix([[1, 0], [0, 2]]))


def test_the_audit_sees_its_epsilon_and_the_command_line_takes_it(capsys):
    assert "halving" in audit_targets()
    found = audit(Halving(), runs=300)
    assert found.passed
    assert found.lower_bound > 0.5
    assert main(["audit", "halving", "--runs", "100", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)[0]["mechanism"] == "halving"


def test_its_verdict_judges_every_level(release):
    judged = dv.verdict(release)
    assert [level.name for level in judged.levels] == ["1 parts", "2 parts", "4 parts", "8 parts"]
    assert judged.counted == "accidents"


def test_its_files_are_written_and_read_back(release, tmp_path):
    folder = write_release(release, tmp_path / "roads", describe(release, PUBLICATION), formats=["geoparquet", "csv"])
    assert {"segments.parquet", "levels.parquet", "segments.csv"} < {path.name for path in folder.iterdir()}
    again = read_release(folder)
    assert again.same_as(release)
    (tmp_path / "roads.zip").write_bytes(zip_release(folder))
    assert read_release(tmp_path / "roads.zip").same_as(release)
    np.testing.assert_array_equal(pd.read_parquet(folder / "segments.parquet")["count"], release.count[release.nodes()])


def test_its_manifest_fits_the_schema_that_goes_with_it(release, tmp_path):
    folder = write_release(release, tmp_path / "roads", describe(release, PUBLICATION))
    manifest, schema = (json.loads((folder / name).read_text("utf-8")) for name in ("manifest.json", "manifest.schema.json"))
    Draft202012Validator(schema).validate(manifest)
    assert read_manifest(folder)["identity"]["kind"] == manifest["contents"]["kind"] == "roads"
    assert manifest["contents"]["road"] == "Coast road"
    assert len(manifest["utility"]["levels"]) == 4


def test_the_command_line_says_what_a_release_of_it_holds(release, tmp_path, capsys):
    folder = write_release(release, tmp_path / "roads", describe(release, PUBLICATION), formats=["geoparquet"])
    assert main(["check", str(folder)]) == 0
    assert "A release of roads: halving, epsilon 2, 8 parts." in capsys.readouterr().out


def test_a_release_that_no_family_has_is_not_read(release, tmp_path, monkeypatch):
    folder = write_release(release, tmp_path / "roads", describe(release, PUBLICATION))
    monkeypatch.delitem(FAMILIES, "roads")
    with pytest.raises(InputError):
        read_release(folder)


def test_a_simulation_of_it_is_never_published(tmp_path):
    release = Halving().release(SAMPLE, dv.PureBudget(2), dv.Entropy.seeded(1))
    with pytest.raises(RefusedError):
        describe(release, PUBLICATION)
    with pytest.raises(RefusedError):
        write_release(release, tmp_path / "roads", {})


def test_its_report_says_what_it_is_of(release):
    page = report_html(release, describe(release, PUBLICATION)).decode()
    assert "Privacy-protected release of accidents" in page
    assert "8 parts at the finest level, 4 levels" in page
    assert "half 1" in page
    assert "declared road" in page
    assert "pairs" not in page


def test_the_page_compares_it():
    from tests.app.test_compare_page import compare_app, finished, started  # noqa: PLC0415

    app = finished(started(compare_app({"kind": "Roads", "steps": "2", "repeats": "2"})))
    assert "Roads" in [option for control in app.get("button_group") for option in control.options]
    assert not app.exception


def test_errors_are_expected_before_a_release():
    found = dv.expected_errors(Halving(), Road("B", 3), dv.PureBudget(1))
    assert found.by_level["numbers"].tolist() == [1, 2, 4, 8]
    guessed = dv.expected_errors(Halving(), SAMPLE, dv.PureBudget(1), records=400)
    assert guessed.by_level["average"].tolist() == [400, 200, 100, 50]
    assert dv.find_epsilon(Halving(), SAMPLE, 20, level=3).epsilon < 1
    with pytest.raises(SettingError, match="levels 0 to 3"):
        dv.find_epsilon(Halving(), SAMPLE, 20, level=4)


def test_a_notebook_shows_it_without_a_map(release):
    html = SAMPLE._repr_html_()
    assert "Road(name=&#39;Coast road&#39;, order=3)" in html
    assert "365" not in html, "of the counts only what was declared is shown"
    html = release._repr_html_()
    assert "Release of roads" in html
    assert "8 numbers at the finest level, 4 levels" in html


def test_that_there_is_no_map_is_said(release, monkeypatch):
    for draw in (release.plot, release.explore, lambda: release.explore(2)):
        with pytest.raises(dv.DomainError, match="There is no map of a release of this kind"):
            draw()
    monkeypatch.setattr(RoadRelease, "drawable_levels", lambda self: {level: 2**level for level in self.hierarchy.depth.tolist()})
    for draw, words in ((release.explore, "There is no map"), (release.plot, "There is no picture of roads")):
        with pytest.raises(dv.DomainError, match=words):
            draw()


def test_a_map_of_it_is_drawn_at_a_level_that_can_be_read(release, monkeypatch):
    drawn, domain = [], dv.Domain(bounds=(0, 0, 8, 8), crs="EPSG:4326", order=3)
    points = Quadtree(height=1).release(dv.PointCounts.from_xy([1], [1], domain=domain), dv.PureBudget(1), dv.Entropy.seeded(1))

    def scene(road, level, *, dark, height):
        drawn.append((road, level))
        return FAMILIES["points"].scene(points, 1, dark=dark, height=height)

    monkeypatch.setitem(FAMILIES, "roads", replace(ROADS, scene=scene))
    monkeypatch.setattr(RoadRelease, "drawable_levels", lambda _: {2: 4, 3: 8})
    assert release.explore(3).description
    assert drawn == [(release, 3)]
    release.explore()
    assert drawn[1][1] in (2, 3)
    with pytest.raises(dv.DomainError, match="no map of level 1, only of 2, 3"):
        release.explore(1)


def test_its_name_is_its_own():
    register_family(ROADS)
    with pytest.raises(SettingError, match="another family of the name roads"):
        register_family(replace(ROADS, noun="crash"))
    with pytest.raises(SettingError, match="another family of the name trips"):
        register_family(replace(ROADS, name="trips"))
    assert FAMILIES["roads"] is ROADS


def test_a_study_of_it_runs_where_it_is_unpickled_in_another_process_and_with_workers(tmp_path):
    study = dv.Study(data=SAMPLE, public=True, mechanisms={"plain": Halving()}, epsilons=(1,), repeats=4, seed=1)
    alone, together = (dv.tidy(study, dv.compare(study, workers=number)) for number in (1, 2))
    assert sorted(together["mae"]) == sorted(alone["mae"])
    (tmp_path / "study").write_bytes(pickle.dumps(study))
    code = (
        "import pickle, sys; from dataclasses import replace; from pathlib import Path; import dpviz as dv;"
        " study = replace(pickle.loads(Path(sys.argv[1]).read_bytes()), repeats=3);"
        " print(dv.tidy(study, dv.compare(study))['mae'].tolist())"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(dv.__file__).parents[1])}
    command = [sys.executable, "-c", code, str(tmp_path / "study")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout) == alone["mae"][:3].tolist()


def test_it_crosses_to_worker_processes():
    assert pickle.loads(pickle.dumps(Halving(finest=0.3))) == Halving(finest=0.3)  # noqa: S301
    assert replace(SAMPLE, contributions=2, unit="person").contributions == 2
