"""A table of checked values (settings x policies), recorded so that changes of the search or the checker are seen.

    python -m tests.recorded.record FILE

writes the table anew; `test_recorded.py` compares what the package gives now with the table in this folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boundcalc.engine.evaluate import Evaluator
from boundcalc.setting import Setting
from boundcalc.statements.premise import no_member
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings

TABLE = Path(__file__).parent / "values.json"
SEED = "values held through the re-cut"
NUMBER = 500

Values = dict[str, list[float | None] | None]


def values_of(setting: Setting) -> Values:
    """Natural logs of a setting's gap and risk bound, for every policy; None where the checkers refuse."""
    return {
        value.name: None
        if value.refusal is not None
        else [value.certificate.log_value, None if value.risk_refusal is not None else value.log_risk]
        for value in map(Evaluator(setting, no_member).value, POLICIES)
    }


def table() -> Iterator[dict[str, Any]]:
    """The rows of the table, every default of a setting written out."""
    for setting in settings(SEED, NUMBER):
        yield {"setting": setting.complete_json(), "values": values_of(setting)}


if __name__ == "__main__":
    rows = [json.dumps(row) for row in table()]
    Path(sys.argv[1]).write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
