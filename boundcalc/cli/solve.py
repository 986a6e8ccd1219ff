"""`boundcalc solve`."""

from __future__ import annotations

from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import at_least, at_most, down, log10_up, short
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.setting import full_json, setting_options, take_setting
from boundcalc.cli.text import say
from boundcalc.cli.theorem import alone, refuse_idle_bits
from boundcalc.cli.values import NUMBER, WHOLE, upper

_VARIABLES = ("m", "T", "C", "depth", "gamma", "delta", "n")
_FIELDS = {"m": "n_train", "T": "seq_len", "gamma": "margin"}


@click.command(
    epilog="""\b
Examples:
  boundcalc solve --for m --target 0.1 --depth 2 --T 512
  boundcalc solve --for T --target 0.2 --m 1e8 --bound closed
  boundcalc solve --for C --target 0.05 --quantity risk --m 1e7
  boundcalc solve --for n --certify held-out --truth 0.05 --target 0.1
  boundcalc solve --for n --certify difference --truth 0.02 --discordant 0.06 --power 0.8

Exit code 1 when no value in the range searched is enough.""",
)
@setting_options
@click.option("--for", "variable", type=click.Choice(_VARIABLES), required=True, help="What to solve for.")
@click.option("--target", type=NUMBER, default=0.1, show_default=True, help="The bound must be at most this.")
@click.option("--bound", default="best", show_default=True, help="Which bound.")
@click.option("--quantity", type=click.Choice(("gap", "risk")), show_default="gap", help="Bound of what.")
@click.option(
    "--certify",
    type=click.Choice(("held-out", "difference")),
    help="With --for n: test examples for a limit of the error at most --target, or to tell which of two models is "
    "better.",
)
@click.option(
    "--truth", type=NUMBER, help="The error supposed for planning n (of a difference: by how much they differ)."
)
@click.option("--discordant", type=NUMBER, help="Share of examples on which one of the two alone errs, likewise.")
@click.option("--power", type=NUMBER, default=0.9, show_default=True, help="Probability that n examples are enough.")
@click.option(
    "--looks", type=WHOLE, default=1, show_default=True, help="Models or looks at these examples that share delta."
)
@form_option("table", "json")
@click.pass_context
def command(
    context: click.Context,
    variable: str,
    target: float,
    bound: str,
    quantity: str | None,
    form: str,
    certify: str | None,
    truth: float | None,
    discordant: float | None,
    power: float,
    looks: int,
    **options: Any,
) -> None:
    """The smallest m, n, gamma or delta, or the largest T, C or depth, at which a bound is at most a target.

    The value is rounded to the safe side, and the bound is checked there. n is the number of test examples (--certify).
    """
    planning = ("certify", "truth", "discordant", "power", "looks")
    if variable == "n":
        takes = {"variable", "target", "form", "n_train", "delta", *planning}
        others = sorted(name for name in context.params if name not in takes)
        refuse_given(dict.fromkeys(others, "with --for n, which is about one fixed predictor"))
        _plan(certify, target, truth, discordant, power, float(options["delta"] or 0.05), looks, form)
        return
    refuse_given(dict.fromkeys(planning, "without --for n"))
    question = take_setting(options)
    theorem = alone([bound])
    if theorem is not None:
        raise InvalidSetting(
            f"{theorem.name} is not about a setting: solve is for bounds of one; "
            f"`boundcalc derive --bound {theorem.name}` gives its formula"
        )
    refuse_idle_bits(question, [bound])
    quantity = quantity or "gap"
    question.refuse(_FIELDS.get(variable, variable), f"{variable} is what is solved for; leave it out")
    if quantity == "gap":
        question.refuse(
            "train_error", "the gap bound holds for every training error; --quantity risk asks for the risk"
        )
    from boundcalc.engine.solve import solve

    solution: Any = solve(question.setting, variable, target, bound=bound, quantity=quantity)  # type: ignore[arg-type]
    value = solution.bound
    bounded = value.of(quantity)
    plain = _without_bits(solution, variable, target, bound, quantity)
    below = None
    if variable == "m" and quantity == "gap" and value.kind == "bound":
        from boundcalc.engine.floors import too_few_samples

        below = too_few_samples(question.setting, target, round(solution.value))
    if form == "json":
        out = {
            "for": variable,
            "target": target,
            "quantity": quantity,
            "direction": solution.direction,
            "value": solution.value,
            "at_end": solution.at_end,
            "setting": full_json(value.setting),
            "result": value.to_json(),
        }
        if below is not None:
            out["impossible_at"] = {"m": below.setting.sample.n_train, "floor": below.value}
        if plain is not None:
            reason = plain if isinstance(plain, str) else None
            out["without_bits"] = {"value": None if isinstance(plain, str) else plain.value, "reason": reason}
        write_json(out)
        return
    at = f" at train error {short(question.setting.sample.train_error)}" if quantity == "risk" else ""
    if quantity == "risk" and question.assumed("train_error"):
        at += " (default)"
    rounded = at_least if solution.direction == "smallest" else at_most
    say(
        f"{solution.direction} {variable} with {quantity} <= {short(target)}{at}: {rounded(solution.value)}\n"
        f"at this {variable}, {bound!r} gives {upper(log10_up(bounded.log_value))}, by {bounded.form}"
    )
    if below is not None:
        m = at_most(below.setting.sample.n_train)
        say(f"at m = {m} no bound of this kind can promise it (proved floor {down(below.value)})")
    bits = question.setting.architecture.bits
    if bits is not None and plain is None:
        say(f"to count stored weights of {bits} bits each (G13) would not help there")
    if plain is not None:
        without = plain if isinstance(plain, str) else f"{variable} = {rounded(plain.value)}"
        say(f"it is based on stored weights of {bits} bits each, fixed before the data (G13); without that: {without}")
    if solution.at_end:
        has = "has the margin" if quantity == "gap" else "with the margin is built"
        end = f"beyond it no network {has}" if solution.none_beyond else "the search ends there"
        say(
            f"{end}; smaller ones do not all meet the target"
            if solution.some_between_miss
            else f"every {variable} searched meets the target; {end}"
        )


