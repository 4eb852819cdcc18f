"""What a manifest says, what it never says, and that its schema documents every word."""

import json
import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from dpviz.errors import InputError, SettingError
from dpviz.mechanisms import MECHANISMS, FittedTree, FlatGaussian, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.facts import MANIFESTS, SCHEMA_FILE, Manifest, make_schema
from dpviz.release.files import read_manifest, write_release
from dpviz.release.manifest import (
    TRUST_MODEL,
    describe,
    describe_accounting,
    describe_privacy,
    find_violation,
    read_receipt,
)
from dpviz.release.publication import Publication
from dpviz.samples.areas import load_area_sample
from dpviz.view.report import report_html
from tests.area_cases import records_of
from tests.release_cases import WORDS, area_release, hidden_release, point_release, points_of, trip_release
from tests.trip_cases import regular, trip_counts_of, trips_of

RELEASES = [pytest.param(point_release, id="points"), pytest.param(trip_release, id="trips"), pytest.param(area_release, id="areas")]


MORE_TEXTS = {
    "trust_model": "Two offices hold the records.",
    "budget_reason": "A rule of the office.",
    "unit_in_words": "Each household.",
    "licence": "CC BY 4.0",
    "contact": "office@town.example",
    "url": "https://town.example/walks",
    "citation": "The town: Walks.",
}
ALL_MECHANISMS = [*MECHANISMS.of("points").items(), *MECHANISMS.of("trips").items(), *MECHANISMS.of("areas").items()]


def written(release, folder):
    return read_manifest(write_release(release, folder, describe(release, WORDS)))


def objects(schema):
    """Every part of a schema that describes a value."""
    if isinstance(schema, dict):
        if {"type", "enum", "const", "oneOf", "anyOf", "$ref"} & schema.keys():
            yield schema
        for below in schema.values():
            yield from objects(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from objects(below)


def test_the_schema_is_what_the_dataclasses_declare_valid_and_closed_and_documents_every_field():
    """`python -m dpviz.release.facts` writes it."""
    schema = json.loads(SCHEMA_FILE.read_text("utf-8"))
    assert schema == make_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for part in objects(schema):
        if part.get("type") == "object":
            assert "additionalProperties" in part, part
            if "properties" in part:
                assert part["additionalProperties"] is False
                optional = {
                    "totals",
                    "intervals",
                    "mask",
                    "nonnegative",
                    "grid_of_origins",
                    "grid_of_destinations",
                    "denominator",
                    "slots",
                    "step",
                    "persons_searched",
                    "series",
                    *MORE_TEXTS,
                }
                assert set(part["properties"]) - set(part["required"]) <= optional
                for name, field in part["properties"].items():
                    described = field if "description" in field else schema["$defs"][field["$ref"].rpartition("/")[2]]
                    assert described["description"].endswith("."), name


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].glob("golden/bundles_*/*.zip")), ids=lambda path: path.stem)
def test_a_kept_manifest_is_read_as_dataclasses_and_written_as_it_was(path):
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    written_again = MANIFESTS.write(MANIFESTS.read(Manifest, manifest, "manifest"))
    assert json.dumps(written_again) == json.dumps(manifest)
    Draft202012Validator(json.loads(SCHEMA_FILE.read_text("utf-8"))).validate(manifest)


@pytest.mark.parametrize("release", RELEASES)
def test_every_field_that_registries_require_is_there(release, tmp_path):
    made = release()
    manifest = written(made, tmp_path / "out")
    privacy, accounting = manifest["privacy"], manifest["accounting"]
    words = {name: getattr(WORDS, name) for name in ("name", "curator", "description", "region", "intended_use")}
    assert manifest["data_product"] == {**words, "trust_model": TRUST_MODEL}
    assert (privacy["unit"], privacy["neighbouring_relation"], privacy["contribution_bound"]) == (
        made.receipt.unit,
        made.receipt.neighbours,
        1,
    )
    assert privacy["unprotected"] == list(made.receipt.unprotected)
    for stated, step in zip(accounting["steps"], made.receipt.steps, strict=True):
        assert (stated["purpose"], stated["level"], stated["noise"]) == (step.purpose, step.level, step.noise)
        for name in ("amount", "sensitivity", "scale", "delta"):
            assert Fraction(stated[name]["exact"]) == getattr(step, name)
            assert stated[name]["decimal"] == pytest.approx(float(getattr(step, name)))
    assert sum(Fraction(step["amount"]["exact"]) for step in accounting["steps"]) == Fraction(accounting["used"]["exact"])
    assert manifest["post_processing"] == list(made.steps)
    assert manifest["implementation"]["entropy"] == "operating system"
    assert "exact integer" in manifest["implementation"]["sampler"]
    assert manifest["implementation"]["tuning"] == {"truth_seen": True, "persons_searched": False}
    assert manifest["dataset"]["draws"] == 3
    assert manifest["dataset"]["spent"] == {"epsilon": {"exact": "3/2", "decimal": 1.5}, "delta": None, "rho": None}
    assert manifest["dataset"]["cap"]["epsilon"] == {"exact": "2", "decimal": 2.0}
    assert manifest["utility"]["confidence"] == 0.95
    assert manifest["limits"]
    assert find_violation(manifest) is None
    assert "manifest has no key 'note'" in find_violation({**manifest, "note": ""})
    assert "manifest/privacy has no key 'more'" in find_violation({**manifest, "privacy": {**privacy, "more": 1}})
    assert find_violation({**manifest, "dataset": {"draws": 3}}) == "manifest/dataset lacks spent."


