"""Each person's records held to the bound, by DuckDB's own sorting and spilling; the choice is that of `bounding`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpviz.data.arrays import MOST_RECORDS
from dpviz.data.bounding import DROP, FEWER, REFUSE, Bound, priorities
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counting.duckdb_session import Session

_AT_ONCE = 2048
_LARGEST = 2**62

SATURATED = f"CAST(least(sum({{}}), {MOST_RECORDS}) AS BIGINT)"


def hold(rows: str, bound: Bound, *, weighted: bool) -> str:
    """A statement that puts down what each person has in each place, as the table `held`; faults in place of places, of nobody."""
    share = f"least(amount, {bound.cap})"
    records = "1" if bound.distinct else SATURATED.format(share) if weighted else "count(*)"
    amount = SATURATED.format("amount") if weighted else "count(*)"
    nobody = "CASE WHEN place < 0 THEN NULL ELSE person END"
    return (
        f"CREATE TEMP TABLE held AS SELECT {nobody} AS person, place, count(*) AS rows, {amount} AS amount, {records} AS records"  # noqa: S608
        f" FROM ({rows}) GROUP BY 1, 2"
    )


def bounded(session: Session, bound: Bound) -> dict[str, Any]:
    """Columns place and records: what all people keep, at most m records each.

    Raises:
        InputError: somebody has fewer than m, and such people are refused.
    """
    most = min(int(bound.most), _LARGEST)
    session.define("priority", _priority(bound.key), ("VARCHAR", "BIGINT", "BIGINT"), "UBIGINT")
    session.run(_totals(most), (0.6, 0.7))
    if bound.fewer == REFUSE and session.row(f"SELECT 1 FROM totals WHERE total < {most} LIMIT 1", (0.7, 0.7)):  # noqa: S608
        raise InputError(FEWER)
    return session.columns(_kept(most, drop=bound.fewer == DROP), (0.7, 1.0))


def _priority(key: bytes) -> Any:
    def work(persons: pa.ChunkedArray, places: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.Array:
        return pa.array(priorities(persons, places.to_numpy(), numbers.to_numpy(), key), pa.uint64())

    return work


def _totals(most: int) -> str:
    """People who do not have exactly m records, with how many they have."""
    return (
        "CREATE TEMP TABLE totals AS SELECT person, sum(records) AS total FROM held"  # noqa: S608
        f" WHERE place >= 0 AND amount > 0 GROUP BY person HAVING sum(records) <> {most}"
    )


def _kept(most: int, *, drop: bool) -> str:
    """Records per place: all of those who have no more than m, and the chosen ones of the others."""
    others = "totals" if drop else f"(SELECT person FROM totals WHERE total > {most})"  # noqa: S608
    whole = f"SELECT place, records FROM held ANTI JOIN {others} USING (person) WHERE place >= 0 AND amount > 0"  # noqa: S608
    chosen = f"SELECT place, 1 AS records FROM ({_ranked(most)}) WHERE rank <= {most}"  # noqa: S608
    return f"SELECT place, {SATURATED.format('records')} AS records FROM ({whole} UNION ALL {chosen}) GROUP BY place"  # noqa: S608


def _ranked(most: int) -> str:
    """Every record of those who have more than m, and its rank among its person's."""
    crowded = (
        f"SELECT person, place, records FROM held SEMI JOIN (SELECT person FROM totals WHERE total > {most}) USING (person)"  # noqa: S608
        " WHERE place >= 0 AND amount > 0"
    )
    begun = f"SELECT person, place, records, unnest(range(0, records, {_AT_ONCE})) AS first FROM ({crowded})"  # noqa: S608
    each = f"SELECT person, place, unnest(range(first, least(first + {_AT_ONCE}, records))) AS number FROM ({begun})"  # noqa: S608
    order = "priority(CAST(person AS VARCHAR), CAST(place AS BIGINT), number), place, number"
    return f"SELECT place, row_number() OVER (PARTITION BY person ORDER BY {order}) AS rank FROM ({each})"  # noqa: S608
