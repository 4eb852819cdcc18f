"""The subcommand `dpviz init`: a commented configuration for a file, from answers on a terminal or from flags.

Of the file it reads what `dpviz check` reads, and it searches no column for persons, so that nothing is noted in the ledger.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from argparse import Namespace
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpviz.amounts import LONGEST_NUMBER
from dpviz.cli import check
from dpviz.cli.console import give, say
from dpviz.data.columns import join_pairs
from dpviz.data.reading.text_format import TextFormat
from dpviz.data.roles import AXES, ENDS, NO_COUNT, say_each_row, say_ten_millionths, says_none
from dpviz.errors import InputError, SettingError, did_you_mean
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import BOUNDED
from dpviz.publishing.config import NO_CRS, from_tables
from dpviz.publishing.config_schema import RELEASE_FILE

Facts = dict[str, Any]

KINDS = ("points", "areas", "trips")
_COLUMNS_OF = {
    "points": "--x COLUMN --y COLUMN, or --geometry COLUMN",
    "areas": "--region COLUMN, or --x COLUMN --y COLUMN",
    "trips": "--origin COLUMN --destination COLUMN",
}
_FIRST_CHOICE = {"points": "path_tree", "areas": "region_tree", "trips": "fitted_tree"}
_USUAL_DELTA = "1e-8"
_GIVE = {
    "columns": "which columns are read: {columns}",
    "count": "how many {noun}s a row stands for, as {each_row}: --count COLUMN, or --count none",
    "who": "whom the release protects: --person COLUMN and --contributions N, or --each-row if each row is its own person",
    "crs": "the CRS of the coordinates: --crs EPSG:4326, for instance",
    "bounds": "where records are counted, from public knowledge: --bounds WEST SOUTH EAST NORTH",
    "regions": "the public regions: --regions FILE, and --levels COLUMN ..., ids from coarse to fine, unless it names parents",
    "epsilon": "how much may be lost: --epsilon",
}


@dataclass(frozen=True, kw_only=True)
class _Choices:
    """What a configuration is written from: the curator's words, beside what was found in the file.

    Attributes:
        kind: one of `KINDS`.
        count: the column of the number of records of a row; "none" if it is said that there is none, None if there is no question.
        person: the column that identifies persons; None if each row is its own person.
        contributions: the most records of one person that count.
        crs: of the coordinates and the bounds; None where there are none, or where the file says it.
        bounds: west, south, east, north of the domain of points.
        regions: path of the file of regions of areas and trips.
        levels: its columns of ids, coarsest first.
        mechanism: its key.
        epsilon: of the budget, as it is written.
        cap: the most epsilon that may ever be spent; "" leaves [dataset] to be written later.
        curator: who answers for the publication; "" leaves [publication] and [output] to be written later.
    """

    kind: str
    count: str | None
    person: str | None
    contributions: int | None
    crs: str | None
    bounds: tuple[float, ...] | None
    regions: str | None
    levels: tuple[str, ...]
    mechanism: str
    epsilon: str
    cap: str
    curator: str


def run_init(arguments: Namespace) -> None:
    """Write a configuration for a file; ask for what the flags leave open, if this is a terminal.

    Raises:
        SettingError: the configuration exists already, or something is open and this is no terminal.
        InputError: the file cannot be used.
    """
    source, target = Path(arguments.file), Path(arguments.output)
    _refuse_existing(target)
    facts = check.check(source, _chosen_columns(arguments), check.declared_format(arguments), copies=arguments.copies)
    use = _choose_use(facts, arguments.kind)
    if use["open"] and sys.stdin.isatty():
        still_open = use["open"]
        for roles, among in still_open.items():
            hint = f" ({join_pairs(among)})" if among else ""
            for role in roles.split(" and "):
                column = _ask(f"Column of {role}{hint}")
                setattr(arguments, role, [column] if role in ENDS else column)
        facts = check.check(source, _chosen_columns(arguments), check.declared_format(arguments), copies=arguments.copies)
        use = _choose_use(facts, arguments.kind)
    if divide := say_ten_millionths([str(use["found"].get(axis, "")) for axis in AXES]):
        raise InputError(f"{divide}.")
    choices = _choose(arguments, use, facts["columns"])
    text = _write(choices, use, {**facts, "copies": arguments.copies}, source, target)
    from_tables(tomllib.loads(text), base=target.parent, for_dry_run=True)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        _refuse_existing(target)
    except (OSError, ValueError):
        raise SettingError("The configuration cannot be written there: choose another name with --output.") from None
    bad_rows = {"bad_rows": use["bad_rows"]} if "bad_rows" in use else {}
    lines = [f"Wrote {target}, a configuration of {choices.kind}.", *(f"Bad rows: {text}" for text in bad_rows.values())]
    give(
        {"config": str(target), "kind": choices.kind, **bad_rows},
        [*lines, f"Next: dpviz release {target} --dry-run"],
        as_json=arguments.json,
    )


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise SettingError("There is such a configuration already, and none is overwritten: choose another name with --output.")


def _chosen_columns(arguments: Namespace) -> dict[str, Any]:
    """Return the columns of the data that options name; the levels are those of the regions, and the CRS is written as it is."""
    return {role: column for role, column in check.chosen_columns(arguments).items() if role not in ("levels", "crs")}


def _choose_use(facts: Facts, kind: str | None) -> Facts:
    """Return the use of the file that is wanted, or else the likeliest one."""
    uses = {use["as"]: use for use in facts.get("uses", ()) if use["as"] in KINDS}
    if not uses:
        raise InputError(
            "A configuration is for data: points, areas or trips. This is a release, or a file of regions; if it holds data, say what"
            " its columns are: --x COLUMN --y COLUMN, --origin COLUMN --destination COLUMN, or --region COLUMN with ids of regions."
        )
    if kind == "areas" and kind not in uses and "points" in uses:
        kind = "points"  # which are areas where they are counted in regions
    if refused := facts.get("refused", {}).get(kind):
        raise InputError(refused)
    if kind is not None and kind not in uses:
        raise InputError(f"The file's columns do not fit {kind}; they fit {' or '.join(uses)}. Or say what they are: {_COLUMNS_OF[kind]}.")
    return uses[kind] if kind is not None else next(iter(uses.values()))


def _choose(arguments: Namespace, use: Facts, columns: Sequence[str]) -> _Choices:
    """Take the flags, and ask for the rest.

    Raises:
        SettingError: something is open and this is no terminal (the text lists all of it), or flags contradict each other.
    """
    kind = "areas" if use["as"] == "points" and (arguments.regions is not None or arguments.kind == "areas") else use["as"]
    _check_flags(arguments, kind)
    open_questions = _open_questions(arguments, use, kind)
    columns_to_name = [check.OPTIONS[role] + (f" ({join_pairs(among)})" if among else "") for role, among in use["open"].items()]
    noun = FAMILIES[use["as"]].noun
    words = {"columns": " and ".join(columns_to_name), "noun": noun, "each_row": say_each_row(noun, use["unread"])}
    if open_questions and not sys.stdin.isatty():
        give_these = "; ".join(_GIVE[question].format(**words) for question in open_questions)
        raise SettingError(f"Still to be said, as this is no terminal that could be asked: {give_these}.")
    if "count" in open_questions:
        arguments.count = _ask("Column of the number of {noun}s that a row stands for, or none, as {each_row}".format(**words))
        if len(columns) < check.MOST_NAMED:  # of a wider file not all are known here
            check.resolve_chosen(columns, {"count": arguments.count})
    _ask_open(open_questions, arguments, use, columns)
    asks = bool(open_questions)
    return _Choices(
        kind=kind,
        count=NO_COUNT if says_none(arguments.count) else use["found"].get("count", arguments.count),
        person=arguments.person,
        contributions=arguments.contributions,
        crs=arguments.crs,
        bounds=None if arguments.bounds is None else tuple(arguments.bounds),
        regions=arguments.regions,
        levels=tuple(arguments.levels or ()),
        mechanism=arguments.mechanism or _FIRST_CHOICE[kind],
        epsilon=arguments.epsilon or _ask("Epsilon of this release (a dry run says what error it gives)", "1"),
        cap=arguments.cap or (_ask("The most epsilon that may ever be spent on these data (nothing: later)", "") if asks else ""),
        curator=arguments.curator or (_ask("Who answers for the publication (nothing: later)", "") if asks else ""),
    )


def _ask_open(open_questions: Collection[str], arguments: Namespace, use: Facts, columns: Iterable[str]) -> None:
    """Ask what is open, but for the budget, and put the answers among the arguments."""
    if "who" in open_questions:
        _ask_who(arguments, use["found"].get("person"), columns)
    if "bounds" in open_questions:
        answer = _ask("West, south, east and north of the area in which records are counted, from public knowledge")
        try:
            arguments.bounds = [float(part) for part in answer.replace(",", " ").split()]
        except ValueError:
            raise SettingError("Bounds are four numbers: west, south, east, north.") from None
    if "regions" in open_questions:
        arguments.regions = _ask("File of the public regions")
        levels = _ask("Its columns of ids, coarsest first (nothing if it names each region's parent)", "")
        arguments.levels = levels.replace(",", " ").split()
    if "crs" in open_questions:
        arguments.crs = _ask("CRS of the coordinates, such as EPSG:4326 for degrees, or none for a plain plane")


def _check_flags(arguments: Namespace, kind: str) -> None:
    """Refuse flags that contradict each other or the kind of data."""
    if arguments.person is not None and arguments.each_row:
        raise SettingError("--person and --each-row contradict each other: leave one out.")
    if kind != "points" and arguments.bounds is not None:
        raise SettingError(f"--bounds is for points; {kind} are counted in regions: leave it out.")
    family = FAMILIES[kind]
    if arguments.mechanism is not None and arguments.mechanism not in family.mechanisms:
        meant = did_you_mean(arguments.mechanism, family.mechanisms)
        raise SettingError(f"--mechanism must be one of {', '.join(family.mechanisms)} for {kind}.{meant}")


def _open_questions(arguments: Namespace, use: Facts, kind: str) -> list[str]:
    """Return what the flags leave open, as keys of `_GIVE`."""
    knows_who = arguments.each_row or (arguments.person is not None and arguments.contributions is not None)
    has_coordinates = "region" not in use["found"] and (kind != "trips" or isinstance(use["found"].get("origin"), list))
    frame = "bounds" if kind == "points" else "regions"
    wanted = {
        "columns": bool(use["open"]),
        "count": bool(use["unread"]),
        "who": not knows_who,
        frame: getattr(arguments, frame) is None,
        "crs": arguments.crs is None and has_coordinates and (kind == "points" or _lacks_crs(use)),
        "epsilon": arguments.epsilon is None,
    }
    return [name for name, is_open in wanted.items() if is_open]


def _lacks_crs(use: Facts) -> bool:
    """Return whether the file has coordinates whose CRS it does not state."""
    return any(line.startswith("[data] crs") for line in use["missing"])


def _ask(question: str, usual: str | None = None) -> str:
    """Ask on the terminal until there is an answer; nothing typed is the usual one."""
    while True:
        say(f"{question}{f' [{usual}]' if usual else ''}:")
        try:
            answer = input().strip()
        except EOFError:
            raise SettingError("There was no answer: nothing was written.") from None
        if answer or usual is not None:
            return answer or str(usual)


def _ask_who(arguments: Namespace, guess: str | None, columns: Iterable[str]) -> None:
    """Ask whom the release protects."""
    hint = "" if guess is None else f", perhaps {guess}"
    say(f"Whom does the release protect? Columns: {', '.join(columns)}.")
    person = arguments.person or _ask(f"Column that says whose record a row is{hint} (- if each row is its own person)")
    if person == "-":
        arguments.each_row = True
        return
    arguments.person = person
    if not arguments.contributions:
        most = _ask("The most records of one person that count")
        if not most.isdecimal() or len(most) > LONGEST_NUMBER or int(most) < 1:
            raise SettingError("The most records of one person must be a whole number of at least 1.")
        arguments.contributions = int(most)


def _write(choices: _Choices, use: Facts, facts: Facts, source: Path, target: Path) -> str:
    """Write the configuration as TOML with comments."""
    name = source.stem.strip("*?[]") or "data"
    parts = [
        [
            f"#:schema {RELEASE_FILE.as_uri()}",
            "# The line above lets editors complete and check this file. Paths are relative to its folder.",
            f"# Expected errors, at no cost: dpviz release {target.name} --dry-run",
        ],
        _data_part(choices, use, facts, _relative(source, target)),
        _frame_part(choices, target),
        _mechanism_part(choices),
        _dataset_part(choices, name),
        _publication_part(choices, name),
    ]
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _data_part(choices: _Choices, use: Facts, facts: Facts, source: str) -> list[str]:
    found, key = use["found"], "trips" if choices.kind == "trips" else "points"
    names = ENDS if choices.kind == "trips" else ("region",) if "region" in found else (*AXES, "geometry")
    columns = {name: found[name] for name in names if found.get(name) not in (None, True)}
    lines = ["[data]", _line(key, source), *(_line(name, column) for name, column in columns.items())]
    if choices.count is not None:
        noun = FAMILIES[choices.kind].noun
        meaning = f"each row is one {noun}" if choices.count == NO_COUNT else f'the {noun}s of a row; "none" if each row is one'
        lines.append(f"{_line('count', choices.count)}    # {meaning}")
    if choices.crs not in (None, NO_CRS) and _lacks_crs(use):
        lines.append(_line("crs", choices.crs))
    lines += ["copies = true    # files count that are copies of others"] if facts["copies"] else []
    lines += TextFormat(**facts.get("text_format", {})).lines()
    if choices.person is None:
        return lines
    bound = f"{_line('contributions', choices.contributions)}    # the most records of one person that count"
    return [*lines, f"{_line('person', choices.person)}    # whom the release protects", bound]


def _frame_part(choices: _Choices, target: Path) -> list[str]:
    if choices.bounds is not None:
        return [
            "[domain]    # public; never taken from the data",
            f"{_line('bounds', list(choices.bounds))}    # west, south, east, north",
            _line("crs", choices.crs),
            "order = 10    # 2**10 lattice cells per side, the finest that are counted",
        ]
    levels = [_line("levels", list(choices.levels))] if choices.levels else []
    return ["[regions]    # public", _line("file", _relative(Path(str(choices.regions)), target)), *levels]


def _mechanism_part(choices: _Choices) -> list[str]:
    needs_delta = choices.kind == "trips"
    delta = [_line("delta", _number(_USUAL_DELTA)) + "    # well below one in the number of records"] if needs_delta else []
    return [
        f"[mechanism]    # dpviz mechanisms lists them; dpviz mechanisms {choices.mechanism} its settings",
        _line("key", choices.mechanism),
        *_neighbours_line(choices),
        "",
        '[budget]    # exact: 0.1 is one tenth, "1/3" a third',
        _line("epsilon", _number(choices.epsilon)),
        *delta,
    ]


def _neighbours_line(choices: _Choices) -> list[str]:
    """Let people have different numbers of trips, where a mechanism's usual neighbours, bounded ones, refuse several trips per person."""
    bounded = getattr(FAMILIES[choices.kind].mechanisms[choices.mechanism], "neighbours", None) == BOUNDED
    if not bounded or (choices.contributions or 1) == 1:
        return []
    return ['settings = { neighbours = "add_remove" }    # people have different numbers of trips, up to contributions']


