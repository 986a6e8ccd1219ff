"""Masked patches of images: one attention model frozen after them, and the digits, which it was not trained for (X6).

scikit-learn's 8 x 8 digits are cut into 16 patches, and k-means makes words of these. Of a chequered half of the
patches a network reads pairs (place, word); it learns to tell the word at any place of the other half. Frozen, its
answers at n of the hidden places are the features of the digit. M (places x words by digits) is the law of each hidden
word given the digit, estimated from labelled images; the head w M^+ asks for one digit less another, and kappa = |w
M^+|.

X6 needs answers M h, h = P(digit | X): words that are independent once the digit is known. So there is a second law,
"redrawn": the digit first, then every word by itself from the law M of its place. There h is known and X6 a bound. On
the images h is naive Bayes', and X6 an estimate. Computed: X6. Measured: the error of the head. Both as shares of the
best constant's error, over all pairs of digits, geometric means over networks.

    python examples/zhang2022/patches.py        (a minute; needs scikit-learn)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from common import Array, Values, mean_interval, run
from pretrain import error_limit
from scipy.cluster.vq import kmeans2, vq

from boundcalc.lab.latent.transfer import condition, transfer_bound
from boundcalc.lab.train.model import draw_weights, forward_last_row
from boundcalc.lab.train.parameters import Init
from boundcalc.setting import Architecture

QUICK: dict[str, Any] = {"places": (3, 8), "labels": (20, 400), "seeds": 2, "steps": 200, "d": 16, "fresh": 600}
DIGITS, WORDS, BATCH = 10, 8, 256
Network = Callable[[torch.Tensor], torch.Tensor]
_PLACES = np.arange(16)
SHOWN = _PLACES[(_PLACES // 4 + _PLACES) % 2 == 0]
HIDDEN = _PLACES[(_PLACES // 4 + _PLACES) % 2 == 1]
_UNLABELLED, _LABELLED = 897, 500
"""Images for words and masks, and for M and fitted heads; the other 400 are for tests."""


@dataclass(frozen=True)
class Images:
    """Words at the 16 places of images, and their digits."""

    words: Array
    digits: Array


@dataclass(frozen=True)
class World:
    """Images of one law in three parts, and the law of words: shares[digit], table[place, word, digit]."""

    unlabelled: Images
    labelled: Images
    test: Images
    shares: Array
    table: Array

    def posterior(self, words: Array) -> Array:
        """P(digit | shown words) where words are independent given the digit."""
        logs = np.log(self.shares) + np.log(self.table)[SHOWN, words[:, SHOWN]].sum(1)
        odds = np.exp(logs - logs.max(1, keepdims=True))
        return odds / odds.sum(1, keepdims=True)

    def drawn(self, rng: np.random.Generator, n: int) -> Images:
        """Images whose words are independent given the digit."""
        digits = rng.choice(DIGITS, n, p=self.shares)
        upto = np.cumsum(self.table, axis=1)[:, :, digits]
        words = (rng.uniform(size=(len(self.table), 1, n)) > upto[:, :-1]).sum(1).T
        return Images(words, digits)

    def redrawn(self, seed: int, steps: int, fresh: int) -> World:
        """The same law of words, but independent given the digit; no training image is drawn twice."""
        rng = np.random.default_rng([seed, 2])
        many = self.drawn(rng, max(fresh, steps * BATCH))
        return replace(self, unlabelled=many, labelled=self.drawn(rng, _LABELLED), test=self.drawn(rng, fresh))


def photographed(seed: int) -> World:
    """The digits as they are, split at random; words from the unlabelled part, M from the labelled one."""
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(digits.target))
    cut = (digits.images / 16).reshape(-1, 4, 2, 4, 2).swapaxes(2, 3).reshape(-1, 16, 4)[order]
    centres = kmeans2(cut[:_UNLABELLED].reshape(-1, 4), WORDS, minit="++", rng=rng)[0]
    words = vq(cut.reshape(-1, 4), centres)[0].astype(np.int64).reshape(len(order), -1)
    cuts = [_UNLABELLED, _UNLABELLED + _LABELLED]
    unlabelled, labelled, test = (
        Images(*part) for part in zip(np.split(words, cuts), np.split(digits.target[order], cuts), strict=True)
    )
    one_hot = np.eye(DIGITS)[labelled.digits]
    counts = np.einsum("npv,nc->pvc", np.eye(WORDS)[labelled.words], one_hot) + 0.5  # no word is impossible
    return World(unlabelled, labelled, test, one_hot.mean(0), counts / counts.sum(1, keepdims=True))


def tokens(words: Array, hidden: Array) -> torch.Tensor:
    """The question (which hidden place), then the pairs of place and word that are shown."""
    pairs = np.arange(len(SHOWN)) * WORDS + words[:, SHOWN]
    return torch.from_numpy(np.concatenate([len(SHOWN) * WORDS + hidden[:, None], pairs], axis=1).astype(np.int64))


def pretrained(world: World, seed: int, steps: int, d: int) -> tuple[Network, Network]:
    """A network before and after it learned from masks; no digit is read here."""
    size: dict[str, Any] = {"seq_len": len(SHOWN) + 1, "vocabulary": len(SHOWN) * WORDS + len(HIDDEN), "classes": WORDS}
    model = Architecture(style="post", residual=True, d=d, heads=2, d_head=d // 2, depth=1, **size)
    before, after = (draw_weights(model, Init(), torch.Generator().manual_seed(seed)) for _ in range(2))
    trained = partial(forward_last_row, model, after)
    rule = torch.optim.AdamW([weight.requires_grad_() for weight in after.values()], lr=3e-3, weight_decay=0.1)
    fall = torch.optim.lr_scheduler.LambdaLR(rule, lambda at: min(1.0, (at + 1) / 50) * max(0.0, 1 - at / steps))
    rng, n = np.random.default_rng([seed, 3]), len(world.unlabelled.words)
    for step in range(steps):
        many = n >= steps * BATCH
        at = np.arange(step * BATCH, (step + 1) * BATCH) if many else rng.integers(0, n, BATCH)
        chosen, hidden = world.unlabelled.words[at], rng.integers(0, len(HIDDEN), BATCH)
        goal = torch.from_numpy(chosen[np.arange(BATCH), HIDDEN[hidden]])
        loss = torch.nn.functional.cross_entropy(trained(tokens(chosen, hidden)), goal)
        rule.zero_grad()
        loss.backward()
        rule.step()
        fall.step()
    return partial(forward_last_row, model, before), trained


@torch.no_grad()
def answers(network: Network, words: Array) -> Array:
    """Laws of the word at each hidden place: (images, places, words)."""
    every = np.tile(np.arange(len(HIDDEN)), len(words))
    parts = tokens(np.repeat(words, len(HIDDEN), axis=0), every).split(8192)
    logits = torch.cat([network(part) for part in parts])
    return torch.softmax(logits.double(), -1).numpy().reshape(len(words), len(HIDDEN), WORDS)


def pair(a: int, b: int) -> Array:
    """The direction w of length 1 that asks for one digit less another."""
    return (np.eye(DIGITS)[a] - np.eye(DIGITS)[b]) * 0.5**0.5


def fitted_error(fit: Array, digits: Array, judged: Array, truth: Array) -> float:
    """Error of ridge regression to the ten digits, its penalty by generalised cross-validation on the fitted images."""
    fit, judged = fit.reshape(len(fit), -1), judged.reshape(len(judged), -1)
    centre, one_hot = fit.mean(0), np.eye(DIGITS)[digits]
    u, sigma, vt = np.linalg.svd(fit - centre, full_matrices=False)
    goal = u.T @ (one_hot - one_hot.mean(0))
    tried: list[tuple[float, Array]] = []
    for penalty in sigma[0] ** 2 * 10.0 ** np.arange(-8, 1.0, 0.5):
        kept = sigma**2 / (sigma**2 + penalty)
        left = np.square(one_hot - one_hot.mean(0) - u @ (kept[:, None] * goal)).sum()
        head = vt.T @ ((sigma / (sigma**2 + penalty))[:, None] * goal)
        tried.append((float(left / max(len(fit) - 1 - kept.sum(), 1e-9) ** 2), head))
    said = (judged - centre) @ min(tried, key=lambda one: one[0])[1] + one_hot.mean(0)
    return float((said.argmax(1) != truth).mean())


def measured_at(
    places: Array, world: World, yhat: Array, limiting: tuple[Array, Array], *, images: bool, delta: float
) -> tuple[float, ...]:
    """Mean kappa, X6 and the error of w M^+ as shares of a constant's, the pretext error, pairs of digits above X6."""
    m, h = world.table[HIDDEN[places]].reshape(-1, DIGITS), world.posterior(world.test.words)
    said, other = limiting[0][:, places].reshape(len(limiting[0]), -1), limiting[1]
    # each place has at most what one law has
    limit = len(places) * error_limit(np.square(said - other @ m.T).sum(1) / len(places), delta)
    seen, rows = yhat[:, places].reshape(len(yhat), -1), []
    for w in (pair(a, b) for a in range(DIGITS) for b in range(a)):
        conditioning, bound = condition(m, w), transfer_bound(m, w, limit, measured=images).value
        rows.append(
            (conditioning.kappa, float(np.square(seen @ conditioning.head - h @ w).mean()), bound, float((h @ w).var()))
        )
    kappas, errors, bounds, nothing = np.array(rows).T
    pretext = float(np.square(seen - h @ m.T).sum(1).mean())
    kappa = float(np.sqrt(np.square(kappas).mean()))
    return kappa, bounds.sum() / nothing.sum(), errors.sum() / nothing.sum(), pretext, int((errors > bounds).sum())


