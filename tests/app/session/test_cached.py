"""What is kept between reruns: keyed on the whole content, and never a release."""

import ast
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import dpviz.app
from dpviz.app.session import cached
from dpviz.space.domain import Domain

FOLDER = Path(dpviz.app.__file__).parent
PUBLIC = ("sample", "trip_sample", "area_sample", "sample_study_rows", "shared_studies", "seeds_of_figure", "stored_run")
"""What all sessions share."""
DOMAIN = Domain(bounds=(0, 0, 1000, 1000), crs=None, order=5)


def answers(questions):
    import streamlit  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.session import cached  # noqa: PLC0415

    names = [(cached.digest_of(content), "homes.csv", content) for content, *_ in questions]
    counted = [cached.count_upload(*name, domain, domain, options) for name, (_, domain, options) in zip(names, questions, strict=True)]
    seen = [cached.inspect_points_file(cached.digest_of(content), "homes.csv", content).columns for content, *_ in questions]
    streamlit.session_state["counted"], streamlit.session_state["seen"] = counted, seen


def session(*questions):
    """What one session remembers after asking the questions."""
    app = AppTest.from_function(answers, args=(questions,)).run()
    assert not app.exception
    return app.session_state


@given(st.binary(min_size=1, max_size=300), st.data())
def test_one_byte_of_a_long_file_gives_another_digest(content, data):
    place, byte = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 255))
    changed, rest = content[:place] + bytes([byte]) + content[place + 1 :], bytes(2**18)
    assert (cached.digest_of(rest + content + rest) == cached.digest_of(rest + changed + rest)) == (content == changed)


def test_the_same_content_is_counted_once_and_columns_follow_the_content():
    found = session(*[(content, DOMAIN, ()) for content in (b"x,y\n1,2\n", b"x,y\n1,2\n", b"x,y,who\n1,2,a\n")])
    one, two, other = found["counted"]
    assert one is two
    assert other is not one
    assert found["seen"] == [("x", "y"), ("x", "y"), ("x", "y", "who")]


def test_every_part_of_the_question_is_in_the_key():
    content, small = b"x,y,z\n1,2,900\n1,2,900\n600,600,\n", Domain(bounds=(0, 0, 10, 10), crs=None, order=5)
    drop = (("bad_rows", "drop"),)
    found = session((content, DOMAIN, drop), (content, DOMAIN, (*drop, ("y", "z"))), (content, small, drop))
    assert [opened.data.count.sum() for opened in found["counted"]] == [3, 2, 2]


def test_a_file_keeps_its_ending_but_not_its_folder():
    assert cached.named_file("some/where/homes.csv", b"1").name == "homes.csv"


def decorators():
    """(file, function, source of the decorator) of everything in the app that Streamlit keeps."""
    for file in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    if re.search("cache|per_session", ast.unparse(decorator)):
                        yield file.name, node, ast.unparse(decorator)


def test_only_loading_is_kept_and_never_a_release():
    assert {file for file, _, _ in decorators()} == {"cached.py"}
    text = Path(cached.__file__).read_text("utf-8")
    assert not any(word in text.split('"""', 2)[2] for word in ("PointRelease", "mechanisms", "Entropy", "evaluate"))


def test_everything_kept_has_an_end_and_private_things_stay_in_their_session_and_are_forgotten_with_it():
    private = {node.name for _, node, decorator in decorators() if decorator.startswith("_per_session(")}
    assert {function.__wrapped__.__name__ for function in cached.PER_SESSION} == private
    for _, node, decorator in decorators():
        assert "max_entries=" in decorator or node.name in private, node.name
        assert (node.name in private) == (node.name not in PUBLIC)
        # others are known by the content of a file
        keyed = (*PUBLIC, "keeper", "file_counts", "make_regions_without_file", "mask_to_land")
        assert node.name in keyed or node.args.args[0].arg == "digest"
