"""Public guesses: as many records as were said, evenly or around towns, the same each time, of the data's frame, unit and bound."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms import FlatAreas, PathTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.dry_run import WantedError, compute_error
from dpviz.publishing.public_guess import EVEN, RELEASED, TOWNS, guess_points, guess_regions, guess_total, weigh_regions
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

LYON = Domain(bounds=(4.59, 45.57, 5.11, 45.93), crs="EPSG:4326", order=6)
SEA = Domain(bounds=(-40, 30, -39, 31), crs="EPSG:4326", order=4)
PLANE = Domain(bounds=(0, 0, 10, 10), crs=None, order=4)
METRES = Domain(bounds=(620_000, 5_050_000, 660_000, 5_090_000), crs="EPSG:32631", order=6)


def empty(domain):
    return replace(PointCounts.from_xy([], [], domain=domain), unit="person", contributions=3)


@pytest.mark.parametrize("spread", [EVEN, TOWNS])
@pytest.mark.parametrize("domain", [LYON, METRES, SEA, PLANE], ids=["degrees", "metres", "sea", "plane"])
def test_the_number_frame_unit_and_bound_are_those_that_were_given(domain, spread):
    made, again = (guess_points(empty(domain), 5000, spread) for _ in range(2))
    assert (int(made.count.sum()), made.domain, made.unit, made.contributions) == (5000, domain, "person", 3)
    np.testing.assert_array_equal(made.count, again.count)


@pytest.mark.parametrize("domain", [LYON, METRES])
def test_towns_are_fuller_than_the_land_around_them(domain):
    even, towns = (guess_points(empty(domain), 50_000, spread).blocks(4).max() for spread in (EVEN, TOWNS))
    assert towns > 5 * even
    assert guess_points(empty(SEA), 5000, TOWNS).blocks(2).min() > 200, "without a town they lie evenly"


def test_an_adaptive_mechanism_expects_the_error_of_its_partitions_not_only_of_noise():
    wanted = WantedError(error=1.0, level=3, records=4_000, spread=TOWNS)
    data = replace(empty(LYON), contributions=5)
    errors = [compute_error(PathTree(), data, wanted, epsilon) for epsilon in (0.05, 0.2, 0.5, 2, 20)]
    assert errors == sorted(errors, reverse=True), "less noise and finer partitions: a smaller error"
    made = guess_points(data, 4_000, TOWNS)
    average = made.blocks(3).mean()
    assert errors[0] > average, "one large partition says nothing of a square"
    assert errors[-1] < average / 5


def test_the_expected_error_is_that_of_many_runs_on_records_that_lie_as_guessed():
    wanted, made = WantedError(error=1.0, level=4, records=20_000, spread=TOWNS), guess_points(empty(LYON), 20_000, TOWNS)
    runs = [PathTree().release(made, PureBudget("0.5"), Entropy.seeded(seed)).blocks(4) - made.blocks(4) for seed in range(40)]
    assert compute_error(PathTree(), empty(LYON), wanted, 0.5) == pytest.approx(np.sqrt(np.mean(np.square(runs))), rel=0.2)


def test_another_spread_is_refused():
    with pytest.raises(SettingError, match="evenly, as towns are"):
        guess_points(empty(LYON), 10, "nowhere")


def test_regions_with_towns_are_fuller_and_others_are_as_uneven_as_towns():
    inhabited, at_sea = (Regions.squares(domain, zooms=(2, 3)) for domain in (LYON, SEA))
    middle = inhabited.centres(2)
    near = np.hypot(*(middle - (4.835, 45.76)).T)
    shares = weigh_regions(inhabited)
    assert near[shares.argmax()] < 0.1, "Lyon"
    assert shares[near < 0.1].mean() > 5 * shares[near > 0.25].mean()
    for regions in (at_sea, Regions.from_table(pd.DataFrame({"id": [f"r{i}" for i in range(64)]}), levels=["id"])):
        drawn = weigh_regions(regions)
        assert drawn.sum() == pytest.approx(1)
        assert drawn.min() > 0
        assert drawn.max() > 5 / 64


class TestEarlierRelease:
    def release(self, domain, seed=None):
        towns = guess_points(empty(domain), 20_000, TOWNS)
        noise = Entropy.system() if seed is None else Entropy.seeded(seed)
        return PathTree().release(towns, PureBudget(5), noise)

    @pytest.mark.parametrize("domain", [LYON, METRES, replace(LYON, order=9)], ids=["same", "metres", "finer"])
    def test_records_lie_by_its_counts(self, domain):
        released = self.release(replace(LYON, order=5))
        made = guess_points(empty(domain), 30_000, RELEASED, released)
        towns, even = (guess_points(empty(domain), 30_000, spread).blocks(3).ravel() for spread in (TOWNS, EVEN))
        assert made.count.sum() == 30_000
        near, far = (np.abs(made.blocks(3).ravel() - other).sum() for other in (towns, even))
        assert near < far / 2
        assert abs(guess_total(released) - 20_000) < 1000

    def test_a_simulation_and_one_of_another_area_are_refused(self):
        with pytest.raises(SettingError, match="not private"):
            guess_points(empty(LYON), 10, RELEASED, self.release(LYON, seed=1))
        with pytest.raises(SettingError, match="same area"):
            guess_points(empty(SEA), 10, RELEASED, self.release(LYON))
        with pytest.raises(SettingError, match="must be given"):
            guess_points(empty(LYON), 10, RELEASED)

    @pytest.mark.parametrize("columns", [["district", "tract"], ["district"], ["tract"]], ids="+".join)
    def test_regions_have_released_counts_or_even_parts_of_larger_ones_or_sums_of_smaller_ones(self, columns):
        """Of releases of the same regions, of the districts alone, and of the tracts alone, in another order."""
        table = pd.DataFrame({"district": ["b", "a", "a", "a"], "tract": ["b1", "a1", "a2", "a3"]})
        regions = Regions.from_table(table, levels=["district", "tract"])
        released = Regions.from_table(table[columns].drop_duplicates(), levels=columns)
        truth = {"a1": 100, "a2": 700, "a3": 1000, "b1": 50, "a": 1800, "b": 50}
        counts = AreaCounts.from_counts([truth[each] for each in released.ids[-1].tolist()], regions=released)
        release = FlatAreas().release(counts, PureBudget(1000), Entropy.system())
        nothing = AreaCounts.from_counts(np.zeros(4, int), regions=regions)
        tracts = {"a1": 600, "a2": 600, "a3": 600} if columns == ["district"] else {}
        for level in (1, 2):
            made = guess_regions(nothing, level, release)
            expected = [({**truth, **tracts})[each] for each in regions.ids[level - 1].tolist()]
            assert sorted(np.repeat(made.count, made.number.astype(int)).tolist()) == sorted(expected)
        assert guess_total(release) == 1850
        other = Regions.from_table(table.assign(tract=list("wxyz"), district=list("cddd")), levels=["district", "tract"])
        with pytest.raises(SettingError, match="same regions"):
            guess_regions(AreaCounts.from_counts(np.zeros(4, int), regions=other), 1, release)
        with pytest.raises(SettingError, match="simulation"):
            guess_regions(nothing, 1, FlatAreas().release(counts, PureBudget(1), Entropy.seeded(1)))
