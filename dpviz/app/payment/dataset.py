"""The dataset part of Curate: the data's name in the ledger, the cap, the spent and the remaining budget, and the cost of a release."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import streamlit as st

from dpviz.app.components.fields import Field, at_most, in_range, problem_with
from dpviz.app.components.words import amount_text, budget_words
from dpviz.app.session.ledger import Draws, Funding, LoadedData, open_ledger
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import name_content, show_error
from dpviz.app.state.answers import take_account
from dpviz.app.state.parts import Account as TypedAccount
from dpviz.app.state.run import convert_to_currency
from dpviz.app.state.values import CURRENCIES, LARGEST_CAP, LARGEST_CAP_DELTA, SMALLEST_CAP, SMALLEST_RHO_CAP
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import BOUNDED, AnyMechanism
from dpviz.privacy.accounts import LONGEST_TEXT, Account, Amount, Terms, require_short_text
from dpviz.privacy.budget import ApproxBudget, Budget, ZcdpBudget
from dpviz.publishing.config import DataPart
from dpviz.view.escape import html, markdown

_NAME_IT, _CAP_IT = "name the dataset", "say the most that may ever be spent on these data"
SPENT, NOW, OVER_CAP = "#7f878c", "#1b81a4", "#d55e00"  # colours of a bar: what was spent, this draw, and a draw over the cap
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def dataset_block(
    page: FamilyState,
    data: LoadedData,
    draws: Draws,
    *,
    is_repeat: Callable[[Account], bool] = lambda _: False,
) -> Funding:
    """Ask for name and cap if the ledger has no account for the data; show the spent budget, the releases' cost and the remaining budget.

    Args:
        page: state of the page of the data.
        data: data as loaded.
        draws: the mechanisms and budgets of the releases that one press of the button makes; none while they do not fit.
        is_repeat: returns whether a release of a dataset is there, and no other is asked for: the sums are then those without another.
    """
    try:
        ledger = open_ledger()
        made = "" if ledger.exists() else ", which the first release that is paid for makes"
        st.caption(f"Ledger: {markdown(str(ledger.path))}{made}")
        account = ledger.find_by_fingerprints(data.fingerprints)
        funding = _fund_new_data(page, data, draws) if account is None else _fund_from_account(account, data, draws)
    except DpvizError as error:  # the ledger cannot be read, or does not accept the name of the person column
        show_error(str(error))
        return Funding(name="", cap=None, account=None, problem=str(error), known=False)
    if (account := funding.account) is not None:
        drawn = f"{account.draws:,} draws so far" if account.draws != 1 else "1 draw so far"
        truth_text = " The truth was looked at." if account.truth_seen else ""
        truth_text += " Columns were searched for persons." if account.persons_searched else ""
        name, protected = markdown(account.name), f"one {markdown(account.terms.unit)} ({markdown(account.terms.neighbours)})"
        st.caption(f"**{name}**: protects {protected}, cap {budget_words(account.terms.cap)}; {drawn}.{truth_text}")
        if account.terms.series is None:
            _show_sums(account, draws, is_repeat=is_repeat(account))
    if funding.problem is not None:
        (st.info if funding.account is None else st.warning)(markdown(funding.problem))
    return funding


def _fund_from_account(account: Account, data: LoadedData, draws: Draws) -> Funding:
    return Funding(name=account.name, cap=None, account=account, problem=_find_refusal(account, data, draws))


def _fund_new_data(page: FamilyState, data: LoadedData, draws: Draws) -> Funding:
    """Ask for name and cap. The first release opens an account, or adds the data to the account that has this name already."""
    part = data.source.data_part
    page.set("draft", account=take_account(page.draft, part, data.digest, _propose(part)))
    key = name_content(data.digest)
    name, cap = _name_field(page, key), _cap_fields(page, key)
    existing = open_ledger().find_by_name(name) if name else None
    if existing is not None:
        st.caption(":orange[The ledger has a dataset of this name: a draw adds these data to its account, as another version of it.]")
        return _fund_from_account(existing, data, draws)
    if not name or cap is None:
        wanted = [text for text, is_there in ((_NAME_IT, name), (_CAP_IT, cap is not None)) if not is_there]
        missing = f"{', and '.join(wanted).capitalize()}: it never changes once something is drawn."
        return Funding(name=name, cap=None, account=None, problem=missing)
    terms = Terms(unit=data.counts.unit, neighbours=_neighbours(draws[0][0]), cap=cap, person=data.source.data_part.person or "")
    zero, ledger = dict.fromkeys(terms.limit, Fraction(0)), open_ledger()
    account = Account(name=name, terms=terms, spent=zero, draws=0, created="", truth_seen=ledger.seen(data.fingerprints))
    return Funding(name=name, cap=cap, account=account, problem=_find_refusal(account, data, draws))


def _propose(part: DataPart) -> TypedAccount:
    """Propose name and cap: those of a sample, or the name of the first file without its ending, and no ε."""
    if part.sample is not None:
        size_text = "" if part.size is None else f" of {part.size:,}"
        return TypedAccount(name=f"Sample {part.sample}{size_text}", epsilon=Fraction(10), rho=Fraction(10), delta=Fraction(1, 10_000))
    stem = PurePath(part.files[0]).stem[:LONGEST_TEXT]
    return TypedAccount(name=stem if problem_with(lambda: require_short_text(stem, "")) is None else "", delta=Fraction(1, 100_000))


def _name_field(page: FamilyState, content: str) -> str:
    """Ask for the name of the dataset."""
    label, example = "Name of the dataset", "for example Homes 2024"
    help_text = "Written to the ledger and to saved configurations, not to releases. The ledger recognises the data by their content."

    def problem(typed: str | None) -> str | None:
        text = str(typed or "").strip()
        return at_most(label, LONGEST_TEXT)(text) or (problem_with(lambda: require_short_text(text, label)) if text else None)

    take = lambda typed: str(typed or "").strip()  # noqa: E731
    field = Field.of(page, "account", "name", key=f"dataset name {content}", label=label, problem=problem, take=take)
    return field.value if field.show(st.text_input, placeholder=example, help=help_text) else ""


def _cap_fields(page: FamilyState, content: str) -> Budget | None:
    """Ask for the cap, in ε and δ or in ρ; None until it is typed."""
    shown = page.widget(
        "account", "counts_rho", f"dataset currency {content}", show=CURRENCIES.__getitem__, take=lambda kind: kind == CURRENCIES[1]
    )
    text = "(ε, δ) of all draws added up, or ρ, in which many draws with Gaussian noise cost less. The first draw fixes it."
    st.segmented_control("The ledger counts", CURRENCIES, required=True, help=text, **shown)
    left, right = st.columns(2)
    if page.draft.account.counts_rho:
        fits = _cap_field(page, content, "ρ", SMALLEST_RHO_CAP, LARGEST_CAP, left)
    else:
        fits = _cap_field(page, content, "ε", SMALLEST_CAP, LARGEST_CAP, left)
        fits = _cap_field(page, content, "δ", 0, LARGEST_CAP_DELTA, right) and fits
    return page.draft.account.cap() if fits else None


def _cap_field(page: FamilyState, content: str, symbol: str, low: float, high: float, place: Any) -> bool:
    """Ask for a part of the cap, which is kept exactly; return whether it fits."""
    texts = {"δ": "0 where no mechanism that needs a δ will be used."}
    help_text = texts.get(symbol, "The most that all draws together may ever spend. It never changes once something is drawn.")
    name = next(name for name, sign in _SYMBOLS.items() if sign == symbol)
    value, label = page.part("account", name), f"Cap, {symbol}"
    field = Field(
        key=f"dataset cap {symbol} {content}",
        label=label,
        value=None if value is None else float(value),
        problem=in_range(label, low, high, optional=symbol != "δ"),
        use=lambda typed: page.set("account", **{name: None if typed is None else Fraction(repr(typed))}),
    )
    return field.show(place.number_input, value=None, format="%.12g", step=1e-6 if symbol == "δ" else None, help=help_text)


def _neighbours(mechanism: AnyMechanism) -> str:
    """Return a mechanism's neighbouring relation in the words of receipts. `publish` later compares it with the receipt's."""
    return "replace one" if mechanism.neighbours == BOUNDED else "add or remove one"


def _find_refusal(account: Account, data: LoadedData, draws: Draws) -> str | None:
    """Return the reason why the ledger would refuse the releases; None if no reason is known beforehand."""
    terms, unit = account.terms, data.counts.unit
    if terms.series is not None:
        return terms.series.send_to_command_line(account.name)
    if unit != terms.unit:
        return (
            f"The ledger counts '{account.name}' per {terms.unit}, but the columns chosen now would protect one {unit}:"
            " the two do not add up. Choose the columns as before."
        )
    if terms.person not in (None, person := data.source.data_part.person or ""):
        now = f"the column {person!r} identifies persons" if person else "no column identifies persons"
        return (
            f"The ledger counts '{account.name}' per person. There, a person means {terms.person_text}; with the columns chosen now, {now}:"
            " the two do not add up. Choose the columns as before."
        )
    for mechanism, _ in draws:
        if (relation := _neighbours(mechanism)) != terms.neighbours:
            return (
                f"The ledger counts '{account.name}' for the neighbours “{terms.neighbours}”; {mechanism.title}, with these settings,"
                f" protects the neighbours “{relation}”: the two do not add up. Choose settings or a mechanism that protect the same."
            )
    try:
        cost = _total_cost(account, draws)
    except DpvizError as error:
        return str(error)
    if all(part <= account.left[name] for name, part in cost.items()):
        return None
    return (
        f"The next draw would exceed the cap: it takes {amount_text(cost)}, and {amount_text(account.left)} is left of"
        f" {amount_text(terms.limit)}. Choose a smaller budget."
    )


def _show_sums(account: Account, draws: Draws, *, is_repeat: bool) -> None:
    """Show bars and a sentence: the spent budget, the cost of this press, and the remaining budget.

    Args:
        account: the account that pays.
        draws: the releases of one press.
        is_repeat: whether a release is there and another is not asked for: the bars are then without another.
    """
    try:
        cost = _total_cost(account, draws)
    except DpvizError:  # the budget is in another currency; `_find_refusal` explains that
        return
    after = {name: part + cost[name] for name, part in account.spent.items()}
    in_bar = dict.fromkeys(cost, Fraction(0)) if is_repeat else cost
    bars = [_budget_bar(name, account, cost) for name, cost in in_bar.items() if name != "delta" or account.spent[name] or cost]
    st.html("".join(bars))
    next_text = f"The next draw makes it {amount_text(after)}, of" if draws else "The cap is"
    st.caption(
        f"{_spent_text(account)} {next_text} {amount_text(account.terms.limit)}; draws before a reload, in other tabs and on the command"
        " line are included."
    )
    asks_for_exact = any(isinstance(budget, ApproxBudget) and getattr(kind, "accounting", None) == "exact" for kind, budget in draws)
    if isinstance(account.terms.cap, ZcdpBudget) and asks_for_exact:
        st.caption("This account counts ρ, which ε and δ are converted to by the tight conversion: exact accounting has no effect here.")


def describe_spent(funding: Funding | None) -> str:
    """Return a sentence on the budget spent on the data so far; "" in Teach, where nothing is paid.

    Args:
        funding: what `dataset_block` returned; None in Teach, or while another choice is missing.
    """
    if funding is None:
        return ""
    if not funding.known:
        return "What was spent on these data is not known: the ledger cannot be read."
    if funding.account is None or not funding.account.draws:
        return "Nothing has been spent on these data yet."
    return _spent_text(funding.account)


def _spent_text(account: Account) -> str:
    return f"Spent on these data so far: {amount_text(account.spent)}."


def _total_cost(account: Account, draws: Draws) -> Amount:
    """Return the total cost of the releases of one press, whether or not the cap allows it."""
    costs = [account.terms.cost(convert_to_currency(mechanism, budget, account.terms.cap)) for mechanism, budget in draws]
    return {name: sum((cost[name] for cost in costs), Fraction(0)) for name in account.spent}


def _budget_bar(name: str, account: Account, cost: Fraction) -> str:
    """Return one part of the currency as an HTML bar with its numbers."""
    spent, limit = account.spent[name], account.terms.limit[name]
    left, total = limit - spent - cost, max(limit, spent + cost) or Fraction(1)
    text = f"{_SYMBOLS[name]}: spent {_short_number(spent)}" + (f", this draw {_short_number(cost)}, left after it " if cost else ", left ")
    text += f"{_short_number(left)} of {_short_number(limit)}"
    if left < 0:
        spent_text = f"{_SYMBOLS[name]}: spent {_short_number(spent)} of {_short_number(limit)}"
        text = f"{spent_text}, this draw {_short_number(cost)} would exceed the cap"
    colour = NOW if left >= 0 else OVER_CAP
    segments = "".join(
        f'<div style="width:{100 * float(part / total):.2f}%;background:{shade}"></div>' for part, shade in ((spent, SPENT), (cost, colour))
    )
    picture = f'<div class="dpviz-budget" role="img" aria-label="{html(text)}">{segments}</div>'
    legend = html(text)
    for word, shade in (("spent", SPENT), ("this draw", colour)):
        legend = legend.replace(word, f'<span class="dpviz-dot" style="background:{shade}"></span>{word}', 1)
    return f'{picture}<div class="dpviz-note">{legend}</div>'


def _short_number(part: Fraction) -> str:
    """Write a part of a budget as everywhere else, without its symbol."""
    return amount_text({"epsilon": part}).partition(" ")[2]
