"""Certificates of one predictor on the command line: `train --certify`, and `verify` of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from boundcalc.base.rounding import near, short
from boundcalc.cli.options import all_of, write_json
from boundcalc.cli.progress import Live
from boundcalc.cli.text import say, say_checked
from boundcalc.cli.values import NUMBER
from boundcalc.lab.train.certify import METHODS, wanted

certify_options = all_of(
    [
        click.option(
            "--certify",
            "methods",
            multiple=True,
            type=click.Choice((*METHODS, "all")),
            help="Certify a predictor's risk by this method, within --delta (repeatable).",
        ),
        click.option("--delta", type=NUMBER, default=0.05, show_default=True, help="Failure probability."),
        click.option(
            "--prefix", type=NUMBER, default=0.0, help="Share of the examples that certified training starts from."
        ),
    ]
)
"""What is certified of what a trial's data teach, as `methods`, `delta` and `prefix`."""


def certificate_files(file: Path, methods: Sequence[str]) -> dict[str, Path]:
    """Where the certificate of each method goes: to the file named, or next to it where there are several."""
    chosen = wanted(methods)
    return {name: file if len(chosen) == 1 else file.with_stem(f"{file.stem}-{name}") for name in chosen}


def _unfinished_runs(file: Path | None, methods: Sequence[str]) -> dict[str, Path]:
    """Where the methods that train in rounds keep a run that is killed: FILE.run, next to their certificate."""
    files = {} if file is None else certificate_files(file, methods)
    return {name: path.with_name(f"{path.name}.run") for name, path in files.items() if name in ("holdout", "p2l")}


def certify_trial(
    trial: Any,
    methods: Sequence[str],
    delta: float,
    *,
    prefix: float = 0.0,
    file: Path | None = None,
) -> list[dict[str, Any]]:
    """One entry per method: its certificate in short, what was measured, and the file it was written to.

    Where certificates are written, a run of picks that is killed goes on from FILE.run when the command is given again.
    """
    from boundcalc.lab.train.certify import Issued, Request
    from boundcalc.lab.train.certify import certify_trial as certify

    files = {} if file is None else certificate_files(file, methods)
    entries: list[dict[str, Any]] = []

    def keep(issued: Issued) -> None:
        target = files.get(issued.request.method)
        if issued.certificate is not None and target is not None:
            issued.certificate.save(target)
            if issued.network is not None:
                issued.network.save(weights_file(target))
        where = None if target is None or issued.certificate is None else str(target)
        entries.append({**issued.entry, "file": where})

    plans = [Request(name, delta, prefix) for name in wanted(methods)]
    certify(trial, plans, tell=_teller(), resume=_unfinished_runs(file, methods).get, done=keep)
    return entries


def weights_file(certificate: Path) -> Path:
    """Where the weights that a rule is proved of lie, next to its certificate."""
    return certificate.with_suffix(".safetensors")


def write_examples(trial: Any, path: Path) -> None:
    """The training examples as an .npz file, for `verify --data`."""
    from boundcalc.lab.train.certify import examples_of

    examples_of(trial)[0].save(path)


def _teller() -> Callable[[str, Mapping[str, Any] | str], None]:
    live = Live()

    def tell(name: str, state: Mapping[str, Any] | str) -> None:
        if not isinstance(state, str):
            state = f"prefix {state['prefix']}, {state['picks']} picks, {state['wrong']} of {state['others']} wrong"
        live.show(f"{name}: {state}")

    return tell


def show_certificates(entries: Sequence[Mapping[str, Any]], delta: float) -> None:
    """The table that `train` prints."""
    from boundcalc.base.rounding import confidence, down, up

    say(f"\ncertificates, each by itself with probability at least {confidence(delta)} (its own predictor)")
    for entry in entries:
        if entry["risk"] is None:
            say(f"  {entry['method']:<10}none: {entry['refused']}")
            continue
        named = entry  # a rule leads with what knows least of the task: its table or tree
        if entry.get("function") != entry.get("unnamed"):
            entry = {**entry, "risk": entry["risk_unnamed"], "bits": entry["bits_unnamed"]}
        facts = "".join(
            f"{_short(entry[name])} {name}, " for name in ("picks", "bits", "nats", "draws") if name in entry
        )
        of = entry["draws"] * entry["tested"] if "draws" in entry else entry["n"] - entry.get("picks", 0)
        measured = "" if entry["test_error"] is None else f"; test error {near(entry['test_error'])}"
        say(
            f"  {entry['method']:<10}risk <= {up(entry['risk'], 4)}  {entry['statement']:<5} "
            f"({facts}{entry['errors']} errors of {of}; {entry['certified']}{measured})"
        )
        if "rule" in entry:
            margin = f"proved from the weights, least margin {down(entry['margin'], 3)}"
            say(f"            computes {entry['rule']} on {entry['inputs']} ({margin})")
        if named is not entry:
            name = f"by the name {named['function']}, which the code has since tasks are such functions"
            say(f"            {name}: {_short(named['bits'])} bits, risk <= {up(named['risk'], 4)}")
        if entry["file"]:
            say(f"            {entry['file']}")


def _short(fact: float) -> str:
    """A count as it is; bits and nats rounded up."""
    from boundcalc.base.rounding import up

    return str(fact) if isinstance(fact, int) else up(fact)


