"""The left side of the Compare page: public data, mechanisms and ranges of their settings, budgets, repeats."""

from __future__ import annotations

import math
import operator
from dataclasses import fields
from typing import Any

import streamlit as st

from dpviz.app.components.fields import Field, in_range, problem_with
from dpviz.app.components.mechanism_controls import DELTAS, EPSILONS
from dpviz.app.pages.compare.kinds import Compared
from dpviz.app.pages.compare.state import (
    COMPARE,
    MOST_REPEATS,
    MOST_STEPS,
    NOISE,
    NOTHING,
    OWN,
    SAMPLE,
    CompareConfig,
    CompareData,
    list_kinds,
)
from dpviz.app.server.class_mode import is_class
from dpviz.app.session.widgets import widget_for
from dpviz.app.state.values import EVERYWHERE
from dpviz.errors import SettingError
from dpviz.mechanisms.base import LAPLACE, NOISES, AnyMechanism, SettingSpec
from dpviz.view.escape import markdown

LONGEST_SHOWN = 40  # characters of a wrong value that a message repeats
_NOISE_RULE = SettingSpec(
    name=NOISE,
    default=LAPLACE,
    label="Noise",
    help="Laplace noise spends ε alone, Gaussian noise ε and δ: compare both at equal ε.",
    choices=NOISES,
)
_SOURCE_NAMES = {SAMPLE: "Sample", OWN: "As loaded in Teach"}


def compare_data() -> CompareData | None:
    """Show the data controls and return the chosen data; without data, show a note on what is missing and return None."""
    config: CompareConfig = COMPARE.config()
    st.markdown("##### 1 Data")
    reset: dict[str, Any] = {
        "file": "",
        "sample": "",
        "mechanisms": (),
        "settings": {},
        "workload": "",
        "target": None,
        "picked": (),
        "level": None,
        "study_area": EVERYWHERE,
    }
    _choice_buttons("kind", list_kinds(), "Kind of data", **reset)
    if not is_class():
        _choice_buttons("source", (SAMPLE, OWN), "Where from", names=_SOURCE_NAMES, file="")
    if config.source == OWN:
        return _own_data(config)
    known, shown = config.compared.samples, None if config.sample == NOTHING else config.chosen_sample
    widget = widget_for(f"compare sample {config.kind}", shown, lambda key: COMPARE.change(sample=key, workload="", level=None))
    options: dict[str, Any] = {"index": None, "placeholder": "Choose a sample"} if shown is None else {}
    st.selectbox("Sample", list(known), format_func=lambda name: known[name].title, **options, **widget)
    if shown is None:
        return None
    about = known[config.chosen_sample]
    st.caption(about.description, help=f"Source: {about.source} Licence: {about.licence}.")
    compared: Compared = config.compared
    return compared.ask_sample(about, config)


def ask_for_own_data() -> None:
    """Say which data of one's own are missing, if they are: without any, or with others than a link says, there is no study of them."""
    config: CompareConfig = COMPARE.config()
    if config.source != OWN or _has_own_data(config):
        return
    said = f"The link says that its data are in “{markdown(config.file)}”. " if config.file else ""
    if config.offered_data() is not None:
        st.warning(f"{said}In Teach, “{markdown(config.offered_file())}” is loaded.")
        st.button("Compare on the file that is loaded", on_click=lambda: COMPARE.change(file=""))
        return
    it, where = "that file" if config.file else "a file", f"on the {config.kind} page in Teach, and confirm there that it is public"
    st.info(f"{said}Load {it} {where}: then it can be compared on here.")


def _has_own_data(config: CompareConfig) -> bool:
    return config.offered_data() is not None and config.file in ("", config.offered_file())


def _own_data(config: CompareConfig) -> CompareData | None:
    """Return the data that were declared public on the page of their kind; None without those that a link says."""
    if not _has_own_data(config):
        return None
    data = config.offered_data()
    st.caption(f"{data.title}: declared to be already public.")
    return CompareData(
        data=data.counts,
        key=data.digest,
        digest=data.digest,
        fingerprints=data.fingerprints,
        title=data.title,
        unit=data.unit,
        bundled=data.bundled,
    )


