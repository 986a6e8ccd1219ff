"""`boundcalc verify`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.compared import Compared, describe_comparison
from boundcalc.base.errors import BoundcalcError, CertificateError
from boundcalc.base.files import parse_json, read_text
from boundcalc.base.rounding import confidence, down, log10_up, short, up, upper, value_up
from boundcalc.base.schema import read
from boundcalc.cli._options import FILE, FILE_OR_FOLDER, command_with, form_option, option, shown, write_json
from boundcalc.cli._setting import Question, setting_lines
from boundcalc.cli._text import say, say_checked

if TYPE_CHECKING:
    from boundcalc.predictors.certificate import PredictorCertificate
    from boundcalc.proof.certificate import Certificate
    from boundcalc.setting import Setting


@command_with("""\
  boundcalc verify gap.json
  boundcalc verify gap.json --format json
  boundcalc verify p2l.json --data examples.npz
  boundcalc verify rule.json --model model.safetensors

Exit code 0 if the claim follows, 1 if it does not or the file cannot be read.""")
@click.argument("file", type=FILE)
@form_option("table", "json")
@option(
    "--data",
    FILE_OR_FOLDER,
    "Examples: establish the facts of a predictor's certificate again (.npz, as they were written).",
    metavar="DATA",
)
@option("--model", FILE, "Weights that a rule is proved of (default: CERTIFICATE's name, ending in .safetensors).")
def command(file: str, form: str, data: str | None, model: str | None) -> None:
    """Re-derive the value of a certificate and compare it with the claims.

    Only checkers run. Every step is done again, from the setting up, in interval arithmetic and in 50 digits by a
    second checker, which stands alone (python -m boundcalc.proof.second FILE), or from the facts that the certificate
    of one predictor is based on.
    """
    text = read_text(file, error=CertificateError)
    raw = parse_json(text, file, CertificateError)
    kind = str(raw.get("format")).partition("/")[0] if isinstance(raw, dict) else ""
    of_predictor = kind == "boundcalc-predictor-certificate"
    if not of_predictor and (data is not None or model is not None):
        raise click.UsageError("--data and --model belong to the certificate of a predictor; this one is of a class")
    try:
        if of_predictor:
            claim, labelled, numbers = _predictor(file, raw, data, model)
        else:
            of_kind = {"boundcalc-score": _score, "boundcalc-floor": _floor}.get(kind, _bound)
            claim, labelled, numbers = of_kind(raw, text)
    except BoundcalcError as error:
        raise CertificateError(f"{file}: {error}") from error
    if form == "json":
        write_json({"verified": True, "claim": claim, **labelled, **numbers})
        return
    say_checked(claim)
    width = max(map(len, labelled))
    for label, words in labelled.items():
        if words:
            say(f"{label:{width}}  {words}")


_Verified = tuple[str, dict[str, str], dict[str, Any]]
"""The claim, labelled lines about it, and its numbers for programs."""
_ON_RECORD = "(on record, not checked here)"


def _bound(raw: Any, text: str) -> _Verified:
    """A bound of a class, by both checkers."""
    from boundcalc.proof import second
    from boundcalc.proof.certificate import Certificate
    from boundcalc.proof.checker import verify

    certificate = Certificate.from_json(raw)
    first = verify(certificate).log_value
    try:  # all that is printed is based on it
        confirmed = math.nextafter(float(second.confirm(text).log_value), math.inf)
    except second.Refused as error:
        raise CertificateError(f"the second checker, which stands alone, does not confirm it: {error}") from None
    what, sample, levels = certificate.quantity, certificate.setting.sample, len(certificate.levels)
    at = f" at margin training error {up(sample.train_error)}" if what == "risk" else ""
    log10, trivial = log10_up(confirmed), certificate.trivial
    vacuous = " (vacuous: above 1)" if log10 >= 0 else ""
    claim = f"verified: {what}{at} <= {upper(log10, 6)}{vacuous}, {_sure(sample.delta)}"
    how = f"strategy {certificate.strategy}" + (f", {levels} level{'s' * (levels != 1)}" if levels else "") + "; "
    if trivial:
        claim, how = f"verified, and trivial: no cover is counted, so it bounds nothing about the {what}", ""
    digits, interval = (upper(log / math.log(10), 12) for log in (confirmed, first))
    labelled = {
        **_about(certificate.setting),
        "model": f"{describe_comparison(certificate.compared)} {_ON_RECORD}",
        "measured": _measured(certificate),
        "proof": f"kind {certificate.kind.replace('_', ' ')}; {how}found by {certificate.policy!r}",
        "second": f"confirmed by the checker that stands alone: {digits}, in 50 digits",
        "first": f"confirmed in interval arithmetic: {interval}",
    }
    value = {"value": None, "log10_value": None} if trivial else {"value": value_up(confirmed), "log10_value": log10}
    return claim, labelled, {"quantity": what, "kind": certificate.kind, "trivial": trivial} | value


def _score(raw: Any, text: str) -> _Verified:
    """The score of a test set, from its facts."""
    from boundcalc.lab.certification import of_score
    from boundcalc.predictors.scores import Score

    score = Score.from_json(raw)
    labelled = {
        "proof": of_score("score", score).based_on,
        "model": f"{', '.join(score.names)} {_ON_RECORD}",
        "facts": "taken as they stand, of independent examples that the models had not met",
    }
    return f"verified: {score.claim}", labelled, score.to_json()


def _floor(raw: Any, text: str) -> _Verified:
    """A floor, by both checkers."""
    from boundcalc.proof import second
    from boundcalc.proof.floor import read_floor

    floor = read_floor(raw)
    try:
        second.derive_floor(raw)
    except second.Refused as error:
        raise CertificateError(str(error)) from error
    construction = floor.construction
    labelled = {"of": floor.of, **_about(floor.setting)}
    labelled["members"] = f"construction {construction.name} ({construction.title}), counted by {floor.by}"
    claim = f"no bound that holds {_sure(floor.setting.sample.delta)} is below {down(floor.value, 6)}"
    return f"verified: {claim}", labelled, {"value": floor.value}


def _sure(delta: float) -> str:
    return f"with probability at least {confidence(delta)}"


def _about(setting: Setting) -> dict[str, str]:
    """Everything the claim is about: the setting as `eval` shows it, with every budget."""
    labels = dict(line.split(maxsplit=1) for line in setting_lines(Question(setting), marked=False))
    norms = setting.norms
    budgets = [
        " ".join([key, *(f"{name} {shown(value)}" for name, value in limits.items())])
        for key, limits in norms.to_json().get("budgets", {}).items()
    ]
    knob = [] if norms.C is None else [f"C {short(norms.C)} for all budgets not set"]
    return {"setting": labels["Setting"], "norms": "; ".join([*knob, *budgets]), "sample": labels["Sample"]}


def _measured(certificate: Certificate) -> str:
    if certificate.measured is None:
        return "nothing: budgets were fixed in advance, so no correction"
    seen = certificate.measured.sample
    what = [] if certificate.measured.norms is None else ["norms of trained weights"]
    what += [name.replace("_", " ") for name in ("margin", "train_error") if getattr(seen, name, None) is not None]
    return f"{', '.join(what)}; P1 adds {up(certificate.nats or 0.0)} nats to log(1/delta)"


# -- one predictor


def _predictor(file: str, raw: Any, data_file: str | None, model: str | None) -> _Verified:
    """A predictor's certificate: its number from its facts; with the examples, its facts too."""
    from boundcalc.predictors.certificate import SHORT, PredictorCertificate, verify_predictor

    certificate = PredictorCertificate.from_json(raw)
    recipe, environment = (getattr(certificate.evidence, name, {}) for name in ("recipe", "environment"))
    data = None if data_file is None else examples_of(data_file, handed_over=recipe.get("kind") == "given")
    weights = Path(file).with_suffix(".safetensors") if model is None else Path(model)
    checked = verify_predictor(certificate, data, lambda recipe: _learner(recipe, weights, environment))
    facts = [f"{name} {fact_shown(fact)}" for name, fact in certificate.summary().items() if name in SHORT]
    labelled = {
        "predictor": certificate.certified,
        "proof": f"{certificate.statement} ({certificate.method}): {', '.join(facts)}",
        "beforehand": _beforehand(certificate),
        "model": _model(recipe),
        "network": checked.proved or "",
        "facts": checked.established or "taken as they stand; give the examples with --data to establish them again",
    }
    claim = f"verified: risk of a fresh example <= {up(certificate.risk, 4)}, {_sure(certificate.delta)}"
    return claim, labelled, {"rederived": checked.risk, "facts_established": checked.established is not None}


