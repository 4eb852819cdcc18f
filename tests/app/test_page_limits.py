"""What the Points page refuses for size, and how long a draw takes."""

import time

import pytest

from dpviz.evaluation.metrics import evaluate
from dpviz.mechanisms import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_sample
from dpviz.view.points_map import points_map
from tests.app.walk import CURATE, SMALL, captions, drawn, drawn_layer, fine, good, points_app, press_draw


class TestLimits:
    @pytest.mark.parametrize("link", [SMALL, CURATE])
    def test_a_tree_too_large_for_memory_says_so(self, link):
        app = press_draw(fine(points_app(link | {"order": "16", "settings": '{"height":16}'})))
        assert "nodes are allowed" in app.error[0].value
        assert drawn(app) is None

    def test_an_epsilon_out_of_range_never_reaches_a_draw(self):
        for epsilon in ("0", "-1", "inf", "nan", "1000"):
            assert points_app(SMALL | {"epsilon": epsilon}).text_input(key="epsilon").value == "0.5"

    def test_a_level_of_too_many_partitions_is_a_picture(self):
        app = fine(press_draw(points_app({"sample": "gaussian_cluster", "size": "1000", "settings": '{"height":8}'})))
        assert app.slider(key="zoom").value == 7
        fine(app.slider(key="zoom").set_value(8).run())
        assert drawn_layer(app)["id"] == "picture"
        assert "65,536 partitions are drawn as one picture" in app.html[-1].value

    def test_two_sessions_share_nothing_but_the_ledger(self):
        one, two = points_app(CURATE), points_app(CURATE)
        press_draw(one)
        good(two.run())
        assert drawn(two) is None
        assert "ε 0.5. The next draw makes it ε 1," in captions(two)
        assert two.session_state["config"] == one.session_state["config"]


@pytest.mark.benchmark
def test_pressing_draw_takes_under_a_second_of_server_time(capsys):
    points_in = load_sample("la_residents")
    times = []
    for seed in range(3):
        start = time.perf_counter()
        release = Quadtree(height=8).release(points_in, PureBudget(0.5), Entropy.seeded(seed))
        evaluation = evaluate(release, points_in)
        picture = points_map(release, 1, "Released", unit="people", dark=False, truth=evaluation.truth)
        size = len(picture.deck.to_json())
        times.append(time.perf_counter() - start)
    with capsys.disabled():
        print(f"\ndraw, compare and map of 200,000 people at height 8: {min(times):.2f} s, message {size / 2**20:.2f} MiB")
    assert min(times) < 1.0
    assert size < 5_000_000
