"""The best bounds of 2,000 random settings as they were before centres of a chosen law, maps that meet, refinements and noise.

    python -m tests.recorded.before settings FILE      the settings, one JSON object per line
    python tests/recorded/before.py values FILE OUT    their bounds by whatever boundcalc is on the path

`before.json` is what the second printed with the package of commit bf77225 on the path. Its first number of a row is a
digest of the setting, so that a change of the settings is noticed.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "before.json"
NUMBER = 2000


def comparable(number: int = NUMBER) -> Iterator[dict[str, Any]]:
    """Settings as JSON, with samples large enough and margins small enough for most bounds to say something."""
    from tests.laws.settings import settings

    rng = random.Random("samples that tell bounds apart")
    for setting in settings("tighter than before", number):
        sample = replace(setting.sample, n_train=int(10 ** rng.uniform(3, 10)), margin=rng.choice((0.02, 0.1, 0.5)))
        yield replace(setting, sample=sample).to_json()


def digest(data: dict[str, Any]) -> str:
    """Eight letters that tell settings apart."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]


def values_of(data: dict[str, Any]) -> list[float | None]:
    """Logs of the best gap and risk; None where no network meets the premise of a risk."""
    from boundcalc.base.errors import Unsupported
    from boundcalc.engine.evaluate import compare
    from boundcalc.setting import Setting

    (value,) = compare(Setting.from_json(data), ["best"])
    try:
        return [value.certificate.log_value, value.log_risk]
    except Unsupported:
        return [value.certificate.log_value, None]


def main(what: str, file: str, out: str = "") -> None:
    """Writes the settings, or their bounds."""
    if what == "settings":
        Path(file).write_text("".join(json.dumps(data) + "\n" for data in comparable()), encoding="utf-8")
        return
    rows = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    table = [json.dumps([digest(data), *values_of(data)]) for data in rows]
    Path(out).write_text("[\n" + ",\n".join(table) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
