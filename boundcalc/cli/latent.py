"""`boundcalc latent`: posteriors, bounds and experiments on attention as inference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from boundcalc.cli.files import FileGroup
from boundcalc.cli.idle import refuse_given, refuse_idle
from boundcalc.cli.latent_given import GIVEN
from boundcalc.cli.latent_show import (
    NUMBERS,
    delta_option,
    lengths_option,
    option,
    seed_option,
    show_bounds,
    show_rows,
    table_option,
    taus_option,
)
from boundcalc.cli.latent_trained import TRAINED
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.base.value import Value


@click.group(
    cls=FileGroup,
    name="latent",
    short_help="Attention as inference: posteriors, bounds, experiments.",
    epilog="""\b
Examples:
  boundcalc latent posterior beta-bernoulli
  boundcalc latent bound --L 512 --temperature 0.5
  boundcalc latent attend pairs.csv --kernel rbf --ridge 0.1
  boundcalc latent infer --L 8:4096
  boundcalc latent transfer""",
)
def command() -> None:
    """Latent-variable models, what attention makes of them, and the bounds X1-X6."""


@command.command(
    short_help="Checked bounds of attention as inference, of learning and of transfer.",
    epilog="""\b
Examples:
  boundcalc latent bound --L 512
  boundcalc latent bound --L 1e6 --temperature 0.2 --sphere 4 --source 3 --smoothness 1.5
  boundcalc latent bound --pretext "1,0;0,0.1" --downstream 1,1 --pretext-error 0.01""",
)
@option("--L", "n", type=WHOLE, default=512, help="Key-value pairs a query sees.")
@option("--temperature", "tau", type=NUMBER, default=1.0, help="Scores are divided by it.")
@option("--sphere", type=WHOLE, help="Keys are uniform on the unit sphere of this many dimensions.")
@option(
    "--mean-lipschitz",
    "lipschitz",
    type=NUMBER,
    help="Of the conditional mean on --sphere; softmax attention against it, at the best temperature.",
)
@option("--M", "most", type=NUMBER, default=1.0, help="Largest norm of a value.")
@option("--kappa", type=NUMBER, default=1.0, help="Root of the largest k(x, x).")
@option("--source", type=NUMBER, default=1.0, help="|g| in f* = L_K^r g.")
@option("--smoothness", type=NUMBER, default=1.0, help="r in f* = L_K^r g.")
@option("--reg", type=NUMBER, help="Regularisation lam/L (unset: the best).")
@delta_option
@option("--m", type=WHOLE, help="Also X5: training sequences, for the default Transformer of `boundcalc eval`.")
@option("--C", "knob", type=NUMBER, default=1.0, help="Norm budget of X5.")
@option("--pretext", help="Also X6: matrix M, rows between semicolons.")
@option("--downstream", type=NUMBERS, help="w of X6.")
@option("--pretext-error", type=NUMBER, default=0.01, help="e_pre of X6.")
@option("--spread", type=NUMBER, help="s of X6, for the bound of any head.")
@table_option
def bound(n: int, form: str, **options: Any) -> None:
    """Upper bounds of attention's error over L pairs, of the learning error (--m) and of transfer (--pretext)."""
    refuse_idle(
        {"knob": "m", "downstream": "pretext", "pretext_error": "pretext", "spread": "pretext", "lipschitz": "sphere"}
    )
    found = list(_bounds(n, **options))
    notes = [f"Each with probability at least 1 - delta; boundcalc explain {found[0].name} tells conditions and proof."]
    show_bounds(form, [b.to_json() for b in found], found, notes)


def _bounds(
    n: int,
    tau: float,
    sphere: int | None,
    lipschitz: float | None,
    most: float,
    kappa: float,
    source: float,
    smoothness: float,
    reg: float | None,
    delta: float,
    m: int | None,
    knob: float,
    pretext: str | None,
    downstream: tuple[float, ...] | None,
    pretext_error: float,
    spread: float | None,
) -> Iterable[Value]:
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.formulas.theorems.attention_bounds import cme_bound, conditional_mean_bound, softmax_bound

    law: dict[str, Any] = {"source": source, "smoothness": smoothness, "kappa": kappa, "most": most, "delta": delta}
    yield cme_bound(n, reg=reg, **law)
    if smoothness <= 1:
        yield cme_bound(n, reg=reg, published=True, **law)
    yield softmax_bound(n, tau=tau, most=most, delta=delta)
    if sphere is not None:
        yield softmax_bound(n, tau=tau, most=most, delta=delta, sphere=sphere)
        if lipschitz is not None:
            yield conditional_mean_bound(n, sphere, lipschitz=lipschitz, most=most, delta=delta)
    yield softmax_bound(n, tau=tau, most=most, delta=delta, plain=True)
    if m is not None:
        from boundcalc.lab.latent.learning import learning_bound
        from boundcalc.setting import Setting

        yield learning_bound(Setting.of(seq_len=n, n_train=m, C=knob, delta=delta))
    if (pretext is None) != (downstream is None):
        raise InvalidSetting('X6 needs both --pretext "1,0;0,0.1" and --downstream 1,1')
    if pretext is not None and downstream is not None:
        from boundcalc.lab.latent.transfer import best_head, head_bound, transfer_bound

        matrix = [NUMBERS.convert(row, None, None) for row in pretext.split(";")]
        if len({len(row) for row in matrix}) != 1:
            raise InvalidSetting("the rows of --pretext must be equally long")
        if spread is not None:
            head = best_head(matrix, downstream, pretext_error, spread=spread)
            yield head_bound(matrix, downstream, head, pretext_error, spread=spread)
        else:
            yield transfer_bound(matrix, downstream, pretext_error)


