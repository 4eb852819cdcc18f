"""The roles of columns: what they are called in the languages of the field, and what a table with such a header can be used for.

This is the only list of names. Readers, `dpviz check`, `dpviz init` and the pages show what it says. It sees names and declared types,
which are public, and never an entry. A name only proposes: it is no proof, so that what is not read is said, too (`unread_columns`).
"""

from __future__ import annotations

import itertools
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from dpviz.errors import UnreadColumnsWarning

Pair = tuple[str, str]
AXES, ENDS = ("x", "y"), ("origin", "destination")
NOTHING_CHOSEN: Mapping[str, Any] = MappingProxyType({})
"""Where no column is named."""
NO_TYPES: Mapping[str, pa.DataType] = MappingProxyType({})
"""Of a text table, which declares no types."""

_LONGITUDE = {
    *("lon", "lng", "long", "longitude", "longitud", "longitudine", "lengte", "lengtegraad", "lange", "laenge", "langengrad"),
    *("laengengrad", "dlugosc", "经度", "経度", "經度", "долгота"),
}
_LATITUDE = {
    *("lat", "latitude", "latitud", "latitudine", "breedte", "breedtegraad", "breite", "breitengrad", "szerokosc"),
    *("纬度", "緯度", "широта"),
}
_DEGREES = _LONGITUDE | _LATITUDE
_SYSTEMS = (  # words for x and for y that belong together
    (_LONGITUDE, _LATITUDE),
    ({"easting", "eastings", "este"}, {"northing", "northings", "norte"}),
    ({"rechtswert"}, {"hochwert"}),
    (
        {"x", "xcoord", "xcoordinate", "coordx", "pointx", "xkoord", "koordx"},
        {"y", "ycoord", "ycoordinate", "coordy", "pointy", "ykoord", "koordy"},
    ),
    ({"e", "ost"}, {"n", "nord"}),  # only beside a word for coordinates, as in E_KOORD
)
_X, _Y = (set().union(*(system[axis] for system in _SYSTEMS[:-1])) for axis in (0, 1))
_LETTERS = _SYSTEMS[-1]
_COORDINATES = {"coord", "coords", "coordinate", "coordinates", "koord", "koordinate", "koordinaten", "geo", "lv95", "lv", "gk", "utm"}
_TEN_MILLIONTHS = "e7"

