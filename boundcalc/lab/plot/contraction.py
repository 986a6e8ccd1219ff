"""`posterior-contraction`: the law of the latent variable given more and more tokens."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import look

_DEFAULT_VALUES = tuple(2**i for i in range(13))
_REPETITIONS = 400
_BIT = 0.3
"""The share of ones in the sequences whose posteriors are drawn."""
SEQUENCES = 3
MOST_SHOWN = 1024
_MOST = 10**7
_NAMES = {"first": "Beta-Bernoulli", "second": "Gaussian linear"}


def collect(spec: Spec) -> FigureData:
    """Posteriors of one sequence of bits; over many sequences, the posterior deviation and the error actually made."""
    import numpy as np

    from boundcalc.lab.latent.experiments.statistics import mean_interval
    from boundcalc.lab.latent.models import BetaBernoulli, GaussianLinear

    lengths = spec.whole or _DEFAULT_VALUES
    repetitions = spec.repetitions or _REPETITIONS
    if max(lengths) * repetitions > _MOST:
        raise InvalidSetting(
            f"posterior-contraction draws L x repetitions tokens, at most {_MOST:.0e}: take fewer of either"
        )
    series = _sequences()
    models = {"first": BetaBernoulli(1.0, 1.0), "second": GaussianLinear(width=3)}
    rates: dict[str, float] = {}
    for index, (key, model) in enumerate(models.items()):
        rng = np.random.default_rng([index, repetitions])
        truth, tokens = model.draw(rng, max(lengths), repetitions)
        own: list[float] = []
        errors: list[tuple[float, ...]] = []
        for length in lengths:
            squares, variances = [], []
            for z, x in zip(truth, tokens, strict=True):
                mean, variance = _moments(key, model.posterior(x[:length]))
                latent = np.asarray(z).reshape(-1)[: mean.size]
                squares.append(float(np.square(mean - latent).mean()))
                variances.append(variance)
            own.append(math.sqrt(sum(variances) / len(variances)))
            errors.append(tuple(math.sqrt(max(0.0, end)) for end in mean_interval(squares)))
        x = tuple(map(float, lengths))
        name = _NAMES[key]
        series.append(Series(key, name, "computed", "deviation", x, tuple(own), panel="L"))
        rows = [(length, error, repetitions) for length, error in zip(lengths, errors, strict=True)]
        series.append(Series.measured(key, name, "deviation", rows, panel="L"))
        late = [(math.log(a), math.log(b)) for a, b in zip(x, own, strict=True) if a >= 64]
        if len(late) > 1:
            rates[key] = (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0])
    return FigureData(tuple(series), {"rates": rates, "repetitions": repetitions, "bit": _BIT})


def _sequences() -> list[Series]:
    """Posterior means of some sequences as they grow, with the middle 80% of each posterior."""
    import numpy as np

    from boundcalc.lab.latent.models import BetaBernoulli

    model = BetaBernoulli(1.0, 1.0)
    lengths = [2**i for i in range(MOST_SHOWN.bit_length())]
    found: list[Series] = []
    for seed in range(SEQUENCES):
        tokens = (np.random.default_rng(seed).random(MOST_SHOWN) < _BIT).astype(np.int64)
        rows: list[tuple[float, float, float]] = []
        for length in lengths:
            ones = int(tokens[:length].sum())
            middle = float(np.asarray(model.posterior(tokens[:length]).mean)[-1])
            rows.append((middle, *_middle(1 + ones, 1 + length - ones)))
        y, low, high = zip(*rows, strict=True)
        key = ("third", "fourth", "fifth")[seed]
        x = tuple(map(float, lengths))
        found.append(Series(key, f"sequence {seed + 1}", "computed", "latent", x, y, (), low, high, panel="z"))
    return found


def _middle(a: float, b: float) -> tuple[float, float]:
    """The tenth and the ninetieth percentile of Beta(a, b)."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, 0.1)), float(betaincinv(a, b, 0.9))


def _moments(key: str, posterior: Any) -> tuple[Any, float]:
    """Mean, and mean variance per coordinate."""
    import numpy as np

    if key == "first":
        return np.asarray(posterior.mean)[-1:], float(np.asarray(posterior.variance)[-1])
    return np.asarray(posterior.mean).reshape(-1), float(np.trace(posterior.covariance)) / len(posterior.covariance)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, posteriors of some sequences close in on what drew them; right, their deviation and the error they make."""
    figure, (left, right) = canvas.sheet(spec, 2, 0.75)
    sequences = data.of(panel="z")
    for one in sequences:
        colour = look(one.key).colour
        left.fill_between(one.x, canvas.known(one.low), canvas.known(one.high), color=colour, alpha=0.18, lw=0)
        canvas.draw_plain(left, one, canvas.Heights(), colour, width=1.2)
    left.axhline(data.facts["bit"], color="#111111", lw=0.9, ls=(0, (4, 2)), label="true z (reference)", gid="truth")
    left.set(xlabel="L, tokens seen", ylabel="z, the probability of a 1", ylim=(0, 1))
    canvas.plain_lengths(left, [x for s in sequences for x in s.x])
    canvas.draw_all(right, data.of(panel="L"), canvas.Heights(), joined=True)
    right.set(yscale="log", xlabel="L, tokens seen", ylabel="root mean square")
    canvas.plain_lengths(right, [x for s in data.of(panel="L") for x in s.x])
    about = f"left: mean and middle 80% of the posterior, Beta-Bernoulli, true z = {data.facts['bit']:g}"
    about += f" · right: {data.facts['repetitions']} sequences a model"
    words = {"computed": "posterior (computed)", "measured": "error of its mean, measured, 95% interval"}
    finish(figure, about, title=spec.title, words=words)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """How fast posteriors contract, and that they are honest about it."""
    rates = ", ".join(f"L^{rate:.2f} ({_NAMES[key]})" for key, rate in data.facts["rates"].items())
    far = _largest_difference(data)
    return (
        f"The posterior of z narrows like {rates} from L = 64 on. Over {data.facts['repetitions']} sequences per model, "
        f"the error that its mean makes is its own deviation to within {100 * far:.0f}% at every L: "
        "a long input leaves next to nothing but its posterior mean to know."
    )


def _largest_difference(data: FigureData) -> float:
    by_key = {(s.key, s.kind): s for s in data.of(panel="L")}
    found = [
        abs((seen or 0) / (own or 1) - 1)
        for key in _NAMES
        for seen, own in zip(by_key[key, "measured"].y, by_key[key, "computed"].y, strict=True)
    ]
    return max(found)
