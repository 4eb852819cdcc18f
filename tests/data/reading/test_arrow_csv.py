"""Nothing of Python is left in Arrow's threads: one that lets go of it while the process ends takes the process with it."""

import ast
import weakref
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from dpviz.arrow_memory import copy_to_arrow
from dpviz.data.reading.arrow_csv import read_csv

PACKAGE = Path(__file__).parents[3] / "dpviz"
ONE_DOOR = {"py_buffer", "PythonFile", "open_csv", "invalid_row_handler", "foreign_buffer"}
SMALL_BLOCKS = pyarrow.csv.ReadOptions(block_size=1000)
ROWS = b"a,b\n" + b"1,2\n1,2,3\n" * 2000


@pytest.fixture
def skips(monkeypatch):
    """Weak references to the functions of Python that Arrow is handed."""
    seen, parse = [], pyarrow.csv.ParseOptions

    def options(invalid_row_handler, **others):
        seen.append(weakref.ref(invalid_row_handler))
        return parse(invalid_row_handler=invalid_row_handler, **others)

    monkeypatch.setattr(pyarrow.csv, "ParseOptions", options)
    return seen


def test_no_thread_holds_the_function_that_skips_rows_nor_does_one_after_a_failure(skips):
    numbers = pyarrow.csv.ConvertOptions(column_types={"a": pa.float64()})
    for _ in range(10):
        table, ragged = read_csv(ROWS, SMALL_BLOCKS, pyarrow.csv.ConvertOptions())
        assert (table.num_rows, ragged) == (2000, 2000)
        assert skips[-1]() is None
        with pytest.raises(pa.ArrowInvalid):
            read_csv(ROWS + b"x,2\n" + ROWS, SMALL_BLOCKS, numbers)
        assert skips[-1]() is None


@pytest.mark.parametrize("content", [b"", b"abc"])
def test_arrow_has_a_copy(content):
    before = pa.total_allocated_bytes()
    memory = copy_to_arrow(content)
    assert pa.total_allocated_bytes() - before >= len(content)
    assert memory.to_pybytes() == content


def handed_over(source):
    """Names by which a module hands Arrow what is Python's."""
    found = []
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.arg if isinstance(node, ast.keyword) else None
        if name in ONE_DOOR:
            found.append(name)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("BufferReader"):
            given = ast.unparse(node.args[0])
            found += [] if given == "memory" or given.startswith("copy_to_arrow(") else ["BufferReader"]
    return found


def test_only_one_door_leads_to_arrows_threads():
    texts = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py") if path.stem != "arrow_csv"}
    suspects = {path: text for path, text in texts.items() if any(word in text for word in (*ONE_DOOR, "BufferReader"))}
    assert [path for path, text in suspects.items() if handed_over(text)] == []
    for source in ("pyarrow.csv.read_csv(pa.py_buffer(data))", "pa.PythonFile(file)", "pq.ParquetFile(pa.BufferReader(data))"):
        assert handed_over(source)
