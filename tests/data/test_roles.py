"""What columns are called: sources that people have, in the languages of the field, and what must not be taken for something."""

import pyarrow as pa
import pytest

from dpviz.data.roles import (
    PublicHeader,
    complete_pairs,
    find_levels,
    find_pairs,
    in_degrees,
    propose_areas,
    propose_points,
    propose_trips,
    quote_unread,
    say_ten_millionths,
    unread_columns,
)

POINTS = {  # source: header, x and y
    "GTFS": ("stop_id,stop_name,stop_lat,stop_lon", "stop_lon,stop_lat"),
    "GBIF": ("gbifID,species,decimalLatitude,decimalLongitude", "decimalLongitude,decimalLatitude"),
    "ArcGIS": ("OBJECTID,POINT_X,POINT_Y", "POINT_X,POINT_Y"),
    "STATPOP": ("RELI,E_KOORD,N_KOORD,B23BTOT", "E_KOORD,N_KOORD"),
    "AIS": ("# Timestamp,MMSI,Latitude,Longitude", "Longitude,Latitude"),
    "Takeout": ("timestampMs,latitudeE7,longitudeE7", "longitudeE7,latitudeE7"),
    "WGS 84": ("ID,LON_WGS84,LAT_WGS84", "LON_WGS84,LAT_WGS84"),
    "German": ("Ort,Länge,Breite", "Länge,Breite"),
    "Gauss": ("Rechtswert,Hochwert", "Rechtswert,Hochwert"),
    "Spanish metres": ("id,COORD_ESTE,COORD_NORTE", "COORD_ESTE,COORD_NORTE"),
    "Spanish": ("id,longitud,latitud", "longitud,latitud"),
    "Italian": ("id,latitudine,longitudine", "longitudine,latitudine"),
    "Polish": ("szerokość,długość", "długość,szerokość"),
    "Dutch": ("lengtegraad,breedtegraad", "lengtegraad,breedtegraad"),
    "Russian": ("широта,долгота", "долгота,широта"),
    "Chinese": ("用户,经度,纬度", "经度,纬度"),
    "Japanese": ("緯度,経度", "経度,緯度"),
}
TRIPS = {  # source: header, origin and destination
    "TLC": ("PULocationID,DOLocationID,fare", "PULocationID,DOLocationID"),
    "FHV": ("PUlocationID,DOlocationID,SR_Flag", "PUlocationID,DOlocationID"),
    "INSEE": ("CODGEO,LIBGEO,DCLT,L_DCLT,NBFLUX_C20_ACTOCC15P", "CODGEO,DCLT"),
    "MITMA": ("fecha,periodo,origen,destino,viajes", "origen,destino"),
    "ODWP": (
        "Middle layer Super Output Areas code,Middle layer Super Output Areas label,MSOA of workplace code,MSOA of workplace label,Count",
        "Middle layer Super Output Areas code,MSOA of workplace code",
    ),
    "ONS": ("Area of usual residence,Area of workplace,Total", "Area of usual residence,Area of workplace"),
    "LODES": ("w_geocode,h_geocode,S000,SA01", "h_geocode,w_geocode"),
    "flowmap.blue": ("origin,dest,count,time", "origin,dest"),
    "citibike": ("start_station_name,start_station_id,end_station_name,end_station_id", "start_station_id,end_station_id"),
    "German": ("von,nach,Anzahl", "von,nach"),
    "commuters": ("Wohnort,Arbeitsort,Pendler", "Wohnort,Arbeitsort"),
    "French": ("commune_départ,commune_arrivée,n", "commune_départ,commune_arrivée"),
    "Polish": ("skąd,dokąd,liczba", "skąd,dokąd"),
    "Dutch": ("van,naar,aantal", "van,naar"),
    "Chinese": ("出发地,目的地,人数", "出发地,目的地"),
    "letters": ("zone_o,zone_d,n", "zone_o,zone_d"),
}
BETWEEN = {  # trips between coordinates
    "Chicago": (
        "Pickup Census Tract,Dropoff Census Tract,Pickup Community Area,Dropoff Community Area,Pickup Centroid Latitude,"
        "Pickup Centroid Longitude,Dropoff Centroid Latitude,Dropoff Centroid Longitude"
    ),
    "MDS": "provider_id,device_id,start_lat,start_lng,end_lat,end_lng,start_time",
    "kaggle": "id,pickup_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude",
    "letters": "lon_o,lat_o,lon_d,lat_d",
}


def header(text, **types):
    return PublicHeader(names=tuple(text.split(",")), types=types)


@pytest.mark.parametrize(("names", "pair"), POINTS.values(), ids=POINTS)
def test_coordinates_are_found_by_their_names(names, pair):
    use = propose_points(header(names), {})
    assert (use.found["x"], use.found["y"], dict(use.open)) == (*pair.split(","), {})


@pytest.mark.parametrize(("names", "pair"), TRIPS.values(), ids=TRIPS)
def test_ends_of_trips_are_found_by_their_names(names, pair):
    use = propose_trips(header(names), {})
    assert (use.found["origin"], use.found["destination"], dict(use.open)) == (*pair.split(","), {})


