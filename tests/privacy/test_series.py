"""Series of releases on one account: shares of periods, twelve of them and no more, and what is said of all together."""

import json
import random
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpviz.errors import RefusedError, SettingError
from dpviz.privacy import ledger as ledger_module
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.series import Series
from dpviz.privacy.series_words import say_series
from tests.ledgers import MARK, OTHER_MARK, RECORDS, opened, program, run

THIRD_VERSION = Path(__file__).parents[1] / "golden" / "ledger_3.sqlite"  # as version 3 wrote it: never written again
MONTHS = [f"2026-{month:02}" for month in range(1, 13)]
PERSON = Terms(unit="person", neighbours="add or remove one", cap=PureBudget(1), person="who", series=Series())
BY_TIME = Series(protects="person-period", time="at", zone="Europe/Berlin")
MONTHLY = Terms(unit="person", neighbours="add or remove one", cap=PureBudget(1), person="who", series=BY_TIME)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def pay(ledger, period, budget="1/12", terms=PERSON, name="visits", mark=MARK):
    return ledger.pay(name, [mark], terms, PureBudget(budget), mechanism="quadtree", period=period)[0]


# What a period may spend.


def test_twelve_shares_are_the_cap_exactly_and_there_is_no_thirteenth(path):
    ledger = Ledger.new(path)
    for month in reversed(MONTHS):
        account = pay(ledger, month)
        assert account.left_in(month) == {"epsilon": 0, "delta": 0}
    assert (account.spent["epsilon"], account.draws, account.left["epsilon"]) == (1, 12, 0)
    for period in ("2027-01", "2025-12"):
        with pytest.raises(RefusedError, match=f"12 months, and all are paid for: {period} would be one more"):
            pay(ledger, period, "1/1000000")
    assert ledger.account("visits").draws == 12


@pytest.mark.parametrize(("terms", "share"), [(PERSON, Fraction(1, 12)), (MONTHLY, Fraction(1))])
def test_a_second_draw_is_paid_from_the_share_of_its_period_and_what_a_period_leaves_is_lost(path, terms, share):
    ledger = Ledger.new(path)
    pay(ledger, "2026-11", share / 3, terms)
    with pytest.raises(RefusedError, match="The cap of 2026-11 in 'visits' would be exceeded"):
        pay(ledger, "2026-11", share * Fraction(3, 4), terms)
    assert pay(ledger, "2026-11", share * Fraction(2, 3), terms).left_in("2026-11")["epsilon"] == 0
    with pytest.raises(RefusedError, match="2026-12 in 'visits' would be exceeded"):
        pay(ledger, "2026-12", share + Fraction(1, 10**9), terms)
    assert pay(ledger, "2026-12", share, terms).spent == {"epsilon": 2 * share, "delta": 0}
    assert ledger.remaining("visits", "2026-11") is None
    assert ledger.remaining("visits", "2027-01") == PureBudget(share)
    assert [entry.period for entry in ledger.entries("visits")] == ["2026-11", "2026-11", "2026-12"]


SPELLINGS = ["2026-11 ", " 2026-11", "2026-11\n", "2026/11", "2026-11-01", "26-11", "２０２６-11", "2026‑11", "2026-Q4", "2026", "", None]


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_period_has_one_name_so_that_there_is_no_second_november(path, name):
    ledger = Ledger.new(path)
    pay(ledger, "2026-11")
    with pytest.raises((SettingError, RefusedError)):
        pay(ledger, name)
    assert ledger.account("visits").draws == 1


def test_a_preview_says_what_a_payment_would_leave_and_refuses_what_it_would(path):
    ledger = Ledger.new(path)
    assert ledger.preview("visits", [MARK], PERSON, PureBudget("1/24"), period="2026-11").left_in("2026-11")["epsilon"] == Fraction(1, 24)
    pay(ledger, "2026-11")
    with pytest.raises(RefusedError, match="2026-11 in 'visits'"):
        ledger.preview("visits", [MARK], PERSON, PureBudget("1/24"), period="2026-11")
    with pytest.raises(SettingError, match="no period pays"):
        ledger.preview("other", [OTHER_MARK], RECORDS, PureBudget("1/24"), period="2026-11")


# The terms.


OTHERS = [
    Series(periods=24),
    Series(period="quarter"),
    Series(time="at"),
    BY_TIME,
    Series(protects="person-period", time="booked", zone="Europe/Berlin"),
    Series(protects="person-period", time="at", zone="Europe/London"),
    Series(protects="person-period", time="at"),
]