def _plan(
    certify: str | None,
    target: float,
    truth: float | None,
    discordant: float | None,
    power: float,
    delta: float,
    looks: int,
    form: str,
) -> None:
    """How many test examples are needed."""
    from boundcalc.predictors.needed import plan_difference, plan_held_out

    if certify is None or truth is None:
        raise InvalidSetting(
            "--for n needs --certify held-out (or difference) and --truth: the error supposed for planning"
        )
    if (certify == "difference") != (discordant is not None):
        raise InvalidSetting(
            "--discordant goes with --certify difference: the share of examples on which one alone errs"
        )
    if discordant is None:
        plan = plan_held_out(target, truth, power, delta, looks)
        what = f"the certified error is at most {short(target)} where the true one is {short(truth)}"
    else:
        refuse_given({"target": "with --certify difference"})
        plan = plan_difference(truth, discordant, power, delta, looks)
        supposed = f"errors differ by {short(truth)} and {short(discordant)} are discordant"
        what = f"the exact paired test finds the better model where {supposed}"
    if form == "json":
        write_json(
            {
                "for": "n",
                "certify": certify,
                "n": plan.n,
                "always": plan.always,
                "power": plan.power,
                "allowed": plan.allowed,
            }
        )
        return
    say(f"n = {plan.always} test examples: with probability {short(power)} or more {what} (delta {short(delta)})")
    if plan.n < plan.always:
        allowed = "" if plan.allowed is None else f", {plan.allowed} errors allowed"
        say(f"{plan.n} is the smallest n that is enough{allowed}; from {plan.always} on every n is")
    elif plan.allowed is not None:
        say(f"{plan.allowed} errors allowed")


def _without_bits(solution: Any, variable: Any, target: float, bound: str, quantity: Any) -> Any:
    """The solution without the premise about bits, or why there is none; None where the solution is not based on it."""
    from boundcalc.cli.report import counts_stored

    if not counts_stored(solution.bound):
        return None
    from boundcalc.base.errors import NoSolution
    from boundcalc.engine.solve import solve

    try:
        return solve(solution.bound.setting.but(bits=None), variable, target, bound=bound, quantity=quantity)
    except NoSolution as error:
        return str(error)
