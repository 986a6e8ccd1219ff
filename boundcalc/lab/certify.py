"""`certify`: a trained model and its data in, every certificate that applies out.

Any function, estimator, torch module or file of predictions is certified by held-out examples. What can be described is held
against its forward pass (checkpoints.parity) first: a certificate of a setting that does not describe it cannot come about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.answers import count_wrong, wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints.audit import Audit, chosen_family
from boundcalc.checkpoints.data import sequences
from boundcalc.checkpoints.errors import NoFunction
from boundcalc.checkpoints.examples import Sequences
from boundcalc.checkpoints.families import Options
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.checkpoints.passes import Call
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import compare as bounds_of
from boundcalc.lab.certification import Certification, Line, of_bound, of_predictor, of_score
from boundcalc.lab.given import GivenNetwork
from boundcalc.lab.outputs import Examples, Outputs, token_before, weights_digest
from boundcalc.lab.predictions import certify_function, certify_predictions, group_names
from boundcalc.lab.reading import TRIED, Reading, brief, fits, read_model, whole
from boundcalc.lab.scores import Judged, difference, judge, overlapping, score
from boundcalc.layers.forward import Fixed
from boundcalc.predictors.certificate import PredictorCertificate, equal_shares, issue
from boundcalc.predictors.data import Data
from boundcalc.predictors.examples import named
from boundcalc.predictors.occam import Decoded
from boundcalc.predictors.scores import Score
from boundcalc.predictors.shorten import refuse_large, shorten
from boundcalc.setting import Sample, Setting
from boundcalc.setting.sample import MARGIN

METHODS = ("norms", "held-out", "occam", "p2l")
"""What `certify` can use."""
PREDICTIONS = (".csv", ".parquet")
"""Endings of files that hold answers, not weights."""


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
        model: a torch module, the path of its weights, a file of predictions, an estimator with `predict`, or a function of
            a batch that gives labels or scores.
        data: the training sequences and their labels (checkpoints.data); norms and occam need them.
        test: examples that the model has not met, for the test-set bound.
        against: another model on the same test examples: which errs less, and by how much.
        groups: of test examples that are not independent, a name each (of a file the column): each group has one vote.
        looks: how many models or looks at these test examples share delta.
        largest_weight: of a file of predictions with weights: the largest that an example can have, fixed before the data.
        module: with a path, the module of these weights: "module.py:make", or itself. A folder that the transformers
            library wrote is loaded by it, where it is installed and the model is small; "transformers" does so always,
            "none" never.
        mapping: a description of the model (docs/weights.md); unset, a known family is recognised, else the module is
            described by itself and the description held against it.
        family: of the model, where nothing says it.
        heads: attention heads, where nothing says how many.
        seq_len: T, where there is no table of positions.
        input_radius: largest norm of an input row, fixed before the data.
        settings: further settings, as config.json would have them.
        delta: failure probability, of every line by itself.
        gamma: the margin; unset, the best on the grid is taken and paid for.
        fixed_gamma: gamma was fixed before the data: it is neither rounded nor paid for.
        bounds: the norm bounds wanted.
        methods: which of `METHODS`; unset, all that what is given allows.
        reference: weights fixed before the data (a checkpoint or a module), to which occam may say the difference.
        make: makes a fresh module, for p2l, which trains one of its own; occam may say the difference to one.
        call: how the module is called, where module(x) is not it.
        fixed: rotations and other things that are fixed before the data, where the module does not say them.
        seed: of random probes, of p2l, and of the fresh module for occam.
        progress: told what is being done.

    Returns:
        Everything that was found, each certificate with its kind.
    """
    if isinstance(model, str | Path) and Path(model).suffix in PREDICTIONS:
        return certify_predictions(
            model, against=against, groups=groups, looks=looks, delta=delta, largest_weight=largest_weight
        )
    if largest_weight is not None:
        raise InvalidSetting("largest_weight is of a file of predictions with a column of weights: leave it out")
    if isinstance(model, type) or model is None:
        raise InvalidSetting(f"{model!r} is no trained model: give an object of the class, or a path")
    if not isinstance(model, str | Path | Mapping) and not hasattr(model, "state_dict"):
        return certify_function(model, data, test, against, groups, looks, delta)
    wanted = wanted_methods(methods, data, test, make)
    say = progress or (lambda _: None)
    known, tests = None if data is None else sequences(data), None if test is None else sequences(test)
    say("reading the model")
    chosen = chosen_family(family, mapping)
    seen: Any = known or tests  # wanted_methods refuses to do without both
    reading = read_model(
        model,
        module,
        family=chosen,
        options=Options(seq_len, input_radius, heads, settings=settings or {}),
        seed=seed,
        inputs=seen.first(TRIED),
        inspect=whole(str(model) if isinstance(model, str | Path) else type(model).__name__),
        described_only=chosen is not None,
        fixed=fixed,
        call=call,
        say=say,
    )
    return answered(
        reading,
        known,
        tests,
        delta=delta,
        gamma=gamma,
        fixed_gamma=fixed_gamma,
        bounds=bounds,
        methods=wanted,
        make=make,
        seed=seed or 0,
        progress=say,
        reference=reference,
        against=against,
        groups=groups,
        looks=looks,
        fixed=fixed,
        call=call,
    )


