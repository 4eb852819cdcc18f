"""Every error that dpviz raises on purpose.

DpvizError
├── DomainError    the public frame makes no sense, or is too fine for memory
├── InputError     private data cannot be read: names the column and the rule, never a value
├── SettingError   a setting is outside its range
├── BudgetError    a privacy budget is missing, malformed or of the wrong kind
└── RefusedError   it is forbidden: the cap would be exceeded, or it must not be published

All are ``ValueError`` too, so that code which knows nothing of dpviz can still catch them.
"""


class DpvizError(ValueError):
    """Root of every error raised on purpose; its text says what to do."""


class DomainError(DpvizError):
    """The public frame (domain, lattice, tree) makes no sense or needs too much memory."""


class InputError(DpvizError):
    """Private input breaks a rule; the text names the column and the rule, never a cell's value."""


class SettingError(DpvizError):
    """A setting is outside its declared range."""


class BudgetError(DpvizError):
    """A privacy budget is malformed, does not add up or has the wrong privacy definition."""


class RefusedError(DpvizError):
    """What was asked is forbidden: it passes a cap, the ledger cannot be trusted or written, or it must not be published."""
