"""`certify`: a trained model and its data in, every certificate that applies out.

Any function, estimator, torch module or file of predictions is certified by held-out examples. What can be described is
compared with its forward pass (checkpoints.parity) first: a certificate of a setting that does not describe it cannot
come about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from boundcalc.base.answers import count_wrong, wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.validate import choice
from boundcalc.checkpoints.audit import chosen_family
from boundcalc.checkpoints.data import READS, Sequences, sequences
from boundcalc.checkpoints.errors import NoFunction
from boundcalc.checkpoints.families import Options
from boundcalc.checkpoints.families.read import NATIVE
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.engine.evaluate import evaluate
from boundcalc.lab._given import GivenNetwork
from boundcalc.lab._outputs import Outputs
from boundcalc.lab._scores import PREDICTIONS, Judged, judge, overlapping, read_predictions, score_lines
from boundcalc.lab.certification import Certification, Line, of_bound, of_predictor
from boundcalc.lab.reading import read_model
from boundcalc.predictors.certificate import Certified, Look, PredictorCertificate, issue
from boundcalc.predictors.data import Data, Evidence, Named
from boundcalc.predictors.shorten import MOST, shorten
from boundcalc.setting import Sample, Setting
from boundcalc.setting.setting import MARGIN

_TRIED = 4
"""Sequences of the data in the forward check."""
_SECONDS = 10.0
"""Of the search for a rule, next to the other methods."""
_METHODS = {"norms": ("data",), "held-out": ("test",), "occam": ("data",), "rule": ("data",), "p2l": ("data", "make")}
"""What `certify` can use, and the arguments that each needs."""
_LACKS = {
    "data": "it needs the training data (data=, --data)",
    "test": "no examples that the model has not met (test=, --test)",
    "make": "not run: it trains a module of its own (make=, --by p2l with --compare module.py:make)",
}
_NEED_WEIGHTS = ("norms", "occam", "rule", "p2l", "pac-bayes")
_NO_POSTERIOR = "its posterior must be trained (boundcalc train TASK --certify pac-bayes)"


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
    bits: int | None = None,
    methods: Sequence[str] | None = None,
    reference: Any = None,
    make: Callable[[], Any] | None = None,
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
        gamma: the margin; unset, the best on the grid. Either is rounded down to it, and corrected for.
        bits: of every stored weight, fixed before the data (G13).
        methods: norms, held-out, occam, rule, p2l; unset, all that the arguments allow.
        reference: weights fixed before the data (a checkpoint or a module); occam may encode the difference from them.
        make: returns a fresh module: p2l trains one, and occam may encode the difference from one.
        seed: of random probes, of p2l, and of the fresh module for occam.
        progress: receives a line for each step.

    Returns:
        Every certificate with its kind, and the verdict.
    """
    if (answers := _answers(model, data, test, against, groups, largest_weight)) is not None:
        scores, lines = score_lines(*answers, delta, looks)
        lines += [Line(method, refusal="only its answers are known, no weights") for method in _NEED_WEIGHTS]
        return Certification(answers[0].name, tuple(lines), delta, scores=scores, notes=answers[0].notes)
    say = progress or (lambda _: None)
    wanted, refused = _wanted(methods, data, test, make)
    if groups is not None and test is None:
        raise InvalidSetting("groups are of test examples: give some (test=, --test)")
    training = None if data is None else sequences(data)
    tests = None if test is None else sequences(test, groups if isinstance(groups, str) else None)
    examples = [part for part in (training, tests) if part is not None]
    say("reading the model")
    chosen = chosen_family(family, mapping)
    outputs = read_model(
        model,
        module,
        family=chosen,
        options=Options(seq_len, input_radius, heads, settings=settings or {}),
        seed=seed,
        inputs=examples[0].first(_TRIED),
        described_only=chosen is not None,
        bits=bits,
        say=say,
    )
    say("margins")
    outputs, margins = _margins(outputs, examples)
    result = Certification(outputs.where, (), delta, notes=_notes(outputs, training, tests, grouped=groups is not None))
    lines, certificates, states = list[Line](), dict[str, PredictorCertificate](), dict[str, Mapping[str, Any]]()
    own_seed, first = seed or 0, examples[0]
    ways: dict[str, Callable[[], Certified | PredictorCertificate]] = {
        "occam": lambda: _in_few_bits(outputs, first, delta, GivenNetwork.of(outputs, reference, make, own_seed)),
        "rule": lambda: _by_rule(outputs, first, delta),
        "p2l": lambda: _picked(outputs, first, delta, make, own_seed),
    }
    for method in wanted:
        say(method)
        if method == "norms":
            result, line = _norms(result, outputs, margins[0], gamma)
            lines.append(line)
        elif tests is not None and method == "held-out":
            own = _judged(outputs, tests, margins[-1], groups)
            scores, more = score_lines(own, _other(against, tests), delta, looks)
            result = replace(result, scores=scores)
            if own.groups is None:
                certificates[method] = _held_out(outputs, tests, own, delta, looks)
                based_on = f"H: {more[0].based_on.partition(': ')[2]}"
                more[0] = replace(of_predictor(method, certificates[method]), based_on=based_on)
            lines += more
        else:
            try:
                certificate = ways[method]()
            except BoundcalcError as error:
                lines.append(Line(method, refusal=str(error)))
                continue
            if isinstance(certificate, Certified):
                certificate, states[method] = certificate.certificate, certificate.state
            certificates[method] = certificate
            lines.append(of_predictor(method, certificate))
    errors = None if training is None else (count_wrong(margins[0].values, len(training)), len(training))
    lines = tuple(lines + refused)
    return replace(result, lines=lines, certificates=certificates, errors=errors, states=states, outputs=outputs)


