"""`boundcalc eval --sweep`: axes such as T=64:65536:x2, m=1e3:1e9:log7, C=0.5:2:lin4, heads=1,2,4, and their grid."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near, short
from boundcalc.base.validate import hint, spelling
from boundcalc.cli._eval import refuse_idle_bits
from boundcalc.cli._options import number, shown
from boundcalc.cli._report import cell
from boundcalc.cli._setting import BY_NAME, Entry, Question, changed, setting_lines
from boundcalc.cli._text import progress, say, start_csv, write_table
from boundcalc.engine.sweep import MOST_POINTS, RESULT_COLUMNS, run, size_of
from boundcalc.theorems import known_bound

_FORMS = "first:last:x2, first:last:log7, first:last:lin4 or a,b,c"
_MOST_ROWS = 1000
"""A table that is meant to be read has no more rows than this."""


# -- axes


def parse_axes(texts: Iterable[str]) -> dict[str, tuple[Entry, list[Any]]]:
    """The axes by the name they were typed with; raises `InvalidSetting` in one line."""
    axes: dict[str, tuple[Entry, list[Any]]] = {}
    for text in texts:
        typed, _, values = text.partition("=")
        name = spelling(typed.strip().removeprefix("--").replace("-", "_"), BY_NAME)
        if not values:
            raise InvalidSetting(f"a sweep axis is NAME=VALUES with VALUES {_FORMS}; got {text!r}")
        entry = BY_NAME.get(name)
        if entry is None or entry.field in ("normaliser_c", "normaliser_mu"):
            close = hint(name, BY_NAME) or "; axes are the fields of a setting, such as T, m, C"
            raise InvalidSetting(f"no sweep axis {name!r}{close}")
        if name in axes:
            raise InvalidSetting(f"the sweep axis {name!r} is given twice: write its values in one --sweep")
        if ":" not in values or entry.spec.kind not in (int, float):
            axes[name] = entry, [entry.read(word.strip()) for word in values.split(",")]
        else:
            spaced = _spaced(f"sweep {name}", values)
            axes[name] = entry, list(dict.fromkeys(map(round, spaced))) if entry.spec.kind is int else spaced
    return axes


def _spaced(where: str, text: str) -> list[float]:
    """first:last:x2 (a factor), first:last:log7 or first:last:lin4 (so many points)."""
    parts = re.fullmatch(r"([^:]+):([^:]+):(x|log|lin)(.+)", text)
    first, last, size = (number(parts[i]) for i in (1, 2, 4)) if parts else (None, None, None)
    if parts is None or first is None or last is None or size is None:
        raise InvalidSetting(f"{where}: a range is first:last:STEP with STEP x2, log7 or lin4; got {text!r}")
    kind, count = parts[3], size
    if kind != "lin" and not 0 < min(first, last) <= max(first, last) < math.inf:
        raise InvalidSetting(f"{where}: a geometric range needs finite ends above 0, got {text!r}; use linN")
    if kind == "x":
        if not 0 < size < math.inf or size == 1 or (last != first and (last > first) != (size > 1)):
            raise InvalidSetting(f"{where}: from {short(first)} to {short(last)} the factor cannot be {short(size)}")
        count = math.floor(math.log(last / first) / math.log(size) + 1e-9) + 1
    if not (1 if first == last or kind == "x" else 2) <= count <= MOST_POINTS or count != int(count):
        raise InvalidSetting(f"{where}: {text!r} must give 2 to 10^6 points, such as log7")
    if kind == "x":
        return [first * size**i for i in range(int(count))]
    shares = (i / (count - 1) for i in range(1, int(count) - 1))
    inner = (first + (last - first) * s if kind == "lin" else first * (last / first) ** s for s in shares)
    return [first, *(float(near(value, 12)) for value in inner), last][: int(count)]  # the ends exactly


# -- the grid


def sweep(question: Question, texts: Sequence[str], bounds: Sequence[str], form: str) -> bool:
    """Computes and writes the grid; whether any point has a bound."""
    axes, start = parse_axes(texts), question.setting
    names = [known_bound(name) for name in bounds] or ["best"]
    refuse_idle_bits(question if "bits" not in axes else Question(start, typed=("bits",)), names)
    for name, (entry, _) in axes.items():
        question.refuse(entry.field, f"--sweep {name}=... says which values it takes; leave it out")
    if "C" not in axes:
        start.refuse_missing()
    elif not start.default_kinds():
        raise InvalidSetting("sweeping C would change nothing: every weight has a norm budget of its own")
    grid = {entry.field: values for entry, values in axes.values()}
    total = size_of(grid)
    if form == "table" and total * len(names) > _MOST_ROWS:
        raise InvalidSetting(f"a table of {total * len(names)} rows is no reading: add --format csv")
    writer = start_csv((*axes, *RESULT_COLUMNS)) if form == "csv" else None
    rows: list[dict[str, Any]] = []
    any_bound = False
    with progress() as show_state:
        for done, (point, results) in enumerate(run(lambda point: changed(start, point), grid, names)):
            show_state(f"{done} of {total} points")
            any_bound = any_bound or any(result["refusal"] is None for result in results)
            new = [dict(zip(axes, point.values(), strict=True)) | result for result in results]
            if writer is None:
                rows += new
            else:
                writer.writerows(new)
    if form == "table":
        _table(question, axes, rows, several=len(names) > 1)
    return any_bound


def _table(
    question: Question, axes: dict[str, tuple[Entry, list[Any]]], results: list[dict[str, Any]], *, several: bool
) -> None:
    """The setting, a row for each point and bound, and why some have none."""
    rows = [[*axes, *["bound"] * several, "gap <=", "risk <=", "strategy"]]
    for row in results:
        bound = (cell(row, "gap"), cell(row, "risk"), row["strategy"] or "")
        rows.append([shown(row[name]) for name in axes] + [row["name"]] * several)
        rows[-1] += ["refused"] if row["refusal"] is not None else bound
    say("\n".join(setting_lines(question, without=[entry.field for entry, _ in axes.values()])) + "\n")
    styles = ["dim" * bool(row["refusal"] is not None or row["vacuous"]) for row in results]
    write_table(rows, right=range(len(axes)), styles=styles)
    reasons = Counter(row["refusal"] or f"risk {row['risk_refusal']}" for row in results)
    reasons.pop("risk None", None)
    for reason, count in reasons.items():
        say(f"refused {count} time{'s' * (count > 1)}: {reason}")
