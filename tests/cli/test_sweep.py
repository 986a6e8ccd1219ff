"""`--sweep`: axes are read as written, every point is what `eval` says there, absurd grids are refused."""

from __future__ import annotations

import csv
import io

import pytest

from boundcalc.cli._grid import parse_axes

from .conftest import answer, one_line, printed, run_line


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("T=64:1024:x2", [64, 128, 256, 512, 1024]),
        ("T=64:1000:x2", [64, 128, 256, 512]),
        ("T=1024:64:x0.5", [1024, 512, 256, 128, 64]),
        ("T=7:7:x2", [7]),
        ("m=1e3:1e9:log7", [10**k for k in range(3, 10)]),
        ("m=1:3:log9", [1, 2, 3]),
        ("C=0.5:2:lin4", [0.5, 1.0, 1.5, 2.0]),
        ("C=2:0.5:lin4", [2.0, 1.5, 1.0, 0.5]),
        ("gamma=0.1:0.1:log1", [0.1]),
        ("heads=1,2,4", [1, 2, 4]),
        ("train-error=0,10^-2", [0.0, 0.01]),
        ("activation=relu,gelu", ["relu", "gelu"]),
        ("causal=yes,no", [True, False]),
        ("--depth=1,2", [1, 2]),
    ],
)
def test_axes_are_read_as_written(text: str, values: list[object]) -> None:
    ((_, found),) = parse_axes([text]).values()
    assert found == pytest.approx(values) if isinstance(values[0], float) else found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize("count", range(2, 34))
def test_geometric_ranges_keep_their_last_point_despite_rounding(count: int) -> None:
    ((_, found),) = parse_axes([f"m=1:{3**count}:x3"]).values()
    assert found == [3**k for k in range(count + 1)]


def table(line: str) -> list[dict[str, str]]:
    """The rows of a sweep."""
    return list(csv.DictReader(io.StringIO(printed(f"eval {line} --format csv"))))


def test_every_point_is_what_eval_says_there() -> None:
    rows = table("--depth 1 --bound closed --bound T-free --sweep T=8,32 --sweep C=1,2")
    assert [(row["T"], row["C"]) for row in rows[::2]] == [("8", "1.0"), ("8", "2.0"), ("32", "1.0"), ("32", "2.0")]
    for row in rows:
        (result,) = answer(f"eval --depth 1 --bound {row['name']} --T {row['T']} --C {row['C']}")["results"]
        assert float(row["log10_gap"]) == result["log10_gap"]
        assert float(row["log10_risk"]) == result["log10_risk"]


def test_points_that_make_no_setting_are_rows() -> None:
    one, three = table("--sweep heads=1,3")
    assert one["refusal"] == three["gap"] == ""
    assert "not divisible" in three["refusal"]
    assert run_line("eval --sweep heads=3,5").exit_code == 1


def test_a_sweep_of_the_knob_beside_norms_of_some_weights() -> None:
    """The knob that the other weights need is what is swept; where none needs it, or none gives it, that is said."""
    some = "--depth 1 --bound best --norm W_V=op:2,21:2"
    assert len(table(f"{some} --sweep C=1,2")) == 2
    assert "no norm budget for" in one_line(run_line(f"eval {some} --sweep m=1e6,1e7"))
    every = " ".join(f"--norm {kind}=op:1,21:1" for kind in ("W_QK", "W_1", "readout"))
    assert "sweeping C would change nothing" in one_line(run_line(f"eval {some} {every} --sweep C=1,2"))
