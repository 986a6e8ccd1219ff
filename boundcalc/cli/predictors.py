"""Certificates of one predictor on the command line: `train --certify`, and `verify` of their files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

_METHODS = ("holdout", "p2l", "occam", "pac-bayes")
"""What `--certify` takes, beside all."""


def _wanted(methods: Sequence[str]) -> list[str]:
    return [name for name in _METHODS if name in methods or "all" in methods]


def certificate_files(file: Path, methods: Sequence[str]) -> dict[str, Path]:
    """Where the certificate of each method goes: to the file named, or beside it where there are several."""
    wanted = _wanted(methods)
    return {name: file if len(wanted) == 1 else file.with_stem(f"{file.stem}-{name}") for name in wanted}


def certify_trial(
    trial: Any,
    methods: Sequence[str],
    delta: float,
    *,
    prefix: float = 0.0,
    file: Path | None = None,
    quiet: bool = False,
) -> list[dict[str, Any]]:
    """One entry per method: its certificate in short, what was measured, and the file it was written to."""
    from boundcalc.base.errors import BoundcalcError, InvalidSetting

    files = {} if file is None else certificate_files(file, methods)
    wanted = _wanted(methods)
    if trial.online:
        raise InvalidSetting("--certify needs a training sample: give --m above 0")
    if not 0 <= prefix < 1:
        raise InvalidSetting(f"--prefix is the share of the examples to start from, in [0, 1); got {prefix:g}")
    data, test = _examples(trial)
    found: list[dict[str, Any]] = []
    for name in wanted:
        started = time.process_time()
        target = files.get(name)
        try:
            made, learner = _MAKE[name](trial, data, delta, prefix, _progress(name, quiet))
        except BoundcalcError as error:
            found.append({"method": name, "risk": None, "refused": str(error), "file": None})
            continue
        error = float((learner.scores(made.state, test) <= 0).mean()) if len(test) else None
        if target is not None:
            made.certificate.save(target)
        entry = {**made.certificate.summary(), "test_error": error, "file": None if target is None else str(target)}
        found.append(entry | {"cpu_seconds": round(time.process_time() - started, 2)})
    return found


def write_examples(trial: Any, path: Path) -> None:
    """The training examples as an .npz file, for `verify --data`."""
    from boundcalc.base.errors import InvalidSetting

    if trial.online:
        raise InvalidSetting("--examples needs a training sample: give --m above 0")
    _examples(trial)[0].save(path)


def _examples(trial: Any) -> tuple[Any, Any]:
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.lab.train.data import Examples
    from boundcalc.lab.train.device import torch_device
    from boundcalc.predictors.data import Data

    examples = Examples(trial, torch_device(trial.device))
    if examples.train is None:
        raise InvalidSetting(f"{trial.m} examples are too many to keep for a certificate: choose a smaller m")
    (x, y), (x_test, y_test) = examples.train, examples.test
    return Data(x.cpu().numpy(), y.cpu().numpy()), Data(x_test.cpu().numpy(), y_test.cpu().numpy())


def _holdout(trial: Any, data: Any, delta: float, prefix: float, progress: Any) -> tuple[Any, Any]:
    from boundcalc.lab.train.pickers import learner_of
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_splits, shared, splits

    learner = learner_of(trial)
    members = default_splits(len(data), delta, seed=trial.seed)
    if prefix:
        members = shared(splits([max(1, int(prefix * len(data)))], seed=trial.seed), delta)
    return pick_to_learn(learner, data, members, delta, method="holdout", progress=progress), learner


def _p2l(trial: Any, data: Any, delta: float, prefix: float, progress: Any) -> tuple[Any, Any]:
    from boundcalc.lab.train.pickers import learner_of
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    learner = learner_of(trial)
    members = default_picks(len(data), delta, prefix=int(prefix * len(data)), seed=trial.seed)
    return pick_to_learn(learner, data, members, delta, progress=progress), learner


def _occam(trial: Any, data: Any, delta: float, prefix: float, progress: Any) -> tuple[Any, Any]:
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.occam import search

    _no_prefix("occam", prefix)
    network = ModelNetwork.of(trial)
    return search(network, data, delta, seed=trial.seed, progress=progress), network


def _pac_bayes(trial: Any, data: Any, delta: float, prefix: float, progress: Any) -> tuple[Any, Any]:
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.pac_bayes import certify_posterior

    _no_prefix("pac-bayes", prefix)
    network = ModelNetwork.of(trial)
    return certify_posterior(network, data, delta, seed=trial.seed, progress=progress), network


def _no_prefix(method: str, prefix: float) -> None:
    from boundcalc.base.errors import InvalidSetting

    if prefix:
        raise InvalidSetting(f"{method} learns from all examples and starts from none: leave --prefix out")


_MAKE: Mapping[str, Callable[..., tuple[Any, Any]]] = {
    "holdout": _holdout,
    "p2l": _p2l,
    "occam": _occam,
    "pac-bayes": _pac_bayes,
}


def _progress(name: str, quiet: bool) -> Callable[[Mapping[str, Any] | str], None] | None:
    if quiet:
        return None
    redraw = sys.stderr.isatty()

    def tell(state: Mapping[str, Any] | str) -> None:
        if isinstance(state, str):
            text = f"{name}: {state}"
        else:
            text = (
                f"{name}: prefix {state['prefix']}, {state['picks']} picks, {state['wrong']} of {state['others']} wrong"
            )
        click.echo(f"\r{text:<72}" if redraw else text, err=True, nl=not redraw)

    return tell


def show_certificates(entries: Sequence[Mapping[str, Any]], delta: float) -> None:
    """The table that `train` prints."""
    from boundcalc.base.rounding import confidence
    from boundcalc.cli.values import upper

    click.echo(f"\ncertificates, each by itself with probability at least {confidence(delta)} (its own predictor)")
    for entry in entries:
        if entry["risk"] is None:
            click.echo(f"  {entry['method']:<10}none: {entry['refused']}")
            continue
        facts = ", ".join(f"{_short(entry[name])} {name}" for name in ("picks", "bits", "nats") if name in entry)
        facts = f"{facts}, " if facts else ""
        others = entry["n"] - entry.get("picks", 0)  # what was picked does not test
        measured = "" if entry["test_error"] is None else f"; test error {entry['test_error']:.4f}"
        click.echo(
            f"  {entry['method']:<10}risk <= {_rounded_up(entry['risk'], upper)}  {entry['statement']:<5} "
            f"({facts}{entry['errors']} errors of {others}; {entry['certified']}{measured})"
        )
        if entry["file"]:
            click.echo(f"            {entry['file']}")


def _short(fact: float) -> str:
    """A count as it is; bits and nats rounded up."""
    import math

    return str(fact) if isinstance(fact, int) else f"{math.ceil(fact * 100) / 100:.2f}"


def _rounded_up(risk: float, upper: Callable[..., str]) -> str:
    import math

    return upper(math.log10(risk), 4) if risk > 0 else "0"


def verify_file(file: str, raw: object, data_file: str | None, form: str) -> None:
    """Check a predictor's certificate: its number from its facts; with the examples, its facts too."""
    from boundcalc.base.errors import BoundcalcError, CertificateError
    from boundcalc.base.rounding import confidence
    from boundcalc.cli.values import upper
    from boundcalc.predictors.certificate import PredictorCertificate
    from boundcalc.predictors.verify import verify_predictor

    try:
        certificate = PredictorCertificate.from_json(raw)
        data = None
        if data_file is not None:
            from boundcalc.predictors.data import Data

            data = Data.load(data_file)
        checked = verify_predictor(certificate, data, _learner_of(certificate))
    except BoundcalcError as error:
        raise CertificateError(f"{file}: {error}") from error
    established = checked.established or "taken as they stand; give the examples with --data to establish them again"
    if form == "json":
        found = {
            "verified": True,
            "quantity": "risk",
            "value": certificate.risk,
            "rederived": checked.risk,
            "speaks_of": certificate.speaks_of,
            **certificate.summary(),
            "share": certificate.share,
            "alternatives": len(certificate.alternatives),
            "facts_established": checked.established is not None,
            "facts_text": established,
        }
        click.echo(json.dumps(found, indent=1))
        return
    summary = certificate.summary()
    names = [name for name in ("n", "errors", "picks", "bits", "nats") if name in summary]
    facts = ", ".join(f"{name} {_short(summary[name])}" for name in names)
    click.echo(
        f"verified: risk of {certificate.speaks_of} <= {_rounded_up(certificate.risk, upper)}, "
        f"with probability at least {confidence(certificate.delta)}"
    )
    count = len(certificate.alternatives)
    shared = f", its share of {count} alternatives {certificate.share:g}" if count > 1 else ""
    click.echo(f"by {certificate.statement} ({certificate.method}): {facts}; delta {certificate.delta:g}{shared}")
    click.echo(f"for the predictor {certificate.certified}")
    click.echo(f"facts: {established}")


def _learner_of(certificate: Any) -> Callable[[Mapping[str, Any]], Any]:
    def make(recipe: Mapping[str, Any]) -> Any:
        from boundcalc.base.errors import CertificateError

        if recipe.get("kind") not in ("model", "network"):
            raise CertificateError(
                f"the learner is of kind {recipe.get('kind')!r}, which only its owner can make: check it from Python, "
                "verify_predictor(certificate, data, lambda recipe: learner)"
            )
        import torch

        from boundcalc.lab.train.pickers import ModelLearner

        environment = certificate.evidence["environment"]
        wanted = environment.get("threads", 1)
        if isinstance(wanted, int) and 1 <= wanted <= 1024:
            torch.set_num_threads(wanted)
        if recipe["kind"] == "network":
            from boundcalc.lab.train.network import ModelNetwork

            return ModelNetwork.from_recipe(recipe)
        return ModelLearner.from_recipe(recipe, device=str(environment.get("device", "cpu")))

    return make
