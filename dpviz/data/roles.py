"""The roles that columns can have: what they are called in the languages of the field, and what a table with such a header can be used for.

This is the only list of names. Readers, `dpviz check`, `dpviz init` and the pages show what it says. It sees names and declared types, which
are public, and never an entry. A name only proposes: it is no proof, so that what is not read is said, too (`unread_columns`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import pyarrow as pa

Pair = tuple[str, str]

_X = {
    *("lon", "lng", "long", "longitude", "x", "easting", "eastings", "longitud", "lengte", "lengtegraad", "laenge", "langengrad"),
    *("laengengrad", "rechtswert", "longitudine", "dlugosc", "经度", "経度", "經度", "долгота"),
}
_Y = {
    *("lat", "latitude", "y", "northing", "northings", "latitud", "breedte", "breedtegraad", "breite", "breitengrad"),
    *("hochwert", "latitudine", "szerokosc", "纬度", "緯度", "широта"),
}
_DEGREES = (_X | _Y) - {"x", "y", "easting", "eastings", "northing", "northings", "rechtswert", "hochwert"}
_LETTER_AXES = {"e": "x", "n": "y", "ost": "x", "nord": "y"}  # only beside a word for coordinates, as in E_KOORD
_COORDINATES = {"coord", "coords", "coordinate", "coordinates", "koord", "koordinate", "koordinaten", "geo", "lv95", "gk", "utm"}

_STARTS = {
    *("origin", "orig", "origen", "origine", "origem", "o", "from", "source", "src", "start", "pickup", "pu", "home", "residence", "h"),
    *("von", "depart", "departure", "dep", "desde", "quelle", "wohnort", "boarding", "begin", "herkunft", "skad", "da", "de", "van"),
}
_ENDS = {
    *("destination", "dest", "destino", "destinazione", "d", "to", "target", "end", "dropoff", "do", "work", "workplace", "w", "nach"),
    *("arrivee", "arrival", "arr", "hasta", "ziel", "arbeitsort", "alighting", "a", "dokad", "naar", "para"),
}
_ONE_WORD_ONLY = {
    "o",
    "d",
    "h",
    "w",
    "a",
    "da",
    "de",
    "do",
    "dep",
    "arr",
    "to",
    "van",
    "para",
    "pu",
}  # of longer names only as a first word
_TWO_SIDES = (  # pairs of names in known sources that share no pattern: LODES, INSEE's commuting tables, taxi trips of New York, ONS
    ("h_geocode", "w_geocode"),
    ("CODGEO", "DCLT"),
    ("COMMUNE", "DCLT"),
    ("PULocationID", "DOLocationID"),
    ("Middle layer Super Output Areas code", "MSOA of workplace code"),
    ("Lower layer Super Output Areas code", "LSOA of workplace code"),
    ("Lower tier local authorities code", "LTLA of workplace code"),
)
_REGIONS = {
    *("region", "area", "geoid", "fips", "county", "tract", "block", "district", "municipality", "zip", "zipcode", "postcode", "h3"),
    *("zone", "gmina", "commune", "comune", "gemeinde", "municipio", "kreis", "bezirk", "geo", "geocode", "codgeo", "plz", "gemeente"),
    *("ward", "parish", "oa", "lsoa", "msoa", "lad", "nuts", "cell", "hex", "locationid", "location"),
}
_IDS = {"id", "ids", "code", "cd", "key", "index", "nr", "no", "num", "geoid", "geocode", "fips", "iso", "iso2", "iso3", "codgeo"}
_NAMES = {
    "name",
    "names",
    "nm",
    "label",
    "libgeo",
    "title",
    "description",
    "desc",
    "note",
    "notes",
    "comment",
    "comments",
    "text",
    "indicator",
}
_TIMES = {
    *("time", "times", "date", "datetime", "timestamp", "timestampms", "ts", "day", "month", "year", "hour", "week", "weekday", "minute"),
    *(
        "datum",
        "zeit",
        "uhrzeit",
        "fecha",
        "hora",
        "heure",
        "jour",
        "data",
        "godzina",
        "periodo",
        "createdate",
        "started",
        "ended",
        "quarter",
    ),
}
_COUNTS = {
    *("count", "counts", "n", "records", "people", "trips", "flow", "flows", "s000", "commuters", "journeys", "passengers", "volume"),
    *("value", "total", "all", "viajes", "anzahl", "population", "boardings", "numero", "nombre", "liczba", "cases", "visits", "persons"),
    *("number", "freq", "frequency", "aantal", "menge", "personas", "pop", "ridership", "quantity", "qty", "effectif", "totale", "fahrten"),
}
READ_AS_TRIPS = ("count", "counts", "flow", "flows", "trips", "s000", "commuters", "journeys", "passengers")
"""Names of columns that are read as the trips of a row without being named; any other one is a question to the curator."""
_COUNT_NAMES = (*READ_AS_TRIPS, "n", "records", "people")
_PERSONS = {"person", "personid", "user", "userid", "uid", "device", "deviceid", "subject", "subjectid", "observerid", "taxiid", "mmsi"}
_WKT = {"geometry", "wkt", "thegeom", "geom", "shape", "polyline", "geojson", "location", "point", "coordinates", "wkb"}
_WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_MOST_LISTED = 8


def fold_name(name: str) -> str:
    """Return a column's name as names are compared: in lower case, without blanks around it."""
    return name.strip().casefold()


