"""The report of `boundcalc certify` around the table of bounds: cost of choices, and which layers dominate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from boundcalc.base.rounding import percent, short
from boundcalc.cli.checkpoint import account_lines
from boundcalc.cli.options import write_json
from boundcalc.cli.text import say

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit
    from boundcalc.cli.report import Report
    from boundcalc.lab.certification import Certification
    from boundcalc.setting import Setting

_LAYERS = 12
"""Layers in the table of what dominates; the others are summed up in one line."""


def table(audit: Audit, report: Report, setting: Setting, *, more: bool = False) -> None:
    """The verdict, the account, the bounds and the shares of layers, as text; `more`: after a verdict on data."""
    from boundcalc.base.rounding import up
    from boundcalc.cli.formats import show

    if not more:
        say(f"{_verdict(audit, report, setting)}\n\n{audit.where}: family {audit.family}")
    for text in account_lines(audit)[more:]:  # the first is about the comparison with the model
        say(text)
    say()
    show(report, "table")
    paid, cost = _paid(setting)
    say(
        f"Cost of choosing norms after training (P1): {len(paid.norms.budgets)} kinds of weights, rounded up to the "
        f"grid; gamma {short(paid.sample.margin)}; "
        f"log(1/delta) grows from {up(-math.log(paid.sample.delta), 3)} to {up(cost - math.log(paid.sample.delta), 3)}."
    )
    shares = _pieces(report)
    if shares:
        say(f"\nWhat the best {_made_of(report)} bound is made of (part of its log counts):\n")
        _layers(shares)


def _verdict(audit: Audit, report: Report, setting: Setting) -> str:
    """The best that its norms prove, in one sentence."""
    from boundcalc.base.rounding import at_least, confidence, up

    sure = f"with probability {confidence(setting.sample.delta)}"
    best = report.best
    risk = None if best is None or best.risk_refusal is not None else best.of("risk")
    gap = None if best is None else best.of("gap")
    if risk is not None and not risk.vacuous:
        share = percent(setting.sample.train_error, 3, by=up)
        seen = f"where {share} of training margins are at most {short(setting.sample.margin)}"
        return f"Error of {audit.where} at most {percent(risk.value, 3, by=up)} {sure}, by its norms, {seen}."
    if gap is not None and not gap.vacuous:
        return (
            f"Gap of {audit.where} at most {up(gap.value, 3)} {sure}, by its norms; no bound of its error is below 1."
        )
    return (
        f"Nothing below 1 is proved of {audit.where} by its norms at m = {at_least(setting.sample.n_train)}; examples "
        "that it has not met prove more (--test)."
    )


def as_json(audit: Audit, report: Report, setting: Setting, certified: Certification | None) -> None:
    """The same for programs, with the certificates of a data set."""
    data = report.to_json()
    data["model"] = audit.where
    data["family"] = audit.family
    data["forward_check"] = audit.to_json()["forward_check"]
    if certified is not None:
        data["certified"] = certified.to_json()
    data["pieces"] = dict(_pieces(report))
    data["p1"] = _paid(setting)[1]
    write_json(data)


def _paid(setting: Setting) -> tuple[Setting, float]:
    """The setting at its grid, and what P1 adds to log(1/delta)."""
    from boundcalc.base.numbers import FLOAT
    from boundcalc.statements.posthoc import correct_for_selection, posthoc_cost

    paid, measured = correct_for_selection(setting)
    return paid, 0.0 if measured is None else float(posthoc_cost(FLOAT, paid, measured))


def _made_of(report: Report) -> str:
    """Whose pieces are shown: the gap bound's, or the risk bound's where that of the gap is trivial."""
    return "risk" if report.best is not None and report.best.trivial else "gap"


def _pieces(report: Report) -> Mapping[str, float]:
    """The shares of the best bound of the gap, or of the risk."""
    best = report.best
    if best is None:
        return {}
    return best.of("risk" if best.trivial else "gap").shares if best.risk_refusal is None or not best.trivial else {}


def _layers(pieces: Mapping[str, float]) -> None:
    """A row per layer: its share, and the pieces it has most of it from."""
    from boundcalc.cli.text import Line, write_table

    layers: dict[str, dict[str, float]] = {}
    for key, share in pieces.items():
        place = key.partition("[")[2].rstrip("]").partition(",")[0]
        kind = key.partition("[")[0]
        layer = layers.setdefault(f"block {place}" if place else "outside the blocks", {})
        layer[kind] = layer.get(kind, 0.0) + share
    ranked = sorted(layers.items(), key=lambda item: -sum(item[1].values()))
    lines: list[Line] = []
    for name, kinds in ranked[:_LAYERS]:
        top = sorted(kinds.items(), key=lambda item: -item[1])[:3]
        words = ", ".join(f"{kind} {percent(share)}" for kind, share in top)
        lines.append(Line([name, percent(sum(kinds.values())), words]))
    if len(ranked) > _LAYERS:
        rest = sum(sum(kinds.values()) for _, kinds in ranked[_LAYERS:])
        more = len(ranked) - _LAYERS
        lines.append(Line([f"{more} other{'s' * (more > 1)}", percent(rest), ""]))
    write_table(["layer", "share", "most of it from"], lines, right=frozenset([1]))