def study_controls() -> None:
    """Show the controls of mechanisms, budgets and repeats."""
    config: CompareConfig = COMPARE.config()
    st.markdown("##### 2 Mechanisms")
    st.multiselect(
        "Mechanisms",
        list(config.offered),
        format_func=lambda name: str(config.offered[name].title),
        label_visibility="collapsed",
        **widget_for(f"compare mechanisms {config.kind}", list(config.chosen), lambda keys: COMPARE.change(mechanisms=tuple(keys))),
    )
    with st.expander("Vary a setting", expanded=bool(config.settings)):
        st.caption("Every value becomes a configuration of its own; of several settings, every combination.")
        for name in config.chosen:
            _variation_controls(config, name)
    _budget_controls()


def _variation_controls(config: CompareConfig, name: str) -> None:
    """Ask which settings of one mechanism vary, and which values each takes in turn."""
    mechanism, varied = config.offered[name], config.varied_settings(name)
    rules = {rule.name: rule for rule in mechanism.rules() if not isinstance(rule.default, tuple) or rule.name in varied}
    rules |= {NOISE: _NOISE_RULE} if mechanism.noise_by_budget else {}
    key = f"vary {name}"
    st.session_state[key] = [setting for setting in varied if setting in rules]
    st.multiselect(
        str(mechanism.title),
        list(rules),
        key=key,
        placeholder="as it is",
        format_func=lambda setting: rules[setting].label,
        on_change=lambda: _store_variation(
            name, {setting: varied.get(setting) or _first_values(rules[setting]) for setting in st.session_state[key]}
        ),
    )
    for setting in st.session_state[key]:
        _value_controls(name, rules[setting], list(varied[setting]))


def _value_controls(name: str, rule: SettingSpec, values: list[Any]) -> None:
    """Ask which values a setting takes."""
    key = f"values {name} {rule.name}"
    if isinstance(rule.default, tuple):
        st.caption(f"{rule.label}: {len(values)} lists of numbers, from the link.")
        return
    options = list(rule.choices) or ([False, True] if isinstance(rule.default, bool) else [])
    if options:
        st.session_state[key] = [value for value in values if value in options]
        st.multiselect(
            f"Values of {rule.label}", options, key=key, help=rule.help, on_change=lambda: _store_values(name, rule, st.session_state[key])
        )
        return
    bounds = f"{'' if rule.low is None else f'from {rule.low:g}'}{'' if rule.high is None else f' to {rule.high:g}'}"
    field = Field(
        key=key,
        label=f"Values of {rule.label}",
        value=", ".join(f"{value:.12g}" if isinstance(value, int | float) else str(value) for value in values),
        problem=lambda typed: problem_with(lambda: read_numbers(COMPARE.config().offered[name], rule, typed)),
        use=lambda typed: _store_values(name, rule, read_numbers(COMPARE.config().offered[name], rule, typed)),
    )
    field.show(st.text_input, help=f"Several with commas between them. {rule.help} {bounds}")


def read_numbers(mechanism: type[AnyMechanism], rule: SettingSpec, typed: str) -> list[int | float]:
    """Read numbers with commas between them, and check each against a mechanism; repeated ones are taken once.

    Args:
        mechanism: the mechanism that has the setting.
        rule: the rule of the setting.
        typed: the text.

    Raises:
        SettingError: a part of the text is no number, or a number that the mechanism refuses; the message names it.

    >>> from dpviz.mechanisms import Quadtree
    >>> height = next(Quadtree.rules())
    >>> read_numbers(Quadtree, height, "4, 8, 4")
    [4, 8]
    >>> read_numbers(Quadtree, height, "4, eight")
    Traceback (most recent call last):
    ...
    dpviz.errors.SettingError: Height: 'eight' is no whole number. Write numbers with commas between them, such as 2, 4, 8.
    """
    numbers = [_read_number(mechanism, rule, part.strip()) for part in typed.split(",") if part.strip()]
    return list(dict.fromkeys(numbers))


