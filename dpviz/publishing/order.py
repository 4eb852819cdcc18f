"""The values that publication passes on: the order, the paid release, the curator's texts, and what was published."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dpviz.errors import SettingError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import Account, Terms
from dpviz.privacy.budget import Budget
from dpviz.privacy.series import Series
from dpviz.privacy.series_words import say_series
from dpviz.publishing.private_data import PrivateData
from dpviz.release.base import NoisyRelease
from dpviz.release.facts import TruthSeen
from dpviz.release.files import choose_partial_path
from dpviz.release.publication import NOT_RECORDED, CuratorTexts, Publication
from dpviz.release.tables import FORMATS, USUAL_FORMATS


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order for one release. Everything in it is public, except for the records.

    Attributes:
        data: the private counts.
        mechanism: the mechanism with its settings.
        budget: for the release.
        dataset: the curator's name of the data.
        fingerprints: fingerprints by which the ledger recognises the data; see `fingerprints_of`.
        cap: the most that may ever be spent on the data; None if the ledger already has an account for the data.
        person: if persons are protected, the column whose values are persons; "" if there is no such column.
        may_be_empty: whether data without any record are released; otherwise they are refused as a probable mistake.
        looks_recorded: whether looks at the truth were recorded where this was ordered: by app and command line, not in Python.
        series: releases for one period after another, to which this one belongs; None for no series.
        period: the name of its period; None for no series.
    """

    data: PrivateData
    mechanism: AnyMechanism
    budget: Budget
    dataset: str
    fingerprints: tuple[str, ...]
    cap: Budget | None = None
    person: str = ""
    may_be_empty: bool = False
    looks_recorded: bool = True
    series: Series | None = None
    period: str | None = None

    def __repr__(self) -> str:
        return f"Order({self.mechanism.key}, {self.budget}, {self.data!r})"


def unit_definition(order: Order, terms: Terms | None = None) -> str:
    """Define what one person is, which columns were not read, and what a series protects, for manifest and report; "" for nothing."""
    each_row = order.data.each_row
    rows = "" if each_row is None else each_row.to_publish
    definition = "; ".join(filter(None, (_person_definition(order), rows)))
    series = "" if terms is None else " ".join(say_series(terms)).removesuffix(".")
    return ". ".join(filter(None, (definition, series)))


def _person_definition(order: Order) -> str:
    data = order.data
    if data.unit != "person":
        return ""
    most = f"{data.contributions:,} {data.noun}{'' if data.contributions == 1 else 's'}"
    per_slot = getattr(data, "per_slot", None)  # counts of a family without slots have none
    most += "" if per_slot is None else f" in all, and {per_slot:,} in each slot,"
    if order.person:
        return f"a person is one value of the column {order.person!r}, of whom at most {most} were counted"
    if not data.is_enforced:
        return f"no column says who a person is; the curator vouches that nobody has more than {most}"
    return f"a person is what the curator counted as one, of whom at most {most} were counted"


@dataclass(frozen=True, kw_only=True)
class PaidRelease:
    """A release that is paid for.

    Attributes:
        release: the release, of points or trips.
        account: account of the dataset, after the payment.
        entry: number of the payment in the ledger.
        kept: folder beside the ledger where the release is kept until it is published; None if it is in memory only.
        looks_recorded: as in its order.
        period: as in its order.
    """

    release: NoisyRelease
    account: Account
    entry: int
    kept: Path | None = None
    looks_recorded: bool = True
    period: str | None = None


def state_looks(account: Account, *, looks_recorded: bool) -> TruthSeen:
    """Say for a manifest whether the truth was looked at: only where looks are recorded does a ledger without one say that nobody did."""
    return account.truth_seen or (False if looks_recorded else NOT_RECORDED)


@dataclass(frozen=True, kw_only=True)
class Published:
    """A release that is published.

    Attributes:
        folder: the folder with data, manifest and report.
        manifest: content of the manifest.
        account: account of the dataset.
        ledger: file of the ledger that paid.
        period: of a series, the name of its period; None for no series.
    """

    folder: Path
    manifest: dict[str, Any]
    account: Account
    ledger: Path
    period: str | None = None


@dataclass(frozen=True, kw_only=True)
class PublicationTexts(CuratorTexts):
    """The curator's texts for a publication, and its folder.

    Attributes:
        folder: for the files; it must not exist yet, its parent must.
        formats: of the files: geoparquet, and perhaps geojson, csv and geopackage.
    """

    folder: Path
    description: str = ""
    region: str = ""
    intended_use: str = ""
    formats: Sequence[str] = USUAL_FORMATS

    def check(self) -> None:
        """Check before payment that the release could be written.

        Raises:
            SettingError: blank or unprintable texts, unknown formats, a folder that exists, or one that cannot be made.
        """
        self.publication(draws=1, truth_seen=False)
        if "geoparquet" not in self.formats or not set(self.formats) <= set(FORMATS):
            raise SettingError(f"The formats must be some of {', '.join(FORMATS)}, geoparquet among them: only it reads back without loss.")
        if os.path.lexists(self.folder):
            raise SettingError("The folder for the release exists already; releases are never overwritten. Choose another one.")
        if not os.path.isdir(self.folder.parent):  # noqa: PTH112  (gives False without permission, where Path.is_dir raises)
            raise SettingError("The folder around the release's folder does not exist; make it first.")
        if not os.access(self.folder.parent, os.W_OK | os.X_OK):
            raise SettingError("The folder around the release's folder cannot be written: choose another one.")
        _try_folder(self.folder)

    def publication(self, **ledger_fields: Any) -> Publication:
        """Make the publication part of the manifest; `ledger_fields` are the fields that come from the ledger."""
        return Publication(**{name: getattr(self, name) for name in TEXT_NAMES}, **ledger_fields)


TEXT_NAMES = tuple(item.name for item in fields(CuratorTexts))
"""Names of the texts of a publication: in a configuration under [publication], in `dv.publish`, in the manifest under data_product."""


def _try_folder(folder: Path) -> None:
    """Make the temporary folder that a release is first written into, as a trial, and remove it again.

    Raises:
        SettingError: the folder cannot be made, for example because its name is too long.
    """
    trial, reason = choose_partial_path(folder), None
    try:
        trial.mkdir()
        with suppress(FileNotFoundError):  # another process that writes there may have taken it for remains
            trial.rmdir()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
    except ValueError:  # a null character or a lone surrogate in the name
        reason = "not a name"
    if reason is not None:
        raise SettingError(f"The release's folder cannot be made ({reason}): choose another name or parent folder.")
