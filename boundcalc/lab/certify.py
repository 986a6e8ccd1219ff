"""`certify`: a trained model and its data in, every certificate that applies out.

A model that is at hand is held against the architecture it was described as (checkpoints.parity) before anything is printed:
a certificate of a setting that does not describe it cannot come about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints.audit import audit, chosen_family
from boundcalc.checkpoints.data import sequences
from boundcalc.checkpoints.examples import Sequences
from boundcalc.checkpoints.families import Model, Options
from boundcalc.checkpoints.layers import Fixed
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.checkpoints.passes import Call
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import compare as bounds_of
from boundcalc.lab.certification import Certification, Line, of_bound, of_predictor
from boundcalc.lab.given import GivenNetwork
from boundcalc.lab.outputs import Examples, Outputs, token_before, weights_digest
from boundcalc.lab.reading import TRIED, brief, described, fits, held_against, opened, whole
from boundcalc.predictors.certificate import PredictorCertificate, issue
from boundcalc.predictors.data import Data
from boundcalc.predictors.examples import named
from boundcalc.predictors.occam import Decoded
from boundcalc.predictors.shorten import refuse_large, shorten
from boundcalc.setting import Sample, Setting
from boundcalc.setting.sample import MARGIN

METHODS = ("norms", "held-out", "occam", "p2l")
"""What `certify` can use."""


def certify(
    model: Any,
    data: Any,
    *,
    test: Any = None,
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
    """Norms, margins, training error and every certificate that applies, in one call.

    Args:
        model: a torch module, or the path of its weights.
        data: the training sequences and their labels (checkpoints.data).
        test: sequences that the model has not met, for the test-set bound.
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
    wanted = wanted_methods(methods, test, make)
    say = progress or (lambda _: None)
    known, tests = sequences(data), None if test is None else sequences(test)
    say("reading the model")
    checkpoint, hand, name = opened(model, module)
    options = Options(seq_len, input_radius, heads, settings=settings or {})
    inputs = known.first(TRIED)
    named = chosen_family(family, mapping)
    chosen, found_mapping, parity = described(checkpoint, hand.module, named, options, inputs, call)
    if found_mapping is not None:
        options = replace(options, heads=None)
    seen, live, why_not = Model(checkpoint, chosen, options), hand.module, ""
    if parity is None:
        parity, live, why_not = held_against(seen, hand, inputs, fixed=fixed, call=call, say=say)
    say("measuring norms")
    found = audit(checkpoint, family=chosen, options=options, seed=seed, inspect=whole(name), parity=parity)
    found = replace(found, where=name, why_not=why_not)
    outputs = Outputs(seen, found, live, fixed, call)
    return answered(
        outputs,
        known,
        tests,
        delta=delta,
        gamma=gamma,
        fixed_gamma=fixed_gamma,
        bounds=bounds,
        methods=wanted,
        make=make,
        seed=seed or 0,
        mapping=found_mapping,
        progress=say,
        reference=reference,
    )


def answered(
    outputs: Outputs,
    known: Sequences,
    tests: Sequences | None,
    *,
    delta: float,
    gamma: float | None,
    bounds: Sequence[str],
    methods: Sequence[str],
    make: Callable[[], Any] | None,
    seed: int,
    mapping: Mapping[str, Any] | None,
    progress: Callable[[str], None],
    fixed_gamma: bool = False,
    power: float | None = None,
    reference: Any = None,
) -> Certification:
    """The table of a model that was read, compared and measured."""
    found = outputs.found
    fits(known, found)
    if tests is not None:
        fits(tests, found)
    progress("margins")
    margins = outputs.margins_of_function(known)
    wrong = count_wrong(margins.values, len(margins.values))
    notes = [*known.notes, *([] if tests is None else _shared(known, tests))]
    put = token_before(known, found)
    notes += [] if put is None else [f"token {put} is put before every sequence: it is what the row that is read shows"]
    notes += [] if mapping is None else [f"described as {brief(mapping)}"]
    progress("norm bounds")
    setting = _setting(Setting(found.architecture, found.norms(power)), margins, delta, gamma, fixed_gamma)
    values: tuple[BoundValue, ...] = ()
    lines: list[Line] = []
    best: BoundValue | None = None
    if "norms" in methods and gamma is None:
        try:
            setting, best = best_margin(setting, margins)
        except InvalidSetting as error:
            lines.append(Line("norms: best", refusal=str(error)))
    if "norms" in methods and not lines:
        values = tuple(bounds_of(setting, list(bounds))) if best is None or tuple(bounds) != ("best",) else (best,)
        values = tuple(value.recording(found.compared) for value in values)
        lines += map(of_bound, values)
    certificates: dict[str, PredictorCertificate] = {}
    states: dict[str, Mapping[str, Any]] = {}
    ways: dict[str, Callable[[], Decoded | PredictorCertificate]] = {
        "held-out": lambda: _held_out(outputs, tests, delta),
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
    lines += [Line(method, refusal=_WHY_NOT[method]) for method in _WHY_NOT if method not in methods]
    return Certification(
        found.where,
        tuple(lines),
        delta,
        found,
        setting,
        values,
        certificates,
        (wrong, len(known)),
        tuple(notes),
        mapping,
        states,
        outputs,
    )


def _shared(known: Sequences, tests: Sequences) -> list[str]:
    """Whether held-out sequences were met after all."""
    met = {(x.tobytes(), int(y)) for x, y in zip(known.x, known.y, strict=True)}
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
    "held-out": "no sequences that the model has not met (test=, --test)",
    "p2l": "it trains a module of its own from few picked sequences (make=, --by p2l with --compare module.py:make)",
    "occam": "not asked for (methods=, --by)",
    "pac-bayes": "its posterior must be trained, weight by weight, which boundcalc train TASK --certify pac-bayes does for the "
    "models of its own tasks",
}