def test_texts_that_may_be_left_out_are_stated_where_they_are_there(tmp_path):
    made = point_release()
    manifest = read_manifest(write_release(made, tmp_path / "out", describe(made, replace(WORDS, **MORE_TEXTS))))
    assert MORE_TEXTS.items() <= manifest["data_product"].items()
    assert find_violation(manifest) is None
    page = report_html(made, manifest).decode()
    assert all(text in page for text in MORE_TEXTS.values())
    for wrong in ("ftp://a", "https://", "https://a b", "javascript:1", 'https://a"'):
        with pytest.raises(SettingError, match="url must begin with https"):
            replace(WORDS, url=wrong)


def test_each_budget_is_stated_with_its_variant_and_conversion():
    pure = describe(point_release(), WORDS)["privacy"]
    assert (pure["variant"], pure["delta"], pure["rho"]) == ("pure differential privacy", None, None)
    assert pure["epsilon"] == {"exact": "1", "decimal": 1.0}
    approx = describe(TopDown().release(trips_of(100), ApproxBudget("1/3", "1e-6"), Entropy.system()), WORDS)
    stated = approx["privacy"]
    assert (stated["variant"], stated["conversion"]) == ("approximate differential privacy", "tight")
    assert (stated["epsilon"]["exact"], stated["delta"]["exact"]) == ("1/3", "1/1000000")
    assert Fraction(stated["converted_rho"]["exact"]) == ApproxBudget("1/3", "1e-6").to_zcdp().rho
    assert stated["spent"]["epsilon"]["exact"] == "1/3"
    assert approx["accounting"]["currency"] == "rho"
    stated = describe(TopDown().release(trips_of(100), ZcdpBudget("1/7"), Entropy.system()), WORDS)["privacy"]
    assert (stated["variant"], stated["rho"]["exact"], stated["epsilon"]) == ("zero-concentrated differential privacy", "1/7", None)
    assert (stated["converted_rho"], stated["conversion"]) == (None, None)


def test_a_note_says_that_the_tight_conversion_stood_in_for_exact_accounting():
    trips = trip_counts_of(regular(2, 2), {(0, 1): 8}, contributions=3, unit="person")
    made = FittedTree(neighbours="add_remove").release(trips, ApproxBudget(1, "1e-8"), Entropy.seeded(1))
    facts = describe_privacy(made.receipt), describe_accounting(made.receipt)
    assert facts[0].conversion == "tight"
    assert "Exact accounting was chosen, and the tight conversion was used" in facts[1].notes[0]
    assert read_receipt(*facts) == made.receipt


def pruned():
    """A release whose levels have noise of several sizes, for a person with three records."""
    person = replace(points_of(400), unit="person", contributions=3)
    return Quadtree(height=4, prune=30).release(person, PureBudget(1), Entropy.system())


@pytest.mark.parametrize("release", [trip_release, pruned, area_release])
def test_expected_error_is_that_of_each_level(release):
    made = release()
    levels = describe(made, WORDS)["utility"]["levels"]
    assert [facts["level"] for facts in levels] == list(range(len(levels)))
    for level, facts in enumerate(levels):
        frame = made.to_frame(level)
        assert facts["partitions"] == len(frame)
        assert facts["stddev_median"] == pytest.approx(frame["stddev"].median())
        assert facts["stddev_p95"] == pytest.approx(np.quantile(frame["stddev"], 0.95))
        assert facts["interval_width_median"] == pytest.approx((frame["ci_high"] - frame["ci_low"]).median())


def test_a_person_s_records_are_stated_and_a_level_without_pairs_has_no_error():
    stated = describe(pruned(), WORDS)["privacy"]
    assert (stated["unit"], stated["contribution_bound"]) == ("person", 3)
    empty = FlatGaussian(threshold=2**50).release(trips_of(0), ApproxBudget(1, "1e-6"), Entropy.system())
    unknown = dict.fromkeys(("stddev_median", "stddev_p95", "interval_width_median"))
    last = describe(empty, WORDS)["utility"]["levels"][-1]
    assert last == {"level": 2, "between": "level 2 to level 2", "partitions": 0} | unknown


