"""Twenty people on one server, each moving a control every five seconds: pytest -m benchmark -s prints how long they wait, and the memory.

Each speaks Streamlit's own protocol in place of a browser, and no two ask for the same run, so that none finds the result of another.
"""

import threading
import time
from dataclasses import dataclass, field

import numpy as np
import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from tests.scenes import read

pytestmark = pytest.mark.benchmark
SESSIONS, MOVES, PAUSE = 20, 12, 5.0  # people, moves of each, and seconds from one move to the next
PATIENCE = 120.0
EPSILONS = ["0.05", "0.07", "0.1", "0.15", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3"]


@dataclass
class Session:
    """One person on the Points page.

    Attributes:
        opened: seconds until the first maps were there.
        answers: seconds from each move of the slider until other maps were there.
        finished: seconds from each move until the page was complete.
    """

    address: str
    number: int
    moves: int = MOVES
    opened: float = 0.0
    answers: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    query: str = ""
    page: str = ""
    slider: str = ""
    chosen: str = ""
    scene: str = ""
    ticks: dict[str, tuple[float, float]] = field(default_factory=dict)

    def visit(self, begun):
        """Open the page, and move the slider again and again."""
        self.query = f"mechanism=quadtree&run={1000 + self.number}"
        with connect(
            self.address.replace("http", "ws") + "/_stcore/stream", subprotocols=["streamlit"], max_size=None, ping_interval=None
        ) as self.socket:
            self.opened, _ = self._ask()
            begun.wait(PATIENCE)
            time.sleep(PAUSE * self.number / SESSIONS)
            for text in EPSILONS[: self.moves]:
                self.chosen = text
                answer, finished = self._ask()
                self.answers.append(answer)
                self.finished.append(finished)
                time.sleep(max(PAUSE - finished, 0.0))

    def _ask(self):
        """Run the page; the seconds until other maps are there, and until the page is complete with them."""
        start, before, answer = time.perf_counter(), self.scene, None
        self._send("")
        while time.perf_counter() < start + PATIENCE:
            message = self._receive()
            if answer is None and self.scene != before:
                answer = time.perf_counter() - start
            if message is not None and message.WhichOneof("type") == "script_finished" and answer is not None:
                return answer, time.perf_counter() - start
        raise TimeoutError(f"no answer within {PATIENCE:g} s")

    def _send(self, fragment):
        self._send_state(fragment, "points", "")

    def _send_state(self, fragment, name, button):
        """Run the page or a fragment of it, with what was chosen or pressed."""
        back = BackMsg()
        state = back.rerun_script
        state.query_string, state.page_script_hash, state.fragment_id, state.is_auto_rerun = self.query, self.page, fragment, bool(fragment)
        state.page_name = "" if self.page else name
        if button:
            if not fragment:
                state.widget_states.widgets.add(id=button).trigger_value = True
        elif self.chosen:
            state.widget_states.widgets.add(id=self.slider).string_array_value.data.append(self.chosen)
        self.socket.send(back.SerializeToString())

    def _receive(self):
        """Take the next message; fragments that run every moment, such as a progress bar, are run when they are due."""
        now = time.monotonic()
        for fragment, (due, interval) in list(self.ticks.items()):
            if due <= now:
                self.ticks[fragment] = (now + interval, interval)
                self._send(fragment)
        try:
            content = self.socket.recv(timeout=0.1)
        except TimeoutError:
            return None
        message = ForwardMsg.FromString(content)
        self._note(message)
        return message

    def _note(self, message):
        """Keep what later messages need."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            if not message.metadata.run.fragment_ids:
                self.ticks.clear()
        elif kind == "navigation":
            self.page = message.navigation.page_script_hash
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self.ticks.pop(fragment, None)
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            interval = message.auto_rerun.interval
            self.ticks[message.auto_rerun.fragment_id] = (time.monotonic() + interval, interval)
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._note_element(message.delta.new_element)

    def _note_element(self, element):
        kind = element.WhichOneof("type")
        if kind == "slider" and element.slider.id.endswith("epsilon slider"):
            self.slider = element.slider.id
        elif kind == "bidi_component" and element.bidi_component.component_name == "dpviz_part":
            header, _ = read(element.bidi_component.bytes)
            self.scene = header["key"] if "parts" in header else self.scene


def memory(process):
    """Bytes that a server and its children hold."""
    server = psutil.Process(process.pid)
    return sum(each.memory_info().rss for each in (server, *server.children(recursive=True)))


@pytest.mark.timeout(900)
def test_twenty_sessions_at_once(launch):
    process, port, _ = launch(lambda port: ["dpviz", "app", "--headless", "--no-token", f"--port={port}"])
    first = Session(f"http://127.0.0.1:{port}", SESSIONS, moves=0)
    first.visit(threading.Barrier(1))
    before = memory(process)
    people, begun = [Session(first.address, number) for number in range(SESSIONS)], threading.Barrier(SESSIONS)
    threads = [threading.Thread(target=each.visit, args=(begun,)) for each in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = memory(process)
    answers, finished = (np.array([seconds for each in people for seconds in getattr(each, name)]) for name in ("answers", "finished"))
    print()
    for name, seconds in (("page opened, all at once", [each.opened for each in people]), ("maps", answers), ("page complete", finished)):
        median, most, slowest = np.quantile(seconds, [0.5, 0.95, 1.0])
        print(f"{name:26} median {median:6.2f} s   95 % {most:6.2f} s   slowest {slowest:6.2f} s   of {len(seconds)}")
    each = (after - before) / SESSIONS / 2**20
    print(f"memory of the server {before / 2**20:,.0f} MiB, with {SESSIONS} sessions {after / 2**20:,.0f} MiB: {each:.0f} MiB each")
    assert [len(each.answers) for each in people] == [MOVES] * SESSIONS
