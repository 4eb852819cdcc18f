"""Which look each configuration of the Compare page has: it stays when other configurations are added or removed.

A mechanism's place among all that are offered gives its hue. Its variants get shades and dashes in the order in which they first appeared;
this order is part of the page's configuration, so that a link shows the same looks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import streamlit as st

from dpviz.app.compare.state import COMPARE, FAMILY
from dpviz.app.jobs import StudyJob
from dpviz.mechanisms.base import AnyMechanism
from dpviz.view.looks import MOST_VARIANTS, Look, choose_looks

Variants = dict[str, tuple[str, ...]]


def keep_looks(mechanisms: Mapping[str, AnyMechanism]) -> None:
    """Keep in the page's configuration in which order the variants of these mechanisms appeared."""
    kept = add_variants(COMPARE.config().looks, mechanisms.values())
    if kept != COMPARE.config().looks:
        st.session_state[COMPARE.key] = replace(COMPARE.config(), looks=kept)


def looks_of(study_job: StudyJob) -> dict[str, Look]:
    """Return the look of each configuration of a study, by its name on screen."""
    return looks_by_label(study_job.study.mechanisms, study_job.config[0].kind, COMPARE.config().looks)


def looks_by_label(mechanisms: Mapping[str, AnyMechanism], kind: str, kept: Mapping[str, tuple[str, ...]]) -> dict[str, Look]:
    """Return the look of each mechanism, by its label.

    Args:
        mechanisms: mechanisms with their settings, by label.
        kind: "Points" or "Trips".
        kept: the variants that have appeared so far, by key of the mechanism.
    """
    family, known = FAMILY[kind], add_variants(kept, mechanisms.values())
    places = {key: place for place, key in enumerate(dict.fromkeys((*family.usual, *family.choices)))}
    numbers = {}
    for label, mechanism in mechanisms.items():
        name = variant_of(mechanism)
        numbers[label] = (places[mechanism.key], known[mechanism.key].index(name) + 1 if name else 0)
    return choose_looks(numbers)


def add_variants(kept: Mapping[str, tuple[str, ...]], mechanisms: Iterable[AnyMechanism]) -> Variants:
    """Add variants to those that have appeared so far. If there are too many, a new one takes the number of one that is not shown."""
    shown: dict[str, list[str]] = {}
    for mechanism in mechanisms:
        if name := variant_of(mechanism):
            shown.setdefault(mechanism.key, []).append(name)
    return {**kept, **{key: _add_names(kept.get(key, ()), names) for key, names in shown.items()}}


def _add_names(kept: tuple[str, ...], shown: list[str]) -> tuple[str, ...]:
    names = list(kept)
    for name in shown:
        if name in names:
            continue
        if len(names) < MOST_VARIANTS - 1:
            names.append(name)
        else:
            names[next(place for place, other in enumerate(names) if other not in shown)] = name
    return tuple(names)


def variant_of(mechanism: AnyMechanism) -> str:
    """Return a short digest of the settings that differ from the defaults; "" if none does."""
    settings = mechanism.non_defaults()
    return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=4).hexdigest() if settings else ""
