"""Pages of help: how they are cut, and what a search finds and marks."""

import pytest

from dpviz.errors import InputError
from dpviz.view.help import LONGEST_QUERY, MOST_HITS, Link, page_of, pages, search

TEXT = """# Boats

Rowing and *sailing*, with **care**.

## How to row

Take two `oars`. See [the sea](sea.md) and [its tides](sea.md#tides), and [the sea](sea.md) again.

![A boat](../../assets/boat.webp)

```sh
## no heading
row homes/*.csv and sail_*.csv
```

## Knots

| knot | use |
|---|---|
| bowline | a loop |

* reef knot
"""
BOATS = page_of("boats", TEXT)


def words(pieces):
    return [piece for piece, is_word in pieces if is_word]


def test_headings_but_not_lines_of_code_cut_a_page_and_links_pictures_and_signs_are_taken_out():
    boats, rowing, knots = BOATS.sections
    assert [(each.key, each.title) for each in BOATS.sections] == [("", "Boats"), ("how-to-row", "How to row"), ("knots", "Knots")]
    assert rowing.links == (Link(page="sea"), Link(page="sea", section="tides")), "once each"
    assert "See *the sea* and *its tides*" in rowing.body
    assert "boat.webp" not in rowing.body
    assert boats.text == "Rowing and sailing, with care."
    assert "row homes/*.csv and sail_*.csv" in rowing.text
    assert knots.text == "knot use bowline a loop reef knot"
    with pytest.raises(InputError, match="title"):
        page_of("boats", "Rowing.\n")


def titles_of(query, page=BOATS):
    return [hit.section.title for hit in search(query, [page])]


def test_all_words_must_be_there_in_any_case_and_order_also_within_longer_ones():
    assert titles_of("LOOP knot bow") == ["Knots"]
    for nothing in ("", "  \t", "bowline zeppelin", ".*"):
        assert titles_of(nothing) == []


def test_words_in_the_heading_count_more_hits_are_few_and_a_long_query_is_cut():
    tea = page_of("tea", "# Drinks\n\n## Hot\n\nTea.\n\n## Tea\n\nLeaves.\n")
    assert titles_of("tea", tea) == ["Tea", "Hot"]
    many = page_of("many", "# Many\n\n" + "".join(f"## Part {number}\n\nword\n\n" for number in range(2 * MOST_HITS)))
    assert len(search("word", [many])) == MOST_HITS
    assert search("word " * LONGEST_QUERY + "zeppelin", [many])


def test_words_are_marked_as_they_are_written_the_longest_of_two_that_overlap_and_signs_as_signs():
    hit = search("row", [BOATS])[0]
    assert (words(hit.title), words(hit.excerpt)) == (["row"], ["row"])
    assert " ".join(word for word, _ in hit.title) == "Boats: How to row"
    assert words(search("/*.csv", [BOATS])[0].excerpt) == ["/*.csv"]
    assert words(search("knot knots", [BOATS])[0].title) == ["Knots"]


def test_a_long_text_is_cut_around_the_first_word():
    page = page_of("long", f"# Long\n\n{'early ' * 200}needle {'late ' * 200}\n")
    excerpt = "".join(piece for piece, _ in search("needle", [page])[0].excerpt)
    assert excerpt.startswith("... early")
    assert excerpt.endswith("late ...")
    assert len(excerpt) < 400


def test_every_section_of_every_page_is_found_by_its_own_heading():
    for page in pages().values():
        for section in page.sections[1:]:
            assert (page.key, section.key) in [(hit.page.key, hit.section.key) for hit in search(f"{page.title} {section.title}")]
