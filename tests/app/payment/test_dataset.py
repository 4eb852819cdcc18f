"""What Curate says of an account before it pays."""

from fractions import Fraction
from types import SimpleNamespace

from dpviz.app.payment.dataset import _find_refusal
from dpviz.privacy.accounts import Account, Terms
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.series import Series


def test_a_series_of_releases_is_left_to_the_command_line_in_one_sentence():
    terms = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(1), series=Series(protects="record", time="at"))
    account = Account(name="visits", terms=terms, spent={"epsilon": Fraction(0)}, draws=0, created="", truth_seen=False)
    data = SimpleNamespace(counts=SimpleNamespace(unit="record"))
    said = _find_refusal(account, data, [])
    assert "the account 'visits', a series of at most 12 months by the column 'at'" in said
    assert said.endswith("dpviz release CONFIG --period NAME.")
    assert said.count(". ") == 0
