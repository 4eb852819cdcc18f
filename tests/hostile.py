"""Names that a file could hold to be taken for something else, and files that are full of them."""

import json

import shapely

ELSEWHERE = "evil.example"
NAMES = [
    f"![x](https://{ELSEWHERE}/x.png)",
    "@@=alert(1)",
    "@@#evil.a",
    f"<img src=https://{ELSEWHERE}/y.png onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "$x^2$ and $$y$$",
    ":red[x] :blue-background[y]",
    ":material/home: :smile: :streamlit:",
    "{{7*7}} {n} {t}",
    "a\u202etxt.exe\u2066",
    "\x1b[31mred\x07",
    f"https://{ELSEWHERE}/a www.{ELSEWHERE}/b c@{ELSEWHERE} //{ELSEWHERE}",
    "&lt;b&gt; &amp;",
    "A*B_c **b** _i_ ~~s~~ `code`",
    "=1+1",
    "# head",
    "- item",
    "1. one",
    "a -> b -- c <-> d >= e",
    "</script></title></style><script>alert(1)</script>",
    "[^1] | a | b |",
    "datum.x['y'] \\n \\",
    "::: note",
    'O\'Hare & "Sons", Ltd.',
]
LEVELS = (NAMES[0], NAMES[1])  # of two columns, the second one that of the leaves


def regions_file():
    """GeoJSON of squares beside each other, in two coarse regions; levels, ids and names are hostile."""
    features = [
        {
            "type": "Feature",
            "geometry": shapely.geometry.mapping(shapely.box(8 + place % 5, 48 + place // 5, 9 + place % 5, 49 + place // 5)),
            "properties": {LEVELS[0]: f"{NAMES[3]} {place % 2}", LEVELS[1]: name, "name": name},
        }
        for place, name in enumerate(NAMES)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def trips_file():
    """Trips between all of them, as a table."""
    names = ['"' + name.replace('"', '""') + '"' for name in NAMES]
    rows = [f"{one},{other},{50 + 7 * place}" for place, one in enumerate(names) for other in names[place % 3 :: 3]]
    return "\n".join(["origin,destination,count", *rows, ""]).encode()


def points_file():
    """Records with hostile names of columns, one of them a category."""
    header = ",".join(["lon", "lat", "person_id", *('"' + name.replace('"', '""') + '"' for name in NAMES if "\x1b" not in name)])
    cells = ",".join("x" for name in NAMES if "\x1b" not in name)
    rows = [f"{-118.2 - place / 100},{34 + place / 100},p{place},{cells}" for place in range(40)]
    return "\n".join([header, *rows, ""]).encode()
