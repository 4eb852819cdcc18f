"""Draws in Curate and the ledger: what is counted, what is recognised, what is refused before anything is drawn, and looks at the truth."""

from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.pages.points.state import RELEASES
from dpviz.app.session import cached
from dpviz.errors import DpvizError
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import publish
from dpviz.publishing.private_data import fingerprints_of
from tests.app.parts import changed_page, page_with
from tests.app.seen import account, captions, drawn, entries, errors, fine, good, infos, labelled, released_map, trips_drawn, warnings
from tests.app.start import CURATE, CURATE_TRIPS, PLACES, SMALL, STATES, points_app, trips_app, uploaded
from tests.app.walk import choose, name_dataset, press_draw, protect, truth_switch
from tests.ledgers import is_empty

BAR = 'class="dpviz-budget"'
NOTHING_SPENT, SPENT = "Nothing has been spent on these data yet.", "Spent on these data so far: ε 0.5."
OTHER = PLACES + b"-90,40,more\n"
PEOPLE = b"lon,lat,who,visit_id\n-118.2,34.1,a,1\n-80.25,25.5,a,2\n"


def bars(app):
    return " ".join(each.value for each in app.html if BAR in each.value)


def spending(app):
    """What a page says about spending, beside the controls and in the middle."""
    return f"{infos(app)} {captions(app)}"


class TestFirstDraw:
    def test_a_file_is_named_and_capped_before_anything_is_drawn(self):
        app = uploaded()
        assert "Say the most that may ever be spent on these data" in infos(app)
        assert app.button(key="draw").disabled
        labelled(app.text_input, "Name of the dataset").set_value("Homes 2024").run()
        assert app.button(key="draw").disabled
        labelled(app.number_input, "Cap, ε").set_value(2.0)
        assert NOTHING_SPENT in spending(fine(app.run()))
        assert is_empty(Ledger()), "no account, and no look"
        fine(press_draw(app))
        assert (account().name, account().terms.unit, account().terms.neighbours) == ("Homes 2024", "record", "add or remove one")
        assert account().terms.cap == ApproxBudget(2, "1e-5")
        assert "**Homes 2024**: protects one record (add or remove one), cap ε 2, δ 1e-5; 1 draw so far" in captions(app)
        assert not [each for each in app.text_input if each.label == "Name of the dataset"]

    def test_without_delta_the_cap_is_pure(self):
        app = uploaded()
        labelled(app.number_input, "Cap, δ").set_value(0.0)
        fine(press_draw(name_dataset(app)))
        assert account().terms.cap == PureBudget(10)

    def test_a_sample_has_a_name_of_its_own_and_no_account_before_the_button(self):
        app = fine(points_app(CURATE))
        assert NOTHING_SPENT in spending(app)
        assert Ledger().accounts() == []
        assert labelled(app.text_input, "Name of the dataset").value == "Sample gaussian_cluster of 1,000"
        fine(press_draw(app))
        assert account().name == "Sample gaussian_cluster of 1,000"

    @pytest.mark.parametrize(("mechanism", "reason"), [("quadtree", "name the dataset and its cap"), ("exact_kdtree", "for Teach only")])
    def test_a_draw_without_an_account_or_of_a_reference_is_refused_by_itself(self, mechanism, reason, monkeypatch):
        monkeypatch.setattr(
            "dpviz.app.session.release.st.session_state", {"config": page_with("points", mode="Curate", mechanism=mechanism)}
        )
        with pytest.raises(DpvizError, match=reason):
            RELEASES.pay(None, None)


