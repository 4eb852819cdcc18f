"""A family of siblings of the Learn page as a table of numbers: true, noisy, and made to add up."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dpviz.lessons.charts import apart
from dpviz.lessons.maps import FALSE_N, FALSE_P
from dpviz.view.chart_parts import finish, told_by, tooltip, with_texts

PLAIN, SUM = "count", "sum"
FILLS = {PLAIN: "#d9e2e6", FALSE_P: "#f0a468", FALSE_N: "#7fb6e6"}
_INK = "#14191c"


def family_table(table: pd.DataFrame, order: Sequence[str], title: str, *, height: int = 250) -> alt.LayerChart:
    """A row per version and a column per child, with a sum; what is wrong about presence has a colour of its own and bold print.

    Args:
        table: child, series, count.
        order: of the versions; the first is the truth, the second is not judged.
        title: of the chart.
        height: of the whole chart, in pixels.
    """
    rows = judged(table, order)
    names = {"child": "child", "series": "version", "count": "trips", "kind": "presence"}
    columns = list(dict.fromkeys(rows["child"]))
    base = alt.Chart(with_texts(rows, list(names))).encode(
        x=alt.X(field="child", type="ordinal", sort=columns, title="child of one parent", axis=alt.Axis(labelAngle=0, orient="bottom")),
        y=alt.Y(field="series", type="ordinal", sort=list(order), title=None, axis=alt.Axis(labelLimit=140)),
        tooltip=tooltip(names),
    )
    fill = apart(alt.Color, "kind", list(FILLS), list(FILLS.values()), "square")
    fill["legend"]["values"] = [FALSE_P, FALSE_N]
    boxes = base.mark_rect(stroke=_INK, strokeWidth=0.4).encode(color=fill)
    texts = base.mark_text(color=_INK, fontSize=12, aria=False).encode(text=alt.Text(field="label", type="nominal"))
    texts = alt.layer(
        texts.transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=[PLAIN])),
        texts.mark_text(color=_INK, fontSize=13, fontWeight="bold", aria=False).transform_filter(
            alt.FieldOneOfPredicate(field="kind", oneOf=[FALSE_P, FALSE_N])
        ),
    )
    told = "; ".join(f"{name}: {told_by(part, 'child', 'count')}" for name, part in rows.groupby("series", sort=False))
    return finish(alt.layer(boxes, texts), title, told, height)


def judged(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """The table with a sum per version, and what is wrong about presence in those that were made to add up.

    Args:
        table: child, series, count.
        order: the truth, the noisy numbers, and the others.
    """
    table = table.reset_index(drop=True)
    sums = table.groupby("series", sort=False, as_index=False)["count"].sum().assign(child=SUM)
    truth = table[table["series"] == order[0]].set_index("child")["count"]
    known = table["child"].map(truth)
    wrong = table["series"].isin(list(order)[2:])
    kind = pd.Series(PLAIN, index=table.index)
    kind = kind.mask(wrong & (known == 0) & (table["count"] > 0), FALSE_P).mask(wrong & (known > 0) & (table["count"] == 0), FALSE_N)
    rows: pd.DataFrame = pd.concat([table.assign(kind=kind, child=table["child"].astype(str)), sums.assign(kind=PLAIN)], ignore_index=True)
    return rows.assign(label=[f"{count:,}".replace("-", "−") for count in rows["count"]])
