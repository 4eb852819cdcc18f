"""From files to checked rows: formats, limits, the choice of columns, and bad rows.

Here belongs everything that opens a file, also public files of regions. Rows are counted in `dpviz.data.counting`.
"""

from dpviz.data.reading.formats import register
from dpviz.data.reading.geometries import FLATGEOBUF, GEOJSON, GEOJSON_LINES, GEOPACKAGE, SHAPEFILE
from dpviz.data.reading.tables import CSV, PARQUET, TSV

for each in (CSV, TSV, GEOJSON, GEOJSON_LINES, GEOPACKAGE, FLATGEOBUF, PARQUET, SHAPEFILE):
    register(each)
