"""The pages of Teach without a mouse, without sight, on a phone, at 200 %, on paper, without motion, and in a class."""

import itertools
import re

import pytest

from tests.app.browse import live_map, open_drawer, pane_colours, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
USUAL, DOUBLE, PHONE = (1400, 900), (700, 450), (390, 844)
CODE = "code-of-class"
IN_FOCUS = """() => { let found = document.activeElement;
  while (found.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
  return found.getAttribute('aria-label') || found.innerText.split('\\n').pop(); }"""
UNSEEN = "style, .dpviz-skip, .dpviz-unseen, [href='#stMain'], .live, .title, .tools, [data-testid=stIconMaterial]"
SEEN_WORDS = r"""(unseen) => { const words = [];
  const walk = (node) => node.childNodes.forEach((child) => {
    if (child.nodeType === 3 && node.checkVisibility({ visibilityProperty: true })) words.push(...(child.data.match(WORD) ?? []));
    else if (child.nodeType === 1 && !child.matches(unseen)) [child.shadowRoot, child].forEach((root) => root && walk(root));
  });
  const WORD = /\p{L}+|[\d.,]*\d/gu;
  walk(document.body);
  return words; }"""
MOVING = """() => { const found = [];
  for (const host of document.querySelectorAll('*')) for (const each of host.shadowRoot?.querySelectorAll('*') ?? []) {
    const style = getComputedStyle(each);
    if (style.transitionDuration !== '0s' || style.animationName !== 'none') found.push(each.className);
  }
  return found; }"""


@pytest.fixture(scope="module")
def loaded(chromium, address):
    """`loaded(name)` gives a page that was loaded once for all tests, in a window of the usual size."""
    pages = {}

    def load(name, size=USUAL):
        if name not in pages:
            pages[name] = chromium.new_page(viewport=dict(zip(("width", "height"), size, strict=True)))
            pages[name].set_default_timeout(40_000)
            pages[name].goto(f"{address}/{name}")
        page = pages[name]
        page.emulate_media(media="screen", reduced_motion="no-preference")
        page.set_viewport_size({"width": size[0], "height": size[1]})
        live_map(page)
        page.locator(".chip").nth(1).wait_for()
        return page

    yield load
    for page in pages.values():
        page.close()


@pytest.fixture(params=["points", "trips", "areas"])
def name(request):
    return request.param


def box(page, selector):
    return page.locator(selector).first.bounding_box()


def bottom(place):
    return place["y"] + place["height"]


def check_width(page):
    """Nothing is wider than the window."""
    main = page.get_by_test_id("stMain")
    until(lambda: main.evaluate("main => main.scrollWidth <= main.clientWidth"), "no scrolling to the right")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_apart(page, *selectors):
    """No two of some places overlap."""
    places = {selector: box(page, selector) for selector in selectors}
    for one, other in itertools.combinations(places, 2):
        a, b = places[one], places[other]
        beside = a["x"] + a["width"] <= b["x"] + 1 or b["x"] + b["width"] <= a["x"] + 1
        assert beside or bottom(a) <= b["y"] + 1 or bottom(b) <= a["y"] + 1, (one, a, other, b)


def test_tab_stops_at_most_thirty_times_of_which_the_two_links_come_first(loaded):
    page, stops = loaded("points"), []
    page.evaluate("document.activeElement.blur()")
    while len(stops) < 2 or stops[-1] != stops[0]:
        page.keyboard.press("Tab")
        stops.append(page.evaluate(IN_FOCUS))
        assert len(stops) < 60
    assert stops[:2] == ["To the map", "To ε"]
    own = [stop for stop in stops[:-1] if stop != "Main menu"]
    assert len(own) <= 30, own
    assert all(own)


def test_a_page_has_at_most_two_hundred_words(loaded):
    words = loaded("points").evaluate(SEEN_WORDS, UNSEEN)
    assert 100 < len(words) <= 200, words


