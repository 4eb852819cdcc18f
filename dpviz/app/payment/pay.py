"""The end of Curate's questions: the account that pays, and the bar with what is missing and the one button that pays."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpviz.app.cards.bargain import Bargain, show_bargain
from dpviz.app.cards.cards import FILES, GOOD, Cards, show_missing
from dpviz.app.components.code import show_release_code
from dpviz.app.components.fields import show_lock
from dpviz.app.components.words import amount_text, budget_words
from dpviz.app.payment.confirm_second_payment import choose_again, is_repeat
from dpviz.app.payment.dataset import dataset_block, describe_spent
from dpviz.app.session.ledger import Draws, Funding, LoadedData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.saved_config import save_button
from dpviz.app.session.widgets import serve_press, show_refusal
from dpviz.app.state.run import convert_to_currency
from dpviz.errors import DpvizError
from dpviz.privacy.accounts import Amount
from dpviz.publishing.code import CodeRun
from dpviz.view.escape import markdown


def show_account(page: FamilyState, data: LoadedData | None, draws: Draws, cards: Cards) -> Funding | None:
    """Show the account that would pay, and ask for its name and cap if it is new; None while there are no data."""
    if data is None:
        return None
    st.subheader("Who pays?", anchor=False)
    funding = dataset_block(page, data, draws, is_repeat=is_repeat)
    if funding.account is None or not funding.account.draws:
        st.caption(describe_spent(funding))
    if funding.problem is not None:
        cards.ask(GOOD, funding.problem)
    return funding


def show_bar(
    page: FamilyState,
    data: LoadedData | None,
    draws: Draws,
    cards: Cards,
    funding: Funding | None,
    bargain: Bargain | None,
    draw: Callable[[], object],
    *,
    promise: str = "",
) -> bool:
    """Show the bar that stays on screen: what is missing, what a press buys, and the button that says what it pays.

    Args:
        page: state of the page.
        data: the loaded data; None while something is missing.
        draws: mechanisms and budgets of the releases that one press makes.
        cards: say what is missing.
        funding: the account that pays.
        bargain: what a press buys; None while it is not known.
        draw: pays for the releases and makes them.
        promise: what a press protects; "" where it is said elsewhere.

    Returns:
        Whether all fields hold what they may.
    """
    price, (left, right) = _cost(draws, funding), st.columns([3, 1], vertical_alignment="center")
    with left:
        is_wrong = show_lock()
        if is_wrong:
            cards.ask(FILES, "Correct what is marked as wrong.")
        show_missing(cards, lambda drawer: page.look(drawer=drawer))
        account = None if funding is None else funding.account
        takes = account is None or choose_again(account)  # what was paid for before wants a second choice first
        if takes:
            takes = show_bargain(page, bargain, price, "" if account is None else amount_text(account.left))
        if promise and not cards.missing:
            st.caption(markdown(promise))
    locked = bool(cards.missing) or data is None or funding is None or not draws or not takes
    if right.button(f"Run and pay {price}".strip(), type="primary", width="stretch", disabled=locked, key="draw") and not locked:
        serve_press(page.key, draw, "Paying and releasing ...")
    show_refusal(page.key)
    return not is_wrong


def show_files(page: FamilyState, data: LoadedData, draws: Draws, funding: Funding | None) -> None:
    """Offer the configuration and the code of what a press releases."""
    with st.container(horizontal=True, vertical_alignment="center"):
        save_button(data, page.draft, funding)
        show_release_code(data, page.draft, [CodeRun(mechanism=mechanism, budget=budget) for mechanism, budget in draws], funding)


def _cost(draws: Draws, funding: Funding | None) -> str:
    cap = None if funding is None or funding.account is None else funding.account.terms.cap
    try:
        budgets = [convert_to_currency(mechanism, budget, cap) for mechanism, budget in draws]
        if funding is None or funding.account is None:
            return " and ".join(budget_words(budget) for budget in budgets)
        costs: list[Amount] = [funding.account.terms.cost(budget) for budget in budgets]
    except DpvizError:
        return ""
    return amount_text({name: sum((cost[name] for cost in costs), start=0 * part) for name, part in costs[0].items()}) if costs else ""
