"""Derivations of the bounds on attention as inference, and of transfer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

import sympy
from flint import arb

from boundcalc.base import symbols as s
from boundcalc.base.intervals import INTERVAL
from boundcalc.formulas.derivation.check import norm, on_intervals, random_point, random_vector
from boundcalc.formulas.derivation.step import Relation, Step, Trial, Words, last_step
from boundcalc.formulas.symbolic import inference as form
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.system import Expr
from boundcalc.statements import latent

_SAMPLING = Words(r"\|\hat f-f_\rho\|_{\mathcal H}")
_BIAS = Words(r"\|f_\rho-f^*\|_{\mathcal H}")


def _named(formula: Formula, *names: str) -> tuple[Definition, ...]:
    return tuple(part for part in formula.where if part.symbol.name in names)


# -- X3


def _cme_steps(formula: Formula) -> Step:
    """Sampling and regularisation, added; then the best regularisation, or the pairs that are enough."""
    plain = formula.name == "error"
    bias = form.C_R * s.rho**form.POWER * s.g
    always = s.M / sympy.sqrt(s.rho) + form.LARGEST
    steps = [
        Step(
            "a mean of vectors in Hilbert space",
            ("X0",),
            r"the terms $(v-f_\rho(k))\varphi(k)$, centred, have norm at most $b$ and mean square at most $\kappa^2M^2$",
            Relation(Words(r"\Big|\tfrac1L\sum_iX_i-\mathbb EX\Big|"), "le", form.mean_error()),
            (*_named(formula, "b", "F"), form.ELL_PART),
            trials=(_bennett_below_bernstein,) if plain else (_bennett_below_bernstein, _radius_without_rho),
        ),
        Step(
            "from the mean to the estimate",
            ("X3",),
            r"$\hat f-f_\rho = (L_n+\rho)^{-1}Z$, $Z$ the mean of $X_i-\mathbb E X$, and the inverse has norm at most $1/\rho$"
            + (r"; neither $\hat f$ nor $f_\rho$ is longer than its own bound" if plain else ""),
            Relation(_SAMPLING, "le", sympy.Min(form.SAMPLING / s.rho, always) if plain else form.SAMPLING / s.rho),
            _named(formula, "A"),
            trials=(_inverse,),
        ),
        Step(
            "regularisation",
            ("X3",),
            r"$f_\rho-f^* = \rho(L_K+\rho)^{-1}L_K^r g$, and in RKHS norm $\rho t^a/(t+\rho)$ is at most $c_r\rho^a$",
            Relation(_BIAS, "le", bias),
            _named(formula, "c_r", "a"),
            trials=(_saturation,),
        ),
    ]
    if formula.name == "best_error":
        steps.append(_best_regularisation(formula.expr))
    if formula.name == "input_size":
        steps.append(
            Step(
                "half of the target for either part",
                ("X3",),
                r"$\rho_t$ makes the regularisation half the target; Bernstein's bound is at most $A_t$ as soon as "
                r"$L\ge 2\ell(\kappa^2M^2+bA_t/3)/A_t^2$, because $x+\sqrt{x^2+y}\le A_t$ if and only if "
                r"$y\le A_t^2-2xA_t$",
                Relation(Words("L"), "ge", formula.expr),
                _named(formula, "A_t", "rho_t"),
                trials=(_enough_pairs,),
            )
        )
    trials = (_pairs_are_enough(formula) if formula.name == "input_size" else _checked_is_no_larger(formula),)
    return last_step(formula, steps, trials=trials)


def _best_regularisation(value: Expr) -> Step:
    reg, a = sympy.Symbol("rho", positive=True), form.POWER
    total = form.SAMPLING / reg + form.C_R * reg**a * s.g
    at = (form.SAMPLING / (a * form.C_R * s.g)) ** (1 / (1 + a))

    def reached() -> tuple[Expr, Expr]:
        x, y = sympy.symbols("x y", positive=True)  # A and a c_r |g|
        plain = {form.SAMPLING: x, form.C_R: y / (a * s.g)}
        left = sympy.powsimp(sympy.expand(total.xreplace({reg: at}).xreplace(plain), force=True), force=True)
        return sympy.powsimp(sympy.expand(left), force=True), sympy.powsimp(
            sympy.expand(value.xreplace(plain)), force=True
        )

    def trial(random: Random) -> tuple[arb, arb]:
        x, y, p, z = (arb(10 ** random.uniform(-3, 3)) for _ in range(4))
        p = 1 / (1 + p)
        return (1 + 1 / p) * x ** (p / (1 + p)) * (p * y) ** (1 / (1 + p)), x / z + y * z**p

    return Step(
        "the best regularisation",
        ("X3",),
        r"$A/\rho$ falls and $c_r\rho^a|g|$ rises; the derivative of their sum vanishes at "
        r"$\rho = (A/(ac_r|g|))^{1/(1+a)}$",
        Relation(Words(r"\min_\rho\big\{A/\rho+c_r\rho^a\|g\|\big\}"), "eq", value),
        trials=(trial,),
        identities=(reached,),
    )


def _bennett_below_bernstein(random: Random) -> tuple[arb, arb]:
    """At Bernstein's own tilt, Bennett's form is at most Bernstein's."""
    variance, radius, ell, n = (arb(10 ** random.uniform(*ends)) for ends in ((-2, 2), (-2, 2), (-1, 2), (0, 6)))
    bound = latent.hilbert_bernstein(INTERVAL, variance, radius, ell, n)
    tilt = bound / (variance + radius * bound / 3)
    return latent.hilbert_bennett(INTERVAL, variance, radius, ell, n, tilt), bound