class TestSums:
    def test_they_survive_a_reload_and_are_all_that_sessions_share(self):
        one, two = points_app(CURATE), points_app(CURATE)
        fine(press_draw(one))
        assert "ε 0.5. The next draw makes it ε 1," in captions(points_app(CURATE))
        assert "ε 0.5. The next draw makes it ε 1," in captions(fine(two.run()))
        assert drawn(two) is None
        fine(press_draw(two))
        assert "ε 1. The next draw makes it ε 1.5," in captions(fine(one.run()))
        assert len(entries()) == 2
        assert drawn(one).release is not drawn(two).release

    @pytest.mark.slow
    def test_a_renamed_file_on_another_frame_keeps_its_sum_and_another_file_has_its_own(self):
        app = fine(press_draw(uploaded()))
        assert SPENT in captions(app)
        choose(app, OTHER)
        assert SPENT not in spending(protect(app))
        assert "ε 0. The next draw makes it ε 0.5" in captions(fine(name_dataset(app)))
        for name, content, frame in (("other.csv", PLACES, "World"), ("again.tsv", PLACES.replace(b",", b"\t"), STATES)):
            app = uploaded(content, name, frame=frame)
            assert "**Homes 1**" in captions(app)
            assert "ε 0.5. The next draw makes it ε 1," in captions(app)

    @pytest.mark.slow
    def test_another_version_under_a_known_name_joins_its_account(self):
        fine(press_draw(uploaded()))
        app = uploaded(OTHER)
        assert "ε 0." not in captions(app)
        labelled(app.text_input, "Name of the dataset").set_value("Homes 1").run()
        assert "another version of it" in captions(app)
        assert SPENT in captions(app)
        assert NOTHING_SPENT not in spending(app)
        fine(press_draw(app))
        assert account().spent == {"epsilon": Fraction(1), "delta": Fraction(0)}

    def test_an_account_without_draws_and_one_of_trips(self):
        app = points_app(CURATE)
        marks = fingerprints_of(cached.sample("gaussian_cluster", 1000, 6))
        Ledger().open("Crowd", marks, Terms(unit="record", neighbours="add or remove one", cap=PureBudget(1)))
        assert NOTHING_SPENT in spending(fine(app.run()))
        app = trips_app(CURATE_TRIPS)
        assert NOTHING_SPENT in spending(app)
        fine(press_draw(app))
        assert "Spent on these data so far: ε 1, δ 1e-8." in spending(app)

    def test_a_bar_shows_what_is_spent_and_left(self):
        app = press_draw(points_app(CURATE | {"epsilon": "2"}))
        assert "ε: spent 2, left 8 of 10" in bars(app)
        (again,) = [each for each in app.checkbox if str(each.key).startswith("pay again")]
        assert "ε: spent 2, this draw 2, left after it 6 of 10" in bars(again.check().run())
        assert "width:20.00%" in bars(app)
        assert bars(app).count(BAR) == 1
        assert bars(trips_app(CURATE_TRIPS)).count(BAR) == 2  # δ has one too
        assert not bars(points_app(SMALL))


class TestRefusals:
    def test_the_cap_stops_the_draw_that_would_pass_it_and_can_be_spent_to_the_last(self):
        app = fine(press_draw(name_dataset(uploaded(), cap=0.7)))
        assert "The next draw would exceed the cap: it takes ε 0.5, and ε 0.2, δ 1e-5 is left of ε 0.7, δ 1e-5" in warnings(app)
        assert app.button(key="draw").disabled
        app.text_input(key="epsilon").set_value("0.2")
        fine(press_draw(fine(app.run())))
        assert account().left["epsilon"] == 0
        app.text_input(key="epsilon").set_value("0.001").run()
        assert app.button(key="draw").disabled
        assert len(entries()) == 2

    def test_a_draw_is_refused_and_not_made_if_another_session_has_spent_the_rest(self, monkeypatch):
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

    def test_another_unit_or_another_column_of_persons_is_refused(self):
        app = fine(press_draw(protect(uploaded(PEOPLE), "who")))
        assert account().terms.person == "who"
        labelled(app.selectbox, "Person").set_value("visit_id").run()
        assert "one value of the column 'who'; with the columns chosen now, the column 'visit_id' identifies persons" in warnings(app)
        assert app.button(key="draw").disabled
        assert "per person, but the columns chosen now would protect one record" in warnings(protect(app))
        assert app.button(key="draw").disabled

    def test_other_neighbours_are_refused(self):
        app = press_draw(trips_app(CURATE_TRIPS))
        app.session_state["trips config"] = changed_page(app.session_state["trips config"], settings={"neighbours": "add_remove"})
        assert "neighbours “replace one”; TopDown" in warnings(good(app.run()))
        assert app.button(key="draw").disabled
        assert len(entries()) == 1

    def test_a_broken_ledger_stops_curate_and_not_teach(self, ledger_path):
        ledger_path.write_bytes(b"not a ledger")
        app = points_app(CURATE)
        assert "no new ledger is made instead" in errors(app)
        assert "What was spent on these data is not known" in captions(app)
        assert "Nothing has been spent" not in spending(app)
        assert app.button(key="draw").disabled
        assert ledger_path.read_bytes() == b"not a ledger"
        fine(press_draw(points_app(SMALL)))
        assert "no new ledger is made instead" in errors(trips_app(CURATE_TRIPS))

    def test_a_ledger_that_was_named_and_is_not_there_stops_curate_and_not_teach(self, ledger_path):
        """Also one that is deleted while the app runs; no draft makes a folder where it should be."""
        ledger_path.unlink()
        app = points_app(CURATE)
        assert f"DPVIZ_LEDGER names the ledger {ledger_path}, which is not there" in errors(app)
        assert app.button(key="draw").disabled
        assert list(ledger_path.parent.iterdir()) == []
        fine(press_draw(points_app(SMALL)))
        Ledger.new(ledger_path)
        fine(press_draw(fine(app.run())))
        assert f"Ledger: {ledger_path}" in captions(app)

    def test_a_ledger_that_breaks_between_draws_loses_no_draw_and_shows_no_truth(self, ledger_path):
        app = press_draw(points_app(CURATE))
        release = drawn(app).release
        ledger_path.write_bytes(b"")
        assert "no new ledger is made" in errors(good(app.run()))
        assert drawn(app).release is release
        assert "The truth is not shown" in errors(good(truth_switch(app).set_value(True).run()))
        assert "released true" not in released_map(app)[1]


