"""Paid releases on the disk: kept beside the ledger from payment until publication, so that a failure in between loses no release."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shapely
from pyproj import CRS

from dpviz.errors import DpvizError, SettingError
from dpviz.families import POINT_FAMILY
from dpviz.privacy.accounts import Account, Entry
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.order import PaidRelease, state_looks
from dpviz.publishing.private_data import PublicFrame, make_frame, open_sources
from dpviz.release.files import read_manifest, read_release, remove_remains, write_release
from dpviz.release.manifest import describe
from dpviz.release.publication import NOT_RECORDED, Publication
from dpviz.space.cross import Cross
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

if TYPE_CHECKING:
    from dpviz.publishing.config import ReleaseConfig

_NAME = re.compile("([1-9][0-9]{0,17})-[0-9]{14}")
_REMAINS = re.compile(r"\.([1-9][0-9]{0,17})-[0-9]{14}\.[0-9a-f]{16}\.(partial|published)")


def keep(paid: PaidRelease, entry: Entry, ledger: Ledger) -> Path:
    """Write a paid release into a new folder beside the ledger, which only its owner can read.

    The folder holds the noisy counts as GeoParquet, and a manifest without the curator's texts.

    Args:
        paid: the release, and the account that paid for it.
        entry: the payment.
        ledger: the new folder is made in the folder `<ledger file>.paid` beside its file.

    Raises:
        DpvizError: the entry has no valid time, or the release cannot be written; no part of the release is left behind.
        OSError: the folder `<ledger file>.paid` cannot be made, or permissions cannot be set.
    """
    folder = _payment_folder(ledger, entry)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.parent.chmod(0o700)
    publication = Publication(
        name=f"Draw {entry.id}, paid for and not yet published",
        curator="-",
        description="",
        region="",
        intended_use="",
        draws=paid.account.draws,
        truth_seen=state_looks(paid.account, looks_recorded=paid.looks_recorded),
        persons_searched=paid.account.persons_searched,
    )
    write_release(paid.release, folder, describe(paid.release, publication), formats=("geoparquet",))
    folder.chmod(0o700)
    for file in folder.iterdir():
        file.chmod(0o600)
    return folder


def kept_draws(ledger: Ledger) -> list[tuple[Account, Entry]]:
    """Find the payments whose releases are kept beside the ledger, oldest first, each with its account.

    Raises:
        RefusedError: the ledger cannot be read or trusted.
    """
    names = _list_kept_folder(ledger)
    payments = _find_payments(ledger, {int(match[1]) for name in names if (match := _NAME.fullmatch(name))})
    return [payment for payment in payments if _payment_folder(ledger, payment[1]).name in names]


def remove_interrupted(ledger: Ledger, datasets: Collection[str] | None = None) -> list[tuple[Account, Entry]]:
    """Remove what is left of releases whose process was killed while it kept them; what a live process writes stays.

    Such a release was paid for, and stays so; it is not complete, so that nothing of it can be recovered. What is left of releases that
    were removed after their publication goes, too.

    Args:
        ledger: the releases were to be kept beside its file.
        datasets: only of these accounts; None for all.

    Returns:
        The payments whose releases are lost, oldest first, each with its account.

    Raises:
        RefusedError: the ledger cannot be read or trusted.
    """
    remains = [match for name in _list_kept_folder(ledger) if (match := _REMAINS.fullmatch(name))]
    for match in remains:
        if match[2] == "published":
            shutil.rmtree(_kept_folder(ledger) / match[0], ignore_errors=True)
    payments = _find_payments(ledger, {int(match[1]) for match in remains if match[2] == "partial"})
    asked = [payment for payment in payments if datasets is None or payment[0].name in datasets]
    return [payment for payment in asked if remove_remains(_payment_folder(ledger, payment[1]))]


def describe_interrupted(account: Account, entry: Entry) -> str:
    """Say what became of a release that `remove_interrupted` found."""
    return (
        f"Draw {entry.id} of {account.name!r} was paid for and interrupted while it was kept: nothing can be recovered, and it stays"
        " counted; its remains were removed."
    )


def _list_kept_folder(ledger: Ledger) -> list[str]:
    try:
        return [path.name for path in _kept_folder(ledger).iterdir()]
    except OSError:  # the folder does not exist or cannot be read
        return []


def _find_payments(ledger: Ledger, numbers: Collection[int]) -> list[tuple[Account, Entry]]:
    """Find the payments with these numbers, oldest first, each with its account; numbers of another ledger are left out."""
    if not numbers:
        return []
    payments = [(account, entry) for account in ledger.accounts() for entry in ledger.entries(account.name)]
    return sorted((payment for payment in payments if payment[1].id in numbers), key=lambda payment: payment[1].id)


def recover(entry_id: int, ledger: Ledger) -> PaidRelease:
    """Read a kept release back, to be published without paying again.

    Args:
        entry_id: number of the payment in the ledger.
        ledger: the release is kept beside the ledger's file.

    Raises:
        SettingError: no release of that number is kept.
        InputError: the kept files were changed or damaged.
        RefusedError: the ledger cannot be read or trusted.
    """
    draws = kept_draws(ledger)
    kept = next((draw for draw in draws if draw[1].id == entry_id), None)
    if kept is None:
        numbers = ", ".join(str(entry.id) for _, entry in draws) or "none"
        raise SettingError(f"No release of draw {entry_id} is kept beside the ledger; releases are kept of draws: {numbers}.")
    account, entry = kept
    folder = _payment_folder(ledger, entry)
    looks_recorded = read_manifest(folder)["implementation"]["tuning"]["truth_seen"] != NOT_RECORDED
    return PaidRelease(
        release=read_release(folder), account=account, entry=entry.id, kept=folder, looks_recorded=looks_recorded, period=entry.period
    )


def differences(paid: PaidRelease, config: ReleaseConfig) -> list[str]:
    """List the parts of a configuration that do not agree with a kept release; no data are read.

    Returns:
        Names of the parts, such as "[budget]"; empty if the release was made with this configuration.

    Raises:
        DpvizError: the configuration's mechanism, domain or regions cannot be built.
    """
    release, data, terms = paid.release, config.data, paid.account.terms
    mechanism, frame = config.mechanism.build(config.family), make_frame(open_sources(config))
    person, contributions = (
        (data.person or "", data.contributions or 1) if data.sample is None else (terms.person or "", release.receipt.contributions)
    )
    parts = {
        "[dataset] name": (config.dataset.name, paid.account.name),
        "[dataset.series]": (config.dataset.series, terms.series),
        "--period": (config.period or paid.period, paid.period),
        "[mechanism] key": (mechanism.key, release.mechanism),
        "[mechanism] settings": (_settings_json(mechanism.chosen()), _settings_json(release.settings)),
        "[budget]": (config.budget.budget(), release.receipt.total),
        "[data] person": (person, terms.person or ""),
        "[data] contributions": (contributions, release.receipt.contributions),
        "[domain]" if config.family is POINT_FAMILY else "[regions]": (
            _frame_facts(frame),
            _frame_facts(release.frame) if frame is not None else None,
        ),
    }
    return [name for name, (wanted, kept) in parts.items() if wanted != kept]


def _settings_json(settings: dict[str, Any]) -> str:
    """Write settings as JSON: equal settings, of a configuration or of a manifest, give equal texts."""
    return json.dumps(settings, sort_keys=True, default=str)


def _frame_facts(frame: PublicFrame | None) -> object:
    """Return the facts that identify a frame: all of a domain, or the ids of all regions; of areas shapes and denominator, too."""
    if frame is None or isinstance(frame, Domain):
        return None if frame is None else (frame.bounds, CRS.from_user_input(frame.crs) if frame.crs else None, frame.order, frame.mask)
    if isinstance(frame, Cross):
        return _frame_facts(frame.regions), frame.categories
    if isinstance(frame, Regions):
        shapes = [None if level is None else (level.crs, shapely.to_wkb(level.to_numpy()).tolist()) for level in frame.geometry]
        numbers = None if frame.denominator is None else (frame.denominator.name, frame.denominator.tolist())
        return frame.levels, [[*ids] for ids in frame.ids], shapes, frame.grid, numbers
    return [[[*ids] for ids in side.ids] for side in frame]


def discard(folder: Path) -> None:
    """Remove a kept release after its publication. It is renamed first, so that it counts as removed even if deleting fails."""
    renamed = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.published")
    try:
        folder.rename(renamed)
    except OSError:
        return
    shutil.rmtree(renamed, ignore_errors=True)


def _kept_folder(ledger: Ledger) -> Path:
    return Path(f"{os.fspath(ledger.path)}.paid")


def _payment_folder(ledger: Ledger, entry: Entry) -> Path:
    """Return the folder of a payment; the time is part of its name, so that a new ledger with the same numbers uses other folders."""
    stamp = "".join(re.findall("[0-9]", entry.time))[:14]
    if not _NAME.fullmatch(name := f"{entry.id}-{stamp}"):
        raise DpvizError("The ledger's entry has no valid time, which the folder's name needs.")
    return _kept_folder(ledger) / name
