"""The files of a release, from a folder or a zip, checked before anything reads them."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from dpviz.errors import DpvizError, InputError

Source = str | os.PathLike[str] | BinaryIO
T = TypeVar("T")

MOST_MEMBERS = 256
MOST_BYTES = 4 * 2**30
LITTER = (".DS_Store", "Thumbs.db")
"""What file managers leave in folders that they show: no part of a release, and never read."""
_AT_ONCE = 2**20
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Members:
    """Files of a release by name, whatever holds them.

    Attributes:
        sizes: bytes of each, as declared.
        open: opens one by name.
    """

    sizes: dict[str, int]
    open: Callable[[str], BinaryIO]

    def read(self, name: str, most: int) -> bytes:
        """A file's content.

        Raises:
            InputError: it is missing, or larger than `most` bytes.
        """
        if name not in self.sizes:
            raise InputError(f"The release has no {name}.")
        with self.open(name) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"The release's {name} is larger than the limit of {most:,} bytes.")
        return content

    def digest(self, name: str) -> tuple[str, int]:
        """SHA-256 and number of bytes of a file, read piece by piece and never beyond the limit."""
        digest, size = hashlib.sha256(), 0
        with self.open(name) as file:
            while size <= MOST_BYTES and (part := file.read(_AT_ONCE)):
                digest.update(part)
                size += len(part)
        return digest.hexdigest(), size


def guarded(rule: str, read: Callable[[], T]) -> T:
    """What `read` gives; whatever goes wrong becomes an InputError, raised outside the handler so that it carries no values.

    Raises:
        InputError: with the rule, and the words of our own error if it was one.
    """
    error = InputError(rule)
    try:
        return read()
    except InputError as own:
        error = own
    except DpvizError as own:
        error = InputError(f"{rule} {own}")
    except Exception:  # noqa: BLE001, S110  (libraries document no common root)
        pass
    raise error


@contextmanager
def opened(source: Source) -> Iterator[Members]:
    """The files of a folder, a zip, or an open binary file that holds a zip.

    Raises:
        InputError: no such folder or file, no zip, too many or too large members, or members that are no plain files.
    """
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        yield _checked(guarded("The folder cannot be read.", lambda: _folder(Path(source))))
        return
    with guarded("The file is not a zip archive, or it cannot be read.", lambda: _archive(source)) as archive:
        yield _checked(guarded("The zip archive cannot be read.", lambda: _zip(archive)))


def _archive(source: Source) -> zipfile.ZipFile:
    if isinstance(source, str | os.PathLike):
        if not Path(source).is_file():
            raise InputError("A release is a folder, or a zip of one: there is no such folder or file.")
        return zipfile.ZipFile(source)
    content = source.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"The archive is larger than the limit of {MOST_BYTES:,} bytes.")
    return zipfile.ZipFile(io.BytesIO(content))


def _folder(folder: Path) -> Members:
    sizes = {}
    for path in (path for path in folder.iterdir() if path.name not in LITTER):
        if path.is_symlink() or not path.is_file():
            raise InputError("The folder holds something that is no plain file; a release has neither folders nor links in it.")
        sizes[path.name] = path.stat().st_size
    return Members(sizes, lambda name: (folder / name).open("rb"))


def _zip(archive: zipfile.ZipFile) -> Members:
    members = [member for member in archive.infolist() if not member.is_dir() and PurePosixPath(member.filename).name not in LITTER]
    for member in members:
        _check_member(member)
    paths = [PurePosixPath(member.filename) for member in members]
    if len({path.parent for path in paths}) > 1 or any(len(path.parts) > 2 for path in paths):
        raise InputError("The archive must hold the files of one release, all in one folder, or in none.")
    by_name = {path.name: member for path, member in zip(paths, members, strict=True)}
    if len(by_name) < len(members):
        raise InputError("The archive has two members of one name.")
    return Members({name: member.file_size for name, member in by_name.items()}, lambda name: archive.open(by_name[name]))  # type: ignore[return-value,arg-type]


def _check_member(member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in member.filename:
        raise InputError("The archive has a member whose path leads out of it.")
    if (member.external_attr >> 16) & 0o170000 == 0o120000:
        raise InputError("The archive has a member that is a link.")
    if member.flag_bits & 0x1:
        raise InputError("The archive is encrypted; unpack it and zip it without a password.")
    if member.compress_type not in _PLAIN_METHODS:
        raise InputError("The archive is compressed in an unusual way; zip it with the ordinary method (deflate).")


def _checked(members: Members) -> Members:
    if len(members.sizes) > MOST_MEMBERS:
        raise InputError(f"The release has more files than the limit of {MOST_MEMBERS:,}.")
    if sum(members.sizes.values()) > MOST_BYTES:
        raise InputError(f"The release's files are larger than the limit of {MOST_BYTES:,} bytes together.")
    return members