def _read_number(mechanism: type[AnyMechanism], rule: SettingSpec, text: str) -> int | float:
    """Read one number; raise `SettingError`, which names it, if it is none or does not fit."""
    kind = "whole number" if _is_whole(mechanism, rule) else "number"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (kind == "whole number" and not number.is_integer()):
        raise SettingError(f"{rule.label}: '{text[:LONGEST_SHOWN]}' is no {kind}. Write numbers with commas between them, such as 2, 4, 8.")
    for bound, is_beyond, side in ((rule.low, operator.lt, "below"), (rule.high, operator.gt, "above")):
        if bound is not None and is_beyond(number, bound):
            raise SettingError(f"{rule.label}: {text[:LONGEST_SHOWN]} is {side} {bound:,.12g}.")
    value = int(number) if number.is_integer() else number
    mechanism(**{rule.name: value})
    return value


def _is_whole(mechanism: type[AnyMechanism], rule: SettingSpec) -> bool:
    """Return whether a setting takes whole numbers only."""
    kinds = {item.name: str(getattr(item.type, "__name__", item.type)) for item in fields(mechanism)}
    return kinds[rule.name].split(" ")[0] == "int"


def _store_values(name: str, rule: SettingSpec, values: list[Any]) -> None:
    """Store the values of one setting of a mechanism; an empty list ends its variation."""
    _store_variation(name, {**COMPARE.config().varied_settings(name), rule.name: values})


def _store_variation(name: str, varied: dict[str, list[Any]]) -> None:
    """Store which settings of a mechanism vary, and their values; settings without values do not vary."""
    settings = {key: value for key, value in COMPARE.config().settings.items() if key != name}
    if chosen := {setting: list(values) for setting, values in varied.items() if len(values)}:
        settings[name] = chosen
    COMPARE.change(settings=settings)


def _first_values(rule: SettingSpec) -> list[Any]:
    """Return the values with which a setting begins to vary."""
    if rule.choices or isinstance(rule.default, bool):
        return list(rule.choices or (False, True))[:2]
    return [rule.default] if rule.default is not None else [rule.low or 1]


def _budget_controls() -> None:
    st.markdown("##### 3 Budgets and repeats")
    left, right = st.columns(2)
    with left:
        _number_choice("low", "Smallest ε", EPSILONS)
    with right:
        _number_choice("high", "Largest ε", EPSILONS)
    left, right = st.columns(2)
    with left:
        _number_field("steps", "How many ε", 1, MOST_STEPS, "Evenly on a logarithmic scale; 1 takes the smallest.")
    with right:
        _number_field("repeats", "Repeats of each", 1, MOST_REPEATS, "The noise of every release differs: 30 repeats make steady means.")
    with left:
        _number_field("seed", "Seed", 0, 2**53 - 1, "The same seed gives the same table, except for the measured seconds.")
    with right:
        _number_choice("delta", "δ", DELTAS, "For mechanisms that need one, and for Gaussian noise.")


def _number_choice(name: str, title: str, options: list[float], text: str | None = None) -> None:
    """Ask for one of a list of numbers; a number that a link has set is offered as well."""
    value = getattr(COMPARE.config(), name)
    option_shown = next((option for option in options if math.isclose(option, value)), value)
    shown = widget_for(f"compare {name}", option_shown, lambda option: COMPARE.change(**{name: option}))
    st.selectbox(title, sorted({*options, option_shown}), format_func="{:.12g}".format, help=text, **shown)


def _number_field(name: str, title: str, low: int, high: int, text: str) -> None:
    field = Field(
        key=f"compare {name}",
        label=title,
        value=getattr(COMPARE.config(), name),
        problem=in_range(title, low, high),
        use=lambda typed: _store_number(name, typed),
    )
    field.show(st.number_input, value=None, step=1, help=text)


def _store_number(name: str, number: int) -> None:
    """Store a number; with fewer repeats, the maps show one of those that are left."""
    repeat = {"repeat": min(COMPARE.config().repeat, number)} if name == "repeats" else {}
    COMPARE.change(**{name: number}, **repeat)


def _choice_buttons(name: str, options: tuple[str, ...], title: str, *, names: dict[str, str] | None = None, **reset: Any) -> None:
    """Ask for one of a few options with buttons; a choice also sets the settings in `reset` to the values given there."""
    st.segmented_control(
        title,
        options,
        required=True,
        format_func=lambda option: (names or {}).get(option, option),
        label_visibility="collapsed",
        **COMPARE.widget(name, f"compare {name}", **reset),
    )
