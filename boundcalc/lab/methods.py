"""The lines of `certify`: a certificate each, by norms, test examples, few bits or picks, or why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boundcalc.base.answers import wrong
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.audit import Audit
from boundcalc.checkpoints.data import Sequences
from boundcalc.checkpoints.families.read import NATIVE
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import compare as bounds_of
from boundcalc.lab.certification import Line, of_bound, of_predictor
from boundcalc.lab.given import GivenNetwork
from boundcalc.lab.outputs import Examples, Outputs
from boundcalc.lab.scores import Judged, group_names, judge, score_lines
from boundcalc.layers.embedding import token_tables
from boundcalc.predictors.certificate import Certified, PredictorCertificate, equal_shares, issue
from boundcalc.predictors.data import Data, named
from boundcalc.predictors.scores import Score
from boundcalc.predictors.shorten import refuse_large, shorten
from boundcalc.setting import Sample, Setting
from boundcalc.setting.sample import MARGIN


@dataclass(frozen=True)
class Request:
    """What is asked of a model that was read; the words are those of `certify`."""

    methods: tuple[str, ...]
    delta: float = 0.05
    gamma: float | None = None
    fixed_gamma: bool = False
    bounds: Sequence[str] = ("best",)
    power: float | None = None
    reference: Any = None
    make: Callable[[], Any] | None = None
    seed: int = 0
    against: Any = None
    groups: Any = None
    looks: int = 1


def setting_at(class_of: Setting, margins: Margins, request: Request) -> Setting:
    """The setting with its sample, at the margin that is given or the default."""
    fixed, gamma = request.fixed_gamma, request.gamma
    if fixed and gamma is None:
        raise InvalidSetting("fixed_gamma (--fixed-gamma) needs the gamma that was fixed")
    start = MARGIN if gamma is None else gamma
    seen = ("train_error",) if fixed else ("margin", "train_error")
    sample = Sample(len(margins.values), request.delta, start, margins.error(start), measured=seen)
    return replace(class_of, sample=sample)


def norm_bounds(
    setting: Setting, margins: Margins, audit: Audit, gamma: float | None, bounds: Sequence[str]
) -> tuple[Setting, tuple[BoundValue, ...], list[Line]]:
    """The bounds by norms, at the margin that is given or the best."""
    best: BoundValue | None = None
    if gamma is None:
        try:
            setting, best = best_margin(setting, margins)
        except InvalidSetting as error:
            return setting, (), [Line("norms: best", refusal=str(error))]
    values = tuple(bounds_of(setting, list(bounds))) if best is None or tuple(bounds) != ("best",) else (best,)
    values = tuple(value.recording(audit.compared) for value in values)
    return setting, values, [of_bound(value) for value in values]


def held_out(
    outputs: Outputs, tests: Sequences, margins: Margins, request: Request, groups: Any
) -> tuple[PredictorCertificate | None, dict[str, Score], list[Line]]:
    """The certificate of a test set (with groups, of their votes), the scores, and the lines."""

    def judged(by: Outputs, margins: Margins) -> Judged:
        losses = wrong(margins.values).astype(np.float64)
        return Judged(by.where, losses, tuple(map(str, tests.y)), group_names(groups, len(tests)))

    own, delta, looks, against = judged(outputs, margins), request.delta, request.looks, request.against
    other = None
    if hasattr(against, "state_dict"):
        from boundcalc.checkpoints.readers import open_checkpoint

        by = Outputs(open_checkpoint(against), type(against).__name__, against)
        other = judged(by, by.margins_of_function(tests))
    elif against is not None:
        other = judge(against, list(tests.x), tests.y, "the other")
    scores, lines = score_lines(own, other, delta, looks)
    if groups is not None:
        return None, scores, lines
    certificate = issue(
        "held-out",
        "H",
        {"errors": int(own.losses.sum()), "n": len(tests)},
        delta=delta,
        alternatives=({"delta": equal_shares(delta, looks)},),
        chosen=0,
        evidence={
            "data": named(Examples.of(tests)),
            "recipe": {"kind": "given", **outputs.recipe},
            "weights": outputs.weights,
        },
    )
    evidence = lines[0].based_on.partition(": ")[2]
    lines[0] = replace(of_predictor("held-out", certificate), based_on=f"H: {evidence}")
    return certificate, scores, lines


def in_few_bits(outputs: Outputs, examples: Sequences | None, request: Request) -> Certified:
    """The weights in few bits: rounded, written down, read again and counted."""
    assert examples is not None  # noqa: S101 - method occam is requested only with them
    refuse_large(sum(tensor.size for tensor in outputs.checkpoint.tensors.values() if tensor.is_float))
    network = GivenNetwork.of(outputs, request.reference, request.make, request.seed)
    data: Any = Examples.of(examples)  # of any lengths, where Data are arrays
    return shorten(network, network.codes, network.trained, data, request.delta)


def pick(outputs: Outputs, examples: Sequences | None, request: Request) -> PredictorCertificate:
    """The certificate of a module trained on few picked sequences."""
    from boundcalc.checkpoints.modules import answering
    from boundcalc.lab.train.pickers import ModuleLearner
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    assert request.make is not None  # noqa: S101 - method p2l is requested only with it
    assert examples is not None  # noqa: S101
    x, y = examples.arrays
    fresh = answering(request.make, outputs.parity.row if outputs.parity else None, outputs.call)
    learner = ModuleLearner(make=fresh, name=outputs.where)
    x = x if examples.tokens else x.astype(np.float32)
    return pick_to_learn(
        learner, Data(x, y), default_picks(len(y), request.delta, seed=request.seed), request.delta
    ).certificate


def by_rule(outputs: Outputs, examples: Sequences | None, request: Request) -> PredictorCertificate:
    """The certificate of a rule that a network on bits provably follows (G15)."""
    from boundcalc.predictors.rules.certify import StoredNetwork, explain_network

    assert examples is not None  # noqa: S101 - asked with the training data alone
    why_not = why_no_rule(outputs.audit)
    if outputs.audit is None or why_not:
        raise InvalidSetting(why_not)
    tensors = outputs.checkpoint.tensors
    network = StoredNetwork(outputs.audit.architecture, {name: tensor.fetch() for name, tensor in tensors.items()})
    explanation = explain_network(network, Data(*examples.arrays), delta=request.delta, seconds=_SECONDS)
    if explanation.certificate is None:
        raise InvalidSetting(f"no rule was proved of it within {_SECONDS} seconds; --by rule alone searches longer")
    return explanation.certificate


_SECONDS = 10.0
"""Of the search for a rule, next to the other methods."""
WHY_NOT = {
    "norms": "not requested (methods=, --by)",
    "held-out": "no examples that the model has not met (test=, --test)",
    "p2l": "not run: it trains a module of its own (make=, --by p2l with --compare module.py:make)",
    "occam": "not requested (methods=, --by)",
    "rule": "not requested (methods=, --by)",
    "pac-bayes": "its posterior must be trained (boundcalc train TASK --certify pac-bayes)",
}


def why_no_rule(audit: Audit | None) -> str:
    """Why no rule that a network provably follows can be sought; empty where one can."""
    if audit is None:
        return "it reads the architecture, and the model is not described"
    tables = token_tables(audit.architecture.stages)
    kinds = tables[0].vocabulary if tables else None
    if kinds is None or kinds > _BITS:
        reads = "rows of numbers" if kinds is None else f"tokens of {kinds:,} kinds"
        return f"it explains networks on bits; this one reads {reads}"
    return "" if audit.family == NATIVE.name else "it reads files of boundcalc train"


_BITS = 3
"""Rows of the token table of a network on bits: 0, 1 and the row that is read."""
