"""Every option of every command changes what comes out, is refused, or is neutral for a reason written here.

Options enrol themselves: a new one is tried in every base of its command, at the values below or, where it has none, at
those its type suggests.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.formulas.theorems import BOUNDS
from tests.checkpoints import handmade
from tests.lab.plot import trials

BASES: Mapping[str, tuple[str, ...]] = {
    "eval": (
        "--depth 1 --T 8 --bound best --bound closed --no-solve --format json",
        "--preset gpt2 --d 8 --heads 2 --depth 1 --T 8 --bound closed --no-solve --format json",
        "--bound X3 --L 512 --set smoothness=1.2 --format json",
        "--sweep m=1e3:1e6:log3 --bound closed --format json",
    ),
    "solve": (
        "--for m --bound closed --depth 1 --format json",
        "--for T --bound closed --depth 1 --m 1e9 --target 0.9 --format json",
        "--for m --bound closed --quantity risk --depth 1 --format json",
        "--for L --bound X3 --set smoothness=1.5 --target 0.5 --format json",
    ),
    "list": ("",),
    "doctor": ("",),
    "explain": ("T2",),
    "derive": (
        "--bound edelman2022",
        "--bound X3",
        "--bound edelman2022 --format latex",
        "--bound edelman2022 --format latex --fragment -o sections",
    ),
    "export": ("--bound edelman2022 --to python", "--bound X3 --to python"),
    "latent bound": ("--L 512 --format json", "--L 1e6 --sphere 3 --format json"),
    "latent posterior": ("beta-bernoulli",),
    "latent sufficient": ("--format json", "--sequences 30 --format json"),
    "represent": ("AND(x0,x3) --T 8 --format json",),
    "verify": ("gap.json", "gap.json --format json", "kept.json"),
    "norms": ("model --seed 1 --no-spectra --format json", "model --seed 1 --no-spectra"),
    "certify": (
        "model --seed 1 --no-spectra --m 1e9 --gamma 0.25 --train-error 0 --bound closed --no-solve --format json",
        "model --seed 1 --margins margins.txt --bound closed --no-solve --format json",
    ),
    "tightness": ("--d 8", "--d 8 --ladder --depth 1", "--d 8 --without --depth 1", "--covers --d 8"),
    "plot": (
        "gap-vs-m --sweep m=1e3,1e6 --bound closed",
        "gap-vs-T --sweep T=8,16 --bound closed --store runs.db --runs m=24",
        "gap-vs-m --store over_m.db --norms-from runs --sweep m=1e3,1e6 --bound closed",
        "sample-complexity --sweep T=8,16 --bound closed",
        "tightness --store over_m.db --bound closed",
        "parity --store online.db --runs task=parity",
        "attention --store over_m.db",
        "norms --store over_m.db -o drawn.png",
        "breakdown --sweep depth=1,2 --bound closed",
        "norms-vs-s --sweep s=2",
        "posterior-contraction --sweep L=4,8 --repetitions 10",
        "attention-error --sweep L=4,8 --repetitions 10",
        "attention-smooth --sweep L=4,8 --repetitions 20",
        "minimality --sweep steps=1,2",
        "kappa --repetitions 10",
        "constants --depth 1 --T 8 --d 8",
        "--from figure.json",
        "--from figure.json -o again.png",
        "gap-vs-m --points points.csv --sweep m=1e3,1e6 --bound closed",
    ),
    "gallery": ("--predicted --quick --only breakdown -o made",),
    "explore": ("", "--store over_m.db"),
    "train": (
        "conjunction --T 6 --s 2 --m 8 --d 8 --heads 2 --steps 3 --n-test 32 --format json",
        "conjunction --T 6 --s 2 --m 8 --d 8 --heads 2 --steps 3 --n-test 32 --no-bounds --format json",
        "boolean --function x0&x1 --T 6 --m 8 --d 8 --heads 2 --steps 3 --n-test 32 --no-bounds --format json",
        "arrays --path examples.npz --m 8 --d 8 --heads 2 --steps 3 --n-test 32 --no-bounds --format json",
    ),
    "sweep": ("sweep.json --store trained.db --quiet",),
    "runs list": ("--store runs.db",),
    "runs show": ("HASH --store runs.db",),
    "runs export": ("--store runs.db",),
    "runs import": ("runs.json --store other.db",),
    "runs verify": ("--store runs.db",),
    "runs rm": ("HASH --store runs.db",),
    "threshold": ("--store over_m.db --format json",),
    "latent infer": (
        "--L 4,8 --repetitions 10 --tau 1 --format json",
        "--L 4,8 --repetitions 20 --tau 1 --truth smooth --format json",
    ),
    "latent minimal": ("--L 4 --snapshots 1,2 --seeds 3 --format json",),
    "latent desired": ("--L 2,4 --m 20,30 --seeds 3 --steps 5 --format json",),
    "latent pretrain": ("--L 2,3 --blur 0,0.3 --seeds 3 --V 4 --steps 5 --draws 5 --n-test 100 --format json",),
    "latent patches": ("--asked 8 --m 30 --V 5 --d 4 --seeds 3 --steps 3 --n-test 150 --format csv",),
    "latent transfer": ("--diversity 1 --m 50 --repetitions 3 --format json",),
    "latent learn": ("--L 4 --m 8 --seeds 3 --steps 3 --kind supervised --store trained.db --format json",),
    "latent extendible": ("sequences.csv", "--ones 0,1,0"),
    "latent attend": (
        "sequences.csv --value-noise 1 --rkhs-norm 1 --format json",
        "sequences.csv --kernel rbf --set width=2 --format json",
    ),
}
"""Cheap ways to run each command."""
VALUES: Mapping[str, str | tuple[str, ...]] = {
    "--weight-decay": "0.9",
    "--m": "54321",
    "--T": "9",
    "--C": "1.25",
    "--d": "24",
    "--depth": "3",
    "--heads": ("4", "2"),
    "--kv-heads": ("1", "2"),
    "--L": "700",
    "--s": "3",
    "--eps": "0.01",
    "--style": ("pre", "post", "edelman"),
    "--preset": "bert",
    "--activation": "gelu",
    "--normaliser": ("linear", "sigmoid"),
    "--normalisation": ("layernorm", "rmsnorm"),
    "--positions": ("learned", "none"),
    "--readout": "mean",
    "--asked": "7",
    "--set": ("K=3", "width=3"),
    "--bound": "trauger",
    "--sweep": ("T=8,16", "T=8,32"),
    "--temperature": "1.7",
    "--position-radius": "0.7",
    "--setting": "setting.json",
    "--norms": "norms.json",
    "--norm": "W_V=op:1.5,21:2.5",
    "--ones": ("0,1,0", "0,0,1,0"),
    "--queries": "sequences.csv",
    "--columns": "2",
    "--points": "points.csv",
    "--column": ("test=other", "tset=other"),
}
NEUTRAL: Mapping[tuple[str, str], str] = {
    ("*", "--force"): "allows to write over files, and here there are none",
    ("*", "--quiet"): "less on stderr",
    ("*", "--causal"): "a fact about the model, which no theorem needs",
    ("*", "--resume"): "keeps what is measured until all is done",
    ("certify", "--exact"): "norms are rounded up to the grid of P1; `norms` shows what changes",
    ("certify", "--seed"): "as --exact",
    ("sweep", "--jobs"): "how it is computed: the trials are the same",
    ("sweep", "--threads"): "how it is computed",
    ("sweep", "--stack"): "how it is computed",
    ("train", "--threads"): "how it is computed",
    ("gallery", "--jobs"): "how it is computed",
}
FILES: Mapping[str, Any] = {
    "setting.json": {"architecture": {"d": 12}, "norms": {"C": 1.5}, "sample": {"delta": 0.02}},
    "norms.json": {"C": 1.0, "budgets": {"W_V": {"op": 2.0, "21": 3.0}}},
}


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    todo = [(name, main.get_command(context, name)) for name in main.list_commands(context)]
    while todo:
        name, command = todo.pop(0)
        if isinstance(command, click.Group):
            todo += [
                (f"{name} {inner}", command.get_command(context, inner)) for inner in command.list_commands(context)
            ]
        elif command is not None:
            yield name, command


def words(option: click.Option) -> Iterator[list[str]]:
    """Ways to give an option."""
    for name in (max(option.opts, key=len), *option.secondary_opts):
        if option.is_flag:
            yield [name]
        elif isinstance(option.type, click.Choice):
            yield from ([name, choice] for choice in option.type.choices)
        elif name in VALUES:
            values = VALUES[name]
            yield from ([name, value] for value in ((values,) if isinstance(values, str) else values))
        elif option.type.name in ("number", "float"):
            yield [name, "0.3"]
        elif option.type.name in ("integer", "integer range"):
            yield [name, "2"]
        else:
            yield [name, "some"]


def ran(folder: Path, line: Sequence[str], shelf: Path | None = None) -> tuple[bool, str, dict[str, Any]]:
    """(done, what it printed, the files it left)."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, content in FILES.items():
            Path(name).write_text(json.dumps(content), encoding="utf-8")
        for path in shelf.iterdir() if shelf is not None else ():
            if path.name in line:
                shutil.copytree(path, path.name) if path.is_dir() else shutil.copy(path, path.name)
        if line[0] in ("plot", "gallery"):
            patch.setattr("boundcalc.lab.plot.render.save", _drawn)
            patch.setattr("boundcalc.lab.plot.measured.a_posteriori", lambda *_: [])  # a search for every trial
        if line[0] == "explore":  # one checked value, one theorem, and a server that stops at once
            few = {
                "GRID": {},
                "COARSE": {},
                "SHOWN": ("zhang2022",),
                "STYLES": ("edelman",),
                "_fragment": lambda *_: "",
            }
            for name, value in few.items():
                patch.setattr(f"boundcalc.lab.explore.content.{name}", value)
            patch.setattr("boundcalc.lab.explore.serve.Server.serve_forever", lambda _: None)
        patch.setattr("boundcalc.norms.spectral.EXACT_SIDE", 4)  # so that there is something to probe
        if line[0] == "train":  # which compares them all
            patch.setattr("boundcalc.formulas.theorems.BOUNDS", {"closed": BOUNDS["closed"]})
        for name, few in _FEW.items():
            patch.setattr(f"boundcalc.cli.tightness.{name}", few)
        result = CliRunner().invoke(main, list(line))
        files = {str(path): _content(path) for path in sorted(Path().rglob("*")) if path.is_file()}
    return result.exit_code == 0, _settled(line, result.output), files