def squeeze(name: str) -> str:
    """Return a name without accents, case, blanks and punctuation.

    >>> squeeze(" Längen-Grad "), squeeze("PULocationID")
    ('langengrad', 'pulocationid')
    """
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return "".join(filter(str.isalnum, plain.replace("ł", "l").replace("Ł", "L").casefold()))


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, which blanks, punctuation, digits or capitals part.

    >>> words_of("decimalLongitude"), words_of("Trip Start Timestamp"), words_of("E_KOORD")
    (('decimal', 'longitude'), ('trip', 'start', 'timestamp'), ('e', 'koord'))
    """
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return tuple(word.casefold() for word in _WORDS.findall(plain.replace("ł", "l").replace("Ł", "L")))


def _axis(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the axis that a name says, "x" or "y", and its other words; None if it says neither or both."""
    words = words_of(name)
    said = [(index, "x" if word in _X else "y") for index, word in enumerate(words) if word in _X | _Y]
    if not said and set(words) & _COORDINATES:
        said = [(index, _LETTER_AXES[word]) for index, word in enumerate(words) if word in _LETTER_AXES]
    if len(said) != 1:
        return None
    index, axis = said[0]
    return axis, words[:index] + words[index + 1 :]


def find_pairs(names: Sequence[str]) -> tuple[Pair, ...]:
    """Find pairs of columns with x and y, in the order of the header. The two names are alike but for the word of the axis.

    >>> find_pairs(["stop_id", "stop_lat", "stop_lon"])
    (('stop_lon', 'stop_lat'),)
    >>> find_pairs(["Easting", "Northing", "Longitude", "Latitude"])
    (('Easting', 'Northing'), ('Longitude', 'Latitude'))
    """
    axes = {name: axis for name in names if (axis := _axis(name)) is not None}
    pairs = [
        (east, north)
        for (east, (first, rest)), (north, (second, other)) in product(axes.items(), axes.items())
        if first == "x" and second == "y" and rest == other and _one_system(east, north)
    ]
    alone = [pair for pair in pairs if sum(set(pair) & set(other) != set() for other in pairs) == 1]
    return tuple(sorted(alone or pairs, key=lambda pair: min(names.index(name) for name in pair)))


def _one_system(east: str, north: str) -> bool:
    """Return whether two names say one kind of coordinates: degrees, easting and northing, or x and y."""
    systems = (_DEGREES, {"easting", "eastings", "northing", "northings"}, {"x", "y"}, {"rechtswert", "hochwert"}, set(_LETTER_AXES))
    return any(set(words_of(east)) & words and set(words_of(north)) & words for words in map(set, systems))


def in_degrees(name: str) -> bool:
    """Return whether a name says longitude or latitude in degrees.

    >>> in_degrees("stop_lon"), in_degrees("longitudeE7"), in_degrees("easting")
    (True, False, False)
    """
    return bool(set(words_of(name)) & _DEGREES) and "e7" not in squeeze(name)


