"""What the scripts of this folder share: trials from one store, and how a script reads its options and shows its
numbers.

    python examples/edelman2022/NAME.py [--quick] [--store runs.db] [-o FIGURE.png] [--from FIGURE.json]

Every script has `main(quick=False, store=None) -> (computed, measured)`: what is proved or computed, and what came out,
under the same keys. Trials are kept in the store that all commands share and are not trained again.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boundcalc.cli.learning import default_store
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, read

Values = dict[Any, float]
TINY: Mapping[str, Any] = {
    "model": {"d": 32, "heads": 8, "d_ff": 64},
    "train": {"lr": 0.004, "batch": 16, "steps": 400, "stop_loss": 0.005},
    "n_test": 512,
}
"""Of sweeps that take seconds."""
TINY_PARITY: Mapping[str, Any] = {
    **TINY,
    "m": 0,
    "seeds": 3,
    "train": {"lr": 0.01, "batch": 64, "steps": 300, "stop_test_error": 0.005, "curve_every": 25},
}


def preset(sweep: str, **changes: Any) -> dict[str, Any]:
    """A sweep of the library under its name, or another, with some fields changed."""
    from boundcalc.lab.train.sweep import PRESETS

    return {**copy.deepcopy(PRESETS[sweep]), "name": sweep, **changes}


def trained(sweep: Mapping[str, Any], store: Path | None, methods: Sequence[str] = ()) -> list[Any]:
    """The records of a sweep: what the store does not have is trained, and certified by these methods."""
    from boundcalc.lab.train.certify import Request
    from boundcalc.lab.train.run import certify_sweep, run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import sweep_from_json

    plan = sweep_from_json(dict(sweep))
    with Store(default_store() if store is None else store) as opened:
        errors: list[str] = list(run_sweep(plan, opened).errors)
        if methods and not errors:
            errors += certify_sweep(plan.trials, opened, [Request(method) for method in methods]).errors
        if errors:
            raise SystemExit(f"sweep {plan.name}: {errors[0]}")
        hashes = {trial.hash for trial in plan.trials}
        return [record for record in opened.records(sweep=plan.name) if record.hash in hashes]


def by(records: Sequence[Any], *letters: str) -> dict[Any, list[Any]]:
    """Records by their position on some axes, in order."""
    from boundcalc.lab.figures.trials import where

    groups: dict[Any, list[Any]] = {}
    for record in records:
        place = tuple(where(record, letter) for letter in letters)
        groups.setdefault(place if len(letters) > 1 else place[0], []).append(record)
    return dict(sorted(groups.items()))


def medians(values: Mapping[Any, Sequence[float]]) -> Values:
    """The median of the values under each key."""
    return {key: statistics.median(group) for key, group in values.items()}


def run(
    main: Callable[..., tuple[Values, Values]],
    collect: Callable[..., Figure] | None = None,
    draw: Callable[[Figure], Any] | None = None,
    words: tuple[str, str] = ("computed", "measured"),
    argv: Sequence[str] | None = None,
) -> None:
    """Read the options of `main` from the command line; print its numbers, or draw the figure."""
    parser = argparse.ArgumentParser(description=(inspect.getmodule(main).__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a run of seconds, in a store of its own")
    parser.add_argument("--store", type=Path, help="trials (default: $BOUNDCALC_STORE or boundcalc-runs.db)")
    if draw is not None:
        parser.add_argument("-o", dest="image", type=Path, help="draw the figure: .png, .pdf or .svg, and its JSON")
        parser.add_argument("--from", dest="source", type=Path, help="draw this JSON again")
    for name, parameter in list(inspect.signature(main).parameters.items())[2:]:
        flag: dict[str, Any] = {"default": parameter.default, "help": f"default {parameter.default}"}
        kind: dict[str, Any] = (
            {"action": "store_true"} if parameter.default is False else {"type": type(parameter.default)}
        )
        parser.add_argument(f"--{name.replace('_', '-')}", **kind, **flag)
    options = vars(parser.parse_args(argv))
    image, source = options.pop("image", None), options.pop("source", None)
    if source is not None and draw is not None:
        target = image or source.with_suffix(".png")
        canvas.save(read(source), draw, target, numbers=target.with_suffix(".json") != source, force=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options["quick"] and options["store"] is None:
            options["store"] = Path(folder) / "quick.db"
        if image is not None and draw is not None and collect is not None:
            command = " ".join(["python", *(shlex.quote(word) for word in sys.argv)])
            canvas.save(collect(**options).but(command=command), draw, image, force=True)
            return
        show(*main(**options), words)


def show(computed: Values, measured: Values, words: tuple[str, str] = ("computed", "measured")) -> None:
    """Both numbers under every key, side by side."""
    for key, value in computed.items():
        name = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        print(f"{name}: {words[0]} {value:.4g}, {words[1]} {measured[key]:.4g}")
