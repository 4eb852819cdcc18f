"""Folders for what does not fit in memory: private, removed however the work ends, and cleared away after whoever was killed."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dpviz.data.reading.safety import NO_FOLDER, PREFIX, private_folder
from dpviz.errors import InputError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks and modes of files are those of POSIX")

KEEPER = """
import sys, pathlib
from dpviz.data.reading.safety import private_folder
with private_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "spilled").write_text("private")
    print(folder, flush=True)
    sys.stdin.read()
"""


def files(folder):
    return list(Path(folder).iterdir())


@pytest.fixture
def keeper(tmp_path):
    """Another process at work in a folder of its own."""
    process = subprocess.Popen([sys.executable, "-c", KEEPER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def test_nobody_else_reads_it_and_nothing_of_it_is_left(tmp_path):
    with private_folder(tmp_path) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "spilled").write_text("private")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing_either(tmp_path):
    with pytest.raises(ZeroDivisionError), private_folder(tmp_path) as folder:
        (folder / "spilled").write_text(str(1 / 0))
    assert list(tmp_path.iterdir()) == []


def test_one_in_use_is_left_alone_and_one_of_a_killed_process_is_removed(tmp_path, keeper):
    process, theirs = keeper
    with private_folder(tmp_path):
        assert files(theirs)
    process.kill()
    process.wait()
    assert files(theirs), "a killed process cannot clean up"
    with private_folder(tmp_path) as ours:
        assert [path.name for path in tmp_path.iterdir()] == [ours.name]


def test_folders_without_a_lock_are_not_ours_to_remove(tmp_path):
    (tmp_path / f"{PREFIX}other").mkdir()
    with private_folder(tmp_path):
        pass
    assert (tmp_path / f"{PREFIX}other").is_dir()


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path):
    (tmp_path / "treasure").write_text("")
    (tmp_path / f"{PREFIX}trap").mkdir()
    (tmp_path / f"{PREFIX}trap" / "in use").symlink_to(tmp_path / "treasure")
    with private_folder(tmp_path):
        pass
    assert (tmp_path / f"{PREFIX}trap").is_dir()


def test_where_none_can_be_made(tmp_path):
    with pytest.raises(InputError) as caught, private_folder(tmp_path / "none"):
        pass
    assert str(caught.value) == NO_FOLDER
    assert caught.value.__context__ is None
