"""`boundcalc verify`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.compared import said
from boundcalc.base.errors import CertificateError
from boundcalc.base.rounding import confidence, log10_up, up, value_up
from boundcalc.cli.files import PythonName
from boundcalc.cli.idle import Command
from boundcalc.cli.setting import FILE
from boundcalc.cli.values import short, upper

if TYPE_CHECKING:
    from boundcalc.proof.certificate import Certificate
    from boundcalc.setting import Setting

_SHOWN_BUDGETS = 12


@click.command(
    cls=Command,
    name="verify",
    short_help="Re-derive the value of a certificate.",
    epilog="""\b
Examples:
  boundcalc eval --depth 2 --certificate gap.json
  boundcalc verify gap.json
  boundcalc verify gap.json --second
  boundcalc verify gap.json --format json
  boundcalc verify p2l.json --data examples.npz
  boundcalc verify --trust
\b
Exit code 0 if the claim follows, 1 if it does not or the file cannot be read.""",
)
@click.argument("file", type=FILE, required=False)
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.option(
    "--data",
    type=PythonName(),
    metavar="DATA",
    help="Examples: establish the facts of a predictor's certificate again (.npz, as they were written).",
)
@click.option("--second", is_flag=True, help="Check again with the second checker: 50 digits, other code.")
@click.option("--trust", is_flag=True, help="Say what is believed: the modules a checker imports, and what else.")
def command(file: str | None, form: str, data: str | None, *, second: bool, trust: bool) -> None:
    """Re-derive the value of a certificate, and hold its claims against it.

    Only the checker runs: every step is done again in interval arithmetic, from the setting up, or from the facts that
    the certificate of one predictor rests on.
    """
    if trust:
        if file is not None or second or data is not None:
            raise click.UsageError("--trust stands alone: it is about the checkers, not about a certificate")
        _trust(form)
        return
    if file is None:
        raise click.UsageError("give the certificate to verify: boundcalc verify gap.json")
    from boundcalc.predictors.certificate import is_predictor_certificate, read_json

    raw = read_json(file)
    if is_predictor_certificate(raw):
        from boundcalc.cli.predictors import verify_file

        if second:
            raise click.UsageError("--second is for certificates of a class; this one is of one predictor")
        verify_file(file, raw, data, form)
        return
    if data is not None:
        raise click.UsageError("--data belongs to the certificate of a predictor; this one is of a class")
    from boundcalc.proof.certificate import Certificate
    from boundcalc.proof.checker import verify

    certificate = Certificate.load(file)
    try:
        checked = verify(certificate)
        exact = _second(certificate) if second else None
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}") from error
    if form == "json":
        import json

        click.echo(json.dumps(_document(certificate, checked.log_value, exact), indent=1))
        return
    for line in _lines(certificate, checked.log_value, exact):
        click.echo(line)


def _second(certificate: Certificate) -> float:
    """The value by the second checker (log); the claim must follow from it as well."""
    from boundcalc.proof.checker import CLAIM_TOLERANCE
    from boundcalc.proof.second import log_value

    exact = float(log_value(certificate))
    if not exact <= certificate.log_value + CLAIM_TOLERANCE * max(1.0, abs(exact)):
        raise CertificateError(
            f"the second checker does not confirm it: e^{certificate.log_value:.12g} is claimed, it finds e^{exact:.12g}"
        )
    return exact


def _lines(certificate: Certificate, log_value: float, exact: float | None) -> list[str]:
    """What was verified, in words: the claim, what it is about, and what it rests on."""
    from boundcalc.proof.trivial import covers_nothing

    sample = certificate.setting.sample
    at = f" at margin training error {up(sample.train_error)}" if certificate.quantity == "risk" else ""
    log10 = log10_up(log_value)
    vacuous = " (vacuous: above 1)" if log10 >= 0 else ""
    sure = f"with probability at least {confidence(sample.delta)}"
    levels = len(certificate.levels)
    claim = f"verified: {certificate.quantity}{at} <= {upper(log10, 6)}{vacuous}, {sure}"
    how = f"strategy {certificate.strategy}, {levels} level{'s' * (levels != 1)}; "
    if covers_nothing(certificate):
        claim = f"verified, and trivial: the proof covers nothing, so it says nothing of the {certificate.quantity}"
        how = ""
    lines = [
        claim,
        *(f"{label:8}  {text}" for label, text in _about(certificate.setting)),
        f"{'model':8}  {said(certificate.compared)} (on record, not checked here)",
        f"{'paid':8}  {_paid(certificate)}",
        f"{'proof':8}  kind {certificate.kind.replace('_', ' ')}; {how}found by {certificate.policy!r}",
    ]
    if exact is not None:
        lines.append(f"{'second':8}  confirmed by the second checker in 50 digits: {upper(exact / math.log(10), 12)}")
    return lines


def _about(setting: Setting) -> list[tuple[str, str]]:
    """Everything the claim is about."""
    from boundcalc.setting.complete import complete_json

    full = complete_json(setting)
    architecture, sample = full["architecture"], full["sample"]
    if architecture["layers"] is not None:
        network = ", ".join(layer["layer"] for layer in architecture["layers"])
        shown = {name: architecture[name] for name in ("seq_len", "input_radius", "classes", "bits")}
        shown = {name: value for name, value in shown.items() if value is not None}
        network = f"layers {network}; {_named(shown)}"
    else:
        normaliser = architecture.pop("normaliser")
        del architecture["layers"]
        chosen = {name: value for name, value in architecture.items() if value is not None and value is not False}
        network = f"{_named(chosen)}, normaliser {normaliser.pop('name')}"
        given = {name: value for name, value in normaliser.items() if value is not None}
        network += f" ({_named(given)})" if given else ""
    budgets = [f"{key} {_named(limits)}" for key, limits in full["norms"]["budgets"].items()]
    hidden = len(budgets) - _SHOWN_BUDGETS
    budgets = [*budgets[:_SHOWN_BUDGETS], *([f"and {hidden} more (--format json)"] if hidden > 0 else [])]
    knob = [] if setting.norms.C is None else [f"C {short(setting.norms.C)} for all that is not given"]
    seen = {name: value for name, value in sample.items() if value is not None and value != []}
    return [("network", network), ("norms", "; ".join([*knob, *budgets])), ("sample", _named(seen))]


def _named(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, dict):
        return f"({_named(value)})"
    return short(value) if isinstance(value, int | float) else str(value)


def _paid(certificate: Certificate) -> str:
    if certificate.measured is None:
        return "budgets fixed in advance: nothing was measured, nothing is paid"
    sample = certificate.measured.get("sample", {})
    what = [*(["norms of trained weights"] if set(certificate.measured) - {"sample"} else [])]
    what += [name.replace("_", " ") for name in sample if name != "candidates"]
    return f"measured: {', '.join(what)}; P1 paid {up(certificate.nats or 0.0)} nats in log(1/delta)"


def _document(certificate: Certificate, log_value: float, exact: float | None) -> dict[str, Any]:
    from boundcalc.proof.trivial import covers_nothing

    data = certificate.to_json()
    sample = certificate.setting.sample
    trivial = covers_nothing(certificate)
    return {
        "verified": True,
        "quantity": certificate.quantity,
        "kind": certificate.kind,
        "trivial": trivial,
        "value": None if trivial else value_up(log_value),
        "log10_value": None if trivial else log10_up(log_value),
        "delta": sample.delta,
        "confidence": confidence(sample.delta),
        "train_error": sample.train_error if certificate.quantity == "risk" else None,
        "strategy": None if trivial else certificate.strategy,
        "policy": certificate.policy,
        "budgets": "fixed in advance" if certificate.measured is None else "measured",
        "looked_at": data["looked_at"],
        "statements": data["statements"],
        "log_counts": [level.log_count for level in certificate.levels],
        "second": None if exact is None else {"confirmed": True, "log_value": exact},
        "setting": data["setting"],
        "forward_check": data["forward_check"],
        "forward_check_text": said(certificate.compared),
    }


def _trust(form: str) -> None:
    from boundcalc.proof.trusted import BELIEVED, trusted_modules

    bases = {name: trusted_modules(start) for name, start in _STARTS.items()}
    if form == "json":
        import json

        out = {name: [module._asdict() for module in modules] for name, modules in bases.items()}
        click.echo(json.dumps({"modules": out, "believed": BELIEVED}, indent=1))
        return
    for name, modules in bases.items():
        click.echo(
            f"The {name} checker imports {len(modules)} modules, {sum(m.lines for m in modules)} lines that are not blank:"
        )
        for module in sorted(modules, key=lambda module: -module.lines):
            click.echo(f"  {module.lines:5}  {module.name}")
    click.echo("What else is believed:")
    for line in BELIEVED:
        click.echo(f"  - {line}")


_STARTS = {"first": "boundcalc.proof.checker", "second": "boundcalc.proof.second.value"}
