"""Lesson: rounded tables of the same people, put together by integer programming, leave a single possibility for most counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpviz.arrays import Integers
from dpviz.evaluation.attacks.differencing import count_by, membership
from dpviz.evaluation.attacks.game import Success, count_wins
from dpviz.evaluation.attacks.rounding import bound_counts, can_exceed, rounded_range
from dpviz.lessons.blocks import BLOCKS, FILLS, NOISY, SHOWN, block_counts, chosen_tables, count_map, release_tables, write_count
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.success import RUNS, SEEDS, compare_tables, play_noisy, success_chart
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.contrasts import NEAREST, ROUNDINGS, round_counts
from dpviz.privacy.entropy import Entropy

_SEVERAL, _CERTAIN = "several fit", "known for certain"
_FILLS = dict(zip((SHOWN, _SEVERAL, _CERTAIN), FILLS.values(), strict=True)) | {NOISY: FILLS[SHOWN]}


@dataclass(frozen=True, kw_only=True)
class Reconstruction(Lesson):
    """Rounded tables, the counts that still fit all of them, and private releases of the same tables."""

    key: ClassVar[str] = "reconstruction"
    title: ClassVar[str] = "Rounded tables"
    text: ClassVar[str] = (
        "An office rounds every number to a multiple of 3 or 5, and counts the same town by blocks, districts, school areas and so on: each"
        " number says in which range a sum lies, and a computer finds the least and the largest count that fit all of them together."
        " Private tables have no ranges, since every noise is possible, and a budget that all tables share bounds what they say together."
    )
    task: ClassVar[str] = "publish one table more at a time, and see from which on the first count is known for certain."
    question: ClassVar[str] = (
        "Every number is rounded to the nearest multiple of 3, so that it may be off by one. Three tables of the town are out (blocks,"
        " rows, columns), and no count is known for certain. Nine more are published: of how many of the 36 blocks is the exact count"
        " known then?"
    )
    choices: ClassVar[tuple[str, ...]] = ("of more than half", "of about ten", "of none: all are rounded")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "Of 20, with certainty: 12 tables leave a single whole number for these. Base 5 gives 12 away with as many tables, and rounding at"
        " random leaves so many possibilities that none is certain."
    )
    in_class: ClassVar[str] = (
        "Say that every table by itself is harmless: plus or minus one. Begin with one table and add one at a time; let them guess when the"
        ' first orange number appears. Expect the belief that rounding *is* noise: ask what differs, and lead to "nobody knows how'
        ' large the noise was", while a rounded number excludes most counts. The law behind it is that of Dinur and Nissim: too many'
        " answers that are too exact give the data away, whatever the method."
    )

    tables: int = setting(
        3, "Tables published", low=1, high=16, help="Blocks; districts; school areas; squares; pairs; diagonals, and so on."
    )
    base: int = setting(3, "Round to multiples of", choices=(3, 5), help="3 and 5 are what statistical offices use.")
    rounding: str = setting(NEAREST, "Rounding", choices=ROUNDINGS[::-1], help="To the nearest multiple, or up or down at random.")
    epsilon: float = epsilon_setting(1.0, "Of all private tables together: each table spends an equal part.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        tables, counts, entropy = chosen_tables(self.tables), block_counts(self.draw), Entropy.seeded(self.draw)
        published = round_tables(counts, tables, self.base, self.rounding, entropy)
        least, most = bound_counts(tables, [rounded_range(rounded, self.base, self.rounding) for rounded in published])
        estimate = estimate_blocks(counts, tables, self.epsilon, entropy)
        ranges = [f"{low}" if low == high else f"{low}–{high}" for low, high in zip(least.tolist(), most.tolist(), strict=True)]
        pinned = least == most
        played = play_rounded(self.tables, self.base, self.rounding), play_private(self.tables, self.epsilon)
        game, games_won = compare_tables("rounded", f"rounded to {self.base} (NOT PRIVATE)", played, self.epsilon)
        certain = f"{pinned.sum()} of {BLOCKS} counts are known for certain."
        right = int((estimate == counts).sum())
        rounded = (
            _map(published[0], np.full(BLOCKS, SHOWN), f"Published: rounded to {self.base}", "Every count is rounded."),
            _map(ranges, np.where(pinned, _CERTAIN, _SEVERAL), "What fits all tables", certain),
        )
        title, lucky = f"Private, ε = {self.epsilon:g}: best estimate", f"{right} of {BLOCKS} agree with the truth, by luck."
        estimated = _map(estimate, np.full(BLOCKS, NOISY), title, lucky)
        return LessonFigure(
            asked=(rounded,),
            rows=(rounded, (estimated, success_chart(game))),
            figures=(
                Figure("Known for certain", f"{pinned.sum()} of {BLOCKS}", "A single whole number fits all rounded tables."),
                Figure("Possible counts", f"{(most - least + 1).mean():.3g}", "On average over the blocks, from the rounded."),
                *games_won,
            ),
            note="The game: a person is in a block or not, by a coin. Against rounded tables the attacker knows how many others are in that"
            " block; against private ones, where *everybody* else is. The estimate fits all private tables at once by least squares;"
            f" {right} of its {BLOCKS} counts agree with the truth, but nobody can tell which.",
        )


def _map(counts: Integers | list[str], kind: object, title: str, description: str) -> object:
    texts = [count if isinstance(count, str) else write_count(count) for count in counts]
    return count_map({"text": texts, "kind": kind}, _FILLS, title, description)


def round_tables(counts: Integers, tables: list[Integers], base: int, rounding: str, entropy: Entropy) -> list[Integers]:
    """Count the town by each table, and round every count by itself. NOT PRIVATE."""
    return [round_counts(count_by(table, counts), base, rounding, entropy) for table in tables]


def estimate_blocks(counts: Integers, tables: list[Integers], epsilon: float, entropy: Entropy) -> Integers:
    """Release all tables with discrete Laplace noise that spends epsilon together, and estimate the blocks by least squares."""
    noisy = np.concatenate(release_tables(counts, tables, epsilon, entropy))
    return np.round(np.linalg.lstsq(membership(tables), noisy.astype(np.float64), rcond=None)[0]).astype(np.int64)


def choose_person(seed: int) -> tuple[Integers, int, bool]:
    """Return the counts of others in a town, the block of a person, and whether the person is counted, by a coin."""
    rng = np.random.default_rng((7, seed))
    return block_counts(seed), int(rng.integers(BLOCKS)), bool(rng.integers(2))


@lru_cache(maxsize=64)
def play_rounded(number: int, base: int, rounding: str) -> Success:
    """Play the game on rounded tables, in `SEEDS` towns."""
    said, truth, tables = np.empty(SEEDS, np.bool_), np.empty(SEEDS, np.bool_), chosen_tables(number)
    for seed in range(SEEDS):
        others, block, truth[seed] = choose_person(seed + 1)
        counts = others + truth[seed] * (np.arange(BLOCKS) == block)
        published = round_tables(counts, tables, base, rounding, Entropy.seeded(seed + 1))
        ranges = [rounded_range(rounded, base, rounding) for rounded in published]
        said[seed] = can_exceed(tables, ranges, block, int(others[block]))
    return count_wins(said, truth)


@lru_cache(maxsize=64)
def play_private(number: int, epsilon: float, runs: int = RUNS) -> Success:
    """Play the game on private releases of the same tables of the same people, `runs` times in each of `SEEDS` towns."""
    people = [choose_person(seed + 1)[:2] for seed in range(SEEDS)]
    others = np.array([[count_by(table, counts)[table[block]] for table in chosen_tables(number)] for counts, block in people])
    return play_noisy(np.repeat(others, runs, axis=0), epsilon, 9)
