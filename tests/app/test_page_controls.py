"""The controls of the Points page: settings, splits, links and limits."""

import pytest

from dpviz.app.controls import fits_buttons
from dpviz.app.points_page import NAMES
from dpviz.mechanisms import POINT_MECHANISMS
from dpviz.privacy.allocation import PUBLISHED
from dpviz.samples.points import SAMPLES
from tests.app.walk import SMALL, captions, drawn, fine, good, keys, open_tab, points_app, press_draw, shares_of
from tests.often import often


def widget(app, rule, name):
    """The control of a setting."""
    kind = {bool: "toggle", tuple: "text_input"}.get(type(rule.default), "number_input")
    if rule.choices:
        kind = "segmented_control" if fits_buttons(rule.choices) else "selectbox"
    return getattr(app, kind)(key=f"setting {name} {rule.name}")


def other_value(rule):
    """A value that is allowed and is not the default."""
    if rule.choices:
        return rule.choices[-1]
    if isinstance(rule.default, tuple):
        return rule.default[:2]
    return not rule.default if isinstance(rule.default, bool) else rule.low if rule.low not in (0, rule.default) else rule.low + 1


class TestControls:
    @pytest.mark.parametrize("name", often(POINT_MECHANISMS, 4))
    def test_every_mechanism_has_its_controls_and_draws_with_its_defaults(self, name):
        app = fine(points_app({"sample": "gaussian_cluster", "size": "1000", "order": "6"}))
        fine(app.selectbox(key="mechanism").set_value(name).run())
        values = POINT_MECHANISMS[name]().chosen()
        widgets = keys([*app.number_input, *app.toggle, *app.segmented_control, *app.selectbox, *app.text_input])
        for rule in POINT_MECHANISMS[name].rules():
            if rule.matters(values) and rule.name not in ("split", "weights"):
                assert f"setting {name} {rule.name}" in widgets
        fine(press_draw(app))
        assert drawn(app).release.mechanism == name
        for tab in NAMES:
            fine(open_tab(app, tab))

    @pytest.mark.parametrize("name", often(POINT_MECHANISMS, 4))
    def test_every_setting_can_be_changed_and_set_back(self, name):
        app = fine(points_app({"sample": "gaussian_cluster", "size": "1000", "order": "6", "mechanism": name}))
        rules = {rule.name: rule for rule in POINT_MECHANISMS[name].rules() if rule.name not in ("split", "weights")}
        defaults = POINT_MECHANISMS[name]().chosen()
        for rule in rules.values():
            name_of, wanted = rule.when or (None, None)
            before = {} if rule.matters(defaults) else {name_of: wanted[0] if isinstance(wanted, tuple) else wanted}
            for change in [before, {rule.name: other_value(rule)}, {rule.name: rule.default}, {each: defaults[each] for each in before}]:
                for each, value in change.items():
                    typed = ", ".join(map(str, value)) if isinstance(value, tuple) else value
                    fine(widget(app, rules[each], name).set_value(typed).run())
                left = {each: value for each, value in change.items() if value != defaults[each]}
                assert app.session_state["config"].settings in (left, before | left)

    def test_named_splits_change_the_shares(self):
        app = points_app()
        geometric = shares_of(app)
        assert geometric == sorted(geometric)
        assert geometric[0] < geometric[-1]
        fine(app.selectbox(key="preset").set_value("uniform").run())
        assert shares_of(app) == [20.0] * 5
        fine(app.selectbox(key="preset").set_value("leaf").run())
        assert shares_of(app) == [0, 0, 0, 0, 100]

    @pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: each.title)
    def test_published_splits_change_the_shares_and_can_be_drawn(self, published):
        app = points_app(SMALL | {"settings": '{"height":5}'})
        fine(app.selectbox(key="preset").set_value(published.title).run())
        weights = published.weights(5)
        assert shares_of(app) == pytest.approx([100 * weight / sum(weights) for weight in weights], abs=0.01)
        assert app.selectbox(key="preset").value == published.title
        assert published.source in captions(app)
        fine(press_draw(app))

    def test_typed_shares_are_redistributed_around_locked_ones(self):
        app = points_app()
        fine(app.selectbox(key="preset").set_value("uniform").run())
        fine(app.checkbox(key="lock 1").check().run())
        fine(app.number_input(key="share 4").set_value(50.0).run())
        assert shares_of(app) == pytest.approx([10, 20, 10, 10, 50], abs=0.02)
        fine(app.number_input(key="share 1").set_value(70.0).run())
        assert shares_of(app) == pytest.approx([10, 20, 10, 10, 50], abs=0.02)
        fine(press_draw(app))
        steps = {step.level: float(step.amount) for step in drawn(app).release.receipt.steps}
        assert [steps[level] for level in range(5)] == pytest.approx([0.05, 0.1, 0.05, 0.05, 0.25], abs=1e-4)
        assert drawn(app).release.receipt.spent == drawn(app).release.receipt.total

    @pytest.mark.parametrize("typed", [0.0, 33.333, 100.0])
    def test_typed_shares_make_a_whole(self, typed):
        app = points_app()
        for place in (0, 2, 4):
            fine(app.number_input(key=f"share {place}").set_value(typed).run())
            assert sum(shares_of(app)) == pytest.approx(100, abs=0.05)
        fine(press_draw(app))

    @pytest.mark.parametrize("change", [("setting quadtree height", 6), ("setting quadtree height", 2)])
    def test_another_height_after_typed_shares_starts_over(self, change):
        app = points_app()
        fine(app.number_input(key="share 4").set_value(50.0).run())
        key, height = change
        fine(app.number_input(key=key).set_value(height).run())
        assert len(shares_of(app)) == height + 1
        fine(press_draw(app))

    def test_another_lattice_after_typed_shares_says_what_to_do(self):
        app = points_app()
        app.number_input(key="share 4").set_value(50.0).run()
        app.slider(key="order").set_value(3).run()
        if good(app).error:
            assert "weights for this tree" in app.error[0].value
            fine(next(button for button in app.button if "default" in button.label).click().run())
        assert len(shares_of(app)) == 4
        fine(press_draw(app))

    @pytest.mark.parametrize(("epsilon", "words"), [(0.01, "buries"), (0.5, None), (8.0, "promises little")])
    def test_extreme_budgets_are_warned_of(self, epsilon, words):
        app = fine(points_app(SMALL | {"epsilon": str(epsilon)}))
        assert [words in warning.value for warning in app.warning] == ([True] if words else [])

    def test_slider_and_typed_budget_agree(self):
        app = points_app()
        app.select_slider(key="epsilon slider").set_value(2.0).run()
        assert fine(app).text_input(key="epsilon").value == "2"
        app.text_input(key="epsilon").set_value("0.11").run()
        assert fine(app).select_slider(key="epsilon slider").value == 0.1
        assert app.session_state["config"].epsilon == 0.11

    @pytest.mark.parametrize("sample", often(SAMPLES, 2))
    def test_every_sample_draws(self, sample):
        app = fine(points_app({"sample": sample, "settings": '{"height":4}', "epsilon": "1"}))
        fine(press_draw(app))
        total = drawn(app).release.count[0]
        assert total == pytest.approx(drawn(app).data.points.count.sum(), abs=100)


