"""The dataset part of Curate: the data's name in the ledger, the cap, and what is spent, what a release costs and what remains."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import streamlit as st

from dpviz.app.fields import at_most, in_range, problem_with, show_problem
from dpviz.app.ledger import Draws, Funding, LoadedData, in_currency
from dpviz.app.session import show_error
from dpviz.app.words import amount_text, budget_words
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import BOUNDED, AnyMechanism
from dpviz.privacy.accounts import LONGEST_TEXT, Account, Amount, Terms, require_short_text
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.view.escape import html, markdown

CURRENCIES = ("ε, δ", "ρ")
LARGEST_CAP, LARGEST_CAP_DELTA = 1000.0, 0.01
SAMPLE_CAP, FILE_CAP = (10.0, 1e-4), (None, 1e-5)  # proposed caps: epsilon or rho, and delta
SPENT, NOW, PASSED = "#7f878c", "#1b81a4", "#d55e00"
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def dataset_block(data: LoadedData, draws: Draws, *, title: str = "##### 4 Dataset") -> Funding:
    """Ask for name and cap if the ledger does not know the data; show what is spent, what the releases cost and what remains.

    Args:
        data: data as loaded.
        draws: the mechanisms and budgets of the releases that one press of the button makes.
        title: heading above the block, as Markdown.
    """
    st.markdown(title)
    try:
        account = Ledger().find_by_fingerprints(data.fingerprints)
        purse = _new(data, draws) if account is None else _known(account, data, draws)
    except DpvizError as error:  # from the ledger, or for a person column whose name no ledger takes
        show_error(str(error))
        return Funding(name="", cap=None, account=None, problem=str(error), known=False)
    if purse.account is not None:
        _terms(purse.account)
        _sums(purse.account, draws)
    if purse.problem is not None:
        (st.info if purse.account is None else st.warning)(markdown(purse.problem))
    return purse


def _known(account: Account, data: LoadedData, draws: Draws) -> Funding:
    return Funding(name=account.name, cap=None, account=account, problem=_problem(account, data, draws))


def _new(data: LoadedData, draws: Draws) -> Funding:
    """Ask for name and cap. Return a new account, which the first release opens, or the account of that name, which takes the data in."""
    if not draws:
        return Funding(name="", cap=None, account=None, problem="The ledger has no account of this draw any more: it cannot be published.")
    name, cap = _name(data), _cap(data)
    known = next((each for each in Ledger().accounts() if each.name == name), None) if name else None
    if known is not None:
        st.caption(":orange[The ledger has a dataset of this name: a draw adds these data to its account, as another version of it.]")
        return _known(known, data, draws)
    if not name or cap is None:
        missing = "Name the dataset, and say the most that may ever be spent on it: the cap never changes once something is drawn."
        return Funding(name=name, cap=None, account=None, problem=missing)
    terms = Terms(unit=data.private.unit, neighbours=_neighbours(draws[0][0]), cap=cap, person=data.source.data.person or "")
    nothing = dict.fromkeys(terms.limit, Fraction(0))
    account = Account(name=name, terms=terms, spent=nothing, draws=0, created="", truth_seen=Ledger().seen(data.fingerprints))
    return Funding(name=name, cap=cap, account=account, problem=_problem(account, data, draws))


def _name(data: LoadedData) -> str:
    """Ask for the name of the dataset; the name of a sample is preset."""
    about = data.source.data
    of = "" if about.size is None else f" of {about.size:,}"
    usual = "" if about.sample is None else f"Sample {about.sample}{of}"
    help_text = "The ledger and a configuration that you save hold it, a release does not. The ledger recognises the data by their content."
    key = f"dataset name {data.digest}"
    name = st.text_input(
        "Name of the dataset",
        usual,
        key=key,
        persist_state="session",
        placeholder="for example Homes 2024",
        help=help_text,
    )
    text, label = str(name or "").strip(), "Name of the dataset"
    wrong = at_most(label, LONGEST_TEXT)(text) or (problem_with(lambda: require_short_text(text, label)) if text else None)
    return text if show_problem(key, wrong) else ""


def _cap(data: LoadedData) -> Budget | None:
    """Ask for the cap, in ε and δ or in ρ; None until it is typed."""
    kind = st.segmented_control(
        "The ledger counts",
        CURRENCIES,
        default=CURRENCIES[0],
        key=f"dataset currency {data.digest}",
        required=True,
        persist_state="session",
        help="(ε, δ) of all draws added up, or ρ, in which many draws with Gaussian noise cost less. The first draw fixes it.",
    )
    usual, usual_delta = SAMPLE_CAP if data.source.data.sample is not None else FILE_CAP
    left, right = st.columns(2)
    never = "The most that all draws together may ever spend. It never changes once something is drawn."
    symbol = "ρ" if kind == CURRENCIES[1] else "ε"
    total = left.number_input(
        f"Cap, {symbol}",
        value=usual,
        format="%.12g",
        key=f"dataset cap {symbol} {data.digest}",
        persist_state="session",
        help=never,
    )
    smallest = 0.000_001 if symbol == "ρ" else 0.001
    if not show_problem(f"dataset cap {data.digest}", in_range(f"Cap, {symbol}", smallest, LARGEST_CAP, optional=True)(total)):
        total = None
    if symbol == "ρ":
        return None if total is None else ZcdpBudget(repr(total))
    delta = right.number_input(
        "Cap, δ",
        value=usual_delta,
        format="%.12g",
        step=1e-6,
        key=f"dataset cap δ {data.digest}",
        persist_state="session",
        help="0 where no mechanism that needs a δ will be used.",
    )
    if not show_problem(f"dataset cap δ {data.digest}", in_range("Cap, δ", 0, LARGEST_CAP_DELTA)(delta)) or total is None:
        return None
    return ApproxBudget(repr(total), repr(delta)) if delta else PureBudget(repr(total))


def _neighbours(mechanism: AnyMechanism) -> str:
    """Return the neighbouring relation as receipts name it. The release checks the relation of its own receipt again."""
    return "replace one" if mechanism.neighbours == BOUNDED else "add or remove one"


def _problem(account: Account, data: LoadedData, draws: Draws) -> str | None:
    """Return why the ledger would refuse the releases, as far as that is known beforehand; None if it would not."""
    terms, unit = account.terms, data.private.unit
    if unit != terms.unit:
        return (
            f"The ledger counts '{account.name}' per {terms.unit}, and as the columns are chosen now one {unit} would be protected:"
            " the two do not add up. Choose the columns as before."
        )
    if terms.person not in (None, person := data.source.data.person or ""):
        now = f"the column {person!r} says it" if person else "no column says it"
        return (
            f"The ledger counts '{account.name}' per person, and a person is {terms.person_text}; as the columns are chosen now, {now}:"
            " the two do not add up. Choose the columns as before."
        )
    for mechanism, _ in draws:
        if (relation := _neighbours(mechanism)) != terms.neighbours:
            return (
                f"The ledger counts '{account.name}' for neighbours that {terms.neighbours}; {mechanism.title} as it is set protects"
                f" neighbours that {relation}, which does not add up with it. Choose settings or a mechanism that protect the same."
            )
    try:
        cost = _cost(account, draws)
    except DpvizError as error:
        return str(error)
    if all(part <= account.left[name] for name, part in cost.items()):
        return None
    return (
        f"The next draw would pass the cap: it takes {amount_text(cost)}, and {amount_text(account.left)} is left of"
        f" {amount_text(terms.limit)}. Choose a smaller budget."
    )


def _terms(account: Account) -> None:
    """Show the account's name and terms."""
    draws = f"{account.draws:,} draws so far" if account.draws != 1 else "1 draw so far"
    seen = " The truth was looked at." if account.truth_seen else ""
    terms = account.terms
    name = markdown(account.name)
    st.caption(
        f"**{name}**: protects one {markdown(terms.unit)} ({markdown(terms.neighbours)}), cap {budget_words(terms.cap)}; {draws}.{seen}"
    )


