"""`boundcalc verify`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from boundcalc.base.compared import describe_comparison
from boundcalc.base.errors import CertificateError
from boundcalc.base.files import read_text
from boundcalc.base.rounding import confidence, down, log10_up, up, value_up
from boundcalc.cli.files import PythonName
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.setting import FILE
from boundcalc.cli.text import say, say_checked, wrapped
from boundcalc.cli.values import short, shown, upper

if TYPE_CHECKING:
    from boundcalc.proof.certificate import Certificate
    from boundcalc.setting import Setting

_SHOWN_BUDGETS = 12
_FLOOR_FORMAT = "boundcalc-floor/1"


@click.command(
    epilog="""\b
Examples:
  boundcalc eval --depth 2 --certificate gap.json
  boundcalc verify gap.json
  boundcalc verify gap.json --format json
  boundcalc verify p2l.json --data examples.npz
  boundcalc verify rule.json --model model.safetensors

Exit code 0 if the claim follows, 1 if it does not or the file cannot be read.""",
)
@click.argument("file", type=FILE)
@form_option("table", "json")
@click.option(
    "--data",
    type=PythonName(),
    metavar="DATA",
    help="Examples: establish the facts of a predictor's certificate again (.npz, as they were written).",
)
@click.option(
    "--model", type=FILE, help="Weights that a rule is proved of (default: CERTIFICATE's name, ending in .safetensors)."
)
def command(file: str, form: str, data: str | None, model: str | None) -> None:
    """Re-derive the value of a certificate and compare it with the claims.

    Only checkers run. Every step is done again, from the setting up, in interval arithmetic and in 50 digits by a
    second checker, which stands alone (python -m boundcalc.proof.second FILE), or from the facts that the certificate
    of one predictor is based on.
    """
    from boundcalc.base.files import parse_json
    from boundcalc.predictors.certificate import is_predictor_certificate

    text = _text(file)
    raw = parse_json(text, file, CertificateError)
    if is_predictor_certificate(raw):
        from boundcalc.cli.predictors import verify_file

        verify_file(file, raw, data, form, model)
        return
    if data is not None or model is not None:
        raise click.UsageError("--data and --model belong to the certificate of a predictor; this one is of a class")
    if isinstance(raw, dict) and str(raw.get("format")).startswith("boundcalc-score/"):
        _verify_score(file, raw, form)
        return
    if isinstance(raw, dict) and raw.get("format") == _FLOOR_FORMAT:
        _verify_floor(file, raw, form)
        return
    from boundcalc.proof.certificate import Certificate
    from boundcalc.proof.checker import verify

    try:
        certificate = Certificate.from_json(raw)
        values = _Found(verify(certificate).log_value, *_alone(text))
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}") from error
    if form == "json":
        write_json(_document(certificate, values))
        return
    claim, *lines = _lines(certificate, values)
    say_checked(True, claim)
    for line in lines:
        label, gap, text = line.partition("  ")
        first = f"{label:8}  " if gap and " " not in label else ""
        click.echo("\n".join(wrapped((text if first else line).split(), first=first)))


def _verify_score(file: str, raw: Any, form: str) -> None:
    """The score of a test set, from its facts."""
    from boundcalc.lab.certification import of_score
    from boundcalc.predictors.scores import Score

    try:
        score = Score.from_json(raw)
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}") from error
    if form == "json":
        write_json({"verified": True, **score.to_json()})
        return
    line = of_score("score", score)
    say_checked(True, f"verified: {score.claim}")
    say(f"{'proof':10}  {line.based_on}")
    say(f"{'model':10}  {', '.join(score.names)} (on record, not checked here)")
    say(f"{'facts':10}  taken as they stand, of independent examples that the models had not met")


def _verify_floor(file: str, raw: Any, form: str) -> None:
    """A floor, by both checkers."""
    from boundcalc.proof import second
    from boundcalc.proof.floor import read_floor

    try:
        floor = read_floor(raw)
        second.derive_floor(raw)
    except (CertificateError, second.Refused) as error:
        raise CertificateError(f"{file}: {error}") from error
    sample = floor.setting.sample
    if form == "json":
        write_json({**floor.to_json(), "verified": True})
        return
    sure = f"with probability {confidence(sample.delta)}"
    say_checked(True, f"verified: no bound that holds {sure} is below {down(floor.value, 6)}")
    for label, text in (("of", floor.of), *_about(floor.setting)):
        say(f"{label:8}  {text}")
    say(f"{'members':8}  construction {floor.construction.name} ({floor.construction.title}), counted by {floor.by}")


class _Found(NamedTuple):
    """A log that is at least that of the value, by each checker, and how large the one that stands alone is."""

    first: float
    second: float
    modules: int
    lines: int


def _text(file: str) -> str:
    try:
        return read_text(file, error=CertificateError)
    except OSError as error:
        raise CertificateError(f"cannot read {file}: {error.strerror or error}") from None


def _alone(text: str) -> tuple[float, int, int]:
    """What the checker that stands alone makes of a file's text: all that is printed is based on it."""
    from boundcalc.proof import second

    try:
        confirmed = second.confirm(text)
    except second.Refused as error:
        raise CertificateError(f"the second checker, which stands alone, does not confirm it: {error}") from None
    return math.nextafter(float(confirmed.log_value), math.inf), *second.size()