_STARTS = {
    *("origin", "orig", "origen", "origine", "origem", "o", "from", "source", "src", "start", "pickup", "pu", "home", "residence", "h"),
    *("von", "depart", "departure", "dep", "desde", "quelle", "wohnort", "boarding", "begin", "herkunft", "skad", "da", "de", "van"),
    *("salida", "partenza", "vertrek", "起点", "起點", "出发地", "出発地", "откуда"),
}
_ENDS = {
    *("destination", "dest", "destino", "destinazione", "d", "to", "target", "end", "dropoff", "do", "work", "workplace", "w", "nach"),
    *("arrivee", "arrival", "arr", "hasta", "ziel", "arbeitsort", "alighting", "a", "dokad", "naar", "para"),
    *("llegada", "arrivo", "aankomst", "终点", "終點", "目的地", "куда"),
}
_ONE_WORD_ONLY = {
    *("o", "d", "h", "w", "a", "da", "de", "do", "dep", "arr", "to", "van", "para", "pu")
}  # of longer names only the first word
_LAST_WORD = {"o", "d"}  # or the last one, as in lon_o
_FILLERS = {"of", "the", "usual", "place"}
_TWO_SIDES = (  # pairs of names in known sources that share no pattern: LODES, INSEE's commuting tables, taxi trips of New York, ONS
    ("h_geocode", "w_geocode"),
    ("CODGEO", "DCLT"),
    ("COMMUNE", "DCLT"),
    ("PULocationID", "DOLocationID"),
    ("Middle layer Super Output Areas code", "MSOA of workplace code"),
    ("Lower layer Super Output Areas code", "LSOA of workplace code"),
    ("Lower tier local authorities code", "LTLA of workplace code"),
)
BLOCK_NAMES = _TWO_SIDES[0]
"""Names of the columns of Census block codes in tables of LODES, which are cut to the length of the regions' ids."""
_REGIONS = {
    *("region", "area", "geoid", "fips", "county", "tract", "block", "district", "municipality", "zip", "zipcode", "postcode", "h3"),
    *("zone", "gmina", "commune", "comune", "gemeinde", "municipio", "kreis", "bezirk", "geo", "geocode", "codgeo", "plz", "gemeente"),
    *("ward", "parish", "oa", "lsoa", "msoa", "lad", "ua", "nuts", "cell", "hex", "locationid", "location", "mesh"),
    *("h3index", "h3cell", "h3id"),
}
_COARSE = {"state", "province", "provincia", "country", "continent", "canton", "departement", "powiat", "wojewodztwo", "land", "dep"}
_IDS = {"id", "ids", "code", "cd", "key", "index", "nr", "no", "num", "geoid", "geocode", "fips", "iso", "codgeo"}
_REGION_ROLES = {  # of the columns of a table that says each region's parent
    "region_id": ("region_id", "id", "geoid", "fips", "tile_id", "code", "region", "region_code", "zone", "zone_id", "area_id"),
    "parent_id": ("parent_id", "parent", "parent_region", "parent_region_id", "parent_code", "parent_geoid"),
    "level": ("level", "level_name", "lvl", "admin_level", "levl_code"),
    "name": ("name", "label", "region_name", "title"),
}
_NAMES = {
    *("name", "names", "nm", "label", "libgeo", "title", "description", "desc", "note", "notes", "comment", "comments", "text"),
    "indicator",
}
_TIMES = {
    *("time", "times", "date", "datetime", "timestamp", "timestampms", "ts", "day", "month", "year", "hour", "week", "weekday", "minute"),
    *("datum", "zeit", "uhrzeit", "fecha", "hora", "heure", "jour", "godzina", "periodo", "createdate", "started", "ended"),
    *("quarter", "yr", "yob", "jahr", "jaar", "annee", "anno", "ano", "rok", "monat", "mes", "mois", "tag"),
    *("at", "zeitpunkt", "zeitstempel", "stunde", "wochentag"),
}
_QUALITIES = {  # what a text table has in texts or codes
    *("type", "category", "status", "who", "kind", "mode", "purpose", "gender", "sex", "age", "color", "colour", "plate", "vehicle"),
    *("address", "adresse", "street", "strasse", "city", "email", "phone", "url"),
}
_COUNTS = {
    *("count", "counts", "n", "records", "people", "trips", "flow", "flows", "s000", "commuters", "journeys", "passengers", "volume"),
    *("value", "total", "all", "viajes", "anzahl", "population", "boardings", "numero", "nombre", "liczba", "cases", "visits", "persons"),
    *("number", "freq", "frequency", "aantal", "menge", "personas", "pop", "ridership", "quantity", "qty", "effectif", "totale", "fahrten"),
    *("sum", "num", "boarding", "alighting", "residents", "einwohner", "habitants", "viajeros", "人数", "数量", "次数", "passenger"),
}
READ_AS_TRIPS = ("count", "counts", "flow", "flows", "trips", "s000", "commuters", "journeys", "passengers")
"""Names of columns that are read as the trips of a row without being named; any other one is a question to the curator."""
_COUNT_NAMES = (*READ_AS_TRIPS, "n", "records", "people")
NO_COUNT = "none"
"""What stands in place of a column of counts where each row is one record."""
_PERSONS = {"person", "personid", "user", "userid", "uid", "device", "deviceid", "subject", "subjectid", "observerid", "taxiid", "mmsi"}
_OF_PEOPLE = {
    *("person", "user", "device", "subject", "patient", "case", "household", "rider", "driver", "customer", "client", "member", "resident"),
    *("respondent", "participant", "student", "employee", "phone", "email", "imei", "msisdn", "surname", "birth", "birthday"),
}
_WKT = {"geometry", "wkt", "thegeom", "geom", "wktgeom", "geomwkt", "geometrywkt", "wktgeometry", "pointwkt"}
_BOTH_AXES = {
    *("latlon", "latlng", "latlong", "lonlat", "lnglat", "xy", "location", "coordinates", "coords", "position", "geopoint"),
    "latitudelongitude",
}
_SHAPES = _WKT | {"shape", "polyline", "geojson", "location", "point", "coordinates", "wkb"}
_WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_MOST_LISTED = 8
_LIKE_A_NAME = re.compile(r"\s*[^\W\d][\w .:/()%#-]{0,39}")


