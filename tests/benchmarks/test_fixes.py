"""How often one person's home is named after real releases of 50,000 positions, with the record and with the person as unit.

    pytest -n 0 -s -m benchmark tests/benchmarks/test_fixes.py

A game is one release of the made-up person among the made-up residents of Los Angeles, with a seed of its own and the home at one of eight
addresses. The attacker knows all others and all eight traces (`dpviz.evaluation.attacks.fixes`). Limits are those of Clopper and Pearson:
the interval holds with 95 %, so that its upper end alone holds with 97.5 %. One kept position comes too near what epsilon allows for a
hundred releases to tell: so the same game is played on the noise of many releases, too, and there its success is known exactly.
"""

import numpy as np
import pytest

from dpviz.evaluation.attacks.fixes import find_trace, group_bound, guess_homes, play_homes
from dpviz.evaluation.attacks.game import Success, count_wins, guess_bound, guess_success
from dpviz.lessons.record_or_person import FIXES, MOST, MOVES, left_over, traces
from dpviz.privacy.entropy import Entropy

pytestmark = pytest.mark.benchmark

GAMES, EPSILON = 100, 1.0
CHANCE = 1e-4  # with which a measured success may miss the other one
PARTS, PART = 20, 500  # games on noise alone, in parts that fit in memory


def play_noise(most):
    """The same game on the noise of many releases."""
    parts = [play_homes(traces(most), EPSILON, most, PART, Entropy.seeded(seed)) for seed in range(PARTS)]
    return Success(wins=sum(part.wins for part in parts), games=sum(part.games for part in parts))


def test_the_home_is_found_with_the_record_as_unit_and_not_beyond_epsilon_with_the_person(capsys):
    homes = np.random.default_rng(8).integers(0, len(MOVES), GAMES)
    nobody = np.zeros(traces(None).shape[1], np.int64)
    lines, kept = [], []
    for most in (None, *MOST, 1000):
        noisy = np.stack([left_over(int(home), most, EPSILON, seed) for seed, home in enumerate(homes)])
        rate = EPSILON / (most or 1)
        best = count_wins(guess_homes(noisy, nobody, traces(most), rate), homes)
        blind = count_wins(noisy.argmax(axis=1), traces(None)[homes].argmax(axis=1))
        found = np.stack([find_trace(one, nobody, rate) for one in noisy])
        visited = traces(None)[homes]
        share = 100 * (visited * found).sum() / visited.sum()
        unit, bound = ("record", group_bound(len(MOVES), EPSILON, FIXES)) if most is None else ("person", guess_bound(len(MOVES), EPSILON))
        low, high = best.interval()
        lines.append(
            f"{unit:8} {most or FIXES:6,} {best.wins:4} of {best.games} [{low:.3f}, {high:.3f}] {bound:8.3f}"
            f" {blind.wins:8} of {blind.games} {share:10.1f} % {(found & (visited == 0)).sum() / GAMES:10.2f}"
        )
        if most is None:
            kept.append(best.passes(guess_bound(len(MOVES), EPSILON)))
            continue
        many = play_noise(most)
        low, high = many.interval()
        lines[-1] += f"   {many.rate:.4f} of {many.games:,} [{low:.4f}, {high:.4f}]"
        kept += [many.keeps(bound), best.interval(1 - CHANCE)[0] <= many.rate <= best.interval(1 - CHANCE)[1]]
        if most == 1:
            exact = guess_success(len(MOVES), int(traces(1).any(axis=0).sum()), EPSILON)
            lines[-1] += f", exactly {exact:.4f}"
            kept += [many.interval(1 - CHANCE)[0] <= exact <= many.interval(1 - CHANCE)[1], exact < bound]
    with capsys.disabled():
        print(f"\nepsilon {EPSILON:g}, {len(MOVES)} homes, {GAMES} releases for each line; chance is {1 / len(MOVES):.3f}")
        print("unit      kept  home named, 95 % interval   allowed  strongest cell  fixes found  false cells   on noise alone")
        print("\n".join(lines))
    assert all(kept)
