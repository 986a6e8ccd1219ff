"""`boundcalc certify MODEL --by rule`: what a network on bits provably computes, and the bound of its risk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.output import make_folder
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.lazy import FAILURE
from boundcalc.cli.options import write_json
from boundcalc.cli.text import say

_TAKES = {"model", "data", "delta", "methods", "certificates", "form", "force"}


def certify_by_rule(
    context: click.Context, model: str, data: str | None, delta: float, folder: Path | None, form: str
) -> None:
    """Print the rule, what was proved and the risk; write the certificate into the folder."""
    from boundcalc.cli.predictors import examples_of
    from boundcalc.predictors.rules.certify import explain_network, facts_of_rule

    others = {name for name in context.params if name not in _TAKES}
    refuse_given(dict.fromkeys(sorted(others), "with --by rule, which reads the weights and --data alone"))
    if form not in ("table", "json"):
        raise InvalidSetting(f"--by rule is written as table or json: leave out --format {form}")
    if folder is not None and data is None:
        raise InvalidSetting("--certificates with --by rule needs the training examples: --data FILE")
    progress = (lambda text: click.echo(f"{text} ...", err=True)) if sys.stderr.isatty() else None
    explanation = explain_network(model, None if data is None else examples_of(data), delta=delta, progress=progress)
    certificate = explanation.certificate
    more = {} if certificate is None else facts_of_rule(certificate)
    written = None
    if certificate is not None and folder is not None:
        written = make_folder(folder) / "rule.json"
        certificate.save(written)
    if form == "json":
        where = None if explanation.counterexample is None else explanation.counterexample
        write_json(
            {
                "model": model,
                "text": str(explanation),
                "rule": explanation.rule.to_json(),
                "proved": explanation.proved is not None,
                "margin": explanation.margin,
                "parts": 0 if explanation.proved is None else len(explanation.proved.values),
                "rounding": None if explanation.proved is None else explanation.proved.rounding,
                "counterexample": None
                if where is None
                else {"x": "".join(map(str, where.x)), "output": where.output, "rule": where.answer},
                "certificate": None if certificate is None else {**certificate.summary(), **more},
                "file": None if written is None else str(written),
            }
        )
    else:
        for line in _lines(explanation, certificate):
            say(line)
        if written is not None:
            say(f"{'certificate':<10}  {written}: boundcalc verify {written} --model {model}")
    if explanation.proved is None:
        context.exit(FAILURE)


def _lines(explained: Any, certificate: Any) -> list[str]:
    from boundcalc.base.rounding import up
    from boundcalc.predictors.rules.certify import facts_of_rule, function_of

    lines = [str(explained)]
    if explained.proved is not None:
        parts, function = len(explained.proved.values), function_of(explained.proved.rounding, explained.margin)
        lines.append(f"{'proof':<10}  {parts} parts in ball arithmetic, {function}")
    if explained.proved is not None and explained.counterexample is not None:
        lines.append(f"{'beyond':<10}  it differs from {explained.rule} at {explained.counterexample}")
    if certificate is not None:
        facts, explanation = certificate.facts, facts_of_rule(certificate)
        lines.append(f"{'risk':<10}  G15: the rule errs on {facts['errors']} of {facts['n']} examples")
        if explanation["function"] != explanation["unnamed"]:
            name = f"the name {explanation['function']} ({up(facts['bits'], 4)} bits) is in the code, as tasks are"
            lines.append(f"{'':<10}  {name}: risk <= {up(certificate.risk, 3)}")
    return lines
