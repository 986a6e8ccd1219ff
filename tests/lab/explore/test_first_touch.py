"""What readers stumbled over when they first used the page: each must stay mended."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from boundcalc.cli import _explore as explore
from boundcalc.cli import main
from boundcalc.lab.explore import _content as content
from boundcalc.lab.explore import page
from tests.lab.explore.browser import Browser
from tests.lab.explore.test_page import every, text_of, value

RISING = {name for name in content.FIELDS if name not in (*content.FALLING, "depth")}


@pytest.mark.parametrize("axis", [name for name in content.FIELDS if name != "depth"])
def test_the_bound_is_monotone_along_every_axis(opened: Browser, axis: str) -> None:
    """With more sequences or a larger margin it falls, with larger norms, width, heads or length it rises."""
    code = "return arguments[0].map(x => bound({...state, m: 1e8, [arguments[1]]: x}).value)"
    limits = content.FIELDS[axis]
    between = [(a * b) ** 0.5 for a, b in itertools.pairwise(limits.stops)]
    places = sorted({*limits.stops, *(round(x) if limits.whole else x for x in between)})
    found = [bound for bound in opened.run(code, places, axis) if bound is not None]
    assert len(found) > len(places) / 2
    assert found == sorted(found, reverse=axis not in RISING)


def test_where_nothing_was_checked_nothing_is_called_vacuous(opened: Browser) -> None:
    opened.type("#n-C", "50")
    assert value(opened, "best") is None
    assert "no bound of its test error that was checked here" in text_of(opened, "#promise")
    assert text_of(opened, "#v-best") == "none"
    assert text_of(opened, "#suffices") == ""
    assert "no checked point is worse than this setting" in text_of(opened, "#values")
    assert text_of(opened, "#pays-text") == "No bound is checked here."


@pytest.mark.parametrize("width", [1200, 390])
def test_everything_is_reached_by_the_tab_key_in_reading_order(opened: Browser, width: int) -> None:
    opened.resize(width, 900)
    wanted = every(
        opened,
        "[data-knob], [data-preset], #axis, #setting input, #shown input, #reset, #about",
        "e.id || e.dataset.knob || e.dataset.preset || e.textContent",
    )
    where = "e => e.id || e.dataset.knob || e.dataset.preset || e.textContent"
    reached: list[str] = []
    opened.run("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    for _ in range(len(wanted) + 12):
        opened.key("\ue004")
        reached.append(opened.run(f"return ({where})(document.activeElement)"))
    assert [name for name in reached if name in wanted][: len(wanted)] == wanted
    opened.run("document.querySelector('[data-preset]').focus()")
    opened.key("\ue007")
    assert text_of(opened, "#preset-text") == content.PRESETS[0]["text"]


@pytest.mark.parametrize(
    ("words", "browser", "served"),
    [((), True, True), ((), False, False), (("-o", "a.html"), True, False), (("--serve",), False, True)],
)
def test_it_is_served_where_a_browser_can_be_opened(
    words: tuple[str, ...], browser: bool, served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found: list[Any] = []
    seen = SimpleNamespace(open=found.append) if browser else None
    monkeypatch.setattr(explore, "_browser", lambda: seen)
    monkeypatch.setattr(explore, "_serve", found.append)
    monkeypatch.setattr(page, "build", lambda **options: "<p>page")
    outcome = CliRunner().invoke(main, ["explore", *words])
    assert outcome.exit_code == 0, outcome.output
    assert [each.name for each in tmp_path.iterdir()] == ([] if served else [words[-1] if words else "explore.html"])
    assert found == ([seen if not words else None] if served else [])
