"""Numbers in sentences and on axes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from boundcalc.base import rounding
from boundcalc.base.prose import plain
from boundcalc.setting import Setting


def short(x: float) -> str:
    """A number as people write it: 512, 10^6, 3.2 x 10^6, 0.05."""
    if x == 0 or 1e-3 <= abs(x) < 1e4:
        return f"{x:.4g}"
    power = math.floor(math.log10(abs(x)) + 1e-12)
    head = x / 10.0**power
    return f"10^{power}" if abs(head - 1) < 5e-3 else f"{head:.2g} x 10^{power}"


def rounded_up(x: float) -> str:
    """An upper bound as people write it: rounded up."""
    if x <= 0 or not math.isfinite(x):
        return short(x)
    return short(float(rounding.up(x, 4 if 1e-3 <= x < 1e4 else 2)))


def decades(ratio: float) -> str:
    """A ratio as orders of magnitude."""
    return f"{math.log10(ratio):.1f} orders of magnitude"


def power(log10: float) -> str:
    """10^8, 10^4.2."""
    return f"10^{log10:.1f}".removesuffix(".0")


def many(count: int, word: str) -> str:
    """1 trial, 2 trials."""
    return f"{count} {word}{'s' * (count != 1)}"


def factor(log10: float) -> str:
    """A factor given by its logarithm, to three digits."""
    return f"×{float(f'{10**log10:.3g}'):g}" if log10 < 4 else f"×10^{log10:.1f}"


NAMES: Mapping[str, str] = {
    "best": "least of all proofs",
    "closed": "closed form",
    "log-T": "covers with log T",
    "trauger": "covers without T",
    "parameters": "parameter counting",
    "published": "published constants",
}
"""What readers are told of a policy; a theorem by name has its title and its paper."""


def called(bound: str) -> str:
    """A bound in words."""
    from boundcalc.formulas.theorems import THEOREMS

    theorem = THEOREMS.get(bound)
    return NAMES.get(bound) or (bound if theorem is None else f"{plain(theorem.title)} ({theorem.source.short})")


_STYLES: Mapping[str, str] = {
    "edelman": "Transformer of Edelman et al.",
    "post": "post-norm Transformer",
    "pre": "pre-norm Transformer",
}


def setting_words(setting: Setting, *, but: Collection[str] = (), trained: bool = False) -> str:
    """A setting in a line, less the fields that an axis runs over; `trained`: its norms are the trials' largest."""
    architecture, norms, sample = setting.architecture, setting.norms, setting.sample
    parts = [_STYLES.get(architecture.style, architecture.style) if architecture.layers is None else "layers given"]
    shape = {"depth": f"depth {architecture.depth}", "d": f"d = {architecture.d}", "heads": ""}
    shape["heads"] = many(architecture.heads, "head")
    shape["seq_len"] = f"T = {architecture.seq_len}"
    parts.append(", ".join(words for name, words in shape.items() if name not in but))
    if trained:
        parts.append("norms up to the largest of the trained models")
    elif norms.budgets:
        parts.append("norm budgets given")
    elif norms.C is not None and "C" not in but:
        parts.append(f"every norm at most {short(norms.C)}")
    rest = {"n_train": f"m = {short(sample.n_train)}", "margin": f"$\\gamma$ = {short(sample.margin)}"}
    rest["delta"] = f"$\\delta$ = {short(sample.delta)}"
    parts.append(", ".join(words for name, words in rest.items() if name not in but))
    return typeset(" · ".join(part for part in parts if part))


def trials_words(
    task: Mapping[str, Any], setting: Setting, *, but: Collection[str] = (), letter: str = "", trained: bool = False
) -> str:
    """What trials are of, and what the bounds beside them are for: `but` and `letter` name what an axis runs over."""
    hidden = ("depth", "d", "heads", "seq_len", "n_train", *but)
    about = setting_words(setting, but=hidden, trained=trained).partition(" · ")[2]
    return f"{task_words(task, but=(letter,) if letter else ())} · bounds: {about}"


def listed(words: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence(text: str) -> str:
    """With a capital and a stop, where there is something to say."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def functions(task: Mapping[str, Any]) -> str:
    """What is learned, such as "conjunctions of 3"."""
    return f"{re.sub('y$', 'ie', str(task['task']))}s of {task['s']}"


def typeset(text: str) -> str:
    """Powers of ten as powers, in what matplotlib sets."""
    return re.sub(r"10\^(-?[\d.]+)", r"$10^{\1}$", text.replace(" x ", "×"))


def task_words(task: Mapping[str, Any], *, but: Collection[str] = ()) -> str:
    """What trials are of, in a line: the task, the model, how many."""
    if "task" not in task:
        sizes = "" if "m" in but or not task["m"] else f", m = {_range(task['m'])}"
        return f"{many(task['trials'], 'run')} of one's own{sizes}"
    which = functions(task) if task.get("s") else str(task["task"]).replace("-", " ")
    of = f" of {_range(task['T'])} bits" if task.get("s") else f", L = {_range(task['T'])}" if "T" not in but else ""
    if "T" in but and task.get("s"):
        of = " bits"
    parts = [which + of]
    model = task.get("model")
    if model:
        depth = "" if "depth" in but else f"depth {_range(model['depth'])}, "
        parts.append(f"{depth}d = {model['d']}, {many(model['heads'], 'head')}")
    if "m" not in but and task["m"] != [0]:
        parts.append(f"m = {_range(task['m'])}")
    parts.append(many(task["trials"], "trial"))
    return " · ".join(parts)


def _range(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"
