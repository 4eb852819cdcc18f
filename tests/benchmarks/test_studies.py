"""Speed of studies, as ratios against their draws and questions in the same run: pytest -m benchmark."""

import resource
import time

import pytest

from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.mechanisms import MECHANISMS
from dpviz.samples.points import load_point_sample
from dpviz.space.domain import Domain

pytestmark = pytest.mark.benchmark

KEYS = ("quadtree", "path_tree", "privtree", "htf", "adaptive_grid")
MOST_OVERHEAD, MOST_SECONDS, FIRST_SECONDS, WORKERS = 1.05, 60, 2, 2


@pytest.fixture(scope="module")
def points():
    """A million records on a histogram of 256 x 256."""
    return load_point_sample("gaussian_cluster", domain=Domain(bounds=(0, 0, 1024, 1024), crs=None, order=8))


def of(points, repeats, workloads=("random",)):
    mechanisms = {key: MECHANISMS.of("points")[key]() for key in KEYS}
    return Study(
        data=points, public=True, mechanisms=mechanisms, epsilons=("0.1", "0.2", "0.5", 1, 2), repeats=repeats, seed=1, workloads=workloads
    )


@pytest.mark.parametrize("workloads", [("random",), ("random", "zooms", "sizes")], ids=["boxes", "boxes, zooms and sizes"])
def test_the_engine_adds_little_to_draws_and_questions(points, line, workloads):
    """In this process, by processor time: draws and the questions to them with their error figures, and the whole study."""
    study, parts, wholes = of(points, 1, workloads), [], []
    runs = study.runs()
    for _ in range(9):
        parts.append(sum(seconds_of_draw_and_questions(study, run) for run in runs))
        start = time.process_time()
        assert len(list(compare(study))) == len(runs) * len(study.questions.names())
        wholes.append(time.process_time() - start)
    what = f"study of {len(runs)} runs, {len(study.questions.names())} workloads, one process"
    line(what, min(wholes), min(parts), "draws and questions", MOST_OVERHEAD)


def seconds_of_draw_and_questions(study, run):
    """Of one run that is then forgotten, as a study does."""
    start = time.process_time()
    study.questions.rows(study.release(run), parts=study.parts)
    return time.process_time() - start


def test_a_whole_study_on_two_workers(points, line):
    """5 mechanisms x 5 epsilons x 30 repeats. What both processors worked is held to the bar: other people's work is not ours."""
    study, first, rows = of(points, 30), None, 0
    begun, start, spent = _processors(), time.perf_counter(), 0.0
    for row in compare(study, workers=WORKERS):
        first = first or time.perf_counter() - start
        spent, rows = spent + row["seconds"], rows + 1
    whole, worked = time.perf_counter() - start, _processors() - begun
    line("study of 750 runs, 256 x 256, two workers: first row", first, whole, "the whole study")
    line("study of 750 runs, 256 x 256, two workers", whole, spent, "its draws one after the other")
    assert rows == 750
    assert first <= FIRST_SECONDS
    line("its work on each of two processors", worked / WORKERS, spent / WORKERS, "draws on each")
    assert worked / WORKERS <= MOST_SECONDS


def _processors():
    """Seconds that processors worked for this process and for those that it has started and seen end."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
