"""What `eval` and `solve` are asked that is no part of a setting: theorems that are not about one, and their inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.setting import Question
from boundcalc.cli.values import exactly, number
from boundcalc.formulas.theorems import ALONE, BOUNDS, THEOREMS, Theorem, known_bound, theorem_called

OF_PAIRS = " and ".join(name for name, theorem in THEOREMS.items() if "L" in theorem.defaults)
"""The theorems about attention over L pairs."""


def examples(command: str) -> str:
    """What theorems give as examples of a command, for its help."""
    typed = (theorem.examples.get(command) for theorem in THEOREMS.values())
    return "".join(f"\n  boundcalc {command} {words}" for words in typed if words)


def pairs(words: Sequence[str]) -> dict[str, float]:
    """--set NAME=VALUE, repeated."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        value = number(text) if equals else None
        if not name or value is None or isinstance(value, complex) or not math.isfinite(value):
            raise InvalidSetting(f"--set needs NAME=VALUE with a number, such as --set K=4, got {word!r}")
        if name in found:
            raise InvalidSetting(f"--set sets {name!r} twice")
        whole = exactly(text)
        found[name] = value if whole is None else whole
    return found


def alone(bounds: Sequence[str]) -> Theorem | None:
    """The theorem that is asked for, where it is not about a setting; such a one is asked for by itself."""
    found = [theorem for name in bounds if (theorem := theorem_called(name)) and theorem.name not in BOUNDS]
    if found and len(bounds) > 1:
        from boundcalc.base.prose import plain

        raise InvalidSetting(f"{found[0].name} ({plain(found[0].title)}) is no gap of a setting: ask for it by itself")
    return found[0] if found else None


def refuse_inputs(given: Mapping[str, float]) -> None:
    """--set and --L are for theorems that are not about a setting."""
    if given:
        name = next(iter(given))
        raise InvalidSetting(
            f"{name} is no part of a setting: --set and --L are for --bound {', '.join(ALONE)}, which are not about one"
            + ("; layers are --depth" if name == "L" else "")
        )


def refuse_idle_bits(question: Question, bounds: Sequence[str]) -> None:
    """Refuses --bits where no bound that is asked for counts stored weights."""
    if bounds and not any(BOUNDS[known_bound(name)].stored for name in bounds):
        able = " and ".join(repr(policy.name) for policy in BOUNDS.values() if policy.stored)
        question.refuse("bits", f"only {able} counts stored weights (G13), and {', '.join(bounds)} was asked for")