def answered(
    reading: Reading,
    known: Sequences | None,
    tests: Sequences | None,
    *,
    delta: float,
    gamma: float | None,
    bounds: Sequence[str],
    methods: Sequence[str],
    make: Callable[[], Any] | None,
    seed: int,
    progress: Callable[[str], None],
    fixed_gamma: bool = False,
    power: float | None = None,
    reference: Any = None,
    against: Any = None,
    groups: Any = None,
    looks: int = 1,
    fixed: Fixed | None = None,
    call: Call | None = None,
) -> Certification:
    """The table of a model that was read, compared and measured."""
    outputs = Outputs(reading.checkpoint, reading.name, reading.live, reading.model, reading.audit, fixed, call)
    progress("margins")
    outputs, why_not, (margins, test_margins) = _margins(outputs, known, tests)
    why_not, found = why_not or reading.why_not, outputs.found
    notes = [] if known is None else [*known.notes, *([] if tests is None else _shared(known, tests))]
    notes += [] if tests is None or groups is not None else overlapping(tests.x)
    put = None if found is None or known is None else token_before(known, found)
    notes += [] if put is None else [f"token {put} is put before every sequence: it is what the row that is read shows"]
    notes += [] if reading.mapping is None or found is None else [f"described as {brief(reading.mapping)}"]
    setting, values, lines = None, (), list[Line]()
    if "norms" in methods and found is None:
        lines.append(Line("norms: best", refusal=f"not described: {why_not}"))
    elif found is not None and margins is not None:
        progress("norm bounds")
        setting = _setting(Setting(found.architecture, found.norms(power)), margins, delta, gamma, fixed_gamma)
        if "norms" in methods:
            setting, values, line = _norm_bounds(setting, margins, found, gamma, bounds)
            lines += line
    scores: dict[str, Score] = {}
    certificates: dict[str, PredictorCertificate] = {}
    states: dict[str, Mapping[str, Any]] = {}
    if tests is not None and test_margins is not None:
        progress("held-out")
        made, scores, others = _held_out(outputs, tests, test_margins, delta, looks, groups, against)
        certificates |= {} if made is None else {"held-out": made}
        lines += others
    ways: dict[str, Callable[[], Decoded | PredictorCertificate]] = {
        "occam": lambda: _short(outputs, known, delta, reference, make, seed),
        "p2l": lambda: _pick(make, outputs, known, delta, seed),
    }
    for method, way in ways.items():
        if method not in methods:
            continue
        progress(method)
        try:
            made = way()
        except BoundcalcError as error:
            lines.append(Line(method, refusal=str(error)))
            continue
        if isinstance(made, Decoded):
            made, states[method] = made.certificate, made.state
        certificates[method] = made
        lines.append(of_predictor(method, made))
    skipped = [method for method in _WHY_NOT if method not in methods]
    lines += [Line(method, refusal=_WHY_NOT[method] if known else "it needs the training data") for method in skipped]
    return Certification(
        reading.name,
        tuple(lines),
        delta,
        found,
        setting,
        values,
        certificates,
        scores,
        None if margins is None else (count_wrong(margins.values, len(margins.values)), len(margins.values)),
        tuple(notes),
        reading.mapping,
        states,
        outputs,
    )


