"""A table of checked values (settings x bounds), recorded once so that a re-cut of the house can be held against it.

    python -m tests.recorded.record FILE

writes the table anew; `test_recorded.py` compares what the package gives now with the table in this folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from boundcalc.engine.evaluate import compare
from boundcalc.setting import Sample, Setting
from tests.laws.settings import settings

TABLE = Path(__file__).parent / "values.json"
SEED = "values held through the re-cut"
NUMBER = 500


def values_of(setting: Setting) -> dict[str, list[float] | None]:
    """Natural logs of a setting's gap and risk bound, for every policy; None where it is refused."""
    return {
        value.name: None if value.refusal is not None else [value.certificate.log_value, value.log_risk]
        for value in compare(setting)
    }


def table() -> Iterator[dict[str, Any]]:
    """The rows of the table."""
    for setting in settings(SEED, NUMBER):
        data = (
            setting.to_json()
        )  # the sample with its defaults written out, so that rows keep their meaning if these change
        data["sample"] = {field.name: getattr(setting.sample, field.name) for field in fields(Sample)[:4]}
        yield {"setting": data, "values": values_of(setting)}


if __name__ == "__main__":
    rows = [json.dumps(row) for row in table()]
    Path(sys.argv[1]).write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
