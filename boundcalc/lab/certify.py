"""`certify`: a trained model and its data in, every certificate that applies out.

Any function, estimator, torch module or file of predictions is certified by held-out examples. What can be described is
compared with its forward pass (checkpoints.parity) first: a certificate of a setting that does not describe it cannot
come about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.answers import count_wrong, wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.validate import choice
from boundcalc.checkpoints.audit import Audit, chosen_family
from boundcalc.checkpoints.data import READS, Sequences, sequences
from boundcalc.checkpoints.errors import NoFunction
from boundcalc.checkpoints.families import Options
from boundcalc.checkpoints.families.read import NATIVE
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.checkpoints.traced import Call
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import compare
from boundcalc.lab.certification import Certification, Line, of_bound, of_predictor
from boundcalc.lab.given import GivenNetwork
from boundcalc.lab.outputs import Examples, Outputs, token_before
from boundcalc.lab.reading import TRIED, brief, check_data, read_model, reject_incomplete
from boundcalc.lab.scores import (
    Judged,
    certify_function,
    certify_predictions,
    group_names,
    judge,
    overlapping,
    score_lines,
)
from boundcalc.layers.embedding import token_tables
from boundcalc.layers.forward import Fixed
from boundcalc.predictors.certificate import Certified, PredictorCertificate, equal_shares, issue
from boundcalc.predictors.data import Data, named
from boundcalc.predictors.scores import Score
from boundcalc.predictors.shorten import MOST, shorten
from boundcalc.setting import Sample, Setting
from boundcalc.setting.setting import MARGIN

METHODS = ("norms", "held-out", "occam", "rule", "p2l")
"""What `certify` can use."""


def certify(
    model: Any,
    data: Any = None,
    *,
    test: Any = None,
    against: Any = None,
    groups: Any = None,
    looks: int = 1,
    largest_weight: float | None = None,
    module: Any = None,
    mapping: str | Path | Mapping[str, Any] | None = None,
    family: str | None = None,
    heads: int | None = None,
    seq_len: int | None = None,
    input_radius: float | None = None,
    settings: Mapping[str, Any] | None = None,
    delta: float = 0.05,
    gamma: float | None = None,
    fixed_gamma: bool = False,
    bits: int | None = None,
    bounds: Sequence[str] = ("best",),
    methods: Sequence[str] | None = None,
    reference: Any = None,
    make: Callable[[], Any] | None = None,
    call: Call | None = None,
    fixed: Fixed | None = None,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Certification:
    """Every certificate that applies to a trained model, in one call.

    Args:
        model: a torch module, the path of its weights, a file of predictions, an estimator with `predict`, or a
            function of a batch that gives labels or scores.
        data: the training sequences and their labels (checkpoints.data); norms and occam need them.
        test: examples that played no part in training, for the test-set bound.
        against: another model on the same test examples: which errs less, and by how much.
        groups: of test examples that are not independent, a name each, or the column that has them: each group has one
            vote.
        looks: how many models or looks at these test examples share delta.
        largest_weight: of a file of predictions with weights: the largest that an example can have, fixed before the
            data.
        module: with a path, the module of these weights: "module.py:make", or itself. A folder that the transformers
            library wrote is loaded by it, where it is installed and the model is small; "transformers" does so always,
            "none" never.
        mapping: a description of the model (docs/weights.md); unset, a known family is recognised, else the module is
            described by itself and the description compared with it.
        family: the family of the model, where its files do not name it.
        heads: the number of attention heads, where the model does not give it.
        seq_len: T, where there is no table of positions.
        input_radius: largest norm of an input row, fixed before the data.
        settings: further settings, as config.json would have them.
        delta: failure probability, of every line by itself.
        gamma: the margin; unset, the best on the grid, corrected for that choice.
        fixed_gamma: gamma was fixed before the data, so it is neither rounded nor corrected for.
        bits: of every stored weight, fixed before the data (G13).
        bounds: the norm bounds to try.
        methods: which of `METHODS`; unset, all that the arguments allow.
        reference: weights fixed before the data (a checkpoint or a module); occam may encode the difference from them.
        make: returns a fresh module: p2l trains one, and occam may encode the difference from one.
        call: how the module is called, where module(x) is not it.
        fixed: rotations and other constants fixed before the data, where the module does not store them.
        seed: of random probes, of p2l, and of the fresh module for occam.
        progress: receives a line for each step.

    Returns:
        Every certificate with its kind, and the verdict.
    """
    if isinstance(model, str | Path) and Path(model).suffix in (".csv", ".parquet"):
        return certify_predictions(
            model, against=against, groups=groups, looks=looks, delta=delta, largest_weight=largest_weight
        )
    if largest_weight is not None:
        raise InvalidSetting("largest_weight is of a file of predictions with a column of weights: leave it out")
    if isinstance(model, type) or model is None:
        raise InvalidSetting(f"{model!r} is no trained model: give an object of the class, or a path")
    if not isinstance(model, str | Path | Mapping) and not hasattr(model, "state_dict"):
        return certify_function(model, data, test, against, groups, looks, delta)
    wanted, say = _wanted(methods, data, test, make), progress or (lambda _: None)
    if groups is not None and test is None:
        raise InvalidSetting("groups are of test examples: give some (test=, --test)")
    column = groups if isinstance(groups, str) else None
    training, tests = None if data is None else sequences(data), None if test is None else sequences(test, column)
    say("reading the model")
    chosen, examples = chosen_family(family, mapping), [part for part in (training, tests) if part is not None]
    outputs = read_model(
        model,
        module,
        family=chosen,
        options=Options(seq_len, input_radius, heads, settings=settings or {}),
        seed=seed,
        inputs=examples[0].first(TRIED),
        inspect=reject_incomplete(str(model) if isinstance(model, str | Path) else type(model).__name__),
        described_only=chosen is not None,
        fixed=fixed,
        call=call,
        bits=bits,
        say=say,
    )
    say("margins")
    outputs, why_not, (margins, test_margins) = _margins(outputs, training, tests)
    audit, members = outputs.audit, groups if tests is None or tests.groups is None else tests.groups
    notes = [*examples[0].notes, *_notes(outputs, training, tests, grouped=members is not None)]
    setting, values, lines = None, tuple[BoundValue, ...](), list[Line]()
    if "norms" in wanted and audit is None:
        lines.append(Line("norms: best", refusal=f"not described: {why_not or outputs.why_not}"))
    elif audit is not None and margins is not None:
        say("norm bounds")
        if fixed_gamma and gamma is None:
            raise InvalidSetting("fixed_gamma (--fixed-gamma) needs the gamma that was fixed")
        start, seen = MARGIN if gamma is None else gamma, ("train_error",) if fixed_gamma else ("margin", "train_error")
        sample = Sample(len(margins.values), delta, start, margins.error(start), measured=seen)
        setting = Setting(audit.architecture, audit.norms(), sample)
        if "norms" in wanted:
            setting, values, lines = _norm_bounds(setting, margins, audit, gamma, bounds)
    scores: dict[str, Score] = {}
    certificates: dict[str, PredictorCertificate] = {}
    states: dict[str, Mapping[str, Any]] = {}
    if tests is not None and test_margins is not None:
        say("held-out")
        certificate, scores, more = _held_out(outputs, tests, test_margins, delta, members, against, looks)
        certificates |= {} if certificate is None else {"held-out": certificate}
        lines += more
    ways: dict[str, Callable[[Sequences], Certified | PredictorCertificate]] = {
        "occam": lambda examples: _in_few_bits(outputs, examples, delta, reference, make, seed or 0),
        "rule": lambda examples: _by_rule(outputs, examples, delta),
        "p2l": lambda examples: _picked(outputs, examples, delta, make, seed or 0),
    }
    for method, way in ways.items():
        if method not in wanted or training is None:
            continue
        say(method)
        try:
            certificate = way(training)
        except BoundcalcError as error:
            lines.append(Line(method, refusal=str(error)))
            continue
        if isinstance(certificate, Certified):
            certificate, states[method] = certificate.certificate, certificate.state
        certificates[method] = certificate
        lines.append(of_predictor(method, certificate))
    for method, why in _WHY_NOT.items():
        if method not in wanted:
            lines.append(Line(method, refusal=why if training else "it needs the training data"))
    return Certification(
        outputs.where,
        tuple(lines),
        delta,
        audit,
        setting,
        values,
        certificates,
        scores,
        None if margins is None else (count_wrong(margins.values, len(margins.values)), len(margins.values)),
        tuple(notes),
        outputs.mapping,
        states,
        outputs,
    )


_WHY_NOT = {
    "norms": "not requested (methods=, --by)",
    "held-out": "no examples that the model has not met (test=, --test)",
    "p2l": "not run: it trains a module of its own (make=, --by p2l with --compare module.py:make)",
    "occam": "not requested (methods=, --by)",
    "rule": "not requested (methods=, --by)",
    "pac-bayes": "its posterior must be trained (boundcalc train TASK --certify pac-bayes)",
}
_SECONDS = 10.0
"""Of the search for a rule, next to the other methods."""
_BITS = 3
"""Rows of the token table of a network on bits: 0, 1 and the row that is read."""


def _wanted(methods: Sequence[str] | None, data: Any, test: Any, make: Any) -> tuple[str, ...]:
    """The requested methods, or all that the arguments allow."""
    if data is None and test is None:
        raise InvalidSetting("give training data (data=, --data), or examples that it has not met (test=, --test)")
    lacking = {method: "the training data: data= (--data FILE)" for method in METHODS if data is None}
    if test is None:
        lacking["held-out"] = "sequences that the model has not met: test= (--test FILE)"
    else:
        lacking.pop("held-out", None)
    if make is None:
        lacking["p2l"] = "what makes modules to train: make= (--compare module.py:make)"
    if methods is None:
        return tuple(method for method in METHODS if method not in lacking)
    wanted = tuple(dict.fromkeys(choice("method", method, METHODS) for method in methods))
    for method in wanted:
        if method in lacking:
            raise InvalidSetting(f"method {method} needs {lacking[method]}")
    if test is not None and "held-out" not in wanted:
        raise InvalidSetting("held-out sequences are given, and method held-out is not among those requested")
    return wanted


def _margins(
    outputs: Outputs, training: Sequences | None, tests: Sequences | None
) -> tuple[Outputs, str, list[Margins | None]]:
    """Margins of both; of a module that is not what was described, without the description, and why."""
    both = (training, tests)
    try:
        for examples in both:
            if examples is not None and outputs.audit is not None:
                check_data(examples, outputs.audit, outputs.model, live=outputs.live is not None)
        return outputs, "", [None if part is None else outputs.margins_of_function(part) for part in both]
    except BoundcalcError as error:
        if outputs.audit is None or outputs.live is None or isinstance(error, NoFunction):
            raise
        plain = replace(outputs, model=None, audit=None)
        return plain, str(error), [None if part is None else plain.margins_of_function(part) for part in both]


def _notes(outputs: Outputs, training: Sequences | None, tests: Sequences | None, *, grouped: bool) -> list[str]:
    """What must be said of the examples and of the description."""
    audit = outputs.audit
    notes = [] if training is None or tests is None else _shared(training, tests)
    notes += [] if tests is None or grouped else overlapping(tests.x)
    put = None if audit is None or training is None else token_before(training, audit)
    if put is not None:
        notes.append(f"token {put} is put before every sequence: it is what the row that is read shows")
    if outputs.mapping is not None and audit is not None:
        notes.append(f"described as {brief(outputs.mapping)}")
    return notes


def _shared(training: Sequences, tests: Sequences) -> list[str]:
    """Whether held-out sequences were met after all."""
    if training.words != tests.words:
        raise InvalidSetting("training and test labels are not the same words: number them 0, 1, ... in both alike")
    if len({note for examples in (training, tests) for note in examples.notes if note.startswith(READS)}) > 1:
        raise InvalidSetting(
            "training and test table have other columns, or the same in another order: sort them alike"
        )
    met = {(x.tobytes(), int(y)) for x, y in zip(training.x, training.y, strict=True)}
    again = sum((x.tobytes(), int(y)) in met for x, y in zip(tests.x, tests.y, strict=True))
    if not again:
        return []
    if Examples.of(training).sha256 == Examples.of(tests).sha256:
        raise InvalidSetting("the held-out sequences are the training ones: give sequences that the model has not met")
    return [
        f"{again} of {len(tests)} held-out sequences stand among the training ones too: the held-out line supposes "
        "that they are draws of their own"
    ]


def _norm_bounds(
    setting: Setting, margins: Margins, audit: Audit, gamma: float | None, bounds: Sequence[str]
) -> tuple[Setting, tuple[BoundValue, ...], list[Line]]:
    """The bounds by norms, at the margin that is given or the best."""
    best: BoundValue | None = None
    if gamma is None:
        try:
            setting, best = best_margin(setting, margins)
        except InvalidSetting as error:
            return setting, (), [Line("norms: best", refusal=str(error))]
    values = tuple(compare(setting, list(bounds))) if best is None or tuple(bounds) != ("best",) else (best,)
    values = tuple(value.recording(audit.compared) for value in values)
    return setting, values, [of_bound(value) for value in values]


def _held_out(
    outputs: Outputs, tests: Sequences, margins: Margins, delta: float, groups: Any, against: Any, looks: int
) -> tuple[PredictorCertificate | None, dict[str, Score], list[Line]]:
    """The certificate of a test set (with groups, of their votes), the scores, and the lines."""

    def judged(by: Outputs, margins: Margins) -> Judged:
        losses = wrong(margins.values).astype(np.float64)
        return Judged(by.where, losses, tuple(map(str, tests.y)), group_names(groups, len(tests)))

    own, other = judged(outputs, margins), None
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


def _in_few_bits(
    outputs: Outputs, examples: Sequences, delta: float, reference: Any, make: Any, seed: int
) -> Certified:
    """The weights in few bits: rounded, written down, read again and counted."""
    size = sum(tensor.size for tensor in outputs.checkpoint.tensors.values() if tensor.is_float)
    if size > MOST:
        raise InvalidSetting(f"its {size:,} numbers are more than the {MOST:,} of which a rounding is looked for")
    network = GivenNetwork.of(outputs, reference, make, seed)
    data: Any = Examples.of(examples)  # of any lengths, where Data are arrays
    return shorten(network, network.codes, network.trained, data, delta)


def _picked(outputs: Outputs, examples: Sequences, delta: float, make: Any, seed: int) -> PredictorCertificate:
    """The certificate of a module trained on few picked sequences."""
    from boundcalc.checkpoints.modules import answering
    from boundcalc.lab.train.pickers import ModuleLearner
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    x, y = examples.arrays
    fresh = answering(make, outputs.parity.row if outputs.parity else None, outputs.call)
    data = Data(x if examples.tokens else x.astype(np.float32), y)
    learner = ModuleLearner(make=fresh, name=outputs.where)
    return pick_to_learn(learner, data, default_picks(len(y), delta, seed=seed), delta).certificate


def _by_rule(outputs: Outputs, examples: Sequences, delta: float) -> PredictorCertificate:
    """The certificate of a rule that a network on bits provably follows (G15)."""
    from boundcalc.predictors.rules.certify import StoredNetwork
    from boundcalc.predictors.rules.search import explain_network

    audit = outputs.audit
    if audit is None:
        raise InvalidSetting("it reads the architecture, and the model is not described")
    tables = token_tables(audit.architecture.stages)
    if not tables or tables[0].vocabulary > _BITS:
        reads = f"tokens of {tables[0].vocabulary:,} kinds" if tables else "rows of numbers"
        raise InvalidSetting(f"it explains networks on bits; this one reads {reads}")
    if audit.family != NATIVE.name:
        raise InvalidSetting("it reads files of boundcalc train")
    weights = {name: tensor.fetch() for name, tensor in outputs.checkpoint.tensors.items()}
    network, data = StoredNetwork(audit.architecture, weights), Data(*examples.arrays)
    certificate = explain_network(network, data, delta=delta, seconds=_SECONDS).certificate
    if certificate is None:
        raise InvalidSetting(f"no rule was proved of it within {_SECONDS} seconds; --by rule alone searches longer")
    return certificate