def is_number(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's entries; for a dictionary-encoded column, the type of the dictionary's values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def fold_name(name: str) -> str:
    """Return a column's name as names are compared: in lower case, without blanks around it."""
    return name.strip().casefold()


def is_like_name(name: str) -> bool:
    """Return whether a text looks like the name of a column. Another one may be an entry of a table without a header, and is not shown."""
    return _LIKE_A_NAME.fullmatch(name) is not None


def quote_names(names: Sequence[str], most: int = 20) -> str:
    """Return the first names of columns, in quotes. A text that does not look like a name may be an entry, and is only counted."""
    shown = [name for name in names if is_like_name(name)][:most]
    more = len(names) - len(shown)
    if not shown:
        return f"{more:,} names that cannot be shown" if more else "no columns"
    return ", ".join(map(repr, shown)) + (f" and {more:,} more" if more else "")


def _without_accents(name: str) -> str:
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return plain.replace("ł", "l").replace("Ł", "L")


def squeeze(name: str) -> str:
    """Return a name without accents, case, blanks and punctuation.

    >>> squeeze(" Längen-Grad "), squeeze("PULocationID")
    ('langengrad', 'pulocationid')
    """
    return "".join(filter(str.isalnum, _without_accents(name).casefold()))


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, which blanks, punctuation, digits or capitals part.

    >>> words_of("decimalLongitude"), words_of("Trip Start Timestamp"), words_of("E_KOORD")
    (('decimal', 'longitude'), ('trip', 'start', 'timestamp'), ('e', 'koord'))
    """
    return tuple(word.casefold() for word in _WORDS.findall(_without_accents(name)))


def _axis(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the axis that a name says, "x" or "y", and its other words; None if it says neither or both."""
    words = words_of(name)
    axes = {word: "x" if word in _X else "y" for word in words if word in _X | _Y}
    if not axes and set(words) & _COORDINATES:
        axes = {word: "x" if word in _LETTERS[0] else "y" for word in words if word in _LETTERS[0] | _LETTERS[1]}
    if len(set(axes.values())) != 1:
        return None
    return next(iter(axes.values())), tuple(word for word in words if word not in axes)


def is_coordinate(name: str) -> bool:
    """Return whether a name says x or y.

    >>> is_coordinate("stop_lat"), is_coordinate("Länge"), is_coordinate("count")
    (True, True, False)
    """
    return _axis(name) is not None


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
        if first == "x"
        and second == "y"
        and rest == other
        and any(set(words_of(east)) & xs and set(words_of(north)) & ys for xs, ys in _SYSTEMS)  # degrees, easting and northing, or x and y
    ]
    times = Counter(name for pair in pairs for name in pair)
    alone = [pair for pair in pairs if max(times[name] for name in pair) == 1]
    return tuple(sorted(alone or pairs, key=lambda pair: min(names.index(name) for name in pair)))


def in_degrees(name: str) -> bool:
    """Return whether a name says longitude or latitude in degrees.

    >>> in_degrees("stop_lon"), in_degrees("longitudeE7"), in_degrees("easting")
    (True, False, False)
    """
    return bool(set(words_of(name)) & _DEGREES) and not in_ten_millionths(name)


def in_ten_millionths(name: str) -> bool:
    """Return whether a name says that degrees are stored times 10,000,000, as in histories of places on phones: latitudeE7."""
    return _axis(name) is not None and squeeze(name).endswith(_TEN_MILLIONTHS)


def say_ten_millionths(names: Sequence[str]) -> str:
    """Return what is to be done about columns of degrees times 10,000,000; "" if none of the names says so."""
    found = [name for name in names if in_ten_millionths(name)]
    if not found:
        return ""
    return f"{' and '.join(map(repr, found))} look like degrees times 10,000,000: divide them by that in the file first"


