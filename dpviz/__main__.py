"""The command line: `python -m dpviz`, or `dpviz` once installed.

Results go to stdout (as text, or with --json as JSON), messages and progress to stderr. Exit codes: 0 done; 1 refused (the budget's cap, a
seed, data that are not public, a release that must not be published); 2 wrong usage, bad input or another failure; 130 interrupted.
An error is one line on stderr; with --json it is one JSON object on stderr: error, kind and exit.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

import dpviz
from dpviz.cli.class_options import add_class_arguments
from dpviz.cli.console import FAILED, escape_unencodable, report_error, signals_as_interruptions, silence
from dpviz.errors import SettingError, did_you_mean

_CODES = "exit codes: 0 done, 1 refused, 2 wrong usage or bad input, 130 interrupted"


class _Parser(argparse.ArgumentParser):
    """A parser that raises `SettingError` on wrong usage, so that every error is one line with one exit code."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"argument .*: invalid choice: '(.*)' \(choose from (.*)\)$", message)
        meant = did_you_mean(unknown[1], re.findall(r"[\w-]+", unknown[2])) if unknown else ""
        raise SettingError(f"{message[:1].upper()}{message[1:]}.{meant} See: {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with all commands and options."""
    top = _Parser(prog="dpviz", description="Differentially private releases of locations and trips.", epilog=_CODES, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"dpviz {dpviz.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_app_arguments(commands.add_parser("app", help="start the app on this computer", allow_abbrev=False))
    _add_init_arguments(_add_command(commands, "init", "write the configuration of a release for a file, with comments"))
    _add_release_arguments(_add_command(commands, "release", "publish what a configuration describes: check, spend, draw, write"))
    _add_compare_arguments(_add_command(commands, "compare", "compare mechanisms on public data: one table"))
    checking = _add_command(commands, "check", "say what a file is and what is missing to use it")
    checking.add_argument("file", help="data, a release, or the configuration of one")
    checking.add_argument("regions", nargs="?", help="the public regions that its ids name")
    looked = "how many ids fit the regions after which rewriting: a look at private values, which the ledger notes"
    checking.add_argument("--ids", action="store_true", help=looked)
    _add_column_arguments(checking)
    checking.add_argument("--person", metavar="COLUMN", help="whose record a row is")
    checking.add_argument("--levels", nargs="+", metavar="COLUMN", help="of regions: ids, coarsest first")
    checking.add_argument("--crs", help="of the coordinates, such as EPSG:4326; none for a plain plane")
    _add_left_out(checking)
    people = "search the columns of data for persons: distinct values are counted, and the ledger notes that"
    checking.add_argument("--people", action="store_true", help=people)
    _add_copies(checking)
    _add_audit_arguments(_add_command(commands, "audit", "measure a lower bound on the epsilon of a mechanism"))
    mechanisms = _add_command(commands, "mechanisms", "list the mechanisms, or the settings of one")
    mechanisms.add_argument("key", nargs="?", help="of a mechanism")
    _add_paper_arguments(_add_command(commands, "paper", "run a figure of a paper again, and judge its claims"))
    ledger = _add_command(commands, "ledger", "what each dataset has spent (DPVIZ_LEDGER says which ledger)")
    ledger.add_argument("action", choices=["show", "new"], help="show every account, or one with its draws; or make a new ledger")
    ledger.add_argument("name", nargs="?", metavar="NAME|PATH", help="of a dataset to show; path of a new ledger")
    return top


def _add_command(commands: argparse._SubParsersAction[_Parser], name: str, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.", epilog=_CODES, allow_abbrev=False)
    command.add_argument("--json", action="store_true", help="give the result, or the error, as JSON")
    return command


def _add_column_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("what the columns are, where their names do not say so")
    group.add_argument("--x", metavar="COLUMN", help="of points: longitude or easting")
    group.add_argument("--y", metavar="COLUMN", help="latitude or northing")
    group.add_argument("--geometry", metavar="COLUMN", help="of points: texts in WKT")
    group.add_argument("--region", metavar="COLUMN", help="of areas: ids of the finest regions")
    group.add_argument("--origin", nargs="+", metavar="COLUMN", help="of trips: ids, or x and y")
    group.add_argument("--destination", nargs="+", metavar="COLUMN", help="ids, or x and y")
    group.add_argument("--count", metavar="COLUMN", help="the number of records or trips of a row; none if each row is one")
    written = command.add_argument_group("how a text table is written, where that is not what is proposed")
    written.add_argument("--separator", metavar="MARK", help=r"between cells: a comma, a semicolon, a bar or \t")
    written.add_argument("--decimal", metavar="MARK", help="before decimals: a point or a comma")
    written.add_argument("--thousands", metavar="MARK", help="between thousands of counts: a comma, a point, an apostrophe or a blank")
    written.add_argument("--encoding", metavar="NAME", help="such as windows-1250; UTF-8 if it is left out")


def _add_app_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, default=8501, help="on 127.0.0.1, or where a class listens (default 8501)")
    command.add_argument("--headless", action="store_true", help="open no browser")
    open_to_all = "ask for no token: every user of this computer can then open the app, with your rights"
    command.add_argument("--no-token", action="store_true", help=open_to_all)
    add_class_arguments(command)


def _add_init_arguments(command: argparse.ArgumentParser) -> None:
    command.description = "Write the configuration of a release for a file. What no option says is asked, if this is a terminal."
    command.add_argument("file", help="of points, areas or trips; only what `dpviz check` reads is read")
    command.add_argument(
        "--output", metavar="FILE", default="release.toml", help="the configuration (default release.toml); never overwritten"
    )
    command.add_argument("--kind", choices=["points", "areas", "trips"], help="what the file holds, if its columns fit several")
    _add_column_arguments(command)
    _add_copies(command)
    who = command.add_argument_group("whom the release protects")
    who.add_argument("--person", metavar="COLUMN", help="whose record a row is")
    who.add_argument("--contributions", metavar="N", type=int, help="the most records of one person that count")
    who.add_argument("--each-row", action="store_true", help="each row is its own person")
    where = command.add_argument_group("where records are counted: public, never taken from the data")
    where.add_argument("--bounds", nargs=4, type=float, metavar=("WEST", "SOUTH", "EAST", "NORTH"), help="of points, in units of the CRS")
    where.add_argument("--crs", help="of the coordinates, such as EPSG:4326; none for a plain plane")
    where.add_argument("--regions", metavar="FILE", help="of areas and trips")
    where.add_argument("--levels", nargs="+", metavar="COLUMN", help="ids in the file of regions, coarsest first")
    how = command.add_argument_group("how")
    how.add_argument("--mechanism", metavar="KEY", help="see: dpviz mechanisms")
    how.add_argument("--epsilon", help="exact: 0.5, or 1/3")
    how.add_argument("--cap", metavar="EPSILON", help="the most that may ever be spent on these data")
    how.add_argument("--curator", help="who answers for the publication")


def _add_release_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", help="a TOML file; see the app's Help page, Publishing a release")
    command.add_argument("--output", metavar="FOLDER", help="write there instead of where the configuration says")
    command.add_argument("--period", metavar="NAME", help="of a series of releases, the period to release, such as 2026-11")
    _add_engine_arguments(command)
    _add_left_out(command)
    _add_copies(command)
    instead = command.add_mutually_exclusive_group()
    instead.add_argument("--dry-run", action="store_true", help="expected error from the mechanism alone; spends nothing")
    instead.add_argument(
        "--paid", type=int, metavar="DRAW", help="publish a draw that is paid for and kept (see: dpviz ledger show); spends nothing"
    )
    guess = command.add_argument_group("a public guess for --dry-run, never taken from the data")
    guess.add_argument("--records", metavar="N", type=int, help="errors as of N made-up records, and how many counts are useful")
    guess.add_argument("--spread", choices=["evenly", "towns", "denominator"], help="how they lie: by residents of towns, or of regions")
    command.add_argument("--seed", help=argparse.SUPPRESS)  # accepted here, so that the error can say why there is no seed


def _add_left_out(command: argparse.ArgumentParser) -> None:
    command.add_argument("--left-out", action="store_true", help="how many records a configuration leaves out; the ledger notes the look")


def _add_copies(command: argparse.ArgumentParser) -> None:
    command.add_argument("--copies", action="store_true", help="count files that are copies of others, by their names or their content")


def _add_engine_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--engine", metavar="ENGINE", help="auto, numpy, duckdb or dask: what counts the records of files")
    command.add_argument(
        "--address",
        help="of a Dask scheduler, such as tls://host:8786 (default: workers of this computer);"
        " whoever runs the scheduler can run code on this computer",
    )
    command.add_argument("--insecure-address", action="store_true", help="call a scheduler on another computer without TLS")


def _add_compare_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", help="a TOML file; see the app's Help page, Studies")
    command.add_argument("--output", metavar="FILE", help="write the table to FILE (.csv or .json) instead of stdout")
    _add_engine_arguments(command)
    _add_copies(command)
    command.add_argument("--workers", type=int, metavar="N", help="processes to work in (default: one per processor)")
    command.add_argument(
        "--resume",
        action="store_true",
        help="make only the runs that are not yet in the --output file, as after an interruption",
    )


def _add_audit_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("mechanism", help="its key, or all")
    command.add_argument("--runs", type=int, default=4000, help="on each input of each pair of neighbours (default 4000)")
    command.add_argument("--confidence", type=float, default=0.95, help="of all bounds together (default 0.95)")
    command.add_argument("--seed", type=int, default=0, help="of the noise (default 0)")


def _add_paper_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("paper", help="psd, htf and others; list names every figure with its claims")
    command.add_argument("figure", nargs="?", help="its number, such as 3 or 4a")
    command.add_argument("--output", metavar="FILE", help="picture (.svg, .png), table (.csv) or page (.html); never overwritten")
    command.add_argument("--seeds", type=int, metavar="N", help="runs with fresh noise, from 1 (default: as many as the size usually has)")
    command.add_argument(
        "--size", default="small", metavar="SIZE", help="small (seconds, the default), medium or paper, where there is one"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit code.

    Args:
        words: the arguments; those of this process if None.

    Raises:
        SystemExit: for `--help` and `--version`.
    """
    words = sys.argv[1:] if words is None else list(words)
    escape_unencodable(sys.stdout, sys.stderr)
    with signals_as_interruptions(), warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # libraries' warnings do not help a curator, and could quote a value
        try:
            arguments = parser().parse_args(words)
            from dpviz.cli.commands import run  # noqa: PLC0415  (--help and usage errors come without it)

            return run(arguments)
        except BrokenPipeError:
            silence(sys.stdout)
            return FAILED
        except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  (no traceback: it could quote a private value)
            return report_error(error, as_json="--json" in words)


if __name__ == "__main__":
    sys.exit(main())
