"""What a level of a release is worth to a person: how far off an average part is, and how many empty ones look inhabited. CURATOR ONLY."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.evaluation.metrics import Evaluation
from dpviz.evaluation.trip_metrics import TripEvaluation
from dpviz.release.verdict import MOST_EMPTY_ROUGH, MOST_EMPTY_USABLE, MOST_ROUGH, MOST_USABLE, NOISE, ROUGH, USABLE

MOST_PERCENT = 999  # a larger error says only that noise is all there is
LEAST_PERCENT = 0.01  # a smaller one says only that there is hardly any
_FEW_PARTS = 16  # so few may have small errors by luck: there the larger one of measured error and noise counts


@dataclass(frozen=True, kw_only=True)
class LevelWorth:
    """What a level of one run is worth, measured on counts that are known. CURATOR ONLY: must not be exported.

    Attributes:
        average: records in an average square or region, empty ones included; of trips, those of an average pair that has any.
        error: root mean square error divided by this average: 0.35 for 35 %. NaN where one of them is not known.
        base: what could look inhabited in vain: the empty squares or regions; of trips, the released pairs.
        wrong: how many of these do: they are released with 0.5 or more though nothing is there.
        there: the squares, regions or pairs in which something is.
        missed: how many of these look empty.
    """

    average: float
    error: float
    base: int
    wrong: int
    there: int
    missed: int

    @property
    def false_share(self) -> float:
        """The share `wrong` of `base`, 0 to 1; NaN if there is no base."""
        return self.wrong / self.base if self.base else math.nan

    @property
    def grade(self) -> str:
        """The grade by the limits of `dpviz.release.verdict`: of the error, and of the share of those that look inhabited but are empty.

        >>> LevelWorth(average=9.0, error=0.35, base=852, wrong=380, there=3244, missed=100).grade
        'usable'
        """
        look = self.wrong + self.there - self.missed
        false = self.wrong / look if look else 0.0
        if self.error <= MOST_USABLE and false <= MOST_EMPTY_USABLE:
            return USABLE
        return ROUGH if self.error <= MOST_ROUGH and false <= MOST_EMPTY_ROUGH else NOISE


def describe_error(subject: str, worth: LevelWorth) -> str:
    """Write how far off an average part of a level is; `subject` names it, such as "A 1.1 km square"."""
    return f"{subject} is off by {write_error(worth.error)}"


@dataclass(frozen=True, kw_only=True)
class WorthWords:
    """The words of the sentence on a level.

    Attributes:
        wrong: what is said of `LevelWorth.wrong` of `LevelWorth.base`.
        none: said where there is no base.
        missed: what is said of `LevelWorth.missed` of `LevelWorth.there`.
        short: what the base is, in a word.
    """

    wrong: str
    none: str
    missed: str
    short: str

    def describe(self, subject: str, worth: LevelWorth) -> str:
        """Write what a level is worth, in one sentence.

        Args:
            subject: an average part of it, such as "A 1.1 km square".
            worth: of the level.

        >>> worth = LevelWorth(average=9.0, error=0.351, base=852, wrong=380, there=3244, missed=100)
        >>> EMPTY.describe("A 1.1 km square", worth)
        'A 1.1 km square is off by 35 %; 380 of 852 empty ones look inhabited.'
        """
        false = f"{worth.wrong:,} of {worth.base:,} {self.wrong}" if worth.base else self.none
        return f"{describe_error(subject, worth)}; {false}."


EMPTY = WorthWords(wrong="empty ones look inhabited", none="none is empty", missed="inhabited ones look empty", short="empty")
PAIRS = WorthWords(wrong="released ones have no trips", none="none is released", missed="pairs with trips are not released", short="false")


def write_error(error: float) -> str:
    """Write an error as a share of an average count in percent.

    >>> write_error(0.351), write_error(25), write_error(1e-9), write_error(math.nan)
    ('35 %', 'more than 999 %', 'less than 0.01 %', 'an unknown share')
    """
    if not math.isfinite(error):
        return "an unknown share"
    if 0 < 100 * error < LEAST_PERCENT:
        return f"less than {LEAST_PERCENT} %"
    return f"more than {MOST_PERCENT} %" if 100 * error > MOST_PERCENT else f"{format_decimal(100 * error, 2)} %"


def weigh_squares(evaluation: Evaluation) -> list[LevelWorth]:
    """Return what the squares of each zoom level are worth, the whole domain first. CURATOR ONLY."""
    rows = evaluation.by_zoom.to_dict("records")
    return [_weigh(row, int(row["blocks"]), float(evaluation.truth[0])) for row in rows]


def weigh_regions(evaluation: AreaEvaluation) -> list[LevelWorth]:
    """Return what the regions of each level are worth, the whole first. CURATOR ONLY."""
    rows = evaluation.by_level.to_dict("records")
    return [_weigh(row, int(row["regions"]), float(evaluation.truth[0].sum())) for row in rows]


def _weigh(row: dict[Any, Any], parts: int, total: float) -> LevelWorth:
    measured, expected = float(row["rmse"]), float(row["expected"])
    error = float(np.fmax(measured, expected)) if parts <= _FEW_PARTS else measured
    return LevelWorth(
        average=total / parts,
        error=_divide(error, total / parts),
        base=int(row["empty"]),
        wrong=int(row["false_positives"]),
        there=parts - int(row["empty"]),
        missed=int(row["false_negatives"]),
    )


def weigh_pairs(evaluation: TripEvaluation) -> list[LevelWorth]:
    """Return what the pairs of each stage are worth, the whole first. CURATOR ONLY."""
    rows: Sequence[dict[Any, Any]] = evaluation.by_stage.to_dict("records")
    total = float(evaluation.trips.count.sum())
    return [
        LevelWorth(
            average=_divide(total, float(row["true_pairs"])),
            error=_divide(float(row["rms_error_present"]), _divide(total, float(row["true_pairs"]))),
            base=int(row["released_pairs"]),
            wrong=int(row["false_positives"]),
            there=int(row["true_pairs"]),
            missed=int(row["false_negatives"]),
        )
        for row in rows
    ]


def _divide(number: float, by: float) -> float:
    return number / by if by > 0 else math.nan
