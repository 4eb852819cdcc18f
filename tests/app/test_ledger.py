"""Draws in Curate and the ledger: what is counted, what is recognised, and what is refused before anything is drawn."""

from dataclasses import replace
from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.session import Press
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import publish
from tests.app.walk import (
    CURATE,
    FLIGHTS,
    PLACES,
    SMALL,
    account,
    captions,
    drawn,
    entries,
    errors,
    fine,
    good,
    infos,
    labelled,
    name_dataset,
    points_app,
    press_draw,
    protect,
    trips_app,
    warnings,
)

TRIPS = FLIGHTS | {"mode": "Curate"}
BAR = 'class="dpviz-budget"'


def uploaded(content=PLACES, name="homes.csv", frame="Contiguous United States"):
    """A file in Curate, ready to be drawn from but for the dataset's name."""
    app = points_app(CURATE)
    good(app.segmented_control(key="source").set_value("upload").run())
    good(app.file_uploader(key="file").set_value((name, content, "text/csv")).run())
    app.selectbox(key="frame").set_value(frame)
    app.text_input(key="crs").set_value("EPSG:4326")
    return protect(app)


def bars(app):
    return " ".join(each.value for each in app.html if BAR in each.value)


def unpaid():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.points_data import points_controls  # noqa: PLC0415
    from dpviz.app.points_state import CURATE, Config, draw  # noqa: PLC0415
    from dpviz.errors import RefusedError  # noqa: PLC0415

    st.session_state["config"] = Config(mode=CURATE, sample="gaussian_cluster", size=1000, order=5)
    try:
        draw(points_controls())
    except RefusedError as error:
        st.session_state["said"] = str(error)


class TestFirstDraw:
    def test_a_dataset_is_named_and_capped_before_anything_is_drawn(self):
        app = uploaded()
        assert "Name the dataset" in infos(app)
        assert app.button(key="draw").disabled
        labelled(app.text_input, "Name of the dataset").set_value("Homes 2024").run()
        assert app.button(key="draw").disabled
        labelled(app.number_input, "Cap, ε").set_value(2.0)
        fine(press_draw(fine(app.run())))
        assert (account().name, account().terms.unit, account().terms.neighbours) == ("Homes 2024", "record", "add or remove one")
        assert account().terms.cap == ApproxBudget(2, "1e-5")
        assert "**Homes 2024**: protects one record (add or remove one), cap ε 2, δ 1e-5; 1 draw so far" in captions(app)
        assert not [each for each in app.text_input if each.label == "Name of the dataset"]

    def test_without_delta_the_cap_is_pure(self):
        app = uploaded()
        labelled(app.number_input, "Cap, δ").set_value(0.0)
        fine(press_draw(name_dataset(app)))
        assert account().terms.cap == PureBudget(10)

    def test_samples_have_a_name_of_their_own(self):
        app = points_app(CURATE)
        assert labelled(app.text_input, "Name of the dataset").value == "Sample gaussian_cluster of 1,000"
        fine(press_draw(app))
        assert account().name == "Sample gaussian_cluster of 1,000"

    def test_before_the_button_there_is_no_account_and_no_draw(self):
        """Only that the columns of a file were looked at is recorded."""
        app = name_dataset(uploaded())
        fine(app.run())
        fine(points_app(CURATE))
        assert Ledger().accounts() == []
        assert Ledger().seen(app.session_state["loaded config"][0].fingerprints)

    def test_a_sample_leaves_no_ledger_before_the_button(self, ledger_path):
        fine(points_app(CURATE))
        assert not ledger_path.exists()

    def test_a_name_is_never_markup(self):
        app = uploaded()
        labelled(app.text_input, "Name of the dataset").set_value("**a** ![x](http://x.example/y)")
        labelled(app.number_input, "Cap, ε").set_value(0.6)
        app = press_draw(good(app.run()))
        assert "\\*\\*a\\*\\* \\!\\[x\\]\\(http" in " ".join(each.value for each in app.caption)

    def test_in_curate_nothing_is_drawn_without_a_purse(self):
        app = AppTest.from_function(unpaid).run()
        assert "name the dataset and its cap first" in app.session_state["said"]
        assert entries() == []