def examples_of(source: str, *, handed_over: bool = False) -> Any:
    """Arrays as they were written, or whatever holds sequences; `handed_over`: of a model that was handed over."""
    from boundcalc.predictors.data import Data

    if source.endswith(".npz") and not handed_over:
        return Data.load(source)
    from boundcalc.checkpoints.data import sequences

    examples = sequences(source)
    return examples if handed_over else Data(*examples.arrays)


def fact_shown(fact: float) -> str:
    """A count as it is; bits and nats rounded up."""
    return str(fact) if isinstance(fact, int) else up(fact)


def _beforehand(certificate: PredictorCertificate) -> str:
    """What was fixed before the data: how many alternatives share delta, the one that was chosen, every seed."""
    listed = certificate.to_json()["alternatives"]
    count, taken = len(listed), listed[certificate.chosen]
    text = f"{count} alternative{'s' * (count != 1)} for delta {short(certificate.delta)}"
    if count > 1:
        text += f", {short(certificate.share)} of it for this one"
    sizes = {name: value for name, value in taken.items() if isinstance(value, int | float | list) and name != "number"}
    text += f" ({', '.join(f'{name} {value}' for name, value in sizes.items())})" if sizes else ""
    for kind in ("seed", "draw"):
        values = sorted({entry[kind] for entry in listed if kind in entry})
        text += f"; {kind}s {', '.join(map(str, values))}" if values else ""
    return text