class TestRho:
    def in_rho(self, **link):
        app = trips_app(CURATE_TRIPS | link)
        labelled(app.segmented_control, "The ledger counts").set_value("ρ").run()
        labelled(app.number_input, "Cap, ρ").set_value(0.05)
        return good(app.run())

    def test_gaussian_noise_is_paid_for_in_rho(self):
        app = fine(press_draw(self.in_rho()))
        paid = ApproxBudget(1, "1e-8").to_zcdp()
        assert entries()[0].budget == paid
        assert account().terms.cap == ZcdpBudget("0.05")
        assert trips_drawn(app).release.receipt.total == paid
        assert f"ρ {float(paid.rho):g}. The next draw makes it ρ {2 * float(paid.rho):g}, of ρ 0.05" in captions(app)

    def test_exact_accounting_has_no_effect_where_rho_is_counted_and_the_charge_is_what_is_drawn(self):
        said = "exact accounting has no effect here"
        exact, tight = ({"mechanism": "fitted_tree", "settings": f'{{"accounting":"{way}"}}'} for way in ("exact", "tight"))
        assert said not in captions(trips_app(CURATE_TRIPS | exact)), "where epsilon and delta are counted"
        app = self.in_rho(**exact)
        assert said in captions(app)
        receipt = trips_drawn(fine(press_draw(app))).release.receipt
        assert (receipt.converted, receipt.conversion) == (None, None)
        assert account().spent == {"rho": receipt.used} == {"rho": ApproxBudget(1, "1e-8").to_zcdp().rho}
        assert said not in captions(trips_app(CURATE_TRIPS | tight))

    def test_a_mechanism_without_a_price_in_rho_is_refused_and_nothing_is_spent(self):
        app = press_draw(self.in_rho(mechanism="stability_histogram"))
        assert "takes an ApproxBudget" in errors(app)
        assert entries() == []
        assert trips_drawn(app) is None


class TestTwoMechanisms:
    def test_one_press_needs_room_for_both(self):
        app = trips_app(CURATE_TRIPS | {"beside": "flat_gaussian"})
        labelled(app.number_input, "Cap, ε").set_value(1.5)
        assert "it takes ε 2, δ 2e-8" in warnings(good(app.run()))
        assert app.button(key="draw").disabled

    def test_the_first_is_kept_where_the_second_fails(self, monkeypatch):
        real, calls = publish.draw, []

        def once(order, ledger, **options):
            calls.append(order)
            if len(calls) == 2:
                raise DpvizError("no more today")
            return real(order, ledger, **options)

        monkeypatch.setattr(publish, "draw", once)
        app = press_draw(trips_app(CURATE_TRIPS | {"beside": "flat_gaussian"}))
        assert "no more today" in errors(app)
        assert [run.title for run in trips_drawn(app).runs] == ["TopDown (InfTDA)"]
        assert len(entries()) == 1


def looks():
    """Look at one file, counted in two public frames."""
    from types import SimpleNamespace  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.session.ledger import record_public_look  # noqa: PLC0415

    for counts in ("a" * 64, "b" * 64):
        assert record_public_look(SimpleNamespace(digest="file", fingerprints=("f" * 64, counts), bundled=False))


class TestTruth:
    def test_a_look_at_each_count_of_a_file_is_recorded(self):
        fine(AppTest.from_function(looks).run())
        assert all(Ledger().seen([letter * 64]) for letter in "fab")

    def test_truth_seen_in_teach_in_another_tab_before_the_account_existed_is_recorded_with_it(self):
        fine(press_draw(points_app(SMALL)))
        app = points_app(CURATE)
        assert "The truth was looked at." in captions(app)
        fine(press_draw(app))
        assert account().truth_seen

    def test_truth_seen_in_teach_afterwards_is_recorded_at_once(self):
        fine(press_draw(points_app(CURATE)))
        assert not account().truth_seen
        fine(press_draw(points_app(SMALL)))
        assert account().truth_seen