def verify_file(file: str, raw: object, data_file: str | None, form: str, model: str | None = None) -> None:
    """Check a predictor's certificate: its number from its facts; with the examples, its facts too."""
    from boundcalc.base.errors import BoundcalcError, CertificateError
    from boundcalc.base.rounding import confidence, up
    from boundcalc.predictors.certificate import SHORT, PredictorCertificate, verify_predictor

    try:
        certificate = PredictorCertificate.from_json(raw)
        data = None
        if data_file is not None:
            handed_over = certificate.evidence.get("recipe", {}).get("kind") == "given"
            data = examples_of(data_file, handed_over=handed_over)
        checked = verify_predictor(certificate, data, _learner_of(certificate, file, model))
    except BoundcalcError as error:
        raise CertificateError(f"{file}: {error}") from error
    established = checked.established or "taken as they stand; give the examples with --data to establish them again"
    if form == "json":
        document = {
            "verified": True,
            "quantity": "risk",
            "value": certificate.risk,
            "rederived": checked.risk,
            **certificate.summary(),
            "share": certificate.share,
            "alternatives": len(certificate.alternatives),
            "alternative": _chosen(certificate.taken),
            "seeds": _seeds(certificate),
            "facts_established": checked.established is not None,
            "facts_text": established,
            "proved": checked.proved,
            "model": _answers(certificate),
        }
        write_json(document)
        return
    summary = certificate.summary()
    facts = ", ".join(f"{name} {_short(summary[name])}" for name in SHORT if name in summary)
    sure = f"with probability at least {confidence(certificate.delta)}"
    say_checked(True, f"verified: risk of a fresh example <= {up(certificate.risk, 4)}, {sure}")
    lines = {
        "predictor": certificate.certified,
        "proof": f"{certificate.statement} ({certificate.method}): {facts}",
        "beforehand": _beforehand(certificate),
        "model": f"{answers} (on record, not checked here)" if (answers := _answers(certificate)) else None,
        "network": checked.proved,
        "facts": established,
    }
    for label, text in lines.items():
        if text:
            say(f"{label:10}  {text}")


def _beforehand(certificate: Any) -> str:
    """What was fixed before the data: how many alternatives share delta, their seeds, and the one that was chosen."""
    count, chosen = len(certificate.alternatives), _chosen(certificate.taken)
    words = ", ".join(f"{name} {value}" for name, value in chosen.items())
    text = f"{count} alternative{'s' * (count != 1)} for delta {short(certificate.delta)}"
    if count > 1:
        text += f", {short(certificate.share)} of it for this one"
    seeds = "".join(f"; {name} {', '.join(map(str, values))}" for name, values in _seeds(certificate).items())
    return text + (f" ({words})" if words else "") + seeds


def _chosen(alternative: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of an alternative, and lists of whole numbers."""
    lists = {name: value for name, value in alternative.items() if isinstance(value, list) and value}
    whole = {name: value for name, value in lists.items() if all(isinstance(item, int) for item in value)}
    numbers = {name: value for name, value in alternative.items() if isinstance(value, int | float)}
    return {name: numbers.get(name, whole.get(name)) for name in alternative if name in numbers or name in whole}


def _seeds(certificate: Any) -> dict[str, list[int]]:
    """The seeds of all alternatives: of learners, and of draws from a posterior."""
    kinds = {"seeds": "seed", "draws": "draw"}
    values = {
        kind: {entry[name] for entry in certificate.alternatives if name in entry} for kind, name in kinds.items()
    }
    return {kind: sorted(several) for kind, several in values.items() if several}


def examples_of(source: str, *, handed_over: bool = False) -> Any:
    """Arrays as they were written, or whatever holds sequences; `handed_over`: of a model that was handed over."""
    from boundcalc.predictors.data import Data

    if source.endswith(".npz") and not handed_over:
        return Data.load(source)
    from boundcalc.checkpoints.data import sequences
    from boundcalc.lab.outputs import Examples

    examples = Examples.of(sequences(source))
    return examples if handed_over else Data(*examples.arrays)


def _answers(certificate: Any) -> str | None:
    """Of a model that was handed over: what answered, and how its architecture was compared with a forward pass."""
    from boundcalc.base.compared import Compared, describe_comparison
    from boundcalc.base.schema import read

    recipe = certificate.evidence.get("recipe", {})
    if recipe.get("kind") != "given":
        return None
    compared = recipe.get("forward_check")
    text = describe_comparison(None if compared is None else read(Compared, compared, "forward_check"))
    alternative = certificate.alternatives[certificate.chosen]
    start = "zeros (gains 1)" if alternative.get("reference", {}).get("checkpoint") is None else recipe.get("reference")
    relative = f"; bits relative to {start}" if "reference" in recipe else ""
    return f"{recipe.get('name')}, answered by {recipe.get('answers')}; {text}{relative}"


def _learner_of(certificate: Any, file: str, model: str | None) -> Callable[[Mapping[str, Any]], Any]:
    def make(recipe: Mapping[str, Any]) -> Any:
        from boundcalc.base.errors import CertificateError

        if recipe.get("kind") == "stored network":
            return _stored_network(recipe, weights_file(Path(file)) if model is None else Path(model))
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
        return ModelLearner.from_recipe(recipe)

    return make


def _stored_network(recipe: Mapping[str, Any], path: Path) -> Any:
    """The weights of a file; where there is none, those that training gives again."""
    from boundcalc.base.errors import CertificateError

    if path.exists():
        from boundcalc.predictors.rules.certify import StoredNetwork

        return StoredNetwork.load(path)
    if recipe["trial"] is None:
        raise CertificateError(f"a rule is proved from the weights, and {path} is not there: name them with --model")
    from boundcalc.lab.train.certify import trained_network
    from boundcalc.lab.train.trial import Trial

    return trained_network(Trial.from_json(recipe["trial"]))