def main(
    places: tuple[int, ...] = (3, 4, 5, 6, 8),
    labels: tuple[int, ...] = (20, 100, 500),
    seeds: int = 4,
    steps: int = 1200,
    d: int = 64,
    fresh: int = 4000,
    delta: float = 0.05,
) -> tuple[Values, Values]:
    """X6 and errors of the head, by law and number of places; "exceeded" counts pairs above X6 on the redrawn law."""
    computed, measured = Values({"exceeded": 0.0}), Values({"exceeded": 0.0})
    for law in ("redrawn", "images"):
        rows: dict[int, list[tuple[float, ...]]] = {n: [] for n in places}
        heads: dict[tuple[str, int], list[float]] = {}
        for seed in range(seeds):
            world = photographed(seed)
            world = world.redrawn(seed, steps, fresh) if law == "redrawn" else world
            before, after = pretrained(world, seed, steps, d)
            rng = np.random.default_rng([seed, 4])
            order, chosen = rng.permutation(len(HIDDEN)), rng.permutation(_LABELLED)
            other = world.drawn(rng, fresh) if law == "redrawn" else world.test
            limiting = (answers(after, other.words), world.posterior(other.words))
            fit, test = world.labelled.words[chosen], world.test.words
            sets = {name: (answers(net, fit), answers(net, test)) for name, net in (("frozen", after), ("new", before))}
            sets["raw words"] = (np.eye(WORDS)[fit[:, SHOWN]], np.eye(WORDS)[test[:, SHOWN]])
            for n in places:
                row = measured_at(
                    np.sort(order[:n]), world, sets["frozen"][1], limiting, images=law == "images", delta=delta
                )
                rows[n].append(row)
                measured["exceeded"] += row[-1] if law == "redrawn" else 0
            for name, (some, judged) in sets.items():
                for k in labels:
                    error = fitted_error(some[:k], world.labelled.digits[chosen[:k]], judged, world.test.digits)
                    heads.setdefault((name, k), []).append(error)
        for n, several in rows.items():
            kappa, bound, error, pretext = (math.exp(np.log(x).mean()) for x in list(zip(*several, strict=True))[:4])
            key = f"{law}, {n} places"
            computed[key], measured[key] = bound, error
            measured[key, "kappa"], measured[key, "pretext"] = kappa, pretext
            print(f"{key}: kappa {kappa:.3g}, pretext error {pretext:.3g}, w M^+ {error:.3g}, X6 {bound:.3g}")
        for (name, k), errors in heads.items():
            measured[law, name, k] = float(np.mean(errors))
            print(f"{law}: {k} labels on {name}, all places: {mean_interval(errors)} of the ten digits wrong")
    return computed, measured


if __name__ == "__main__":
    run(main)
