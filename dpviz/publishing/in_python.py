"""Publish from Python: the steps of `dpviz release` in one call, with data and settings that are in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from dpviz.data.counting.file_fingerprints import file_fingerprints
from dpviz.errors import InputError, SettingError, did_you_mean
from dpviz.families import family_of_counts
from dpviz.mechanisms.base import AnyMechanism, Mechanism
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.series import Series
from dpviz.publishing import publish as steps
from dpviz.publishing.order import TEXT_NAMES, Order, PublicationTexts, Published
from dpviz.publishing.private_data import PrivateData, fingerprints_of
from dpviz.release.tables import USUAL_FORMATS


def publish(
    private: PrivateData,
    mechanism: AnyMechanism,
    budget: Budget,
    *,
    dataset: str,
    publication: Mapping[str, str],
    folder: Path | str,
    cap: Budget | None = None,
    person: str = "",
    files: Iterable[Path | str] = (),
    may_be_empty: bool = False,
    formats: Sequence[str] = USUAL_FORMATS,
    ledger: Ledger | None = None,
    series: Series | None = None,
    period: str | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Published:
    """Check, pay, release and write, all or nothing, as `dpviz release` does.

    Everything public is checked and the publication is rehearsed before the ledger counts the budget; the noise is drawn after that. From
    payment until the files are written the release is kept beside the ledger, and `dpviz release CONFIG --paid` publishes it after a crash.

    Args:
        private: counted points, trips or areas.
        mechanism: the mechanism with its settings.
        budget: for this release.
        dataset: your name of the data; keep one name, since the ledger knows data by it.
        publication: the texts that readers see: name and curator, and perhaps others of `PublicationTexts`, such as description, licence,
            contact and url.
        folder: for the files; it must not exist yet, its parent must.
        cap: the most that may ever be spent on these data; needed for data that are new to the ledger.
        person: the column whose values were persons, where persons are protected.
        files: files that you read yourself, by whose content the ledger recognises the data, too; those of the readers it knows.
        may_be_empty: whether data without any record are published; otherwise they are refused as a probable mistake, since their
            coordinates are nearly always of another CRS, or swapped.
        formats: of the tables: geoparquet, and perhaps geojson, csv and geopackage.
        ledger: the ledger, as from `Ledger.new` or `Ledger`; None for this computer's own.
        series: releases for one period after another, each of which pays from its own share of the cap; None for no series. With a column
            of times, `private` must be counted with `during=series.period_of(period)`, and persons with `key=ledger.kept_key()`.
        period: of a series, the name of the period that is released, such as "2026-11".
        say: called with each line of progress, such as `print`.

    Returns:
        The folder, the manifest, the dataset's account after this release, and the path of the ledger.

    Raises:
        InputError: `private` is no counted data, or has no record.
        SettingError: a mechanism or text of the wrong kind, a mechanism for other data, or a folder that cannot be used.
        BudgetError: a budget that the mechanism does not take, or no cap for data that are new to the ledger.
        RefusedError: the cap would be exceeded, the ledger cannot be trusted, the mechanism is not private, or the data are marked: they
            were read with quoted_newlines, or sum a column of counts and nothing says what is protected.
        DpvizError: the release failed; the text says whether the budget is spent.

    >>> import tempfile
    >>> import dpviz as dv
    >>> homes = dv.load_sample("la_residents", size=1_000)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     ledger = dv.Ledger.new(f"{place}/ledger.sqlite")
    ...     published = dv.publish(
    ...         homes, dv.PathTree(), dv.PureBudget(1), dataset="homes", publication={"name": "Homes", "curator": "A town"},
    ...         folder=f"{place}/homes", cap=dv.PureBudget(3), ledger=ledger,
    ...     )
    ...     dv.read_release(published.folder).receipt.total, ledger.remaining("homes")
    (PureBudget(epsilon=Fraction(1, 1)), PureBudget(epsilon=Fraction(2, 1)))
    """
    _check(private, mechanism, budget)
    order = Order(
        data=private,
        mechanism=mechanism,
        budget=budget,
        dataset=dataset,
        fingerprints=fingerprints_of(private, files=file_fingerprints([Path(file) for file in files])),
        cap=cap,
        person=person,
        may_be_empty=may_be_empty,
        looks_recorded=False,
        series=series,
        period=period,
    )
    return steps.publish(order, _texts(publication, Path(folder), formats), Ledger() if ledger is None else ledger, say=say)


def _check(private: object, mechanism: object, budget: object) -> None:
    """Raise an error unless data, mechanism and budget are of the right kind; the text says what to give."""
    family = family_of_counts(private)
    if family is None:
        raise InputError(
            f"publish takes counted data first, as from read_points, read_trips or read_areas; not {type(private).__name__[:40]}."
        )
    if not isinstance(mechanism, Mechanism):
        name = mechanism.__name__ if isinstance(mechanism, type) else type(mechanism).__name__
        raise SettingError(f"Give a built mechanism, such as dpviz.{family.own[0].__name__}(), not {name[:40]}.")
    if mechanism.family != family.name:
        raise SettingError(f"{mechanism.title} is a mechanism for {mechanism.family}, and the data are {family.name}.")
    if not isinstance(budget, PureBudget | ApproxBudget | ZcdpBudget):
        raise SettingError(f"Give a budget, such as dpviz.PureBudget(0.5), not {type(budget).__name__[:40]}.")


def _texts(publication: object, folder: Path, formats: Sequence[str]) -> PublicationTexts:
    """Make the texts of a publication; raise `SettingError` for another kind of value, or unknown or missing names."""
    if not isinstance(publication, Mapping):
        raise SettingError('publication must be a dict of texts, such as {"name": "Homes", "curator": "A town"}.')
    unknown = [str(name)[:40] for name in publication if name not in TEXT_NAMES]
    if unknown:
        raise SettingError(
            f"publication has no text {unknown[0]!r}; there are {', '.join(TEXT_NAMES)}.{did_you_mean(unknown[0], TEXT_NAMES)}"
        )
    missing = [name for name in ("name", "curator") if name not in publication]
    if missing:
        raise SettingError(f"publication needs the text {missing[0]!r}: readers must know what this is and whom to ask.")
    return PublicationTexts(folder=folder, formats=formats, **publication)