class TestSums:
    def test_they_survive_a_reload_and_show_in_another_tab(self):
        one, two = points_app(CURATE), points_app(CURATE)
        fine(press_draw(one))
        assert "ε 0.5. The next draw makes it ε 1," in captions(points_app(CURATE))
        assert "ε 0.5. The next draw makes it ε 1," in captions(fine(two.run()))
        fine(press_draw(two))
        assert "ε 1. The next draw makes it ε 1.5," in captions(fine(one.run()))
        assert len(entries()) == 2
        assert drawn(one).release is not drawn(two).release

    def test_a_renamed_file_keeps_its_sum(self):
        fine(press_draw(uploaded()))
        for name, content in (("other.csv", PLACES), ("again.tsv", PLACES.replace(b",", b"\t"))):
            app = uploaded(content, name)
            assert "**Homes 1**" in captions(app)
            assert "ε 0.5. The next draw makes it ε 1," in captions(app)
        fine(press_draw(app))
        assert account().spent == {"epsilon": Fraction(1), "delta": Fraction(0)}

    def test_the_frame_does_not_matter_either(self):
        fine(press_draw(uploaded()))
        assert "ε 0.5. The next draw" in captions(uploaded(frame="World"))

    def test_another_version_under_a_known_name_joins_its_account(self):
        fine(press_draw(uploaded()))
        app = uploaded(PLACES + b"-90,40,more\n")
        labelled(app.text_input, "Name of the dataset").set_value("Homes 1").run()
        assert "another version of it" in captions(app)
        assert "ε 0.5. The next draw makes it ε 1," in captions(app)
        fine(press_draw(app))
        assert account().spent["epsilon"] == 1

    def test_a_bar_says_spent_now_and_left(self):
        app = press_draw(points_app(CURATE | {"epsilon": "2"}))
        assert "ε: spent 2, this draw 2, left after it 6 of 10" in bars(app)
        assert "width:20.00%" in bars(app)
        assert bars(app).count(BAR) == 1
        smooth = {"mechanism": "kdtree", "settings": '{"height":3,"variant":"smooth-sensitivity"}'}
        assert bars(points_app(CURATE | smooth)).count(BAR) == 2
        assert not bars(points_app(SMALL))


NOTHING_SPENT, SPENT = "Nothing has been spent on these data yet.", "Spent on these data so far: ε 0.5."


def told(app):
    """What a page says about spending, beside the controls and in the middle."""
    return f"{infos(app)} {captions(app)}"


class TestWhatIsSaidOfSpending:
    """All of it comes from the account that a draw would be paid from."""

    @pytest.mark.parametrize("start", [lambda: points_app(CURATE), lambda: trips_app(TRIPS), uploaded])
    def test_without_an_account(self, start):
        assert NOTHING_SPENT in told(start())
        assert Ledger().accounts() == []

    def test_an_account_without_draws(self):
        app = points_app(CURATE)
        marks = app.session_state["loaded config"][0].fingerprints
        Ledger().open("Crowd", marks, Terms(unit="record", neighbours="add or remove one", cap=PureBudget(1)))
        assert NOTHING_SPENT in told(fine(app.run()))

    def test_draws_of_another_session(self):
        fine(press_draw(uploaded()))
        app = uploaded()
        assert SPENT in infos(app)
        assert "Nothing has been spent" not in told(app)
        fine(press_draw(trips_app(TRIPS)))
        assert "Spent on these data so far: ε 1, δ 1e-8." in told(trips_app(TRIPS))

    def test_another_file_that_joins_the_account_of_a_name(self):
        fine(press_draw(uploaded()))
        app = uploaded(PLACES + b"-90,40,more\n")
        assert NOTHING_SPENT in infos(app)
        labelled(app.text_input, "Name of the dataset").set_value("Homes 1").run()
        assert SPENT in infos(app)
        assert NOTHING_SPENT not in told(app)

    def test_draws_of_this_session(self):
        app = fine(press_draw(uploaded()))
        assert SPENT in captions(app)
        good(app.file_uploader(key="file").set_value(("others.csv", PLACES + b"-90,40,more\n", "text/csv")).run())
        assert SPENT not in told(protect(app))

    def test_a_ledger_that_cannot_be_read(self, ledger_path):
        ledger_path.write_bytes(b"not a ledger")
        app = points_app(CURATE)
        assert "What was spent on these data is not known" in infos(app)
        assert "Nothing has been spent" not in told(app)


