"""`certify`: a trained model and its data in, every certificate that applies out.

A model that is at hand is held against the architecture it was described as (checkpoints.parity) before anything is printed:
a certificate of a setting that does not describe it cannot come about.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.rounding import confidence, up
from boundcalc.checkpoints.attended import Attended, attended
from boundcalc.checkpoints.audit import Audit, audit, chosen_family
from boundcalc.checkpoints.data import Sequences, sequences
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families import Family, Model, Options, family_for
from boundcalc.checkpoints.margins import Margins, best_margin, margins_of
from boundcalc.checkpoints.network import Fixed, Network
from boundcalc.checkpoints.parity import NOT_COMPARED, ROUNDING, Call, Parity, compare, rows_of_images
from boundcalc.checkpoints.readers import Checkpoint, open_checkpoint
from boundcalc.engine.evaluate import BoundValue
from boundcalc.engine.evaluate import compare as bounds_of
from boundcalc.predictors.certificate import PredictorCertificate, issue
from boundcalc.predictors.data import Data, digest_of_arrays
from boundcalc.setting import Attention, Embedding, Sample, Setting
from boundcalc.setting.layer import of_class
from boundcalc.setting.sample import MARGIN

_METHODS = ("norms", "held-out", "p2l")
"""What `certify` can use. Methods that train in a way of their own (occam, pac-bayes) belong to `boundcalc train`."""
TRIED = 4
"""Sequences of the data in the forward check."""


@dataclass(frozen=True)
class Line:
    """One certificate, or why there is none.

    Attributes:
        method: how it was come by.
        risk: bounds the probability of a wrong answer; None where nothing is said.
        gap: bounds risk less the share of training margins at most gamma; of norm bounds alone.
        trivial: which of the two come from a proof that covers nothing, so that they are no numbers.
        rests_on: the statement, and what it was given.
        speaks_of: which predictor it is about.
        refusal: why there is nothing.
    """

    method: str
    risk: float | None
    gap: float | None = None
    rests_on: str = ""
    speaks_of: str = ""
    refusal: str | None = None
    trivial: tuple[str, ...] = ()

    def cell(self, name: str) -> str:
        """The risk or the gap as it is shown, rounded up."""
        value: float | None = getattr(self, name)
        if name in self.trivial:
            return "trivial"
        return ("" if name == "gap" else "-") if value is None else "1" if value >= 1 else up(value, 4)


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
    attention: Attended | None = None

    @property
    def parity(self) -> Parity | None:
        """The forward check; None where no module was at hand."""
        return self.audit.parity

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
            self.parity.text if self.parity else NOT_COMPARED,
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
        lines = ["   ".join([*(row[i].ljust(widths[i]) for i in range(4)), row[4]]).rstrip() for row in rows]
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
            "forward_check": self.parity.to_json() if self.parity else {"compared": False, "text": NOT_COMPARED},
            "training": {"errors": self.errors[0], "n": self.errors[1]},
            "margin": self.setting.sample.margin,
            "lines": [line.__dict__ for line in self.lines],
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
        module: with a path, the module of these weights: "module.py:make", or itself. Models of the transformers library
            are loaded.
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
        methods: which of `_METHODS`; unset, all that what is given allows.
        make: makes a fresh module, for p2l, which trains one of its own.
        call: how the module is called, where module(x) is not it.
        fixed: rotations and other things that are fixed before the data, where the module does not say them.
        seed: of random probes, and of p2l.
        attention: also say where the heads of a module that returns its attentions look; positions that matter may be named.
        progress: told what is being done.

    Returns:
        Everything that was found, each certificate with its kind.
    """
    wanted = wanted_methods(methods, test, make)
    say = progress or (lambda _: None)
    known, tests = sequences(data), None if test is None else sequences(test)
    say("reading the model")
    checkpoint, live, name = _at_hand(model, module)
    options = Options(seq_len, input_radius, heads, settings=settings or {})
    inputs = known.first(TRIED)
    chosen, found_mapping = described(checkpoint, live, chosen_family(family, mapping), options, inputs, call)
    if found_mapping is not None:
        options = replace(options, heads=None)
    seen = Model(checkpoint, chosen, options)
    say("the forward check")
    parity = (
        None if live is None else compare(live, seen, seen.family.architecture(seen), inputs, fixed=fixed, call=call)
    )
    say("measuring norms")
    found = audit(checkpoint, family=chosen, options=options, seed=seed, inspect=_whole(name))
    found = replace(found, parity=parity, where=name)
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
    notes += [] if mapping is None else [f"described as {_brief(mapping)}"]
    setting, refusal = _setting(Setting(found.architecture, found.norms(power)), margins, delta, gamma, fixed_gamma)
    progress("norm bounds")
    values = tuple(bounds_of(setting, list(bounds))) if "norms" in methods and refusal is None else ()
    lines = [_of_bound(value) for value in values]
    if refusal is not None and "norms" in methods:
        lines.append(Line("norms: best", None, refusal=refusal))
    certificates: dict[str, PredictorCertificate] = {}
    for method in ("held-out", "p2l"):
        if method not in methods:
            continue
        progress(method)
        try:
            made = (
                _held_out(outputs, tests, delta) if method == "held-out" else _pick(make, outputs, known, delta, seed)
            )
            certificates[method] = made
            lines.append(_of_predictor(method, made))
        except BoundcalcError as error:
            lines.append(Line(method, None, refusal=str(error)))
    lines += [Line(method, None, refusal=_WHY_NOT[method]) for method in _WHY_NOT if method not in methods]
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
    )


