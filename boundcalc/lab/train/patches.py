"""Masked patches of images, one attention model frozen after them, and the digits it was never asked for.

scikit-learn's 8 x 8 digits are cut into 16 patches, and k-means makes words of these. Of a chequered half of the patches a
network reads pairs (place, word); it learns to tell the word at any place of the other half. Frozen, its answers at n of
the hidden places are the features of the digit. M (places x words by digits) holds the law of each hidden word given
the digit, estimated from labelled images; the head w M^+ asks for one digit less another, and kappa = |w M^+|.

A bound of its error needs answers M h, h = P(digit | X): words that are independent once the digit is known. So there is a
second law, `redrawn`: the digit first, then every word by itself from the law M of its place. There h is known. On the images
themselves h is what would hold if their patches were independent, and what is called a bound an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import Interval, mean_interval
from boundcalc.lab.latent.transfer import condition, transfer_bound
from boundcalc.lab.train.model import Transformer, read_only
from boundcalc.lab.train.parameters import Init
from boundcalc.lab.train.pretext import error_limit
from boundcalc.setting import Architecture, validate

_Array = NDArray[Any]
Law = Literal["redrawn", "images"]
LAWS: tuple[Law, ...] = ("redrawn", "images")
DIGITS = 10
_SIDE = 4
"""Patches in a row of an image."""
_PLACES = np.arange(_SIDE**2)
SHOWN = _PLACES[(_PLACES // _SIDE + _PLACES) % 2 == 0]
HIDDEN = _PLACES[(_PLACES // _SIDE + _PLACES) % 2 == 1]
_UNLABELLED, _LABELLED = 897, 500
"""Images for words and masks, and for M and fitted heads; the other 400 are for tests."""
_PAIRS = [(a, b) for a in range(DIGITS) for b in range(a)]
_AT_ONCE = 8192


@dataclass(frozen=True)
class PatchPlan:
    """What is run.

    Attributes:
        asked: at how many of the 8 hidden places the frozen network is asked.
        labels: m, for fitted heads.
        words: V.
        seeds: networks of each law, each on a split and words of its own.
        steps: of pretraining.
        batch: of a step.
        rate: of learning.
        d: width.
        fresh: images of the redrawn law that errors are measured on; as many others bound the pretext error.
        delta: failure probability of a bound.
    """

    asked: tuple[int, ...] = (3, 4, 5, 6, 8)
    labels: tuple[int, ...] = (20, 100, 500)
    words: int = 8
    seeds: int = 4
    steps: int = 1200
    batch: int = 256
    rate: float = 3e-3
    d: int = 64
    fresh: int = 4000
    delta: float = 0.05

    def __post_init__(self) -> None:
        for name, least in (("words", 2), ("seeds", 2), ("steps", 1), ("d", 2), ("fresh", 100)):
            validate.size(name, getattr(self, name), least=least)
        validate.fraction("delta", self.delta, ends=False)
        for name, several in (("asked", self.asked), ("m", self.labels)):
            if len(set(several)) < len(several) or not several:
                raise InvalidSetting(f"{name} must be different numbers, at least one, got {several}")
        for places in self.asked:
            validate.size("asked", places)
            if places > len(HIDDEN):
                raise InvalidSetting(f"{len(HIDDEN)} places are hidden, got asked = {places}: ask at these or fewer")
            if places * (self.words - 1) + 1 < DIGITS:  # a law sums to 1, so that M has no higher rank
                raise InvalidSetting(
                    f"{places} places of {self.words} words cannot tell {DIGITS} digits: asked * (V - 1) must be at least "
                    f"{DIGITS - 1}"
                )
        for m in self.labels:
            validate.size("m", m, least=10)
            if m > _LABELLED:
                raise InvalidSetting(
                    f"{_LABELLED} images have labels to fit heads to, got m = {m}: ask for so many or fewer"
                )

    @property
    def architecture(self) -> Architecture:
        """Reads a question (which hidden place) and the pairs of place and word that are shown, in any order."""
        return Architecture(
            style="post",
            residual=True,
            seq_len=len(SHOWN) + 1,
            d=self.d,
            heads=2,
            d_head=self.d // 2,
            depth=1,
            vocabulary=len(SHOWN) * self.words + len(HIDDEN),
            classes=self.words,
        )


@dataclass(frozen=True)
class Row(Numbers):
    """Networks of one law, asked at some places. What is multiplied is averaged in logarithms: kappa differs much by split.

    Attributes:
        law: "redrawn" or "images".
        kind: of the limit: "bound", or "estimate" on the images.
        asked: places.
        kappa: root mean square of |w M^+| over the pairs of digits.
        pretext: E|yhat - M h|^2, with a 95% interval over networks, as all below.
        limit: upper limits of it, each with probability 1 - delta.
        induced: E(w M^+ yhat - w h)^2 over pairs, as a share of Var(w h).
        bound: what the limit of the pretext error carries over, as a share of the same.
        exceeded: pairs and networks whose measured error lies above it.
        without: errors of the ten digits by the head M^+, a mean like those that follow.
        fitted: the same of heads fitted to m labels on the frozen answers.
        untrained: likewise on the answers of the network before training.
        raw: likewise on the words that are shown.
        known: the same of h itself.
    """

    law: Law
    kind: str
    asked: int
    kappa: float
    pretext: Interval
    limit: float
    induced: Interval
    bound: float
    exceeded: int
    without: Interval
    fitted: Mapping[int, Interval]
    untrained: Mapping[int, Interval]
    raw: Mapping[int, Interval]
    known: Interval


@dataclass(frozen=True)
class Images:
    """Words at the 16 places of images, and their digits."""

    words: _Array
    digits: _Array


@dataclass(frozen=True)
class World:
    """Images of one law in three parts, and the law of words given the digit: shares[digit], table[place, word, digit]."""

    unlabelled: Images
    labelled: Images
    test: Images
    shares: _Array
    table: _Array

    def pretext(self, places: _Array) -> _Array:
        """M: rows are the words of these hidden places."""
        return self.table[places].reshape(-1, DIGITS)

    def posterior(self, words: _Array) -> _Array:
        """P(digit | shown words) where words are independent given the digit."""
        logs = np.log(self.shares) + np.log(self.table)[SHOWN, words[:, SHOWN]].sum(1)
        found = np.exp(logs - logs.max(1, keepdims=True))
        return found / found.sum(1, keepdims=True)

    def drawn(self, rng: np.random.Generator, n: int) -> Images:
        """Images whose words are independent given the digit."""
        digits = rng.choice(DIGITS, n, p=self.shares)
        upto = np.cumsum(self.table, axis=1)[:, :, digits]
        words = (rng.uniform(size=(len(self.table), 1, n)) > upto[:, :-1]).sum(1).T
        return Images(words, digits)


def photographed(plan: PatchPlan, seed: int) -> World:
    """The digits as they are, split at random; words from the unlabelled part, M from the labelled one."""
    from scipy.cluster.vq import kmeans2, vq

    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise InvalidSetting(
            "the digits come with scikit-learn, which is not installed: pip install scikit-learn"
        ) from None

    found: Any = load_digits()
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(found.target))
    side = found.images.shape[1] // _SIDE
    patches = (found.images / 16).reshape(-1, _SIDE, side, _SIDE, side).swapaxes(2, 3)
    patches = patches.reshape(len(order), _SIDE**2, side**2)[order]
    centres = kmeans2(patches[:_UNLABELLED].reshape(-1, side**2), plan.words, minit="++", rng=rng)[0]
    words = vq(patches.reshape(-1, side**2), centres)[0].astype(np.int64).reshape(len(order), -1)
    cuts = [_UNLABELLED, _UNLABELLED + _LABELLED]
    parts = [
        Images(some, digits)
        for some, digits in zip(np.split(words, cuts), np.split(found.target[order], cuts), strict=True)
    ]
    told = np.eye(DIGITS)[parts[1].digits]
    counts = np.einsum("npv,nc->pvc", np.eye(plan.words)[parts[1].words], told)
    table = (counts + 0.5) / (counts + 0.5).sum(1, keepdims=True)  # no word is impossible
    shares = told.mean(0)
    return World(parts[0], parts[1], parts[2], shares, table)


def redrawn(world: World, plan: PatchPlan, seed: int) -> World:
    """The same law of words, but independent given the digit; nothing is drawn twice."""
    rng = np.random.default_rng([seed, 2])
    learned = world.drawn(rng, max(plan.fresh, plan.steps * plan.batch))
    return replace(world, unlabelled=learned, labelled=world.drawn(rng, _LABELLED), test=world.drawn(rng, plan.fresh))


def patches(plan: PatchPlan) -> list[Row]:
    """Both laws, at every number of places asked."""
    found: dict[tuple[Law, int], list[dict[str, Any]]] = {}
    for seed in range(plan.seeds):
        images = photographed(plan, seed)
        for law, world in zip(LAWS, (redrawn(images, plan, seed), images), strict=True):
            before, after = pretrained(plan, world, seed)
            for places, one in _measured(plan, law, world, before, after, seed):
                found.setdefault((law, places), []).append(one)
    return [_joined(law, places, several) for (law, places), several in found.items()]


def pretrained(plan: PatchPlan, world: World, seed: int) -> tuple[Transformer, Transformer]:
    """A network before and after it learned from masks; no digit is read here."""
    before, model = (Transformer(plan.architecture, Init(), torch.Generator().manual_seed(seed)) for _ in range(2))
    rule = torch.optim.AdamW(model.parameters(), lr=plan.rate, weight_decay=0.1)
    fall = torch.optim.lr_scheduler.LambdaLR(
        rule, lambda step: min(1.0, (step + 1) / 50) * max(0.0, 1 - step / plan.steps)
    )
    rng = np.random.default_rng([seed, 3])
    n = len(world.unlabelled.words)
    for step in range(plan.steps):
        if n >= plan.steps * plan.batch:
            chosen = world.unlabelled.words[step * plan.batch : (step + 1) * plan.batch]
        else:
            chosen = world.unlabelled.words[rng.integers(0, n, plan.batch)]
        asked = rng.integers(0, len(HIDDEN), len(chosen))
        answers = chosen[np.arange(len(chosen)), HIDDEN[asked]]
        logits = read_only(plan.architecture, model.weights, torch.from_numpy(tokens(plan, chosen, asked)))
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(answers))
        rule.zero_grad()
        loss.backward()
        rule.step()
        fall.step()
    return before, model


def tokens(plan: PatchPlan, words: _Array, asked: _Array) -> _Array:
    """The question, then pairs of place and word."""
    pairs = np.arange(len(SHOWN)) * plan.words + words[:, SHOWN]
    return np.concatenate([len(SHOWN) * plan.words + asked[:, None], pairs], axis=1).astype(np.int64)


@torch.no_grad()
def answers(plan: PatchPlan, model: Transformer, words: _Array) -> _Array:
    """Laws of the word at each hidden place: (images, places, words)."""
    every = np.tile(np.arange(len(HIDDEN)), len(words))
    read = torch.from_numpy(tokens(plan, np.repeat(words, len(HIDDEN), axis=0), every))
    logits = [read_only(plan.architecture, model.weights, part) for part in read.split(_AT_ONCE)]
    return torch.softmax(torch.cat(logits).double(), -1).numpy().reshape(len(words), len(HIDDEN), plan.words)


def pair(a: int, b: int) -> _Array:
    """The direction w of length 1 that asks for one digit less another."""
    w = np.zeros(DIGITS)
    w[a], w[b] = 0.5**0.5, -(0.5**0.5)
    return w


def _measured(
    plan: PatchPlan, law: Law, world: World, before: Transformer, after: Transformer, seed: int
) -> list[tuple[int, dict[str, Any]]]:
    rng = np.random.default_rng([seed, 4])
    order = rng.permutation(len(HIDDEN))
    fresh = world.drawn(rng, plan.fresh) if law == "redrawn" else world.test
    chosen = rng.permutation(len(world.labelled.digits))
    sets = {
        "fitted": [answers(plan, after, part.words) for part in (world.labelled, world.test)],
        "untrained": [answers(plan, before, part.words) for part in (world.labelled, world.test)],
        "raw": [np.eye(plan.words)[part.words[:, SHOWN]] for part in (world.labelled, world.test)],
    }
    seen, limiting = sets["fitted"][1], answers(plan, after, fresh.words)
    h, other = world.posterior(world.test.words), world.posterior(fresh.words)
    out: list[tuple[int, dict[str, Any]]] = []
    for n in plan.asked:
        places = np.sort(order[:n])
        m = world.pretext(HIDDEN[places])
        yhat = seen[:, places].reshape(len(seen), -1)
        square = np.square(limiting[:, places].reshape(len(limiting), -1) - other @ m.T).sum(1)
        limit = n * error_limit(square / n, plan.delta)  # each place has at most what one law has
        tasks = [_task(law, m, pair(a, b), limit, yhat, h) for a, b in _PAIRS]
        kappas, errors, bounds, nothing = np.array(tasks).T
        heads = np.linalg.pinv(m)
        one: dict[str, Any] = {
            "kappa": float(np.sqrt(np.square(kappas).mean())),
            "pretext": float(np.square(yhat - h @ m.T).sum(1).mean()),
            "limit": limit,
            "induced": float(errors.sum() / nothing.sum()),
            "bound": float(bounds.sum() / nothing.sum()),
            "exceeded": int((errors > bounds).sum()),
            "without": float(((yhat @ heads.T).argmax(1) != world.test.digits).mean()),
            "known": float((h.argmax(1) != world.test.digits).mean()),
        }
        for name, (fit, judged) in sets.items():
            at = slice(None) if name == "raw" else places
            one[name] = {
                k: fitted_error(
                    fit[chosen[:k]][:, at], world.labelled.digits[chosen[:k]], judged[:, at], world.test.digits
                )
                for k in plan.labels
            }
        out.append((n, one))
    return out


def _task(law: Law, m: _Array, w: _Array, limit: float, yhat: _Array, h: _Array) -> tuple[float, ...]:
    """(kappa, error of the head w M^+, its bound, error of the best constant)."""
    found = condition(m, w)
    bound = transfer_bound(m, w, limit, measured=law == "images")
    return found.kappa, float(np.square(yhat @ found.head - h @ w).mean()), bound.value, float((h @ w).var())


def fitted_error(fit: _Array, digits: _Array, judged: _Array, truth: _Array) -> float:
    """Error of ridge regression to the ten digits, its penalty by generalised cross-validation on the fitted images."""
    fit, judged = fit.reshape(len(fit), -1), judged.reshape(len(judged), -1)
    centre, told = fit.mean(0), np.eye(DIGITS)[digits]
    u, sigma, vt = np.linalg.svd(fit - centre, full_matrices=False)
    goal = u.T @ (told - told.mean(0))
    scores: list[float] = []
    heads: list[_Array] = []
    for penalty in sigma[0] ** 2 * 10.0 ** np.arange(-8, 1.0, 0.5):
        kept = sigma**2 / (sigma**2 + penalty)
        left = np.square(told - told.mean(0) - u @ (kept[:, None] * goal)).sum()
        scores.append(float(left / max(len(fit) - 1 - kept.sum(), 1e-9) ** 2))
        heads.append(vt.T @ ((sigma / (sigma**2 + penalty))[:, None] * goal))
    said = (judged - centre) @ heads[int(np.argmin(scores))] + told.mean(0)
    return float((said.argmax(1) != truth).mean())


def _joined(law: Law, asked: int, several: list[dict[str, Any]]) -> Row:
    def over(name: str) -> Interval:
        return mean_interval([one[name] for one in several])

    def each(name: str) -> dict[int, Interval]:
        return {m: mean_interval([one[name][m] for one in several]) for m in several[0][name]}

    def factor(name: str) -> Interval:
        found = mean_interval([math.log(one[name]) for one in several])
        return Interval(*(math.exp(end) for end in found))

    return Row(
        law=law,
        kind="estimate" if law == "images" else "bound",
        asked=asked,
        kappa=factor("kappa").value,
        pretext=factor("pretext"),
        limit=factor("limit").value,
        induced=factor("induced"),
        bound=factor("bound").value,
        exceeded=sum(one["exceeded"] for one in several),
        without=over("without"),
        fitted=each("fitted"),
        untrained=each("untrained"),
        raw=each("raw"),
        known=over("known"),
    )
