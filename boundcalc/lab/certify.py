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

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints.audit import chosen_family
from boundcalc.checkpoints.data import READS, Sequences, sequences
from boundcalc.checkpoints.errors import NoFunction
from boundcalc.checkpoints.families import Options
from boundcalc.checkpoints.margins import Margins
from boundcalc.checkpoints.recorded_pass import Call
from boundcalc.lab.certification import Certification, Line, of_predictor
from boundcalc.lab.methods import WHY_NOT, Request, by_rule, held_out, in_few_bits, norm_bounds, pick, setting_at
from boundcalc.lab.outputs import Examples, Outputs, token_before
from boundcalc.lab.reading import TRIED, brief, check_data, read_model, reject_incomplete
from boundcalc.lab.scores import certify_function, certify_predictions, overlapping
from boundcalc.layers.forward import Fixed
from boundcalc.predictors.certificate import Certified, PredictorCertificate
from boundcalc.predictors.scores import Score
from boundcalc.setting import Setting

METHODS = ("norms", "held-out", "occam", "rule", "p2l")
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
    examples, tests = None if data is None else sequences(data), with_groups(test, groups)
    say("reading the model")
    chosen = chosen_family(family, mapping)
    seen: Any = examples or tests  # wanted_methods refuses to do without both
    outputs = read_model(
        model,
        module,
        family=chosen,
        options=Options(seq_len, input_radius, heads, settings=settings or {}),
        seed=seed,
        inputs=seen.first(TRIED),
        inspect=reject_incomplete(str(model) if isinstance(model, str | Path) else type(model).__name__),
        described_only=chosen is not None,
        fixed=fixed,
        call=call,
        bits=bits,
        say=say,
    )
    request = Request(
        wanted,
        delta,
        gamma,
        fixed_gamma,
        bounds,
        None,
        reference,
        make,
        seed or 0,
        against,
        None if isinstance(groups, str) else groups,
        looks,
    )
    return answered(outputs, examples, tests, request, say)


def with_groups(test: Any, groups: Any) -> Sequences | None:
    """The test examples; with the names of their groups where `groups` is a column."""
    if isinstance(groups, str) and test is None:
        raise InvalidSetting("groups are of test examples: give some (test=, --test)")
    return None if test is None else sequences(test, groups if isinstance(groups, str) else None)


def answered(
    outputs: Outputs,
    training: Sequences | None,
    tests: Sequences | None,
    request: Request,
    progress: Callable[[str], None],
) -> Certification:
    """The table of a model that was read, compared and measured."""
    delta, methods = request.delta, request.methods
    groups = request.groups if tests is None or tests.groups is None else tests.groups
    progress("margins")
    outputs, why_not, (margins, test_margins) = _margins(outputs, training, tests)
    why_not, audit = why_not or outputs.why_not, outputs.audit
    notes = [note for examples in (training or tests,) if examples is not None for note in examples.notes]
    notes += [] if training is None or tests is None else _shared(training, tests)
    notes += [] if tests is None or groups is not None else overlapping(tests.x)
    put = None if audit is None or training is None else token_before(training, audit)
    notes += [] if put is None else [f"token {put} is put before every sequence: it is what the row that is read shows"]
    notes += [] if outputs.mapping is None or audit is None else [f"described as {brief(outputs.mapping)}"]
    setting, values, lines = None, (), list[Line]()
    if "norms" in methods and audit is None:
        lines.append(Line("norms: best", refusal=f"not described: {why_not}"))
    elif audit is not None and margins is not None:
        progress("norm bounds")
        setting = setting_at(Setting(audit.architecture, audit.norms(request.power)), margins, request)
        if "norms" in methods:
            setting, values, line = norm_bounds(setting, margins, audit, request.gamma, request.bounds)
            lines += line
    scores: dict[str, Score] = {}
    certificates: dict[str, PredictorCertificate] = {}
    states: dict[str, Mapping[str, Any]] = {}
    if tests is not None and test_margins is not None:
        progress("held-out")
        certificate, scores, others = held_out(outputs, tests, test_margins, request, groups)
        certificates |= {} if certificate is None else {"held-out": certificate}
        lines += others
    ways: dict[str, Callable[[], Certified | PredictorCertificate]] = {
        "occam": lambda: in_few_bits(outputs, training, request),
        "rule": lambda: by_rule(outputs, training, request),
        "p2l": lambda: pick(outputs, training, request),
    }
    for method, way in ways.items():
        if method not in methods:
            continue
        progress(method)
        try:
            certificate = way()
        except BoundcalcError as error:
            lines.append(Line(method, refusal=str(error)))
            continue
        if isinstance(certificate, Certified):
            certificate, states[method] = certificate.certificate, certificate.state
        certificates[method] = certificate
        lines.append(of_predictor(method, certificate))
    for method, why in WHY_NOT.items():
        if method not in methods:
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


def _shared(training: Sequences, tests: Sequences) -> list[str]:
    """Whether held-out sequences were met after all."""
    met = {(x.tobytes(), int(y)) for x, y in zip(training.x, training.y, strict=True)}
    if training.words != tests.words:
        raise InvalidSetting("training and test labels are not the same words: number them 0, 1, ... in both alike")
    if len({note for examples in (training, tests) for note in examples.notes if note.startswith(READS)}) > 1:
        raise InvalidSetting(
            "training and test table have other columns, or the same in another order: sort them alike"
        )
    again = sum((x.tobytes(), int(y)) in met for x, y in zip(tests.x, tests.y, strict=True))
    if not again:
        return []
    if Examples.of(training).sha256 == Examples.of(tests).sha256:
        raise InvalidSetting("the held-out sequences are the training ones: give sequences that the model has not met")
    return [
        f"{again} of {len(tests)} held-out sequences stand among the training ones too: the held-out line supposes "
        "that they are draws of their own"
    ]


def wanted_methods(methods: Sequence[str] | None, data: Any, test: Any, make: Any) -> tuple[str, ...]:
    """The requested methods, or all that the arguments allow."""
    if data is None and test is None:
        raise InvalidSetting(
            "give training data (data=, --data), or examples that the model has not met (test=, --test)"
        )
    have = {"norms": data is not None, "held-out": test is not None, "occam": data is not None}
    have["rule"] = data is not None
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
        raise InvalidSetting("held-out sequences are given, and method held-out is not among those requested")
    if data is None and set(wanted) != {"held-out"}:
        raise InvalidSetting(
            f"method {next(m for m in wanted if m != 'held-out')} needs the training data: data= (--data FILE)"
        )
    return wanted