def test_readers_find_a_heading_per_part_and_menus_by_their_names(loaded, name):
    page = loaded(name)
    assert page.get_by_role("heading", level=1).all_inner_texts() == [name.capitalize()]
    open_drawer(page, "Method")
    assert page.get_by_role("heading", level=2).all_inner_texts() == ["Method"]
    for part in ("input", "button"):
        names = lambda part=part: page.locator(f"[data-testid=stSelectbox] {part}").evaluate_all("all => all.map((each) => each.ariaLabel)")  # noqa: E731
        until(lambda names=names: "Open" not in names(), "which menu an arrow opens")
        assert len(set(names())) == len(names()) >= 3
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Method", exact=True).wait_for(state="detached")


def test_at_200_percent_all_can_be_reached_and_nothing_overlaps(loaded, name):
    page = loaded(name, DOUBLE)
    check_width(page)
    for opened in (False, True):
        if opened:
            open_drawer(page, "Method")
        until(lambda: bottom(box(page, ".fills .tools")) <= bottom(box(page, ".canvas")), "tools on the map")
        check_apart(page, ".st-key-first-row", ".canvas", ".said", ".slider", ".chip", ".st-key-status", ".st-key-drawer")
        check_apart(page, ".st-key-pane-0", ".st-key-pane-1", ".fills .tools")
        for part in (".chip >> nth=-1", ".slider", ".said", ".st-key-drawer", ".canvas"):
            page.locator(part).first.scroll_into_view_if_needed()
        check_width(page)
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Method", exact=True).wait_for(state="detached")


def test_on_a_phone_maps_come_first_then_the_rail_with_its_chips_and_drawers_below(loaded, name):
    page = loaded(name, PHONE)
    until(lambda: box(page, ".canvas")["width"] == PHONE[0], "maps below each other")
    check_width(page)
    places = [box(page, selector) for selector in (".canvas", ".said", ".slider", ".chip", ".st-key-drawer")]
    assert all(bottom(above) <= below["y"] + 1 for above, below in itertools.pairwise(places)), places
    assert places[2]["y"] - bottom(places[0]) < 120, "ε directly under the map"


def test_paper_has_maps_with_titles_and_legends_sentence_and_epsilon_and_no_controls(loaded, name):
    page = loaded(name)
    page.emulate_media(media="print")
    check_width(page)
    assert all(title.bounding_box()["width"] > 20 for title in page.locator(".canvas .title").all())
    for seen in (".canvas .legend:not(:empty)", ".said", ".rail .name", ".chip"):
        assert page.locator(seen).first.is_visible()
    for control in (".st-key-first-row", ".st-key-drawer", ".st-key-pane-0", ".canvas .tools", ".split", ".dpviz-skip"):
        assert not page.locator(control).first.is_visible(), control
    assert min(pane_colours(page)) > 50
    page.emulate_media(media="screen")


def test_where_motion_is_not_wanted_nothing_of_ours_moves(loaded):
    page = loaded("points")
    assert page.evaluate(MOVING) != []
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(MOVING) == []
    assert page.locator(".st-key-map").evaluate("map => getComputedStyle(map).transitionDuration") == "0s"


def test_in_a_class_points_have_maps_and_the_rail_and_nothing_private(chromium, launch):
    words = ["dpviz", "app", "--class", "--host", "127.0.0.1", "--headless", "--sessions=2"]
    _, port, _ = launch(lambda port: [*words, f"--port={port}"], {"DPVIZ_CLASS_CODE": CODE})
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    page.set_default_timeout(40_000)
    page.goto(f"http://127.0.0.1:{port}/?token={CODE}")
    page.get_by_role("link", name="Points", exact=True).click()
    until(lambda: min(pane_colours(page)) > 50, "both maps")
    page.get_by_role("slider", name="Budget ε", exact=True).press("Home")
    page.get_by_text(re.compile("ε 0.01, run 1")).first.wait_for()
    open_drawer(page, "Data")
    for private in (
        page.get_by_role("radio", name="Curate"),
        page.get_by_test_id("stFileUploader"),
    ):
        assert private.count() == 0
    page.close()
