"""Advice of errors in the words of the app: which control helps, in place of the argument that helps in Python."""

from __future__ import annotations

from dpviz.errors import reword

_WORDS = (
    (r"pass bad_rows='drop' to leave such rows out", "switch on “Leave out bad rows”"),
    (r"(?:,? or )?(?:choose|by) engine='numpy'( only)?", r"; the engine NumPy reads them\1"),
    (r", or choose 'numpy'", ", or choose the engine NumPy"),
    (r"choose engine='numpy' for others", "choose the engine NumPy for others"),
    (r"only engine='numpy'", "only the engine NumPy"),
    (
        r"Read it in parts with engine='duckdb' \(by its path\)",
        "Type its path in place of the upload and choose the engine DuckDB",
    ),
    (r", or pass limits=dv\.reading\.Limits\(memory_bytes=\.\.\.\)", ""),
    (r"choose engine='dask'", "choose the engine Dask"),
    (r"Say which one it is with count='\.\.\.'", "Choose it at “How many trips does a row stand for?”"),
    (r"Say which one it is with \w+='\.\.\.' and \w+='\.\.\.'", "Choose them under “Columns”"),
    (r"Say which one it is with \{?\w+\}?='\.\.\.'", "Choose it under “Columns”"),
    (r", and its weight is not to count, say so with count='none'", ", choose “Each row is one …” on the left"),
    (r", or leave count out if each row is one", ""),
    (r"pass crs=\.\.\., (?:such as crs=|say )'EPSG:4326'", "say it under “CRS of the coordinates”, for example EPSG:4326"),
    (r"pass crs=\.\.\., or rename them", "rename them, or take a file that states it"),
    (r"declares another CRS than crs=\.\.\.; leave crs out", "declares another CRS than the one typed; leave it empty"),
    (r"declare geometry='([^']*)' instead", "choose it under “Columns”"),
    (r", in Python insecure_address=True", ""),
    (r"Pass levels=\[\.\.\.\], the columns of ids", "Choose the columns of ids"),
    (r"[Pp]ass levels=\[\.\.\.\]", "choose the columns of ids"),
    (r"with quoted_newlines=True: one malformed", "with line ends within cells: one malformed"),
    (r", and read them without quoted_newlines", ""),
    (
        (
            r'Count again, with person="column" and contributions=m to protect each person; or with unit="record" \(of trips unit="trip"\)'
            " to protect"
        ),
        "Say whom the release protects: each person, by a column; or each record, to protect",
    ),
    (r", or pass quoted_newlines=True, which studies allow and releases do not", ""),
    (r"pass copies=True", "tick “Count copies, too”"),
    (
        r"declare that everybody has exactly that many \(exactly=True\), or choose neighbours='add_remove'",
        "switch on “Everybody has exactly that many”, in Whom or Data, or choose add_remove under “Neighbours”, in Method",
    ),
    (r"leave out the study area \(the mask of the domain\)", "let people be anywhere in the domain"),
    (r"contributions above 1, or distinct=True, need", "More than one record per person, or one per cell, needs"),
    (
        r"in a text table, declare text_format=\S+ \(or another mark\) or text_format=[^;]+",
        "in a text table, choose “Thousands mark of counts”, or the decimal mark, under “How the file is written”",
    ),
    (
        r"declare the encoding in which it was saved, such as text_format=[^;]+",
        "choose the encoding in which it was saved under “How the file is written”",
    ),
    (r'declare text_format=dv\.reading\.TextFormat\(decimal=","\)', "choose the mark under “How the file is written”"),
    (r'declare text_format=dv\.reading\.TextFormat\(thousands=","\)', "choose their mark under “How the file is written”"),
    (r'declare text_format=dv\.reading\.TextFormat\(encoding="[^"]+"\)', "choose it under “How the file is written”"),
    (
        r'declare text_format=dv\.reading\.TextFormat\(separator="[^"]+"\), and decimal="," in it',
        "choose it under “How the file is written”, and the mark",
    ),
    (
        r"are the coordinates metres of a projected CRS\?",
        "are the coordinates metres of a projected CRS? Then type that one as the CRS of the coordinates, or choose other columns",
    ),
    (r"pass centroids=True|centroids=True", "switch on “Polygons by their centroid”"),
    (
        r"If data without records are right, pass may_be_empty=True",
        "If there really is no record, a saved configuration can say so, for the command line",
    ),
)


def advise_in_app(text: str) -> str:
    """Return the text of an error with its advice for Python in the words of the app.

    >>> advise_in_app("Column 'n' has a negative count. Correct the data, or pass bad_rows='drop' to leave such rows out.")
    "Column 'n' has a negative count. Correct the data, or switch on “Leave out bad rows”."
    """
    return reword(text, _WORDS)