def _drawn(spec: Any, data: Any, path: Path, *_: object, **__: object) -> Any:
    """In place of an image: what it would show. How it looks is left to the tests of figures."""
    from boundcalc.lab.plot import render

    shown = {"data": data.to_json(), "look": [spec.size, spec.usetex, spec.title]}
    if spec.uncapped:
        drawn = render.draw(spec, data)
        shown["limits"] = [axes.get_ylim() for axes in drawn.axes]
    click.echo(json.dumps(shown, default=str))
    return render.Drawn(path, path.with_suffix(".json"), render.caption(spec, data))


_FEW: Mapping[str, Any] = {"DEPTHS": (1,), "KNOBS": (1.0,), "LENGTHS": (64,), "SAMPLES": (10**7,)}
"""One cell of the table of `tightness`."""
_ECHO = {"train": {"trial", "hash", "cpu_seconds"}, "eval": {"setting", "assumed"}}
"""What JSON repeats of the options, which shows nothing of what they did; and time, which differs from run to run.

The setting's options are tried by what `eval` makes of them; the bounds of other lines need not depend on all.
"""


def _silent(data: Any, echo: Collection[str]) -> Any:
    """JSON without what only repeats the options."""
    if isinstance(data, Mapping):
        return {key: _silent(value, echo) for key, value in data.items() if key not in echo}
    return [_silent(value, echo) for value in data] if isinstance(data, list) else data


