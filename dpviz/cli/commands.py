"""The subcommands by name: each takes parsed arguments, and prints its result."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from dpviz.cli.audit import run_audit
from dpviz.cli.check import run_check
from dpviz.cli.compare import run_compare
from dpviz.cli.init import run_init
from dpviz.cli.ledger import run_ledger
from dpviz.cli.mechanisms import run_mechanisms
from dpviz.cli.paper import run_paper
from dpviz.cli.release import run_release
from dpviz.cli.serve import run_app

COMMANDS: dict[str, Callable[[Namespace], int | None]] = {
    "app": run_app,
    "release": run_release,
    "compare": run_compare,
    "check": run_check,
    "audit": run_audit,
    "ledger": run_ledger,
    "mechanisms": run_mechanisms,
    "paper": run_paper,
    "init": run_init,
}


def run(arguments: Namespace) -> int:
    """Run the subcommand of the parsed arguments; return the exit code."""
    return COMMANDS[arguments.command](arguments) or 0
