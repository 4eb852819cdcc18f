"""How objects show themselves in a notebook: methods that load `dpviz.view` when they are called, and never before.

A room may not import a later one, and `import dpviz` loads no library for maps. So these methods, alone in the package, look up the room
`view` by its name.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.errors import SettingError

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes

_PUBLIC = ("frame", "unit", "contributions")
"""What is shown of private counts: what was declared, and nothing that was counted."""
_HEIGHT = 520  # pixels of an interactive map


def _view(module: str) -> Any:
    """Import a module of the room `view`.

    Raises:
        SettingError: it needs a library that is not installed.
    """
    try:
        return importlib.import_module(f"dpviz.view.{module}")
    except ModuleNotFoundError as error:
        raise SettingError(f'This needs {error.name}, which is not installed: pip install "dpviz[plot]".') from None


class HtmlCard:
    """An object that notebooks show as HTML, which runs no script and loads nothing.

    >>> import dpviz as dv
    >>> html = dv.Domain(bounds=(4.6, 45.5, 5.1, 46.0), crs="EPSG:4326", order=8)._repr_html_()
    >>> "256 × 256 cells" in html
    True
    """

    def _repr_html_(self) -> str:
        return str(_view("notebook").write_html(self))


class PrivateCard:
    """Private counts, of which notebooks show only what was declared: the public frame, and what is protected.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1] * 913, [2] * 913, domain=domain)
    >>> html = points._repr_html_()
    >>> "16 × 16 cells" in html, "913" in html
    (True, False)
    """

    def _repr_html_(self) -> str:
        declared = {name: getattr(self, name) for name in _PUBLIC}
        return str(_view("notebook").write_declared(type(self).__name__, declared))


@dataclass(frozen=True)
class MapPage:
    """An interactive map as one HTML page. Library and data are in it: it asks no server for anything.

    Attributes:
        html: the page, about 2 MB.
        description: what the map shows, for people who cannot see it.

    >>> page = MapPage(html="<!DOCTYPE html><p>A map</p>", description="Nothing yet")
    >>> page
    MapPage(Nothing yet)
    """

    html: str
    description: str

    def __repr__(self) -> str:
        return f"MapPage({self.description})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(self.description)}" sandbox="allow-scripts" width="100%" height="{_HEIGHT}"'
            f' style="border:0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page into a file, which any browser opens.

        Args:
            path: of the file; one that exists is replaced.

        Returns:
            The path.
        """
        Path(path).write_text(self.html, "utf-8")
        return Path(path)


class Mapped(HtmlCard):
    """A release that can be drawn: a picture by Matplotlib, or a map to move and point at."""

    def plot(self, level: int | str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw a level with Matplotlib, which `pip install "dpviz[plot]"` brings.

        Partitions and regions are coloured by density; of trips, the largest pairs of different regions are drawn as arcs. Colours are
        chosen from released numbers.

        Args:
            level: of partitions, 0 for the whole domain; of regions, 1 (or a name) for the coarsest. None draws the finest level that is
                not mostly noise.
            ax: Matplotlib axes to draw into; None makes new ones.

        Returns:
            The axes.

        Raises:
            SettingError: Matplotlib is not installed.
            DomainError: no such level, regions without geometry, or data of a kind that has no map.

        >>> import dpviz as dv
        >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
        >>> points = dv.PointCounts.from_xy([1, 2, 9], [1, 3, 9], domain=domain)
        >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
        >>> axes = release.plot(level=1)  # doctest: +SKIP
        """
        axes: Axes = _view("plots").plot(self, level, ax)
        return axes

    def explore(self, level: int | str | None = None) -> MapPage:
        """Make an interactive map of a level with deck.gl, which `pip install "dpviz[plot]"` brings. It works without a network.

        Where there is no WebGL, and in print, it is a picture.

        Args:
            level: as for `plot`.

        Returns:
            The map, which a notebook shows, and which `save` writes into a file.

        Raises:
            SettingError: pydeck is not installed.
            DomainError: no such level, regions without geometry, or data of a kind that has no map.

        >>> import dpviz as dv
        >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
        >>> points = dv.PointCounts.from_xy([1, 2, 9], [1, 3, 9], domain=domain)
        >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(5), dv.Entropy.seeded(1))
        >>> release.explore(level=1)  # doctest: +SKIP
        MapPage(Map of 4 partitions, released: records per unit of area.)
        """
        page: MapPage = _view("explore").explore(self, level)
        return page
