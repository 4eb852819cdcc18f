"""The subcommand `dpviz mechanisms`: all mechanisms with what they do, or one with its settings."""

from __future__ import annotations

import json
from argparse import Namespace
from itertools import groupby
from typing import Any

from dpviz.cli.console import give
from dpviz.errors import SettingError, did_you_mean
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import AnyMechanism, SettingSpec

Facts = dict[str, Any]


def run_mechanisms(arguments: Namespace) -> None:
    """Print every mechanism by the data that it takes; or one with its settings, as a configuration writes them."""
    by_family = {name: dict(family.mechanisms) for name, family in FAMILIES.items()}
    if arguments.key is None:
        facts: Any = {name: [_facts(mechanism) for mechanism in found.values()] for name, found in by_family.items()}
        give(facts, _list_lines(by_family), as_json=arguments.json)
        return
    found = {key: mechanism for mechanisms in by_family.values() for key, mechanism in mechanisms.items()}
    if arguments.key not in found:
        raise SettingError(f"There is no such mechanism; there are {', '.join(found)}.{did_you_mean(arguments.key, found)}")
    mechanism = found[arguments.key]
    give({**_facts(mechanism), "settings": [_setting_facts(rule) for rule in mechanism.rules()]}, _lines(mechanism), as_json=arguments.json)


def _facts(mechanism: type[AnyMechanism]) -> Facts:
    return {
        "key": mechanism.key,
        "title": mechanism.title,
        "data": mechanism.family,
        "summary": mechanism.summary,
        "advice": mechanism.advice,
    }


def _list_lines(by_family: dict[str, dict[str, type[AnyMechanism]]]) -> list[str]:
    width = max(len(key) for mechanisms in by_family.values() for key in mechanisms)
    lines = []
    for name, mechanisms in by_family.items():
        for group, members in groupby(mechanisms.items(), key=lambda entry: entry[1].menu_group):
            lines.append(f"{name}, {group.lower()}:" if group else f"{name}:")
            lines += [f"  {key:<{width}}  {mechanism.summary}" for key, mechanism in members]
    return [*lines, "dpviz mechanisms KEY lists the settings of one."]


def _setting_facts(rule: SettingSpec) -> Facts:
    return {
        "name": rule.name,
        "default": rule.default,
        "low": rule.low,
        "high": rule.high,
        "choices": list(rule.choices) or None,
        "when": rule.when,
        "help": rule.help,
    }


def _lines(mechanism: type[AnyMechanism]) -> list[str]:
    heads = [f"{mechanism.title} ({mechanism.key}, for {mechanism.family}): {mechanism.summary}", *filter(None, [mechanism.advice])]
    return [*heads, "Settings, under [mechanism] settings:", *(_setting_line(rule) for rule in mechanism.rules())]


def _setting_line(rule: SettingSpec) -> str:
    """Write one setting with its default, its range or choices, and the setting that it depends on, as TOML writes values."""
    default = "not set" if rule.default is None else json.dumps(rule.default)
    ends = " ".join(f"{word} {end:g}" for word, end in (("from", rule.low), ("to", rule.high)) if end is not None)
    values = " or ".join(map(json.dumps, rule.choices)) if rule.choices else ends
    when = "" if rule.when is None else f"matters with {rule.when[0]} = {json.dumps(rule.when[1])}"
    conditions = "; ".join(filter(None, [values, when]))
    return f"  {rule.name} = {default}{conditions and f' ({conditions})'}: {rule.help}"
