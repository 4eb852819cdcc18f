"""`python -m tests.mechanisms.derived` writes what follows from the list of mechanisms: schemas, golden files, rows of the documents."""

import inspect
import json
import re
from pathlib import Path

import dpviz as dv
from dpviz.families import FAMILIES
from dpviz.publishing.config_schema import write_schemas
from tests.mechanisms import test_golden

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "dpviz/docs/mechanisms.md", ROOT / "README.md"]
MADE = {"MECHANISMS": test_golden.released, "TRIP_MECHANISMS": test_golden.released_trips, "AREA_MECHANISMS": test_golden.released_areas}


def row_of(kind: type[dv.Mechanism]) -> str:
    """A row of a table of mechanisms, from what a class says of itself."""
    source = re.search(r"Source:\n\s+(.*?[.;])", inspect.getdoc(kind) or "", re.DOTALL)
    told = (kind.title, kind.summary.removesuffix("."), " ".join(source[1].split()).rstrip(".;") if source else "own")
    return f"| `{kind.key}` | {' | '.join(told)} |"


def with_gaussian_keys(text: str) -> str:
    """A page whose sentence on rho names all mechanisms of points that take it; unchanged if it does."""
    keys = [f"`{kind.key}`" for kind in FAMILIES["points"].own if kind.noise_by_budget]
    named = re.search(r"((?:`\w+`,\s)+`\w+`\sand\s`\w+`)\stake (?:ρ|a `dv.ZcdpBudget)", text)[1]
    return text if {*re.findall(r"`\w+`", named)} == {*keys} else text.replace(named, f"{', '.join(keys[:-1])} and {keys[-1]}")


def with_rows(text: str) -> str:
    """The page of mechanisms with a row for every one that has none yet, at the end of its family's table."""
    for family in FAMILIES.values():
        missing = [row_of(kind) for kind in family.own if f"| `{kind.key}` |" not in text]
        table = re.search(rf"## For {family.name}\n\n(\|.*\n)+", text)
        text = "\n".join([text[: table.end() - 1], *missing]) + text[table.end() - 1 :]
    return text


if __name__ == "__main__":
    write_schemas()
    for page in PAGES:
        page.write_text(with_gaussian_keys(page.read_text("utf-8")), "utf-8")
    PAGES[0].write_text(with_rows(PAGES[0].read_text("utf-8")), "utf-8")
    for table, make in MADE.items():
        for name, mechanism in getattr(test_golden, table).items():
            if not (path := test_golden.GOLDEN / f"{name}.json").exists():
                path.write_text(json.dumps(make(mechanism)) + "\n", "utf-8")