def _sides(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return which ends of a trip a name can say, each with the name's other words."""
    words = tuple(word for word in words_of(name) if word not in _FILLERS)
    found = []
    for index, word in enumerate(words):
        may_stand = index == 0 or word not in _ONE_WORD_ONLY or (word in _LAST_WORD and index == len(words) - 1)
        if not may_stand or (len(word) == 1 and words[1:] and "".join(words[1:]).isdecimal()):  # A1 is an id
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
    for start, stop in _TWO_SIDES:
        if {squeeze(start), squeeze(stop)} <= set(by_name):
            return ((by_name[squeeze(start)], by_name[squeeze(stop)]),)
    return _alike_ends(names, _TIMES | _X | _Y | _COUNTS | _SHAPES) or _alike_ends(names, _TIMES | _X | _Y | _COUNTS)


def _alike_ends(names: Sequence[str], others: Collection[str]) -> tuple[Pair, ...]:
    """Find pairs whose names differ by a word for an end and have no word of `others`; ids before other columns, and those before names."""
    sides = [(name, end, rest) for name in names for end, rest in _sides(name) if not set(rest) & set(others)]
    pairs = [
        (start, stop, rest)
        for (start, first, rest), (stop, second, other) in product(sides, sides)
        if (first, second) == ("origin", "destination") and start != stop and set(rest) - _IDS == set(other) - _IDS
    ]
    ranks = [0 if set(rest) & _IDS else 2 if set(rest) & _NAMES else 1 for _, _, rest in pairs]
    return tuple(dict.fromkeys((start, stop) for (start, stop, _), rank in zip(pairs, ranks, strict=True) if rank == min(ranks)))


def names_destinations(corner: str) -> bool:
    """Return whether the first name of a matrix says that its rows are destinations, so that it lies the other way round.

    >>> names_destinations("dest/orig"), names_destinations("to"), names_destinations("from/to"), names_destinations("zone")
    (True, True, False, False)
    """
    words = words_of(corner)
    if not words or words[0] not in _ENDS - _STARTS:
        return False
    return len(words[0]) > 1 if len(words) == 1 else bool(set(words[1:]) & (_STARTS | _IDS))


def complete_pairs(names: Sequence[str], roles: Pair, chosen: Mapping[str, Any]) -> tuple[Pair, ...]:
    """Return the pairs of columns that could be x and y, or origin and destination, and have the chosen one, if there is one.

    >>> complete_pairs(["zone", "lon", "lat"], AXES, {"x": "lon"}), complete_pairs(["a_zone", "to", "from"], ENDS, {"origin": "a_zone"})
    ((('lon', 'lat'),), (('a_zone', 'to'),))
    """
    pairs = find_pairs(names) if roles == AXES else find_ends(names)
    fitting = tuple(pair for pair in pairs if all(chosen.get(role, name) == name for role, name in zip(roles, pair, strict=True)))
    if fitting or not chosen:
        return fitting
    (said, column), missing = next(iter(chosen.items())), next(role for role in roles if role not in chosen)
    others = [name for name in _names_of(names, missing) if name != column]
    return tuple((column, name) if said == roles[0] else (name, column) for name in others)


def _names_of(names: Iterable[str], role: str) -> list[str]:
    """Return the columns whose names say an axis, or an end of trips and nothing else."""
    if role in AXES:
        return [name for name in names if (axis := _axis(name)) is not None and axis[0] == role]
    return [name for name in names if any(end == role and not set(rest) - _IDS for end, rest in _sides(name))]


def find_one_axis(names: Sequence[str]) -> dict[str, str]:
    """Return the only column that is called x, or y, if none is called the other one, which may have a name of its own."""
    x, y = (_names_of(names, axis) for axis in AXES)
    return {axis: alone[0] for axis, alone, other in (("x", x, y), ("y", y, x)) if len(alone) == 1 and not other}


def missing_role(names: Sequence[str], roles: Pair, chosen: Collection[str]) -> str:
    """Return which of two roles no column is known for; the first one if that is true of both."""
    still_open = [role for role in roles if role not in chosen]
    return next((role for role in still_open if not _names_of(names, role)), still_open[0])


def between_pairs(names: Sequence[str]) -> tuple[Pair, Pair] | None:
    """Find the x and y columns of origins and destinations: two pairs whose names differ by a word for an end.

    >>> between_pairs(["pickup_lng", "pickup_lat", "dropoff_lng", "dropoff_lat", "fare"])
    (('pickup_lng', 'pickup_lat'), ('dropoff_lng', 'dropoff_lat'))
    >>> between_pairs(["easting", "northing", "longitude", "latitude"]) is None
    True
    """
    found = {
        (start, stop): None
        for start, stop in product(find_pairs(names), repeat=2)
        for end, rest in _sides(start[0])
        for other_end, other in _sides(stop[0])
        if (end, other_end) == ("origin", "destination") and rest == other
    }
    return next(iter(found)) if len(found) == 1 else None


def find_trips(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns that are read as the trips of a row without being named."""
    return tuple(name for name in names if fold_name(name) in READ_AS_TRIPS)


def find_counts(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns that are called a number of records or trips; for proposals only."""
    return tuple(name for name in names if fold_name(name) in _COUNT_NAMES)


def may_count(name: str) -> bool:
    """Return whether a name has a word for a number of records, people or trips."""
    return bool(set(words_of(name)) & _COUNTS)


def find_regions(names: Sequence[str]) -> tuple[str, ...]:
    """Find columns that are called ids of regions. A table with a column of parents describes regions, and counts nothing in them.

    >>> find_regions(["LAD22CD", "MSOA21CD", "MSOA21NM"]), find_regions(["gmina", "liczba"]), find_regions(["state", "county", "n"])
    (('LAD22CD', 'MSOA21CD'), ('gmina',), ('county',))
    """
    if "parent_id" in map(fold_name, names):
        return ()
    names = list(filter(is_like_name, names))
    plain = [name for name in names if squeeze(name) in _REGIONS]
    return tuple(plain or [name for name in names if _has_only(name, _REGIONS | _IDS) and set(words_of(name)) & _REGIONS])


def _has_only(name: str, known: Collection[str]) -> bool:
    """Return whether a name has words, all of them known; numbers, as of years, are passed over."""
    words = {word for word in words_of(name) if not word.isdecimal()}
    return bool(words) and words <= set(known)


def find_levels(names: Sequence[str]) -> tuple[str, ...]:
    """Find columns that are called ids of regions of any level, in the order of the header.

    >>> find_levels(["continent", "iso2", "name"]), find_levels(["LAD/UA", "MSOA (2021)"])
    (('continent', 'iso2'), ('LAD/UA', 'MSOA (2021)'))
    """
    names, known = list(filter(is_like_name, names)), _REGIONS | _IDS
    plain = _REGIONS - {"location", "geo"} | {"id", "code", "cd", "iso"}
    return tuple(name for name in names if squeeze(name) in _COARSE or (_has_only(name, known) and set(words_of(name)) & plain))


def are_levels(names: Iterable[str]) -> bool:
    """Return whether a column has the plain name of a region's id, so that a table of other uses may be one of regions, too."""
    return any(fold_name(name) in _REGION_ROLES["region_id"] for name in names)


def find_region_roles(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Find the columns of a table that says each region's parent, by role: region_id, parent_id, level and name."""
    return {role: tuple(name for name in names if fold_name(name) in known) for role, known in _REGION_ROLES.items()}


def find_persons(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns that are called persons, devices or vehicles; for proposals only."""
    return tuple(name for name in names if squeeze(name) in _PERSONS)


def find_times(header: PublicHeader) -> tuple[str, ...]:
    """Find columns that may hold times: those whose declared type is one, or else those with a word for times in their name.

    >>> find_times(PublicHeader(names=("lon", "started_at", "Dauer", "Zeit")))
    ('started_at', 'Zeit')
    """
    typed = tuple(name for name in header.names if name in header.types and pa.types.is_temporal(header.types[name]))
    return typed or tuple(name for name in header.names if {fold_name(word) for word in words_of(name)} & _TIMES)


def suspect_persons(names: Iterable[str]) -> tuple[str, ...]:
    """Find columns with a word for people or what is theirs, by which a file that is said to be public is warned of.

    >>> suspect_persons(["household_id", "name", "CaseNo", "county"])
    ('household_id', 'CaseNo')
    """
    persons = set(find_persons(names := tuple(names)))
    return tuple(name for name in names if name in persons or {fold_name(word) for word in words_of(name)} & _OF_PEOPLE)


def find_wkt(header: PublicHeader) -> tuple[str, ...]:
    """Find columns that are called geometries, and may be texts by their declared type; for proposals only."""
    return tuple(name for name in header.names if squeeze(name) in _WKT and is_text(plain_type(header.types.get(name, pa.string()))))


def say_shapes(header: PublicHeader) -> tuple[str, ...]:
    """Say which columns hold shapes or coordinates that are not read, by names and declared types, and how they could be.

    >>> say_shapes(PublicHeader(names=("id", "latlon")))
    ("Column 'latlon' may hold both coordinates in one cell: split it into two columns, x and y.",)
    """
    said = [_say_shape(name, header.types.get(name)) for name in header.names if is_like_name(name)]
    return tuple(filter(None, said))


def _say_shape(name: str, kind: pa.DataType | None) -> str:
    if kind is not None and pa.types.is_struct(kind):
        fields = {fold_name(kind.field(number).name) for number in range(kind.num_fields)}
        if {"xmin", "ymin"} <= fields:
            return f"Column {name!r} holds boxes, which are not read: store x and y as two columns of numbers, or shapes as GeoParquet."
        is_pair = bool(find_pairs(sorted(fields)))
        return f"Column {name!r} holds x and y in one record, which is not read: store them as two columns of numbers." if is_pair else ""
    if kind is not None and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        if squeeze(name) not in _SHAPES:
            return ""
        return (
            f"Column {name!r} may hold shapes in WKB, without the metadata of GeoParquet: make a GeoDataFrame of it with"
            " geopandas.GeoSeries.from_wkb, and write that with to_parquet."
        )
    if kind is not None and not is_text(plain_type(kind)):
        return ""
    if squeeze(name) in _WKT:
        return (
            f"If column {name!r} holds points in WKT, declare geometry={name!r} instead; if it holds polygons, or shapes in hexadecimal"
            f" WKB, ogr2ogr -f GeoJSON shapes.geojson table.csv -oo GEOM_POSSIBLE_NAMES={name} makes GeoJSON of it."
        )
    if squeeze(name) == "geojson":
        return (
            f"If column {name!r} holds shapes in GeoJSON, ogr2ogr -f GeoJSON shapes.geojson table.csv -oo GEOM_POSSIBLE_NAMES={name} makes"
            " a file of them."
        )
    if squeeze(name) in _BOTH_AXES:
        return f"Column {name!r} may hold both coordinates in one cell: split it into two columns, x and y."
    return ""


def only(names: Sequence[str]) -> str | None:
    """Return the one name; None if there is none, or several."""
    return names[0] if len(names) == 1 else None


def says_none(count: str | None) -> bool:
    """Return whether a column of counts is declared not to exist, so that each row is one record."""
    return count is not None and fold_name(count) == NO_COUNT


@dataclass(frozen=True, kw_only=True)
class PublicHeader:
    """What is public of a table before a row is read.

    Attributes:
        names: the columns' names as the file spells them, geometries left out.
        types: the types that are declared, by name; a text table declares none.
        has_geometry: whether it holds geometries.
    """

    names: tuple[str, ...]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    has_geometry: bool = False


@dataclass(frozen=True, kw_only=True)
class Use:
    """What a table could be used for, by its header alone. Columns that the curator names go before those with usual names.

    Attributes:
        kind: "points", "trips" or "areas".
        found: columns by role: x, y, geometry, region, origin, destination (columns of ids, or pairs of coordinates), count and person.
        open: the roles that are still to be said, each with the columns that could have it; none may be known.
        unread: the columns that are not read and may hold the number of records of a row; empty if a column of counts is chosen, or "none".
    """

    kind: str
    found: Mapping[str, Any]
    open: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the columns that say where are known, or are some of several that are; of trips one end is enough."""
        return all(self.open.values()) or bool({*AXES, *ENDS} & set(self.found))


@dataclass(frozen=True, kw_only=True)
class DescribedFile:
    """What is said of a file of private data before it is counted, from which the curator chooses columns. Not for release.

    Attributes:
        format: CSV, TSV, GeoJSON, GeoPackage, GeoParquet, Parquet or Shapefile.
        columns: the columns' names as the file spells them, geometry left out; of a matrix, they include the ids of the destinations.
        count: the only column with the name of a number of what is counted; of trips, `read_trips` uses it if the caller names no other,
            else it is a proposal, which readers do not use by themselves.
        person: the only column with the name of a person; a proposal, likewise.
        rows: number of rows, of several files that of the longest, where files state it; private.
    """

    format: str
    columns: tuple[str, ...]
    count: str | None
    person: str | None
    rows: int | None = field(default=None, repr=False)


def propose_points(header: PublicHeader, chosen: Mapping[str, Any]) -> Use:
    """Propose the columns of points; `chosen` has columns by role, and for count perhaps "none"."""
    found = {role: chosen[role] for role in ("x", "y", "geometry") if chosen.get(role)}
    still_open: dict[str, tuple[Any, ...]] = {}
    if not (header.has_geometry or "geometry" in found or {"x", "y"} <= set(found)):
        pairs = complete_pairs(header.names, AXES, found)
        shape = only(find_wkt(header))
        if len(pairs) == 1:
            found |= dict(zip(AXES, pairs[0], strict=True))
        elif not pairs and not found and shape is not None:
            found["geometry"] = shape
        elif pairs:
            still_open["x and y"] = pairs
        else:
            still_open |= {axis: () for axis in AXES if axis not in found}
    return _with_counts("points", header, found, chosen, still_open)


def propose_trips(header: PublicHeader, chosen: Mapping[str, Any]) -> Use:
    """Propose the columns of trips, as `propose_points` does: of ids, or of pairs of coordinates."""
    found = {role: chosen[role] for role in ENDS if chosen.get(role)}
    still_open: dict[str, tuple[Any, ...]] = {}
    if len(found) < len(ENDS):
        ends = complete_pairs(header.names, ENDS, found)
        pairs = between_pairs(header.names) if not found and len(ends) != 1 else None
        if len(ends) == 1 or pairs is not None:
            found = dict(zip(ENDS, pairs or ends[0], strict=True))
        elif ends:
            still_open["origin and destination"] = tuple(ends)
        else:
            if not found:  # the only column that is called an end, as the other one may have a name of its own
                plain = [name for name in header.names if not set(words_of(name)) & _ONE_WORD_ONLY]
                said = [(role, name) for name in plain for role, rest in _sides(name) if not set(rest) - _IDS]
                found |= dict(said) if len(said) == 1 else {}
            still_open |= {role: () for role in ENDS if role not in found}
    return _with_counts("trips", header, found, chosen, still_open)


def propose_areas(header: PublicHeader, chosen: Mapping[str, Any]) -> Use:
    """Propose the columns of records with ids of regions, as `propose_points` does."""
    region = chosen.get("region") or only(find_regions(header.names))
    found = {} if region is None else {"region": region}
    return _with_counts("areas", header, found, chosen, {} if found else {"region": ()})


def _with_counts(
    kind: str,
    header: PublicHeader,
    found: dict[str, Any],
    chosen: Mapping[str, Any],
    still_open: Mapping[str, tuple[Any, ...]],
) -> Use:
    """Add the columns of counts and persons to those that say where."""
    used = {name for columns in found.values() for name in ((columns,) if isinstance(columns, str) else columns)}
    rest = [name for name in header.names if name not in used]
    counts = find_trips(rest) if kind == "trips" else find_counts(rest)
    count, person = chosen.get("count") or only(counts), chosen.get("person") or only(find_persons(rest))
    others = {"count": None if says_none(count) else count, "person": person}
    found |= {role: name for role, name in others.items() if name is not None}
    unread = unread_columns(header, {*used, str(person)}) if count is None else ()
    return Use(kind=kind, found=found, open=still_open, unread=unread)


def unread_columns(header: PublicHeader, used: Collection[str]) -> tuple[str, ...]:
    """Return the columns that are not read and may hold the number of records of a row.

    Left out are those whose declared type is no number, or one of fractions unless they are called a number; and those that are called
    ids, places, times, names, qualities or persons. A text table declares no types: all its other columns may be whole numbers.

    >>> unread_columns(PublicHeader(names=("origin", "destination", "date", "volume")), ("origin", "destination"))
    ('volume',)
    """
    other = _IDS | _NAMES | _TIMES | _X | _Y | _REGIONS | _COARSE | _SHAPES | _QUALITIES
    ends = {*itertools.chain(*find_ends(header.names))}

    def may_be_count(name: str) -> bool:
        kind = plain_type(header.types[name]) if name in header.types else None
        if kind is not None and (not is_number(kind) or (pa.types.is_floating(kind) and not may_count(name))):
            return False
        said = other if name in header.types else other | _STARTS | _ENDS  # a text table may have names of ends, and numbers are no such
        return may_count(name) or not (set(words_of(name)) & said or name in ends or find_persons([name]))

    return tuple(name for name in header.names if name not in used and name.strip() and may_be_count(name))


def quote_unread(unread: Sequence[str]) -> str:
    """Return the first columns that are not read, in quotes; what does not look like a name is only counted.

    >>> quote_unread(["volume", "12.5"])
    "'volume' and 1 more"
    """
    if not any(map(is_like_name, unread)):
        return f"{len(unread):,} column{'' if len(unread) == 1 else 's'}"
    return quote_names(unread, _MOST_LISTED)


def say_each_row(noun: str, unread: Sequence[str]) -> str:
    """Say that each row counts once, and which columns are not read; "" if there are none.

    >>> say_each_row("trip", ["volume"])
    "each row counts as one trip; not read: 'volume'"
    """
    return f"each row counts as one {noun}; not read: {quote_unread(unread)}" if unread else ""


@dataclass(frozen=True, kw_only=True)
class EachRow:
    """What is said where no column of counts is chosen, and one may be there: each row counts once.

    Attributes:
        noun: "record" or "trip".
        unread: the columns that are not read and may hold the number of records of a row.
        declared: whether the file or frame declares its columns as a whole. Otherwise, as in GeoJSON, a single feature may have named one.
    """

    noun: str
    unread: tuple[str, ...]
    declared: bool = True

    def __str__(self) -> str:
        return say_each_row(self.noun, self.unread)

    @property
    def to_publish(self) -> str:
        """The same for the readers of a release: of columns that nobody named, only those are named that are called a number.

        "" if a single feature may have named them, which would otherwise decide what is published.
        """
        if not self.declared:
            return ""
        named = list(filter(may_count, self.unread))
        return say_each_row(self.noun, named) or f"each row counts as one {self.noun}"

    @property
    def example(self) -> str:
        """The column that is likeliest to be a count."""
        shown = list(filter(is_like_name, self.unread)) or ["..."]
        return next(filter(may_count, shown), shown[0])


def each_row_of(noun: str, unread: Sequence[str], *, declared: bool = True) -> EachRow | None:
    """Return what is to be said of columns that are not read; None if there are none."""
    return EachRow(noun=noun, unread=tuple(unread), declared=declared) if unread else None


def warn_each_row(each_row: EachRow | None) -> None:
    """Warn the caller of the caller that each row counts once, and what to pass; None warns of nothing."""
    if each_row is not None:
        text = str(each_row)
        warnings.warn(
            f"{text[:1].upper()}{text[1:]}. Pass count={each_row.example!r}, say, or count={NO_COUNT!r} if each row is one"
            f" {each_row.noun}.",
            UnreadColumnsWarning,
            stacklevel=3,
        )