def _settled(line: Sequence[str], text: str) -> str:
    with contextlib.suppress(ValueError):
        echo = _ECHO.get("" if "--sweep" in line else line[0], ())
        return json.dumps(_silent(json.loads(text[text.index("{") :]), echo))
    return text


def _content(path: Path) -> Any:
    if path.suffix != ".db":
        return path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as store:
        rows = store.execute(
            "SELECT hash, status, steps, train_error, test_error, gap, weights FROM trials ORDER BY hash"
        )
        return rows.fetchall(), store.execute("SELECT * FROM sweeps ORDER BY 1, 2").fetchall()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that commands read."""
    from boundcalc.lab.train.store import Store

    folder = tmp_path_factory.mktemp("shelf")
    tensors, config = handmade.bert(np.random.default_rng(0))
    small = {name: 0.3 * values if values.dtype.kind == "f" else values for name, values in tensors.items()}
    handmade.save(folder / "model", small, config)
    np.savetxt(folder / "margins.txt", np.linspace(0.3, 0.5, 30))
    rng = np.random.default_rng(1)
    np.savez(folder / "examples.npz", x=rng.standard_normal((64, 4, 3)), y=rng.integers(0, 2, 64))
    np.savetxt(folder / "sequences.csv", rng.integers(0, 2, (30, 5)), delimiter=",", fmt="%d")
    learned = trials.over_m()
    records = [*learned, *(trials.record(T=T, m=24, seed=9) for T in (8, 32))]
    online = [trials.record("parity", T=20, m=0, seed=seed) for seed in range(3)]
    for name, some in (("over_m.db", learned), ("runs.db", records), ("online.db", online)):
        with Store(folder / name) as store:
            store.merge(some)
    (folder / "points.csv").write_text("m,train,test,n_test,other\n100,0,0.25,1000,0.5\n1000,0,0.125,1000,0.25\n")
    (folder / "runs.json").write_text(json.dumps(records))
    (folder / "hash").write_text(records[0]["hash"][:12])
    sweep = {"task": {"task": "conjunction", "s": 2, "T": 6}, "model": {"d": 8, "heads": 2}, "m": 8, "n_test": 32}
    sweep |= {"train": {"steps": 3}, "seeds": 3}
    (folder / "sweep.json").write_text(json.dumps(sweep))
    run = CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in LINES:
            done = run.invoke(main, line.split())
            assert done.exit_code == 0, done.output
    return folder


LINES = (
    "eval --depth 1 --bound closed --m 1e8 --no-solve --certificate gap.json",
    "plot gap-vs-m --sweep m=1e3,1e6 --bound closed -o figure.png",
    "train conjunction --T 6 --s 2 --m 64 --d 8 --heads 2 --steps 3 --quiet --no-bounds --certify holdout"
    " --certificate kept.json --examples kept.npz",
)
"""What makes the files that commands make for each other."""


IN_THE_BALL = "rows of vectors are in the ball already: --embedding-norm changes networks, not their bound"


def neutral(command: str, option: str, line: Sequence[str]) -> bool:
    """Whether an option need not be noticed: see `NEUTRAL`, and `IN_THE_BALL`."""
    if option == "--embedding-norm" and "--preset" not in line:
        return True
    return any((name, option) in NEUTRAL for name in ("*", command))


def unnoticed(
    folder: Path, command: str, base: Sequence[str], options: Iterable[click.Option], shelf: Path | None = None
) -> Iterator[str]:
    """Options that, however they are given, change nothing and are not refused."""
    start = [*command.split(), *base]
    before = ran(folder / "base", start, shelf)
    assert before[0], before[1]
    for option in options:
        name = max(option.opts, key=len)
        ways = enumerate(words(option))
        if all(
            ran(folder / f"{name}{number}", instead(start, option, given), shelf) == before for number, given in ways
        ):
            yield name


def instead(line: Sequence[str], option: click.Option, given: Sequence[str]) -> list[str]:
    """A line with an option given so, and not as it was before: twice it would be refused."""
    flags = {*option.opts, *option.secondary_opts}
    rest = list(line)
    for flag in () if option.multiple else flags & {*rest}:
        at = rest.index(flag)
        del rest[at : at + (1 if option.is_flag else 2)]
    return [*rest, *given]


LISTED = dict(commands())
CASES = [(name, base) for name, bases in BASES.items() for base in bases]


def options_of(command: str, line: Sequence[str] = ()) -> list[click.Option]:
    """What is tried beside a line; flags that it has are not."""
    options = [option for option in LISTED[command].params if isinstance(option, click.Option)]
    options = [option for option in options if not (option.is_flag and {*option.opts} & {*line})]
    return [option for option in options if not neutral(command, max(option.opts, key=len), line)]


@pytest.mark.parametrize(("command", "base"), CASES)
def test_an_option_changes_something_or_is_refused(tmp_path: Path, shelf: Path, command: str, base: str) -> None:
    line = base.replace("HASH", (shelf / "hash").read_text()).split()
    found = list(unnoticed(tmp_path, command, line, options_of(command, line), shelf))
    assert not found, " ".join(found)


@pytest.mark.parametrize("command", sorted(LISTED))
def test_an_option_given_twice_is_refused(command: str) -> None:
    """One of the two would be ignored; options that make a list are not meant."""
    for option in LISTED[command].params:
        if isinstance(option, click.Option) and not (option.multiple or option.count):
            given = next(words(option))
            outcome = CliRunner().invoke(main, [*command.split(), *given, *given])
            assert outcome.exit_code == 2, (command, given)
            assert "is given twice" in outcome.output, (command, given)


@pytest.mark.parametrize(
    "line",
    [
        "train conjunction --T 16 --set task.T=8",
        "train conjunction --steps 5 --set train.steps=8",
        "train conjunction --d 32 --set model.d=16",
        "train conjunction --ball W_V=21:1 --set train.balls={}",
        "train conjunction --ball W_V=21:1 --ball W_V=21:4",
        'train conjunction --set train.balls={"W_V":["21",1],"W_V":["21",4]}',
        "train conjunction --set train.lr=0.1 --set train.lr=0.2",
        "train conjunction --set train.lr=NaN",
        "sweep sweep.json --list --jobs 3",
        "eval --bound X3 --L 512 --set smoothness=1 --set smoothness=2",
        "norms model --set layer_norm_eps=1 --set layer_norm_eps=2",
    ],
)
def test_what_is_said_twice_is_refused(tmp_path: Path, shelf: Path, line: str) -> None:
    done, said, _ = ran(tmp_path / "here", line.split(), shelf)
    assert not done
    assert "\n" not in said.strip()


def test_every_command_is_tried() -> None:
    assert set(BASES) == set(LISTED)


def test_an_option_that_nothing_reads_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = click.Option(["--idle"], expose_value=False)
    monkeypatch.setattr(LISTED["explain"], "params", [*LISTED["explain"].params, idle])
    assert list(unnoticed(tmp_path, "explain", ["T2"], options_of("explain"))) == ["--idle"]
