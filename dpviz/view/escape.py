r"""One door for texts from outside: names, ids, columns, categories, a curator's words, configurations, file names and links.

Whatever shows such a text passes it through the function of the place where it is shown. The text itself looks the same afterwards:
where a sign cannot be escaped, an invisible joint (U+2060) keeps it apart from its neighbour.

>>> markdown("A*B_c"), html("A<b>"), line("a\nb\x1b[31m")
('A\\*B\\_c', 'A&lt;b&gt;', 'a b\ufffd[31m')
"""

from __future__ import annotations

import re
from html import escape

_JOINT = "\u2060"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&=^])")
# What Streamlit makes of a text after Markdown was read, when backslashes are gone: emoji, icons and colours after a colon that another
# sign closes, links from addresses, arrows and dashes from signs. EPSG:4326 and 17:37 stay as they are, so that they can be copied.
_MADE_LATER = re.compile(r"(?<=:)(?=[^\s:]*[:/\[])|(?<=@)(?=\S)|(?<=www)(?=\.)|(?<=[-<>~])(?=[-=>])", re.IGNORECASE)
# deck.gl's JSON takes texts that begin with @@ for expressions; its tooltips fill in {fields}, and may be read as HTML.
_MADE_BY_DECK = re.compile(r"(?<=@)(?=@)|(?<=[<{])(?=\S)")
_TURNING = re.compile("[\u061c\u200e\u200f\ufeff]")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: object) -> str:
    """A text without control characters, signs that turn the direction of writing, and halves of characters; lines stay lines."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", _TURNING.sub("", str(text)))


def line(text: object) -> str:
    """A text as one clean line: for charts, alternative texts, tables and the terminal, which take it as it stands."""
    return clean(" ".join(str(text).split()))


def markdown(text: object) -> str:
    """A text for whatever Streamlit reads as Markdown: bodies, labels, help, captions, messages, and options that are buttons."""
    return _MARKDOWN.sub(r"\\\1", _MADE_LATER.sub(_JOINT, line(text)))


def html(text: object) -> str:
    """A text for HTML, within an element or a quoted attribute, and for the templates of tooltips."""
    return escape(clean(text)).replace("{", "&#123;")


def deck(text: object) -> str:
    """A text among the data of a map."""
    return _MADE_BY_DECK.sub(_JOINT, line(text))
