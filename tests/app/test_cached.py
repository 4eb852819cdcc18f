"""What is kept between reruns: keyed on the whole content, and never a release."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import assume, given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from dpviz.app import cached
from dpviz.space.domain import Domain

FOLDER = Path(cached.__file__).parent
DOMAIN = Domain(bounds=(0, 0, 1000, 1000), crs=None, order=5)


def csv(rows):
    return pd.DataFrame(rows, columns=["x", "y"]).to_csv(index=False).encode()


def asked(questions):
    import streamlit  # noqa: PLC0415 - only this function's text runs

    from dpviz.app import cached  # noqa: PLC0415

    told = [
        cached.count_points_file(cached.digest_of(content), "homes.csv", content, domain, options) for content, domain, options in questions
    ]
    seen = [cached.inspect_points_file(cached.digest_of(content), "homes.csv", content).columns for content, *_ in questions]
    streamlit.session_state["told"], streamlit.session_state["seen"] = told, seen


def session(*questions):
    """What one session remembers after asking the questions."""
    app = AppTest.from_function(asked, args=(questions,)).run()
    assert not app.exception
    return app.session_state


def totals(*questions):
    return [int(points.count.sum()) for points in session(*questions)["told"]]


def test_one_row_in_very_many_gives_another_digest_and_another_result():
    rows = np.random.default_rng(1).integers(0, 1000, (60_000, 2))
    other = rows.copy()
    other[31_007] = 5000  # outside
    assert cached.digest_of(csv(rows)) != cached.digest_of(csv(other))
    assert totals((csv(rows), DOMAIN, ()), (csv(other), DOMAIN, ())) == [60_000, 59_999]


@given(st.binary(min_size=1, max_size=300), st.data())
def test_one_byte_gives_another_digest(content, data):
    place, byte = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 255))
    assume(content[place] != byte)
    changed = content[:place] + bytes([byte]) + content[place + 1 :]
    assert cached.digest_of(content) != cached.digest_of(changed)
    assert cached.digest_of(content) == cached.digest_of(bytes(content))


def test_the_same_content_is_counted_once_and_what_a_file_says_of_itself_follows_its_content():
    asked = session(*[(content, DOMAIN, ()) for content in (b"x,y\n1,2\n", b"x,y\n1,2\n", b"x,y,who\n1,2,a\n")])
    one, two, other = asked["told"]
    assert one is two
    assert other is not one
    assert asked["seen"] == [("x", "y"), ("x", "y"), ("x", "y", "who")]


def test_every_part_of_the_question_is_in_the_key():
    content, small = b"x,y,z\n1,2,900\n1,2,900\n600,600,\n", Domain(bounds=(0, 0, 10, 10), crs=None, order=5)
    drop = (("bad_rows", "drop"),)
    assert totals((content, DOMAIN, drop), (content, DOMAIN, (*drop, ("y", "z"))), (content, small, drop)) == [3, 2, 2]


def test_a_file_keeps_its_ending_but_not_its_folder():
    assert cached.named_file("some/where/homes.csv", b"1").name == "homes.csv"


def decorators():
    """(file, function, source of the decorator) of everything in the app that Streamlit keeps."""
    for file in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    if "cache" in ast.unparse(decorator):
                        yield file.name, node, ast.unparse(decorator)


def test_only_loading_is_kept_and_never_a_release():
    found = {node.name: ast.unparse(node.returns) for file, node, _ in decorators() if file == "cached.py"}
    files = {"inspect_points_file": "PointsFile", "inspect_regions_file": "RegionsFile", "inspect_flows_file": "FlowsFile"}
    data = {"sample": "PointCounts", "count_points_file": "PointCounts", "flow_sample": "Flows"}
    data |= {"read_regions_file": "UploadedRegions", "count_flows_file": "Flows"}
    assert found == files | data | {
        "fingerprints": "tuple[str, ...]",
        "find_id_columns": "tuple[RepeatedColumn, ...] | None",
        "keeper": "Keeper",
        "counts": "SessionCounts",
    }
    assert all(file == "cached.py" for file, _, _ in decorators())
    text = (FOLDER / "cached.py").read_text("utf-8")
    assert not any(word in text.split('"""', 2)[2] for word in ("Release", "mechanisms", "Entropy", "evaluate"))


def test_everything_kept_has_an_end_and_private_things_stay_in_their_session_and_are_forgotten_with_it():
    private = {node.name for _, node, decorator in decorators() if "scope='session'" in decorator}
    assert {function.__wrapped__.__name__ for function in cached.PER_SESSION} == private
    for _, node, decorator in decorators():
        assert "max_entries=" in decorator, node.name
        assert node.name in ("sample", "flow_sample", *private)
        assert node.name in ("sample", "flow_sample", "keeper", "counts") or node.args.args[0].arg == "digest"
