"""`boundcalc solve`."""

from __future__ import annotations

from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import at_least, at_most, down, log10_up, short, upper
from boundcalc.cli._eval import alone, refuse_idle_bits
from boundcalc.cli._options import command_with, form_option, option, refuse_given, refuse_others, write_json
from boundcalc.cli._setting import setting_options, take_setting
from boundcalc.cli._text import say

_VARIABLES = ("m", "T", "C", "depth", "gamma", "delta", "n")
_FIELDS = {"m": "n_train", "T": "seq_len", "gamma": "margin"}
_PLANNING = ("certify", "truth", "discordant", "power", "looks")


@command_with("""\
  boundcalc solve --for m --target 0.1 --depth 2 --T 512
  boundcalc solve --for T --target 0.2 --m 1e8 --bound closed
  boundcalc solve --for n --certify held-out --truth 0.05 --target 0.1
  boundcalc solve --for n --certify difference --truth 0.02 --discordant 0.06 --power 0.8

Exit code 1 when no value in the range searched is enough.""")
@setting_options
@option("--for variable", click.Choice(_VARIABLES), "What to solve for.", required=True)
@option("--target", float, "The bound must be at most this.", 0.1)
@option("--bound", str, "Which bound.", "best")
@option("--quantity", click.Choice(("gap", "risk")), "Bound of what.", "gap")
@option(
    "--certify",
    click.Choice(("held-out", "difference")),
    "With --for n: test examples for a limit of the error at most --target, or to tell which of two models is better.",
)
@option("--truth", float, "The error supposed for planning n (of a difference: by how much they differ).")
@option("--discordant", float, "Share of examples on which one of the two alone errs, likewise.")
@option("--power", float, "Probability that n examples are enough.", 0.9)
@option("--looks", int, "Models or looks at these examples that share delta.", 1)
@form_option("table", "json")
def command(variable: str, target: float, bound: str, quantity: Any, form: str, **options: Any) -> None:
    """The smallest m, n, gamma or delta, or the largest T, C or depth, at which a bound is at most a target.

    The value is rounded to the safe side, and the bound is checked there. n is the number of test examples (--certify).
    """
    planning = {name: options.pop(name) for name in _PLANNING}
    if variable == "n":
        takes = {"variable", "target", "form", "n_train", "delta", *_PLANNING}
        refuse_others("with --for n, which is about one fixed predictor", takes)
        _plan(target, options["delta"] or 0.05, form, planning)
        return
    refuse_given("without --for n", *_PLANNING)
    question = take_setting(options)
    if (theorem := alone([bound])) is not None:
        raise InvalidSetting(
            f"{theorem.name} is not about a setting: solve is for bounds of one; "
            f"`boundcalc derive --bound {theorem.name}` gives its formula"
        )
    refuse_idle_bits(question, [bound])
    question.refuse(_FIELDS.get(variable, variable), f"{variable} is what is solved for; leave it out")
    if quantity == "gap":
        why = "the gap bound holds for every training error; --quantity risk asks for the risk"
        question.refuse("train_error", why)
    from boundcalc.cli._report import counts_stored
    from boundcalc.engine.floors import too_few_samples
    from boundcalc.engine.solve import solve

    solution: Any = solve(question.setting, variable, target, bound=bound, quantity=quantity)  # type: ignore[arg-type]
    value, below = solution.bound, None
    if variable == "m" and quantity == "gap" and value.kind == "bound":
        below = too_few_samples(question.setting, target, round(solution.value))
    if form == "json":
        out = {"for": variable, "target": target, "quantity": quantity, "direction": solution.direction}
        out |= {"value": solution.value, "at_end": solution.at_end}
        out |= {"setting": value.setting.complete_json(), "result": value.to_json()}
        if below is not None:
            out["impossible_at"] = {"m": below.setting.sample.n_train, "floor": below.value}
        write_json(out)
        return
    at = ""
    if quantity == "risk":
        default = " (default)" * question.assumed("train_error")
        at = f" at train error {short(question.setting.sample.train_error)}{default}"
    rounded = at_least if solution.direction == "smallest" else at_most
    say(f"{solution.direction} {variable} with {quantity} <= {short(target)}{at}: {rounded(solution.value)}")
    proof = value.of(quantity)
    say(f"at this {variable}, {bound!r} gives {upper(log10_up(proof.log_value))}, by {proof.form}")
    if below is not None:
        m = at_most(below.setting.sample.n_train)
        say(f"at m = {m} no bound of this kind can promise it (proved floor {down(below.value)})")
    if counts_stored(value):
        bits = value.setting.architecture.bits
        say(f"it is based on stored weights of {bits} bits each, fixed before the data (G13); leave out --bits without")
    if solution.at_end:
        has = "has the margin" if quantity == "gap" else "with the margin is built"
        end = f"beyond it no network {has}" if solution.none_beyond else "the search ends there"
        say(
            f"{end}; smaller ones do not all meet the target"
            if solution.some_between_miss
            else f"every {variable} searched meets the target; {end}"
        )


def _plan(target: float, delta: float, form: str, planning: dict[str, Any]) -> None:
    """How many test examples are needed."""
    from boundcalc.predictors.needed import plan_difference, plan_held_out

    certify, truth, discordant, power, looks = (planning[name] for name in _PLANNING)
    if certify is None or truth is None or (certify == "difference") != (discordant is not None):
        raise InvalidSetting(
            "--for n needs --certify held-out and --truth, the error supposed for planning; or --certify difference, "
            "--truth and --discordant, the share of examples on which one alone errs"
        )
    if discordant is None:
        plan = plan_held_out(target, truth, power, delta, looks)
        what = f"the certified error is at most {short(target)} where the true one is {short(truth)}"
    else:
        refuse_given("with --certify difference", "target")
        plan = plan_difference(truth, discordant, power, delta, looks)
        supposed = f"errors differ by {short(truth)} and {short(discordant)} are discordant"
        what = f"the exact paired test finds the better model where {supposed}"
    if form == "json":
        write_json({"for": "n", "certify": certify, "n": plan.n, "power": plan.power, "allowed": plan.allowed})
        return
    say(f"n = {plan.n} test examples: with probability {short(power)} or more {what} (delta {short(delta)})")
    if plan.allowed is not None:
        say(f"{plan.allowed} errors allowed")
