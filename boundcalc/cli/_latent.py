"""`boundcalc latent`: what attention infers from pairs of keys and values, with bounds of its errors."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_text
from boundcalc.base.rounding import confidence, near, short, up
from boundcalc.cli._options import FILE, command_with, form_option, option, pairs, refuse_given, several, write_json
from boundcalc.cli._setting import numbers
from boundcalc.cli._text import say, write_table

_KERNELS = ("linear", "rbf", "exponential")


@command_with("""\
  boundcalc latent pairs.csv --kernel rbf --set width=0.5 --ridge 0.1
  boundcalc latent pairs.npy --queries queries.npy --temperature 0.1
  boundcalc latent pairs.csv --value-noise 0.5 --rkhs-norm 2      X3k for each""")
@click.argument("file", metavar="PAIRS", type=FILE)
@option("--queries", FILE, "Keys of the queries, a row each (default: those of the pairs).")
@option("--kernel", click.Choice(_KERNELS), "Of CME attention.", "linear")
@several("--set words", "A parameter of the kernel (repeatable).", "NAME=VALUE")
@option("--ridge", float, "Variance of the noise over that of the prior.", 1.0)
@option("--temperature", float, "Scores of softmax attention are divided by it.", 1.0)
@option("--value-noise noise", float, "Values are within this of their mean; for X3k.")
@option("--rkhs-norm norm", float, "Of the conditional mean in the kernel's space; for X3k.")
@option("--delta", float, "Failure probability.", 0.05)
@form_option("table", "json")
def command(file: str, noise: float | None, norm: float | None, form: str, **options: Any) -> None:
    """The value that attention infers at each query, from pairs, a row each in a .npy or .csv file: key, then value.

    CME attention is the posterior mean of a Gaussian process with this kernel (X2); deviation is its posterior
    deviation as a share of the prior's. X3k bounds the error of all three: it asks for weights that depend on keys and
    query alone.
    """
    if (noise is None) != (norm is None):
        raise InvalidSetting("X3k needs both --value-noise and --rkhs-norm")
    if norm is None:
        refuse_given("without --rkhs-norm", "delta")
    data, delta = _array(file), options["delta"]
    if data.ndim != 2 or data.shape[1] < 2:
        raise InvalidSetting(f"a row needs a key of at least one number, and a value; {file} has shape {data.shape}")
    from boundcalc.lab.latent.kernels import kernel_named

    of_kernel = kernel_named(options["kernel"], **numbers(pairs("--set", options["words"], "width=0.5")))
    keys, values = data[:, :-1], data[:, -1]
    queries = keys if options["queries"] is None else _array(options["queries"])
    rows = list(_rows(queries, keys, values, of_kernel, noise, norm, options))
    if form == "json":
        write_json(rows, allow_nan=False)
        return
    bounds = sorted((row["X3k"], row["attention"]) for row in rows if row["X3k"] is not None)
    if bounds:
        largest = ", ".join(f"{name} {up(bound)}" for name, bound in {name: bound for bound, name in bounds}.items())
        say(f"Largest error at {rows[-1]['query']} queries is at most (X3k): {largest}.")
    else:
        say(
            f"Inferred at {rows[-1]['query']} queries. No bound of the errors: X3k needs --value-noise and --rkhs-norm."
        )
    say()
    cells = [[_cell(name, value) for name, value in row.items()] for row in rows]
    write_table([list(rows[0]), *cells], right=range(2, len(rows[0])))
    say("\n|alpha|: size of the weights; P(q): what they leave of the query in the kernel's space")
    if bounds:
        say(
            f"X3k: the error is at most this with probability at least {confidence(delta)} at each query, where values "
            "are independent given the keys, each within --value-noise of a mean of norm at most --rkhs-norm"
        )


def _cell(name: str, x: Any) -> str:
    """A number by four digits, "-" for none."""
    if not isinstance(x, float):
        return "-" if x is None else str(x)
    return up(x) if name == "X3k" else near(x)


def _array(path: str) -> Any:
    """The array in a .npy file, or in a .csv file of numbers."""
    import numpy as np

    try:
        if path.endswith(".npy"):
            array = np.asarray(np.load(path))
        else:
            text = read_text(path, more="write the array as .npy")
            array = np.array([[float(x) for x in line.split(",")] for line in text.splitlines() if line.strip()])
    except (ValueError, EOFError) as error:
        raise InvalidSetting(f"{path} is not an array of numbers (.npy, or .csv with commas): {error}") from None
    if array.dtype.kind not in "biuf" or not array.size or not np.isfinite(array).all():
        raise InvalidSetting(f"{path} must hold real and finite numbers")
    return array.astype(float)


def _rows(
    queries: Any, keys: Any, values: Any, kernel: Any, noise: float | None, norm: float | None, options: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row for each query and attention: the value, the posterior's deviation, and what X3k is made of."""
    import numpy as np

    from boundcalc.lab.latent.attention import attend, linear_weights, power_function, softmax_weights
    from boundcalc.lab.latent.bounds import key_bound

    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        posterior = attend(queries, keys, lam=options["ridge"], kernel=kernel)
        prior = kernel.diagonal(queries)
    deviations = np.sqrt(posterior.variance / np.where(prior > 0, prior, 1.0))
    weights: Mapping[str, Any] = {
        "CME": posterior.weights,
        f"softmax tau={short(options['temperature'])}": softmax_weights(queries, keys, options["temperature"]),
        "linear": linear_weights(queries, keys),
    }
    missed = {name: power_function(queries, keys, alpha, kernel) for name, alpha in weights.items()}
    for i in range(len(queries)):
        for name, alpha in weights.items():
            size, power = float(np.linalg.norm(alpha[i])), float(missed[name][i])
            row = {"query": i + 1, "attention": name, "value": float(alpha[i] @ values)}
            row |= {"deviation": float(deviations[i]) if name == "CME" else None, "|alpha|": size, "P(q)": power}
            row["X3k"] = None
            if noise is not None and norm is not None:
                above = size * (1 + len(alpha[i]) * sys.float_info.epsilon)
                row["X3k"] = key_bound(above, power, noise=noise, norm=norm, delta=options["delta"])
                if math.isinf(row["X3k"]):
                    raise InvalidSetting(
                        f"X3k is infinite at --value-noise {short(noise)} and --rkhs-norm {short(norm)}"
                    )
            yield row
