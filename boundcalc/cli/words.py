"""Names of options: other spellings that are accepted, and what is said of names that are unknown or gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boundcalc.base.spelling import LETTERS, british

_LETTERS = {word.replace("_", "-"): letter for letter, word in LETTERS.items()} | {"tau": "temperature"}
"""The words of code, as options have them, and the letters that options are called by."""

FORMER: Mapping[str, Mapping[str, str]] = {
    "--output": {"*": "-o or --out"},
    "--save": {"train": "-o or --out"},
    "--values": {"plot": "--sweep"},
    "--data": {"plot": "--from, beside which --size, --uncapped, --usetex and --title say how it looks"},
    "--success": {"plot": "--share", "threshold": "--accuracy (and its --level is --share)"},
    "--second": {"verify": "what verify always does: --trust says with which modules"},
    "--level": {"threshold": "--share (and its --success is --accuracy)"},
    "--task": {"*": "--runs task=NAME"},
    "--sweep": {"*": "--runs sweep=NAME"},
    "--status": {"*": "--runs status=done"},
    "--T": {"runs": "--runs T=64"},
    "--m": {"runs": "--runs m=64"},
    "--steps": {"derive": "--detail brief or full", "tightness": "--ladder"},
    "--preset": {"train": "--style and --normalisation (block was --style post, the default)"},
    "--risk": {"sparse": "--target"},
    "--width": {"latent": "--d"},
    "--bits": {"represent": "--reads"},
    "--noise": {"latent": "--value-noise"},
    "--confidence": {"latent": "--delta, which is 1 minus it"},
}
"""Options that had another name, by command ("*": any), and their names now."""


def accepted(token: str) -> str:
    """The one name of an option or of a choice, of the spellings that are accepted."""
    plain = british(token)
    return _LETTERS.get(plain.replace("_", "-"), plain)


def unknown_option(got: str, command: str, known: Iterable[str]) -> str:
    """What is said of an option that a command does not have."""
    from boundcalc.base.words import suggestion  # only a slip of the keyboard needs it

    now = FORMER.get(got, {})
    path = command.split()
    new = next((now[part] for part in reversed(path) if part in now), now.get("*"))
    options = list(known)
    if new is not None and any(part.lstrip("-") in {o.lstrip("-") for o in options} for part in new.split()):
        return f"{got} is now {new}"
    names = {option.lstrip("-"): option for option in options}
    near = suggestion(got.lstrip("-"), names)
    return f"no option {got}" + (f"; did you mean {names[near]}?" if near else "")