@pytest.mark.parametrize("names", BETWEEN.values(), ids=BETWEEN)
def test_trips_between_coordinates_need_two_pairs_that_differ_by_an_end(names):
    use = propose_trips(header(names), {})
    assert [len(use.found[end]) for end in ("origin", "destination")] == [2, 2]
    assert list(propose_points(header(names), {}).open) == ["x and y"]


@pytest.mark.parametrize(
    "names",
    [
        "ATCOCode,CommonName,Easting,Northing,Longitude,Latitude",
        "x,y,lon,lat",
        "location_easting_osgr,location_northing_osgr,longitude,latitude",
    ],
)
def test_two_systems_of_coordinates_are_points_and_which_pair_is_asked(names):
    use = propose_points(header(names), {})
    assert (len(use.open["x and y"]), use.fits) == (2, True)
    assert not propose_trips(header(names), {}).fits
    first = use.open["x and y"][1]
    assert propose_points(header(names), {"x": first[0]}).found["y"] == first[1]


@pytest.mark.parametrize("names", ["lon,y", "x,latitude", "max_lon,min_lat", "start_lon,end_lat", "lon", "name,size"])
def test_names_that_are_not_alike_are_no_pair(names):
    assert find_pairs(names.split(",")) == ()


@pytest.mark.parametrize("names", ["A1,H1,W1", "started_at,ended_at", "start_time,end_time", "name,place", "id,O1,D1"])
def test_what_is_no_end_of_a_trip_is_not_taken_for_one(names):
    assert complete_pairs(names.split(","), ("origin", "destination"), {}) == ()


def test_degrees_and_their_ten_millionths_are_told_apart():
    assert [in_degrees(name) for name in ("stop_lon", "Breite", "longitudeE7", "x", "Northing")] == [True, True, False, False, False]
    assert "10,000,000" in say_ten_millionths(["longitudeE7", "latitudeE7"])
    assert say_ten_millionths(["lon_e", "size7"]) == ""


@pytest.mark.parametrize(
    ("names", "region", "levels"),
    [
        ("fips,cases", "fips", ["fips"]),
        ("h3_index,cases", "h3_index", []),
        ("LAD22CD,MSOA21CD,MSOA21NM", None, ["LAD22CD", "MSOA21CD"]),
        ("LAD/UA,MSOA (2021)", None, ["LAD/UA", "MSOA (2021)"]),
        ("dep,codgeo,libgeo", "codgeo", ["dep", "codgeo"]),
        ("continent,iso2,name", None, ["continent", "iso2"]),
        ("state,county,cases", "county", ["state", "county"]),
        ("region_id,parent_id,level", None, ["region_id"]),
        ("id,size,colour", None, ["id"]),
    ],
)
def test_ids_of_regions_are_found_by_their_names(names, region, levels):
    assert propose_areas(header(names), {}).found.get("region") == region
    assert [name for name in find_levels(names.split(",")) if name not in ("parent_id", "level")] == levels


COUNTS = ("volume", "all", "NBFLUX_C20_ACTOCC15P", "Numero", "value", "weight", "total", "n", "people", "trip_count", "viajes", "boardings")


@pytest.mark.parametrize("name", COUNTS)
def test_a_column_that_may_be_a_count_is_said_not_to_be_read(name):
    names = f"origin,destination,date,name,{name}"
    assert propose_trips(header(names), {}).unread == (name,)
    assert propose_trips(header(names), {"count": name}).unread == ()
    assert propose_trips(header(names), {"count": "none"}).unread == ()
    assert propose_trips(header(names), {"count": "none"}).found.get("count") is None


def test_declared_types_leave_out_what_is_no_number():
    types = {"volume": pa.int64(), "kind": pa.string(), "share": pa.float64(), "when": pa.timestamp("s"), "stop_id": pa.int64()}
    names = PublicHeader(names=tuple(types), types=types)
    assert unread_columns(names, ()) == ("volume",)
    floating = {"volume": pa.float64(), "speed": pa.float32(), "lanes": pa.int32()}
    assert unread_columns(PublicHeader(names=tuple(floating), types=floating), ()) == ("volume", "lanes"), "a number with a gap is a float"


def test_years_and_qualities_of_a_text_table_are_no_counts():
    assert unread_columns(header("Jahr,trip_year,Año,purpose,Gender,home address,lanes"), ()) == ("lanes",)


@pytest.mark.parametrize("name", ["home", "boarding", "num", "data"])
def test_a_column_of_numbers_may_be_a_count_although_its_name_says_something_else(name):
    assert unread_columns(PublicHeader(names=(name,), types={name: pa.int64()}), ()) == (name,)


def test_what_does_not_look_like_a_name_is_only_counted():
    assert quote_unread(["volume", "4.9", "-"]) == "'volume' and 2 more"
    assert quote_unread(["4.9", "52.1"]) == "2 columns"
