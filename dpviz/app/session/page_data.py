"""What the data of every page carry beside their counts: how they are recognised and named, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from dpviz.app.session.ledger import Source

Counts_co = TypeVar("Counts_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class PageData(Generic[Counts_co]):
    """Loaded data, and what the page may say about them.

    Attributes:
        counts: the private counts.
        digest: identifies the content; never shown.
        fingerprints: fingerprints by which the ledger recognises the data; never shown.
        title: name of the data on screen.
        unit: what is counted, for example "residents".
        source: where the data come from.
    """

    counts: Counts_co
    digest: str
    fingerprints: tuple[str, ...]
    title: str
    unit: str
    source: Source

    @property
    def bundled(self) -> bool:
        """Whether the data are a sample, which comes with the package and is public."""
        return self.source.data_part.sample is not None
