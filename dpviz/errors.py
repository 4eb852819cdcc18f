"""Every error that dpviz raises on purpose.

DpvizError
├── DomainError    a public frame is invalid, or too fine for memory
├── InputError     private data cannot be read: the text names the column and the rule, never a value
├── SettingError   a setting is outside its range
├── BudgetError    a privacy budget is missing, malformed or of the wrong type
└── RefusedError   forbidden: a cap would be exceeded, the ledger cannot be trusted, or a release must not be published

All are ``ValueError`` too, so that code which does not know dpviz can still catch them.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches


class DpvizError(ValueError):
    """Base class of every error that dpviz raises on purpose. Its text says what to do.

    >>> import dpviz as dv
    >>> try:
    ...     dv.PureBudget(-1)
    ... except dv.DpvizError as error:
    ...     print(type(error).__name__, "-", error)
    BudgetError - epsilon must be greater than 0.
    """


class DomainError(DpvizError):
    """A public frame (domain, lattice, tree, regions) or a query on it is invalid, or needs too much memory.

    >>> from dpviz.space.domain import Domain
    >>> Domain(bounds=(8, 0, 0, 8), crs=None)
    Traceback (most recent call last):
    ...
    dpviz.errors.DomainError: A domain needs an area: west < east and south < north.
    """


class InputError(DpvizError):
    """Private input breaks a rule. The text names the column and the rule, never a value.

    Attributes:
        only_rows: whether the fault is only that some rows do not say where: a release leaves them out, and the others can be used.

    >>> import numpy as np
    >>> from dpviz.privacy.budget import PureBudget
    >>> from dpviz.privacy.entropy import Entropy
    >>> from dpviz.privacy.noise import discrete_laplace
    >>> discrete_laplace(np.array([1.5]), PureBudget(1), Entropy.seeded(1))
    Traceback (most recent call last):
    ...
    dpviz.errors.InputError: Counts must have an integer dtype; whole floats may have been rounded, so they are refused too.
    """

    def __init__(self, *texts: object, only_rows: bool = False) -> None:
        super().__init__(*texts)
        self.only_rows = only_rows


class SettingError(DpvizError):
    """A setting is outside its declared range.

    >>> from dpviz.privacy.entropy import Entropy
    >>> Entropy.seeded(-1)
    Traceback (most recent call last):
    ...
    dpviz.errors.SettingError: A seed must be a whole number of at least 0.
    """


class BudgetError(DpvizError):
    """A privacy budget is malformed, does not add up, or belongs to the wrong privacy definition.

    >>> from dpviz.privacy.budget import ApproxBudget
    >>> ApproxBudget(1, 2)
    Traceback (most recent call last):
    ...
    dpviz.errors.BudgetError: delta must be at least 0 and below 1.
    """


class RefusedError(DpvizError):
    """The request is forbidden: it exceeds a cap, the ledger fails its checks or cannot be written, or publishing is not allowed.

    >>> from fractions import Fraction
    >>> from dpviz.privacy.budget import PureBudget
    >>> from dpviz.privacy.receipt import Receipt, Step
    >>> step = Step(purpose="counts", amount=Fraction(1), sensitivity=Fraction(1), noise="discrete Laplace", scale=Fraction(1))
    >>> Receipt(total=PureBudget(1), steps=(step,)).refuse_unpublishable(simulation=True)
    Traceback (most recent call last):
    ...
    dpviz.errors.RefusedError: A simulation must not be published: anyone who knows the seed can subtract the noise.
    """


class UnreadColumnsWarning(UserWarning):
    """Each row was counted once, while a column that was not read may hold the number of records of a row.

    >>> import warnings
    >>> import dpviz as dv
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = dv.read_points({"lon": [1.5, 2.5], "lat": [1.5, 2.5], "visits": [7, 9]}, domain=(0, 0, 8, 8), crs="EPSG:4326")
    >>> print(told[0].message)
    Each row counts as one record; not read: 'visits'. Pass count='visits', say, or count='none' if each row is one record.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that proposes the name most like an unknown one, with a space before it; "" if none is much like it.

    >>> did_you_mean("Quadtre", ["quadtree", "privtree", "path_tree"])
    " Did you mean 'quadtree'?"
    """
    folded = {each.casefold(): each for each in known}
    alike = get_close_matches(name.casefold(), list(folded), n=1)
    return f" Did you mean {folded[alike[0]]!r}?" if alike else ""


def reword(text: str, words: Iterable[tuple[str, str]]) -> str:
    """Return the text of an error with its advice for Python in other words, such as those of the app.

    Args:
        text: the text.
        words: patterns, and what stands in place of them, in the order in which they are replaced.

    >>> reword("Correct the data, or pass bad_rows='drop'.", [(r", or pass bad_rows='drop'", "")])
    'Correct the data.'
    """
    for pattern, other in words:
        text = re.sub(pattern, other, text)
    return text


def check_choice(value: object, choices: Iterable[object], name: str, error: type[DpvizError] = SettingError) -> None:
    """Refuse a value that is not one of the choices of a setting or keyword; the error lists them all and names the nearest.

    Args:
        value: the value. It is not quoted.
        choices: texts or numbers.
        name: what the value is called where it was given.
        error: the kind of error.

    >>> check_choice("drpo", ("refuse", "drop"), "bad_rows", InputError)
    Traceback (most recent call last):
    ...
    dpviz.errors.InputError: bad_rows must be one of refuse, drop. Did you mean 'drop'?
    """
    known = list(choices)
    if not isinstance(value, str | int | float) or value not in known:
        texts = [str(each) for each in known]
        raise error(f"{name} must be one of {', '.join(texts)}.{did_you_mean(value, texts) if isinstance(value, str) else ''}")
