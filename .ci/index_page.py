"""README as a page of a package index shows it: without pictures and without links to files, which are not there."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?://)[^)]*\)\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]*\)")


def index_page(readme: str) -> str:
    """Return the text of README without what leads nowhere on an index page."""
    return _LINK.sub(r"\1", _PICTURE.sub("", readme))


class IndexPage(MetadataHookInterface):
    """Gives the metadata of the package their description."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Set the description; hatchling calls this."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": index_page(text)}