@pytest.mark.parametrize("mechanism", [pytest.param(row(), id=key) for key, row in ALL_MECHANISMS])
def test_nothing_private_is_in_any_file(mechanism, tmp_path):
    """The noise is so wide that it hits a true count once in 100,000 tests."""
    trips = mechanism.family == "trips"
    base = {"points": points_of, "trips": trips_of, "areas": records_of}[mechanism.family](200)
    private = replace(base, count=np.full(len(base.count), 1_000_000_007), dropped=876_543_210_987)
    if trips:
        private, mechanism = replace(private, notes=("secret_input.csv",)), replace(mechanism, neighbours="add_remove")
    approx = trips or mechanism.needs_delta
    release = mechanism.release(private, ApproxBudget("1e-6", "1e-6") if approx else PureBudget("1e-9"), Entropy.system())
    folder = write_release(release, tmp_path / "out", describe(release, WORDS), formats=("csv", "geojson"))
    text = "".join(path.read_text("utf-8") for path in folder.iterdir())
    for number in (private.count.sum(), 1_000_000_007, 876_543_210_987):
        assert not re.search(rf"(?<![0-9.]){number}(?![0-9])", text)
    assert "secret" not in text
    assert str(tmp_path) not in text
    manifest = read_manifest(folder)
    named = set(re.findall(r'"([a-z_]+)":', json.dumps({name: part for name, part in manifest.items() if name != "contents"})))
    assert not named & {"seed", "records", "rows", "dropped", "path", "total", "truth"}


def test_why_a_release_is_approximate_is_stated():
    for why in ("because", None):
        stated = describe(replace(point_release(), approximate=why), WORDS)
        assert stated["utility"]["approximate"] == stated["contents"]["approximate"] == why


def test_time_and_id_may_be_chosen_and_are_checked():
    east = timezone(timedelta(hours=9))
    identity = describe(point_release(), WORDS, created=datetime(2026, 1, 1, 8, tzinfo=east), release_id="town-2026.1")["identity"]
    assert (identity["created"], identity["release_id"]) == ("2025-12-31T23:00:00Z", "town-2026.1")
    one, other = (describe(point_release(), WORDS)["identity"] for _ in range(2))
    assert one["release_id"] != other["release_id"]
    assert abs(datetime.fromisoformat(one["created"]) - datetime.now(UTC)) < timedelta(minutes=1)
    with pytest.raises(SettingError, match="time zone"):
        describe(point_release(), WORDS, created=datetime(2026, 1, 1))  # noqa: DTZ001
    for wrong in ("", "a b", "../x", "x" * 65, ".x", 7, "a\n"):
        with pytest.raises(SettingError, match="id is 1 to 64"):
            describe(point_release(), WORDS, release_id=wrong)


PLAIN = {"name": "n", "curator": "c", "description": "", "region": "", "intended_use": "", "draws": 1, "truth_seen": False}


def test_any_plain_text_is_taken_as_it_is_and_nothing_is_claimed_by_leaving_it_out():
    odd = "<b>=1</b>\n\t\u202eשלום 🗺 \"'"
    assert Publication(**PLAIN | {"name": odd, "description": odd}).name == odd
    for name in ("draws", "truth_seen", "name", "intended_use"):
        with pytest.raises(TypeError):
            Publication(**{key: value for key, value in PLAIN.items() if key != name})


WRONG_WORDS = {
    "name must not be blank": [{"name": " \n"}],
    "curator must not be blank": [{"curator": ""}],
    "region must be a text": [{"region": 3}, {"region": None}],
    "dataset_cap must be a text": [{"dataset_cap": 2}],
    "dataset_cap must be exact": [{"dataset_cap": "epsilon 0.5"}],
    "dataset_spent must be exact": [{"dataset_spent": "rho 1/0"}],
    "description is longer than 20,000": [{"description": "x" * 20_001}],
    "control character": [{"description": "a\x00b"}, {"intended_use": "a\rb"}, {"dataset_spent": "\x1b[31m"}],
    "lone surrogate": [{"name": "\ud800"}],
    "draws must be a whole number": [{"draws": 0}, {"draws": True}, {"draws": 1.0}],
    "truth_seen must be True, False or 'not recorded'": [{"truth_seen": 0}, {"truth_seen": "unknown"}],
}


@pytest.mark.parametrize("rule", WRONG_WORDS)
def test_what_is_missing_too_long_or_not_printable_is_refused_by_its_name(rule):
    for wrong in WRONG_WORDS[rule]:
        with pytest.raises(SettingError, match=rule):
            Publication(**PLAIN | wrong)


def test_areas_state_their_regions_grid_levels_and_whether_numbers_are_hidden():
    contents = describe(area_release(), WORDS)["contents"]
    assert contents["kind"] == "areas"
    assert contents["regions"] == [{"level": "state", "regions": 2, "shapes": False}, {"level": "town", "regions": 4, "shapes": True}]
    assert [(level["level"], level["regions"]) for level in contents["levels"]] == [(0, 1), (1, 2), (2, 4)]
    assert contents["levels"][0]["variance"] is None
    assert [level["variance"] for level in contents["levels"][1:]] == [area_release().noise_variance[node] for node in (1, 3)]
    assert (contents["grid"], contents["hidden"], "hidden" in contents["columns"]) == (None, False, False)
    contents = describe(hidden_release(), WORDS)["contents"]
    assert (contents["hidden"], "hidden" in contents["columns"]) == (True, True)


def test_private_counts_have_no_manifest():
    with pytest.raises(InputError, match="private counts have none"):
        describe(load_area_sample("made_up_city"), Publication(**PLAIN))
