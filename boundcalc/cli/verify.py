"""`boundcalc verify`."""

from __future__ import annotations

import click

from boundcalc.base.errors import BoundcalcError, CertificateError
from boundcalc.base.rounding import confidence, log10_up, value_up
from boundcalc.cli.setting import FILE
from boundcalc.cli.values import short, upper


@click.command(
    name="verify",
    short_help="Re-derive the value of a certificate.",
    epilog="""\b
Examples:
  boundcalc eval --depth 2 --certificate gap.json
  boundcalc verify gap.json
  boundcalc verify gap.json --format json
\b
Exit code 0 if the claim follows, 1 if it does not or the file cannot be read.""",
)
@click.argument("file", type=FILE)
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
def command(file: str, form: str) -> None:
    """Re-derive the value of a certificate, and hold its claim against it.

    Only the checker runs: every step is done again in interval arithmetic, from the setting up.
    """
    from boundcalc.proof.certificate import Certificate
    from boundcalc.proof.checker import verify

    try:
        certificate = Certificate.load(file)
        checked = verify(certificate)
    except BoundcalcError as error:
        said = str(error)
        raise CertificateError(said if file in said else f"{file}: {said}") from error
    except (ArithmeticError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise CertificateError(f"{file}: the steps cannot be followed ({type(error).__name__}: {error})") from error
    log10 = log10_up(checked.log_value)
    sample = certificate.setting.sample
    kind = "bound" if certificate.measured is None else "a_posteriori"
    if form == "json":
        import json

        found = {
            "verified": True,
            "quantity": certificate.quantity,
            "kind": kind,
            "value": value_up(checked.log_value),
            "log10_value": log10,
            "delta": sample.delta,
            "train_error": sample.train_error if certificate.quantity == "risk" else None,
            "strategy": certificate.strategy,
            "policy": certificate.policy,
            "setting": certificate.setting.to_json(),
        }
        click.echo(json.dumps(found, indent=1))
        return
    at = f" at margin training error {sample.train_error:g}" if certificate.quantity == "risk" else ""
    vacuous = " (vacuous: above 1)" if log10 >= 0 else ""
    sure = f"with probability at least {confidence(sample.delta)}"
    click.echo(f"verified: {certificate.quantity}{at} <= {upper(log10, 6)}{vacuous}, {sure}")
    architecture = certificate.setting.architecture
    layers = "listed layers" if architecture.layers is not None else f"{architecture.style}, depth {architecture.depth}"
    click.echo(
        f"for {layers}, T {short(architecture.seq_len)}, m {short(sample.n_train)}, gamma {sample.margin:g}; "
        f"kind {kind.replace('_', ' ')}; strategy {certificate.strategy}, {len(certificate.levels)} "
        f"level{'s' * (len(certificate.levels) != 1)}; found by {certificate.policy!r}"
    )
