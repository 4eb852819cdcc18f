r"""Escape texts from files, users and links before they are shown: names, ids, columns, categories, descriptions, file names.

There is one function per target: Markdown, HTML, deck.gl data, plain lines. The text looks the same afterwards: where a character
cannot be escaped, an invisible word joiner (U+2060) separates it from its neighbour.

>>> markdown("A*B_c"), html("A<b>"), line("a\nb\x1b[31m")
('A\\*B\\_c', 'A&lt;b&gt;', 'a b\ufffd[31m')
"""

from __future__ import annotations

import re
from html import escape

_WORD_JOINER = "\u2060"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&=^])")
# Streamlit replaces more after it has read the Markdown, where backslashes no longer help: emoji, icons and colours between colons, links
# made of addresses, arrows and dashes. Texts such as EPSG:4326 and 17:37 are left alone, so that they can be copied.
_REPLACED_BY_STREAMLIT = re.compile(r"(?<=:)(?=[^\s:]*[:/\[])|(?<=@)(?=\S)|(?<=www)(?=\.)|(?<=[-<>~])(?=[-=>])", re.IGNORECASE)
# deck.gl evaluates texts that begin with @@ as expressions; its tooltips replace {fields} and are read as HTML.
_INTERPRETED_BY_DECK = re.compile(r"(?<=@)(?=@)|(?<=[<{])(?=\S)")
_DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\ufeff]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: object) -> str:
    """Replace control characters, bidirectional controls and lone surrogates. Line breaks are kept."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _DIRECTION_MARKS.sub("", str(text)))


def line(text: object) -> str:
    """Clean a text and join its lines: for charts, alternative texts, tables and the terminal, which interpret no markup."""
    return clean(" ".join(str(text).split()))


def markdown(text: object) -> str:
    """Escape a text for Streamlit's Markdown: bodies, labels, help, captions, messages and button labels."""
    return _MARKDOWN.sub(r"\\\1", _REPLACED_BY_STREAMLIT.sub(_WORD_JOINER, line(text)))


def html(text: object) -> str:
    """Escape a text for HTML elements, quoted attributes and tooltip templates."""
    return escape(clean(text)).replace("{", "&#123;")


def deck(text: object) -> str:
    """Escape a text for the data of a deck.gl map."""
    return _INTERPRETED_BY_DECK.sub(_WORD_JOINER, line(text))
