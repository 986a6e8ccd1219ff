"""A certificate's file: what is claimed, of what, and by which steps."""

from collections import namedtuple
from typing import Any

from .numbers import demand, unknown
from .setting import read_setting
from .strict import KINDS, Record, ranged, read, value

FORMAT = "boundcalc-certificate/3"
STATEMENTS = 9  # the version of the statements that are written here a second time


STRATEGIES = {"chain": "gap levels uniform", "closed": "gap closed", "published": "gap closed"}
STRATEGIES |= {"uniform-margin": "risk uniform mu", "noise-margin": "risk uniform mu eta"}
STRATEGIES |= {"comparison-closed": "gap coverless", "comparison": "gap coverless tuning"}
STRATEGIES |= {"stored-gap": "gap coverless stored", "stored-margin": "risk coverless stored mu"}
"""Of each what it bounds; whether it may have any number of levels, which may refine those before, asks for uniform
covers, is a closed form for all scales or a count of stored weights; and its facts besides levels."""


class Certificate(namedtuple("_FIELDS", "setting looked strategy meeting mu eta tuning levels log_value")):
    """A claim and its steps.

    `looked`: norms and numbers of the sample that were read off before they were chosen, and the claimed correction
    (nats). `levels`: each with log_scale, log_count and covers by piece, which have log_eps and a choice for each kind
    of map.
    """

    def has(self, word: str) -> bool:
        """Whether a word is true of its strategy."""
        return word in STRATEGIES[self.strategy].split()


def read_certificate(data: Any) -> Certificate:
    """The certificate of a JSON value, with nothing in it that is not read and nothing left out."""
    about = data.get("format") if isinstance(data, dict) else None
    demand(about == FORMAT, f"it reads certificates of format {FORMAT!r}, got {about!r:.60}")
    line = "format:text statements:index claim:object setting:object looked_at:looked strategy:object levels:level* "
    raw = read(line + "found_by:text forward_check:compared?", "the certificate", data)
    demand(raw.statements == STATEMENTS, f"it knows the statements of version {STATEMENTS}, got {raw.statements}")
    setting = read_setting("setting", raw.setting)
    how = read("name:text meeting:flag", "strategy", raw.strategy, "mu:positive eta:chance tuning:tuning")
    if how.name not in STRATEGIES:
        raise unknown("strategy", how.name)
    words = set(STRATEGIES[how.name].split())
    free, stored = {"levels", "coverless"} & words, "stored" in words
    demand(len(raw.levels) == 1 or free, f"{how.name} has one level")
    demand("coverless" not in words or not (raw.levels or how.meeting), f"{how.name} takes no covers")
    demand(not stored or setting.bits is not None, "the setting does not give the bits of a stored weight")
    demand(not (how.meeting and "closed" in words), "a closed form covers every map by itself")
    limit = setting.sample.train_error == 0 and "eta" not in words  # the kl inverse has one, without mu
    says = words & ({"eta", "tuning"} if limit else {"eta", "mu", "tuning"})
    demand(vars(how).keys() - {"name", "meeting"} == says, f"{how.name} says {sorted(says)} here")
    details = {"mu": None, "eta": None, "tuning": None} | {name: getattr(how, name) for name in says}
    demand(details["eta"] is None or details["eta"] <= 0.5, "eta is at most 1/2")
    claim = _claim(raw.claim, "risk" if "risk" in words else "gap", setting.sample)
    return Certificate(setting, raw.looked_at, how.name, how.meeting, levels=raw.levels, log_value=claim, **details)


def _claim(data: Any, quantity: str, sample: Record) -> float:
    """The relation to prove is about the setting it stands next to."""
    line = f"quantity:{quantity} log_value:number delta:chance"
    claim = read(line + " train_error:share" * (quantity == "risk"), "claim", data)
    same = claim.delta == sample.delta and getattr(claim, "train_error", sample.train_error) == sample.train_error
    demand(same, "the claim is for another delta or training error than the setting")
    return claim.log_value


def _looked(where: str, data: Any) -> Record:
    raw = read("norms:norms? sample:object? nats:number", where, data)
    demand(raw.norms is None or raw.norms.measured, f"{where}.norms are measured norms")
    seen = read("", f"{where}.sample", raw.sample or {}, "margin:number train_error:number candidates:candidates")
    chosen = hasattr(seen, "train_error") == hasattr(seen, "candidates")
    demand(chosen and raw.sample != {}, f"{where}.sample: a training error is chosen among candidates")
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
