"""What commands about training write, and that they destroy nothing; stores that are damaged or cannot be written."""

from __future__ import annotations

import itertools
import json
import math
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli import main
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import sweep_from_json
from boundcalc.lab.train.trial import N_TEST, Optimisation
from tests.lab.train.test_store import result, trial


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="boundcalc")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def filled(path: Path, count: int = 3) -> Path:
    with Store(path) as store:
        for seed in range(count):
            store.add(trial(seed), result(), sweep="demo")
    return path


# -- files


def test_a_full_disk_leaves_the_old_file_and_is_told_with_its_name(tmp_path: Path) -> None:
    """The largest size a file may have stands for a full disk."""
    code = (
        "import sys; from boundcalc.base import output\n"
        "output.write_json(sys.argv[1], {'C': 1, 'budgets': {}, 'measured': 'x' * 10**6}, force=True)"
    )
    path = tmp_path / "n.json"
    output.write_json(path, {"C": 1, "budgets": {}})
    before = path.read_bytes()

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, 10**5))

    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, preexec_fn=small)
    assert f"cannot write {path}: File too large; what was there before is as it was" in done.stderr
    assert path.read_bytes() == before
    assert [left.name for left in tmp_path.iterdir()] == ["n.json"]


@pytest.mark.parametrize("name", ["there.json", "empty.json", "nowhere.json", "link.json"])
def test_a_link_is_named_in_the_refusal_and_is_replaced_itself(tmp_path: Path, name: str) -> None:
    """Also where it points outside the folder, to an empty file, to nothing or to itself."""
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    (elsewhere / "there.json").write_text("foreign")
    (elsewhere / "empty.json").touch()
    link = here / "link.json"
    link.symlink_to(here / name if name == "link.json" else elsewhere / name)
    before = {path.name: path.read_text() for path in elsewhere.iterdir()}
    with pytest.raises(InvalidSetting, match=rf"link.json is a link to .*{name}"):
        output.write_json(link, {})
    assert link.is_symlink()
    output.write_json(link, {"C": 2}, force=True)
    assert not link.is_symlink()
    assert json.loads(link.read_text()) == {"C": 2}
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == before


# -- stores


def test_a_damaged_record_is_left_out_and_named(here: Path) -> None:
    store = filled(here / "s.db")
    key = trial(1).hash
    with Store(store) as opened:
        opened.connection.execute(
            "UPDATE trials SET result = CAST(replace(result, '\"done\"', X'FFFE') AS TEXT) WHERE hash = ?", (key,)
        )
    outcome = run("sweep", "--store", store)
    assert outcome.exit_code == 0
    assert len(outcome.stdout.splitlines()) == 5
    assert f"left out: {key[:12]} was changed after it was written" in outcome.stderr
    with Store(store) as opened:
        opened.remove([opened.named(key[:12])])
        assert len(opened.hashes()) == 2


# -- questions


def test_the_command_and_sweep_files_train_alike() -> None:
    from boundcalc.cli.train import command

    options: dict[str, Any] = {p.name or "": p.default for p in command.params}
    rule = Optimisation()
    for name in ("lr", "batch", "steps"):
        assert options[name] == getattr(rule, name), name
    sweep = sweep_from_json({"task": {"task": "conjunction"}, "m": 8})
    assert sweep.trials[0].n_test == N_TEST


def test_longer_masked_inputs_tell_more_about_the_law() -> None:
    """docs/latent.md says so of the masked task: its Bayes risk falls at every length, and how far."""
    from boundcalc.lab.train.tasks import task_from_json

    risks = [task_from_json({"task": "masked-token", "L": L}).bayes_risk() for L in (2, 8, 32, 128, 512)]
    for shorter, longer in itertools.pairwise(risks):
        assert longer.value < shorter.value - 3 * math.hypot(shorter.error, longer.error) / 2
    assert [round(risk.value, 2) for risk in risks[1:]] == [0.78, 0.74, 0.72, 0.72]
