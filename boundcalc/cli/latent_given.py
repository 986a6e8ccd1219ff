"""Commands of `boundcalc latent` about models, sequences and pairs that are given."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FileCommand, Input
from boundcalc.cli.idle import refuse_given, refuse_idle
from boundcalc.cli.latent_show import (
    NUMBERS,
    ceiling,
    delta_option,
    option,
    seed_option,
    show,
    table_option,
    taus_option,
)
from boundcalc.cli.values import NUMBER, WHOLE
from boundcalc.setting import validate

_MODELS = ("beta-bernoulli", "dirichlet-categorical", "categorical-mixture", "gaussian-mean")
_KERNELS = ("linear", "polynomial", "rbf", "exponential", "random-rbf")
_ROWS = Input(exists=True, dir_okay=False, path_type=Path)
_FOUND = 1e-9
"""Differences above this are not rounding."""


def _rows(path: Path) -> Any:
    """The array in a .npy file, or in a .csv file of numbers."""
    import numpy as np

    if path.suffix != ".npy" and not path.read_bytes().strip():
        raise InvalidSetting(f"{path} is empty: give one row per line, numbers separated by commas")
    try:
        found = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
    except (ValueError, EOFError) as error:
        raise InvalidSetting(f"{path} is not an array of numbers (.npy, or .csv with commas): {error}") from None
    if getattr(found, "dtype", np.dtype(object)).kind not in "biuf":
        raise InvalidSetting(f"{path} must hold real numbers, got {getattr(found, 'dtype', type(found).__name__)}")
    if not np.isfinite(found).all():
        raise InvalidSetting(f"{path} must hold finite numbers, but {int((~np.isfinite(found)).sum())} are not")
    return found.astype(float)


@click.command(cls=FileCommand, short_help="A model's posterior and predictive law as formulas.")
@click.argument("model", required=False)
@option("--latex", is_flag=True, help="LaTeX lines for an align environment.")
def posterior(model: str | None, latex: bool) -> None:
    """A model's posterior and predictive law, derived and checked symbolically; without a name, the models.

    The model's densities and statistics are checked too, on sequences that it draws: exchangeable, and sufficient.
    """
    from boundcalc.lab.latent.symbolic import SYMBOLIC
    from boundcalc.setting.validate import choice

    if model is None:
        refuse_given({"latex": "without a model, such as beta-bernoulli"})
        for name, build in SYMBOLIC.items():
            click.echo(f"{name:24} {(build.__doc__ or '').splitlines()[0]}")
        return
    name = choice("model", model, SYMBOLIC)
    formulas = SYMBOLIC[name]()
    if latex:
        click.echo(formulas.latex())
        return
    from boundcalc.lab.latent.exchangeability import check_model
    from boundcalc.lab.latent.models import MODELS

    click.echo(f"{formulas.name}: {formulas.statistic}")
    for parameter, value in [*formulas.parameters.items(), *formulas.predictive.items()]:
        click.echo(f"  {parameter} = {value}")
    checked = "checked: prior times likelihood over posterior does not depend on z"
    click.echo(f"  {checked if formulas.latent and not any(formulas.residual()) else 'Bayes, by definition'}")
    found = check_model(MODELS[name]())
    if found.worst > _FOUND:
        raise ArithmeticError(f"the model {name} is not what its formulas say: {found}")
    click.echo(
        f"  checked on sequences of {found.length}: their density is the product of predictive ones in any order, and "
        f"{len(found.statistics)} sufficient statistics ({', '.join(found.statistics)}) give one posterior"
    )


@click.command(cls=FileCommand, short_help="What summaries of a sequence leave unsaid about the next token.")
@option("--model", type=click.Choice(_MODELS), default=_MODELS[0], help="Of the sequence.")
@option("--L", "length", type=WHOLE, default=8, help="Tokens in a sequence.")
@option("--a", type=NUMBER, default=2.0, help="First parameter of the Beta prior.")
@option("--b", type=NUMBER, default=1.0, help="Second parameter of the Beta prior.")
@option(
    "--sequences",
    "draws",
    type=click.IntRange(20),
    help="Estimate it from so many sequences (default: exactly, from all).",
)
@seed_option
@table_option
def sufficient(model: str, length: int, a: float, b: float, draws: int | None, seed: int, form: str) -> None:
    """I(y; X | summary) of a sequence for several summaries: 0 for the sufficient ones (X1)."""
    import numpy as np

    from boundcalc.lab.latent import information as info
    from boundcalc.lab.latent.models import MODELS

    refuse_idle({"seed": "draws"})
    validate.size("seed", seed, least=0)
    if model != _MODELS[0]:
        refuse_given({"a": f"on {model}", "b": f"on {model}"})
    law: Any = MODELS[model](**({"a": a, "b": b} if model == _MODELS[0] else {}))
    found: dict[str, info.Information] = {}
    if model == "gaussian-mean":
        refuse_given({"draws": f"on {model}: it is exact at any length"})
        for name, weights in info.linear_summaries(length).items():
            found[name] = info.gaussian_information(law, weights, length)
    else:
        for name, summary in info.summaries(law, length).items():
            if draws is None:
                found[name] = info.exact_information(law, summary, length)
            else:
                found[name] = info.sampled_information(law, summary, length, np.random.default_rng(seed), draws)
    if draws is None:
        rows = [(name, one.estimate, "yes" if one.estimate < 1e-12 else "no") for name, one in found.items()]
        values = {name: one.estimate for name, one in found.items()}
        show(form, values, ("summary", "I(y; X | summary), nats", "sufficient"), rows)
        return
    triples = {name: (one.estimate, one.lower, one.upper) for name, one in found.items()}
    headings = ("summary", "I(y; X | summary) <~", "low", "high", "sufficient")
    rows = [(name, *triple, "no" if triple[1] > 0 else "not refuted") for name, triple in triples.items()]
    show(form, triples, headings, rows, ["low and high: 99% limits each; the estimate is that of the upper end"])


@click.command(cls=FileCommand, short_help="Whether sequences can be part of longer exchangeable ones.")
@click.argument("path", type=_ROWS, required=False)
@option("--delta", type=NUMBER, default=0.01, help="Failure probability.")
@option("--ones", "law", type=NUMBERS, help="Instead of a file: the probabilities of 0, 1, .., k ones among k bits.")
def extendible(path: Path | None, delta: float, law: tuple[float, ...] | None) -> None:
    """The correlation of two tokens of the sequences (rows) in a .npy or .csv file: negative means that no latent
    variable makes them independent.

    Of a law of bits, how far it extends, and how far it is from bits that are independent given a latent variable (X1).
    """  # noqa: D205 - one sentence
    from boundcalc.lab.latent import exchangeability

    if (path is None) == (law is None):
        raise InvalidSetting(
            "give a file of sequences, or --ones with the probabilities of 0, 1, .., k ones among k bits"
        )
    if law is not None:
        refuse_given({"delta": "on a law, which is known"})
        _extend(law)
        return
    assert path is not None  # noqa: S101 - one of the two is given
    validate.fraction("delta", delta, ends=False)
    data = _rows(path)
    found = exchangeability.extendibility(data, 1 - delta)
    click.echo(
        f"correlation of two tokens: {found.correlation:.4g} [{found.low:.4g}, {found.high:.4g}], {len(data)} sequences"
    )
    click.echo(found.warning or "nothing speaks against a latent variable that makes the tokens independent")


def _extend(law: tuple[float, ...]) -> None:
    from boundcalc.base.numbers import FLOAT
    from boundcalc.lab.latent.exchangeability import FARTHEST, largest_extension, mixture_distance
    from boundcalc.statements.latent import finite_mixture_distance

    bits, most = len(law) - 1, largest_extension(law)
    distance = ceiling(mixture_distance(law))
    if most is None:
        click.echo(f"{bits} bits that extend to any number of exchangeable ones: independent given a latent variable")
        click.echo(f"nearest mixture of independent bits on a grid of 401: total variation at most {distance}")
        return
    far = (
        f"{most} exchangeable ones or more, but not to any number"
        if most == FARTHEST
        else f"at most {most} exchangeable ones"
    )
    click.echo(f"{bits} bits that extend to {far}: no latent variable makes them independent")
    bound = ceiling(finite_mixture_distance(FLOAT, bits, most))
    click.echo(f"nearest mixture of independent bits: total variation at most {distance}, by X1 at most {bound}")


@click.command(
    cls=FileCommand,
    short_help="CME, softmax and linear attention over pairs of one's own, with their errors' bounds.",
    epilog="""\b