def _shared(known: Sequences, tests: Sequences) -> list[str]:
    """Whether held-out sequences were met after all."""
    met = {(x.tobytes(), int(y)) for x, y in zip(known.x, known.y, strict=True)}
    again = sum((x.tobytes(), int(y)) in met for x, y in zip(tests.x, tests.y, strict=True))
    if not again:
        return []
    return [
        f"{again} of {len(tests)} held-out sequences stand among the training ones too: the held-out line supposes that "
        "they are draws of their own"
    ]


_WHY_NOT = {
    "held-out": "no sequences that the model has not met (test=, --test)",
    "p2l": "it trains a module of its own from few picked sequences (make=, --by p2l with --compare module.py:make)",
    "occam": "it searches a short code while it trains: boundcalc train TASK --certify occam",
    "pac-bayes": "it draws a network around one that it trains: boundcalc train TASK --certify pac-bayes",
}


def wanted_methods(methods: Sequence[str] | None, test: Any, make: Any) -> tuple[str, ...]:
    """The methods asked for, or all that what is given allows."""
    if methods is None:
        return tuple(m for m, there in zip(_METHODS, (True, test is not None, make is not None), strict=True) if there)
    from boundcalc.setting.validate import choice

    wanted = tuple(dict.fromkeys(choice("method", method, _METHODS) for method in methods))
    if "held-out" in wanted and test is None:
        raise InvalidSetting("method held-out needs sequences that the model has not met: test= (--test FILE)")
    if "p2l" in wanted and make is None:
        raise InvalidSetting("method p2l trains modules of its own: make= (--compare module.py:make)")
    if test is not None and "held-out" not in wanted:
        raise InvalidSetting("held-out sequences are given, and method held-out is not among those asked for")
    return wanted


def _at_hand(model: Any, module: Any) -> tuple[Checkpoint, Any, str]:
    """The tensors, the module where there is one, and a name."""
    if not isinstance(model, str | Path):
        from boundcalc.checkpoints.modules import bare

        if module is not None:
            raise InvalidSetting("the model is a module already: leave out module")
        inner = bare(model)
        return open_checkpoint(inner), inner, type(inner).__name__
    checkpoint = open_checkpoint(model)
    if isinstance(module, str):
        from boundcalc.checkpoints.modules import made_by

        return checkpoint, made_by(module, checkpoint), str(model)
    if module is not None:
        from boundcalc.checkpoints.modules import with_weights

        return checkpoint, with_weights(module, checkpoint), str(model)
    return checkpoint, of_library(Path(model), checkpoint), str(model)


def of_library(path: Path, checkpoint: Checkpoint) -> Any:
    """The model of a folder as the transformers library loads it, if it does; None of other checkpoints."""
    named = checkpoint.config.get("architectures")
    if not path.is_dir() or "model_type" not in checkpoint.config or not isinstance(named, list) or len(named) != 1:
        return None
    try:
        import transformers
    except ModuleNotFoundError:
        return None
    cls = getattr(transformers, str(named[0]), None)
    if cls is None:
        return None
    try:
        return cls.from_pretrained(str(path), local_files_only=True, dtype="auto")
    except (OSError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"the transformers library does not load {path} as {named[0]}: {' '.join(str(error).split())[:200]}"
        ) from error


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
    if data.longest > architecture.seq_len:
        raise InvalidSetting(f"a sequence of {data.longest} rows, but T is {architecture.seq_len}: say seq_len (--T)")
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


