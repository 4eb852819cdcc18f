"""The subcommand `dpviz audit`: lower bounds on the epsilon of one mechanism, or of all."""

from __future__ import annotations

import json
import os
from argparse import Namespace

from dpviz.amounts import format_decimal
from dpviz.cli.console import DONE, REFUSED, give, step_bar
from dpviz.errors import SettingError, did_you_mean
from dpviz.evaluation.audits import audit_all, audit_targets
from dpviz.privacy.audit import AuditPlan

ALL = "all"


def run_audit(arguments: Namespace) -> int:
    """Audit one mechanism or all; return 1 if the audit contradicts a declared budget."""
    plan = AuditPlan(runs=arguments.runs, confidence=arguments.confidence, seed=arguments.seed)
    targets = audit_targets()
    if arguments.mechanism not in (ALL, *targets):
        meant = did_you_mean(arguments.mechanism, targets)
        raise SettingError(f"There is no such mechanism; choose {ALL}, or one of: {'; '.join(targets)}.{meant}")
    mechanisms = targets if arguments.mechanism == ALL else {arguments.mechanism: targets[arguments.mechanism]}
    with step_bar(len(mechanisms), "audit") as step:

        def progress(done: int, total: int, name: str) -> None:  # noqa: ARG001
            step()

        table = audit_all(mechanisms, plan=plan, progress=progress, processes=min(os.cpu_count() or 1, len(mechanisms)))
    table_text = table[["mechanism", "epsilon", "delta", "lower_bound", "passed"]].to_string(index=False)
    meaning = (
        f"With confidence {format_decimal(arguments.confidence)} for all rows together, epsilon is at least lower_bound. An audit can find"
        " faults; it cannot prove privacy."
    )
    give(json.loads(table.to_json(orient="records")), [*table_text.splitlines(), meaning], as_json=arguments.json)
    return DONE if table["passed"].all() else REFUSED