def _sums(account: Account, draws: Draws) -> None:
    """Show bars and a sentence: what is spent, what this press costs, what remains."""
    try:
        cost = _cost(account, draws)
    except DpvizError:  # the budget is in another currency; `_problem` explains that
        return
    after = {name: part + cost[name] for name, part in account.spent.items()}
    st.html("".join(_bar(name, account, cost[name]) for name in _parts_with_bars(account, cost)))
    coming = f"The next draw makes it {amount_text(after)}, of" if draws else "The cap is"
    st.caption(f"{_spent(account)} {coming} {amount_text(account.terms.limit)}; reloads, other tabs and the command line count as well.")


def describe_spent(purse: Funding | None) -> str:
    """Return a sentence on what was spent on the data so far; "" in Teach, where nothing is paid.

    Args:
        purse: what `dataset_block` returned; None in Teach, or while another choice is missing.
    """
    if purse is None:
        return ""
    if not purse.known:
        return "What was spent on these data is not known: the ledger cannot be read."
    if purse.account is None or not purse.account.draws:
        return "Nothing has been spent on these data yet."
    return _spent(purse.account)


def _spent(account: Account) -> str:
    return f"Spent on these data so far: {amount_text(account.spent)}."


def _cost(account: Account, draws: Draws) -> Amount:
    """Return what the releases of one press cost together, within the cap or not."""
    costs = [account.terms.cost(in_currency(mechanism, budget, account.terms.cap)) for mechanism, budget in draws]
    return {name: sum((cost[name] for cost in costs), Fraction(0)) for name in account.spent}


def _parts_with_bars(account: Account, cost: Amount) -> Iterator[str]:
    """Return the names of the parts of the currency that have a bar; delta only if some of it is or will be spent."""
    return (name for name, spent in account.spent.items() if name != "delta" or spent or cost[name])


def _bar(name: str, account: Account, now: Fraction) -> str:
    """Return one part of the currency as an HTML bar with its numbers."""
    spent, limit = account.spent[name], account.terms.limit[name]
    left, whole = limit - spent - now, max(limit, spent + now) or Fraction(1)
    text = f"{_SYMBOLS[name]}: spent {_short(spent)}" + (f", this draw {_short(now)}, left after it " if now else ", left ")
    text += f"{_short(left)} of {_short(limit)}"
    if left < 0:
        text = f"{_SYMBOLS[name]}: spent {_short(spent)} of {_short(limit)}, this draw {_short(now)} would pass the cap"
    colour = NOW if left >= 0 else PASSED
    filled = "".join(
        f'<div style="width:{100 * float(part / whole):.2f}%;background:{shade}"></div>' for part, shade in ((spent, SPENT), (now, colour))
    )
    picture = f'<div class="dpviz-purse" role="img" aria-label="{html(text)}">{filled}</div>'
    return f'{picture}<div class="dpviz-note">{_legend(text, colour)}</div>'


def _short(part: Fraction) -> str:
    return f"{float(part):.3g}"


def _legend(text: str, colour: str) -> str:
    """Return the numbers under a bar as HTML, each with the colour of its part."""
    dot = '<span class="dpviz-dot" style="background:{}"></span>'
    return html(text).replace("spent", dot.format(SPENT) + "spent", 1).replace("this draw", dot.format(colour) + "this draw", 1)
