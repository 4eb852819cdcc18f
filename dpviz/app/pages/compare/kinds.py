"""What the Compare page knows of each kind of data: its samples, its maps and its words. A family names its own: `Family.compared`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd

from dpviz.app.pages.compare.state import CompareConfig, CompareData
from dpviz.app.session import cached
from dpviz.evaluation.study import LEVELS
from dpviz.publishing.config import DomainPart
from dpviz.publishing.private_data import PrivateData
from dpviz.samples.points import SampleInfo
from dpviz.view.escape import markdown


class Compared(ABC):
    """The data of one family on the Compare page. What is written here is for data with named levels, as regions have.

    Class attributes:
        samples: data that come with the package, by key.
        usual_sample: key of the sample with which the page opens.
        workloads: of the studies.
        places: what a level has, in the plural.
        one_place: one of the places whose errors are shown by their true count.
        parts_about: what the parts of the error are; "" if there is but one, so that there is nothing to show.
    """

    samples: ClassVar[Mapping[str, SampleInfo]]
    usual_sample: ClassVar[str]
    workloads: ClassVar[tuple[str, ...]] = (LEVELS,)
    places: ClassVar[str] = "regions"
    one_place: ClassVar[str] = "region"
    parts_about: ClassVar[str] = ""

    @abstractmethod
    def load(self, sample: str) -> Any:
        """Return the counts of a sample."""

    @abstractmethod
    def show_maps(self, data: CompareData, releases: dict[str, Any], link: bool) -> None:
        """Show releases side by side, and the truth beside them if there is room.

        Args:
            data: the data of the study.
            releases: by configuration and epsilon.
            link: whether a link to the maps can be copied.
        """

    def name_levels(self, counts: Any) -> tuple[str, ...]:
        """Return the names of the levels of a public frame, the coarsest first."""
        return tuple(counts.regions.levels)

    def most_levels(self, sample: str) -> int | None:
        """Return how many levels the maps of a sample have; None if that is not fixed."""
        return len(self.name_levels(self.load(sample)))

    def ask_sample(self, about: SampleInfo, config: CompareConfig) -> CompareData | None:  # noqa: ARG002
        """Return a sample; None, with a note, while something about it is still to be answered."""
        return sample_data(about, self.load(about.key), f"{self.load(about.key).family} {about.key}")

    def domain_part(self, data: Any, study_area: str | None) -> DomainPart | None:  # noqa: ARG002
        """Return what the file of a study on a sample says of the public frame; None if the sample says all."""
        return None

    def name_places(self, workload: str) -> str:  # noqa: ARG002
        """Return what a workload asks about, in the plural."""
        return self.places

    def name_workload(self, name: str) -> str:
        """Return the name of a workload as it is written on screen."""
        return f"{self.places} of level {name}"

    def by_level(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, str, str, str]:
        """Return the rows that have a level, with its number as the column x; the title of this axis; its name; and a caption."""
        rows = rows[~rows["workload"].str.startswith("size ")]
        names = rows["workload"].unique().tolist()
        rows = rows.assign(x=rows["workload"].map({name: number for number, name in enumerate(names, 1)}))
        levels = ", ".join(f"{number} {markdown(name)}" for number, name in enumerate(names, 1))
        return rows, "level of the regions, 1 for the coarsest", "level", f"Levels: {levels}."


def compared_of(data: CompareData) -> Compared:
    """Return what the page knows of the family of some data."""
    compared: Compared = data.family.compared
    return compared


def sample_data(about: SampleInfo, data: PrivateData, digest: str, frame: tuple[object, ...] = ()) -> CompareData:
    """Return a sample as data to compare on, with the digest and fingerprints that it has on the page of its kind."""
    fingerprints = cached.fingerprints(digest, frame, data)
    return CompareData(
        data=data, key=f"{digest} {frame}", digest=digest, fingerprints=fingerprints, title=about.title, unit=about.unit, bundled=True
    )
