"""`posterior-contraction`: the law of the latent variable given more and more tokens."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import FILLS, look

_DEFAULT_VALUES = tuple(2.0**i for i in range(13))
_REPETITIONS = 400
_SHOWN = (0, 8, 64, 512)
"""Lengths whose posterior density is drawn."""
_BIT = 0.3
"""The share of ones in the sequence whose posteriors are drawn."""
_GRID = 400
_MOST = 10**7
_NAMES = {"first": "Beta-Bernoulli", "second": "Gaussian linear"}


def collect(spec: Spec) -> FigureData:
    """Posteriors of one sequence of bits; over many sequences, the posterior deviation and the error actually made."""
    import numpy as np

    from boundcalc.lab.latent.experiments.statistics import mean_interval
    from boundcalc.lab.latent.models import BetaBernoulli, GaussianLinear

    lengths = [round(value) for value in spec.values or _DEFAULT_VALUES]
    repetitions = spec.repetitions or _REPETITIONS
    if max(lengths) * repetitions > _MOST:
        raise InvalidSetting(
            f"posterior-contraction draws L x repetitions tokens, at most {_MOST:.0e}: take fewer of either"
        )
    series = _densities()
    models = {"first": BetaBernoulli(1.0, 1.0), "second": GaussianLinear(width=3)}
    rates: dict[str, float] = {}
    for index, (key, model) in enumerate(models.items()):
        rng = np.random.default_rng([index, repetitions])
        truth, tokens = model.draw(rng, max(lengths), repetitions)
        own: list[float] = []
        rows: list[tuple[float, float, float]] = []
        for length in lengths:
            squares, variances = [], []
            for z, x in zip(truth, tokens, strict=True):
                mean, variance = _moments(key, model.posterior(x[:length]))
                latent = np.asarray(z).reshape(-1)[: mean.size]
                squares.append(float(np.square(mean - latent).mean()))
                variances.append(variance)
            own.append(math.sqrt(sum(variances) / len(variances)))
            found = mean_interval(squares)
            rows.append((math.sqrt(found.value), math.sqrt(max(0.0, found.low)), math.sqrt(found.high)))
        x = tuple(map(float, lengths))
        y, low, high = (tuple(column) for column in zip(*rows, strict=True))
        name = _NAMES[key]
        series.append(Series(key, f"{name}, posterior deviation", "reference", "deviation", x, tuple(own), panel="L"))
        count = (repetitions,) * len(x)
        error = Series(
            key, f"{name}, error of the mean, 95%", "measured", "deviation", x, y, (), low, high, count, panel="L"
        )
        series.append(error)
        late = [(math.log(a), math.log(b)) for a, b in zip(x, own, strict=True) if a >= 64]
        if len(late) > 1:
            rates[key] = (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0])
    return FigureData(tuple(series), {"rates": rates, "repetitions": repetitions, "bit": _BIT})


def _densities() -> list[Series]:
    import numpy as np

    from boundcalc.lab.latent.models import BetaBernoulli

    model = BetaBernoulli(1.0, 1.0)
    z = np.arange(1, _GRID) / _GRID
    tokens = (np.random.default_rng(0).random(max(_SHOWN)) < _BIT).astype(np.int64)
    found: list[Series] = []
    for i, length in enumerate(_SHOWN):
        alpha = model.posterior(tokens[:length])
        values = np.exp(alpha.log_density(np.stack([1 - z, z], axis=-1)))
        label = "prior" if length == 0 else f"posterior, L = {length}"
        found.append(
            Series(f"{length}", label, "reference", "density", tuple(z), tuple(map(float, values)), panel=f"density{i}")
        )
    return found


def _moments(key: str, posterior: Any) -> tuple[Any, float]:
    """Mean, and mean variance per coordinate."""
    import numpy as np

    if key == "first":
        return np.asarray(posterior.mean)[-1:], float(np.asarray(posterior.variance)[-1])
    return np.asarray(posterior.mean).reshape(-1), float(np.trace(posterior.covariance)) / len(posterior.covariance)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, densities that contract; right, their deviation and the error of their means, over L."""
    width = spec.size or "wide"
    figure = canvas.new_figure(width, canvas.ratio_for(2, width, 0.8))
    left, right = canvas.panels(figure, 2, width)
    styles = ((0, (1, 1.2)), (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), "-")
    for i, one in enumerate(data.of(quantity="density")):
        line = left.plot(one.x, canvas.known(one.y), color=FILLS[i % len(FILLS)], lw=1.3, ls=styles[i % 4])[0]
        line.set(label=canvas.legend_label(one), gid=canvas.gid(one))
    left.axvline(data.facts["bit"], color="#666666", lw=0.8, label="true z (reference)", gid="truth", zorder=1)
    left.set(xlabel="z, the probability of a 1", ylabel="density", xlim=(0, 1), ylim=(0, None))
    shown = data.of(panel="L")
    canvas.refuse_mixture(shown)
    heights = canvas.Heights()
    for one in shown:
        if one.kind == "measured":
            canvas.draw_measured(right, one, heights, look(one.key))
        else:
            line = right.plot(one.x, canvas.known(one.y), color=look(one.key).colour, lw=1.1)[0]
            line.set(label=canvas.legend_label(one), gid=canvas.gid(one))
    right.set(yscale="log", xlabel="L, tokens seen", ylabel="root mean square")
    canvas.plain_lengths(right, [x for s in shown for x in s.x])
    if spec.title:
        figure.suptitle(spec.title, fontsize=7.5)
    canvas.legend(figure)
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
        for seen, own in zip(by_key[key, "measured"].y, by_key[key, "reference"].y, strict=True)
    ]
    return max(found)
