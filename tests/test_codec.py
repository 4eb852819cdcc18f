"""The codec: what a dataclass declares is read, written and described by one meaning of its annotations."""

import json
import re
from dataclasses import dataclass, field, is_dataclass
from fractions import Fraction
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from dpviz.codec import Codec, Limit, Scalar, keys_of
from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.families import FAMILIES
from dpviz.release.facts import MANIFESTS, Amount, Contents, Kind, Manifest, make_schema


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round thing.

    Attributes:
        radius: in cells.
        shape: what it is.
    """

    radius: Annotated[float, Limit("exclusiveMinimum", 0), Limit("maximum", 9)]
    shape: Literal["round"] = "round"


@dataclass(frozen=True, kw_only=True)
class Square:
    """A square thing. Its sides are equal.

    And it has four.

    Attributes:
        side: in cells,
            all of them.
        shape: what it is.
    """

    side: Annotated[int, Limit("minimum", 1)]
    shape: Literal["square"] = "square"


@dataclass(frozen=True, kw_only=True)
class Thing:
    """All kinds of annotations.

    Attributes:
        name: at least one character.
        files: one or several.
        corner: of two numbers.
        inside: one of two tables.
        beside: a table, or none.
        maybe: a number, or null.
        choice: one of three.
        sizes: at most two.
        notes: any keys.
        settings: any values.
        code: three digits.
        flag: yes or no.
        order: a number that has a default.
    """

    name: Annotated[str, Limit("minLength", 1)]
    files: str | tuple[str, ...]
    corner: tuple[float, float]
    inside: Round | Square
    beside: Square | None = None
    maybe: int | None
    choice: Literal["a", "b", True]
    sizes: Annotated[tuple[int, ...], Limit("minItems", 1), Limit("maxItems", 2)] = (1,)
    notes: Annotated[dict[str, str], Limit("required", ("first",))] = field(default_factory=lambda: {"first": ""})
    settings: dict[str, Any] = field(default_factory=dict)
    code: Annotated[str, Limit("pattern", "^[0-9]{3}$")] | None = None
    flag: bool = False
    order: int = 10


ANY = Scalar(read=lambda value, _: value, schema={})
PLAIN = Codec(scalars={Any: ANY}, refused={"seed": (RefusedError, "No seed.")})
THING = {
    "name": "one",
    "files": "a.csv",
    "corner": [1, 2.5],
    "inside": {"side": 3, "shape": "square"},
    "maybe": None,
    "choice": "a",
}
LISTS = st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.text()), max_size=2)
SCALARS = {
    str: st.text(max_size=5),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    Any: st.one_of(st.none(), st.booleans(), st.integers(), st.floats(-9, 9), st.text(max_size=5)),
    Fraction: st.fractions(),
    Kind: st.sampled_from(list(FAMILIES)),
}


def strategy_of(kind):
    """Values of an annotation, by its meaning; those beyond its limits are filtered out."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = {limit.keyword: limit.size for limit in parts[1:]}
        return _within(parts[0], limits)
    if origin in (Union, UnionType):
        return st.one_of([st.none() if part is NoneType else strategy_of(part) for part in parts])
    if origin is tuple and parts[-1] is Ellipsis:
        return st.lists(strategy_of(parts[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(strategy_of, parts))
    if origin is dict:
        return st.dictionaries(st.text(max_size=3), strategy_of(parts[1]), max_size=2)
    if origin is Literal:
        return st.sampled_from(parts)
    if kind is Contents:
        return st.one_of([made(family.layout.contents) for family in FAMILIES.values()])
    return made(kind) if is_dataclass(kind) else SCALARS[kind]


def _within(kind, limits):
    if "pattern" in limits:
        return st.from_regex(limits["pattern"])
    if kind in (int, float):
        make, low = (st.integers, limits.get("minimum")) if kind is int else (st.floats, limits.get("minimum", 1e-3))
        return make(low, limits.get("maximum", 10**9))
    if "required" in limits:
        return st.fixed_dictionaries(dict.fromkeys(limits["required"], st.text(max_size=2)))
    size = {"min_size": limits.get("minLength", limits.get("minItems", 0)), "max_size": limits.get("maxItems", 3)}
    return st.text(**size) if kind is str else st.lists(strategy_of(get_args(kind)[0]), **size).map(tuple)


def made(kind):
    """Objects of a dataclass, keys with a default left out by turns."""
    needed = {name: strategy_of(key.kind) for name, key in keys_of(kind).items() if key.required}
    others = {name: strategy_of(key.kind) for name, key in keys_of(kind).items() if not key.required}
    return st.fixed_dictionaries(needed, optional=others).map(lambda values: kind(**values))


@given(made(Thing))
def test_what_is_written_is_valid_and_reads_back_equal(thing):
    table = json.loads(json.dumps(PLAIN.write(thing)))
    Draft7Validator(PLAIN.schema(Thing)).validate(table)
    assert PLAIN.read(Thing, table, "[thing]") == thing


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(made(Manifest))
def test_every_manifest_that_can_be_declared_is_valid_and_reads_back_equal(manifest):
    table = json.loads(json.dumps(MANIFESTS.write(manifest)))
    Draft202012Validator(make_schema()).validate(table)
    assert MANIFESTS.read(Manifest, table, "manifest") == manifest


def changed(table, path, value):
    """A copy of a table with another value at a path, or without it."""
    copy = json.loads(json.dumps(table))
    at = copy
    for part in path[:-1]:
        at = at[part]
    if value is None and path[-1] in at:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


WRONG = [
    (["name"], "", "[thing] name must have 1 or more characters."),
    (["name"], None, "[thing] lacks name."),
    (["name"], 3, "[thing] name must be a text in quotes."),
    (["nam"], 3, "[thing] has no key 'nam'; it knows name, files"),
    (["files"], [3], "Each of [thing] files must be a text in quotes."),
    (["files"], {}, "[thing] files must be a text in quotes."),
    (["corner"], [1], "[thing] corner must have 2 entries."),
    (["corner"], 1, "[thing] corner must be a list."),
    (["corner"], [1, True], "Each of [thing] corner must be a finite number."),
    (["corner"], [1, float("inf")], "Each of [thing] corner must be a finite number."),
    (["corner"], [1, 10**400], "Each of [thing] corner must be a finite number."),
    (["inside"], {"side": 3}, "[thing] inside shape must be one of round, square."),
    (["inside"], {"side": 0, "shape": "square"}, "[thing] inside side must be at least 1."),
    (["inside"], {"radius": 0, "shape": "round"}, "[thing] inside radius must be greater than 0."),
    (["inside"], {"radius": 10, "shape": "round"}, "[thing] inside radius must be at most 9."),
    (["inside"], 3, "[thing] inside must be a table."),
    (["beside"], {"side": 3}, "[thing] beside lacks shape."),
    (["maybe"], "3", "[thing] maybe must be a whole number."),
    (["choice"], "s3cret", "[thing] choice must be one of a, b, True."),
    (["choice"], 1, "[thing] choice must be one of a, b, True."),
    (["choice"], ["a"], "[thing] choice must be one of a, b, True."),
    (["sizes"], [], "[thing] sizes must have 1 or more entries."),
    (["sizes"], [1, 2, 3], "[thing] sizes must have 2 or fewer entries."),
    (["notes"], {"second": "s3cret"}, "[thing] notes must have the keys first."),
    (["notes"], {"first": 3}, "[thing] notes.first must be a text in quotes."),
    (["code"], "s3cret", "[thing] code must match the pattern ^[0-9]{3}$."),
    (["flag"], 1, "[thing] flag must be true or false."),
]


@pytest.mark.parametrize(("path", "value", "text"), WRONG)
def test_errors_name_the_key_and_the_rule_and_never_a_value(path, value, text):
    table = changed(THING, path, value)
    with pytest.raises(SettingError, match=re.escape(text)) as refusal:
        PLAIN.read(Thing, table, "[thing]")
    assert "s3cret" not in str(refusal.value)
    if value not in ([1, float("inf")], [1, 10**400]):  # which JSON has not, or floating point
        assert not Draft7Validator(PLAIN.schema(Thing)).is_valid(table)


def test_a_refused_key_has_its_own_error_and_an_unknown_one_proposes_the_nearest():
    with pytest.raises(RefusedError, match="No seed"):
        PLAIN.read(Thing, THING | {"seed": 3}, "[thing]")
    with pytest.raises(SettingError, match="Did you mean 'order'"):
        PLAIN.read(Thing, THING | {"ordre": 3}, "[thing]")


def test_defaults_are_left_out_marks_never_and_none_is_null_or_missing():
    thing = PLAIN.read(Thing, THING, "[thing]")
    assert (thing.corner, thing.inside, thing.order) == ((1.0, 2.5), Square(side=3), 10)
    assert PLAIN.write(thing) == THING
    quiet = Codec(scalars={Any: ANY}, says_none=False)
    assert quiet.write(thing) == {name: value for name, value in THING.items() if name != "maybe"}


def test_a_schema_has_the_descriptions_of_the_docstrings_and_may_define_tables_apart():
    defined = {}
    schema = PLAIN.schema(Thing, defined)
    assert defined["Square"]["description"] == "A square thing. Its sides are equal. And it has four."
    assert defined["Square"]["properties"]["side"] == {"type": "integer", "minimum": 1, "description": "In cells, all of them."}
    assert schema["properties"]["inside"]["anyOf"] == [{"$ref": "#/$defs/Round"}, {"$ref": "#/$defs/Square"}]
    assert schema["properties"]["maybe"] == {"type": ["integer", "null"], "description": "A number, or null."}
    assert schema["required"] == ["name", "files", "corner", "inside", "maybe", "choice"]
    assert Amount.__name__ in make_schema()["$defs"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A corner, with a scalar for its tables."""

    at: Square
    more: tuple[Square, ...] = ()


def test_a_dataclass_among_the_scalars_is_read_written_and_described_as_that_says():
    side = Scalar(read=lambda value, _: Square(side=int(value)), write=lambda square: f"{square.side}", schema={"type": "string"})
    codec = Codec(scalars={Square: side})
    place = Place(at=Square(side=3), more=(Square(side=4),))
    assert codec.write(place) == {"at": "3", "more": ["4"]}
    assert codec.read(Place, codec.write(place), "[place]") == place
    assert codec.schema(Place)["properties"]["more"] == {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True, kw_only=True)
class Mixed:
    """A list of two kinds, which the codec does not know."""

    pairs: dict[str, Annotated[tuple[int, str], Limit("minItems", 2)]] | None = None


@dataclass(frozen=True, kw_only=True)
class Unmarked:
    """A table without a mark, beside one that has it."""

    inside: Square | Amount


def test_what_the_codec_does_not_know_is_refused_in_clear_words():
    for refused in (lambda: keys_of(Mixed), lambda: PLAIN.read(Mixed, {}, "[mixed]"), lambda: PLAIN.schema(Mixed)):
        with pytest.raises(TypeError, match=r"Mixed\.pairs must be a tuple of one kind of entries"):
            refused()
    with pytest.raises(TypeError, match="Amount stands among other tables, so it needs a mark"):
        PLAIN.read(Unmarked, {"inside": {"side": 3, "shape": "square"}}, "[unmarked]")


VALUES = st.one_of(LISTS, SCALARS[Any].filter(lambda value: not isinstance(value, float) or not value.is_integer()), st.just({}))


@settings(max_examples=200)
@given(st.data())
def test_the_schema_takes_what_the_codec_reads_and_nothing_else(data):
    """Whole numbers are written without a decimal point: JSON Schema takes 3.0 for one, and the codec does not."""
    table = PLAIN.write(data.draw(made(Thing)))
    path = [data.draw(st.sampled_from([*table, "more"]))]
    if isinstance(table.get(path[0]), dict) and table[path[0]] and data.draw(st.booleans()):
        path.append(data.draw(st.sampled_from(sorted(table[path[0]]))))
    table = changed(table, path, data.draw(VALUES))
    reads = True
    try:
        PLAIN.read(Thing, table, "[thing]")
    except DpvizError:
        reads = False
    assert reads == Draft7Validator(PLAIN.schema(Thing)).is_valid(table)