@pytest.mark.parametrize("terms", [PERSON, MONTHLY])
def test_the_first_draw_fixes_the_series_with_its_column_and_zone(path, terms):
    ledger = Ledger.new(path)
    ledger.open("visits", [MARK], RECORDS)
    pay(ledger, "2026-11", terms=terms)
    for series in (series for series in OTHERS if series != terms.series):
        with pytest.raises(RefusedError, match="its series is at most 12 months"):
            pay(
                ledger,
                "2026-12",
                terms=Terms(unit="person", neighbours="add or remove one", cap=PureBudget(1), person="who", series=series),
            )
    with pytest.raises(RefusedError, match="it is paid from the command line"):
        ledger.pay("visits", [MARK], RECORDS, PureBudget("1/12"), mechanism="quadtree")
    assert ledger.account("visits").terms == terms


def test_an_account_that_was_drawn_from_becomes_no_series(path):
    ledger = opened(path)
    ledger.spend("visits", PureBudget("1/10"), mechanism="quadtree")
    with pytest.raises(RefusedError, match="its series is none, not at most 12 months"):
        ledger.pay(
            "visits",
            [MARK],
            replace(RECORDS, series=Series()),
            PureBudget("1/12"),
            mechanism="quadtree",
            period="2026-11",
        )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"protects": "person-period"}, "needs time"),
        ({"protects": "record", "zone": "Europe/Berlin"}, "needs time"),
        ({"zone": "Europe/Berlin"}, "zone is the time zone"),
        ({"time": "at", "zone": "Berlin"}, "zone is the time zone"),
        ({"time": " "}, "names the column"),
        ({"periods": 1}, "from 2 to 1,000"),
        ({"periods": True}, "from 2 to 1,000"),
        ({"period": "day"}, "period"),
        ({"protects": "trip"}, "protects"),
    ],
)
def test_a_series_without_a_meaning_is_refused(values, words):
    with pytest.raises(SettingError, match=words):
        Series(**values)


@pytest.mark.parametrize(("unit", "protects"), [("record", "person-period"), ("trip", "person-period"), ("person", "record")])
def test_a_series_protects_the_unit_of_its_account(unit, protects):
    with pytest.raises(SettingError, match=f"one {unit}"):
        Terms(unit=unit, neighbours="add or remove one", cap=PureBudget(1), series=Series(protects=protects, time="at"))


# What is said before the first payment.


@pytest.mark.parametrize(
    ("unit", "protects", "periods", "cap", "said"),
    [
        ("person", "person", 12, PureBudget(3), "an equal share, epsilon 0.25; its noise is 12 times"),
        ("person", "person", 12, ZcdpBudget(3), "an equal share, rho 0.25; its noise is 3.5 times"),
        ("person", "person", 4, ZcdpBudget(3), "an equal share, rho 0.75; its noise is 2 times"),
        ("person", "person", 4, ApproxBudget(1, "1e-6"), "its noise is 4 times (Laplace) or about 3.9 times (Gaussian)"),
        ("person", "person-period", 12, PureBudget("1/2"), "Somebody with records in each of all 12 months loses up to epsilon 6."),
        ("person", "person-period", 5, ApproxBudget(1, "1e-6"), "loses up to epsilon 5, delta 5e-6."),
        (
            "record",
            "record",
            12,
            ZcdpBudget(1),
            "Somebody with one record in each of all 12 months loses up to rho 12, and more with several",
        ),
    ],
)
def test_the_sum_over_all_periods_is_computed(unit, protects, periods, cap, said):
    terms = Terms(unit=unit, neighbours="add or remove one", cap=cap, series=Series(periods=periods, protects=protects, time="at"))
    lines = " ".join(say_series(terms))
    assert said in lines
    assert ("what moves to another month changes two releases" in lines) == (protects != "person")


@pytest.mark.parametrize(("protects", "said"), [("person", "another in the same months"), ("person-period", "another of the same month")])
def test_totals_that_a_replacement_leaves_as_they_are_are_said_to_be_public(protects, said):
    terms = Terms(unit="person", neighbours="replace one", cap=PureBudget(1), series=Series(protects=protects, time="at"))
    assert say_series(terms)[-1] == f"Neighbours have one replaced by {said}: exact totals of months are public."


# Ledgers of the version before, kills, clocks and races.


