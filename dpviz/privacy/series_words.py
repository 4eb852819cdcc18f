"""What a series of releases protects and costs, in sentences whose numbers are computed from its terms."""

from __future__ import annotations

import math

from dpviz.amounts import format_budget, format_decimal
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.series import Series

REPLACE = "replace one"


def say_series(terms: Terms) -> list[str]:
    """Say what a series protects, what each period may spend, and what all of them cost somebody with records in each.

    Args:
        terms: of the account.

    Returns:
        Sentences; none without a series.
    """
    series = terms.series
    if series is None:
        return []
    cap, one, each = terms.limit, format_budget(series.share_of(terms.limit)), series.period
    unit, all_of_them = terms.unit, f"all {series.periods} {each}s"
    what = {
        "person": f"all that one person has in {all_of_them} together" if unit == "person" else f"one {unit} in each of {all_of_them}",
        "person-period": f"what one person has in a single {each}",
        "record": f"one {unit}, which counts in one {each}",
    }[series.protects]
    lines = [f"A series of at most {series.periods} {each}s. Protected is {what}: at most {format_budget(cap)}."]
    if series.protects == "person":
        lines.append(f"Each {each} may spend an equal share, {one}; its noise is {_say_noise(series, terms)} that of the whole cap.")
    else:
        somebody = "Somebody with records" if unit == "person" else f"Somebody with one {unit}"
        more = "" if unit == "person" else f", and more with several in a {each}"
        lines.append(
            f"Each {each} may spend {one}. {somebody} in each of {all_of_them} loses up to {format_budget(series.sum_of(cap))}{more}."
        )
    lines.append(f"What a {each} does not spend is lost to the others.")
    return [*lines, *say_replaced(series, terms.neighbours)]


def say_replaced(series: Series, neighbours: str) -> list[str]:
    """Say what neighbours are, where one replaces another or single periods or records are protected."""
    each = series.period
    if neighbours == REPLACE:
        same = f"in the same {each}s" if series.protects == "person" else f"of the same {each}"
        return [f"Neighbours have one replaced by another {same}: exact totals of {each}s are public."]
    if series.protects == "person":
        return []
    return [f"This hides whether it is there, or is another of the same {each}; what moves to another {each} changes two releases."]


def _say_noise(series: Series, terms: Terms) -> str:
    """Say how many times the noise of the whole cap that of a share is; under epsilon and delta, of Laplace and of Gaussian noise."""
    root = f"{format_decimal(math.sqrt(series.periods), 2)} times"
    if isinstance(terms.cap, ZcdpBudget):
        return root
    if not isinstance(terms.cap, ApproxBudget) or not terms.cap.delta:
        return f"{series.periods} times"
    share = ApproxBudget(**series.share_of(terms.limit))
    ratio = terms.cap.to_zcdp().rho / share.to_zcdp().rho
    return f"{series.periods} times (Laplace) or about {format_decimal(math.sqrt(ratio), 2)} times (Gaussian)"
