"""The pages of help: Markdown files of `dpviz/docs`, cut into sections, searched, and with the found words marked.

A page is `<key>.md`. Its first line is its title, and each `## ` heading begins a section. Pages link to each other as files do, as in
`[text](engines.md)` or `[text](reading.md#people)`, so that they can be read without the app, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from dpviz.errors import InputError

PAGES = (
    "start",
    "first_release",
    "trips_tutorial",
    "comparing",
    "choosing",
    "notebooks",
    "recipes",
    "reading",
    "engines",
    "areas",
    "mechanisms",
    "protection",
    "threats",
    "publishing",
    "ledger",
    "studies",
    "papers",
    "auditing",
    "app",
    "worksheet",
    "hosting",
    "commands",
    "glossary",
    "changes",
)
"""The keys of all pages, in the order in which they are listed."""
LONGEST_QUERY = 100
MOST_HITS = 20
_EXCERPT = 280
_FENCE = "```"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\w+)\.md(?:#([\w-]+))?\)")
_PICTURE = re.compile(r"^!\[.*\]\(.*\)\n+", re.MULTILINE)
_MARKDOWN_SIGNS = re.compile(r"^```\w*$|^[-|: ]+$|[`|]|^#+ |^\* |\*\*", re.MULTILINE)
_ITALIC = re.compile(r"(?<![\w/])\*(?=\S)([^*\n]+)\*(?!\w)")


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link from a section to a page of help, or to a section of it.

    Attributes:
        page: the key of the page.
        section: the key of the section, empty for the whole page.
    """

    page: str
    section: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """The text under one heading.

    Attributes:
        key: the heading in lower case, with hyphens; empty for the section above the first heading.
        title: the heading; for the section above the first heading, the title of the page.
        body: the section's Markdown, with the texts of links to other pages in italics and without pictures.
        links: the links to other pages, in the order of the text, each once.
        text: the section's words without the signs of Markdown, on one line; a search looks here.
    """

    key: str
    title: str
    body: str
    links: tuple[Link, ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of help.

    Attributes:
        key: the name of its file without the ending.
        title: first line of the file.
        sections: the section above the first heading, then one per heading.
    """

    key: str
    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A section in which a search found all words.

    Attributes:
        page: the page of the section.
        title: the words of "page: heading"; each with True if it contains a word of the query, else False.
        excerpt: pieces of the text around the first word that was found; each with True if it is a word of the query, else False.
    """

    page: Page
    section: Section
    title: tuple[tuple[str, bool], ...]
    excerpt: tuple[tuple[str, bool], ...]


@cache
def pages() -> dict[str, Page]:
    """Read all pages by key, in the order of `PAGES`; each page is read once."""
    folder = files("dpviz") / "docs"
    return {key: page_of(key, (folder / f"{key}.md").read_text("utf-8")) for key in PAGES}


def page_of(key: str, markdown: str) -> Page:
    r"""Cut the Markdown of a page into sections.

    Args:
        key: of the page.
        markdown: begins with the title, as a heading of the first level.

    Raises:
        InputError: the text does not begin with a title.

    >>> page = page_of("tea", "# Tea\n\nHot.\n\n## How long\n\nSee [water](water.md).\n")
    >>> [section.title for section in page.sections], page.sections[1].key, page.sections[1].body
    (['Tea', 'How long'], 'how-long', 'See *water*.')
    """
    first, _, rest = markdown.partition("\n")
    if not first.startswith("# "):
        raise InputError("A page of help begins with its title: a line with # and a space.")
    title = first[2:].strip()
    sections = tuple(_make_section(heading, body, title) for heading, body in _split_sections(rest))
    return Page(key=key, title=title, sections=sections)


def search(query: str, among: Sequence[Page] | None = None) -> list[Hit]:
    r"""Find sections that contain all words of a query, ignoring case; sections with more of the words in their heading come first.

    Args:
        query: words between blanks; at most the first `LONGEST_QUERY` characters count. A word is found inside longer ones, too.
        among: the pages to search; all of them if None.

    Returns:
        At most `MOST_HITS`; none for a query without words.

    >>> tea = page_of("tea", "# Tea\n\nHot.\n\n## How long\n\nThree minutes in hot water.\n")
    >>> [hit.section.title for hit in search("HOT wat", [tea])], search("hot", [tea])[0].excerpt
    (['How long'], (('Hot', True), ('.', False)))
    """
    words = sorted(set(query[:LONGEST_QUERY].lower().split()), key=len, reverse=True)
    if not words:
        return []
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    hits: list[tuple[int, Hit]] = []
    for page in pages().values() if among is None else among:
        for section in page.sections:
            heading = f"{page.title}: {section.title}" if section.key else page.title
            if all(word in f"{heading} {section.text}".lower() for word in words):
                title = tuple((word, pattern.search(word) is not None) for word in heading.split())
                hit = Hit(page=page, section=section, title=title, excerpt=_excerpt(section.text, pattern))
                hits.append((-sum(word in section.title.lower() for word in words), hit))
    return [hit for _, hit in sorted(hits, key=lambda item: item[0])][:MOST_HITS]


def _split_sections(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield heading and body of each section; lines of code that look like headings are ignored."""
    lines: list[str] = []
    heading, in_code = "", False
    for line in markdown.splitlines():
        in_code ^= line.startswith(_FENCE)
        if line.startswith("## ") and not in_code:
            yield heading, "\n".join(lines)
            heading, lines = line[3:].strip(), []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def _make_section(heading: str, body: str, page_title: str) -> Section:
    links = tuple(dict.fromkeys(Link(page=page, section=section) for _, page, section in _LINK.findall(body)))
    body = _LINK.sub(r"*\1*", _PICTURE.sub("", body)).strip()
    text = " ".join(_ITALIC.sub(r"\1", _MARKDOWN_SIGNS.sub("", body)).split())
    return Section(key=section_key(heading), title=heading or page_title, body=body, links=links, text=text)


def section_key(heading: str) -> str:
    """Return the key of a heading, which links use.

    >>> section_key("What a billion records cost")
    'what-a-billion-records-cost'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _excerpt(text: str, pattern: re.Pattern[str]) -> tuple[tuple[str, bool], ...]:
    """Cut out the text around the first word that is found, if possible without cutting words, and mark the words of the query."""
    first = pattern.search(text)
    start = max(0, (first.start() if first else 0) - _EXCERPT // 3)
    start = text.find(" ", start) + 1 if start else 0
    end = start + _EXCERPT
    end = max(text.rfind(" ", start, end), start + _EXCERPT // 2) if end < len(text) else len(text)
    return _mark_words(f"{'... ' if start else ''}{text[start:end]}{' ...' if end < len(text) else ''}", pattern)


def _mark_words(text: str, pattern: re.Pattern[str]) -> tuple[tuple[str, bool], ...]:
    """Cut a text into pieces, each with whether it is one of the words."""
    pieces, end = [], 0
    for match in pattern.finditer(text):
        pieces += [(text[end : match.start()], False), (match.group(), True)]
        end = match.end()
    return tuple((piece, is_word) for piece, is_word in [*pieces, (text[end:], False)] if piece)