class TestLink:
    def test_parameters_set_the_controls(self):
        link = {"mode": "Curate", "sample": "gaussian_cluster", "size": "500", "order": "5", "epsilon": "2.5"}
        app = fine(points_app(link | {"mechanism": "identity", "settings": '{"order":4}'}))
        assert app.segmented_control(key="mode").value == "Curate"
        assert app.selectbox(key="sample").value == "gaussian_cluster"
        assert app.number_input(key="size").value == 500
        assert app.slider(key="order").value == 5
        assert app.selectbox(key="mechanism").value == "identity"
        assert app.number_input(key="setting identity order").value == 4
        assert app.text_input(key="epsilon").value == "2.5"

    def test_the_address_follows_the_controls(self):
        app = points_app()
        app.text_input(key="epsilon").set_value("0.75").run()
        app.selectbox(key="mechanism").set_value("identity").run()
        assert app.query_params["epsilon"] in ("0.75", ["0.75"])
        assert app.query_params["mechanism"] in ("identity", ["identity"])
        again = fine(points_app({name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}))
        assert again.session_state["config"] == app.session_state["config"]

    @pytest.mark.parametrize(
        "nonsense",
        [
            {"mode": "root", "sample": "../../etc/passwd", "mechanism": "<b>"},
            {"epsilon": "nan", "order": "99", "size": "-1", "zoom": "x", "shown": "Truth"},
            {"epsilon": "1e999", "order": "20", "size": "9" * 400},
            {"settings": '{"height":1e999}'},
            {"settings": '{"height":' + "9" * 400 + "}"},
            {"settings": '{"nothing":1,"split":[],"weights":"abc"}'},
            {"settings": "[" * 3000},
            {"order": "1", "size": "1", "sample": "gaussian_cluster", "zoom": "24"},
            {"path": "/etc/passwd", "source": "path", "file": "x"},
        ],
        ids=lambda link: " ".join(link),
    )
    def test_nonsense_is_ignored(self, nonsense):
        app = fine(points_app(SMALL | nonsense))
        assert app.session_state["config"].source == "sample"
        fine(press_draw(app))

    def test_a_split_that_does_not_fit_is_said_and_can_be_left(self):
        app = points_app(SMALL | {"settings": '{"height":4,"split":"custom","weights":[1,2]}'})
        assert "weights for this tree" in good(app).error[0].value
        fine(next(button for button in app.button if "default" in button.label).click().run())
        fine(press_draw(app))
