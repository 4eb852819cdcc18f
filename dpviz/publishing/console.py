"""What the command line says, where, and with which exit code: data to stdout, words to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dpviz.errors import DpvizError, RefusedError

T = TypeVar("T")

DONE, REFUSED, FAILED, INTERRUPTED = 0, 1, 2, 130


def say(text: str) -> None:
    """One line for the person, on stderr."""
    print(one_line(text), file=sys.stderr, flush=True)


def give(found: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """The result, on stdout: as JSON, or as lines of text."""
    shown = [plain(line) for text in lines for line in text.splitlines()]
    text = json.dumps(found, indent=2, ensure_ascii=False) if as_json else "\n".join(shown)
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
        print(json.dumps({"error": one_line(text), "kind": kind, "exit": code}), file=sys.stderr)
    else:
        say(f"dpviz: {text}")
    return code


def code_of(error: BaseException) -> int:
    """1 for what is forbidden, 130 for an interruption, 2 for the rest."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return REFUSED if isinstance(error, RefusedError) else FAILED


def one_line(text: str) -> str:
    """Words with single spaces between them, and no sign that a terminal would obey."""
    return plain(" ".join(text.split()))


def plain(text: str) -> str:
    """The text without control characters: names come from files."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


@contextmanager
def counted_bar(total: int, what: str) -> Iterator[Callable[[], object]]:
    """A bar on stderr that says how far long work is: call what it gives after each step. Silent where stderr is no terminal."""
    from tqdm import tqdm  # noqa: PLC0415  (only long work needs it)

    with tqdm(total=total, desc=what, unit="run", file=sys.stderr, disable=None, leave=False) as bar:
        yield bar.update


def with_bar(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The same steps, with a bar."""
    with counted_bar(total, what) as step:
        for each in steps:
            yield each
            step()