def _radius_without_rho(random: Random) -> tuple[arb, arb]:
    """The radius b with the regularisation in it is at most the one without."""
    rho, r, kappa, most, g = (
        arb(random.uniform(*ends)) for ends in ((1e-3, 9), (0.51, 1.5), (0.1, 3), (0.1, 3), (0.1, 3))
    )
    return latent.cme_summands(INTERVAL, rho, r, kappa, most, g)[1], 2 * kappa * most + kappa ** (2 * r + 1) * g


def _inverse(random: Random) -> tuple[arb, arb]:
    """|(L_n + rho)^(-1) x| <= |x|/rho for a diagonal L_n >= 0."""
    rho = arb(10 ** random.uniform(-3, 1))
    x = random_vector(random, 4)
    y = [value / (arb(random.expovariate(1)) + rho) for value in x]
    return norm(y), norm(x) / rho


def _saturation(random: Random) -> tuple[arb, arb]:
    rho, t, r = arb(10 ** random.uniform(-4, 2)), arb(10 ** random.uniform(-6, 3)), arb(random.uniform(0.51, 1.49))
    a = r - arb(1) / 2
    return rho * t**a / (t + rho), latent.saturation(INTERVAL, r) * rho**a


def _enough_pairs(random: Random) -> tuple[arb, arb]:
    """Bernstein's bound at the number of pairs that is said to be enough."""
    variance, radius, ell, t = (arb(10 ** random.uniform(*ends)) for ends in ((-2, 2), (-2, 2), (-1, 2), (-3, 0)))
    n = 2 * ell * (variance + radius * t / 3) / t**2
    return latent.hilbert_bernstein(INTERVAL, variance, radius, ell, n), t


