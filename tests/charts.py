"""What tests ask of a chart's specification."""

import json


def rows(chart):
    """All rows of all tables of a chart."""
    return [row for data in chart["datasets"].values() for row in data]


def found(spec, key):
    """Every value under a key, at any depth."""
    if isinstance(spec, dict):
        return [*([spec[key]] if key in spec else []), *(hit for value in spec.values() for hit in found(value, key))]
    return [hit for value in spec for hit in found(value, key)] if isinstance(spec, list) else []


def plain(value):
    """Whether a value is of plain types all the way down."""
    if isinstance(value, dict):
        return all(map(plain, value.values()))
    return all(map(plain, value)) if isinstance(value, list) else type(value) in (int, float, str)


def assert_complete(chart, *, letters):
    """It has a title, a description of more than so many letters that begins with it, tooltips, and no address."""
    assert chart["title"]["text"]
    assert chart["description"].startswith(chart["title"]["text"])
    assert len(chart["description"]) > letters
    assert chart["width"] == "container"
    assert found(chart["layer"], "tooltip")
    assert not found(chart, "url")
    assert "://" not in json.dumps({key: value for key, value in chart.items() if key != "$schema"})


def assert_series_differ(chart):
    """Every series has a colour of its own, and a mark or dashes of its own."""
    for channels in (["color"], ["shape", "strokeDash"]):
        hits = [hit for channel in channels for hit in found(chart["layer"], channel) if isinstance(hit, dict)]
        scales = [hit["scale"] for hit in hits if "scale" in hit]
        assert scales
        for scale in scales:
            assert len(scale["domain"]) == len(scale["range"]) == len({json.dumps(each) for each in scale["range"]})


def assert_plain_axes(chart, *, untitled=False):
    """It sets no font or background of its own, and its quantitative axes have titles; `untitled`: at least one has."""
    assert not [hit for hit in found(chart, "font") + found(chart, "background") + found(chart, "fill") if hit]
    titles = [axis.get("title") for key in ("x", "y") for axis in found(chart["layer"], key) if axis["type"] == "quantitative"]
    assert any(titles) if untitled else all(titles)
