"""What is special about flat counts of areas: counts under a threshold are hidden, and what that does to intervals is said."""

import numpy as np

import dpviz as dv
from tests.area_cases import areas_of
from tests.trip_cases import regular


def test_intervals_of_shown_regions_hold_for_all_of_them_at_once_and_the_release_says_that_single_ones_do_not():
    truth = np.where(np.arange(400) % 20, 4, 60)
    areas, single, together = areas_of(regular(400), truth), [], []
    for seed in range(60):
        release = dv.FlatAreas(threshold=15).release(areas, dv.PureBudget("0.4"), dv.Entropy.seeded(seed))
        assert "single regions hold less often than 95 %" in (release.approximate or "")
        frame, shown = release.to_frame(release.regions.levels[-1]), ~release.hidden
        single.append(((frame["ci_low"] <= truth) & (truth <= frame["ci_high"]))[shown])
        together.append(bool(((frame["all_low"] <= truth) & (truth <= frame["all_high"]))[shown].all()))
    assert np.concatenate(single).mean() < 0.9
    assert np.mean(together) > 0.9
    assert dv.FlatAreas().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1)).approximate is None


def test_nothing_is_said_of_a_hidden_region_alone():
    release = dv.FlatAreas(threshold=50).release(areas_of(regular(3), [0, 10, 5000]), dv.PureBudget(5), dv.Entropy.seeded(1))
    ids = release.regions.ids_of(1).tolist()
    low, high = release.answer_interval(ids)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == np.isnan(release.answer(ids)).tolist() == [True, True, False]
    assert np.isnan(release.answer([[ids[0], ids[0]], [ids[0], ids[1]]])).tolist() == [True, False]
