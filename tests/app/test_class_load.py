"""A class of forty on one server: pytest -m benchmark -s tests/app/test_class_load.py prints how long they wait, and the memory.

Half move the budget on the Points page, each with runs of their own; half press *Run again* in lessons. They speak Streamlit's protocol in
place of a browser, after the code of the class was exchanged for the cookie.
"""

import threading
import time
from dataclasses import dataclass

import numpy as np
import psutil
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.app.calls import ask
from tests.app.test_many_sessions import EPSILONS, PATIENCE, Session, memory

pytestmark = pytest.mark.benchmark
SESSIONS, MOVES, PAUSE = 40, 4, 15.0  # students, moves of each, and seconds from one move to the next
STOPS = ("sums", "split", "topdown", "interval")
CODE = "code-of-class"


@dataclass
class Student(Session):
    """One student on the Points page."""

    cookie: str = ""
    refused: int = 0

    def visit(self, begun):
        """Open the page, and move the slider again and again."""
        self.query = f"mechanism=quadtree&run={1000 + self.number}"
        self._stay(begun, "points")

    def _stay(self, begun, name):
        self.name = name
        address, headers = self.address.replace("http", "ws") + "/_stcore/stream", {"Cookie": self.cookie}
        with connect(address, subprotocols=["streamlit"], max_size=None, ping_interval=None, additional_headers=headers) as self.socket:
            self.opened, _ = self._ask()
            begun.wait(PATIENCE)
            time.sleep(PAUSE * self.number / SESSIONS)
            for text in EPSILONS[: self.moves]:
                self.chosen = text
                answer, finished = self._ask()
                self.answers.append(answer)
                self.finished.append(finished)
                time.sleep(max(PAUSE - finished, 0.0))
            begun.wait(PATIENCE)  # all pages are still open when the memory is read
            begun.wait(PATIENCE)

    def _note_element(self, element):
        is_error = element.WhichOneof("type") == "exception" or (element.HasField("alert") and element.alert.format == element.alert.ERROR)
        self.refused += is_error
        super()._note_element(element)


@dataclass
class Learner(Student):
    """One student on the Learn page, whose answer is other charts."""

    button: str = ""

    def visit(self, begun):
        """Open a lesson, and run it again and again."""
        self.query = f"stop={STOPS[self.number % len(STOPS)]}&draw={1 + self.number}"
        self._stay(begun, "learn")

    def _send(self, fragment):
        self._send_state(fragment, "learn", self.button if self.chosen else "")

    def _note_element(self, element):
        super()._note_element(element)
        kind = element.WhichOneof("type")
        if kind == "button" and element.button.id.endswith("learn draw"):
            self.button = element.button.id
        elif kind == "vega_lite_chart":
            self.scene = str(hash(element.vega_lite_chart.SerializeToString()))


def connect_one_more(address, cookie):
    """The status with which the server answers one more page."""
    try:
        connect(
            address.replace("http", "ws") + "/_stcore/stream", subprotocols=["streamlit"], additional_headers={"Cookie": cookie}
        ).close()
    except InvalidStatus as refused:
        return refused.response.status_code
    return 101


@pytest.mark.timeout(1200)
def test_forty_students_at_once(launch):
    words = ["--class", "--host", "127.0.0.1", "--headless", f"--sessions={SESSIONS}"]
    process, port, _ = launch(lambda port: ["dpviz", "app", *words, f"--port={port}"], {"DPVIZ_CLASS_CODE": CODE})
    address = f"http://127.0.0.1:{port}"
    cookie = ask(address, f"/?token={CODE}")[1]["Set-Cookie"].split(";")[0]
    time.sleep(2.0)
    used, ended = {"at the start": memory(process)}, threading.Event()
    people = [(Learner if number % 2 else Student)(address, number, moves=MOVES, cookie=cookie) for number in range(SESSIONS)]
    begun = threading.Barrier(SESSIONS + 1)
    threads = [threading.Thread(target=each.visit, args=(begun,)) for each in people]
    watch = threading.Thread(target=_watch, args=(process, used, ended))
    for thread in (*threads, watch):
        thread.start()
    begun.wait(PATIENCE)
    worked = worked_seconds(process)
    begun.wait(600)
    worked = worked_seconds(process) - worked
    used["with all pages open"] = memory(process)
    refused = connect_one_more(address, cookie), ask(address, "/points", Cookie=cookie)[0]
    begun.wait(PATIENCE)
    for thread in threads:
        thread.join()
    ended.set()
    watch.join()
    time.sleep(45.0)  # sessions are kept for 30 s, for those whose connection is lost for a moment
    Student(address, 999, moves=0, cookie=cookie).visit(threading.Barrier(1))  # Streamlit forgets old sessions when a new one comes
    time.sleep(25.0)  # free memory is given back every 20 s
    used["70 s after all have gone"] = memory(process)
    print()
    for kind in (Student, Learner):
        own = [each for each in people if type(each) is kind]
        for name in ("opened", "answers", "finished"):
            seconds = np.hstack([getattr(each, name) for each in own])
            median, most, slowest = np.quantile(seconds, [0.5, 0.95, 1.0])
            print(f"{kind.__name__:8} {name:9} median {median:6.2f} s   95 % {most:6.2f} s   slowest {slowest:6.2f} s   of {len(seconds)}")
    each = worked / (SESSIONS * MOVES)
    refusals = sum(one.refused for one in people)
    print(f"processor: {worked:.0f} s for {SESSIONS * MOVES} moves, {each:.2f} s each; refused or failed: {refusals}")
    print("memory in MiB: " + ", ".join(f"{when} {size / 2**20:,.0f}" for when, size in used.items()))
    assert refused == (403, 503), "there is no place for one more"
    assert [len(each.answers) for each in people] == [MOVES] * SESSIONS


def worked_seconds(process):
    """Seconds of processor that a server has used."""
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def _watch(process, used, ended):
    while not ended.wait(0.5):
        used["at its peak"] = max(used.get("at its peak", 0), memory(process))
