"""Rehearse a publication before payment: release, manifest and report, made from no records and from made-up ones."""

from __future__ import annotations

from dataclasses import replace

from dpviz.errors import DpvizError
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.order import Order, PublicationTexts
from dpviz.release.base import NoisyRelease
from dpviz.release.facts import SeriesPart
from dpviz.release.manifest import check_describable

SEED = 1


def rehearse(
    order: Order,
    words: PublicationTexts,
    empty_release: NoisyRelease,
    *,
    unit_definition: str = "",
    series: SeriesPart | None = None,
) -> None:
    """Make manifest and report of a release without records, and of one of made-up records; nothing is spent, written or returned.

    If public inputs (names of regions, settings, the curator's texts) make the report fail, the error is raised here, before payment. The
    private records are not used.

    Args:
        order: for the release.
        words: the curator's texts.
        empty_release: of the order's mechanism and budget, without any record.
        unit_definition: for the receipt; see `order.unit_definition`.
        series: the series to which the release belongs; None for no series.

    Raises:
        DpvizError: the manifest or the report cannot be made.
    """
    from dpviz.view.report import check_reportable  # noqa: PLC0415  (loading its templates is slow, and `draw` does not need them)

    publication, error_name = words.publication(draws=1, truth_seen=False, series=series), ""
    of_made_up_records = order.mechanism.release(order.data.made_up(), order.budget, Entropy.seeded(SEED))
    for made in (empty_release, of_made_up_records):
        release = add_unit_definition(made, unit_definition)
        manifest = check_describable(release, publication)
        try:
            check_reportable(release, manifest, formats=words.formats)
        except DpvizError:
            raise
        except Exception as error:  # noqa: BLE001  (any error of the template or a map)
            error_name = type(error).__name__
            break
    if error_name:
        raise DpvizError(f"The report of such a release cannot be made ({error_name}): nothing was released or spent.")


def add_unit_definition(release: NoisyRelease, unit_definition: str) -> NoisyRelease:
    """Add the definition of a unit to a release's receipt, if it is not empty."""
    return replace(release, receipt=replace(release.receipt, unit_definition=unit_definition)) if unit_definition else release
