"""A user's own examples, of any length each: from arrays, files, torch and Hugging Face datasets, or a loader of batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.load import is_name, load_name
from boundcalc.checkpoints.data_files import FILES, examples_in, saved_dataset
from boundcalc.checkpoints.examples import Sequences, of_arrays, of_batch, of_example, of_fields, together

_FORMS = (
    f"a file ({FILES}), arrays (x, y) or (x, y, mask), a dictionary, a torch DataLoader or Dataset, or a Hugging Face "
    "dataset"
)


def sequences(source: Any) -> Sequences:
    """Examples from whatever holds them."""
    if isinstance(source, Sequences):
        return source
    if isinstance(source, str | Path):
        if is_name(str(source)):
            return _named_in_python(str(source))
        saved = saved_dataset(Path(source))
        return examples_in(Path(source)) if saved is None else sequences(saved)
    if isinstance(source, Mapping):
        return of_fields(source, "the dictionary")
    if isinstance(source, tuple | list) and len(source) in (2, 3) and all(hasattr(a, "shape") for a in source):
        return together([of_arrays(*source)])
    columns = getattr(source, "column_names", None)
    if isinstance(columns, list) and hasattr(source, "__len__"):
        return of_fields(
            {name: list(table[name]) for table in [_plain(source)] for name in _shown(source)}, "the dataset"
        )
    if hasattr(source, "dataset") and hasattr(source, "__iter__"):
        found = together(of_batch(each) for each in source)
        whole: Any = getattr(source, "dataset", None)
        size = len(whole) if hasattr(whole, "__len__") else len(found)
        if len(found) != size:
            raise InvalidSetting(
                f"the loader gives {len(found)} of {size} examples: bounds are about all of them; drop_last=False, and no "
                "sampler that leaves some out"
            )
        return found
    if hasattr(source, "__getitem__") and hasattr(source, "__len__") and not hasattr(source, "shape"):
        return together(of_example(source[i]) for i in range(len(source)))
    if hasattr(source, "__iter__") and not hasattr(source, "shape"):  # datasets that are read from front to back alone
        return together(map(of_example, source))
    raise InvalidSetting(f"examples are {_FORMS}; got {type(source).__name__}")


def _named_in_python(word: str) -> Sequences:
    """What a name in a Python file stands for: examples, or a function that gives them."""
    found = load_name(word)
    if callable(found) and not hasattr(found, "__getitem__") and not hasattr(found, "__iter__"):
        found = found()
    return sequences(found)


def _shown(source: Any) -> list[str]:
    """The columns of a Hugging Face dataset; of one that was told which to show (set_format), these."""
    chosen = getattr(source, "format", None)
    return list(chosen["columns"] if isinstance(chosen, Mapping) and "columns" in chosen else source.column_names)


def _plain(source: Any) -> Any:
    """The dataset without its clothes: what set_format makes of columns (tensors, frames, arrow) is how they are shown."""
    return source.with_format(None) if hasattr(source, "with_format") else source
