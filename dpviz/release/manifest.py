"""What a stranger must know to judge a release, and the schema that says what each word means."""

from __future__ import annotations

import json
import platform
import re
import uuid
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dpviz.errors import SettingError
from dpviz.release.accounting import accounting_facts, ledger_facts, privacy_facts
from dpviz.release.contents import contents_facts
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release
from dpviz.release.publication import Publication
from dpviz.release.utility import utility_facts
from dpviz.release.verdict import verdict_facts

Facts = dict[str, Any]

SCHEMA_VERSION = "2.0"
SCHEMA_FILE = Path(__file__).with_name("manifest.schema.json")
SCHEMA_FILES = {"1.0": Path(__file__).with_name("manifest_1_0.schema.json"), SCHEMA_VERSION: SCHEMA_FILE}
"""By version, oldest first: what was written by an earlier one is judged by its own schema."""
_LIBRARIES = ("dpviz", "numpy", "scipy", "pandas", "geopandas", "shapely", "pyproj", "pyarrow")
_RELEASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LIMITS = (
    "Protected is what the unit and the neighbouring relation say, no more: what is listed as unprotected is taken as public.",
    "What others publish about the same people adds up with this release; no ledger knows of it.",
    "How long the computation took is not hidden: timing is not hardened.",
    "Whether the records are true, and whether the unit is the right one for them, was not checked.",
)

_NOBODY = Publication(name="-", curator="-", description="", region="", intended_use="", draws=1, truth_seen=False)


def describe(
    release: Release | FlowRelease, publication: Publication, *, created: datetime | None = None, release_id: str | None = None
) -> Facts:
    """The manifest of a release, all but its list of files, which `write_release` adds.

    Args:
        release: of points or trips, drawn with entropy of the operating system.
        publication: what only the curator can say.
        created: when it was made, with a time zone; now if None.
        release_id: 1 to 64 letters, digits, dots, underscores and hyphens; a random one if None.

    Returns:
        A dictionary that is valid by `manifest_schema` once files are added. It holds no seed, no true count, no number of rows,
        and nothing about the input file.

    Raises:
        RefusedError: a simulation, or a reference that is not private.
        SettingError: a time without zone, a malformed id, or a setting of the mechanism that cannot be written down.
    """
    release.refuse_unpublishable()
    return _described(release, publication, created, release_id)


def check_describable(release: Release | FlowRelease, publication: Publication | None = None) -> Facts:
    """Raise what would keep releases like this one from being described; simulations may be tried.

    Args:
        release: of points or trips, also a simulation.
        publication: what the curator says, if that is to be tried, too.

    Returns:
        A manifest to rehearse a report with. It is that of no release, and none can be written with it.

    Raises:
        SettingError: a setting, a name or a number of the frame or the receipt that cannot be written down.
    """
    described = _described(release, publication or _NOBODY, None, None)
    whole = described | {"files": [], "left_out": [], "seal": "0" * 64}
    spelt(whole)
    broken = breach(whole)
    if broken is not None:
        raise SettingError(f"What the mechanism says of its release cannot be written down: it breaks the schema at {broken}.")
    return described


def spelt(manifest: Facts) -> bytes:
    """A manifest as it is written.

    Raises:
        SettingError: a text that no file can hold, or a number that is not finite.
    """
    try:
        return (json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        reason = "A text of the manifest holds half a character (a lone surrogate), which no file can hold; correct it."
    except (TypeError, ValueError):
        reason = "The manifest holds a number that is not finite, or something that JSON has no word for."
    raise SettingError(reason)


def _described(release: Release | FlowRelease, publication: Publication, created: datetime | None, release_id: str | None) -> Facts:
    return {
        "identity": _identity(release, created, release_id),
        "data_product": {name: getattr(publication, name) for name in ("name", "curator", "description", "region", "intended_use")},
        **facts_of(release),
        "implementation": _implementation(publication),
        "dataset": {
            "draws": publication.draws,
            "spent": ledger_facts(publication.dataset_spent),
            "cap": ledger_facts(publication.dataset_cap),
        },
        "utility": utility_facts(release),
        "verdict": verdict_facts(release),
        "limits": list(_LIMITS),
    }


def facts_of(release: Release | FlowRelease) -> Facts:
    """The parts of a manifest that follow from the release alone: privacy, accounting, post-processing and contents."""
    return {
        "privacy": privacy_facts(release.receipt),
        "accounting": accounting_facts(release.receipt),
        "post_processing": list(release.steps),
        "contents": contents_facts(release),
    }


@cache
def _schema_text(version: str) -> str:
    return SCHEMA_FILES[version].read_text("utf-8")


def manifest_schema(version: str = SCHEMA_VERSION) -> Facts:
    """The JSON Schema (2020-12) of a manifest; its descriptions are the documentation of every field.

    Args:
        version: "2.0" for what is written today, "1.0" for what was written before.
    """
    if version not in SCHEMA_FILES:
        raise SettingError(f"There are schemas of versions {', '.join(SCHEMA_FILES)}.")
    schema: Facts = json.loads(_schema_text(version))
    return schema


def breach(manifest: object, version: str = SCHEMA_VERSION) -> str | None:
    """Where a manifest breaks the schema of a version, as a path of names; None if it is valid. Quotes none of its values."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (slow to import, and rarely needed)

    found = next(Draft202012Validator(manifest_schema(version)).iter_errors(manifest), None)
    return None if found is None else "/".join(["manifest", *(str(part) for part in found.absolute_path)])


def _identity(release: Release | FlowRelease, created: datetime | None, release_id: str | None) -> Facts:
    moment = datetime.now(UTC) if created is None else created
    known = str(uuid.uuid4()) if release_id is None else release_id
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise SettingError("The time of a release needs a time zone, such as datetime.now(UTC).")
    if not isinstance(known, str) or not _RELEASE_ID.fullmatch(known):
        raise SettingError("A release's id is 1 to 64 letters, digits, dots, underscores and hyphens.")
    return {
        "schema_version": SCHEMA_VERSION,
        "release_id": known,
        "created": moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "mode": "private release",
        "kind": "points" if isinstance(release, Release) else "trips",
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _implementation(publication: Publication) -> Facts:
    return {
        "sampler": "exact integer inversion: discrete laws on whole numbers, refined until each draw is certain",
        "entropy": "operating system",
        "arithmetic": "budgets and scales are exact fractions, noise is drawn and added on whole numbers; scores that only choose a"
        " structure may be floating-point numbers whose rounding is paid for; estimates after the noise are 64-bit floating-point",
        "timing_hardened": False,
        "tuning": {"truth_seen": publication.truth_seen},
    }
