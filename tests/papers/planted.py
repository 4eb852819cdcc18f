"""Made-up tables of figures in which every claim holds, and changes that turn one claim into its opposite."""

import numpy as np
import pandas as pd

from dpviz.papers.claims import FAILS, HOLDS

SEEDS = 4


def crossed(**values):
    """A row for each combination of values."""
    return pd.MultiIndex.from_product(values.values(), names=values).to_frame(index=False)


def with_seeds(table, column):
    """The table for several seeds, whose numbers differ by about 1 %."""
    rng = np.random.default_rng(1)
    parts = [table.assign(**{column: table[column] * np.exp(0.01 * rng.standard_normal(len(table)))}) for _ in range(SEEDS)]
    return pd.concat([part.assign(seed=seed) for seed, part in enumerate(parts, 1)], ignore_index=True)


def assert_flips(figure, number, table, column, where, factor):
    """The claim of this number holds on the table, and not where a column is multiplied by a factor in some rows."""
    claim, change = figure.claims[number], np.where(table.eval(where).fillna(value=False), factor, 1.0)
    held, fell = (claim.judge(each, exact=figure.exact) for each in (table, table.assign(**{column: table[column] * change})))
    assert held.answer == HOLDS, held.sentence
    assert fell.answer == FAILS, fell.sentence


def all_claims(paper):
    """The number of every claim by its figure."""
    return {(key, number) for key, figure in paper.figures.items() for number in range(len(figure.claims))}
