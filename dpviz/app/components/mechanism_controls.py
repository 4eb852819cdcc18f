"""Controls of mechanism and privacy: a widget per setting that a mechanism declares, and the split of the budget to drag or to type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.amounts import format_budget_symbols
from dpviz.app.components.fields import Field, in_range, problem_with
from dpviz.app.components.words import choice_words, plain_choice
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import show_value, widget_for
from dpviz.app.state.linked import write_text
from dpviz.app.state.readers import read_amount
from dpviz.app.state.values import CURATE, LARGEST_DELTA, LARGEST_EPSILON, SMALLEST_DELTA, SMALLEST_EPSILON
from dpviz.errors import BudgetError
from dpviz.evaluation.situations import begin_with
from dpviz.families import POINT_FAMILY
from dpviz.mechanisms.base import NOISES, AnyMechanism, SettingSpec, Share
from dpviz.privacy.allocation import PUBLISHED, PublishedSplit
from dpviz.privacy.budget import exact
from dpviz.privacy.shares import normalise_shares, redistribute
from dpviz.view.escape import markdown

EPSILONS = [round(step * 10.0**power, 3) for power in (-2, -1, 0) for step in (1, 1.5, 2, 3, 5, 7)] + [10.0]
USUAL_EPSILON, USUAL_DELTA = 0.5, 1e-6  # where the sliders stand while none is typed
DELTAS = [10.0**power for power in range(-12, -3)]
CUSTOM = "custom"  # a split by weights of its own
SHAPE_SETTINGS = ("height", "fan_out", "neighbours")
MOST_BUTTONS, LONGEST_BUTTONS, _EDGES = 4, 42, 4  # in letters; the edges of a button are as wide as four
_NAME = "dpviz_split_bar"
_UNCHANGED = 1e-6
_WHICH_NOISE = (
    "Of single records: Laplace noise (ε alone) is smaller in a count, Gaussian noise (ε and δ) in sums of about 100 counts or more."
)
_HTML = """<div class="bar" role="group" aria-label="Split of the privacy budget"></div><div class="note" aria-hidden="true"></div>"""
_CSS = """
.bar { position: relative; height: 34px; touch-action: pan-y; user-select: none; }
.part { position: absolute; inset: 0 auto 0 0; box-sizing: border-box; overflow: hidden; border-right: 1px solid transparent;
  background-clip: padding-box; display: flex; flex-direction: column; justify-content: center; align-items: center;
  font: 11px/13px var(--st-font, sans-serif); white-space: nowrap; }
.part:first-child { border-radius: 4px 0 0 4px; }
.part.last { border-radius: 0 4px 4px 0; border-right: 0; }
.part.structure { border-right-width: 4px; }
.part.locked::after { content: ""; position: absolute; inset: 0;
  background: repeating-linear-gradient(135deg, rgba(0, 0, 0, .3) 0 1px, transparent 1px 5px); }
