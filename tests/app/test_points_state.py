"""The configuration that a link carries: whatever is in the link, a page can be built from it, and it holds no data."""

import json
from dataclasses import fields, replace

from hypothesis import example, given
from hypothesis import strategies as st

from dpviz.app.points.state import Config
from dpviz.app.session import read_link, to_query
from dpviz.app.state.values import LARGEST_DELTA, LARGEST_EPSILON, LARGEST_ORDER, SMALLEST_DELTA, SMALLEST_EPSILON, SOURCES
from dpviz.families import POINT_FAMILY
from dpviz.mechanisms.base import Settings
from dpviz.samples.points import POINT_SAMPLES
from dpviz.view.points_map import SHOWN

NAMES = [field.name for field in fields(Config)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SETTINGS = sorted({rule.name for mechanism in POINT_FAMILY.choices.values() for rule in mechanism.rules()})


TEXTS = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        [*POINT_SAMPLES, *POINT_FAMILY.choices, *SHOWN, "Teach", "Curate", "9" * 400, "-" + "9" * 4000, "1e999", "[" * 3000, "٣"]
    ),
    st.dictionaries(st.sampled_from(SETTINGS), JSON, max_size=4).map(json.dumps),
    JSON.map(json.dumps),
)


def settings_of(mechanism):
    """Settings at their defaults, at any choice or at an end of their range; weights are any numbers."""
    kinds = {}
    for rule in mechanism.rules():
        values = [rule.default, *rule.choices, *(() if isinstance(rule.default, tuple) else (rule.low, rule.high))]
        kinds[rule.name] = st.sampled_from([value for value in values if value is not None or rule.optional])
    if "weights" in kinds:
        kinds["weights"] = st.lists(st.floats(0, 10), max_size=9).map(tuple)
    return st.fixed_dictionaries({}, optional=kinds)


@st.composite
def configs(draw):
    mechanism = draw(st.sampled_from(sorted(POINT_FAMILY.choices)))
    return Config(
        mode=draw(st.sampled_from(["Teach", "Curate"])),
        sample=draw(st.sampled_from(sorted(POINT_SAMPLES))),
        size=draw(st.none() | st.integers(1, 10_000_000)),
        mechanism=mechanism,
        settings=draw(settings_of(POINT_FAMILY.choices[mechanism])),
        epsilon=draw(st.floats(SMALLEST_EPSILON, LARGEST_EPSILON)),
        delta=draw(st.floats(SMALLEST_DELTA, LARGEST_DELTA)),
        order=draw(st.integers(1, LARGEST_ORDER)),
        zoom=draw(st.none() | st.integers(0, 24)),
        box=draw(st.none() | st.just((-118.5, 33.25, 1e9, 34.0))),
        shown=draw(st.sampled_from(SHOWN)),
    )


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), TEXTS, max_size=9))
@example({"size": "9" * 400})
@example({"settings": '{"height":' + "9" * 3900 + "}"})
@example({"settings": '{"weights":[[1]],"split":{}}'})
@example({"settings": '{"height":1e999}'})
def test_any_link_gives_a_configuration_that_can_be_built(query):
    config = read_link(Config, query)
    assert isinstance(config.build(), Settings)
    assert config.source == "sample"
    assert config.mode in ("Teach", "Curate")
    assert config.sample in POINT_SAMPLES
    assert config.shown in SHOWN
    assert SMALLEST_EPSILON <= config.epsilon <= LARGEST_EPSILON
    assert SMALLEST_DELTA <= config.delta <= LARGEST_DELTA
    assert 1 <= config.order <= LARGEST_ORDER
    assert config.size is None or 1 <= config.size <= 10_000_000
    assert config.zoom is None or 0 <= config.zoom <= 24


@given(configs(), st.sampled_from(SOURCES))
def test_a_link_brings_back_what_it_was_made_from_and_holds_parameters_only(config, source):
    again = read_link(Config, to_query(config))
    assert again == config
    assert again.build() == config.build()
    query = to_query(replace(config, source=source))
    assert set(query) <= set(NAMES) - {"source"}
    assert all(isinstance(value, str) for value in query.values())
    assert read_link(Config, query | {"source": source, "path": "/etc/passwd"}).source == "sample"


def test_one_bad_parameter_does_not_cost_the_others():
    config = read_link(Config, {"epsilon": "nan", "order": "7", "mode": "curate", "mechanism": "identity", "settings": '{"order":99}'})
    assert config == Config(order=7, mechanism="identity")


def test_only_zoom_and_map_are_no_part_of_a_draw():
    assert Config().same_draw(Config(zoom=3, shown=SHOWN[1]))
    values = {"epsilon": 0.6, "delta": 1e-7, "settings": {"height": 3}, "order": 9, "size": 10, "mode": "Curate", "source": "path"}
    for name, value in values.items():
        assert not Config().same_draw(replace(Config(), **{name: value})), name
