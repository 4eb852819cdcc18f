"""What could fail once a draw is paid for, tried before: describing and reporting a release like the one that is wanted."""

from __future__ import annotations

from dataclasses import replace

from dpviz.errors import DpvizError
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.order import Order, Words
from dpviz.publishing.private_data import emptied, made_up
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import check_describable
from dpviz.release.point_release import Release

SEED = 1


def rehearse(order: Order, words: Words, *, unit_definition: str = "") -> None:
    """Draw, describe and report what is wanted from no records and from made-up ones; nothing is spent, written or handed out.

    So whatever is public and breaks the report (a name of the frame, a setting, a word of the curator) breaks it before the draw is paid
    for. No record of the data is looked at.

    Args:
        order: what would be drawn.
        words: what would be said about it.
        unit_definition: as the release would say it.

    Raises:
        DpvizError: such a release could not be described or reported.
    """
    from dpviz.view.report import check_reportable  # noqa: PLC0415  (its templates load slowly, and a draw alone needs none)

    publication, failed = words.publication(draws=1, truth_seen=False), ""
    for data in (emptied(order.data), made_up(order.data)):
        release = defined(order.mechanism.release(data, order.budget, Entropy.seeded(SEED)), unit_definition)
        manifest = check_describable(release, publication)
        try:
            check_reportable(release, manifest, formats=words.formats)
        except DpvizError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever the template or a picture raises)
            failed = type(error).__name__
            break
    if failed:
        raise DpvizError(f"The report of such a release cannot be made ({failed}): nothing was drawn or spent.")


def defined(release: Release | FlowRelease, unit_definition: str) -> Release | FlowRelease:
    """A release whose receipt says what one unit is."""
    return replace(release, receipt=replace(release.receipt, unit_definition=unit_definition)) if unit_definition else release
