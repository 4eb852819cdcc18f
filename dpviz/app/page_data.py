"""What the data of every page carry beside their counts: how they are recognised and named, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.app.ledger import Source


@dataclass(frozen=True, kw_only=True)
class PageData:
    """Loaded data, and what the page may say about them; the data of each page add their private counts.

    Attributes:
        digest: identifies the content; never shown.
        fingerprints: fingerprints by which the ledger recognises the data; never shown.
        title: name of the data on screen.
        unit: what is counted, for example "residents".
        source: where the data come from.
    """

    digest: str
    fingerprints: tuple[str, ...]
    title: str
    unit: str
    source: Source

    @property
    def bundled(self) -> bool:
        """Whether the data are a sample, which comes with the package and is public."""
        return self.source.data_part.sample is not None