@dataclass(frozen=True)
class Outputs:
    """What the model answers: the module where it is at hand, else the architecture as described."""

    model: Model
    found: Audit
    live: Any
    fixed: Fixed | None = None
    call: Call | None = None

    @property
    def parity(self) -> Parity | None:
        """The forward check."""
        return self.found.parity

    def margins(self, data: Sequences) -> Margins:
        """Margins, less what rounding may have added to them."""
        out = self(data)
        tolerance = ROUNDING if self.parity is None else self.parity.tolerance
        return margins_of(out, data.y, 2 * tolerance * float(np.abs(out).max(initial=0)))

    def __call__(self, data: Sequences) -> Any:
        answers: list[Any] = [None] * len(data)
        run = self._network() if self.live is None else self._module()
        for places, x in data.batches():
            self._check_images(x)
            out = run(x)
            for place, row in zip(places, out, strict=True):
                answers[place] = row
        return np.stack(answers)

    def _check_images(self, x: Any) -> None:
        if x.ndim != 4:
            return
        rows = rows_of_images(self.model, x)
        longest, radius = float(np.sqrt((rows**2).sum(-1)).max()), self.found.architecture.input_radius
        if longest > radius:
            raise InvalidSetting(
                f"a patch of the data has norm {longest:.6g}, but patches are taken to lie within {radius:g} (pixels in "
                "[-1, 1]): say what holds for all inputs, fixed before the data (input_radius=, --input-radius)"
            )
        if rows.shape[1] != self.found.architecture.seq_len:
            raise InvalidSetting(f"images of {rows.shape[1]} rows, but T is {self.found.architecture.seq_len}")

    def _network(self) -> Callable[[Any], Any]:
        causal = any(layer.causal for layer in of_class(self.found.architecture.stages, Attention))
        fixed = self.fixed or Fixed(rotate=self.model.family.rotate, row=-1 if causal else 0)
        network = Network(self.model, self.found.architecture, fixed)
        return lambda x: network(rows_of_images(self.model, x) if x.ndim == 4 else x)

    def _module(self) -> Callable[[Any], Any]:
        from boundcalc.checkpoints.modules import answer, as_arrays, at_row, of_double, ready

        copy, row = of_double(self.live), self.parity.row if self.parity else None

        def run(x: Any) -> Any:
            with ready():
                return at_row(answer(copy, as_arrays(x), self.call), row)

        return run


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
        return Line(method, None, refusal=str(value.refusal))
    no_risk = value.risk_refusal is not None
    trivial = ("gap",) * value.trivial + ("risk",) * (not no_risk and value.risk_trivial)
    gap = None if value.trivial else value.gap
    risk = None if no_risk or value.risk_trivial else value.risk
    rests = [] if value.trivial else [value.strategy]
    rests += (
        [f"no risk bound: {value.risk_refusal}"]
        if no_risk
        else []
        if value.risk_trivial
        else [f"risk by {value.risk_strategy}"]
    )
    if trivial:
        rests.append("trivial: no cover is worth its price at this m")
    return Line(method, risk, gap, "; ".join(["norms, P1 paid", *rests]), "the trained network", trivial=trivial)


def _of_predictor(method: str, certificate: PredictorCertificate) -> Line:
    facts = certificate.summary()
    picks = f"{facts['picks']} picks, " if "picks" in facts else ""
    return Line(
        method,
        certificate.risk,
        None,
        f"{certificate.statement}: {picks}{facts['errors']} errors of {facts['n']}",
        "the trained network" if method == "held-out" else certificate.certified,
    )


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
            "data": {"sha256": _digest(tests), "examples": len(tests)},
            "recipe": {"kind": "given", "name": Path(outputs.found.where).name},
            "weights": weights_digest(outputs.model.checkpoint),
        },
    )


def _digest(data: Sequences) -> str:
    """Of examples of one shape that of `Data`, so that a file of arrays verifies it."""
    if len({x.shape for x in data.x}) == 1:
        return Data(np.stack(list(data.x)), data.y).sha256
    return digest_of_arrays({"y": data.y} | {f"x{i}": x for i, x in enumerate(data.x)})


def weights_digest(checkpoint: Checkpoint) -> str:
    """Names the tensors of a checkpoint by every bit of them."""
    return digest_of_arrays({name: tensor.fetch() for name, tensor in checkpoint.tensors.items()})


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
