"""Every code block of README.md and docs runs: in page order, in one folder, with what its reader is supposed to
have."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.docs.blocks import AT_BUILD, DIRECTIVES, PLAIN, Broken, Page, blocks, unused_marks
from tests.docs.commands import ROOT
from tests.lab.figures import trials
from tests.tutorials import walk

DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))} | {"README.md": ROOT / "README.md"}
WALKED = {
    "tutorials/own-transformer.md": "tests/tutorials/test_own_transformer.py",
    "tutorials/own-vit.md": "tests/tutorials/test_own_vit.py",
    "tutorials/own-theorem.md": "tests/lab/figures/test_own.py",
    "tutorials/article.md": "tests/theorems/test_article.py",
}
"""Tutorials: tests that walk every block and look at what comes."""
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


# ------------------------------------------------------------------- what the readers of pages have before they begin


def of_certificates(folder: Path) -> dict[str, Any]:
    """A module of one's own, and examples."""
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((400, 4)).astype(np.float32)
    make = "from torch import nn\ndef make():\n    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))\n"
    (folder / "net.py").write_text(make, encoding="utf-8")
    space = runpy.run_path(str(folder / "net.py"))
    return {"torch": torch, "make": space["make"], "x": x, "y": (x[:, 0] > 0).astype(np.int64)}


def of_figures(folder: Path) -> dict[str, Any]:
    """Stores of trials, runs and a theorem of one's own."""
    pytest.importorskip("matplotlib")
    trials.store(folder / "runs.db", trials.over_m(T=128), certified=True)
    for name, text in walk.files("own-theorem.md").items():
        (folder / name).write_text(text, encoding="utf-8")
    return {}


def of_learning(folder: Path) -> dict[str, Any]:
    """A dataset in a file of Python."""
    pytest.importorskip("torch")
    text = "import numpy as np\nx = np.random.default_rng(0).integers(0, 5, (200, 6))\ndataset = x, (x[:, 0] > 2) * 1\n"
    (folder / "data.py").write_text(text, encoding="utf-8")
    return {}


def of_weights(folder: Path) -> dict[str, Any]:
    """Checkpoints: one of a known family, one of one's own with its module and data, one that a mapping describes."""
    torch = pytest.importorskip("torch")
    from tests.checkpoints import handmade

    tensors, config = handmade.bert(np.random.default_rng(0))
    small = {name: 0.3 * values if values.dtype.kind == "f" else values for name, values in tensors.items()}
    handmade.save(folder / "runs" / "bert", small, config)
    handmade.save(folder / "big", small, config)
    (folder / "model.py").write_text(walk.files("own-transformer.md")["model.py"], encoding="utf-8")
    torch.manual_seed(0)
    model = runpy.run_path(str(folder / "model.py"))["make"]()
    torch.save(model.state_dict(), folder / "mine.pt")
    (folder / "predictions.csv").write_text("answer,label\n" + "cat,cat\n" * 40 + "dog,cat\n")
    x = np.random.default_rng(0).integers(0, 11, (300, 7))
    np.savez(folder / "train.npz", x=x[:200], y=x[:200].max(1))
    np.savez(folder / "test.npz", x=x[200:], y=x[200:].max(1))
    shapes = {**{f"attn.{name}": (8, 8) for name in "qkvo"}, "mlp.up": (32, 8), "mlp.down": (8, 32)}
    own = {f"blocks.0.{name}.weight": 0.1 * np.eye(*shape) for name, shape in shapes.items()}
    own |= {f"{name}.weight": np.ones(8) for name in ("blocks.0.norm1", "blocks.0.norm2", "norm")}
    own |= {"head.weight": np.full((1, 8), 0.01), "blocks.0.attn.mask": np.ones((4, 4))}
    (folder / "lm.safetensors").write_bytes(handmade.safetensors(own))
    pairs = [(row, row.max()) for row in torch.tensor(x)]
    return {"model": model.eval(), "loader": torch.utils.data.DataLoader(pairs[:200], 50), "test_set": pairs[200:]}


