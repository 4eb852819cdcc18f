"""Names and limits of what the parts of a page may hold."""

from __future__ import annotations

TEACH, CURATE = "Teach", "Curate"
SAMPLE, UPLOAD, PATH = "sample", "upload", "path"
SOURCES = (SAMPLE, UPLOAD, PATH)
SMALLEST_EPSILON, LARGEST_EPSILON = 0.001, 100.0
SMALLEST_DELTA, LARGEST_DELTA = 1e-12, 1e-4
SMALLEST_RHO, LARGEST_RHO = 1e-12, 1e4
LARGEST_SEED = 2**31
MOST_MADE_UP = 10_000_000  # records of a made-up sample
LARGEST_ORDER = 16  # of the lattice of points
EVERYWHERE, ON_LAND, IN_A_FILE = "everywhere", "land", "file"
STUDY_AREAS = (EVERYWHERE, ON_LAND, IN_A_FILE)
"""Where people can be: the values of the parameter `study_area` of points. The file of polygons itself is in no link."""
ORDINALS = ("first", "second", "third", "fourth")
"""Of the runs."""
FURTHER = tuple(f"{ordinal.capitalize()} run" for ordinal in ORDINALS[1:])
"""What a map shows: a run after the first one, with another mechanism, settings or budget."""
ALONE = "nothing"  # no second mechanism of trips
MOST_SCALES = 40
LEAST_CUT, MOST_CUT = 0.03, 0.97  # positions of the swipe bar, as shares of the width; `panes.js` has the same
MOST_ZOOM = 24.0  # of a camera
FINEST_ZOOM, MOST_LEVELS = 24, 16  # finest level of points, and most levels of regions
FARTHEST = 1e12  # larger than any coordinate on Earth; a box within it has a finite area
MOST_ARCS, LARGEST_LEAST, MOST_REGIONS = 5000, 2**53 - 1, 2**31
COUNTS, RATES, DENSITY = "Counts", "Rates", "Per km²"
MEASURES = (COUNTS, RATES, DENSITY)
"""What colours the regions: counts, counts by a public number of the sample, or counts by area."""
MOST_ASKED = 60  # regions that are added up
PERSON, VOUCHED, EVERY_ROW = "person", "vouched", "each"
"""Whom a release of files protects: persons of a column, persons of whom nobody has more than a bound, or each row."""
MOST_PER_PERSON = 1000
IDS, COORDINATES = "Ids of regions", "Coordinates"
"""How the ends of trips, or the regions of records, are found."""
A_FILE, HEXAGONS, SQUARES = "File", "Hexagons", "Squares"
KINDS_OF_REGIONS = (A_FILE, HEXAGONS, SQUARES)
"""Where the regions of areas come from."""
PLACE_ALONE, HOURS, WEEKDAYS, MONTHS, BINS, VALUES = "Place alone", "Hour", "Weekday", "Month", "Numbers in bins", "Listed values"
SUMS = "Sum and mean"
COUNTED_BY = (PLACE_ALONE, HOURS, WEEKDAYS, MONTHS, BINS, VALUES, SUMS)
"""By what records of files are counted beside the place; or that a number of each is added up."""
NO_ZONE = "none"  # the column has no times, but hours, days or months themselves
OTHERS = "other"  # id of the slot of all records that lie in no other one
SIDES = ("west", "south", "east", "north")
CURRENCIES = ("ε, δ", "ρ")
SMALLEST_CAP, SMALLEST_RHO_CAP, LARGEST_CAP, LARGEST_CAP_DELTA = 0.001, 0.000_001, 1000.0, 0.01
USUAL_FOLDER = "release"
