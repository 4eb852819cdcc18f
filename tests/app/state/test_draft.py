"""A draft that is half filled in is one, says what it lacks as the page does, and makes a configuration without a seed."""

from dataclasses import fields, replace
from fractions import Fraction

import pytest

from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import AREAS, KINDS, POINTS, TRIPS
from dpviz.app.state.page import usual_page
from dpviz.app.state.parts import Account, Box, ChosenCategories, ChosenRegions, Files, Guess
from dpviz.app.state.run import Run
from dpviz.app.state.values import BINS, CURATE, HEXAGONS, HOURS, IN_A_FILE, MONTHS, PERSON, SQUARES, TEACH, UPLOAD, VALUES, VOUCHED
from dpviz.errors import DpvizError, RefusedError
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.publishing.config import DataKeys, ReleaseConfig
from tests.app.parts import page_with
from tests.app.state.pages import FILLED, filled

UNSAID = Files(data=DataKeys(points="a.csv"))
NO_COLUMN = Files(data=DataKeys(points="a.csv", contributions=3), whom=PERSON)
NO_BOUND = Files(data=DataKeys(trips="a.csv"), whom=VOUCHED)


@pytest.mark.parametrize(
    ("kind", "parts", "lacks"),
    [
        (POINTS, {"source": "sample", "sample": None}, "Choose a sample."),
        (POINTS, {"uploaded": Files()}, "Choose a file of points."),
        (TRIPS, {"uploaded": Files()}, "Choose a file of trips."),
        (POINTS, {"uploaded": UNSAID}, "Say whom the release protects: nothing is preselected."),
        (AREAS, {"uploaded": NO_COLUMN}, "Choose the column of persons, and say the most records of one person that count."),
        (TRIPS, {"uploaded": NO_BOUND}, "Say the most trips of one person that count."),
        (POINTS, {"domain": Box(west=1.0)}, "Declare the domain: west, south, east and north."),
        (POINTS, {"domain": Box(west=3, south=1, east=2, north=4)}, "West must be smaller than east"),
        (POINTS, {"study_area": IN_A_FILE}, "Choose the file of polygons again"),
        (AREAS, {"regions": ChosenRegions()}, "Choose a public file of regions."),
        (AREAS, {"counted_by": HOURS}, "Choose the time zone, or say that the column has no times."),
        (AREAS, {"counted_by": MONTHS, "categories": ChosenCategories(zone="none", first="2026-01")}, "Type the first and the last month."),
        (AREAS, {"counted_by": BINS}, "Type the edges of the bins."),
        (AREAS, {"counted_by": VALUES}, "Type the values that are counted, or choose a public file of them."),
        (
            AREAS,
            {"counted_by": VALUES, "categories": ChosenCategories(file="modes.csv")},
            "Say which columns of the public file hold the values",
        ),
        (AREAS, {"counted_by": HOURS, "categories": ChosenCategories(zone="UTC")}, "Choose the column by which records are counted."),
        (AREAS, {"regions_from": HEXAGONS}, "Declare the area of the hexagons"),
        (AREAS, {"regions_from": SQUARES}, "Declare the bounds of the squares"),
        (AREAS, {"runs": (Run(),)}, "Choose a mechanism."),
        (AREAS, {"runs": (Run(mechanism="magic"),)}, "There is no such mechanism of areas"),
        (AREAS, {"runs": (Run(mechanism="flat"),)}, "Type a privacy budget ε."),
        (TRIPS, {"runs": (Run(mechanism="top_down", epsilon=Fraction(1)),)}, "Type δ, which this noise takes."),
    ],
)
def test_what_is_missing_is_said_as_the_page_says_it(kind, parts, lacks):
    with pytest.raises(DpvizError, match=f"^{lacks}"):
        filled(kind, **parts).draft.to_config()


def test_a_reference_makes_no_configuration():
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        filled(POINTS, runs=(Run(mechanism="exact_kdtree", epsilon=Fraction(1)),)).draft.to_config()


@pytest.mark.parametrize("page", FILLED.values(), ids=FILLED)
def test_a_configuration_has_new_noise(page):
    config = page.draft.to_config()
    assert isinstance(config, ReleaseConfig)
    assert config == replace(page.draft, runs=(replace(page.draft.runs[0], seed=77),)).to_config()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_part_may_be_missing(kind):
    assert Draft(family=kind.name).runs == (Run(),)
    for item in fields(Files):
        assert getattr(Files(), item.name) in (None, "", False, DataKeys())
    assert usual_page(kind).draft.to_config().family is kind.family


def test_answers_to_other_questions_are_not_in_the_configuration():
    data = DataKeys(points="a.csv", person="rider", contributions=3, distinct=True)
    part = filled(POINTS, uploaded=Files(data=data, whom="each")).draft.to_config().data
    assert (part.person, part.contributions, part.distinct) == (None, None, False)


def test_the_budget_is_in_the_currency_of_the_account():
    first = replace(usual_page(TRIPS).draft.runs[0], epsilon=Fraction(1, 3))
    assert isinstance(filled(TRIPS, runs=(first,)).draft.to_config().budget.budget(), ApproxBudget)
    in_rho = filled(TRIPS, runs=(first,), account=Account(name="x", counts_rho=True, rho=Fraction(1))).draft.to_config()
    assert isinstance(in_rho.budget.budget(), ZcdpBudget)
    assert in_rho.dataset.cap() == ZcdpBudget(1)


def test_a_rho_is_spent_in_curate_alone():
    family, run = TRIPS.family, replace(usual_page(TRIPS).draft.runs[0], rho=Fraction(1, 7))
    assert run.budget(family) == ZcdpBudget("1/7")
    assert run.budget(family, mode=TEACH) == ApproxBudget(run.epsilon, run.delta)
    assert Run(mechanism="quadtree", epsilon=Fraction(1), rho=Fraction(1)).budget(POINTS.family) == PureBudget(1)


def test_without_a_name_the_file_or_the_sample_gives_it():
    assert filled(POINTS, account=Account()).draft.to_config().dataset.name == "homes"
    assert usual_page(AREAS).draft.to_config().dataset.name == AREAS.samples["made_up_city"].title


def test_uploads_and_paths_keep_their_own_choices():
    draft = filled(POINTS).draft
    assert draft.files is draft.uploaded
    assert replace(draft, source="path").files is draft.by_path
    assert draft.source == UPLOAD


def test_texts_account_guess_and_seed_are_no_part_of_a_draw():
    usual = page_with("points").draft
    other = replace(usual, texts=replace(usual.texts, curator="Office"), guess=Guess(records=10), account=Account(name="homes"))
    assert usual.same_draw(other)
    assert usual.same_draw(page_with("points", seed=9).draft)
    parts = {"epsilon": 0.6, "delta": 1e-7, "settings": {"height": 3}, "order": 9, "size": 10, "mode": "Curate", "source": "path"}
    for name, value in parts.items():
        assert not usual.same_draw(page_with("points", **{name: value}).draft), name


def test_whom_to_protect_that_is_said_of_public_data_in_teach_is_no_answer_in_curate():
    taught = Files().protecting(PERSON, TEACH, ["rider"])
    assert (taught.whom_in(TEACH), taught.whom_in(CURATE)) == (PERSON, None)
    assert taught.data.contributions == 1
    curated = taught.protecting(PERSON, CURATE, ["rider", "car"])
    assert (curated.whom_in(CURATE), curated.data.person, curated.data.contributions) == (PERSON, None, None)
