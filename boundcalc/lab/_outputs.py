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
from boundcalc.base.npz import digest_of_arrays
from boundcalc.base.schema import write
from boundcalc.checkpoints.audit import Audit
from boundcalc.checkpoints.data import Sequences, sequences
from boundcalc.checkpoints.errors import CheckpointError, NoFunction, NotRun
from boundcalc.checkpoints.families import Model
from boundcalc.checkpoints.families.read import NATIVE
from boundcalc.checkpoints.forward import Network, fixed_beside
from boundcalc.checkpoints.margins import Margins, margins_of
from boundcalc.checkpoints.modules import answer, as_arrays, at_row, called, double_precision_copy, ready, with_weights
from boundcalc.checkpoints.parity import Parity
from boundcalc.checkpoints.tensors import Checkpoint
from boundcalc.checkpoints.traced import end_token, patch_map, record, rows_of_images, rows_read
from boundcalc.layers.attention import is_causal
from boundcalc.layers.embedding import token_tables
from boundcalc.layers.forward import Fixed
from boundcalc.predictors.data import Data

_Run = Callable[[Any], Any]
_BATCH = 256
_AGAIN = 64
"""Examples that are answered again."""
_WORK = 2 * 10**11
"""Parameters times rows times examples that the description is run on for this."""
_CHANGED = 0.5
"""Where the description differs on more of the examples, after it agreed in the forward check, the module has
changed."""