def wanted_methods(methods: Sequence[str] | None, test: Any, make: Any) -> tuple[str, ...]:
    """The methods asked for, or all that what is given allows."""
    if methods is None:
        return tuple(m for m in METHODS if (m != "held-out" or test is not None) and (m != "p2l" or make is not None))
    from boundcalc.setting.validate import choice

    wanted = tuple(dict.fromkeys(choice("method", method, METHODS) for method in methods))
    if "held-out" in wanted and test is None:
        raise InvalidSetting("method held-out needs sequences that the model has not met: test= (--test FILE)")
    if "p2l" in wanted and make is None:
        raise InvalidSetting("method p2l trains modules of its own: make= (--compare module.py:make)")
    if test is not None and "held-out" not in wanted:
        raise InvalidSetting("held-out sequences are given, and method held-out is not among those asked for")
    return wanted


def _setting(class_of: Setting, margins: Margins, delta: float, gamma: float | None, fixed: bool) -> Setting:
    """The setting with its sample, at the margin that is given or the default."""
    if fixed and gamma is None:
        raise InvalidSetting("fixed_gamma (--fixed-gamma) needs the gamma that was fixed")
    start = MARGIN if gamma is None else gamma
    seen = ("train_error",) if fixed else ("margin", "train_error")
    sample = Sample(len(margins.values), delta, start, margins.error(start), measured=seen)
    return replace(class_of, sample=sample)


def _held_out(outputs: Outputs, tests: Sequences | None, delta: float) -> PredictorCertificate:
    assert tests is not None  # noqa: S101 - method held-out is asked for only with them
    margins = outputs.margins_of_function(tests)
    wrong = count_wrong(margins.values, len(margins.values))
    return issue(
        "held-out",
        "H",
        {"errors": wrong, "n": len(tests)},
        delta=delta,
        alternatives=({"delta": delta},),
        chosen=0,
        evidence={
            "data": named(Examples.of(tests)),
            "recipe": {"kind": "given", **outputs.recipe},
            "weights": weights_digest(outputs.model.checkpoint),
        },
    )


def _short(
    outputs: Outputs, known: Sequences, delta: float, reference: Any, make: Callable[[], Any] | None, seed: int
) -> Decoded:
    """The weights in few bits: rounded, written down, read again and counted."""
    refuse_large(sum(tensor.size for tensor in outputs.model.checkpoint.tensors.values() if tensor.is_float))
    network = GivenNetwork.of(outputs, reference, make, seed)
    data: Any = Examples.of(known)  # of any lengths, where Data are arrays
    return shorten(network, network.codes, network.trained, data, delta)


def _pick(
    make: Callable[[], Any] | None, outputs: Outputs, known: Sequences, delta: float, seed: int
) -> PredictorCertificate:
    from boundcalc.checkpoints.modules import answering
    from boundcalc.lab.train.pickers import ModuleLearner
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    assert make is not None  # noqa: S101 - method p2l is asked for only with it
    x, y = known.arrays
    fresh = answering(make, outputs.parity.row if outputs.parity else None, outputs.call)
    learner = ModuleLearner(make=fresh, name=outputs.found.where)
    x = x if known.tokens else x.astype(np.float32)
    return pick_to_learn(learner, Data(x, y), default_picks(len(y), delta, seed=seed), delta).certificate