def _checked_is_no_larger(formula: Formula) -> Trial:
    """What the calculus computes at a random point is at most the formula there."""
    value = on_intervals(formula)

    def trial(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        r, kappa, most, g = (point[name] for name in ("smoothness", "kappa", "M", "g"))
        if "rho" in point:
            regs = [point["rho"]]
        else:  # the least over a grid around anything the optimum may be
            regs = [arb(10) ** (arb(i) / 8) for i in range(-64, 17)]
        ell = (2 / point["delta"]).log()
        left = INTERVAL.minimum(*(latent.cme_error(INTERVAL, point["L"], x, r, kappa, most, g, ell) for x in regs))
        right = value(point)
        return left, right if "rho" in point else right * arb("1.05")  # the grid misses the optimum by a little

    return trial


def _pairs_are_enough(formula: Formula) -> Trial:
    """What the calculus computes at the number of pairs of the formula, and its regularisation, is at most the target."""
    size = on_intervals(formula)
    (reg,) = (on_intervals(Formula("reg", part.expr, formula.where)) for part in _named(formula, "rho_t"))

    def trial(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        rho = reg(point)
        r, kappa, most, g = (point[name] for name in ("smoothness", "kappa", "M", "g"))
        found = latent.cme_error(INTERVAL, size(point), rho, r, kappa, most, g, (2 / point["delta"]).log())
        return found, point["target"]

    return trial


# -- X4


def _softmax_steps(formula: Formula) -> Step:
    """The moments of the weights, the quadratic, and its root; or the plain argument."""
    if formula.name != "error":
        return _plain_steps(formula)
    moments = Step(
        "moments of the weights",
        ("X4",),
        r"weights lie between $W/R$ and $RW$ up to scale, $W = \mathbb Ew$: Kantorovich's inequality, and mass moved to the "
        "largest weight",
        Relation(
            Words(r"\frac{\mathbb Ew^2}{W^2}\le W_2,\quad\frac{\mathbb Ew^2|v-\mu|^2}{W^2}"),
            "le",
            form.SPREAD,
        ),
        _named(formula, "W_2", "U_2", "R"),
        trials=(_second_moment, _spread),
    )
    t = sympy.Symbol("t", positive=True)
    quadratic = Step(
        "numerator and denominator at once",
        ("X0", "X4"),
        r"$\cosh(x|S|)\exp(-xt\sum w)$ is multiplied by at most exp of this per pair, $\psi = 2(e^b-1-b)/b^2\le 1/(1-b/3)$ "
        r"at $b = 2\theta R < 3$; the failure probability is $\delta$ where it is at most $-\ell/L$",
        Relation(
            Words(r"-\theta t+\tfrac{\theta^2}2\big(\psi U_2+2t\sqrt{W_2U_2}+t^2W_2\big)+\tfrac\ell L"),
            "le",
            form.RISE * t**2 - 2 * form.HALF * t + form.CONST,
        ),
        (*_named(formula, "q_0", "q_1", "q_2", "theta"), form.ELL_PART),
        trials=(_psi,),
        identities=(_tilt,),
    )
    root = Step(
        "its lesser root",
        ("X4",),
        r"with $x = \theta\sqrt{W_2U_2}$, $L\ge 8\ell(1+R)^2/R$ says $x\le 1/4$; then $b\le 3/2$ and "
        r"$q_1^2-q_0q_2 = \theta^2((1-x)^2-x^2(1+1/(1-b/3)))/4\ge 0$. For fewer pairs the bound $2M$ of any two means serves",
        Relation(Words("t"), "eq", form.tail_root(form.CONST, form.HALF, form.RISE)),
        _named(formula, "tau_0"),
        trials=(_real_root,),
        identities=(_is_root,),
    )
    return last_step(formula, [moments, quadratic, root], trials=(_sharp_is_no_larger(formula),))


def _plain_steps(formula: Formula) -> Step:
    steps = [
        Step(
            "the numerator",
            ("X0",),
            r"the terms $w(v-\mu)$ are centred and at most $2Me^{1/\tau}$ long",
            Relation(
                Words(r"\Big|\tfrac1L\sum_iw_i(v_i-\mu)\Big|"),
                "le",
                2 * s.M * sympy.sqrt(form.RATIO) * sympy.sqrt(2 * form.ELL / s.L),
            ),
            (*_named(formula, "R"), form.ELL_PART),
            trials=(_below_hoeffding,),
        ),
        Step(
            "the denominator",
            ("X4",),
            r"every weight is at least $e^{-1/\tau}$",
            Relation(Words(r"\tfrac1L\sum_iw_i"), "ge", 1 / sympy.sqrt(form.RATIO)),
        ),
    ]
    if formula.name == "input_size":
        right = 2 * s.M * form.RATIO * sympy.sqrt(2 * form.ELL / formula.expr)
        steps.append(
            Step(
                "solving for the input size",
                ("X4",),
                "their ratio is at most the target from here on",
                Relation(Words("L"), "ge", formula.expr),
                identities=(lambda: (sympy.powdenest(sympy.simplify(right), force=True), s.target),),
            )
        )
    ratio = 2 * s.M * sympy.sqrt(form.RATIO) * sympy.sqrt(2 * form.ELL / s.L) / (1 / sympy.sqrt(form.RATIO))
    return last_step(formula, steps, ratio if formula.name == "plain_error" else None)


def _weights(random: Random, ratio: float, size: int = 5) -> tuple[list[arb], list[arb]]:
    """Probabilities, and weights between 1 and a ratio, at the ends half of the time."""
    p = [random.expovariate(1) for _ in range(size)]
    total = sum(p)
    ends = (1.0, ratio)
    w = [random.choice(ends) if random.random() < 0.5 else random.uniform(*ends) for _ in range(size)]
    return [arb(x) / arb(total) for x in p], [arb(x) for x in w]


def _mean(p: Sequence[arb], x: Sequence[arb]) -> arb:
    return sum((a * b for a, b in zip(p, x, strict=True)), arb(0)) / sum(p, arb(0))


def _second_moment(random: Random) -> tuple[arb, arb]:
    ratio = 10 ** random.uniform(0, 3)
    p, w = _weights(random, ratio)
    return _mean(p, [x**2 for x in w]), latent.softmax_moments(INTERVAL, arb(ratio))[0] * _mean(p, w) ** 2


def _spread(random: Random) -> tuple[arb, arb]:
    ratio = 10 ** random.uniform(0, 3)
    p, w = _weights(random, ratio)
    v = [arb(random.choice((-1.0, 1.0, random.uniform(-1, 1)))) for _ in p]
    whole = _mean(p, w)
    mu = _mean(p, [x * y for x, y in zip(w, v, strict=True)]) / whole
    moved = [x * (y - mu) for x, y in zip(w, v, strict=True)]
    left = _mean(p, [x * x for x in moved])
    return left, latent.softmax_moments(INTERVAL, arb(ratio))[1] * whole**2


def _psi(random: Random) -> tuple[arb, arb]:
    b = arb(random.uniform(0.01, 2.9))
    return 2 * (INTERVAL.expm1(b) - b) / b**2, 1 / (1 - b / 3)


def _tilt() -> tuple[Expr, Expr]:
    """theta^2 U_2/2 is l/L, which makes the constant term (1 + psi) l/L."""
    tilt = sympy.sqrt(2 * form.ELL / (s.L * form.SPREAD))
    return tilt**2 * form.SPREAD / 2, form.ELL / s.L


def _real_root(random: Random) -> tuple[arb, arb]:
    """q_0 q_2 <= q_1^2 where x <= 1/4 and b <= 5.66 x."""
    x = arb(random.uniform(1e-3, 0.25))
    ratio = arb(10 ** random.uniform(0, 4))
    b = 4 * ratio.sqrt() * (2 * ratio - 1).sqrt() / (1 + ratio) * x
    return x**2 * (1 + 1 / (1 - b / 3)), (1 - x) ** 2


def _is_root() -> tuple[Expr, Expr]:
    q_0, q_1, q_2 = form.CONST, form.HALF, form.RISE
    top, bottom = q_0, q_1 + sympy.sqrt(q_1**2 - q_0 * q_2)
    return q_2 * top**2 + q_0 * bottom**2, 2 * q_1 * top * bottom


def _below_hoeffding(random: Random) -> tuple[arb, arb]:
    """The Chernoff bound at its best tilt: exp(-tilt t + tilt^2 b^2/(2n)) at t is delta/2."""
    radius, ell, n = (arb(10 ** random.uniform(*ends)) for ends in ((-2, 2), (-1, 2), (0, 6)))
    t = latent.hilbert_hoeffding(INTERVAL, radius, ell, n)
    tilt = t * n / radius**2
    return ell, tilt * t - tilt**2 * radius**2 / (2 * n) + arb("1e-20") * ell


def _sharp_is_no_larger(formula: Formula) -> Trial:
    """X4 with Bennett's psi, at the same tilt, is at most the formula."""
    value = on_intervals(formula)

    def trial(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        ratio, ell = (2 / point["temperature"]).exp(), (2 / point["delta"]).log()
        sharp = latent.softmax_error(INTERVAL, point["L"], ratio, point["M"], ell)
        always = 2 * point["M"]
        return (INTERVAL.minimum(sharp, always) if sharp.is_finite() else arb(0)), value(point)

    return trial


# -- X6


def _transfer_steps(formula: Formula) -> Step:
    """Minkowski's inequality."""
    left = Words(r"\mathbb E|a\hat y-wh|^2")
    right = (s.head * sympy.sqrt(s.e_pre) + s.missed * s.spread) ** 2
    steps = [
        Step(
            "any head",
            ("X6",),
            r"$a\hat y-wh = a(\hat y-Mh)+(aM-w)h$, and Minkowski's inequality for root mean squares",
            Relation(left, "le", right),
            trials=(_minkowski,),
        )
    ]
    if formula.name == "error":
        steps.append(
            Step(
                "the head $w M^+$",
                ("X6",),
                r"for $w$ in the row space $w M^+ M = w$, so the second term vanishes, and $|a| = \kappa_w$",
                Relation(left, "le", formula.expr),
                identities=(lambda: (sympy.expand(right.subs({s.missed: 0, s.head: s.kappa_w})), formula.expr),),
            )
        )
    value = on_intervals(formula)

    def same(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        names = ("kappa_w", "e_pre") if "kappa_w" in point else ("head", "e_pre", "missed", "spread")
        given = [point[name] for name in names]
        found = latent.transfer_error(INTERVAL, *given)
        return abs(value(point) - found), found * arb("1e-12")

    return last_step(formula, steps, trials=(same,))


def _minkowski(random: Random) -> tuple[arb, arb]:
    """Both sides over a few equally likely points, with two tasks and two latent coordinates."""
    points = range(4)
    h, error = ([random_vector(random, 2) for _ in points] for _ in range(2))
    matrix = [random_vector(random, 2) for _ in range(2)]
    a, w = (random_vector(random, 2) for _ in range(2))
    gap = [sum((a[i] * matrix[i][j] for i in range(2)), arb(0)) - w[j] for j in range(2)]

    def dot(x: Sequence[arb], y: Sequence[arb]) -> arb:
        return sum((u * v for u, v in zip(x, y, strict=True)), arb(0))

    left = sum(((dot(a, error[i]) + dot(gap, h[i])) ** 2 for i in points), arb(0)) / 4
    pretext = sum((norm(error[i]) ** 2 for i in points), arb(0)) / 4
    spread = (sum((norm(h[i]) ** 2 for i in points), arb(0)) / 4).sqrt()  # at least the root of the top eigenvalue
    return left, latent.transfer_error(INTERVAL, norm(a), pretext, norm(gap), spread)


STEPS: Mapping[str, Callable[[Formula], Step]] = {"X3": _cme_steps, "X4": _softmax_steps, "X6": _transfer_steps}