class TestRefusals:
    def test_the_cap_stops_the_draw_that_would_pass_it(self):
        app = name_dataset(uploaded(), cap=1.0)
        fine(press_draw(fine(press_draw(app))))
        assert "The next draw would pass the cap: it takes ε 0.5, and ε 0, δ 1e-5 is left of ε 1, δ 1e-5" in warnings(app)
        assert "would pass the cap" in bars(app)
        assert app.button(key="draw").disabled
        assert len(entries()) == 2
        app.text_input(key="epsilon").set_value("0.001").run()
        assert app.button(key="draw").disabled

    def test_what_is_left_can_be_spent_to_the_last(self):
        app = name_dataset(uploaded(), cap=0.7)
        fine(press_draw(app))
        app.text_input(key="epsilon").set_value("0.2")
        fine(press_draw(fine(app.run())))
        assert account().left["epsilon"] == 0

    def test_a_draw_that_another_session_forestalled_is_refused_and_not_made(self, monkeypatch):
        app = press_draw(name_dataset(uploaded(), cap=1.0))
        release, real = drawn(app).release, publish.check_order

        def forestalled(order, ledger):
            ledger.spend("Homes 1", PureBudget("0.3"), mechanism="quadtree")
            return real(order, ledger)

        monkeypatch.setattr(publish, "check_order", forestalled)
        app = press_draw(app)
        assert "left: epsilon 0.2" in errors(app)
        assert drawn(app).release is release
        assert [entry.budget.epsilon for entry in entries()] == [Fraction(1, 2), Fraction(3, 10)]
        assert "ε 0.8. The next draw" in captions(app)

    def test_columns_that_protect_another_unit_are_refused(self):
        people = b"lon,lat,who\n-118.2,34.1,a\n-80.25,25.5,b\n"
        app = press_draw(uploaded(people))
        protect(app, "who")
        assert "per record, and as the columns are chosen now one person" in warnings(app)
        assert app.button(key="draw").disabled

    def test_another_column_of_persons_is_refused(self):
        people = b"lon,lat,who,visit\n-118.2,34.1,a,1\n-80.25,25.5,a,2\n"
        app = uploaded(people)
        fine(press_draw(protect(app, "who")))
        assert account().terms.person == "who"
        labelled(app.selectbox, "Person").set_value("visit").run()
        assert "a person is one value of the column 'who'; as the columns are chosen now, the column 'visit' says it" in warnings(app)
        assert app.button(key="draw").disabled

    def test_a_column_of_persons_with_a_name_that_no_ledger_takes_is_refused(self):
        column = "who " * 40
        app = uploaded(f"lon,lat,{column}\n-118.2,34.1,a\n-80.25,25.5,a\n".encode())
        app = name_dataset(protect(app, column))
        assert "The name of the column of persons must be one line of text, 1 to 120 characters" in errors(app)
        assert app.button(key="draw").disabled

    def test_other_neighbours_are_refused(self):
        app = press_draw(trips_app(TRIPS))
        app.session_state["trips config"] = replace(app.session_state["trips config"], settings={"neighbours": "add_remove"})
        assert "neighbours that replace one; TopDown" in warnings(good(app.run()))
        assert app.button(key="draw").disabled
        assert len(entries()) == 1

    @pytest.mark.parametrize("content", [b"", b"not a ledger", b"SQLite format 3\x00" + b"x" * 100])
    def test_a_broken_ledger_stops_curate_and_not_teach(self, ledger_path, content):
        ledger_path.write_bytes(content)
        app = points_app(CURATE)
        assert "no new one is made in its place" in errors(app)
        assert app.button(key="draw").disabled
        assert ledger_path.read_bytes() == content
        fine(press_draw(points_app(SMALL)))
        assert "no new one is made in its place" in errors(trips_app(TRIPS))

    def test_a_place_where_no_ledger_can_be_is_refused_when_it_is_needed(self, monkeypatch, tmp_path):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "file" / "ledger.sqlite"))
        app = points_app(CURATE)
        told = errors(app)
        if not app.button(key="draw").disabled:
            told = errors(press_draw(app))
        assert "cannot be opened and written" in told
        assert drawn(app) is None

    def test_a_ledger_that_breaks_between_draws_loses_no_draw(self, ledger_path):
        app = press_draw(points_app(CURATE))
        release = drawn(app).release
        ledger_path.write_bytes(b"")
        assert "no new one is made" in errors(good(app.run()))
        assert drawn(app).release is release

    def test_a_press_that_comes_while_another_is_served_is_not_taken(self):
        app = points_app(CURATE)
        app.session_state["press config"] = Press(taken=True)
        assert drawn(press_draw(app)) is None
        assert entries() == []
        assert drawn(press_draw(app)) is not None