def _margins(
    outputs: Outputs, known: Sequences | None, tests: Sequences | None
) -> tuple[Outputs, str, list[Margins | None]]:
    """Margins of both; of a module that is not what was described, without the description, and why."""
    both = (known, tests)
    try:
        for examples in both:
            if examples is not None and outputs.found is not None:
                fits(examples, outputs.found, outputs.model if outputs.live is not None else None)
        return outputs, "", [None if each is None else outputs.margins_of_function(each) for each in both]
    except BoundcalcError as error:
        if outputs.found is None or outputs.live is None or isinstance(error, NoFunction):
            raise
        plain = replace(outputs, model=None, found=None)
        return plain, str(error), [None if each is None else plain.margins_of_function(each) for each in both]


def _norm_bounds(
    setting: Setting, margins: Margins, found: Audit, gamma: float | None, bounds: Sequence[str]
) -> tuple[Setting, tuple[BoundValue, ...], list[Line]]:
    """The bounds by norms, at the margin that is given or the best."""
    best: BoundValue | None = None
    if gamma is None:
        try:
            setting, best = best_margin(setting, margins)
        except InvalidSetting as error:
            return setting, (), [Line("norms: best", refusal=str(error))]
    values = tuple(bounds_of(setting, list(bounds))) if best is None or tuple(bounds) != ("best",) else (best,)
    values = tuple(value.recording(found.compared) for value in values)
    return setting, values, [of_bound(value) for value in values]


def _shared(known: Sequences, tests: Sequences) -> list[str]:
    """Whether held-out sequences were met after all."""
    met = {(x.tobytes(), int(y)) for x, y in zip(known.x, known.y, strict=True)}
    if known.words != tests.words:
        raise InvalidSetting("training and test labels are not the same words: number them 0, 1, ... in both alike")
    again = sum((x.tobytes(), int(y)) in met for x, y in zip(tests.x, tests.y, strict=True))
    if not again:
        return []
    if Examples.of(known).sha256 == Examples.of(tests).sha256:
        raise InvalidSetting("the held-out sequences are the training ones: give sequences that the model has not met")
    return [
        f"{again} of {len(tests)} held-out sequences stand among the training ones too: the held-out line supposes that "
        "they are draws of their own"
    ]


_WHY_NOT = {
    "held-out": "no examples that the model has not met (test=, --test)",
    "p2l": "not run: it trains a module of its own (make=, --by p2l with --compare module.py:make)",
    "occam": "not requested (methods=, --by)",
    "pac-bayes": "its posterior must be trained (boundcalc train TASK --certify pac-bayes)",
}


def wanted_methods(methods: Sequence[str] | None, data: Any, test: Any, make: Any) -> tuple[str, ...]:
    """The methods asked for, or all that what is given allows."""
    if data is None and test is None:
        raise InvalidSetting(
            "give training data (data=, --data), or examples that the model has not met (test=, --test)"
        )
    have = {"norms": data is not None, "held-out": test is not None, "occam": data is not None}
    have["p2l"] = data is not None and make is not None
    if methods is None:
        return tuple(method for method in METHODS if have[method])
    from boundcalc.base.validate import choice

    wanted = tuple(dict.fromkeys(choice("method", method, METHODS) for method in methods))
    if "held-out" in wanted and test is None:
        raise InvalidSetting("method held-out needs sequences that the model has not met: test= (--test FILE)")
    if "p2l" in wanted and make is None:
        raise InvalidSetting("method p2l trains modules of its own: make= (--compare module.py:make)")
    if test is not None and "held-out" not in wanted:
        raise InvalidSetting("held-out sequences are given, and method held-out is not among those asked for")
    if data is None and set(wanted) != {"held-out"}:
        raise InvalidSetting(
            f"method {next(m for m in wanted if m != 'held-out')} needs the training data: data= (--data FILE)"
        )
    return wanted


