"""G0e: what a risk bound supposes of the training sample, and whether any network of the class can meet it.

A risk bound at a training error below 1 speaks of networks with a margin above gamma on some training sequence. Margins
that equal gamma count as errors (G0), so where no output reaches beyond gamma it speaks of no network at all.
"""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import INTERVAL, certainly_le, lower_float
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.setting import Setting
from boundcalc.statements.compose import output_radius


def largest_margin(ns: NumberSystem, radius: Number, classes: int) -> Number:
    """G0e: the largest margin of an output no longer than `radius`: R, for K > 1 classes R sqrt(K/(K-1))."""
    if classes == 1:
        return radius
    return radius * ns.sqrt(ns.number(classes) / ns.number(classes - 1))


def margin_of_class(ns: NumberSystem, setting: Setting) -> Number:
    """G0e for a setting: no network of its class has a larger margin on any input."""
    return largest_margin(ns, output_radius(ns, setting), setting.architecture.classes)


def supposes_a_margin(setting: Setting) -> bool:
    """Whether a risk bound would suppose that some training margin exceeds gamma."""
    return setting.sample.lipschitz is None and setting.sample.train_error < 1


def no_member(setting: Setting, most: Number | None = None) -> Refusal | None:
    """Why no network of the class meets the premise of a risk bound; None where it is not certain that none does.

    `most` is an interval around the largest margin, where it is known already.
    """
    if not supposes_a_margin(setting):
        return None
    most = margin_of_class(INTERVAL, setting) if most is None else most
    gamma = setting.sample.margin
    if not certainly_le(most, INTERVAL.number(gamma)):
        return None
    reach = below(lower_float(most))
    return Refusal(
        f"a risk bound at training error {setting.sample.train_error:g}",
        f"gamma {gamma:g}, while no network with these norms has a margin above {reach}",
        "a margin above gamma",
        f"Take a gamma below {reach}, or larger norms.",
    )


def below(x: float) -> str:
    """Six digits, more where these would lie above x: what is below the text is below x."""
    text = f"{x:.6g}"
    digits = 6
    while float(text) > x and digits < 17:
        digits += 1
        text = f"{x:.{digits}g}"
    return text
