"""Output of the command line: results to stdout, messages and progress to stderr, exit codes, interruptions."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from dpviz.cli.advice import advise_on_command_line
from dpviz.errors import DpvizError, RefusedError
from dpviz.view.escape import clean, line

if TYPE_CHECKING:
    from dpviz.data.counting.job import Progress

T = TypeVar("T")

DONE, REFUSED, FAILED, INTERRUPTED = 0, 1, 2, 130
SECONDS_TO_CLEAN_UP = 30.0
"""Longest wait until interrupted work has removed its temporary files."""


def say(text: str) -> None:
    """Print one line on stderr. If stderr is closed, the line is lost and the work continues."""
    _print_error(line(text))


def _print_error(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Redirect a closed stream to /dev/null, so that later writes, also those at exit, do not raise."""
    with suppress(OSError, ValueError):  # the stream has no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def escape_unencodable(*streams: TextIO) -> None:
    """Make streams accept every text: characters that their encoding lacks are written as backslash escapes."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give(result: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result on stdout: `result` as JSON, or `lines` as text. Line breaks and control characters in lines are removed.

    Args:
        result: the result, as JSON values.
        lines: the result, as lines of text.
        as_json: whether to print JSON; else the lines.
    """
    clean_lines = [clean(" ".join(text.splitlines())) for text in lines]
    text = json.dumps(result, indent=2) if as_json else "\n".join(clean_lines)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def finite(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Replace numbers that are not finite, which JSON lacks, by None.

    >>> finite({"value": math.inf, "case": "all"})
    {'value': None, 'case': 'all'}
    """
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error on stderr, as one line or as one JSON object, and return the exit code.

    For errors of dpviz the text is printed; for other exceptions only the type, since their texts could hold private values.
    """
    code, kind = code_of(error), type(error).__name__
    if isinstance(error, KeyboardInterrupt):
        text, kind = str(error) or "Interrupted: nothing was written.", "Interrupted"
    elif isinstance(error, DpvizError):
        text = advise_on_command_line(str(error))
    elif isinstance(error, MemoryError):
        text = "There is not enough memory for this; choose a lower order, a lower height or fewer records."
    else:
        text, kind = (
            f"An unexpected error occurred ({kind}); its text is not shown, to keep private values out of messages.",
            "Error",
        )
    if as_json:
        _print_error(json.dumps({"error": line(text), "kind": kind, "exit": code}))
    else:
        say(f"dpviz: {text}")
    return code


def code_of(error: BaseException) -> int:
    """Return the exit code of an error: 1 if dpviz refused, 130 for an interruption, 2 for all others."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return REFUSED if isinstance(error, RefusedError) else FAILED


@contextmanager
def signals_as_interruptions() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as interruptions (KeyboardInterrupt), so that temporary files are removed.

    Signals that are ignored stay ignored, as nohup needs.
    """
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    signals = [number for number in signals if signal.getsignal(number) == signal.SIG_DFL]
    for number in signals:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def step_bar(total: int, label: str) -> Iterator[Callable[..., object]]:
    """Show a progress bar on stderr for a number of steps; not shown if stderr is not a terminal.

    Args:
        total: number of steps.
        label: label of the bar.

    Yields:
        A function to call after each step.
    """
    from tqdm import tqdm  # noqa: PLC0415  (slow to import, and needed for long work only)

    with tqdm(total=total, desc=label, unit="run", file=sys.stderr, disable=None, leave=False) as bar:
        yield bar.update


@contextmanager
def share_bar(label: str) -> Iterator[Callable[[float], object]]:
    """Show a progress bar on stderr for work that reports its progress as a share.

    Args:
        label: label of the bar.

    Yields:
        A function to call with the share that is done, 0 to 1.
    """
    from tqdm import tqdm  # noqa: PLC0415

    shape = "{l_bar}{bar}| {elapsed}<{remaining}"
    with tqdm(total=100, desc=label, bar_format=shape, file=sys.stderr, disable=None, leave=False) as bar:
        yield lambda share: bar.update(max(100 * share - bar.n, 0))


def run_with_bar(label: str, work: Callable[[Progress], T]) -> T:
    """Run `work` in a thread with a progress bar, and return its result.

    An interruption cancels the work and waits until it has removed its temporary files; a second interruption does not wait.

    Args:
        label: label of the bar.
        work: called with a `Progress`, through which it reports progress and learns of a cancellation.

    Raises:
        KeyboardInterrupt: the work was interrupted.
        BaseException: any exception of `work`.
    """
    from dpviz.data.counting.job import Progress  # noqa: PLC0415  (imports numpy and pandas, which --help need not)

    results: list[T] = []
    errors: list[BaseException] = []
    cancel, ended = threading.Event(), threading.Event()  # after an interrupted Thread.join, a running thread counts as ended

    def run(progress: Callable[[float], object]) -> None:
        try:
            results.append(work(Progress(progress=progress, cancel=cancel)))
        except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
            errors.append(error)
        finally:
            ended.set()

    with share_bar(label) as progress:
        try:
            threading.Thread(target=run, args=(progress,), name=label, daemon=True).start()
            ended.wait()
        except KeyboardInterrupt:
            cancel.set()
            ended.wait(SECONDS_TO_CLEAN_UP)
            errors.clear()
            raise
    if errors:
        raise errors.pop()
    return results[0]