@command.command(
    short_help="Errors of CME and softmax attention over growing inputs, beside their bounds.",
    epilog="""\b
Examples:
  boundcalc latent infer                      L = 8..65536, 200 inputs each
  boundcalc latent infer --L 8:1024 --repetitions 1000 --format csv
  boundcalc latent infer --d 8 --temperature 0.5,0.1""",
)
@lengths_option(default="8:65536", help="Numbers of pairs.")
@option("--repetitions", type=WHOLE, default=200, help="Inputs or runs per place.")
@option("--d", "width", type=WHOLE, default=3, help="Width of a row (a key).")
@option(
    "--value-noise",
    "noise",
    type=NUMBER,
    default=0.5,
    help="Values are within this of their mean; smooth: its deviation.",
)
@taus_option(default="1,0.5,0.2,0.05")
@delta_option
@seed_option
@option(
    "--truth",
    type=click.Choice(("linear", "smooth")),
    default="linear",
    help="The conditional mean: linear in the key, or a draw of the Gaussian process with softmax's own kernel.",
)
@option("--sharpness", type=NUMBER, default=4.0, help="Of the smooth truth: exp(<k, k'>) to it.")
@table_option
def infer(form: str, truth: str, sharpness: float, **options: Any) -> None:
    """Mean errors with intervals, 1 - delta quantiles, bounds, and how often a bound was exceeded.

    With --truth smooth: root mean square errors of CME attention with the exponential and with a linear kernel, and of softmax
    attention at fixed and at best temperature, whose sampling error and bias are told apart.
    """
    if truth == "smooth":
        _smooth(form, sharpness, options)
        return
    refuse_given({"sharpness": "without --truth smooth"})
    from boundcalc.lab.latent.experiments.infer import InferPlan, best_temperatures
    from boundcalc.lab.latent.experiments.infer import infer as run

    result = run(InferPlan(**options))
    columns = {"L": "length", "estimator, error": "name", "mean": "mean.value", "low": "mean.low", "high": "mean.high"}
    columns |= {"quantile": "quantile.value", "bound": "<=bound", "exceeded": "failures.value", "tends to": "limit"}
    notes = [
        f"{name}: error ~ L^{rate} measured, L^{result.bound_rates[name]:.3g} by the bound"
        for name, rate in result.rates.items()
    ]
    best = ", ".join(f"{tau:g} at L={length}" for length, tau in best_temperatures(result).items())
    notes.append(f"nearest to the conditional mean: tau {best}")
    show_rows(form, result.to_json(), result.points, columns, notes)


def _smooth(form: str, sharpness: float, options: Mapping[str, Any]) -> None:
    from boundcalc.lab.latent.experiments.smooth import SmoothPlan, document, smooth

    refuse_given(
        {
            "width": "with --truth smooth: keys are on the circle",
            "delta": "with --truth smooth: no bound is drawn there",
        }
    )
    given = {name: options[name] for name in ("lengths", "repetitions", "noise", "taus", "seed")}
    plan = SmoothPlan(sharpness=sharpness, **given)
    points = smooth(plan)
    columns = {"L": "length", "estimator": "name", "error": "error.value", "low": "error.low", "high": "error.high"}
    columns |= {"sampling error": "sampling.value", "bias": "bias", "tau": "tau", "in theory": "expected"}
    notes = [
        "root mean squares over inputs, with 95% intervals; the best temperature is chosen on half of the inputs and judged on "
        "the others; in theory: the posterior's deviation"
    ]
    show_rows(form, document(plan, points), points, columns, notes)


@command.command(short_help="Downstream error against the diversity of the pretext tasks, beside X6.")
@option("--diversity", "diversities", type=NUMBERS, help="Least singular values of M.")
@option("--latent", type=WHOLE, default=4, help="Dimensions of z.")
@option("--tasks", type=WHOLE, default=6, help="Pretext tasks.")
@option("--L", "length", type=WHOLE, default=32, help="Tokens in a sequence.")
@option("--m", "pretrain", type=WHOLE, default=2000, help="Sequences of pretraining.")
@option("--repetitions", type=WHOLE, default=20, help="Inputs or runs per place.")
@seed_option
@table_option
def transfer(form: str, **options: Any) -> None:
    """Pretext error, condition number, measured downstream error of the induced head, and the bound X6."""
    from boundcalc.lab.latent.experiments.transfer import TransferPlan
    from boundcalc.lab.latent.experiments.transfer import transfer as run

    given = {name: value for name, value in options.items() if value is not None}
    found = run(TransferPlan(**given))
    columns = {
        "diversity": "diversity",
        "kappa": "kappa",
        "pretext error": "pretext.value",
        "head wM+": "induced.value",
    }
    columns |= {"X6": "<=bound", "best head": "best.value", "its X6": "<=best_bound", "fitted head": "fitted.value"}
    columns |= {"above": "violations"}
    reasons = [f"diversity {row.diversity:g}: {row.reason}" for row in found if row.reason]
    show_rows(form, [row.to_json() for row in found], found, columns, reasons)


for _one in (*GIVEN, *TRAINED):
    command.add_command(_one)
