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
  boundcalc verify p2l.json --data examples.npz
\b
Exit code 0 if the claim follows, 1 if it does not or the file cannot be read.""",
)
@click.argument("file", type=FILE)
@click.option("--data", type=FILE, help="Examples (.npz): establish the facts of a predictor's certificate again.")
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
def command(file: str, data: str | None, form: str) -> None:
    """Re-derive the value of a certificate, and hold its claim against it.

    Only the checker runs: every step is done again in interval arithmetic, from the setting up, or from the facts that
    the certificate of one predictor rests on.
    """
    from boundcalc.predictors.certificate import is_predictor_certificate, read_json

    raw = read_json(file)
    if is_predictor_certificate(raw):
        from boundcalc.cli.predictors import verify_file

        verify_file(file, raw, data, form)
        return
    if data is not None:
        raise click.UsageError("--data belongs to the certificate of a predictor; this one is of a class")
    from boundcalc.proof.certificate import Certificate
    from boundcalc.proof.checker import verify
    from boundcalc.proof.trivial import covers_nothing

    try:
        certificate = Certificate.load(file)
        checked = verify(certificate)
    except BoundcalcError as error:
        said = str(error)
        raise CertificateError(said if file in said else f"{file}: {said}") from error
    except (ArithmeticError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise CertificateError(f"{file}: the steps cannot be followed ({type(error).__name__}: {error})") from error
    log10 = log10_up(checked.log_value)
    trivial = covers_nothing(certificate)
    sample = certificate.setting.sample
    kind = "bound" if certificate.measured is None else "a_posteriori"
    if form == "json":
        import json

        found = {
            "verified": True,
            "quantity": certificate.quantity,
            "kind": kind,
            "trivial": trivial,
            "value": None if trivial else value_up(checked.log_value),
            "log10_value": None if trivial else log10,
            "delta": sample.delta,
            "train_error": sample.train_error if certificate.quantity == "risk" else None,
            "strategy": certificate.strategy,
            "policy": certificate.policy,
            "setting": certificate.setting.to_json(),
        }
        if trivial:
            del found["strategy"]
        click.echo(json.dumps(found, indent=1))
        return
    at = f" at margin training error {sample.train_error:g}" if certificate.quantity == "risk" else ""
    vacuous = " (vacuous: above 1)" if log10 >= 0 else ""
    sure = f"with probability at least {confidence(sample.delta)}"
    if trivial:
        click.echo(f"verified, and trivial: the proof covers nothing, so it says nothing of the {certificate.quantity}")
    else:
        click.echo(f"verified: {certificate.quantity}{at} <= {upper(log10, 6)}{vacuous}, {sure}")
    levels = len(certificate.levels)
    how = "" if trivial else f"strategy {certificate.strategy}, {levels} level{'s' * (levels != 1)}; "
    architecture = certificate.setting.architecture
    layers = "listed layers" if architecture.layers is not None else f"{architecture.style}, depth {architecture.depth}"
    click.echo(
        f"for {layers}, T {short(architecture.seq_len)}, m {short(sample.n_train)}, gamma {sample.margin:g}; "
        f"kind {kind.replace('_', ' ')}; {how}found by {certificate.policy!r}"
    )