def test_a_ledger_of_the_version_before_opens_and_takes_a_series(path):
    ledger = Ledger(shutil.copy(THIRD_VERSION, path))
    before = path.read_bytes()
    visits, people, _ = ledger.accounts()
    assert (visits.spent["epsilon"], visits.draws, visits.terms.series) == (Fraction(13, 30), 2, None)
    assert (people.terms.person, people.spent, people.persons_searched, people.spent_by_period) == ("user_id", {"rho": 1}, True, {})
    assert [(entry.published, entry.period) for entry in ledger.entries("visits")] == [("release-1", None), (None, None)]
    assert (ledger.seen(["dd" * 32]), path.read_bytes() == before) == (True, True)
    assert pay(ledger, "2026-11", name="unused", mark="ee" * 32).terms == PERSON
    assert ledger.account("visits").spent == visits.spent
    assert ledger.spend("visits", PureBudget("1/10"), mechanism="quadtree") == 5


PAY = """
from dpviz.privacy.series import Series
TERMS = Terms(unit="person", neighbours="add or remove one", cap=PureBudget(1), person="who", series=Series())
def pay(period, budget):
    return attempt(lambda: ledger.pay("visits", [MARK], TERMS, PureBudget(budget), mechanism="quadtree", period=period)[1].id)
"""


def check_shares(path):
    """No month has more than its share, and there are at most twelve; return the account."""
    account = Ledger(path).account("visits")
    assert len(account.spent_by_period) <= 12
    assert all(amount["epsilon"] <= Fraction(1, 12) for amount in account.spent_by_period.values())
    assert account.spent["epsilon"] == sum(amount["epsilon"] for amount in account.spent_by_period.values()) <= 1
    return account


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_year_with_kills_at_any_moment_pays_no_month_twice_and_counts_all_that_was_granted(path, kills):
    """Each run asks for all months of two years in quarters of a share, until it is killed; the next run begins anew."""
    code = (
        PAY
        + """
for turn in range(9):
    for year in (2026, 2027):
        for month in range(1, 13):
            print(json.dumps(pay(f"{year}-{month:02}", "1/48")), flush=True)
"""
    )
    Ledger.new(path)
    granted, moments = [], random.Random(1)
    for _ in range(kills):
        with subprocess.Popen(program(code, path), stdout=subprocess.PIPE, text=True) as process:
            lines = [process.stdout.readline()]
            time.sleep(moments.uniform(0.0, 0.1))
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.read().splitlines()
        granted += [answer for answer in map(json.loads, filter(str.strip, lines)) if isinstance(answer, int)]
        assert set(granted) <= {entry.id for entry in Ledger(path).entries("visits")}
    assert len(granted) == len(set(granted))
    assert check_shares(path).draws <= len(granted) + kills
    run(code, path)
    account = check_shares(path)
    assert (account.spent["epsilon"], set(account.spent_by_period)) == (1, set(MONTHS))


def test_two_processes_that_pay_one_month_at_once_share_its_share(path):
    code = (
        PAY
        + """
gate, start = os.pipe()
children = []
for number in range(4):
    if not (child := os.fork()):
        os.close(start)
        os.read(gate, 1)
        for month in range(1, 14):
            pay(f"2026-{month:02}" if month < 13 else "2027-01", "1/24")
        os._exit(0)
    children.append(child)
os.close(start)
for child in children:
    os.waitpid(child, 0)
"""
    )
    Ledger.new(path)
    run(code, path)
    account = check_shares(path)
    assert (account.spent["epsilon"], account.draws) == (1, 24)


def test_a_clock_that_goes_backwards_changes_nothing(path, monkeypatch):
    """Months are named, not read off a clock: the same year is paid while the clock runs from 2030 back to 1970."""
    ledger, years = Ledger.new(path), iter(range(2030, 1969, -1))
    monkeypatch.setattr(ledger_module, "_now", lambda: datetime(next(years), 1, 1, tzinfo=UTC).isoformat(timespec="seconds"))
    for month in MONTHS:
        pay(ledger, month)
        with pytest.raises(RefusedError):
            pay(ledger, month)
    with pytest.raises(RefusedError, match="one more"):
        pay(ledger, "2027-01")
    assert check_shares(path).draws == 12


def test_one_file_under_two_names_has_one_account(path):
    """The file gives it away. Another file under another name is new, as everywhere: one name per dataset."""
    ledger = Ledger.new(path)
    pay(ledger, "2026-11")
    with pytest.raises(RefusedError, match="2026-11 in 'visits' would be exceeded"):
        pay(ledger, "2026-11", name="another name")
    assert pay(ledger, "2026-12", name="another name").name == "visits"
    assert [account.name for account in ledger.accounts()] == ["visits"]
    pay(ledger, "2026-11", name="tours", mark=OTHER_MARK)
    with pytest.raises(RefusedError, match="belong to different accounts"):
        pay(ledger, "2027-01", name="tours")