@dataclass(frozen=True)
class Outputs:
    """A model that was read, and what it answers.

    Attributes:
        checkpoint: its tensors.
        live: the module, where it is at hand.
        model: the checkpoint as it is described; None where nothing describes it.
        audit: its norms, likewise.
        why_not: why it is not described.
    """

    checkpoint: Checkpoint
    live: Any = None
    model: Model | None = None
    audit: Audit | None = None
    why_not: str = ""

    @property
    def parity(self) -> Parity | None:
        """The forward check."""
        return None if self.audit is None else self.audit.parity

    @property
    def where(self) -> str:
        """What it is called."""
        return self.checkpoint.where

    @property
    def recipe(self) -> dict[str, Any]:
        """What answers, as certificates record it."""
        compared = None if self.audit is None else self.audit.compared
        described = None if self.model is None or self.live is not None else self.model.architecture
        return {
            "name": Path(self.where).name,
            "answers": "the architecture as described" if self.live is None else f"the module {called(self.live)}",
            "architecture": None if described is None else described.to_json(),
            "forward_check": None if compared is None else write(compared, complete=True),
        }

    @cached_property
    def weights(self) -> str:
        """Names the tensors by every bit of them."""
        return digest_of_arrays({name: tensor.fetch() for name, tensor in self.checkpoint.tensors.items()})

    def with_tensors(self, checkpoint: Checkpoint) -> Outputs:
        """The same with other numbers in its tensors."""
        live = None if self.live is None else with_weights(double_precision_copy(self.live), checkpoint)
        model = None if self.model is None else Model(checkpoint, self.model.family, self.model.options)
        if model is not None and self.model is not None:
            model.architecture = self.model.architecture  # tensors of the same shapes make up the same
        return replace(self, checkpoint=checkpoint, model=model, live=live)

    def scores(self, examples: Sequences | Data) -> Any:
        """How far the right answer is ahead: a certificate of test examples is established again with them."""
        return self.margins(examples).values

    def margins(self, examples: Sequences | Data, *, again: bool = True) -> Margins:
        """Margins, less what rounding may have added to them.

        `again`: up to 64 random examples are answered again, one by one, in another batch and by the description. A
        module is refused whose answers depend on anything but the example.
        """
        data = self.fitted(examples if isinstance(examples, Sequences) else sequences((examples.x, examples.y)))
        by = self._module() if self.live is not None or self.model is None else self._described(self.model)
        answers = _answers(by, data)
        largest = float(np.abs(answers[np.isfinite(answers)]).max(initial=0))
        tolerance = largest * (ROUNDING if self.parity is None else self.parity.tolerance)
        if again and self.live is not None:
            self._refuse_other_answers(data, answers, tolerance)
        return margins_of(answers, data.y, 2 * tolerance)

    def _refuse_other_answers(self, data: Sequences, answers: Any, tolerance: float) -> None:
        places = np.random.default_rng(0).permutation(len(data))[:_AGAIN]
        few, run = data.take(places), self._module()
        ways = {"one by one": (run, few, 1), "in another batch": (run, few, _BATCH)}
        if self.model is not None and self.parity is not None and self.parity.outputs is not None:
            count = max(4, _WORK // (self.checkpoint.size * max(len(x) for x in few.x)))
            ways["by the description"] = self._described(self.model), few.take(range(min(len(few), count))), _BATCH
        for how, (ask, some, most) in ways.items():
            again = _answers(ask, some, most)
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

    # -- the data as the model reads them

    def fitted(self, data: Sequences) -> Sequences:
        """The data as the model reads them; refused outside the class of inputs, which no bound would be about."""
        if (model := self.model) is None:
            return data
        tables, length = token_tables(model.architecture.stages), model.architecture.seq_len
        if bool(tables) != data.tokens:
            have, needs = ("tokens", "rows or images") if data.tokens else ("rows", "tokens")
            raise InvalidSetting(f"the data hold {have}, the model reads {needs}")
        if tables:
            own = tables[0].own_row
            if own is not None and any(int(x[0]) != own for x in data.x):
                note = f"token {own} is put before every sequence: it is what the row that is read shows"
                data = replace(data, x=[np.insert(x, 0, own) for x in data.x], notes=(*data.notes, note))
            _refuse_tokens(data, tables[0].vocabulary, end_token(model, tables[0].vocabulary))
        for _, x in data.batches(_BATCH):
            rows = x if tables else self._rows(model, x)
            if not tables:
                refuse_longer(rows, model.architecture.input_radius, "row" if rows is x else "patch")
            exact = rows.shape != x.shape or model.family.name == NATIVE.name  # images, and this package's own models
            if rows.shape[1] > length or (exact and rows.shape[1] != length):
                raise InvalidSetting(f"a sequence of {rows.shape[1]} rows, but T is {length}: say seq_len (--T)")
        return data

    def _rows(self, model: Model, x: Any) -> Any:
        """What the description reads where the model is given x: of patches that a module cuts itself, those rows."""
        if self.live is not None and patch_map(model) is not None:
            return rows_read(model, record(self.live, [x]))
        return rows_of_images(model, x) if x.ndim == 4 else x

    # -- what answers

    def _described(self, model: Model) -> _Run:
        """The description; next to a module read out where that reads out."""
        row = self.parity.row if self.parity else None
        if self.live is None:
            row_read = -1 if is_causal(model.architecture.stages) or model.flag("last") else 0
            fixed = Fixed(rotate=model.family.rotate, row=row_read)
        else:
            fixed = replace(fixed_beside(self.live, model), row=row or 0)
        network = Network(model, fixed)
        return lambda x: at_row(network(self._rows(model, x)), row)

    def _module(self) -> _Run:
        copy, row = double_precision_copy(self.live), self.parity.row if self.parity else None

        def run(x: Any) -> Any:
            try:
                with ready():
                    return at_row(answer(copy, as_arrays(x)), row)
            except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
                raise NotRun(
                    f"{self.where} does not take inputs of shape {x.shape} ({x.dtype}): "
                    f"{' '.join(str(error).split())[:200]}; prepare the data as it takes them (whole numbers are "
                    "tokens, others features)"
                ) from error

        return run


def _answers(run: _Run, data: Sequences, most: int = _BATCH) -> Any:
    """The answers of a function of batches, in the order of the data."""
    answers: list[Any] = [None] * len(data)
    for places, x in data.batches(most):
        for place, row in zip(places, run(x), strict=True):
            answers[place] = row
    return np.stack(answers)


def refuse_longer(rows: Any, radius: float, what: str) -> None:
    """Refuses rows outside the class of inputs, to a relative 1e-9: rows are normalised in floats."""
    longest = float(np.sqrt((np.asarray(rows, np.float64) ** 2).sum(-1)).max())
    if longest > radius * (1 + ROUNDING):
        raise InvalidSetting(
            f"a {what} of the data has norm {longest:.12g}, but inputs are taken to lie within {radius:g}: say what "
            "holds for all inputs, fixed before the data (input_radius=, --input-radius)"
        )


def _refuse_tokens(data: Sequences, vocabulary: int, end: int | None) -> None:
    """Refuses tokens that are no rows of the table, and sequences that go on after the token whose row is read."""
    top, low = max(int(x.max()) for x in data.x), min(int(x.min()) for x in data.x)
    if top >= vocabulary or low < 0:
        raise InvalidSetting(f"tokens from {low} to {top}, but the model has {vocabulary}")
    if end is not None and any((x[:-1] == end).any() or x[-1] != end for x in data.x):
        raise InvalidSetting(
            f"the model reads the row of the first token {end}, so every sequence ends with it: cut off what follows "
            "(attention is causal, so that nothing else changes)"
        )