def _sides(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return which ends of a trip a name can say, each with the name's other words."""
    words = words_of(name)
    found = []
    for index, word in enumerate(words):
        if word in _ONE_WORD_ONLY and index > 0:
            continue
        found += [
            (end, words[:index] + words[index + 1 :]) for end, known in (("origin", _STARTS), ("destination", _ENDS)) if word in known
        ]
    return found


def find_ends(names: Sequence[str]) -> tuple[Pair, ...]:
    """Find pairs of columns with the ids of origins and destinations; best first. The two names differ by a word for an end alone.

    >>> find_ends(["von", "nach", "Anzahl"])
    (('von', 'nach'),)
    >>> find_ends(["start_station_name", "start_station_id", "end_station_name", "end_station_id"])
    (('start_station_id', 'end_station_id'),)
    """
    by_name = {squeeze(name): name for name in names}
    known = [
        (by_name[first], by_name[second])
        for first, second in ((squeeze(a), squeeze(b)) for a, b in _TWO_SIDES)
        if {first, second} <= set(by_name)
    ]
    if known:
        return (known[0],)
    sides = [(name, end, rest) for name in names for end, rest in _sides(name) if not set(rest) & (_TIMES | _X | _Y | _COUNTS | _WKT)]
    pairs = [
        (start, stop, rest)
        for (start, first, rest), (stop, second, other) in product(sides, sides)
        if (first, second) == ("origin", "destination") and start != stop and set(rest) - _IDS == set(other) - _IDS
    ]
    ranks = [0 if set(rest) & _IDS else 2 if set(rest) & _NAMES else 1 for _, _, rest in pairs]
    return tuple(dict.fromkeys((start, stop) for (start, stop, _), rank in zip(pairs, ranks, strict=True) if rank == min(ranks)))


def between_pairs(names: Sequence[str]) -> tuple[Pair, Pair] | None:
    """Find the x and y columns of origins and destinations: two pairs whose names differ by a word for an end.

    >>> between_pairs(["pickup_lng", "pickup_lat", "dropoff_lng", "dropoff_lat", "fare"])
    (('pickup_lng', 'pickup_lat'), ('dropoff_lng', 'dropoff_lat'))
    >>> between_pairs(["easting", "northing", "longitude", "latitude"]) is None
    True
    """
    found = [
        (start, stop)
        for start, stop in product(find_pairs(names), repeat=2)
        for end, rest in _sides(start[0])
        for other_end, other in _sides(stop[0])
        if (end, other_end) == ("origin", "destination") and rest == other
    ]
    return found[0] if len(found) == 1 else None


def find_counts(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns that are called a number of records or trips."""
    return tuple(name for name in names if fold_name(name) in _COUNT_NAMES)


def find_regions(names: Sequence[str]) -> tuple[str, ...]:
    """Find columns that are called ids of regions. A table with a column of parents describes regions, and counts nothing in them."""
    if "parent_id" in map(fold_name, names):
        return ()
    plain = [name for name in names if squeeze(name) in _REGIONS]
    return tuple(plain or [name for name in names if set(words_of(name)) & _REGIONS and set(words_of(name)) <= _REGIONS | _IDS])


def find_persons(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns that are called persons, devices or vehicles; for proposals only."""
    return tuple(name for name in names if squeeze(name) in _PERSONS)


def find_wkt(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns that are called geometries; for proposals only."""
    return tuple(name for name in names if squeeze(name) in _WKT)


@dataclass(frozen=True, kw_only=True)
class Header:
    """What is public of a table before a row is read.

    Attributes:
        format: CSV, TSV, Parquet and so on.
        names: the columns' names as the file spells them, geometries left out.
        types: the types that are declared, by name; a text table declares none.
        has_geometry: whether it holds geometries.
    """

    format: str
    names: tuple[str, ...]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    has_geometry: bool = False


def unread_columns(header: Header, used: Collection[str]) -> tuple[str, ...]:
    """Return the columns that are not read and may hold the number of records of a row.

    Left out are those whose declared type is no number, and those that are called ids, places, times, names or persons. A text table declares
    no types: all its other columns may be numbers.

    >>> unread_columns(Header(format="CSV", names=("origin", "destination", "date", "volume")), ("origin", "destination"))
    ('volume',)
    """
    other = _IDS | _NAMES | _TIMES | _X | _Y | _REGIONS | _WKT | _STARTS | _ENDS | {"type", "category", "status", "who"}
    return tuple(
        name
        for name in header.names
        if name not in used
        and name.strip()
        and (may_be_number(header.types[name]) if name in header.types else True)
        and (set(words_of(name)) & _COUNTS or (not set(words_of(name)) & other and not find_persons([name])))
    )


def may_be_number(kind: pa.DataType) -> bool:
    """Return whether a declared type is one of numbers, or of values of any type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def say_each_row(noun: str, unread: Sequence[str]) -> str:
    """Say that each row counts once, and which columns are not read; "" if there are none.

    >>> say_each_row("trip", ["volume"])
    "Each row counts as one trip. Not read: 'volume'."
    """
    if not unread:
        return ""
    more = f" and {len(unread) - _MOST_LISTED:,} more" if len(unread) > _MOST_LISTED else ""
    return f"Each row counts as one {noun}. Not read: {', '.join(map(repr, unread[:_MOST_LISTED]))}{more}."
