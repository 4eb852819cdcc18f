"""What the command line says, where, and with which exit code: data to stdout, words to stderr."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, TypeVar

from dpviz.data.counting.job import Watch
from dpviz.errors import DpvizError, RefusedError
from dpviz.view.escape import clean, line

T = TypeVar("T")

DONE, REFUSED, FAILED, INTERRUPTED = 0, 1, 2, 130
PATIENCE = 30.0  # seconds in which interrupted work takes away what it has begun


def say(text: str) -> None:
    """One line for the person, on stderr; where nobody reads on, it is lost, and the work goes on."""
    _tell(line(text))


def _tell(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what is said to a reader who left go nowhere, so that nothing fails any more, not even at exit."""
    with suppress(OSError, ValueError):  # a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def any_text(*streams: TextIO) -> None:
    """Let streams write every text: signs that their encoding lacks become their numbers, after a backslash."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give(found: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """The result, on stdout: as JSON, or as lines of text, which a name in them does not break."""
    shown = [clean(" ".join(text.splitlines())) for text in lines]
    text = json.dumps(found, indent=2) if as_json else "\n".join(shown)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(error: BaseException, *, as_json: bool) -> int:
    """Say on stderr what went wrong, as one line or as one JSON object; give the exit code.

    Texts are our own. What a library raised is named by its kind alone: its text could carry a value.
    """
    code, kind = code_of(error), type(error).__name__
    if isinstance(error, KeyboardInterrupt):
        text, kind = str(error) or "Interrupted: nothing was written.", "Interrupted"
    elif isinstance(error, DpvizError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = "There is not enough memory for this; choose a lower order, a lower height or fewer records."
    else:
        text, kind = (
            f"Something failed that should not ({kind}); nothing more is known here, to keep private values out of messages.",
            "Error",
        )
    if as_json:
        _tell(json.dumps({"error": line(text), "kind": kind, "exit": code}))
    else:
        say(f"dpviz: {text}")
    return code


def code_of(error: BaseException) -> int:
    """1 for what is forbidden, 130 for an interruption, 2 for the rest."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return REFUSED if isinstance(error, RefusedError) else FAILED


@contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """Being told to end (SIGTERM), or losing the terminal (SIGHUP), is an interruption: what is half made is taken away.

    Signals that are ignored stay ignored, as nohup wants it.
    """
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    ends = [getattr(signal, name) for name in names if hasattr(signal, name)]
    ends = [each for each in ends if signal.getsignal(each) == signal.SIG_DFL]
    for each in ends:
        signal.signal(each, signal.default_int_handler)
    try:
        yield
    finally:
        for each in ends:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def counted_bar(total: int, what: str) -> Iterator[Callable[..., object]]:
    """A bar on stderr that says how far long work is: call what it gives after each step. Silent where stderr is no terminal."""
    from tqdm import tqdm  # noqa: PLC0415  (only long work needs it)

    with tqdm(total=total, desc=what, unit="run", file=sys.stderr, disable=None, leave=False) as bar:
        yield bar.update


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[float], object]]:
    """The same for work that says which part of it is done, from 0 to 1."""
    from tqdm import tqdm  # noqa: PLC0415

    shape = "{l_bar}{bar}| {elapsed}<{remaining}"
    with tqdm(total=100, desc=what, bar_format=shape, file=sys.stderr, disable=None, leave=False) as bar:
        yield lambda done: bar.update(max(100 * done - bar.n, 0))


def followed(what: str, work: Callable[[Watch], T]) -> T:
    """What `work` gives, with a bar; an interruption ends it and waits until it has taken away what it began.

    Raises:
        KeyboardInterrupt: it was interrupted; a second interruption does not wait.
        BaseException: whatever `work` raises.
    """
    found: list[T] = []
    failed: list[BaseException] = []
    cancel, ended = threading.Event(), threading.Event()  # an interrupted Thread.join takes a running thread for ended

    def run(progress: Callable[[float], object]) -> None:
        try:
            found.append(work(Watch(progress=progress, cancel=cancel)))
        except BaseException as error:  # noqa: BLE001  (raised again where somebody listens)
            failed.append(error)
        finally:
            ended.set()

    with share_bar(what) as progress:
        try:
            threading.Thread(target=run, args=(progress,), name=what, daemon=True).start()
            ended.wait()
        except KeyboardInterrupt:
            cancel.set()
            ended.wait(PATIENCE)
            failed.clear()
            raise
    if failed:
        raise failed.pop()
    return found[0]
