"""What commands write destroys nothing: full disks, links."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting


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