def _answers(
    model: Any, data: Any, test: Any, against: Any, groups: Any, largest_weight: float | None
) -> tuple[Judged, Judged | None] | None:
    """The answers of a predictor that nothing else is known of, and of the other one; None of a model with weights."""
    if isinstance(model, str | Path) and Path(model).suffix in PREDICTIONS:
        own = read_predictions(model, groups, largest=largest_weight)
        if against is None or Path(against).suffix in PREDICTIONS:
            return own, None if against is None else read_predictions(against, largest=largest_weight)
        return own, replace(read_predictions(model, None, str(against), largest_weight), name=str(against))
    if largest_weight is not None:
        raise InvalidSetting("largest_weight is of a file of predictions with a column of weights: leave it out")
    if isinstance(model, type) or model is None:
        raise InvalidSetting(f"{model!r} is no trained model: give an object of the class, or a path")
    if isinstance(model, str | Path) or hasattr(model, "state_dict"):
        return None
    if data is not None:
        raise InvalidSetting(
            "of a function or an estimator only test examples tell: give test=(x, y), and no training data"
        )
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise InvalidSetting("give the examples that it has not met as test=(x, y)")
    return judge(model, *test, groups=groups), None if against is None else judge(against, *test, name="the other")


def _wanted(methods: Sequence[str] | None, data: Any, test: Any, make: Any) -> tuple[list[str], list[Line]]:
    """The requested methods, or all that the arguments allow; and why there is nothing by the others."""
    if data is None and test is None:
        raise InvalidSetting("give training data (data=, --data), or examples that it has not met (test=, --test)")
    absent = {name for name, value in (("data", data), ("test", test), ("make", make)) if value is None}
    requested = {choice("method", method, tuple(_METHODS)) for method in methods or _METHODS}
    wanted, refused = list[str](), list[Line]()
    for method, needs in _METHODS.items():
        lacks = next((_LACKS[name] for name in needs if name in absent), None)
        if methods is not None and method in requested and lacks is not None:
            raise InvalidSetting(f"method {method}: {lacks}")
        if method in requested and lacks is None:
            wanted.append(method)
        else:
            refused.append(Line(method, refusal=lacks if method in requested else "not requested (methods=, --by)"))
    if test is not None and "held-out" not in wanted:
        raise InvalidSetting("held-out sequences are given, and method held-out is not among those requested")
    return wanted, [*refused, Line("pac-bayes", refusal=_LACKS["data"] if data is None else _NO_POSTERIOR)]


def _margins(outputs: Outputs, examples: Sequence[Sequences]) -> tuple[Outputs, list[Margins]]:
    """Margins of all examples; of a module that is not what was described, without the description, and why."""
    try:
        return outputs, [outputs.margins(part) for part in examples]
    except BoundcalcError as error:
        if outputs.audit is None or outputs.live is None or isinstance(error, NoFunction):
            raise
        plain = replace(outputs, model=None, audit=None, why_not=str(error))
        return plain, [plain.margins(part) for part in examples]


def _notes(outputs: Outputs, training: Sequences | None, tests: Sequences | None, *, grouped: bool) -> tuple[str, ...]:
    """What must be said of the examples; refuses held-out sequences that are the training ones."""
    notes = [note for part in (training, tests) if part is not None for note in outputs.fitted(part).notes]
    if training is not None and tests is not None:
        if training.words != tests.words:
            raise InvalidSetting("training and test labels are not the same words: number them 0, 1, ... in both alike")
        if len({note for part in (training, tests) for note in part.notes if note.startswith(READS)}) > 1:
            raise InvalidSetting("training and test table have other columns, or another order: sort them alike")
        if training.sha256 == tests.sha256:
            raise InvalidSetting(
                "the held-out sequences are the training ones: give sequences that the model has not met"
            )
        met = {(x.tobytes(), int(y)) for x, y in zip(training.x, training.y, strict=True)}
        if again := sum((x.tobytes(), int(y)) in met for x, y in zip(tests.x, tests.y, strict=True)):
            notes.append(
                f"{again} of {len(tests)} held-out sequences stand among the training ones too: the held-out line "
                "supposes that they are draws of their own"
            )
    notes += [] if tests is None or grouped else overlapping(tests.x)
    return tuple(dict.fromkeys(notes))