Examples:
  boundcalc latent attend pairs.csv --kernel rbf --set width=0.5 --ridge 0.1
  boundcalc latent attend pairs.npy --values 2 --queries asked.npy --temperature 0.1
  boundcalc latent attend pairs.csv --value-noise 0.5 --rkhs-norm 2      X3k for each""",
)
@click.argument("pairs", type=_ROWS)
@option("--values", "width", type=WHOLE, default=1, help="Columns of the value, the last ones.")
@option("--queries", type=_ROWS, help="Keys that are asked, a row each (default: those of the pairs).")
@option("--kernel", type=click.Choice(_KERNELS), default="linear", help="Of CME attention.")
@option("--set", "words", multiple=True, metavar="NAME=VALUE", help="A parameter of the kernel (repeatable).")
@option("--ridge", type=NUMBER, default=1.0, help="lam: variance of the noise over that of the prior.")
@taus_option(default="1")
@option("--value-noise", "noise", type=NUMBER, help="Values are within this of their mean; for X3k.")
@option("--rkhs-norm", "norm", type=NUMBER, help="Of the conditional mean in the kernel's space; for X3k.")
@delta_option
@table_option
def attend(pairs: Path, width: int, queries: Path | None, form: str, **options: Any) -> None:
    """Attention's guess of the value at each query, from pairs (key, value), a row each in a .npy or .csv file.

    CME attention is the posterior mean of a Gaussian process with this kernel (X2), deviation its posterior deviation as a
    share of the prior's. X3k bounds the error of all three alike: it asks for weights that depend on keys and query alone.
    """
    if (options["noise"] is None) != (options["norm"] is None):
        raise InvalidSetting("X3k needs both --value-noise and --rkhs-norm")
    refuse_idle({"delta": "norm"})
    data = _rows(pairs)
    if data.ndim != 2 or not 1 <= width < data.shape[-1]:
        needs = f"a key of at least one number and then a value of --values {width}"
        raise InvalidSetting(f"a row needs {needs}; {pairs} has shape {data.shape}")
    keys, values = data[:, :-width], data[:, -width:]
    rows = list(_attended(keys if queries is None else _rows(queries), keys, values, **options))
    columns = [f"value {j + 1}" for j in range(width)] if width > 1 else ["value"]
    headings = ("query", "attention", *columns, "deviation", "|alpha|", "P(q)", "X3k")
    document = [dict(zip(headings, row, strict=True)) for row in rows]
    cells = [(*row[:-1], ceiling(row[-1])) for row in rows]
    note = "|alpha|: size of the weights; P(q): what they leave of the query in the kernel's space"
    if options["norm"] is not None:
        note += (
            f"; X3k: the error is at most this with probability at least 1 - {options['delta']:g}, query by query, where "
            "values are independent given the keys, each within --value-noise of a mean whose norm is at most --rkhs-norm"
        )
    show(form, document, headings, cells, [note])


def _attended(
    queries: Any,
    keys: Any,
    values: Any,
    kernel: str,
    words: tuple[str, ...],
    ridge: float,
    taus: tuple[float, ...],
    noise: float | None,
    norm: float | None,
    delta: float,
) -> Any:
    """A row for each query and attention: the value, the posterior's deviation, and what X3k is made of."""
    import numpy as np

    from boundcalc.cli.setting import numbers, pairs
    from boundcalc.formulas.theorems.attention_bounds import key_bound
    from boundcalc.lab.latent.attention import attend, linear_weights, power_function, softmax_weights
    from boundcalc.lab.latent.kernels import kernel_named
    from boundcalc.lab.latent.premise import least_norm

    given = kernel_named(kernel, **numbers(pairs(words)))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        found = attend(queries, keys, None, lam=ridge, kernel=given)
        prior = given.diagonal(queries)
    if noise is not None and norm is not None:
        for name, size in (("--value-noise", noise), ("--rkhs-norm", norm)):
            validate.positive(name, size, zero=True)
        least = least_norm(keys, values, given, noise)
        if least > norm:
            within = f"within --value-noise {noise:g} of these values"
            if math.isinf(least):
                raise InvalidSetting(
                    f"X3k speaks of no law here: no function in the {kernel} kernel's space is {within}; raise --value-noise"
                )
            raise InvalidSetting(
                f"X3k speaks of no law here: means {within} have a norm of at least {least:.4g} in the {kernel} kernel's "
                f"space, got --rkhs-norm {norm:g}; raise one of the two"
            )
    deviations = np.sqrt(found.variance / np.where(prior > 0, prior, 1.0))
    weights: Mapping[str, Any] = {
        "CME": found.mean,
        **{f"softmax tau={tau:g}": softmax_weights(queries, keys, tau) for tau in taus},
        "linear": linear_weights(queries, keys),
    }
    missed = {name: power_function(queries, keys, alpha, given) for name, alpha in weights.items()}
    for i in range(len(queries)):
        for name, alpha in weights.items():
            size, power = float(np.linalg.norm(alpha[i])), float(missed[name][i])
            bound = None
            if noise is not None and norm is not None:
                above = size * (1 + len(alpha[i]) * sys.float_info.epsilon)
                bound = key_bound(above, power, noise=noise, norm=norm, delta=delta).value
                if math.isinf(bound):
                    given_too_large = f"--value-noise {noise:g} and --rkhs-norm {norm:g}"
                    raise InvalidSetting(f"X3k is beyond the largest float, got {given_too_large}; lower them")
            deviation = float(deviations[i]) if name == "CME" else None
            yield (i + 1, name, *(alpha[i] @ values).tolist(), deviation, size, power, bound)


GIVEN = (posterior, sufficient, extendible, attend)
"""Commands of the group."""