def _setting(class_of: Setting, margins: Margins, delta: float, gamma: float | None, fixed: bool) -> Setting:
    """The setting with its sample, at the margin that is given or the default."""
    if fixed and gamma is None:
        raise InvalidSetting("fixed_gamma (--fixed-gamma) needs the gamma that was fixed")
    start = MARGIN if gamma is None else gamma
    seen = ("train_error",) if fixed else ("margin", "train_error")
    sample = Sample(len(margins.values), delta, start, margins.error(start), measured=seen)
    return replace(class_of, sample=sample)


def _held_out(
    outputs: Outputs, tests: Sequences, margins: Margins, delta: float, looks: int, groups: Any, against: Any
) -> tuple[PredictorCertificate | None, dict[str, Score], list[Line]]:
    """The certificate of a test set (with groups, of their votes), the scores, and the lines."""

    def judged(by: Outputs, margins: Margins) -> Judged:
        losses = wrong(margins.values).astype(np.float64)
        return Judged(by.where, losses, tuple(map(str, tests.y)), group_names(groups, len(tests)))

    own = judged(outputs, margins)
    scores, lines, made = {"error": score(own, delta, looks)}, list[Line](), None
    if groups is None:
        made = issue(
            "held-out",
            "H",
            {"errors": int(own.losses.sum()), "n": len(tests)},
            delta=delta,
            alternatives=({"delta": equal_shares(delta, looks)},),
            chosen=0,
            evidence={
                "data": named(Examples.of(tests)),
                "recipe": {"kind": "given", **outputs.recipe},
                "weights": weights_digest(outputs.checkpoint),
            },
        )
        told = of_score("held-out", scores["error"]).rests_on.partition(": ")[2]
        lines.append(replace(of_predictor("held-out", made), rests_on=f"H: {told}"))
    else:
        lines.append(of_score("held-out", scores["error"]))
    if against is not None:
        if hasattr(against, "state_dict"):
            from boundcalc.checkpoints.readers import open_checkpoint

            by = Outputs(open_checkpoint(against), type(against).__name__, against)
            other = judged(by, by.margins_of_function(tests))
        else:
            other = judge(against, list(tests.x), tests.y, "the other")
        scores["difference"] = difference(own, replace(other, groups=own.groups), delta, looks)
        lines.append(of_score(f"against {other.name}", scores["difference"]))
    return made, scores, lines


def _short(
    outputs: Outputs, known: Sequences | None, delta: float, reference: Any, make: Callable[[], Any] | None, seed: int
) -> Decoded:
    """The weights in few bits: rounded, written down, read again and counted."""
    assert known is not None  # noqa: S101 - method occam is asked for only with them
    refuse_large(sum(tensor.size for tensor in outputs.checkpoint.tensors.values() if tensor.is_float))
    network = GivenNetwork.of(outputs, reference, make, seed)
    data: Any = Examples.of(known)  # of any lengths, where Data are arrays
    return shorten(network, network.codes, network.trained, data, delta)


def _pick(
    make: Callable[[], Any] | None, outputs: Outputs, known: Sequences | None, delta: float, seed: int
) -> PredictorCertificate:
    from boundcalc.checkpoints.modules import answering
    from boundcalc.lab.train.pickers import ModuleLearner
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    assert make is not None  # noqa: S101 - method p2l is asked for only with it
    assert known is not None  # noqa: S101
    x, y = known.arrays
    fresh = answering(make, outputs.parity.row if outputs.parity else None, outputs.call)
    learner = ModuleLearner(make=fresh, name=outputs.where)
    x = x if known.tokens else x.astype(np.float32)
    return pick_to_learn(learner, Data(x, y), default_picks(len(y), delta, seed=seed), delta).certificate
