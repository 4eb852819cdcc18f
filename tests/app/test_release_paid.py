"""Publishing a draw that is already paid for, and trips."""

import dpviz as dv
from dpviz.privacy.ledger import Ledger
from tests.app.release_walk import PAID, at_release, kept, publish, published, read_back, write_texts
from tests.app.walk import CURATE, FLIGHTS, captions, entries, fine, go, good, infos, labelled, pages_app, press_draw


class TestPaidDraw:
    def test_it_is_published_as_it_was_drawn_and_costs_nothing(self, tmp_path):
        app = at_release(draws=2)
        fine(labelled(app.segmented_control, "What").set_value(PAID).run())
        app.selectbox(key="release draw").select_index(1)
        fine(publish(write_texts(app)))
        assert [(entry.purpose, entry.published is not None) for entry in entries()] == [("draw", True), ("draw", False)]
        assert published(app).manifest["dataset"]["draws"] == 2
        assert (read_back(app, tmp_path).noisy == kept(app)[0].paid.release.noisy).all()
        fine(labelled(app.button, "Publish something else").click().run())
        assert [title.endswith("published") for title in app.selectbox(key="release draw").options] == [False, True]

    def test_no_next_draw_is_spoken_of(self):
        app = at_release(draws=1)
        fine(labelled(app.segmented_control, "What").set_value(PAID).run())
        assert "The cap is ε 10" in captions(app)
        assert "The next draw" not in captions(app)

    def test_that_the_truth_was_looked_at_is_published(self):
        app = pages_app("points", CURATE)
        fine(press_draw(app))
        fine(labelled(app.toggle, "Show curator-only truth").set_value(True).run())
        fine(go(app, "release"))
        fine(labelled(app.segmented_control, "What").set_value(PAID).run())
        fine(publish(write_texts(app)))
        assert published(app).manifest["implementation"]["tuning"]["truth_seen"]

    def test_a_draw_whose_ledger_is_gone_is_not_published(self, ledger_path):
        app = at_release(draws=1)
        fine(labelled(app.segmented_control, "What").set_value(PAID).run())
        ledger_path.unlink()
        assert "has no account of this draw any more" in infos(good(app.run()))
        assert app.button(key="publish").disabled


class TestTrips:
    def test_trips_are_published_too(self, tmp_path):
        app = at_release(FLIGHTS | {"mode": "Curate"}, page="trips")
        assert "flights" in captions(app)
        fine(publish(write_texts(app)))
        back, drawn = read_back(app, tmp_path), kept(app)[0].paid.release
        assert isinstance(back, dv.FlowRelease)
        assert all((one.count == other.count).all() for one, other in zip(back.stages, drawn.stages, strict=True))
        assert Ledger().accounts()[0].spent["epsilon"] == 1

    def test_of_two_mechanisms_the_first_is_drawn_anew(self):
        app = at_release(FLIGHTS | {"mode": "Curate", "beside": "flat_gaussian"}, page="trips")
        fine(publish(write_texts(app)))
        assert [entry.mechanism for entry in entries()] == ["top_down"]
