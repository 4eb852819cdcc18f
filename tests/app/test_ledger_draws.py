"""Draws in Curate that are paid for in rho, two at once, or after the truth was seen."""

from dpviz.app import ledger as curate
from dpviz.errors import DpvizError
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.publishing import publish
from tests.app.walk import (
    CURATE,
    FLIGHTS,
    SMALL,
    account,
    captions,
    drawn_layer,
    entries,
    errors,
    fine,
    good,
    labelled,
    pages_app,
    points_app,
    press_draw,
    trips_app,
    trips_drawn,
    warnings,
)

TRIPS = FLIGHTS | {"mode": "Curate"}


class TestRho:
    def in_rho(self, link=TRIPS, cap=0.05):
        app = trips_app(link)
        labelled(app.segmented_control, "The ledger counts").set_value("ρ").run()
        labelled(app.number_input, "Cap, ρ").set_value(cap)
        return good(app.run())

    def test_gaussian_noise_is_paid_for_in_rho(self):
        app = fine(press_draw(self.in_rho()))
        paid = ApproxBudget(1, "1e-8").to_zcdp()
        assert entries()[0].budget == paid
        assert account().terms.cap == ZcdpBudget("0.05")
        assert trips_drawn(app).releases[0].receipt.total == paid
        assert f"ρ {float(paid.rho):g}. The next draw makes it ρ {2 * float(paid.rho):g}, of ρ 0.05" in captions(app)

    def test_a_mechanism_without_a_price_in_rho_is_refused_and_nothing_is_spent(self):
        app = press_draw(self.in_rho(TRIPS | {"mechanism": "stability_histogram"}))
        assert "takes an ApproxBudget" in errors(app)
        assert entries() == []
        assert trips_drawn(app) is None


class TestTwoMechanisms:
    def test_one_press_needs_room_for_both(self):
        app = trips_app(TRIPS | {"beside": "flat_gaussian"})
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
        app = press_draw(trips_app(TRIPS | {"beside": "flat_gaussian"}))
        assert "no more today" in errors(app)
        assert trips_drawn(app).titles == ("TopDown (InfTDA)",)
        assert len(entries()) == 1


class TestTruth:
    def test_it_is_not_shown_where_that_cannot_be_recorded(self, ledger_path):
        app = press_draw(points_app(CURATE))
        ledger_path.write_bytes(b"")
        app = good(labelled(app.toggle, "Show curator-only truth").set_value(True).run())
        assert "The truth is not shown" in errors(app)
        assert "t" not in drawn_layer(app)["data"][0]

    def test_truth_seen_in_teach_before_the_account_existed_is_recorded_with_it(self):
        app = press_draw(points_app(SMALL))
        app.segmented_control(key="mode").set_value("Curate").run()
        fine(press_draw(app))
        assert account().truth_seen

    def test_truth_seen_in_teach_in_another_tab_before_the_account_existed_is_recorded_with_it(self):
        fine(press_draw(points_app(SMALL)))
        assert "The truth was looked at." in captions(points_app(CURATE))
        fine(press_draw(points_app(CURATE)))
        assert account().truth_seen

    def test_truth_seen_in_teach_afterwards_is_recorded_at_once(self):
        fine(press_draw(points_app(CURATE)))
        assert not account().truth_seen
        fine(press_draw(points_app(SMALL)))
        assert account().truth_seen

    def test_what_is_kept_for_publishing_has_an_end(self, monkeypatch):
        monkeypatch.setattr(curate, "MOST_KEPT", 2)
        app = pages_app()
        for _ in range(3):
            fine(press_draw(app))
        assert [made.paid.entry for made in app.session_state["kept draws"]] == [2, 3]
