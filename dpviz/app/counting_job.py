"""Counts in the background of a page: a thread counts and reports its progress; a stopped count leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from dpviz.data.counting.job import Progress
from dpviz.errors import DpvizError
from dpviz.publishing.private_data import OpenedData

RUNNING, STOPPED, DONE, FAILED = "running", "stopped", "done", "failed"
PATIENCE = 30.0  # seconds to wait at most until a stopped count has removed its temporary files
_MOST_KEPT = 2
_NO_MEMORY = "There is not enough memory to count this: choose engine duckdb or dask, or a lower order of the lattice."

Work = Callable[[Progress], OpenedData]


class CountingJob:
    """One count in a thread. It does not know the page; the page reads its state.

    Args:
        key: identifies the files and how they are counted.
        work: function that counts; its argument takes reports of progress and says when to end.
    """

    def __init__(self, key: object, work: Work) -> None:
        self.key, self.done, self.error = key, 0.0, ""
        self.found: OpenedData | None = None
        self._work, self._cancel, self._ended = work, Event(), Event()
        self._thread = Thread(target=self._run, name="counting", daemon=True)

    def start(self) -> None:
        """Start the thread; call it once."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until the count has ended."""
        self._ended.wait()

    def stop(self, *, wait: bool = True) -> None:
        """Cancel the count; with `wait`, wait until it has removed its files, at most `PATIENCE` seconds."""
        self._cancel.set()
        if wait and self._thread.is_alive():
            self._ended.wait(PATIENCE)

    @property
    def state(self) -> str:
        """The state: running, stopped, done or failed."""
        if self.found is not None:
            return DONE
        if self._cancel.is_set():
            return STOPPED
        return FAILED if self.error else RUNNING

    def _run(self) -> None:
        try:
            self.found = self._work(Progress(progress=self._report, cancel=self._cancel))
        except DpvizError as error:
            self.error = str(error)
        except MemoryError:
            self.error = _NO_MEMORY
        except Exception as error:  # noqa: BLE001  (a library's text could quote a cell)
            self.error = f"The counting failed that should not ({type(error).__name__})."
        finally:
            self._ended.set()

    def _report(self, done: float) -> None:
        self.done = done


class SessionCounts:
    """The counts of a session, by page: the running one, and the last few that are done.

    A count that runs is cancelled by `let_go`.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, list[CountingJob]] = {}

    def of(self, page: str, key: object) -> CountingJob | None:
        """Return the page's count with that key, running or ended; None if there is none.

        A running count with another key is cancelled, because no page needs it.
        """
        jobs = self._jobs.get(page, [])
        for job in jobs:
            if job.key != key and job.state == RUNNING:
                job.stop(wait=False)
        return next((job for job in jobs if job.key == key), None)

    def take(self, page: str, job: CountingJob) -> CountingJob:
        """Keep a count and start it."""
        others = [each for each in self._jobs.get(page, []) if each.key != job.key and each.state == DONE]
        self._jobs[page] = [*others, job][-_MOST_KEPT:]
        job.start()
        return job

    def let_go(self) -> None:
        """Cancel the running counts. Streamlit calls this, and waits for it, so it must be quick."""
        for job in [job for jobs in self._jobs.values() for job in jobs]:
            job.stop(wait=False)
        self._jobs.clear()
