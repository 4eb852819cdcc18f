"""What is asked for, what was paid for, what is said about it, and what is on the disk then."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpviz.data.flows import Flows
from dpviz.errors import SettingError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import Account
from dpviz.privacy.budget import Budget
from dpviz.publishing.private_data import PrivateData
from dpviz.release.files import partial_beside
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import Publication
from dpviz.release.point_release import Release
from dpviz.release.tables import FORMATS


@dataclass(frozen=True, kw_only=True)
class Order:
    """One draw that is asked for: all but the records themselves is public.

    Attributes:
        data: the private counts.
        mechanism: built.
        budget: what it is handed.
        dataset: what the curator calls the data.
        marks: what the ledger recognises them by; see `marks_of`.
        cap: the most that the dataset may ever lose; None if the ledger has to know it already.
        person: where persons are protected, the column whose values are persons; "" where no column says it.
    """

    data: PrivateData
    mechanism: AnyMechanism
    budget: Budget
    dataset: str
    marks: tuple[str, ...]
    cap: Budget | None = None
    person: str = ""

    def __repr__(self) -> str:
        return f"Order({self.mechanism.key}, {self.budget}, {self.data!r})"


def unit_definition(order: Order) -> str:
    """What one unit of an order is, for manifest and report; "" where the unit's name says it all.

    Records and trips are the rows, or what the column of counts says. Persons are what the order's column holds.
    """
    data = order.data
    if data.unit != "person":
        return ""
    each = "trip" if isinstance(data, Flows) else "record"
    most = f"{data.contributions:,} {each}{'' if data.contributions == 1 else 's'}"
    if order.person:
        return f"a person is one value of the column {order.person!r}, of whom at most {most} were counted"
    if isinstance(data, Flows) and not data.enforced:
        return f"no column says who a person is; the curator vouches that nobody has more than {most}"
    return f"a person is what the curator counted as one, of whom at most {most} were counted"


@dataclass(frozen=True, kw_only=True)
class Paid:
    """A draw that the ledger counted before it was made.

    Attributes:
        release: what was drawn.
        account: the dataset's account with this draw, as it was when the draw was asked for.
        entry: the draw's number in the ledger.
        kept: the folder beside the ledger where it is kept until it is published; None if it is in memory only.
    """

    release: Release | FlowRelease
    account: Account
    entry: int
    kept: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Published:
    """What is on the disk now.

    Attributes:
        folder: with data, manifest and report.
        manifest: what the manifest says.
        account: the dataset's account.
    """

    folder: Path
    manifest: dict[str, Any]
    account: Account


@dataclass(frozen=True, kw_only=True)
class Words:
    """What only the curator can say, and where it goes.

    Attributes:
        name: of the publication.
        curator: who answers for it.
        folder: made by the release; must not exist, the folder around it must.
        description: what was counted, when and how.
        region: where.
        intended_use: what it is good for.
        formats: some of geoparquet, geojson and csv.
    """

    name: str
    curator: str
    folder: Path
    description: str = ""
    region: str = ""
    intended_use: str = ""
    formats: Sequence[str] = FORMATS

    def check(self) -> None:
        """Raise what would keep the release from being written, before it is paid for.

        Raises:
            SettingError: blank or unprintable texts, unknown formats, a folder that exists or that has none around it.
        """
        self.publication(draws=1, truth_seen=False)
        if "geoparquet" not in self.formats or not set(self.formats) <= set(FORMATS):
            raise SettingError(f"The formats must be some of {', '.join(FORMATS)}, geoparquet among them: only it reads back without loss.")
        if os.path.lexists(self.folder):
            raise SettingError("The folder for the release exists already; releases are never overwritten. Choose another one.")
        if not os.path.isdir(self.folder.parent):  # noqa: PTH112  (says no where a path may not be looked at; Path.is_dir raises)
            raise SettingError("The folder around the release's folder does not exist; make it first.")
        if not os.access(self.folder.parent, os.W_OK | os.X_OK):
            raise SettingError("The folder around the release's folder cannot be written: choose another one.")
        _try_folder(self.folder)

    def publication(self, **known: Any) -> Publication:
        """The curator's part of the manifest, with what the ledger knows."""
        return Publication(
            name=self.name,
            curator=self.curator,
            description=self.description,
            region=self.region,
            intended_use=self.intended_use,
            **known,
        )


def _try_folder(folder: Path) -> None:
    """Make and remove the folder that a release is written into before it gets its name.

    Raises:
        SettingError: the disk does not take it: its name is too long, or cannot be written there.
    """
    trial, reason = partial_beside(folder), None
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
    except ValueError:  # a null character, or half of one
        reason = "not a name"
    if reason is not None:
        raise SettingError(f"The release's folder cannot be made ({reason}): choose another name or place.")
