"""Examples out of whatever holds them: the same sequences, without padding, whoever hands them over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.data import Sequences, sequences

torch = pytest.importorskip("torch")

RAGGED = ([3, 1, 4], [1, 5], [9, 2, 6, 5])
Y = [1, 0, 2]
PADDED = np.array([[3, 1, 4, 0], [1, 5, 0, 0], [9, 2, 6, 5]])
MASK = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]])


class Items(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def _loader(size: int, **options: Any) -> Any:
    items = Items([(torch.tensor(x), torch.tensor(m), y) for x, m, y in zip(PADDED, MASK, Y, strict=True)])

    def collate(rows: Any) -> Any:
        x, mask, y = zip(*rows, strict=True)
        return {"input_ids": torch.stack(x), "attention_mask": torch.stack(mask), "labels": torch.tensor(y)}

    return torch.utils.data.DataLoader(items, batch_size=size, collate_fn=collate, **options)


def _files(folder: Path) -> dict[str, Path | str]:
    import pyarrow as pa
    from pyarrow import parquet

    np.savez(folder / "a.npz", x=PADDED, y=Y, mask=MASK)
    (folder / "text.csv").write_text("x,label\n3 1 4,1\n1 5,0\n9 2 6 5,2\n")
    (folder / "json.csv").write_text('tokens,y\n"[3, 1, 4]",1\n"[1, 5]",0\n"[9, 2, 6, 5]",2\n')
    parquet.write_table(pa.table({"input_ids": list(map(list, RAGGED)), "label": Y}), folder / "lists.parquet")
    (folder / "mine.py").write_text(f"train = list(zip({RAGGED}, {Y}))\ndef made():\n    return train\n")
    named = {name: f"{folder / 'mine.py'}:{name}" for name in ("train", "made")}
    return named | {path.name: path for path in folder.iterdir() if path.suffix != ".py"}


def test_every_form_gives_the_same_sequences(tmp_path: Path) -> None:
    forms: dict[str, Any] = {
        "arrays and a mask": (PADDED, np.array(Y), MASK),
        "tensors": tuple(map(torch.tensor, (PADDED, np.array(Y), MASK))),
        "a dictionary": {"input_ids": PADDED, "labels": np.array(Y), "attention_mask": MASK},
        "a dataset of pairs": Items([(torch.tensor(x), y) for x, y in zip(RAGGED, Y, strict=True)]),
        "a dataset of dictionaries": Items([{"x": np.array(x), "y": y} for x, y in zip(RAGGED, Y, strict=True)]),
        "a loader": _loader(2),
        **_files(tmp_path),
    }
    for name, form in forms.items():
        found = sequences(form)
        assert [list(x) for x in found.x] == list(map(list, RAGGED)), name
        assert found.y.tolist() == Y, name
        assert found.tokens, name
        assert found.longest == 4, name


def test_a_vector_of_reals_is_one_example(tmp_path: Path) -> None:
    """Whole numbers in a column or beside reals are reals too; alone they are tokens."""
    x = np.array([[0.5, 1.0], [1.5, -2.0], [3.0, 4.0]])
    (tmp_path / "names.csv").write_text("a,b,y\n0.5,1,1\n1.5,-2,0\n3,4,2\n")
    (tmp_path / "cells.csv").write_text("x,y\n0.5 1,1\n1.5 -2,0\n3 4,2\n")
    np.savez(tmp_path / "d.npz", x=x, y=Y)
    forms: list[Any] = [(x, np.array(Y)), {"features": torch.tensor(x), "label": Y}, *tmp_path.iterdir()]
    pairs = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(Y))
    forms += [torch.utils.data.Subset(pairs, range(3)), torch.utils.data.DataLoader(pairs, batch_size=2)]
    for form in forms:
        found = sequences(form)
        assert np.array_equal(found.arrays[0], x)
        assert found.y.tolist() == Y
        assert not found.tokens
    assert sequences(tmp_path / "names.csv").notes == ("the model reads the columns a, b, in this order",)
    assert sequences((x.astype(int), np.array(Y))).tokens


def test_labels_in_other_spellings() -> None:
    x = np.zeros((3, 2), dtype=int)
    assert sequences((x, np.array([True, False, True]))).y.tolist() == [1, 0, 1]
    assert sequences((x, np.array([-1, 1, 1]))).y.tolist() == [0, 1, 1]
    assert sequences({"x": x, "y": ["true", "False", "1"]}).y.tolist() == [1, 0, 1]
    assert sequences((x, np.array([[1.0], [0.0], [2.0]]))).y.tolist() == [1, 0, 2]


def test_batches_are_of_one_length_and_hold_everything() -> None:
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 9, rng.integers(1, 5)) for _ in range(50)]
    found = Sequences(x, np.zeros(50, dtype=np.int64))
    places = np.concatenate([part for part, _ in found.batches(most=7)])
    assert sorted(places) == list(range(50))
    for part, stacked in found.batches(most=7):
        assert all(np.array_equal(x[i], row) for i, row in zip(part, stacked, strict=True))


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ((PADDED, np.array([0.5, 1, 2])), "labels are whole numbers"),
        ((PADDED, np.array([0, -3, 1])), "labels are 0, 1"),
        ((PADDED, np.eye(3)), "one a sequence"),
        ((PADDED, np.array(Y[:2])), "as many sequences as labels"),
        ({"x": [[0.5, 1], [2.5]], "y": [0, 1]}, r"reals \(d,\) of one width"),
        ({"x": [[0.5, 1], [[2, 3]]], "y": [0, 1]}, "examples are tokens"),
        ((PADDED, np.array(Y), 1 - MASK), "hides rows|all"),
        ((PADDED, np.array(Y), np.array([[1, 0, 1, 0]] * 3)), "hides rows inside"),
        ({"x": PADDED}, "has no labels"),
        (42, "examples are"),
        ("nothere.npz", "there is no|no file"),
        ((np.full((2, 2, 2), np.nan), np.array([0, 1])), "NaN"),
        (_loader(2, drop_last=True), "2 of 3 examples"),
        ({"input_ids": [[1], [2]], "label": [1, None]}, "no label"),
        ({"input_ids": [[1], [2]], "label": [-1, -1]}, "all labels are -1"),
        ({"text": ["a", "b"], "label": [0, 1]}, "text is tokenised first"),
    ],
)
def test_what_is_no_data_is_refused(form: Any, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        sequences(form)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,2\n3,4\n", "first line of names"),
        ("x,z\n1 2,3\n", "no labels"),
        ("x,y\n1 2,0,9\n", "3 cells"),
        ("x,y\n1 2,0\n1 cat,0\n", r"line 3, column 'x': '1 cat'.*tokenised first"),
        ("x,y\n1 2,0\n1 2,maybe\n", "line 3, column 'y': 'maybe' where a number should be"),
        ("y,group\n0,a\n1,b\n", "line 2, column 'group': 'a' where a number should be"),
        ("y\n0\n1\n", "no sequences"),
        ("a,b,mask,y\n0.5,1,1,0\n", "an entry for each of its rows"),
    ],
)
def test_a_table_that_is_no_data_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(InvalidSetting, match=says):
        sequences(tmp_path / "d.csv")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    for name in ("d.npz", "d.parquet"):
        (tmp_path / name).write_bytes(json.dumps({"x": 1}).encode())
        with pytest.raises(InvalidSetting, match="is not a"):
            sequences(tmp_path / name)


def test_datasets_of_the_hugging_face_library() -> None:
    """The real class, however it shows its columns, whole or in parts."""
    datasets = pytest.importorskip("datasets")
    lists = list(map(list, RAGGED))
    ragged = datasets.Dataset.from_dict({"input_ids": lists, "label": Y, "token_type_ids": lists})
    padded = datasets.Dataset.from_dict({"input_ids": PADDED, "attention_mask": MASK, "labels": Y})
    kinds = (None, "torch", "numpy", "pandas", "arrow")
    forms: list[Any] = [data.with_format(kind) for data in (ragged, padded) for kind in kinds]
    forms += [padded.cast_column("labels", datasets.ClassLabel(num_classes=3)), ragged.to_iterable_dataset()]
    forms += [torch.utils.data.DataLoader(padded.with_format("torch"), batch_size=2)]
    for form in forms:
        found = sequences(form)
        assert [list(x) for x in found.x] == lists
        assert found.y.tolist() == Y
    assert sequences(ragged).notes == ("not read: token_type_ids",)
    images = datasets.Dataset.from_dict({"pixel_values": np.zeros((3, 1, 4, 4)).tolist(), "label": Y})
    assert sequences(images).x[0].shape == (1, 4, 4)
    hidden = padded.with_format("torch", columns=["input_ids", "labels"])  # its owner does not show the mask
    assert [list(x) for x in sequences(hidden).x] == PADDED.tolist()
    with pytest.raises(InvalidSetting, match=r"data\['train'\]"):
        sequences(datasets.DatasetDict(train=ragged))


def test_labels_that_are_words_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x,label\n3 1,neg\n1 2,pos\n2 2,neg\n", encoding="utf-8-sig")
    found = sequences(path)
    assert found.y.tolist() == [0, 1, 0]
    assert found.words == ("neg", "pos")
    assert "labels are numbered alphabetically: neg 0, pos 1" in found.notes
    assert sequences((np.array([[3, 1], [1, 2]]), np.array(["b", "a"]))).y.tolist() == [1, 0]
