"""What the canvas of maps is sent: its messages, read as the browser reads them, and small scenes."""

import json
import re

import numpy as np

from dpviz.space.domain import Domain
from dpviz.view.basemap import map_bounds
from dpviz.view.canvas import Cells, Legend, Pane, Scene, digest_of

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)


def read(message):
    """The JSON header of a message, with its digest as `key`, and its arrays by name."""
    end = 20 + int.from_bytes(message[16:20], "little")
    header, arrays = json.loads(message[20:end]), {}
    for name, kind, length in header["arrays"]:
        array = np.frombuffer(message, f"<{kind}", length, end)
        arrays[name], end = array, end + array.nbytes
    assert end == len(message)
    return header | {"key": digest_of(message)}, arrays


def unpack(messages):
    """The header of a scene with what its parts say, and its arrays by name, from its messages."""
    *parts, (header, _) = map(read, messages.values() if isinstance(messages, dict) else messages)
    assert [part["key"] for part, _ in parts] == header["parts"]
    joined = {"cells": {}, "areas": {}, "panes": [part["pane"] for part, _ in parts if "pane" in part]}
    arrays = {}
    for part, own in parts:
        joined |= part.get("surroundings", {})
        joined["cells"] |= part.get("cells", {})
        joined["areas"] |= part.get("areas", {})
        arrays |= own
    for name, about in joined["cells"].items():
        for number, base in about["near"].items():
            arrays[f"{name} {number}"] = arrays[f"{name} {number}"].astype(np.int64) + arrays[f"{name} {base}"]
    return header | joined, arrays


def words_at(header, arrays, pane, cell):
    """What a pane says about one of its rectangles; {name:text} is the text where the number is not 0."""
    about = header["panes"][pane]
    prefix = f"{about['cells']} "
    numbers = {name.removeprefix(prefix): array[cell] for name, array in arrays.items() if name.startswith(prefix) and array.ndim == 1}
    words = re.sub(r"\{(\w+):([^}]*)\}", lambda found: found[2] if numbers[found[1]] else "", about["words"])
    return words.format(**numbers)


def scene_of(cells, *panes, domain=PLANE, **options):
    """A scene with what these panes show; `cells` by name."""
    return Scene(bounds=map_bounds(domain), cells=cells, panes=panes, description="Two maps.", **{"dark": False, **options})


def plain_pane(cells="a", count=2, **options):
    """A pane of rectangles in two shades."""
    palette = np.arange(8, dtype=np.uint8).reshape(2, 4)
    shades = np.arange(count, dtype=np.uint8) % 2
    about = {"title": "People", "about": "", "words": "{n} people", "legend": Legend(title="people")}
    return Pane(**about, cells=cells, palette=palette, shades=shades, **options)


def cells_of(rectangles, *, domain=PLANE, **numbers):
    return Cells(
        domain=domain, rectangles=np.array(rectangles, np.int32), numbers={name: np.array(values) for name, values in numbers.items()}
    )
