"""The message of the canvas: read back as it was written, small, and with the colours of its scale."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpviz.evaluation.metrics import evaluate_points
from dpviz.mechanisms import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_point_sample
from dpviz.space.domain import Domain
from dpviz.view.basemap import corner_coordinates, map_bounds
from dpviz.view.canvas import TONES, choose_shades, make_legend, make_palette, pack, smallest_type
from dpviz.view.charts import to_hex
from dpviz.view.colors import Scale
from dpviz.view.points_canvas import RELEASED, TRUE, ReleaseView
from tests.colors import difference
from tests.scenes import cells_of, plain_pane, read, scene_of, unpack, words_at

TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "f8"]
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=8)
HALVES = [[0, 0, 8, 16], [8, 0, 16, 16]]


def scale(kind="density", **other):
    return Scale(kind=kind, top=100.0, title="people per km²", **other)


class TestMessages:
    @given(st.dictionaries(st.text(), st.none() | st.floats(allow_nan=False) | st.text()), st.data())
    def test_a_message_is_read_back_as_it_was_written(self, header, data):
        kinds = st.sampled_from([f"<{kind}" for kind in TYPES])
        arrays = data.draw(st.dictionaries(st.text(), kinds.flatmap(lambda kind: hnp.arrays(kind, st.integers(0, 9))), max_size=4))
        found, written = read(pack(header, arrays))
        assert {name: found[name] for name in header.keys() - {"arrays", "key"}} == {
            name: value for name, value in header.items() if name not in ("arrays", "key")
        }
        assert list(written) == list(arrays)
        for name, array in arrays.items():
            assert written[name].dtype == array.dtype
            np.testing.assert_array_equal(written[name], array)

    def test_the_key_tells_messages_apart_by_header_and_by_numbers(self):
        scenes = [
            scene_of({"a": cells_of(HALVES, n=numbers)}, plain_pane(), dark=dark)
            for numbers, dark in (([1, 2], False), ([1, 3], False), ([1, 2], True), ([1, 2], False))
        ]
        first, other, dark, again = (unpack(scene.pack())[0]["key"] for scene in scenes)
        assert first == again
        assert len({first, other, dark}) == 3

    @given(st.lists(st.integers(-(2**40), 2**40) | st.integers(-300, 300) | st.integers(-70_000, 70_000), max_size=9))
    def test_whole_numbers_keep_their_values_in_the_smallest_type_that_holds_them(self, numbers):
        found = smallest_type(np.array(numbers, np.int64))
        assert found.tolist() == numbers
        kind = found.dtype.str[1:]
        for smaller in TYPES[: TYPES.index(kind)]:
            limits = np.iinfo(smaller)
            assert min(numbers) < limits.min or max(numbers) > limits.max

    def test_a_scene_names_its_panes_cells_and_arrays(self):
        pane = plain_pane(note="A note.")
        scene = scene_of({"a": cells_of(HALVES, n=[7, 300])}, pane, replace(pane, title="Again", words=""), camera=(1.5, -2.0, 3.25))
        header, arrays = unpack(scene.pack())
        assert [about["title"] for about in header["panes"]] == ["People", "Again"]
        assert (header["panes"][0]["note"], header["description"]) == ("A note.", "Two maps.")
        assert header["camera"] == {"longitude": 1.5, "latitude": -2.0, "zoom": 3.25}
        assert header["cells"] == {"a": {"side": 16, "near": {}}}
        assert arrays["a lines"].reshape(-1, 4).tolist() == HALVES
        assert [words_at(header, arrays, 0, cell) for cell in (0, 1)] == ["7 people", "300 people"]
        for about in header["panes"]:
            assert arrays[about["shades"]].tolist() == [0, 1]
            assert arrays[about["palette"]].tolist() == list(range(8))

    def test_a_pane_with_a_picture_has_neither_shades_nor_palette(self):
        header, arrays = unpack(scene_of({}, plain_pane(cells="", picture=b"PNG")).pack())
        (about,) = header["panes"]
        assert arrays[about["picture"]].tobytes() == b"PNG"
        assert not {"shades", "palette"} & about.keys()
        assert list(arrays) == [about["picture"]]


class TestRectangles:
    @pytest.mark.parametrize("order", [4, 16])
    def test_on_a_plane_and_in_degrees_they_are_lattice_lines(self, order):
        side = 1 << order
        rectangles = [[0, 0, side, side], [side - 1, 0, side, 1]]
        for crs in (None, "EPSG:4326"):
            domain = Domain(bounds=(0, 0, 16, 16), crs=crs, order=order)
            header, arrays = unpack(scene_of({"a": cells_of(rectangles, domain=domain)}, plain_pane(), domain=domain).pack())
            assert arrays["a lines"].reshape(-1, 4).tolist() == rectangles
            assert header["cells"]["a"]["side"] == side
            west, south, east, north = header["bounds"]
            for rectangle, corners in zip(rectangles, corner_coordinates(domain, np.array(rectangles)), strict=True):
                shares = np.array(rectangle) / side
                sides = [west, south, west, south] + np.array([east - west, north - south] * 2) * shares
                assert [*corners.min(axis=0), *corners.max(axis=0)] == pytest.approx(sides)

    def test_on_a_projected_domain_they_are_corners_within_half_a_unit(self):
        south, west = 16 * np.indices((16, 16)).reshape(2, -1)
        rectangles = np.stack([west, south, west + 16, south + 16], axis=1)
        _, arrays = unpack(scene_of({"a": cells_of(rectangles, domain=METRES)}, plain_pane(count=len(rectangles)), domain=METRES).pack())
        west, south, east, north = map_bounds(METRES)
        unit = np.array([east - west, north - south]) / 65_535
        assert arrays["a corners"].dtype == np.uint16
        seen = [west, south] + arrays["a corners"].reshape(-1, 4, 2) * unit
        assert (np.abs(seen - corner_coordinates(METRES, rectangles)) <= 0.5001 * unit).all()
        assert "a lines" not in arrays

    def test_65_536_of_them_with_truth_counts_and_intervals_in_two_panes_are_small_messages(self):
        points = load_point_sample("la_residents")
        release = Quadtree(height=8).release(points, PureBudget(0.5), Entropy.seeded(1))
        truth = evaluate_points(release, points).truth
        large = release.tree.leaves[::8000]
        truth[large] += 20_000
        release.count[large] += 20_000
        view = ReleaseView.of(release, 8, unit="people", dark=False, truth=truth)
        panes = [view.pane(shown, cells="first") for shown in (TRUE, RELEASED)]
        messages = scene_of({"first": view.cells()}, *panes, domain=points.domain).pack()
        assert sum(map(len, messages.values())) <= 1_500_000
        header, arrays = unpack(messages)
        assert {"first true", "first released", "first low", "first high"} < arrays.keys()
        assert {len(arrays[about["shades"]]) for about in header["panes"]} == {65_536}
        assert arrays["first true"].max() >= 20_000


VALUES = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40).map(np.array)
KINDS = st.sampled_from(["density", "error", "signed"])


class TestColours:
    @given(VALUES, KINDS, st.booleans())
    def test_the_colour_of_a_shade_is_that_of_a_value_nearby_of_the_same_sign(self, values, kind, dark):
        chosen = scale(kind, dark=dark)
        shades = choose_shades(chosen, values)
        strength = np.sqrt(np.minimum(np.abs(values) / 100, 1))
        weaker, stronger = (np.clip(strength + step / (TONES - 1), 0, 1) ** 2 * 100 for step in (-0.51, 0.51))
        sign = np.where(values < 0, -1, 1)
        ends = np.stack([chosen.colors(sign * np.maximum(end, 1e-300)) for end in (weaker, values * sign, stronger)]).astype(int)
        seen = make_palette(chosen)[shades].astype(int)
        step = np.abs(np.diff(ends, axis=0)).sum(axis=0) + 2  # each is cut to whole numbers
        assert (np.abs(seen - ends[1]) <= step).all()
        assert (shades[values < 0] < TONES).all()
        assert (shades[values >= 0] >= TONES).all()

    @given(VALUES, KINDS, st.data())
    def test_pale_is_nearer_to_the_paper_and_keeps_sign_and_tone(self, values, kind, data):
        pale = data.draw(hnp.arrays(np.bool_, len(values)))
        plain, mixed = choose_shades(scale(kind), values), choose_shades(scale(kind), values, pale)
        assert (mixed == plain + 2 * TONES * pale).all()
        palette = make_palette(scale(kind)).astype(int)
        before, after = palette[plain[pale]], palette[mixed[pale]]
        assert (after[:, 3] == 255).all()
        assert (np.abs(after - 255) <= np.abs(before - 255) / 2 + 1).all()

    def test_the_ends_of_the_scale_are_its_strongest_colours_whatever_lies_beyond(self):
        values = np.array([0.0, -0.0, 100, 1e300, -100, -1e300])
        zero, other_zero, top, beyond, low, below = choose_shades(scale(), values).tolist()
        assert zero == other_zero == TONES
        assert top == beyond == 2 * TONES - 1
        assert low == below == TONES - 1
        assert make_palette(scale())[[top, low]].tolist() == scale().colors([100, -100]).tolist()

    def test_a_legend_explains_what_is_shown_and_nothing_else(self):
        every = make_legend(scale(), negatives=True, pale="may be 0")
        assert [words for _, words in every.marks] == ["below zero, by noise", "pale: may be 0"]
        assert (every.title, every.low, every.top) == ("people per km²", "0", "100 and more")
        assert make_legend(scale(), negatives=False).marks == ()
        signed = make_legend(scale("signed"), negatives=True)
        assert (signed.low, signed.marks) == ("−100", ())
        assert signed.bar[0] != signed.bar[-1]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("pale", [False, True])
def test_negatives_and_high_counts_are_told_apart_by_every_kind_of_colour_vision(dark, pale):
    on_map = make_palette(Scale(kind="density", top=100.0, title="people", dark=dark))[:, :3]
    below, high = on_map[2 * TONES * pale + TONES // 2 : 2 * TONES * pale + TONES : 4], on_map[TONES + TONES * 3 // 5 : 2 * TONES : 4]
    texts = [[to_hex(tuple(color)) for color in colors.tolist()] for colors in (below, high)]
    assert min(difference(*pair) for pair in itertools.product(*texts)) > 20


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_pale_has_a_hue_since_grey_is_land(dark):
    pale = make_palette(Scale(kind="density", top=100.0, title="people", dark=dark))[3 * TONES + TONES // 4 :, :3].astype(int)
    assert np.ptp(pale, axis=1).min() > 30


def test_an_outline_is_a_part_of_the_header():
    ring = [[4.0, 45.0], [5.0, 45.0], [5.0, 46.0], [4.0, 45.0]]
    for outline in ([], [ring]):
        assert unpack(scene_of({"a": cells_of(HALVES, n=[1, 2])}, plain_pane(), outline=outline).pack())[0]["outline"] == outline
