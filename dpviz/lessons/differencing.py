"""Lesson: hidden small counts come back by subtracting tables of the same people; a private release of the same tables resists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.evaluation.attacks.differencing import count_by, guess_member, hide_small, recover_hidden, subtract_once
from dpviz.evaluation.attacks.game import Success, count_wins
from dpviz.lessons.blocks import (
    BLOCKS,
    FILLS,
    FOUND,
    HIDDEN,
    NOISY,
    SHOWN,
    block_counts,
    chosen_tables,
    count_map,
    release_tables,
    write_count,
)
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.success import RUNS, SEEDS, compare_tables, play_noisy, success_chart
from dpviz.mechanisms.base import setting
from dpviz.privacy.entropy import Entropy

PUBLISHED = ("blocks", "and districts", "and school areas", "and squares")
"""Names of the choices; each publishes the tables of those before it, too."""
ROUNDS = ("not yet", "one round", "two rounds", "all that follows")


@dataclass(frozen=True, kw_only=True)
class Differencing(Lesson):
    """Tables with hidden small counts, what their differences give away, and private releases of the same tables."""

    key: ClassVar[str] = "differencing"
    title: ClassVar[str] = "Hidden small counts"
    text: ClassVar[str] = (
        "An office hides every small count and publishes all others exactly, with totals of districts (rows) and of school areas (columns):"
        " a total minus the counts beside it is the hidden count, and one that is found helps to find the next. Noise from a budget that"
        " all tables share leaves nothing to subtract: however many tables there are, nobody wins more often than ε allows."
    )
    task: ClassVar[str] = "subtract round by round; then hide more with a larger threshold, and publish one more table."
    question: ClassVar[str] = (
        "The seven blocks with 1 to 4 people are hidden. The exact totals of the rows (right) and of the columns (below) are shown."
        " How many of the seven can a reader work out with a pencil?"
    )
    choices: ClassVar[tuple[str, ...]] = ("none: they are hidden", "three or four", "all seven")
    right: ClassVar[int] = 2
    answer: ClassVar[str] = (
        "A row with one hidden block gives it away at once, as its total minus the rest; that opens a column, and so on. It turns when more"
        " is hidden: with 8 as the smallest count shown, only 3 of 12 come back. Publish one more table, that of squares of four blocks,"
        " and 12 of 12 do."
    )
    in_class: ClassVar[str] = (
        "Let them solve one row by hand first: it takes ten seconds, and nobody forgets it. Expect the belief that hiding is safe because"
        " the number is *not there*; the exact sums around it say the same. Somebody will propose to hide totals, too: publish the squares"
        " as well, and ask who checks all tables of all offices together. Then let them try the same pencil on the private tables, and"
        " read the bound in the last chart aloud."
    )

    threshold: int = setting(5, "Smallest count shown", low=2, high=15, help="Counts from 1 to one less are hidden, in every table.")
    rounds: str = setting(ROUNDS[0], "Subtracted", choices=ROUNDS, help="A round solves every row and column with one hidden count left.")
    tables: str = setting(PUBLISHED[2], "Tables published", choices=PUBLISHED, help="Each choice adds one table to those before it.")
    epsilon: float = epsilon_setting(1.0, "Of all private tables together: each table spends an equal part.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        number, counts = PUBLISHED.index(self.tables) + 1, block_counts(self.draw)
        tables = chosen_tables(number)
        published = [hide_small(count_by(table, counts), self.threshold) for table in tables]
        recovered = subtract(tables, published, self.rounds)
        noisy = release_tables(counts, tables, self.epsilon, Entropy.seeded(self.draw))
        hidden, found, none = np.isnan(published[0]), np.isnan(published[0]) & ~np.isnan(recovered), np.zeros(BLOCKS, np.bool_)
        played = play_hidden(self.threshold, number), play_private(self.threshold, number, self.epsilon)
        game, games_won = compare_tables("hidden", "small counts hidden (NOT PRIVATE)", played, self.epsilon)
        today_map = _map([recovered, *published[1:]], hidden & ~found, found, "Today: small counts are hidden")
        private_tables = [table.astype(np.float64) for table in noisy]
        private_map = _map(private_tables, none, none, f"The same tables, private: ε = {self.epsilon:g}", NOISY)
        return LessonFigure(
            asked=((today_map,),),
            rows=((today_map, private_map), (success_chart(game, 260),)),
            figures=(
                Figure("Hidden counts", f"{hidden.sum()} of {BLOCKS}", "Blocks with 1 to threshold - 1 people."),
                Figure("Found so far", f"{found.sum()} of {hidden.sum()}", "Exactly, without a guess."),
                *games_won,
            ),
            note="The game: a person is in a block with a small count or not, by a coin. Against hidden counts the attacker sees the tables"
            " and knows how many others are in that block. Against the private tables the attacker knows *everybody* else, and makes the"
            " best test that there is.",
        )


def _map(tables: list[Floats], hidden: Mask, found: Mask, title: str, shown: str = SHOWN) -> object:
    description = f"{(~hidden).sum()} counts of blocks can be read, {found.sum()} of them found by subtracting, {hidden.sum()} are hidden."
    blocks = {"text": [write_count(count) for count in tables[0]], "kind": np.where(found, FOUND, np.where(hidden, HIDDEN, shown))}
    fills = dict(zip((shown, HIDDEN, FOUND), FILLS.values(), strict=True))
    return count_map(blocks, fills, title, description, totals=tables[1:3])


def subtract(tables: list[Integers], published: list[Floats], rounds: str) -> Floats:
    """Return (BLOCKS,) the counts known after some rounds of subtracting, one of `ROUNDS`."""
    if rounds == ROUNDS[-1]:
        return recover_hidden(tables, published)
    known = published[0]
    for _ in range(ROUNDS.index(rounds)):
        known = subtract_once(tables, published, known)
    return known


def choose_person(seed: int, threshold: int) -> tuple[Integers, int, bool]:
    """Return the counts of others in a town, the block of a person with few others, and whether the person is counted, by a coin."""
    others, rng = block_counts(seed), np.random.default_rng((4, seed))
    small = np.flatnonzero(others < max(threshold - 1, 1))
    return others, int(rng.choice(small if small.size else np.array([others.argmin()]))), bool(rng.integers(2))


@lru_cache(maxsize=64)
def play_hidden(threshold: int, number: int) -> Success:
    """Play the game on tables with hidden counts, in `SEEDS` towns."""
    recovered, known, truth = np.empty(SEEDS), np.empty(SEEDS, np.int64), np.empty(SEEDS, np.bool_)
    for seed in range(SEEDS):
        others, block, truth[seed] = choose_person(seed + 1, threshold)
        counts = others + truth[seed] * (np.arange(BLOCKS) == block)
        tables = chosen_tables(number)
        published = [hide_small(count_by(table, counts), threshold) for table in tables]
        recovered[seed], known[seed] = recover_hidden(tables, published)[block], others[block]
    return count_wins(guess_member(recovered, known), truth)


@lru_cache(maxsize=64)
def play_private(threshold: int, number: int, epsilon: float, runs: int = RUNS) -> Success:
    """Play the game on private releases of the same tables of the same people, `runs` times in each of `SEEDS` towns."""
    people = [choose_person(seed + 1, threshold)[:2] for seed in range(SEEDS)]
    others = np.array([[count_by(table, counts)[table[block]] for table in chosen_tables(number)] for counts, block in people])
    return play_noisy(np.repeat(others, runs, axis=0), epsilon, 6)
