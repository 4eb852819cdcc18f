"""False positives and errors of the made-up residents of Los Angeles with and without a mask of the sea."""

import numpy as np
import pytest

import dpviz as dv
from dpviz.evaluation.metrics import presence_errors, true_answers
from dpviz.space.workloads import area_share

RUNS, ZOOM = 20, 8


@pytest.mark.benchmark
@pytest.mark.parametrize("epsilon", ["0.5", "0.1"])
def test_false_positives_with_and_without_a_mask_of_the_sea(epsilon):
    domain = dv.samples.points.POINT_SAMPLES["la_residents"].domain
    on_land = dv.mask_outside(domain, dv.reading.read_outline("assets/land.json", crs="EPSG:4326"))
    everywhere, masked = dv.load_sample("la_residents"), dv.load_sample("la_residents", domain=on_land)
    truth, is_sea = everywhere.blocks(ZOOM), ~on_land.open_blocks(ZOOM)
    boxes = {"boxes": dv.evaluation.random_rectangles(domain, 500, 1), "small boxes": area_share(domain, 0.001, 500, 2)}
    answers = {name: true_answers(everywhere, each) for name, each in boxes.items()}
    for key in ("path_tree", "quadtree", "identity", "privtree", "uniform_grid", "adaptive_grid", "hilbert_tree", "dawa"):
        for name, points in (("none", everywhere), ("sea", masked)):
            found = []
            for seed in range(RUNS):
                release = dv.MECHANISMS[key]().release(points, dv.PureBudget(epsilon), dv.Entropy.seeded(seed))
                blocks = release.blocks(ZOOM)
                errors = [np.abs(release.answer(each) - answers[which]).mean() for which, each in boxes.items()]
                false = presence_errors(blocks, truth)["false_positives"]
                found.append([false, presence_errors(blocks[is_sea], truth[is_sea])["false_positives"], *errors])
            wrong, at_sea, large, small = np.mean(found, axis=0)
            here = f"epsilon {epsilon} {key:14} mask {name:5}"
            print(f"{here} {wrong:7,.0f} false positives, {at_sea:6,.0f} in the sea; error {large:6.1f}, {small:5.2f}")
            assert (at_sea == 0) == (name == "sea")
