"""What a trained model answers to sequences: its module where one is at hand, else the architecture as described.

A module that nothing describes answers all the same: what needs no architecture is certified of it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.compared import ROUNDING
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import write
from boundcalc.checkpoints.audit import Audit
from boundcalc.checkpoints.data import Sequences, sequences
from boundcalc.checkpoints.errors import CheckpointError, NoFunction, NotRun
from boundcalc.checkpoints.families import Model
from boundcalc.checkpoints.families.read import NATIVE
from boundcalc.checkpoints.forward import Network
from boundcalc.checkpoints.margins import Margins, margins_of
from boundcalc.checkpoints.modules import answer, as_arrays, at_row, called, double_precision_copy, ready, with_weights
from boundcalc.checkpoints.parity import Parity, fixed_beside
from boundcalc.checkpoints.tensors import Checkpoint
from boundcalc.checkpoints.traced import Call, patch_map, record, rows_of_images, rows_read
from boundcalc.layers.attention import is_causal
from boundcalc.layers.embedding import token_tables
from boundcalc.layers.forward import Fixed
from boundcalc.predictors.data import Data, digest_of_arrays

_AGAIN = 64
"""Examples that are answered again."""
_WORK = 2 * 10**11
"""Parameters times rows times examples that the description is run on for this."""
_CHANGED = 0.5
"""Where the description differs on more of the examples, after it agreed in the forward check, the module has
changed."""


@dataclass(frozen=True, eq=False)
class Examples(Sequences):
    """Sequences as certificates of predictors name them."""

    @classmethod
    def of(cls, data: Sequences | Data) -> Examples:
        """Any examples."""
        examples = sequences((data.x, data.y)) if isinstance(data, Data) else data
        return examples if isinstance(examples, Examples) else cls(**vars(examples))

    @property
    def sha256(self) -> str:
        """Names them and their order by every bit; of one shape, as the same arrays in a file are named."""
        if len({x.shape for x in self.x}) == 1:
            return Data(np.stack(list(self.x)), self.y).sha256
        return digest_of_arrays({"y": self.y} | {f"x{i}": x for i, x in enumerate(self.x)})

    def take(self, places: Any) -> Examples:
        """Some of them, in this order."""
        return Examples([self.x[int(i)] for i in places], self.y[np.asarray(places)], self.notes)


@dataclass(frozen=True)
class Outputs:
    """A model that was read, and what it answers: the module where it is at hand, else the architecture as described.

    Attributes:
        checkpoint: its tensors.
        where: what it is called.
        live: the module, where it is at hand.
        model: the checkpoint as it is described; None where nothing describes it.
        audit: its norms, likewise.
        fixed: what is fixed before the data, where the module does not say it.
        call: how the module is called, where module(x) is not it.
        why_not: why it is not described.
    """

    checkpoint: Checkpoint
    where: str
    live: Any
    model: Model | None = None
    audit: Audit | None = None
    fixed: Fixed | None = None
    call: Call | None = None
    why_not: str = ""

    @property
    def parity(self) -> Parity | None:
        """The forward check."""
        return None if self.audit is None else self.audit.parity

    @property
    def recipe(self) -> dict[str, Any]:
        """What answers, as certificates record it."""
        by = "the architecture as described" if self.live is None else f"the module {called(self.live)}"
        compared = None if self.audit is None else self.audit.compared
        described = self.live is None
        return {
            "name": Path(self.where).name,
            "answers": by,
            "architecture": self.audit.architecture.to_json() if self.audit is not None and described else None,
            "forward_check": None if compared is None else write(compared, complete=True),
        }

    @cached_property
    def weights(self) -> str:
        """Names the tensors by every bit of them."""
        return digest_of_arrays({name: tensor.fetch() for name, tensor in self.checkpoint.tensors.items()})

    def scores(self, examples: Any) -> Any:
        """How far the right answer is ahead: a certificate of test examples is established again with them."""
        return self.margins_of_function(Examples.of(examples)).values

    def with_tensors(self, checkpoint: Checkpoint) -> Outputs:
        """The same with other numbers in its tensors."""
        live = None if self.live is None else with_weights(self._copy, checkpoint)
        model = None if self.model is None else Model(checkpoint, self.model.family, self.model.options)
        return replace(self, checkpoint=checkpoint, model=model, live=live)

    @cached_property
    def _copy(self) -> Any:
        """A module whose weights may be changed."""
        return double_precision_copy(self.live)

    def margins(self, data: Sequences) -> Margins:
        """Margins, less what rounding may have added to them."""
        return self._margins(self(data), data)

    def _margins(self, out: Any, data: Sequences) -> Margins:
        return margins_of(out, data.y, 2 * self._tolerance * float(np.abs(out).max(initial=0)))

    @property
    def _tolerance(self) -> float:
        return ROUNDING if self.parity is None else self.parity.tolerance

    def __call__(self, data: Sequences) -> Any:
        return self._run(self._described() if self.live is None else self._module(), data)

    def _run(self, run: Callable[[Any], Any], data: Sequences, most: int = 256) -> Any:
        """The answers of a function of batches, in the order of the data."""
        answers: list[Any] = [None] * len(data)
        first = None if self.audit is None else token_before(data, self.audit)
        for places, x in data.batches(most):
            self._check_images(x)
            out = run(x if first is None else np.insert(x, 0, first, axis=1))
            for place, row in zip(places, out, strict=True):
                answers[place] = row
        return np.stack(answers)

    def margins_of_function(self, data: Sequences) -> Margins:
        """Margins of a module that is a function of one example; refused where answers depend on anything else.

        Up to 64 random examples are answered again, one by one and in another batch, and by the description.
        """
        answers = self(data)
        if self.live is None:
            return self._margins(answers, data)
        places = np.random.default_rng(0).permutation(len(data))[:_AGAIN]
        few, run = Examples.of(data).take(places), self._module()
        ways = {
            "one by one": lambda: self._run(run, few, most=1),
            "in another batch": lambda: self._run(run, few),
        }
        if self.parity is not None and self.parity.outputs is not None:
            count = max(4, _WORK // (self.checkpoint.size * max(len(x) for x in few.x)))
            ways["by the description"] = lambda: self._run(self._described(), few.take(range(min(len(few), count))))
        finite = answers[np.isfinite(answers)]
        tolerance = self._tolerance * float(np.abs(finite).max(initial=0))
        for how, ask in ways.items():
            again = ask()
            off = ~np.isclose(again, answers[places[: len(again)]], rtol=0, atol=tolerance, equal_nan=True)
            which = off.reshape(len(off), -1).any(-1)
            if how == "by the description" and which.any() and which.mean() < _CHANGED:
                raise CheckpointError(
                    f"the description answers {which.sum()} of {len(again)} examples otherwise than the module"
                )
            if which.any():
                raise NoFunction(
                    f"the module answers {which.sum()} of {len(again)} examples otherwise when they are answered "
                    f"{how}: it is no function of one example (of the batch, of earlier calls, or of what it wrote "
                    "into its input), so that nothing here is about it"
                )
        return self._margins(answers, data)

    def _rows(self, model: Model, x: Any) -> Any:
        """What the description reads where the model is given x."""
        if self.live is None or patch_map(model) is None:
            return rows_of_images(model, x) if x.ndim == 4 else x
        return rows_read(model, np.asarray(x), record(self.live, [x], self.call).trace)

    def _check_images(self, x: Any) -> None:
        if self.model is None or self.audit is None:
            return
        if x.ndim != 4 and (self.live is None or not patch_map(self.model)):
            return
        rows = self._rows(self.model, x)
        refuse_longer(rows, self.audit.architecture.input_radius, "patch")
        longest_allowed = self.audit.architecture.seq_len
        whole = rows.shape == x.shape  # rows that stand in the data, of any number up to T
        if rows.shape[1] > longest_allowed or (rows.shape[1] != longest_allowed and not whole):
            raise InvalidSetting(f"images of {rows.shape[1]} rows, but T is {longest_allowed}")

    def _described(self) -> Callable[[Any], Any]:
        """The description; next to a module read out where that reads out."""
        model, audit = self.model, self.audit
        assert model is not None  # noqa: S101 - without a module there is a description
        assert audit is not None  # noqa: S101
        row = self.parity.row if self.parity else None
        if self.live is None:
            row_read = -1 if is_causal(audit.architecture.stages) or model.flag("last") else 0
            fixed = self.fixed or Fixed(rotate=model.family.rotate, row=row_read)
        else:
            fixed = replace(self.fixed or fixed_beside(self.live, model), row=row or 0)
        network = Network(model, audit.architecture, fixed)
        return lambda x: at_row(network(self._rows(model, x)), row)

    def _module(self) -> Callable[[Any], Any]:
        copy, row = double_precision_copy(self.live), self.parity.row if self.parity else None

        def run(x: Any) -> Any:
            try:
                with ready():
                    return at_row(answer(copy, as_arrays(x), self.call), row)
            except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
                raise NotRun(
                    f"{self.where} does not take inputs of shape {x.shape} ({x.dtype}): "
                    f"{' '.join(str(error).split())[:200]}; prepare the data as it takes them (whole numbers are "
                    "tokens, others features), or give call=lambda module, x: ..."
                ) from error

        return run


def refuse_longer(rows: Any, radius: float, what: str) -> None:
    """Refuses rows outside the class of inputs, to a relative 1e-9: rows are normalised in floats."""
    longest = float(np.sqrt((np.asarray(rows, np.float64) ** 2).sum(-1)).max())
    if longest > radius * (1 + ROUNDING):
        raise InvalidSetting(
            f"a {what} of the data has norm {longest:.12g}, but inputs are taken to lie within {radius:g}: say what "
            "holds for all inputs, fixed before the data (input_radius=, --input-radius)"
        )


def token_before(data: Sequences, audit: Audit) -> int | None:
    """The token that the read row shows in every example (`own_row`), where the data leave it out; else None.

    Models of this package read sequences of one length: other lengths have no meaning.
    """
    architecture = audit.architecture
    tables = token_tables(architecture.stages)
    own = tables[0].own_row if tables else None
    if not data.tokens:
        return None
    begin = 0 if own is None else sum(int(x[0]) == own for x in data.x)
    if own is not None and begin not in (0, len(data)):
        raise InvalidSetting(
            f"{begin} of {len(data)} sequences begin with token {own}, which the row that is read shows in every "
            "example: put it before all, or before none"
        )
    put = own is not None and not begin
    lengths = {len(x) + put for x in data.x}
    if audit.family == NATIVE.name and lengths != {architecture.seq_len}:
        have = sorted({len(x) for x in data.x})
        raise InvalidSetting(
            f"{audit.where} reads sequences of {architecture.seq_len} rows, the data have "
            f"{', '.join(map(str, have[:4]))}: of bits, the row that is read shows token 2, which the data must then "
            "begin with"
        )
    return own if put else None