.part b { font-weight: 600; }
.part [hidden] { display: none; }
.handle { position: absolute; top: -3px; bottom: -3px; width: 3px; margin-left: -2px; border-radius: 2px; outline: none;
  pointer-events: none; background: var(--st-text-color, #222); opacity: 0; }
.handle.near { opacity: .55; }
.handle.moving, .handle:focus { opacity: 1; }
.handle:focus-visible { box-shadow: 0 0 0 2px var(--st-background-color, #fff), 0 0 0 4px var(--st-primary-color, #0b6e8f); }
.note { height: 18px; margin-top: 5px; font: 11px/18px var(--st-font, sans-serif); color: var(--st-text-color, #222); opacity: .75;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
"""
_JS = (Path(__file__).parent / "split_bar.js").read_text("utf-8")
_bar = st.components.v2.component(_NAME, html=_HTML, css=_CSS, js=_JS)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A split of the budget over levels.

    Attributes:
        split: the setting that names it.
        weights: the setting of custom weights.
        prefix: beginning of the keys of its widgets.
        published: the published splits that it may have.
        with_shares: name of the mechanism's method that takes shares.
    """

    split: str = "split"
    weights: str = "weights"
    prefix: str = ""
    published: Sequence[PublishedSplit] = PUBLISHED
    with_shares: str = "with_shares"


PLACES = Axis()
SLOTS = Axis(split="slot_split", weights="slot_weights", prefix="slot ", published=(), with_shares="with_slot_shares")
SPLIT_SETTINGS = tuple(name for axis in (PLACES, SLOTS) for name in (axis.split, axis.weights))


def mechanism_controls(page_state: FamilyState) -> None:
    """Choose the mechanism and its settings."""
    draft, offered = page_state.draft, page_state.offered_mechanisms()
    chosen = draft.run.mechanism if draft.run.mechanism in offered else None

    def menu_entry(key: str) -> str:  # the part of the menu comes last, since narrow menus cut the end
        kind = page_state.mechanisms[key]
        return f"{kind.title} · {kind.menu_group.lower()}" if kind.menu_group else kind.title

    if draft.mode == CURATE:
        st.markdown("##### Mechanism")
    st.selectbox(
        "Mechanism",
        offered,
        index=0 if chosen else None,
        placeholder="Choose a private mechanism",
        format_func=menu_entry,
        label_visibility="collapsed",
        **widget_for("mechanism", chosen, partial(_choose_mechanism, page_state)),
    )
    page_state.refuse_reference()
    mechanism = page_state.mechanisms[str(draft.run.mechanism)]
    (st.caption if mechanism.private else st.warning)(mechanism.summary)
    if advised := [kind for key in offered if (kind := page_state.mechanisms[key]).advice]:
        with st.expander("When to take which"):
            if first := _say_first_choice(page_state):
                st.markdown(f"**{markdown(first)}**")
            st.markdown("\n".join(f"* **{markdown(kind.title)}**: {markdown(kind.advice)}" for kind in advised))
    rules = [rule for rule in mechanism.rules() if rule.name not in SPLIT_SETTINGS]
    values = draft.build().chosen()
    effective = [rule for rule in rules if rule.matters(values)]
    _setting_widget(page_state, effective[0], values[effective[0].name])
    if len(effective) > 1:
        with st.expander("More settings"):
            for rule in effective[1:]:
                _setting_widget(page_state, rule, values[rule.name])


def _say_first_choice(page_state: FamilyState) -> str:
    """Say which mechanism of points to begin with, by the number of records that was typed in Curate; "" for other families."""
    draft = page_state.draft
    if draft.kind.family is not POINT_FAMILY:
        return ""
    typed = st.session_state.get(f"good records {page_state.key}") if draft.mode == CURATE else None
    return begin_with(int(typed) if typed and typed >= 1 else None, float(draft.run.epsilon or USUAL_EPSILON))


def _choose_mechanism(page_state: FamilyState, key: str) -> None:
    """Choose a mechanism, with the settings that a page starts with."""
    settings = dict(page_state.mechanisms[key].page_settings)
    page_state.change(run={"mechanism": key, "settings": settings})


def _setting_widget(page_state: FamilyState, rule: SettingSpec, value: Any) -> None:
    """Show the widget of one setting."""
    key = f"setting {page_state.draft.run.mechanism} {rule.name}"
    if rule.choices or isinstance(value, bool):
        _choice_widget(page_state, rule, value, key)
        return
    several = isinstance(value, tuple)
    read: Callable[[Any], Any] = numbers_in if several else lambda typed: typed
    field = Field(
        key=key,
        label=rule.label,
        value=", ".join(f"{number:g}" for number in value) if several else value,
        problem=lambda typed: problem_with(
            lambda: page_state.mechanisms[str(page_state.draft.run.mechanism)].from_settings(_settings_with(page_state, rule, read(typed)))
        ),
        use=lambda typed: _change_setting(page_state, rule, read(typed)),
    )
    if several:
        field.show(st.text_input, help=rule.help)
        return
    whole = isinstance(rule.low if rule.optional else rule.default, int)
    step = 1 if whole else 0.01 if (rule.high or 0) <= 1 else 1.0
    empty = "not set" if rule.optional else None
    field.show(st.number_input, value=None, step=step, format="%d" if whole else "%.12g", placeholder=empty, help=rule.help)


def _choice_widget(page_state: FamilyState, rule: SettingSpec, value: Any, key: str) -> None:
    """Show the widget of a setting that has a few choices, or is on or off."""
    common = {"help": rule.help, **widget_for(key, value, lambda chosen: _change_setting(page_state, rule, chosen))}
    if rule.choices and fits_buttons([plain_choice(choice) for choice in rule.choices]):
        st.segmented_control(rule.label, rule.choices, required=True, format_func=choice_words, **common)
    elif rule.choices:
        st.selectbox(rule.label, rule.choices, format_func=choice_words, **common)
    else:
        st.toggle(rule.label, **common)


def fits_buttons(choices: Sequence[Any]) -> bool:
    """Return whether choices have room side by side in the drawer."""
    return len(choices) <= MOST_BUTTONS and sum(len(str(choice)) + _EDGES for choice in choices) <= LONGEST_BUTTONS


def numbers_in(text: str) -> tuple[float, ...] | str:
    """Read numbers with commas between them; return other texts unchanged, which the mechanism then refuses.

    >>> numbers_in("8, 16"), numbers_in("many")
    ((8.0, 16.0), 'many')
    """
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        return text


def _change_setting(page_state: FamilyState, rule: SettingSpec, value: Any) -> None:
    page_state.change(run={"settings": _settings_with(page_state, rule, value)})


def _settings_with(page_state: FamilyState, rule: SettingSpec, value: Any) -> dict[str, Any]:
    """Return the settings with one of them changed; a new shape (`SHAPE_SETTINGS`) drops a custom split, made for the old shape."""
    settings = {**page_state.draft.run.settings, rule.name: value}
    if value == rule.default:
        settings.pop(rule.name)
    for axis in (PLACES, SLOTS) if rule.name in SHAPE_SETTINGS else ():
        settings.pop(axis.weights, None)
        if settings.get(axis.split) == CUSTOM:
            settings.pop(axis.split)
    return settings


def privacy_controls(page_state: FamilyState) -> None:
    """Choose the noise, where the kind of the budget decides it, epsilon, and perhaps delta."""
    st.markdown("##### Privacy")
    if page_state.draft.build().noise_by_budget:
        st.segmented_control(
            "Noise",
            NOISES,
            required=True,
            help="Laplace noise spends ε alone. Gaussian noise spends ε and δ: it is smaller where a record is part of many counts, as"
            " with Privelet, or more than about nine levels with equal shares.",
            **page_state.widget("run", "noise"),
        )
        if page_state.draft.build().by_category:
            st.caption(_WHICH_NOISE)
    if _epsilon_controls(page_state):
        _show_promise(page_state)
    if page_state.draft.takes_delta:
        _delta_control(page_state)


def _epsilon_controls(page_state: FamilyState) -> bool:
    """Show a slider and a text field for epsilon; return whether the typed text is valid and in use."""
    epsilon = float(page_state.draft.run.epsilon or USUAL_EPSILON)
    nearest = min(EPSILONS, key=lambda option: abs(math.log(option / epsilon)))
    slider, typed = st.columns([2, 1], vertical_alignment="bottom")
    slider.select_slider(
        "Privacy budget ε",
        EPSILONS,
        format_func=lambda value: f"{value:g}",
        help="Smaller is more private and noisier. The scale is logarithmic.",
        **widget_for("epsilon slider", nearest, lambda value: page_state.change(run={"epsilon": exact(value, "ε")}), without=EPSILONS[0]),
    )
    exactly = _exact_field(page_state, "epsilon", "epsilon", "ε", (SMALLEST_EPSILON, LARGEST_EPSILON))
    return exactly.show(typed.text_input, label_visibility="collapsed")


def _exact_field(page_state: FamilyState, part: str, key: str, symbol: str, limits: tuple[float, float]) -> Field:
    """Make the field in which a part of the budget is typed exactly, within limits."""

    def read(text: object) -> Fraction:
        return exact(read_amount(text, symbol, *limits), symbol)

    return Field(
        key=key,
        label=f"{symbol} exactly",
        value=write_text(getattr(page_state.draft.run, part)).removesuffix(".0").replace("e-0", "e-"),
        problem=lambda text: problem_with(lambda: read(text)),
        use=lambda text: page_state.change(run={part: read(text)}),
    )


def _show_promise(page_state: FamilyState) -> None:
    """Explain what epsilon means for what the data protect one of; warn if epsilon is very small or very large."""
    mechanism, epsilon = page_state.draft.build(), float(page_state.draft.run.epsilon or USUAL_EPSILON)
    if not mechanism.spends:
        st.caption(":orange[**NOT PRIVATE**: this method has no ε: the slider has no effect on it.]")
        return
    if not mechanism.private:
        st.caption(
            ":orange[**NOT PRIVATE**: no ε bounds what this reference reveals. ε only sets the noise of its counts, if they have any.]"
        )
        return
    but = ", except with probability δ" if page_state.draft.takes_delta else ""
    st.caption(
        f"Whatever is released, the odds that one {page_state.protected or 'record (or person)'} is in the data change by at most a factor"
        f" of {math.exp(epsilon):,.3g}{but}."
    )
    if epsilon < 0.05:
        st.warning("So small a budget buries all but very large counts in noise.")
    elif epsilon > 3:
        st.warning("So large a budget promises little: an attacker may become nearly certain.")


def _delta_control(page_state: FamilyState) -> None:
    """Show a slider and a text field for delta, and the rho that is spent in their place."""
    how = page_state.draft.run
    delta = float(how.delta or USUAL_DELTA)
    nearest = min(DELTAS, key=lambda option: abs(math.log(option / delta)))
    slider, typed = st.columns([2, 1], vertical_alignment="bottom")
    slider.select_slider(
        "δ",
        DELTAS,
        format_func=lambda value: f"{value:.0e}",
        help="The probability that the bound by ε fails; far below one in the number of people.",
        **widget_for("delta", nearest, lambda value: page_state.change(run={"delta": exact(value, "δ")}), without=DELTAS[0]),
    )
    exactly = _exact_field(page_state, "delta", "delta exactly", "δ", (SMALLEST_DELTA, LARGEST_DELTA))
    exactly.show(typed.text_input, label_visibility="collapsed")
    if how.rho is not None and page_state.draft.mode == CURATE:
        spent = markdown(format_budget_symbols({"rho": exact(how.rho, "ρ")}))
        st.caption(f"The opened configuration spends {spent}; ε is about what that implies with this δ. A change of ε or δ replaces it.")


def split_controls(page_state: FamilyState, frame: Any) -> None:
    """Choose how the budget is split, for the public frame of the data; of counts by category over both kinds of levels."""
    _split_axis(page_state, frame, page_state.draft.shares(frame), PLACES)
    if parts := page_state.draft.slot_shares(frame):
        _split_axis(page_state, frame, parts, SLOTS)


def _split_axis(page_state: FamilyState, frame: Any, parts: list[Share], axis: Axis) -> None:
    """Choose one split of the budget: by name, by dragging, or typed."""
    mechanism, of = page_state.draft.build(), page_state.draft.split_amount
    _preset_control(page_state, mechanism, parts, frame, axis)
    if len(parts) < 2:
        if mechanism.private:
            st.caption(f"All of {of} buys {markdown(parts[0].label)}.")
        return
    locks, use = share_locks(len(parts), axis), partial(use_shares, page_state, parts, axis=axis)
    labels, shares, structure = ([getattr(part, attribute) for part in parts] for attribute in ("label", "share", "structure"))
    key = f"{axis.prefix}split {page_state.draft.run.mechanism}"
    split_bar(labels, shares, locked=list(locks), key=key, structure=structure, on_change=use)
    if structure_share := _structure_share(parts):
        st.caption(f"Structure (grey) {structure_share:.1%}, counts (blue) {1 - structure_share:.1%} of {of}.")
    with st.expander(f"Type the shares of {of}", key=f"{axis.prefix}shares"):
        shares = [part.share for part in parts]
        for index, part in enumerate(parts):
            lock = f"{axis.prefix}lock {index}"
            show_value(lock, locks[index])
            number, locked = st.columns([5, 4], vertical_alignment="bottom")
            typed = share_field(
                f"{axis.prefix}share {index}", f"{part.label}, %", part.share, partial(_set_share, shares, locks, index, use)
            )
            typed.show(number.number_input, value=None, step=1.0, format="%.2f")
            locked.checkbox("Lock", key=lock, on_change=lambda index=index, lock=lock: locks.__setitem__(index, st.session_state[lock]))


def share_locks(parts: int, axis: Axis = PLACES) -> list[bool]:
    """Return which parts of a split keep their share when others change; all are free once the number of parts has changed."""
    locks: list[bool] = st.session_state.setdefault(f"{axis.prefix}locks", [])
    if len(locks) != parts:
        locks[:] = [False] * parts
    return locks


def _structure_share(parts: list[Share]) -> float:
    """Return the share of the budget that finds the structure."""
    return sum(part.share for part in parts if part.structure)


def _preset_control(page_state: FamilyState, mechanism: AnyMechanism, parts: list[Share], frame: Any, axis: Axis) -> None:
    """Show a choice of named splits that fit the frame, published ones included; the share of the structure does not change."""
    names, values = [rule for rule in mechanism.rules() if rule.name == axis.split], mechanism.chosen()
    if not names:
        return
    height = sum(not part.structure for part in parts) - 1
    published = {preset.title: preset for preset in axis.published}
    current = next((name for name, preset in published.items() if _same_proportions(preset.weights(height), values[axis.weights])), None)
    st.selectbox(
        names[0].label,
        [*_fitting_splits(names[0], mechanism, frame), *published],
        format_func=lambda name: name if name in published else name.capitalize(),
        help=markdown(names[0].help),
        **widget_for(f"{axis.prefix}preset", current or values[axis.split], partial(_take_preset, page_state, mechanism.key, parts, axis)),
    )
    if current:
        st.caption(f"{published[current].source}.")


def _fitting_splits(rule: SettingSpec, mechanism: AnyMechanism, frame: Any) -> list[str]:
    """Return the named splits of a mechanism without those for another number of levels than the frame has."""

    def fits(name: str) -> bool:
        built = partial(mechanism.from_settings, {**mechanism.chosen(), rule.name: name})
        return name == CUSTOM or problem_with(lambda: built().check(frame)) is None

    return [name for name in rule.choices if fits(name)]


def _same_proportions(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return whether two splits have the same proportions."""
    first_sum, second_sum = sum(first), sum(second)
    comparable = len(first) == len(second) and first_sum > 0 and second_sum > 0
    return comparable and all(abs(a / first_sum - b / second_sum) < 1e-5 for a, b in zip(first, second, strict=True))


def _take_preset(page_state: FamilyState, mechanism: str, parts: list[Share], axis: Axis, name: str) -> None:
    """Use the chosen split, unless the mechanism has changed since: a browser may still send the choice of the one before."""
    if page_state.draft.run.mechanism == mechanism:
        _use_preset(page_state, name, parts, axis)


def _use_preset(page_state: FamilyState, name: str, parts: list[Share], axis: Axis) -> None:
    published = next((preset for preset in axis.published if preset.title == name), None)
    if published:
        weights = published.weights(sum(not part.structure for part in parts) - 1)
        counts = iter(weights)
        free = (1 - _structure_share(parts)) / sum(weights)
        use_shares(page_state, parts, [part.share if part.structure else free * next(counts) for part in parts], axis=axis)
    elif name != CUSTOM:
        draft = page_state.draft
        settings = {key: value for key, value in draft.run.settings.items() if key not in (axis.split, axis.weights)}
        default = next(rule.default for rule in draft.build().rules() if rule.name == axis.split)
        _change_split(page_state, settings if name == default else {**settings, axis.split: name})


def use_shares(page_state: FamilyState, parts: list[Share], shares: list[float], *, axis: Axis = PLACES) -> None:
    """Store shares that were dragged, typed or chosen, rounded to numbers short enough for a link.

    A named split keeps its name if only the share of the structure changes and the counts keep their proportions.
    """
    mechanism = page_state.draft.build()
    before, changed = mechanism.chosen(), getattr(mechanism, axis.with_shares)(shares).chosen()
    counts = [(part.share, share) for part, share in zip(parts, shares, strict=True) if not part.structure]
    if len(counts) < len(parts) and _same_proportions([old for old, _ in counts], [new_share for _, new_share in counts]):
        changed |= {name: before[name] for name in SPLIT_SETTINGS if name in before}
    short = {name: value if value == before[name] else _round_numbers(value) for name, value in changed.items()}
    defaults = {rule.name: rule.default for rule in mechanism.rules()}
    _change_split(page_state, {name: value for name, value in short.items() if value != defaults[name]})


def _change_split(page_state: FamilyState, settings: dict[str, Any]) -> None:
    """Use settings that differ in their split alone: the levels stay what they are, and so does the one that is shown."""
    page_state.change(run={"settings": settings}, view={"level": page_state.view.level})


def _round_numbers(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(round(part, 6) for part in value)
    return round(value, 6) if isinstance(value, float) else value


def _set_share(shares: list[float], locks: list[bool], index: int, use: Callable[[list[float]], None], share: float) -> None:
    use(redistribute(shares, locks, index, share))


def share_field(key: str, label: str, share: float, use: Callable[[float], object]) -> Field:
    """Make the field of a share, in percent."""
    problem = in_range(label, 0, 100)
    return Field(key=key, label=markdown(label), value=round(100 * share, 2), problem=problem, use=lambda typed: use(typed / 100))


def without_split(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without those of the split of the budget."""
    return {name: value for name, value in settings.items() if name not in SPLIT_SETTINGS}


def without_settings(page_state: FamilyState) -> None:
    """Go back to the mechanism's defaults, after settings that do not fit."""
    page_state.change(run={"settings": {}})


def split_bar(
    labels: list[str],
    shares: list[float],
    *,
    locked: list[bool],
    key: str,
    structure: Sequence[bool] | None = None,
    on_change: Callable[[list[float]], None],
) -> None:
    """Show a bar of parts with widths in proportion to `shares`; moving a boundary moves share between its two unlocked neighbours.

    The caller stores the shares; the bar shows the argument `shares`. It does not work inside `st.form`.

    Args:
        labels: (n,) names of the parts.
        shares: (n,) numbers of at least 0, not all of them 0; scaled to a total of 1.
        locked: (n,) True for parts that do not change.
        key: unique in the app.
        structure: (n,) True for parts that pay for the structure, which have another colour; None if all parts pay for counts.
        on_change: called with the new shares before the script runs again; it stores them, and the next run passes them as `shares`.

    Raises:
        BudgetError: `shares` are not one finite number of at least 0 per label, or all of them are 0.
    """
    given_shares = normalise_shares(list(shares), len(labels))
    moves = f"{key}.moved"

    def receive() -> None:
        event = (st.session_state.get(key) or {}).get("moved")
        if isinstance(event, dict) and isinstance(event.get("serial"), int):
            st.session_state[moves] = event["serial"]
            with suppress(BudgetError):
                on_change(_check_moved(event.get("shares"), given_shares, locked))

    is_structure = [False] * len(labels) if structure is None else list(structure)
    serial = st.session_state.setdefault(moves, 0)
    data = {"labels": list(labels), "shares": given_shares, "locked": list(locked), "structure": is_structure, "serial": serial}
    _bar(key=key, data=data, on_moved_change=receive)


def _check_moved(values: object, before: Sequence[float], locked: Sequence[bool]) -> list[float]:
    """Check the shares that the browser sent; raise `BudgetError` if a locked share has changed."""
    shares = normalise_shares(values, len(before))
    if any(fixed and abs(new - old) > _UNCHANGED for new, old, fixed in zip(shares, before, locked, strict=True)):
        raise BudgetError("A locked share does not change.")
    return shares