def _model(recipe: Mapping[str, Any]) -> str:
    """Of a model that was handed over: what answered, and how its architecture was compared with a forward pass."""
    if recipe.get("kind") != "given":
        return ""
    compared = recipe.get("forward_check")
    text = describe_comparison(None if compared is None else read(Compared, compared, "forward_check"))
    start = f"; bits relative to {recipe['reference'] or 'zeros (gains 1)'}" if "reference" in recipe else ""
    return f"{recipe.get('name')}, answered by {recipe.get('answers')}; {text}{start} {_ON_RECORD}"


def _learner(recipe: Mapping[str, Any], weights: Path, environment: Mapping[str, Any]) -> Any:
    """What a recipe describes; the weights of a rule that no file has are those that training gives again."""
    kind = recipe.get("kind")
    if kind == "stored network":
        from boundcalc.predictors.rules.certify import StoredNetwork

        if weights.exists():
            return StoredNetwork.load(weights)
        if recipe["trial"] is None:
            raise CertificateError(
                f"a rule is proved from the weights, and {weights} is not there: name them with --model"
            )
        from boundcalc.lab.train.certify import trained_network
        from boundcalc.lab.train.trial import Trial

        return trained_network(Trial.from_json(recipe["trial"]))
    if kind not in ("model", "network"):
        raise CertificateError(
            f"the learner is of kind {kind!r}, which only its owner can make: check it from Python, "
            "verify_predictor(certificate, data, lambda recipe: learner)"
        )
    import torch

    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.pickers import ModelLearner

    threads = environment.get("threads", 1)
    if isinstance(threads, int) and 1 <= threads <= 1024:
        torch.set_num_threads(threads)
    return (ModelNetwork if kind == "network" else ModelLearner).from_recipe(recipe)
