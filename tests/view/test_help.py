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


class TestPageOf:
    def test_headings_cut_it_but_not_lines_of_code(self):
        assert [(section.key, section.title) for section in BOATS.sections] == [
            ("", "Boats"),
            ("how-to-row", "How to row"),
            ("knots", "Knots"),
        ]

    def test_links_to_pages_are_taken_out_once_each_and_their_texts_stay(self):
        section = BOATS.sections[1]
        assert section.links == (Link(page="sea"), Link(page="sea", section="tides"))
        assert "See *the sea* and *its tides*" in section.body

    def test_pictures_are_left_out(self):
        assert "boat.webp" not in BOATS.sections[1].body

    def test_the_text_that_is_searched_has_no_signs_of_markdown_and_all_of_the_code(self):
        assert BOATS.sections[0].text == "Rowing and sailing, with care."
        assert "row homes/*.csv and sail_*.csv" in BOATS.sections[1].text
        assert BOATS.sections[2].text == "knot use bowline a loop reef knot"

    def test_a_page_without_a_title_is_refused(self):
        with pytest.raises(InputError, match="title"):
            page_of("boats", "Rowing.\n")


class TestSearch:
    @pytest.mark.parametrize("query", ["", "  \t", "bowline zeppelin"])
    def test_nothing_is_found(self, query):
        assert search(query, [BOATS]) == []

    def test_all_words_must_be_there_in_any_case_and_order_also_within_longer_ones(self):
        assert [hit.section.title for hit in search("LOOP knot bow", [BOATS])] == ["Knots"]

    def test_a_word_in_the_heading_counts_more_than_the_order_of_sections(self):
        page = page_of("tea", "# Drinks\n\n## Hot\n\nTea.\n\n## Tea\n\nLeaves.\n")
        assert [hit.section.title for hit in search("tea", [page])] == ["Tea", "Hot"]

    def test_words_are_marked_in_title_and_text_as_they_are_written_there(self):
        hit = search("row", [BOATS])[0]
        assert (words(hit.title), words(hit.excerpt)) == (["row"], ["row"])
        assert " ".join(word for word, _ in hit.title) == "Boats: How to row"

    def test_signs_of_regular_expressions_are_signs(self):
        assert words(search("/*.csv", [BOATS])[0].excerpt) == ["/*.csv"]
        assert search(".*", [BOATS]) == []

    def test_the_longer_of_two_words_that_overlap_is_marked(self):
        assert words(search("knot knots", [BOATS])[0].title) == ["Knots"]

    def test_a_long_text_is_cut_around_the_first_word(self):
        page = page_of("long", f"# Long\n\n{'early ' * 200}needle {'late ' * 200}\n")
        excerpt = "".join(piece for piece, _ in search("needle", [page])[0].excerpt)
        assert excerpt.startswith("... early")
        assert excerpt.endswith("late ...")
        assert len(excerpt) < 400

    def test_hits_are_few_and_a_long_query_is_cut(self):
        page = page_of("many", "# Many\n\n" + "".join(f"## Part {number}\n\nword\n\n" for number in range(2 * MOST_HITS)))
        assert len(search("word", [page])) == MOST_HITS
        assert search("word " * LONGEST_QUERY + "zeppelin", [page])


def test_every_section_of_every_page_is_found_by_its_own_heading():
    for page in pages().values():
        for section in page.sections[1:]:
            assert (page.key, section.key) in [(hit.page.key, hit.section.key) for hit in search(f"{page.title} {section.title}")]