def _dataset_part(choices: _Choices, name: str) -> list[str]:
    unit = "trip" if choices.kind == "trips" else "record"
    lines = [
        "[dataset]    # the account in the ledger; keep one name per dataset",
        _line("name", name),
        *([_line("unit", unit) + "    # each one is its own person"] if choices.person is None else []),
        f"{_line('cap_epsilon', _number(choices.cap or '3'))}    # the most that may ever be spent on these data",
        *([f"cap_delta = {_USUAL_DELTA[:-1]}7"] if unit == "trip" else []),
    ]
    return lines if choices.cap else _as_comments("To publish, say who pays:", lines)


def _publication_part(choices: _Choices, name: str) -> list[str]:
    lines = [
        "[publication]    # published as it is",
        _line("name", name),
        _line("curator", choices.curator or "who answers for it"),
        'description = ""    # what was counted, when and how',
        "# Also: region, intended_use, unit_in_words, budget_reason, trust_model, licence, contact, url, citation",
        "",
        "[output]",
        f"{_line('folder', f'{name}_release')}    # must not exist yet",
    ]
    return lines if choices.curator else _as_comments("To publish, tell readers what this is:", lines)


def _as_comments(head: str, lines: Iterable[str]) -> list[str]:
    return [f"# {head}", *(f"# {line}".rstrip() for line in lines)]


def _relative(path: Path, target: Path) -> str:
    """Return the path of a file from the folder of the configuration, as TOML files write paths."""
    try:
        return Path(os.path.relpath(path, target.parent)).as_posix()
    except ValueError:  # another drive
        return str(path.absolute())


def _number(text: str) -> int | float | str:
    """Return a number of TOML for a text that is one, so that it reads back exactly; a fraction stays a text."""
    try:
        return text if len(text) > LONGEST_NUMBER else int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def _line(key: str, value: object) -> str:
    """Write one key of TOML on one line; JSON's texts, numbers and lists are TOML's, too.

    >>> _line("levels", ["state", "town"])
    'levels = ["state", "town"]'
    """
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