def _lines(certificate: Certificate, values: _Found) -> list[str]:
    """What was verified, in words: the claim, what it is about, and what it is based on."""
    sample = certificate.setting.sample
    at = f" at margin training error {up(sample.train_error)}" if certificate.quantity == "risk" else ""
    log10 = log10_up(values.second)
    vacuous = " (vacuous: above 1)" if log10 >= 0 else ""
    sure = f"with probability at least {confidence(sample.delta)}"
    levels = len(certificate.levels)
    claim = f"verified: {certificate.quantity}{at} <= {upper(log10, 6)}{vacuous}, {sure}"
    said_levels = f", {levels} level{'s' * (levels != 1)}" if levels else ""
    how = f"strategy {certificate.strategy}{said_levels}; "
    if certificate.trivial:
        claim = f"verified, and trivial: no cover is counted, so it bounds nothing about the {certificate.quantity}"
        how = ""
    digits, interval = (upper(log / math.log(10), 12) for log in (values.second, values.first))
    return [
        claim,
        *(f"{label:8}  {text}" for label, text in _about(certificate.setting)),
        f"{'model':8}  {describe_comparison(certificate.compared)} (on record, not checked here)",
        f"{'measured':8}  {_measured(certificate)}",
        f"{'proof':8}  kind {certificate.kind.replace('_', ' ')}; {how}found by {certificate.policy!r}",
        f"{'second':8}  confirmed by the checker that stands alone: {digits}, in 50 digits",
        f"{'first':8}  confirmed in interval arithmetic: {interval}",
    ]


def _about(setting: Setting) -> list[tuple[str, str]]:
    """Everything the claim is about."""
    full = setting.complete_json()
    architecture, sample = full["architecture"], full["sample"]
    if architecture["layers"] is not None:
        network = ", ".join(layer["layer"] for layer in architecture["layers"])
        shown = {name: architecture[name] for name in ("seq_len", "input_radius", "classes", "bits")}
        shown = {name: value for name, value in shown.items() if value is not None}
        network = f"layers {network}; {_names_and_values(shown)}"
    else:
        normaliser = architecture.pop("normaliser")
        del architecture["layers"]
        chosen = {name: value for name, value in architecture.items() if value is not None and value is not False}
        network = f"{_names_and_values(chosen)}, normaliser {normaliser.pop('name')}"
        fields = {name: value for name, value in normaliser.items() if value is not None}
        network += f" ({_names_and_values(fields)})" if fields else ""
    budgets = [f"{key} {_names_and_values(limits)}" for key, limits in full["norms"]["budgets"].items()]
    hidden = len(budgets) - _SHOWN_BUDGETS
    budgets = [*budgets[:_SHOWN_BUDGETS], *([f"and {hidden} more (--format json)"] if hidden > 0 else [])]
    knob = [] if setting.norms.C is None else [f"C {short(setting.norms.C)} for all budgets not set"]
    seen = {name: value for name, value in sample.items() if value is not None and value != []}
    return [("network", network), ("norms", "; ".join([*knob, *budgets])), ("sample", _names_and_values(seen))]


def _names_and_values(values: dict[str, Any]) -> str:
    words = {
        name: f"({_names_and_values(value)})" if isinstance(value, dict) else shown(value)
        for name, value in values.items()
    }
    return ", ".join(f"{name} {word}" for name, word in words.items())


def _measured(certificate: Certificate) -> str:
    if certificate.measured is None:
        return "nothing: budgets were fixed in advance, so no correction"
    seen = certificate.measured.sample
    what = [] if certificate.measured.norms is None else ["norms of trained weights"]
    what += [name.replace("_", " ") for name in ("margin", "train_error") if getattr(seen, name, None) is not None]
    return f"{', '.join(what)}; P1 adds {up(certificate.nats or 0.0)} nats to log(1/delta)"


def _document(certificate: Certificate, values: _Found) -> dict[str, Any]:
    data = certificate.to_json()
    sample = certificate.setting.sample
    trivial = certificate.trivial
    return {
        "verified": True,
        "quantity": certificate.quantity,
        "kind": certificate.kind,
        "trivial": trivial,
        "value": None if trivial else value_up(values.second),
        "log10_value": None if trivial else log10_up(values.second),
        "delta": sample.delta,
        "confidence": confidence(sample.delta),
        "train_error": sample.train_error if certificate.quantity == "risk" else None,
        "strategy": None if trivial else certificate.strategy,
        "policy": certificate.policy,
        "budgets": "fixed in advance" if certificate.measured is None else "measured",
        "looked_at": data["looked_at"],
        "statements": data["statements"],
        "log_counts": [level.log_count for level in certificate.levels],
        "second": {"confirmed": True, "log_value": values.second, "modules": values.modules, "lines": values.lines},
        "first": {"confirmed": True, "log_value": values.first},
        "setting": data["setting"],
        "forward_check": data["forward_check"],
        "forward_check_text": describe_comparison(certificate.compared),
    }
