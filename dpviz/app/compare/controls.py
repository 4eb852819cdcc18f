"""The left side of the Compare page: public data, mechanisms and ranges of their settings, budgets, repeats."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from dpviz.app import cached
from dpviz.app.compare.state import (
    COMPARE,
    LARGEST_ORDER,
    MOST_REPEATS,
    MOST_STEPS,
    OWN,
    POINTS_KIND,
    SAMPLE,
    TRIPS_KIND,
    CompareConfig,
    CompareData,
)
from dpviz.app.controls import DELTAS, EPSILONS
from dpviz.app.fields import Field, in_range, problem_with
from dpviz.app.points.data import describe_resolution
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms.base import Rule
from dpviz.samples.flows import FLOW_SAMPLES
from dpviz.samples.points import SAMPLES, SampleInfo

NOTHING = "nothing"
USUAL_SIZE = None  # records of a made-up sample; None is its usual number
_SOURCE_NAMES = {SAMPLE: "Sample", OWN: "As loaded in Teach"}


def compare_data() -> CompareData | None:
    """Show the data controls and return the chosen data; without data, show a note on what is missing and return None."""
    config: CompareConfig = COMPARE.config()
    st.markdown("##### 1 Data")
    _choice_buttons("kind", (POINTS_KIND, TRIPS_KIND), "Kind of data", sample="", mechanisms=(), settings={}, workload="", picked=())
    _choice_buttons("source", (SAMPLE, OWN), "Where from", names=_SOURCE_NAMES)
    if config.source == OWN:
        return _own_data(config)
    known = SAMPLES if config.kind == POINTS_KIND else FLOW_SAMPLES
    key = f"compare sample {config.kind}"
    st.session_state[key] = config.chosen_sample
    st.selectbox(
        "Sample",
        list(known),
        key=key,
        format_func=lambda name: known[name].title,
        on_change=lambda: COMPARE.change(sample=st.session_state[key], workload=""),
    )
    about = known[config.chosen_sample]
    st.caption(about.description, help=f"Source: {about.source} Licence: {about.licence}.")
    if config.kind == TRIPS_KIND:
        return _sample_data(about, cached.flow_sample(about.key), f"trips {about.key}")
    _resolution_control()
    points = cached.sample(about.key, USUAL_SIZE, config.order)
    return _sample_data(about, points, f"{about.key} {USUAL_SIZE}", (config.order,))


def _resolution_control() -> None:
    """Ask on how many cells a sample is counted."""
    st.session_state["compare order"] = COMPARE.config().order
    st.select_slider(
        "Resolution",
        range(1, LARGEST_ORDER + 1),
        key="compare order",
        format_func=describe_resolution,
        help="The domain is cut into so many cells.",
        on_change=lambda: COMPARE.change(order=st.session_state["compare order"]),
    )


def _sample_data(about: SampleInfo, data: PointCounts | Flows, digest: str, frame: tuple[int, ...] = ()) -> CompareData:
    """Return a sample as data to compare on, with the digest and fingerprints that it has on the Points or Trips page."""
    fingerprints = cached.fingerprints(digest, frame, data, f"sample {digest}".encode())
    return CompareData(
        data=data, key=f"{digest} {frame}", digest=digest, fingerprints=fingerprints, title=about.title, unit=about.unit, bundled=True
    )


def _own_data(config: CompareConfig) -> CompareData | None:
    """Return the data that were declared public on the Points or Trips page; None, with a note, if there are none."""
    data = config.page_state.offered_data()
    if data is None:
        st.info(f"Load a file on the {config.kind} page in Teach, and confirm there that it is public: then it can be compared on here.")
        return None
    st.caption(f"{data.title}: declared to be already public.")
    return CompareData(
        data=data.private,
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
    key = f"compare mechanisms {config.kind}"
    st.session_state[key] = list(config.chosen)
    st.multiselect(
        "Mechanisms",
        list(config.offered),
        key=key,
        format_func=lambda name: str(config.offered[name].title) + ("" if config.offered[name].private else " (NOT PRIVATE)"),
        label_visibility="collapsed",
        on_change=lambda: COMPARE.change(mechanisms=tuple(st.session_state[key])),
    )
    with st.expander("Vary a setting", expanded=bool(config.settings)):
        st.caption("Every value becomes a configuration of its own. For several settings of one mechanism use the command dpviz compare.")
        for name in config.chosen:
            _variation_controls(config, name)
    _budget_controls()


def _variation_controls(config: CompareConfig, name: str) -> None:
    """Ask which setting of one mechanism varies, and which values it takes in turn."""
    mechanism = config.offered[name]
    rules = {rule.name: rule for rule in mechanism.rules() if not isinstance(rule.default, tuple)}
    varied_setting = next(iter(config.varied_settings(name)), NOTHING)
    key = f"vary {name}"
    st.session_state[key] = varied_setting if varied_setting in rules else NOTHING
    st.selectbox(
        str(mechanism.title),
        [NOTHING, *rules],
        key=key,
        format_func=lambda setting: "as it is" if setting == NOTHING else rules[setting].label,
        on_change=lambda: _store_variation(name, st.session_state[key], _first_values(rules.get(st.session_state[key]))),
    )
    if st.session_state[key] != NOTHING:
        _value_controls(name, rules[varied_setting], config.varied_settings(name).get(varied_setting, []))


def _value_controls(name: str, rule: Rule, values: list[Any]) -> None:
    key = f"values {name} {rule.name}"
    options = list(rule.choices) or ([False, True] if isinstance(rule.default, bool) else [])
    if options:
        st.session_state[key] = [value for value in values if value in options]
        st.multiselect(
            "Values", options, key=key, help=rule.help, on_change=lambda: _store_variation(name, rule.name, st.session_state[key])
        )
        return
    bounds = f"{'' if rule.low is None else f'from {rule.low:g}'}{'' if rule.high is None else f' to {rule.high:g}'}"
    field = Field(
        key=key,
        label=f"Values of {rule.label}",
        value=", ".join(f"{value:.12g}" if isinstance(value, int | float) else str(value) for value in values),
        problem=lambda typed: problem_with(lambda: _read_numbers(name, rule, typed)),
        use=lambda typed: _store_variation(name, rule.name, _read_numbers(name, rule, typed)),
    )
    field.show(st.text_input, help=f"Several with commas between them. {rule.help} {bounds}")


def _read_numbers(name: str, rule: Rule, typed: str) -> list[Any]:
    """Read numbers with commas between them, and check each against the mechanism.

    Raises:
        SettingError: a part of the text is no number, or a number that the mechanism refuses.
    """
    numbers = []
    for part in filter(str.strip, typed.split(",")):
        try:
            number = float(part)
        except ValueError:
            raise SettingError(f"{rule.label}: numbers with commas between them, such as 2, 4, 8.") from None
        numbers.append(int(number) if number.is_integer() else number)
        COMPARE.config().offered[name](**{rule.name: numbers[-1]})
    return numbers


def _store_variation(name: str, setting: str, values: list[Any]) -> None:
    """Store which setting of a mechanism varies, and its values; `NOTHING` or an empty list ends the variation."""
    settings = {key: value for key, value in COMPARE.config().settings.items() if key != name}
    if setting != NOTHING and values:
        settings[name] = {setting: list(values)}
    COMPARE.change(settings=settings)


def _first_values(rule: Rule | None) -> list[Any]:
    """Return the values with which a setting begins to vary; none if `rule` is None."""
    if rule is None:
        return []
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
        _number_choice("delta", "δ", DELTAS, "For mechanisms that need one.")


def _number_choice(name: str, title: str, options: list[float], text: str | None = None) -> None:
    """Ask for one of a list of numbers; a number that a link has set is offered as well."""
    key = f"compare {name}"
    value = getattr(COMPARE.config(), name)
    option_shown = next((option for option in options if math.isclose(option, value)), value)
    st.session_state[key] = option_shown
    st.selectbox(
        title,
        sorted({*options, option_shown}),
        key=key,
        format_func="{:.12g}".format,
        help=text,
        on_change=lambda: COMPARE.change(**{name: st.session_state[key]}),
    )


def _number_field(name: str, title: str, low: int, high: int, text: str) -> None:
    field = Field(
        key=f"compare {name}",
        label=title,
        value=getattr(COMPARE.config(), name),
        problem=in_range(title, low, high),
        use=lambda typed: COMPARE.change(**{name: typed}),
    )
    field.show(st.number_input, value=None, step=1, help=text)


def _choice_buttons(name: str, options: tuple[str, ...], title: str, *, names: dict[str, str] | None = None, **reset: Any) -> None:
    """Ask for one of a few options with buttons; a choice also sets the settings in `reset` to the values given there."""
    key = f"compare {name}"
    st.session_state[key] = getattr(COMPARE.config(), name)
    st.segmented_control(
        title,
        options,
        key=key,
        required=True,
        format_func=lambda option: (names or {}).get(option, option),
        label_visibility="collapsed",
        on_change=lambda: COMPARE.change(**{name: st.session_state[key]}, **reset),
    )
