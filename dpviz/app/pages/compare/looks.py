"""Which look each configuration of the Compare page has: it stays when other configurations are added or removed.

A mechanism's place among all that are offered gives its hue. Its variants get shades and dashes in the order in which they first appeared;
this order is part of the page's configuration, so that a link shows the same looks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

import streamlit as st

from dpviz.app.jobs.study import StudyJob
from dpviz.app.pages.compare.state import COMPARE
from dpviz.evaluation.study import Study
from dpviz.families import Family
from dpviz.mechanisms.base import GAUSSIAN, AnyMechanism
from dpviz.view.looks import MOST_VARIANTS, Look, choose_looks

Variants = dict[str, tuple[str, ...]]


def keep_looks(study: Study) -> None:
    """Keep in the page's configuration in which order the variants of a study's mechanisms appeared."""
    kept = add_variants(COMPARE.config().looks, study.mechanisms.values(), [label in study.gaussian for label in study.mechanisms])
    if kept != COMPARE.config().looks:
        st.session_state[COMPARE.key] = replace(COMPARE.config(), looks=kept)


def looks_of(study_job: StudyJob) -> dict[str, Look]:
    """Return the look of each configuration of a study, by its name on screen."""
    study = study_job.of.study
    return looks_by_label(study.mechanisms, study_job.of.config[0].family, COMPARE.config().looks, study.gaussian)


def looks_by_label(
    mechanisms: Mapping[str, AnyMechanism], family: Family, kept: Mapping[str, tuple[str, ...]], gaussian: Collection[str] = ()
) -> dict[str, Look]:
    """Return the look of each mechanism, by its label.

    Args:
        mechanisms: mechanisms with their settings, by label.
        family: of the mechanisms.
        kept: the variants that have appeared so far, by key of the mechanism.
        gaussian: labels with Gaussian noise, where the kind of the budget decides.
    """
    known = add_variants(kept, mechanisms.values(), [label in gaussian for label in mechanisms])
    places = {key: place for place, key in enumerate(dict.fromkeys((*family.usual, *family.choices)))}
    numbers = {}
    for label, mechanism in mechanisms.items():
        name = variant_of(mechanism, gaussian=label in gaussian)
        numbers[label] = (places[mechanism.key], known[mechanism.key].index(name) + 1 if name else 0)
    return choose_looks(numbers)


def add_variants(kept: Mapping[str, tuple[str, ...]], mechanisms: Iterable[AnyMechanism], gaussian: Sequence[bool] = ()) -> Variants:
    """Add variants to those that have appeared so far. If there are too many, a new one takes the number of one that is not shown.

    Args:
        kept: the variants that have appeared so far, by key of the mechanism.
        mechanisms: the mechanisms that are shown.
        gaussian: for each of them, whether it has Gaussian noise where the kind of the budget decides; none of them if it is empty.
    """
    shown: dict[str, list[str]] = {}
    for mechanism, is_gaussian in zip(mechanisms, gaussian or repeat(False)):  # noqa: B905
        if name := variant_of(mechanism, gaussian=is_gaussian):
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


def variant_of(mechanism: AnyMechanism, *, gaussian: bool = False) -> str:
    """Return a short digest of the settings that differ from the defaults, and of Gaussian noise; "" if none does."""
    settings = mechanism.non_defaults() | ({"noise": GAUSSIAN} if gaussian else {})
    return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=4).hexdigest() if settings else ""
