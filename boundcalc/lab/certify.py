"""`certify`: a trained model and its data in, every certificate that applies out.

A model that is at hand is held against the architecture it was described as (checkpoints.parity) before anything is printed:
a certificate of a setting that does not describe it cannot come about.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.output import make_folder
from boundcalc.base.rounding import confidence, up
from boundcalc.base.value import Value
from boundcalc.checkpoints.at_hand import AtHand, at_hand
from boundcalc.checkpoints.attended import Attended, attended
from boundcalc.checkpoints.audit import Audit, audit, chosen_family
from boundcalc.checkpoints.data import Sequences, sequences
from boundcalc.checkpoints.errors import CheckpointError, NotRun
from boundcalc.checkpoints.families import Family, Model, Options, family_for
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.checkpoints.modules import bare, called
from boundcalc.checkpoints.network import Fixed
from boundcalc.checkpoints.parity import Call, Parity, compare
from boundcalc.checkpoints.readers import Checkpoint, open_checkpoint
from boundcalc.engine.evaluate import BoundValue
from boundcalc.engine.evaluate import compare as bounds_of
from boundcalc.lab.given import GivenNetwork
from boundcalc.lab.outputs import Examples, Outputs, token_before, weights_digest
from boundcalc.predictors.certificate import PredictorCertificate, issue
from boundcalc.predictors.data import Data
from boundcalc.predictors.occam import Decoded
from boundcalc.predictors.shorten import refuse_large, shorten
from boundcalc.setting import Embedding, Sample, Setting
from boundcalc.setting.layer import of_class
from boundcalc.setting.sample import MARGIN

METHODS = ("norms", "held-out", "occam", "p2l")
"""What `certify` can use."""
_WIDE = 120
"""Columns of the table on a terminal, where it can be so narrow."""
TRIED = 4
"""Sequences of the data in the forward check."""


@dataclass(frozen=True)
class Line:
    """One certificate, or why there is none.

    Attributes:
        method: how it was come by.
        values: what it bounds: the probability of a wrong answer, and (of norm bounds) the gap of that and the share of
            training margins at most gamma.
        rests_on: the statement, and what it was given.
        speaks_of: which predictor it is about.
        refusal: why there is nothing.
    """

    method: str
    values: tuple[Value, ...] = ()
    rests_on: str = ""
    speaks_of: str = ""
    refusal: str | None = None

    def of(self, quantity: str) -> Value | None:
        """Its bound of the risk or of the gap."""
        return next((value for value in self.values if value.quantity == quantity), None)

    @property
    def risk(self) -> float | None:
        """The bound of the risk; None where nothing is said."""
        return self._number("risk")

    @property
    def gap(self) -> float | None:
        """The bound of the gap; None where nothing is said."""
        return self._number("gap")

    def _number(self, quantity: str) -> float | None:
        value = self.of(quantity)
        return None if value is None or value.trivial else value.value

    def cell(self, quantity: str) -> str:
        """The risk or the gap as it is shown, rounded up."""
        value = self.of(quantity)
        if value is None:
            return "" if quantity == "gap" else "-"
        if value.trivial:
            return "trivial"
        return "1" if float(shown := up(value.value, 4)) >= 1 else shown

    def to_json(self) -> dict[str, Any]:
        """One of the `lines` of a document."""
        trivial = [value.quantity for value in self.values if value.trivial]
        return {
            "method": self.method,
            "risk": self.risk,
            "gap": self.gap,
            "rests_on": self.rests_on,
            "speaks_of": self.speaks_of,
            "refusal": self.refusal,
            "trivial": trivial,
        }


@dataclass(frozen=True)
class Certification:
    """Every certificate of a trained model that applies, each by itself with probability at least 1 - delta.

    Attributes:
        model: what was certified.
        lines: the table.
        delta: failure probability of each line.
        audit: norms, and where every tensor went.
        setting: the architecture, its norms and the sample of the norm bounds.
        bounds: the norm bounds, with their checked certificates.
        certificates: of the predictor, by method.
        errors: wrong answers among the training sequences, and how many these are.
        notes: what else must be said.
        mapping: how the model was described, where no family was known for it.
        states: the weights of certified predictors that are not the trained network, by method.
        outputs: what answers, for `lab.given.GivenNetwork.of`, which certificates are established again with.
        attention: where its heads look, if that was asked.
    """

    model: str
    lines: tuple[Line, ...]
    delta: float
    audit: Audit
    setting: Setting
    bounds: tuple[BoundValue, ...]
    certificates: Mapping[str, PredictorCertificate]
    errors: tuple[int, int]
    notes: tuple[str, ...] = ()
    mapping: Mapping[str, Any] | None = field(default=None, repr=False)
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    outputs: Outputs | None = field(default=None, repr=False)
    attention: Attended | None = None

    @property
    def parity(self) -> Parity | None:
        """The forward check; None where no module was at hand."""
        return self.audit.parity

    def save(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write every certificate into a folder; `boundcalc verify` reads each. What says nothing has none."""
        place = make_folder(folder)
        written: list[Path] = []
        for value in self.bounds:
            proofs = {"gap": value.by_gap, "risk": value.by_risk} if value.refusal is None else {}
            for quantity, proof in proofs.items():
                if proof is not None and not proof.trivial:
                    written.append(place / f"norms-{value.name}-{quantity}.json")
                    proof.certificate.save(written[-1], force=force)
        for method, certificate in self.certificates.items():
            written.append(place / f"{method}.json")
            certificate.save(written[-1], force=force)
        return written

    def __getitem__(self, method: str) -> Line:
        """The line of a method."""
        return next(line for line in self.lines if line.method == method)

    @property
    def head(self) -> tuple[str, ...]:
        """What the table is about."""
        account, (wrong, n) = self.audit.account, self.errors
        rows, gamma = self.setting.architecture.seq_len, self.setting.sample.margin
        return (
            f"{self.model}: family {self.audit.family}, {account.total:,} parameters, {account.used:,} of them bounded; "
            f"T {rows}, gamma {gamma:g}",
            self.audit.comparison,
            f"{wrong} of {n} training sequences are answered wrongly; {self.setting.sample.train_error:g} of them have "
            f"margins at most {self.setting.sample.margin:g}",
            *self.notes,
            *(self.attention.lines if self.attention else ()),
        )

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Headings and rows, as text; values are rounded up."""
        rows = [("method", "risk <=", "gap <=", "speaks of", "rests on")]
        for line in self.lines:
            if line.refusal is not None:
                rows.append((line.method, "-", "-", "", line.refusal))
                continue
            rows.append((line.method, line.cell("risk"), line.cell("gap"), line.speaks_of, line.rests_on))
        return tuple(rows)

    @property
    def text(self) -> str:
        """For a terminal."""
        rows = self.table
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines: list[str] = []
        for row in rows:
            start = "".join(row[i].ljust(widths[i] + 3) for i in range(4))
            first, *rest = textwrap.wrap(row[4], max(40, _WIDE - len(start)), break_long_words=False) or [""]
            lines += [(start + first).rstrip(), *(" " * len(start) + more for more in rest)]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*self.head, "", *lines, "", self.foot])

    @property
    def foot(self) -> str:
        """How the lines are to be read together."""
        return (
            f"Each line holds by itself with probability at least {confidence(self.delta)}; which is smallest was not fixed "
            "before. Values are rounded up; 1 says nothing."
        )

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = ([html.escape(cell) for cell in row] for row in self.table)
        top = "".join(f"<th>{cell}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        said = "".join(f"<p>{html.escape(line)}</p>" for line in (*self.head, self.foot))
        return f"{said}<table><tr>{top}</tr>{body}</table>"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "model": self.model,
            "delta": self.delta,
            "forward_check": self.audit.to_json()["forward_check"],
            "training": {"errors": self.errors[0], "n": self.errors[1]},
            "margin": self.setting.sample.margin,
            "lines": [line.to_json() for line in self.lines],
            "bounds": [value.to_json() for value in self.bounds],
            "notes": list(self.notes),
            "attention": self.attention.to_json() if self.attention else None,
        }


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
    attention: bool | Sequence[int] = False,
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
        attention: also say where the heads of a module that returns its attentions look; positions that matter may be named.
        progress: told what is being done.

    Returns:
        Everything that was found, each certificate with its kind.
    """
    wanted = wanted_methods(methods, test, make)
    say = progress or (lambda _: None)
    known, tests = sequences(data), None if test is None else sequences(test)
    say("reading the model")
    checkpoint, hand, name = _opened(model, module)
    options = Options(seq_len, input_radius, heads, settings=settings or {})
    inputs = known.first(TRIED)
    chosen, found_mapping = described(checkpoint, hand.module, chosen_family(family, mapping), options, inputs, call)
    if found_mapping is not None:
        options = replace(options, heads=None)
    seen = Model(checkpoint, chosen, options)
    say("measuring norms")
    found = audit(checkpoint, family=chosen, options=options, seed=seed, inspect=_whole(name))
    found, live = held_against(replace(found, where=name), seen, hand, inputs, fixed=fixed, call=call, say=say)
    outputs = Outputs(seen, found, live, fixed, call)
    looks = None if attention is False else _looks(live, known, attention, call)
    done = answered(
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
    return replace(done, attention=looks)


def _looks(live: Any, known: Sequences, asked: bool | Sequence[int], call: Call | None) -> Attended:
    if live is None:
        raise InvalidSetting("where heads look is read off a module that runs: give the module, not only its weights")
    return attended(live, known, given=() if isinstance(asked, bool) else tuple(asked), call=call)


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
    _fits(known, found)
    if tests is not None:
        _fits(tests, found)
    progress("margins")
    margins = outputs.margins(known)
    wrong = int((margins.values <= 0).sum())
    notes = [*known.notes, *([] if tests is None else _shared(known, tests))]
    put = token_before(known, found)
    notes += [] if put is None else [f"token {put} is put before every sequence: it is what the row that is read shows"]
    notes += [] if mapping is None else [f"described as {_brief(mapping)}"]
    setting, refusal = _setting(Setting(found.architecture, found.norms(power)), margins, delta, gamma, fixed_gamma)
    progress("norm bounds")
    values: tuple[BoundValue, ...] = ()
    if "norms" in methods and refusal is None:
        values = tuple(value.recording(found.compared) for value in bounds_of(setting, list(bounds)))
    lines = [_of_bound(value) for value in values]
    if refusal is not None and "norms" in methods:
        lines.append(Line("norms: best", refusal=refusal))
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
        lines.append(_of_predictor(method, made))
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


def _opened(model: Any, module: Any) -> tuple[Checkpoint, AtHand, str]:
    """The tensors, the module where there is one, and a name."""
    if not isinstance(model, str | Path):
        if module is not None:
            raise InvalidSetting("the model is a module already: leave out module")
        inner = bare(model)
        return open_checkpoint(inner), AtHand(inner, name=called(inner), asked=True), type(inner).__name__
    checkpoint = open_checkpoint(model)
    return checkpoint, at_hand(model, checkpoint, module), str(model)


def described(
    checkpoint: Checkpoint, live: Any, chosen: str | Family | None, options: Options, inputs: Any, call: Call | None
) -> tuple[Family, Mapping[str, Any] | None]:
    """The family; of a module of none the mapping that agrees with it."""
    if isinstance(chosen, Family):
        return chosen, None
    try:
        family = family_for(checkpoint, chosen)
        if chosen is not None or live is None or not Model(checkpoint, family, options).unknown:
            return family, None
    except CheckpointError:
        if live is None or chosen is not None or checkpoint.config.get("model_type"):
            raise
    from boundcalc.checkpoints.describe import describe
    from boundcalc.checkpoints.families.mapping import read_mapping

    found, _ = describe(live, checkpoint, inputs=inputs, heads=options.heads, call=call)
    return read_mapping(found), found


def held_against(
    found: Audit,
    model: Model,
    hand: AtHand,
    inputs: Any = None,
    *,
    fixed: Fixed | None = None,
    call: Call | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Audit, Any]:
    """The audit with the forward check, and the module that answers; refused where module and description part.

    What keeps a module that nobody asked for from being run is said, and no more.
    """
    if hand.module is None and hand.load is None:
        return replace(found, why_not=hand.why), None
    if not hand.asked and (found.account.unknown or found.account.doubts):
        return replace(found, why_not="what the files say is doubted as it is"), None
    say(f"a forward pass of {hand.name}")
    try:
        live = hand.load() if hand.load is not None else hand.module
        parity = compare(live, model, found.architecture, inputs, fixed=fixed, call=call)
    except NotRun as error:
        if hand.asked:
            raise
        return replace(found, why_not=str(error)), None
    return replace(found, parity=parity), live


def _brief(mapping: Mapping[str, Any] | None) -> str:
    """A description in few words."""
    said = (mapping or {}).get("architecture", {})
    words = [
        f"{name} {value}"
        for name, value in said.items()
        if name in ("style", "depth", "d", "heads", "activation", "eps")
    ]
    words += [name for name in ("causal", "residual", "gated") if said.get(name)]
    extra = [f"{role} times {factor:g}" for role, factor in (mapping or {}).get("scales", {}).items()]
    return ", ".join([*words, *extra])


def _whole(name: str) -> Callable[[str, Any, tuple[str, ...]], None]:
    """Refuses a model that is not, or not surely, what would be bounded."""

    def inspect(family: str, account: Any, missing: tuple[str, ...]) -> None:
        if account.unknown:
            raise InvalidSetting(
                f"{name} has {account.unknown[0]}, which the family {family!r} does not know, so a bound may not be about "
                "this model: describe it with a mapping (boundcalc norms MODEL --template mapping.json)"
            )
        if account.doubts:
            raise InvalidSetting(f"{name} may not be what would be bounded: {account.doubts[0].text}")
        if missing:
            raise InvalidSetting(
                f"{name} has no {missing[0]}, so it answers nothing: certify a model with its read-out"
            )

    return inspect


def _fits(data: Sequences, found: Audit) -> None:
    """Data that the class of inputs does not hold would make the bound one of something else."""
    architecture = found.architecture
    tables = [layer for layer in of_class(architecture.stages, Embedding) if layer.vocabulary]
    if bool(tables) != data.tokens:
        have, needs = ("tokens", "rows or images") if data.tokens else ("rows", "tokens")
        raise InvalidSetting(f"the data hold {have}, the model reads {needs}")
    longest = data.longest + (token_before(data, found) is not None)
    if longest > architecture.seq_len:
        raise InvalidSetting(f"a sequence of {longest} rows, but T is {architecture.seq_len}: say seq_len (--T)")
    if tables:
        top = max(int(x.max()) for x in data.x)
        low = min(int(x.min()) for x in data.x)
        if top >= tables[0].vocabulary or low < 0:
            raise InvalidSetting(f"tokens from {low} to {top}, but the model has {tables[0].vocabulary}")
        return
    if data.x[0].ndim == 2:
        longest = max(float(np.sqrt((np.asarray(x, np.float64) ** 2).sum(-1)).max()) for x in data.x)
        if longest > architecture.input_radius:
            raise InvalidSetting(
                f"a row of the data has norm {longest:.6g}, but inputs are taken to lie within {architecture.input_radius:g}: "
                "say what holds for all inputs, fixed before the data (input_radius=, --input-radius)"
            )


def _setting(
    class_of: Setting, margins: Margins, delta: float, gamma: float | None, fixed: bool
) -> tuple[Setting, str | None]:
    """The setting at its margin, and why there is none that says something."""
    if fixed and gamma is None:
        raise InvalidSetting("fixed_gamma (--fixed-gamma) needs the gamma that was fixed")
    start = MARGIN if gamma is None else gamma
    seen = ("train_error",) if fixed else ("margin", "train_error")
    sample = Sample(len(margins.values), delta, start, margins.error(start), measured=seen)
    setting = replace(class_of, sample=sample)
    if gamma is not None:
        return setting, None
    try:
        return best_margin(setting, margins), None
    except InvalidSetting as error:
        return setting, str(error)


def _of_bound(value: BoundValue) -> Line:
    method = f"norms: {value.name}"
    if value.refusal is not None:
        return Line(method, refusal=str(value.refusal))
    values = [value.of("gap")] + ([value.of("risk")] if value.risk_refusal is None else [])
    rests = [f"risk by {each.form}" if each.quantity == "risk" else each.form for each in values if not each.trivial]
    if value.risk_refusal is not None:
        rests.append(f"no risk bound: {value.risk_refusal}")
    if any(each.trivial for each in values):
        rests.append("trivial: no cover is worth its price at this m")
    return Line(method, tuple(values), "; ".join(["norms, P1 paid", *rests]), "the trained network")


def _of_predictor(method: str, certificate: PredictorCertificate) -> Line:
    facts = certificate.summary()
    cost = f"{facts['picks']} picks, " if "picks" in facts else ""
    cost += f"{math.ceil(facts['bits']):,} bits{_start(certificate)}, " if "bits" in facts else ""
    return Line(
        method,
        (certificate.bound,),
        f"{certificate.statement}: {cost}{facts['errors']} error{'s' * (facts['errors'] != 1)} of {facts['n']}",
        "the trained network" if method == "held-out" else certificate.certified,
    )


def _start(certificate: PredictorCertificate) -> str:
    """What the bits are relative to, where it is not zeros."""
    relative = certificate.alternatives[certificate.chosen]["checkpoint"] is not None
    return f" from {certificate.evidence['recipe']['reference']} on" if relative else ""


def _held_out(outputs: Outputs, tests: Sequences | None, delta: float) -> PredictorCertificate:
    assert tests is not None  # noqa: S101 - method held-out is asked for only with them
    margins = outputs.margins(tests)
    wrong = int((margins.values <= 0).sum())
    return issue(
        "held-out",
        "H",
        {"errors": wrong, "n": len(tests)},
        delta=delta,
        alternatives=({"delta": delta},),
        chosen=0,
        evidence={
            "data": {"sha256": Examples.of(tests).sha256, "examples": len(tests)},
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