GIVEN: dict[str, Callable[[Path], dict[str, Any]]] = {
    "certificates.md": of_certificates,
    "figures.md": of_figures,
    "learning.md": of_learning,
    "weights.md": of_weights,
}


def page(name: str, folder: Path) -> Page:
    given = GIVEN[name](folder) if name in GIVEN else {}
    return Page(PAGES[name].read_text(encoding="utf-8"), folder, name, given)


def small_grid(patch: pytest.MonkeyPatch) -> None:
    from boundcalc.lab.explore import _checked as checked

    for name in ("COMPARED", "COVERED", "SEARCHED"):
        patch.setattr(checked, name, ())
    patch.setattr(checked, "FLOORED", {"depth": (), "C": (), "gamma": (), "T": (16,)})


def languages(name: str) -> set[str]:
    return {block.language for block in blocks(name, PAGES[name].read_text(encoding="utf-8"))}


RUN = [name for name in PAGES if name not in WALKED and languages(name) - {*PLAIN, *DIRECTIVES}]


@pytest.mark.parametrize("name", RUN)
def test_every_block_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_grid(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    walked = page(name, tmp_path)
    walked.walk()
    assert list(unused_marks(walked)) == []


def test_every_page_with_code_is_walked_somewhere() -> None:
    assert {"README.md", "certificates.md", "cli.md", "explore.md", "figures.md", "learning.md", "weights.md"} <= {*RUN}
    assert "theorems.md" in RUN
    for name, test in WALKED.items():
        assert Path(name).name in (ROOT / test).read_text(encoding="utf-8")
        for block in blocks(name, PAGES[name].read_text(encoding="utf-8")):
            marked = block.mark("file") is not None or block.mark("run") is not None
            assert block.language in PLAIN or marked, block.place
    at_build = {name for name in PAGES if languages(name) & {*AT_BUILD}}
    assert {"index.md", "tutorial.md", "api/bounds.md"} <= at_build <= {*RUN}


# ------------------------------------------------------------------------------------------------- what would be caught

GOOD = """# A page

<!-- file: a.json -->
```json
{"depth": 3}
```

```python
x = 2
```

```sh
boundcalc explain
boundcalc eval --m 1e9 \\
    --no-solve  # a comment
```

```python
assert x == 2
```
"""


def read(text: str, folder: Path) -> Page:
    found = Page(text, folder)
    found.walk()
    return found


def test_a_page_with_a_broken_block_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reads = GOOD + "\n```python\nopen('a.json').close()\n```\n"
    read(reads, tmp_path)
    for broken, says in (
        (GOOD, "nothing on the page reads a.json"),
        (reads.replace("assert x == 2", "assert x == 3"), "line 18: AssertionError"),
        (reads.replace("x = 2", "x = y"), "line 8: NameError"),
        (reads.replace("x = 2", "x ="), "SyntaxError"),
        (reads.replace("--no-solve", "--no-slove"), "--no-slove"),
        (reads.replace("boundcalc explain", "boundcalc verify none.json"), "none.json"),
        (reads.replace("boundcalc explain", "curl example.org"), "no program that is run here"),
        (reads.replace("<!-- file: a.json -->\n", ""), "'json'"),
        (reads + "\n    boundcalc explain\n", "'indented'"),
    ):
        with pytest.raises(Broken) as caught:
            read(broken, tmp_path)
        assert says in str(caught.value), broken


def test_marks_that_change_nothing_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "<!-- smaller: --m 5 => --m 100 -->\n```sh\nboundcalc eval --m 5 --no-solve\n```\n"
    assert list(unused_marks(read(text, tmp_path))) == []
    for wrong in ("smaller: --m 3 => --m 100", "smoller: --m 5 => --m 100"):
        assert len(list(unused_marks(Page(text.replace("smaller: --m 5 => --m 100", wrong), tmp_path)))) == 1
