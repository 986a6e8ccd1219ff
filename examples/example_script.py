"""How a script of edelman2022/ or zhang2022/ reads its options and shows its numbers.

    python examples/FOLDER/NAME.py [--quick] [-o FIGURE.png] [--from FIGURE.json] [options of its `main`]

Every script has `main(...) -> (computed, measured)`: what is proved or computed, and what came out, under the same
keys; and `QUICK`, the options of a run of seconds, which the tests use.
"""

from __future__ import annotations

import argparse
import inspect
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, read

Values = dict[Any, float]


def run(
    main: Callable[..., tuple[Values, Values]],
    collect: Callable[..., Figure] | None = None,
    draw: Callable[[Figure], Any] | None = None,
    words: tuple[str, str] = ("computed", "measured"),
    argv: Sequence[str] | None = None,
) -> None:
    """Read the options of `main` from the command line; print its numbers, or draw the figure.

    A figure is of the options, or of the numbers that `main` returns.
    """
    module, parameters = inspect.getmodule(main), inspect.signature(main).parameters
    parser = argparse.ArgumentParser(description=(module.__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a run of seconds, in a store of its own")
    if draw is not None:
        parser.add_argument("-o", dest="image", type=Path, help="draw the figure: .png, .pdf or .svg, and its JSON")
        parser.add_argument("--from", dest="source", type=Path, help="draw this JSON again")
    for name, default in ((name, parameter.default) for name, parameter in parameters.items() if name != "quick"):
        kind: dict[str, Any] = {"type": Path if default is None else type(default)}
        if isinstance(default, tuple):
            kind = {"type": type(default[0]), "nargs": "+"}
        elif default is False:
            kind = {"action": "store_true"}
        parser.add_argument(f"--{name}", default=argparse.SUPPRESS, help=f"default {default}", **kind)
    typed = vars(parser.parse_args(argv))
    image, source, quick = typed.pop("image", None), typed.pop("source", None), typed.pop("quick")
    if source is not None and draw is not None:
        target = image or source.with_suffix(".png")
        canvas.save(read(source), draw, target, numbers=target.with_suffix(".json") != source, force=True)
        return
    if "torch" in sys.modules:  # small networks gain nothing from a second thread
        sys.modules["torch"].set_num_threads(1)
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in typed.items()}
    with tempfile.TemporaryDirectory() as folder:
        if quick:
            kept = {"store": Path(folder) / "quick.db"} if "store" in parameters else {}
            options = {**module.QUICK, **kept, **options}  # type: ignore[union-attr]
        of_options = collect is not None and "computed" not in inspect.signature(collect).parameters
        numbers = () if image is not None and of_options else main(**options)
        if numbers:
            show(*numbers, words)
        if image is not None and draw is not None and collect is not None:
            command = " ".join(["python", *(shlex.quote(word) for word in sys.argv)])
            figure = collect(**options) if of_options else collect(*numbers)
            canvas.save(figure.but(command=command), draw, image, force=True)


def show(computed: Values, measured: Values, words: tuple[str, str]) -> None:
    """Both numbers under every key, side by side."""
    for key, value in computed.items():
        name = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        print(f"{name}: {words[0]} {value:.4g}, {words[1]} {measured[key]:.4g}")
