"""Another kind of private data needs a family and its questions, and nothing else: studies, audits and configurations find it."""

import json

import numpy as np
import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.errors import InputError, RefusedError, SettingError
from dpviz.evaluation.audits import audit_mechanism, audit_targets
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import QUESTIONS, Study
from dpviz.evaluation.tables import summary, tidy
from dpviz.mechanisms import FAMILIES, Quadtree, family_of
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.config import MechanismPart
from tests.flow_cases import regular
from tests.mechanisms import test_contract_settings as contract
from tests.mechanisms.toy_areas import AREA_FAMILY, AreaCounts, AreaQuestions, EveryArea

AREAS = AreaCounts(regions=regular(2, 3), count=np.array([5, 0, 40, 7, 0, 300]))


@pytest.fixture(autouse=True)
def areas(monkeypatch):
    monkeypatch.setitem(FAMILIES, "areas", AREA_FAMILY)
    monkeypatch.setitem(QUESTIONS, "areas", AreaQuestions)


def test_its_data_say_which_family_takes_them():
    assert family_of(AREAS) is AREA_FAMILY
    assert family_of("areas") is None
    assert AREA_FAMILY.choices == {"every_area": EveryArea}


def test_it_keeps_the_contract_of_every_mechanism():
    contract.test_it_names_itself(EveryArea)
    contract.test_settings_are_frozen_and_unknown_ones_refused(EveryArea)
    contract.test_settings_out_of_range_are_refused_by_their_label(EveryArea)
    contract.test_the_ends_of_a_range_its_choices_and_its_default_are_accepted(EveryArea)


def test_a_configuration_finds_it_by_its_key():
    assert MechanismPart(key="every_area", settings={"least": 3}).built(AREA_FAMILY) == EveryArea(least=3)
    with pytest.raises(SettingError, match="one of every_area for areas"):
        MechanismPart(key="quadtree").built(AREA_FAMILY)


def test_a_study_compares_it():
    made = {"plain": EveryArea(), "zeroed": EveryArea(least=10)}
    study = Study(data=AREAS, public=True, mechanisms=made, epsilons=(1, "1/3"), repeats=3)
    table = tidy(study, compare(study))
    assert len(table) == 12
    assert {*table["workload"]} == {"areas"}
    assert table["status"].str.startswith("SIMULATION").all()
    assert len(summary(table).query("figure == 'mae'")) == 4
    again = pd.DataFrame(list(compare(study, done=table[:6])))
    assert len(again) == 6


def test_a_study_refuses_what_does_not_fit():
    with pytest.raises(SettingError, match="is a mechanism for points, and the data are areas"):
        Study(data=AREAS, public=True, mechanisms={"a": Quadtree()}, epsilons=(1,))
    with pytest.raises(SettingError, match="no such workload"):
        Study(data=AREAS, public=True, mechanisms={"a": EveryArea()}, epsilons=(1,), workloads=("zooms",))
    with pytest.raises(RefusedError):
        Study(data=AREAS, mechanisms={"a": EveryArea()}, epsilons=(1,))
    with pytest.raises(InputError):
        EveryArea().release(AREAS.count, PureBudget(1), Entropy.seeded(1))


def test_the_audit_sees_its_epsilon_and_the_command_line_takes_it(capsys):
    assert "every_area" in audit_targets()
    found = audit_mechanism(EveryArea(), runs=300)
    assert found.passed
    assert found.lower_bound > 0.5
    assert main(["audit", "every_area", "--runs", "100", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)[0]["mechanism"] == "every_area"
