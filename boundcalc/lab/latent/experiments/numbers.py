"""What an experiment found, as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from boundcalc.lab.latent.experiments.statistics import Interval


class Numbers:
    """A dataclass of numbers, of intervals and of either by name."""

    def to_json(self) -> dict[str, Any]:
        """By field; an interval is [value, low, high], what is infinite null."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document(experiment: str, plan: Any, rows: Sequence[Numbers]) -> dict[str, Any]:
    """What was asked for, and what came of it."""
    return {"experiment": experiment, "plan": asdict(plan), "rows": [row.to_json() for row in rows]}
