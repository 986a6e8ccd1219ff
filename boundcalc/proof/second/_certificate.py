"""A certificate's file: what is claimed, of what, and by which steps."""

from collections import namedtuple
from typing import Any

from ._numbers import demand, unknown
from ._setting import read_setting
from ._strict import KINDS, Record, ranged, read, value

FORMAT = "boundcalc-certificate/4"
STATEMENTS = 9  # the version of the statements that are written here a second time


STRATEGIES = {"chain": "gap levels uniform", "closed": "gap closed", "published": "gap closed"}
STRATEGIES |= {"uniform-margin": "risk uniform mu", "noise-margin": "risk uniform mu eta"}
STRATEGIES |= {"comparison-closed": "gap coverless", "comparison": "gap coverless tuning"}
STRATEGIES |= {"stored-gap": "gap coverless stored", "stored-margin": "risk coverless stored mu"}
"""Of each what it bounds; whether it may have any number of levels, which may refine those before, asks for uniform
covers, is a closed form for all scales or a count of stored weights; and its facts besides levels."""


class Certificate(namedtuple("_FIELDS", "setting looked nats strategy meeting mu eta tuning levels log_value")):
    """A claim and its steps.

    `looked`: norms and numbers of the sample that were read off before they were chosen; `nats`: the claimed
    correction. `levels`: each with log_scale, log_count and covers by piece, which have log_eps and a choice for each
    kind of map.
    """

    def has(self, word: str) -> bool:
        """Whether a word is true of its strategy."""
        return word in STRATEGIES[self.strategy].split()


_LINE = (
    "format:text statements:index setting:object found_by:text strategy:text levels:level* log_value:number "
    "mu:number? looked_at:looked? nats:number meeting:flag eta:chance? tuning:tuning? forward_check:compared?"
)


def read_certificate(data: Any) -> Certificate:
    """The certificate of a JSON value, with nothing in it that is not read and nothing left out."""
    about = data.get("format") if isinstance(data, dict) else None
    demand(about == FORMAT, f"it reads certificates of format {FORMAT!r}, got {about!r:.60}")
    raw = read(_LINE, "the certificate", data)
    demand(raw.statements == STATEMENTS, f"it knows the statements of version {STATEMENTS}, got {raw.statements}")
    setting, name = read_setting("setting", raw.setting), raw.strategy
    if name not in STRATEGIES:
        raise unknown("strategy", name)
    words = set(STRATEGIES[name].split())
    demand(len(raw.levels) == 1 or {"levels", "coverless"} & words, f"{name} has one level")
    demand("coverless" not in words or not (raw.levels or raw.meeting), f"{name} takes no covers")
    demand("stored" not in words or setting.bits is not None, "the setting does not give the bits of a stored weight")
    demand(not (raw.meeting and "closed" in words), "a closed form covers every map by itself")
    limit = setting.sample.train_error == 0 and "eta" not in words  # the kl inverse has one, without mu
    for word in ("mu", "eta", "tuning"):
        needed = word in words and not (word == "mu" and limit)
        demand((getattr(raw, word) is not None) == needed, f"{name} takes {'a' if needed else 'no'} {word} here")
    demand((raw.eta or 0) <= 0.5 and (raw.mu is None or raw.mu > 0), "eta is at most 1/2, and mu above 0")
    looked = raw.looked_at or Record(norms=None, sample={})
    steps = (name, raw.meeting, raw.mu, raw.eta, raw.tuning, raw.levels, raw.log_value)
    return Certificate(setting, looked, raw.nats, *steps)


def _looked(where: str, data: Any) -> Record:
    raw = read("norms:norms? sample:object?", where, data)
    demand(raw.norms is None or raw.norms.measured, f"{where}.norms are measured norms")
    seen = read("", f"{where}.sample", raw.sample or {}, "margin:number train_error:number candidates:candidates")
    chosen = hasattr(seen, "train_error") == hasattr(seen, "candidates")
    demand(chosen and raw.sample != {}, f"{where}.sample: a training error is chosen among candidates")
    demand(raw.norms or raw.sample, f"{where} names nothing")
    return raw.but(sample=vars(seen))


def _compared(where: str, data: Any) -> None:
    """A record of a forward pass, which no checker can prove: that it is one, of passes that agreed."""
    line = "module:text largest:share allowed:chance inputs:size rows:size places:index outputs:flag"
    raw = read(line, where, data)
    demand(
        raw.module.isprintable() and raw.module != "" and raw.largest <= raw.allowed, f"{where} tells of no agreement"
    )


def _level(where: str, data: Any) -> Record:
    raw = read("log_scale:number log_count:number covers:object", where, data)
    line = "log_eps:number choices:choice*"
    return raw.but(covers={key: read(line, f"{where}.{key:.60}", cover) for key, cover in raw.covers.items()})


def _choice(where: str, data: Any) -> Record:
    if data == {"lemma": "zero"}:
        return Record(lemma="zero", target=0, params={}, refines=False)
    raw = read("lemma:text target:index params:object", where, data, "refines:flag")
    demand(
        raw.lemma != "zero" and getattr(raw, "refines", True),
        f"{where}: zero stands alone, refines is true or not said",
    )
    params = {name: value("number", f"{where}: {name}", entry) for name, entry in raw.params.items()}
    return raw.but(params=params, refines=hasattr(raw, "refines"))


KINDS.update(looked=_looked, compared=_compared, level=_level, choice=_choice)
KINDS.update(candidates=ranged(3, 10**6, whole=True))
