"""What the scripts of this folder share: intervals, slopes, and how a script reads its options and prints its numbers.

    python examples/zhang2022/NAME.py [--quick] [-o FIGURE.png] [--from FIGURE.json] [options of its `main`]

Every script has `main(...) -> (computed, measured)`: what the theory says, and what came out, under the same keys; and
`QUICK`, the options of a run of seconds, which the tests use.
"""

from __future__ import annotations

import argparse
import inspect
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, read

Array = np.ndarray[Any, Any]
Values = dict[Any, float]


class Interval(NamedTuple):
    """A number with the two ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_interval(numbers: Any) -> Interval:
    """A mean with Student's interval."""
    x = np.asarray(numbers, dtype=float)
    mean = float(x.mean())
    half = float(stdtrit(len(x) - 1, 0.975) * x.std(ddof=1) / math.sqrt(len(x)))
    return Interval(mean, mean - half, mean + half)


def fit_slope(x: Any, y: Any) -> Interval:
    """The slope of a straight line by least squares, with Student's interval."""
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    a, b = a - a.mean(), b - b.mean()
    slope = float(a @ b / (a @ a))
    half = float(stdtrit(len(a) - 2, 0.975)) * math.sqrt(float(np.square(b - slope * a).sum() / (len(a) - 2) / (a @ a)))
    return Interval(slope, slope - half, slope + half)


def rates(values: Mapping[Any, float], shortest: int = 64) -> dict[str, Interval]:
    """The power of L of every name, fitted from L = `shortest` on, for values under keys (name, L)."""
    slopes: dict[str, Interval] = {}
    for name in dict.fromkeys(name for name, _ in values):
        late = [(length, value) for (other, length), value in values.items() if other == name and length >= shortest]
        if len(late) >= 3:
            slopes[name] = fit_slope(*np.log(late).T)
    return slopes


def unit(rng: np.random.Generator, *shape: int) -> Array:
    """Points drawn uniformly from the unit sphere."""
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def run(
    main: Callable[..., tuple[Values, Values]],
    quick: Mapping[str, Any],
    collect: Callable[[Values, Values], Figure] | None = None,
    draw: Callable[[Figure], Any] | None = None,
    argv: Sequence[str] | None = None,
) -> None:
    """Read the options of `main` from the command line, call it, and print what it returns, or draw it."""
    parser = argparse.ArgumentParser(description=(inspect.getmodule(main).__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a run of seconds")
    if draw is not None:
        parser.add_argument("-o", dest="image", type=Path, help="draw the figure: .png, .pdf or .svg, and its JSON")
        parser.add_argument("--from", dest="source", type=Path, help="draw this JSON again")
    for name, parameter in inspect.signature(main).parameters.items():
        default = parameter.default
        flag: dict[str, Any] = {"default": argparse.SUPPRESS, "help": f"default {default}"}
        if default is False:
            parser.add_argument(f"--{name}", action="store_true", **flag)
        elif isinstance(default, tuple):
            parser.add_argument(f"--{name}", type=type(default[0]), nargs="+", **flag)
        else:
            parser.add_argument(f"--{name}", type=type(default), **flag)
    arguments = vars(parser.parse_args(argv))
    image, source = arguments.pop("image", None), arguments.pop("source", None)
    if source is not None and draw is not None:
        target = image or source.with_suffix(".png")
        canvas.save(read(source), draw, target, numbers=target.with_suffix(".json") != source, force=True)
        return
    if "torch" in sys.modules:  # small networks gain nothing from a second thread
        sys.modules["torch"].set_num_threads(1)
    options = (dict(quick) if arguments.pop("quick") else {}) | arguments
    computed, measured = main(**{name: tuple(x) if isinstance(x, list) else x for name, x in options.items()})
    for key, value in computed.items():
        name = key if isinstance(key, str) else ", ".join(str(part) for part in key)
        print(f"{name}: computed {value:.4g}, measured {measured[key]:.4g}")
    if image is not None and collect is not None and draw is not None:
        command = " ".join(["python", *(shlex.quote(word) for word in sys.argv)])
        canvas.save(collect(computed, measured).but(command=command), draw, image, force=True)
