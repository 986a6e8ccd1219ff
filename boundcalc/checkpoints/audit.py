"""From a checkpoint to its norms: runs a plan's tasks and puts budgets together."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base import validate
from boundcalc.base.compared import Compared, describe_comparison
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints._account import FOLDED, KEY_BIAS, Account, balance
from boundcalc.checkpoints._products import measured_products
from boundcalc.checkpoints._tasks import Measurements, Plan
from boundcalc.checkpoints.errors import CheckpointError, NoReadOut
from boundcalc.checkpoints.families import Family, Model, Options, family_for
from boundcalc.checkpoints.families.read import NATIVE, read_mapping
from boundcalc.checkpoints.modules import bare
from boundcalc.checkpoints.parity import Parity, compare
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.checkpoints.tensors import STORED, read
from boundcalc.layers.base import of_class, weights_of
from boundcalc.norms.limits import Size, limits
from boundcalc.norms.limits import budget as budget_of
from boundcalc.norms.matrix import Floats, Measured
from boundcalc.norms.rounding import up
from boundcalc.setting import Architecture, Attention, Budget, Norms
from boundcalc.setting.norms import place_named, place_of

_Progress = Callable[[str, int, int], None]
"""Receives the name of a finished task, and how many of how many are done."""


_DEFAULTS = Options()


@dataclass(frozen=True, repr=False)
class Audit:
    """What a checkpoint's weights are like.

    Attributes:
        where: what was read.
        family: its adapter.
        architecture: the model as primitive layers.
        measured: certified norms, by key of norms files.
        distances: norms of W - M for a reference M, by the same keys.
        account: where every tensor went.
        seed: of the random probes.
        products: budgets of what maps that meet make, of this library's own models.
        parity: how the architecture was compared with the module's forward pass; None where no module was at hand.
        why_not: why it was not, where it could have been.
    """

    where: str
    family: str
    architecture: Architecture
    measured: Mapping[str, Measured]
    distances: Mapping[str, Measured]
    account: Account
    seed: int
    products: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    parity: Parity | None = None
    why_not: str = ""

    @property
    def compared(self) -> Compared | None:
        """What certificates keep of the forward check."""
        return None if self.parity is None else self.parity.compared

    @property
    def comparison(self) -> str:
        """Whether the architecture was compared with a forward pass, in words."""
        return describe_comparison(self.compared) + (f": {self.why_not}" if self.why_not else "")

    @property
    def failure(self) -> float:
        """Chance, over the random probes, that any norm is too small."""
        return up(math.fsum(m.failure for m in (*self.measured.values(), *self.distances.values())), 0)

    @property
    def missing(self) -> tuple[str, ...]:
        """A read-out, where the model ends in rows."""
        return _missing(self.architecture)

    def norms(self) -> Norms:
        """The budgets that the weights just fit, as a norms file has them; which limits, `norms.limits` says.

        Groups of queries share keys and values, so their budgets are those of the largest head; so are those of heads
        whose queries and keys are normalised together.
        """

        def alike(layer: Attention) -> bool:
            return layer.groups != layer.heads or layer.qk_norm == "width"

        heads = {a.block: a for a in of_class(self.architecture.stages, Attention)}
        sizes: dict[str, list[Size]] = {}
        for key, m in self.measured.items():
            kind, block, _ = place_of(key)
            d_head = heads[block].d_head if kind == "W_QK" else None
            rows, columns = m.shape if len(m.shape) == 2 else (*m.shape, 1)
            sizes.setdefault(kind, []).append((rows, columns, min(rows, columns, d_head or rows)))
        budgets: dict[str, Budget] = {}
        for key, m in self.measured.items():
            kind, block, head = place_of(key)
            limit = budget_of(m, limits(kind, sizes[kind]))
            if key in self.distances:
                apart = limits(kind, [(d, k, min(d, k, 2 * rank)) for d, k, rank in sizes[kind]])
                limit = replace(limit, distance=budget_of(self.distances[key], apart))
            shared = head is not None and alike(heads[block])
            name = place_named(kind, block) if shared else key
            budgets[name] = budgets[name].join(limit) if name in budgets else limit
        return Norms(budgets=budgets | dict(self.products), measured=True, failure=self.failure)

    def with_bits(self, bits: int) -> Audit:
        """The same with the premise that a stored weight has so many bits (G13), which no tensor may exceed."""
        for line in self.account.lines:
            stored = 8 * STORED[line.dtype].itemsize
            if line.reason.startswith(FOLDED):
                raise InvalidSetting(
                    f"--bits {bits}: {line.tensor} is {line.reason}: what is measured is no number of {bits} bits, and "
                    "G13 would count too few; leave --bits out"
                )
            if (line.used or line.reason == KEY_BIAS) and stored > bits:
                raise InvalidSetting(
                    f"--bits {bits}: {line.tensor} is stored as {line.dtype}, numbers of {stored} bits; give --bits "
                    f"{stored} if that was fixed before the data"
                )
        return replace(self, architecture=self.architecture.with_fields(bits=bits))

    def table(self) -> list[dict[str, Any]]:
        """One row per matrix, head or vector."""
        rows: list[dict[str, Any]] = []
        for key, m in self.measured.items():
            far = self.distances.get(key)
            norms = {symbol: getattr(m, name) for symbol, name in COLUMNS.items()}
            distance = None if far is None else far.op if far.fro is None else far.fro
            rows.append({"weight": key, "shape": list(m.shape), **norms, "distance": distance})
        return rows

    def to_json(self) -> dict[str, Any]:
        """The full report."""
        account, parity = self.account, self.parity
        return {
            "model": self.where,
            "family": self.family,
            "architecture": self.architecture.to_json(),
            "seed": self.seed,
            "failure": self.failure,
            "weights": self.table(),
            "account": {
                "tensors": [asdict(line) for line in account.lines],
                "parameters": account.total,
                **{name: getattr(account, name) for name in ("used", "lowered", "shared")},
                "doubts": list(account.doubts),
                "assumed": dict(account.assumed),
            },
            "missing": list(self.missing),
            "forward_check": parity.to_json() if parity else {"compared": False, "text": self.comparison},
        }


COLUMNS = {"op": "op", "F": "fro", "21": "two_one", "21T": "two_one_t", "11": "one_one"}
COLUMNS |= {name: name for name in ("row", "column", "sup", "rank")}
"""Columns of the table, and the attributes of `Measured` they show."""


def audit(
    source: object,
    *,
    family: str | Family | None = None,
    mapping: str | Path | Mapping[str, Any] | None = None,
    heads: int | None = None,
    options: Options = _DEFAULTS,
    reference: object | None = None,
    seed: int | None = None,
) -> Audit:
    """Certified norms of every weight of a checkpoint (a path, or a live torch module).

    `mapping` describes a model of no known family: a file, or the same as a dictionary. `heads` is short for the
    option. A live module is compared with the architecture it is read as.
    """
    options = options if heads is None else replace(options, heads=heads)
    model = open_model(source, chosen_family(family, mapping), options)
    audited, live = measured(model, reference=reference, seed=seed), bare(source)
    return replace(audited, parity=compare(live, model)) if hasattr(live, "forward") else audited


def measured(
    model: Model,
    *,
    reference: object | None = None,
    seed: int | None = None,
    progress: _Progress | None = None,
    whole: bool = False,
    parity: Parity | None = None,
    why_not: str = "",
) -> Audit:
    """Certified norms of a model as it is described.

    Args:
        model: a checkpoint, seen through its family.
        reference: weights fixed before the data, distances from which are measured too.
        seed: of the random probes.
        progress: is shown every task that is done.
        whole: whether a model is refused that is not, or not surely, the one that would be bounded.
        parity: the forward check, where there was one.
        why_not: why there was none.
    """
    seed = secrets.randbits(63) if seed is None else validate.size("seed", seed, least=0, most=10**20)
    architecture = model.architecture
    model.refuse_unread_options()
    plan = Plan(model, None if reference is None else open_model(reference, model.family, model.options))
    account = balance(model, plan.read, plan.shared)
    if whole:
        _refuse_partial(model, account)

    def get(kind: str, block: int | None) -> Floats:
        return np.asarray(read(model.place(kind, block)), np.float64)

    norms, distances = Measurements(), Measurements()
    for index, task in enumerate(plan.tasks):
        with np.errstate(over="ignore", invalid="ignore"):
            results = plan.measure(task, np.random.default_rng([seed, index]))
        if not all(m.finite for part in results for m in part.values()):
            raise CheckpointError(f"{task.name}: a norm is larger than every float: these are no trained weights")
        norms |= results[0]
        distances |= results[1]
        if progress is not None:
            progress(task.name, index + 1, len(plan.tasks))
    return Audit(
        where=model.checkpoint.where,
        family=model.family.name,
        architecture=architecture,
        measured=norms,
        distances=distances,
        account=account,
        seed=seed,
        parity=parity,
        why_not=why_not,
        products={} if model.family.name != NATIVE.name else measured_products(architecture, get),
    )


def _refuse_partial(model: Model, account: Account) -> None:
    """Refuses a model that is not, or not surely, the one that would be bounded."""
    where = model.checkpoint.where
    if account.unknown:
        raise InvalidSetting(
            f"{where} has {account.unknown[0]}, which the family {model.family.name!r} does not know, so a bound may "
            "not be about this model: give its module, or describe it with a mapping (docs/weights.md)"
        )
    if missing := _missing(model.architecture):
        raise (InvalidSetting if model.family.described else NoReadOut)(
            f"{where} has no {missing[0]}, so it answers with rows and no labels: certify the classifier that you put "
            "behind it (test=)"
        )
    if account.doubts:
        raise InvalidSetting(f"{where} may not be what would be bounded: {account.doubts[0]}")


def _missing(architecture: Architecture) -> tuple[str, ...]:
    own = (weight.kind for weight in weights_of(architecture.stages, architecture.seq_len))
    return () if "readout" in own else ("readout",)


def chosen_family(family: str | Family | None, mapping: str | Path | Mapping[str, Any] | None) -> str | Family | None:
    """The family that is named, or that a mapping describes."""
    if mapping is None:
        return family
    if family is not None:
        raise InvalidSetting("a mapping describes a model of no family: leave out the mapping, or the family")
    return read_mapping(mapping if isinstance(mapping, Mapping) else Path(mapping))


def open_model(source: object, family: str | Family | None = None, options: Options = _DEFAULTS) -> Model:
    """A checkpoint and its adapter."""
    checkpoint = open_checkpoint(source)
    return Model(checkpoint, family if isinstance(family, Family) else family_for(checkpoint, family), options)
