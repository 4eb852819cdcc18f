"""Advice of errors in the words of a configuration: which key helps, in place of the argument that helps in Python."""

from __future__ import annotations

from dpviz.errors import reword

_LEVELS = 'levels = ["county", "tract"]'
_CRS = 'write crs = "EPSG:4326", say, beside its name'
_WORDS = (
    (r"Pass levels=\[\.\.\.\], the columns of ids", f"Write {_LEVELS} under [regions], with its columns of ids"),
    (r"pass levels=\[\.\.\.\]", f"write {_LEVELS} under [regions]"),
    (r"pass crs=\.\.\., (?:such as crs=|say )'EPSG:4326'", _CRS),
    (r"pass crs=\.\.\.", _CRS),
    (r"another CRS than crs=\.\.\.; leave crs out", "another CRS than the key crs; leave crs out"),
    (r", or pass bad_rows='drop' to leave such rows out", ""),
    (r", or pass limits=dv\.reading\.Limits\(memory_bytes=\.\.\.\)", ""),
    (r" \(by its path\)", ""),
    (
        r'text_format=dv\.reading\.TextFormat\(thousands=","\) \(or another mark\) or text_format=dv\.reading\.TextFormat\(decimal="\."\)',
        'thousands = "," (or another mark) or decimal = "." under [data] (check and init take --thousands and --decimal)',
    ),
    (r'text_format=dv\.reading\.TextFormat\((\w+)=("[^"]+")\)', r"\1 = \2 under [data] (check and init take --\1)"),
    (r'and decimal="," in it', 'and decimal = "," there'),
    (r"engine='(\w+)'", r'engine = "\1"'),
    (
        r"Say which one it is with (\w+)='\.\.\.' and (\w+)='\.\.\.'",
        r'Say which one it is with \1 = "..." and \2 = "..." under [data] (check and init take --\1 and --\2)',
    ),
    (r"Say which one it is with (\w+)='\.\.\.'", r'Say which one it is with \1 = "..." under [data] (check and init take --\1)'),
    (r"declare geometry='([^']*)' instead", r'write geometry = "\1" under [data] (check and init take --geometry)'),
    (r", in Python insecure_address=True", ""),
    (r"with quoted_newlines=True: one malformed", "with quoted_newlines = true: one malformed"),
    (
        (
            r'Count again, with person="column" and contributions=m to protect each person; or with unit="record" \(of trips unit="trip"\)'
            " to protect"
        ),
        (
            'Write person = "column" and contributions = m under [data] to protect each person; or unit = "record" (of trips "trip") under'
            " [dataset] to protect"
        ),
    ),
    (r"pass quoted_newlines=True, which studies allow", "write quoted_newlines = true under [data], which studies allow"),
    (r"pass copies=True", "write copies = true under [data], or give --copies"),
    (r"\(exactly=True\)", "(exactly = true under [data])"),
    (r"choose neighbours='add_remove'", 'write neighbours = "add_remove" under [mechanism]'),
    (r"distinct=True", "distinct = true"),
    (r"pass may_be_empty=True", "write may_be_empty = true under [data]"),
    (r"count='none'", 'count = "none" under [data]'),
    (r"pass centroids=True|centroids=True", "write centroids = true under [data]"),
)


def advise_on_command_line(text: str) -> str:
    """Return the text of an error with its advice for Python in the words of a configuration.

    >>> advise_on_command_line("Rename all but one, or pass levels=[...].")
    'Rename all but one, or write levels = ["county", "tract"] under [regions].'
    """
    return reword(text, _WORDS)
