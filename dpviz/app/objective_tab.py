"""HTF in a picture: where the whole domain could be split, how evenly both parts would be filled, and what noise hides of that."""

from __future__ import annotations

from fractions import Fraction

import streamlit as st

from dpviz.app.points_state import Drawn
from dpviz.evaluation.split_objective import objective_curve
from dpviz.privacy.budget import PureBudget
from dpviz.view.study_charts import objective_chart


def split_objective(what: Drawn) -> None:
    """The split objective of the first split, over all lines of an axis. Looks at the truth: only where the mode allows it."""
    axis = st.segmented_control("Split", ("columns", "rows"), default="columns", required=True, key="objective axis")
    steps = what.release.receipt.steps
    spent = max((step.amount for step in steps if step.purpose.startswith("splits")), default=Fraction(1, 1000))
    curve = objective_curve(what.data.points, PureBudget(spent), across=axis != "rows")
    st.altair_chart(objective_chart(curve, what.data.unit), width="stretch")
    st.caption(
        "HTF splits where both parts are most homogeneous: it adds up how far every cell is from the mean of its part, and looks for"
        " the line that makes this sum small, because a part that is evenly filled needs no further cuts. The band is the noise"
        f" that one look costs at ε {float(spent):.3g}, what one level of splits may spend: where it is wider than the curve is deep,"
        " the search finds hardly more than chance."
    )
