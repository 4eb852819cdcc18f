"""What publications of tests are called."""

import pytest

from dpviz.publishing.publish import PublicationTexts

collect_ignore = ["before/make.py"]  # it made the files beside it, with the code of its day, and is never run again


@pytest.fixture
def words(tmp_path):
    """The texts and the folder of a publication."""
    return PublicationTexts(name="A crowd", curator="The town", folder=tmp_path / "out", formats=("geoparquet", "csv"))
