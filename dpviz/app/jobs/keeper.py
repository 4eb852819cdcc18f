"""Who keeps jobs: a session keeps one of each kind and ends it with itself; jobs on public samples may be held by several sessions.

When the last session that holds a shared job is gone, as for a moment while a page is loaded anew, the job goes on for
`SECONDS_WITHOUT_PAGE` and then stops.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from dpviz.app.jobs.job import DONE, Job

SECONDS_WITHOUT_PAGE = 60.0  # seconds for which a shared job goes on after the last page that held it is gone
AnyJob = TypeVar("AnyJob", bound=Job[Any])


class Keeper:
    """The owner of a session's jobs: keeps one of each kind, and lets go of them when the session ends."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[Any]] = {}

    def find(self, kind: str) -> Job[Any] | None:
        """Return the job of a kind; None if there is none."""
        return self._jobs.get(kind)

    def take(self, job: Job[Any]) -> bool:
        """Keep a job, and end the earlier job of the same kind; return False, and keep nothing, if the job is ending already."""
        if not job.hold(self):
            return False
        earlier = self._jobs.get(job.kind)
        self._jobs[job.kind] = job
        if earlier is not None and earlier is not job:
            earlier.let_go(self)
        return True

    def end(self, job: Job[Any]) -> bool:
        """Keep a job no longer. One that other sessions hold goes on there; return whether. Every other one is stopped."""
        if self._jobs.get(job.kind) is job:
            del self._jobs[job.kind]
        return job.let_go(self)

    def end_all(self) -> None:
        """Keep no job any longer: see `end`."""
        for job in list(self._jobs.values()):
            self.end(job)

    def stop_all(self) -> None:
        """End all jobs without waiting for them, shared ones after a while: Streamlit calls this where nothing may take long.

        The browser may only be loading the page anew, and then finds its study running.
        """
        for job in list(self._jobs.values()):
            job.let_go(self, SECONDS_WITHOUT_PAGE)


class SharedJobs:
    """The shared jobs that run on this server or were completed by it a moment ago, by their keys.

    Nothing is kept alive here: a job is found for as long as a session holds it, and for `SECONDS_WITHOUT_PAGE` after that.
    """

    def __init__(self) -> None:
        self._jobs: WeakValueDictionary[Any, Job[Any]] = WeakValueDictionary()
        self._lock = Lock()

    def find(self, key: Any) -> Job[Any] | None:
        """Return the job of a key that is running or complete; None if there is none."""
        with self._lock:
            job = self._jobs.get(key)
        return job if job is not None and (job.is_running or job.state == DONE) else None

    def start(self, job: AnyJob, keeper: Keeper, patience: float) -> AnyJob:
        """Start a job for a session, unless one with its key is running: then let the session hold that one. Return the job held.

        Args:
            job: has not been started.
            keeper: of the session.
            patience: seconds to wait at most for the first results of a job that is started.
        """
        with self._lock:
            running: Any = self._jobs.get(job.key)
            if running is not None and running.is_running and keeper.take(running):
                return running  # type: ignore[no-any-return]
            keeper.take(job)
            job.start()
            if job.is_shared:
                self._jobs[job.key] = job
        job.wait_for_results(patience)
        return job
