"""Named faults of published releases, as folders and as zips. Each is broken for certain."""

import hashlib
import json
import os
import stat
import zipfile

from dpviz.release.files import MANIFEST, seal
from tests.data.reading.broken_packed import TOO_DEEP, locked
from tests.data.reading.whole import archive


def with_manifest(members, change):
    """The same files under a manifest that is sealed again after `change` was made in it."""
    manifest = json.loads(members[MANIFEST])
    change(manifest)
    return {**members, MANIFEST: json.dumps({**manifest, "seal": seal(manifest)}).encode()}


def with_file(members, name, content):
    """Another content of one file that the manifest agrees to."""

    def agree(manifest):
        entry = next(each for each in manifest["files"] if each["name"] == name)
        entry.update(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))

    return {**with_manifest(members, agree), name: content}


def release(members):
    """Faults of the files of a release: fault -> name -> bytes."""
    text = members[MANIFEST].decode()
    table = min(name for name in members if name.endswith(".parquet"))

    def changed(*path, value):
        def change(manifest):
            at = manifest
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = value

        return with_manifest(members, change)

    def manifest(content):
        return {**members, MANIFEST: content if isinstance(content, bytes) else content.encode()}

    return {
        "a table is missing": {name: content for name, content in members.items() if name != table},
        "a table was changed": {**members, table: members[table] + b"zq"},
        "the report was changed": {**members, "report.html": b"<script>zq Kowalska</script>"},
        "a file that is not listed": {**members, "extra.csv": b"zq Kowalska"},
        "a table of garbage that is agreed to": with_file(members, table, b"PAR1 zq Kowalska PAR1"),
        "an empty table that is agreed to": with_file(members, table, b""),
        "a manifest that is no JSON": manifest("zq Kowalska"),
        "a manifest that is a list": manifest('["zq"]'),
        "a manifest that is deep": manifest(TOO_DEEP),
        "a manifest with a name twice": manifest(text.replace("{", '{"seal": "zq",', 1)),
        "a manifest in utf-16": manifest(text.encode("utf-16-be")),
        "a manifest without a seal that fits": manifest(text.replace("A sample.", "Another sample, zq.")),
        "a manifest without files": changed("files", value=[]),
        "a manifest with a path out": changed("files", 0, "name", value="../zq"),
        "a schema of the future": changed("schema_version", value="4711.0"),
        "an epsilon that is not finite": manifest(text.replace('"privacy": {', '"privacy": {"zq": NaN,', 1)),
        "contents of another kind": changed("contents", "kind", value="zq"),
        "an unknown field": changed("zq", value="Kowalska"),
        "no privacy": changed("privacy", value={}),
    }


def folders(members):
    """Faults that only a folder can have: fault -> what puts it into a folder that holds the whole release."""
    table = min(name for name in members if name.endswith(".parquet"))

    def linked(folder):
        (folder.parent / "elsewhere").write_bytes(members[table])
        (folder / table).unlink()
        (folder / table).symlink_to(folder.parent / "elsewhere")

    return {
        "a link instead of a table": linked,
        "a folder inside": lambda folder: (folder / "zq").mkdir(),
        "a pipe inside": lambda folder: os.mkfifo(folder / "zq"),
        "no manifest": lambda folder: (folder / MANIFEST).unlink(),
    }


def zips(members):
    """Faults that only a zip can have: fault -> bytes."""
    link = zipfile.ZipInfo("report.html")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    rest = {name: content for name, content in members.items() if name != "report.html"}
    return {
        "a path upwards": archive({**members, "../zq": b"zq"}),
        "an absolute path": archive({**members, "/etc/zq": b"zq"}),
        "a path with backslashes": archive({**members, "..\\zq": b"zq"}),
        "a link": archive({**rest, link: b"/etc/passwd"}),
        "two folders": archive({**{f"a/{name}": content for name, content in members.items()}, "b/zq": b"zq"}),
        "too many members": archive({**members, **{f"zq{place}": b"" for place in range(300)}}),
        "a password": locked(archive(members)),
        "another compression": archive(members, zipfile.ZIP_BZIP2),
        "a bomb": archive({**members, "report.html": b"\0" * 20_000_000}),
    }
