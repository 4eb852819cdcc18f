"""Mechanisms that workers can import, and that behave badly on purpose."""

import os
import time
from dataclasses import dataclass
from typing import ClassVar

from dpviz.errors import BudgetError
from dpviz.mechanisms import Identity


@dataclass(frozen=True, kw_only=True)
class Endless(Identity):
    """Never ends in a worker; soon where the study was started, which has set its name."""

    key: ClassVar[str] = "endless"

    def release(self, points, budget, entropy):
        while os.environ.get("DPVIZ_STARTED_HERE") != str(os.getpid()):
            time.sleep(0.05)
        time.sleep(0.05)
        return super().release(points, budget, entropy)


@dataclass(frozen=True, kw_only=True)
class Failing(Identity):
    """Fails in two ways, and has one epsilon at which it does not."""

    key: ClassVar[str] = "failing"

    def release(self, points, budget, entropy):
        print("a mechanism may print")
        if budget.epsilon > 1:
            raise BudgetError("there is too much budget")
        if budget.epsilon < 1:
            raise KeyError("spent")
        return super().release(points, budget, entropy)


@dataclass(frozen=True, kw_only=True)
class Dying(Identity):
    """Takes its process with it."""

    key: ClassVar[str] = "dying"

    def release(self, points, budget, entropy):
        if os.environ.get("DPVIZ_STARTED_HERE") != str(os.getpid()):
            os._exit(3)
        time.sleep(0.05)
        return super().release(points, budget, entropy)