# -- by method


def _norms(
    result: Certification, outputs: Outputs, margins: Margins, gamma: float | None
) -> tuple[Certification, Line]:
    """With the model's norms and the training error at a margin, which is given or the best; the bound they give."""
    if (audit := outputs.audit) is None:
        return result, Line("norms: best", refusal=f"not described: {outputs.why_not}")
    start = MARGIN if gamma is None else gamma
    sample = Sample(len(margins.values), result.delta, start, margins.error(start), measured=("margin", "train_error"))
    setting = Setting(audit.architecture, audit.norms(), sample)
    try:
        setting, value = best_margin(setting, margins) if gamma is None else (setting, evaluate(setting, "best"))
    except InvalidSetting as error:
        return replace(result, setting=setting), Line("norms: best", refusal=str(error))
    value = value.recording(audit.compared)
    return replace(result, setting=setting, bounds=(value,)), of_bound(value)


def _judged(outputs: Outputs, tests: Sequences, margins: Margins, groups: Any = None) -> Judged:
    """The test examples that are answered wrongly; `groups` names what each belongs to, or their column."""
    groups = groups if tests.groups is None else tests.groups
    return Judged(outputs.where, wrong(margins.values).astype(np.float64), [str(y) for y in tests.y], groups)


def _other(against: Any, tests: Sequences) -> Judged | None:
    """The same of the model that it is compared with."""
    if hasattr(against, "state_dict"):
        from boundcalc.checkpoints.readers import open_checkpoint

        by = Outputs(open_checkpoint(against), against)
        return _judged(by, tests, by.margins(tests))
    return None if against is None else judge(against, list(tests.x), tests.y, "the other")


def _held_out(outputs: Outputs, tests: Sequences, own: Judged, delta: float, looks: int) -> PredictorCertificate:
    """The certificate of a test set."""
    evidence = Evidence(Named(tests.sha256, len(tests)), {"kind": "given", **outputs.recipe}, outputs.weights, {})
    errors, alternatives = int(own.losses.sum()), map(Look, range(looks))
    return issue("held-out", errors, delta=delta, alternatives=alternatives, evidence=evidence)


def _in_few_bits(outputs: Outputs, examples: Sequences, delta: float, network: GivenNetwork) -> Certified:
    """The weights in few bits: rounded, written down, read again and counted."""
    size = sum(tensor.size for tensor in outputs.checkpoint.tensors.values() if tensor.is_float)
    if size > MOST:
        raise InvalidSetting(f"its {size:,} numbers are more than the {MOST:,} of which a rounding is looked for")
    return shorten(network, network.codes, network.trained, cast("Data", examples), delta)  # of any lengths


def _picked(outputs: Outputs, examples: Sequences, delta: float, make: Any, seed: int) -> PredictorCertificate:
    """The certificate of a module trained on few picked sequences."""
    from boundcalc.checkpoints.modules import answering
    from boundcalc.lab.train.pickers import ModuleLearner
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    x, y = examples.arrays
    fresh = answering(make, outputs.parity.row if outputs.parity else None)
    data = Data(x if examples.tokens else x.astype(np.float32), y)
    learner = ModuleLearner(make=fresh, name=outputs.where)
    return pick_to_learn(learner, data, default_picks(len(y), seed=seed), delta).certificate


def _by_rule(outputs: Outputs, examples: Sequences, delta: float) -> PredictorCertificate:
    """The certificate of a rule that a network on bits provably follows (G15)."""
    from boundcalc.predictors.rules.search import explain_network

    audit = outputs.audit
    if audit is None or audit.family != NATIVE.name:
        raise InvalidSetting("it explains networks on bits, in files of boundcalc train")
    weights = {name: tensor.fetch() for name, tensor in outputs.checkpoint.tensors.items()}
    explained = explain_network((audit.architecture, weights), Data(*examples.arrays), delta=delta, seconds=_SECONDS)
    if explained.certificate is None:
        raise InvalidSetting(f"no rule was proved of it within {_SECONDS} seconds; --by rule alone searches longer")
    return explained.certificate
