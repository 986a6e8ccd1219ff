"""`boundcalc latent`: what attention infers from pairs of keys and values, with bounds of its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import confidence, near, percent, up
from boundcalc.cli.attended import attended, read_array, refuse_empty_premise
from boundcalc.cli.files import FileCommand, Input
from boundcalc.cli.idle import refuse_given, refuse_idle
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import Line, say, say_checked, wrapped, write_table
from boundcalc.cli.values import NUMBER, WHOLE


class _Numbers(click.ParamType):
    """Numbers between commas."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if not isinstance(value, str):
            return tuple(value)
        return tuple(NUMBER.convert(word, param, ctx) for word in value.split(","))


_NUMBERS = _Numbers()
_option = partial(click.option, show_default=True)
_KERNELS = ("linear", "polynomial", "rbf", "exponential", "random-rbf")
_ROWS = Input(exists=True, dir_okay=False, path_type=Path)
_KNOWN_NOISE = 0.5
"""Values of the known law are within this of their mean."""
_KNOWN_QUERIES = 3


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc latent --L 4096 --d 8            pairs of a known law: errors next to their bounds
  boundcalc latent pairs.csv --kernel rbf --set width=0.5 --ridge 0.1
  boundcalc latent pairs.npy --values 2 --queries asked.npy --temperature 0.1
  boundcalc latent pairs.csv --value-noise 0.5 --rkhs-norm 2      X3k for each""",
)
@click.argument("pairs", type=_ROWS, required=False)
@_option("--values", "width", type=WHOLE, default=1, help="Columns of the value, the last ones.")
@_option("--queries", type=_ROWS, help="Keys that are asked, a row each (default: those of the pairs).")
@_option("--kernel", type=click.Choice(_KERNELS), default="linear", help="Of CME attention.")
@_option("--set", "words", multiple=True, metavar="NAME=VALUE", help="A parameter of the kernel (repeatable).")
@_option("--ridge", type=NUMBER, help="Variance of the noise over that of the prior (default: 1, or the known law's).")
@_option("--temperature", "taus", type=_NUMBERS, default="1", help="Scores are divided by it; several.")
@_option("--value-noise", "noise", type=NUMBER, help="Values are within this of their mean; for X3k.")
@_option("--rkhs-norm", "norm", type=NUMBER, help="Of the conditional mean in the kernel's space; for X3k.")
@_option("--delta", type=NUMBER, default=0.05, help="Failure probability.")
@_option("--L", "n", type=WHOLE, default=512, help="Pairs of the known law.")
@_option("--d", type=WHOLE, default=3, help="Width of a row (a key of the known law).")
@_option("--seed", type=WHOLE, default=0, help="Random seed.")
@form_option("table", "json")
def command(pairs: Path | None, form: str, **options: Any) -> None:
    """The value that attention infers at each query, from pairs (key, value), a row each in a .npy or .csv file.

    CME attention is the posterior mean of a Gaussian process with this kernel (X2); deviation is its posterior
    deviation as a share of the prior's. X3k bounds the error of all three: it asks for weights that depend on keys and
    query alone.

    Without a file pairs are drawn from a known law, and errors stand next to their bounds. Its keys are uniform on the
    unit sphere, its values <z, key> plus noise, |z| = 1.
    """
    if pairs is None:
        refuse_given(dict.fromkeys(("width", "queries", "kernel", "words", "norm"), "without a file of pairs"))
        _infer_known(form, **{name: options[name] for name in ("ridge", "taus", "noise", "delta", "n", "d", "seed")})
        return
    refuse_given(dict.fromkeys(("n", "d", "seed"), "on pairs of your own"))
    width, noise, norm = options["width"], options["noise"], options["norm"]
    if (noise is None) != (norm is None):
        raise InvalidSetting("X3k needs both --value-noise and --rkhs-norm")
    refuse_idle({"delta": "norm"})
    data = read_array(pairs)
    if data.ndim != 2 or not 1 <= width < data.shape[-1]:
        needs = f"a key of at least one number and then a value of --values {width}"
        raise InvalidSetting(f"a row needs {needs}; {pairs} has shape {data.shape}")
    from boundcalc.cli.setting import numbers
    from boundcalc.cli.values import pairs as named
    from boundcalc.lab.latent.kernels import kernel_named

    kernel = kernel_named(options["kernel"], **numbers(named("--set", options["words"], "width=0.5")))
    keys, values = data[:, :-width], data[:, -width:]
    if norm is not None:
        refuse_empty_premise(keys, values, kernel, noise, norm)
    queries = keys if options["queries"] is None else read_array(options["queries"])
    ridge = 1.0 if options["ridge"] is None else options["ridge"]
    rows = list(attended(queries, keys, values, kernel, ridge, options["taus"], noise, norm, options["delta"]))
    note = "|alpha|: size of the weights; P(q): what they leave of the query in the kernel's space"
    if norm is not None:
        note += (
            f"; X3k: the error is at most this with probability at least {confidence(options['delta'])} at each query, "
            "where values are independent given the keys, each within --value-noise of a mean of norm at most "
            "--rkhs-norm"
        )
    _show(form, rows, note)


def _show(form: str, rows: Sequence[Mapping[str, Any]], note: str) -> None:
    """Rows as JSON, or as a table with a note below; bounds are rounded up."""
    if form == "json":
        write_json(rows, allow_nan=False)
        return
    _verdict(rows)
    headings = list(rows[0])
    click.echo()
    lines = [Line([_cell(name, row[name]) for name in headings]) for row in rows]
    write_table(
        headings, lines, right=frozenset(range(2, len(headings))) - {headings.index("by") if "by" in rows[0] else 0}
    )
    click.echo()
    click.echo("\n".join(wrapped(note.split())))


def _verdict(rows: Sequence[Mapping[str, Any]]) -> None:
    """Whether an error exceeds its bound, and which attention is closest; on other pairs, what is proved."""
    queries = rows[-1]["query"]
    of_each: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_each.setdefault(row["attention"], []).append(row)
    if "error" in rows[0]:
        above = sum(row["error"] > row["bound"] for row in rows)
        share = max(row["error"] / row["bound"] for row in rows)
        say_checked(
            not above,
            f"{above or 'No'} error{'s' * (above > 1)} above the bound; the largest is {percent(share)} of its bound.",
        )
        largest = [(max(row["error"] for row in of), name) for name, of in of_each.items() if of[0]["by"] == "X3k"]
        words = ", ".join(f"{name} {near(error)}" for error, name in sorted(largest))
        say(f"Largest error at {queries} queries: {words}.")
        return
    bounds = [(max(row["X3k"] for row in of), name) for name, of in of_each.items() if of[0]["X3k"] is not None]
    if bounds:
        words = ", ".join(f"{name} {up(bound)}" for bound, name in sorted(bounds))
        say(f"Largest error at {queries} queries is at most (X3k): {words}.")
    else:
        say(f"Inferred at {queries} queries. No bound of the errors: X3k needs --value-noise and --rkhs-norm.")


def _cell(name: str, x: Any) -> str:
    """A number by four digits, "-" for none."""
    if x is None or not isinstance(x, float):
        return "-" if x is None else str(x)
    return up(x) if name in ("bound", "X3k") else near(x)


def _infer_known(
    form: str,
    ridge: float | None,
    taus: tuple[float, ...],
    noise: float | None,
    delta: float,
    n: int,
    d: int,
    seed: int,
) -> None:
    """Pairs of a known law: every inferred value, what it should be, the error and its bound."""
    import numpy as np

    from boundcalc.lab.latent.bounds import cme_bound, softmax_bound, sphere_shrinkage
    from boundcalc.lab.latent.kernels import Linear
    from boundcalc.lab.latent.models import GaussianLinear

    noise = validate.positive("--value-noise", _KNOWN_NOISE if noise is None else noise)
    rng = np.random.default_rng(validate.size("seed", seed, least=0))
    model = GaussianLinear(width=validate.size("d", d, least=2), prior_variance=1 / d, noise_variance=noise**2 / 3)
    z, queries = model.draw_keys(rng, 1)[0], model.draw_keys(rng, _KNOWN_QUERIES)
    keys = model.draw_keys(rng, validate.size("L", n))
    values = (keys @ z + noise * rng.uniform(-1, 1, n))[:, None]
    # L_K is 1/d on linear functions of the sphere, so that f* = L_K^(3/2) g with |g| = d
    x3 = cme_bound(n, source=float(d), smoothness=1.5, most=1 + noise, delta=delta)
    rows: list[dict[str, Any]] = []

    def add(query: int, name: str, value: float, target: float, limit: float, by: str) -> None:
        rows.append({"query": query, "attention": name, "value": value, "should be": target})
        rows[-1] |= {"error": abs(value - target), "bound": limit, "by": by}

    def inferred(lam: float) -> Iterator[dict[str, Any]]:
        return attended(queries, keys, values, Linear(), lam, taus, noise, 1.0, delta)

    truth = queries @ z
    for row in inferred(model.lam if ridge is None else ridge):
        i, name = row["query"], row["attention"]
        add(i, name, row["value"], float(truth[i - 1]), row["X3k"], "X3k")
        if name.startswith("softmax"):
            tau = float(name.partition("=")[2])
            low, high = sphere_shrinkage(tau, d)
            x4 = softmax_bound(n, tau=tau, most=1 + noise, delta=delta, sphere=d)
            add(i, f"{name}, limit", row["value"], float((low + high) / 2 * truth[i - 1]), x4.value, x4.name)
    for row in inferred(x3.parameters["reg"] * n):
        if row["attention"] == "CME":
            add(
                row["query"],
                f"CME, ridge of {x3.name}",
                row["value"],
                float(truth[row["query"] - 1]),
                x3.value,
                x3.name,
            )
    rows.sort(key=lambda row: row["query"])
    note = f"{n} pairs, keys on the sphere in {d} dimensions. Each bound holds with probability at least "
    _show(form, rows, f"{note}{confidence(delta)}. Limit: what softmax attention tends to as L grows.")
