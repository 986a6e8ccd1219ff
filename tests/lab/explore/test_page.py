"""The page in a real browser: its values against Python, its controls, its silence towards the network."""

from __future__ import annotations

import itertools
import math
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boundcalc import Setting, evaluate
from boundcalc.lab.explore import _checked as checked
from boundcalc.lab.explore import _content as content
from boundcalc.lab.explore import page
from boundcalc.lab.explore.serve import Server
from boundcalc.lab.figures import names
from boundcalc.proof.checker import check
from boundcalc.proof.floor import check_floor
from boundcalc.statements.floors import B
from boundcalc.theorems import THEOREMS
from tests.lab.explore import axe
from tests.lab.explore.browser import Browser

SETTING = content.SETTING
COVERED = Setting.of("edelman", C=2.0)


def value(browser: Browser, name: str) -> float | None:
    shown = browser.run("return document.getElementById('v-' + arguments[0]).dataset.value", name)
    return None if shown is None else float(shown)


def by_python(name: str, at: dict[str, float]) -> float:
    formula = THEOREMS[name].gap
    return formula.value(**{str(symbol): {**content.FIXED, **at}[str(symbol)] for symbol in formula.inputs})


def wait(until: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if until():
            return True
        time.sleep(0.05)
    return False


def every(browser: Browser, css: str, what: str) -> list[Any]:
    """`what` of each element `e` that a selector finds."""
    return browser.run(f"return [...document.querySelectorAll(arguments[0])].map(e => {what})", css)


def text_of(browser: Browser, css: str) -> str:
    return browser.run("return document.querySelector(arguments[0]).textContent", css)


def state(browser: Browser) -> dict[str, Any]:
    return browser.run("return state")


def setting_at(view: dict[str, Any]) -> Setting:
    return content.at({letter: view[letter] for letter in content.FIELDS})


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"T": 17, "m": 123456, "C": 0.73, "depth": 4, "d": 42, "heads": 3, "gamma": 2.5},
        {"T": 1048576, "m": 1000000000000, "C": 2, "depth": 1, "d": 4096, "heads": 16, "gamma": 0.01},
    ],
)
def test_formulas_are_those_of_python(opened: Browser, where: dict[str, float]) -> None:
    for name, number in where.items():
        opened.type(f"#n-{name}", f"{number:.12g}")
    view = state(opened)
    assert {name: view[name] for name in where} == where
    for name in content.SHOWN:
        assert value(opened, name) == pytest.approx(by_python(name, view), rel=1e-9)


def test_bound_and_floor_are_checked_ones(opened: Browser) -> None:
    own = evaluate(SETTING)
    assert own.gap <= (value(opened, "best") or 0) <= own.gap * (1 + 1e-9)
    assert own.floor is not None
    assert own.floor.value * (1 - 1e-9) <= (value(opened, "floor") or 0) <= own.floor.value
    promise, least = (
        float(text_of(opened, f"#{name}").split(" points")[0].split()[-1]) for name in ("promise", "least")
    )
    assert own.gap <= promise / 100 <= own.gap * 1.1
    assert own.floor.value * 0.9 <= least / 100 <= own.floor.value


def test_what_follows_from_checked_points_is_no_better_than_the_engine(opened: Browser) -> None:
    """At random settings, but for what the search misses: 1% of a bound, 5% of a floor."""
    draw, bounds, floors = random.Random(5), 0, 0
    for _ in range(40):
        view = {name: draw.choice(field.stops) for name, field in content.FIELDS.items()}
        view |= {"depth": draw.choice((1, 2, 4)), "C": draw.choice((0.5, 1, 2)), "T": draw.choice((16, 17, 99, 512))}
        view |= {"m": round(10 ** draw.uniform(3, 10)), "d": draw.choice((64, 256)), "heads": draw.choice((1, 1, 4))}
        view |= {"gamma": draw.choice((0.05, 0.12, 0.5, 1))}
        shown, floor = opened.run("return [bound(arguments[0]).value, floorAt(arguments[0]).value]", view)
        engine = evaluate(setting_at(view))
        if shown is not None and not engine.trivial:
            assert 10**engine.log10 <= shown * 1.01, view
            bounds += shown < 1
        if floor:
            assert engine.floor is not None
            assert floor <= engine.floor.value * 1.05, view
            floors += 1
    assert min(bounds, floors) >= 8


def test_a_proof_by_covers_is_checked_where_it_is_moved_to(opened: Browser) -> None:
    """The checker, given the levels of one search at another m and a larger margin, finds what the page computes."""
    start = COVERED.but(n_train=10**8, margin=0.1)
    proof = evaluate(start, "T-free").certificate
    (row,) = checked.packed([{"at": content.letters(start)} | checked.of_bound(evaluate(start, "T-free"))])["rows"]
    for m, gamma in ((10**8, 0.1), (10**7, 0.1), (10**10, 0.25), (3 * 10**7, 2.0)):
        setting, fall = COVERED.but(n_train=m, margin=gamma), math.log(gamma / 0.1)
        levels = tuple(replace(level, log_scale=level.log_scale - fall, log_count=None) for level in proof.levels)
        again = check(replace(proof, setting=setting, levels=levels, log_value=None))
        there = content.letters(setting)
        value = opened.run(
            "addPoint(arguments[0], ['chain', ...Array(20).fill('x')]); const p = POINTS.pop();"
            "BY_DEPTH.get(2).pop(); return worse(p, arguments[1]) && termsAt(p, arguments[1]).reduce((a, b) => a + b);",
            row,
            there,
        )
        assert value == pytest.approx(again.value, rel=1e-9), (m, gamma)
    tighter = content.letters(COVERED.but(margin=0.05))
    assert (
        opened.run("return worse({at: arguments[0], terms: [1], compared: false}, arguments[1])", row, tighter) is False
    )


@pytest.mark.parametrize("by", ["F1", "F2"])
def test_members_of_a_floor_count_at_every_m(opened: Browser, by: str) -> None:
    """By F1 to nine digits; by F2 from below, at no more than a quarter of the floor away."""
    construction = B(62, 0.475)
    start = Setting.of("edelman", depth=1, seq_len=16, C=0.5, n_train=10**5, margin=0.5)
    point = checked.of_floor(check_floor(start, construction, by))
    at = content.letters(start)
    for m in (10, 63, 64, 777, 10**4, 10**5, 12345678, 10**10):
        value = check_floor(start.but(n_train=m), construction, by).value
        shown = opened.run("return floorOf(arguments[0], arguments[1])", {"at": at, **point}, m)
        if by == "F1" and value > 0:
            assert shown == pytest.approx(value, rel=1e-5 if m < 200 else 1e-9)
            assert shown <= value * (1 + 1e-9)
        if by == "F2":
            assert shown <= max(value, point["floor"] if m < 10**5 else 0) * (1 + 1e-9)
            assert m < 10**5 or shown > 0.75 * value


def test_the_line_is_dragged_and_curves_are_read(opened: Browser) -> None:
    move = """
      const e = document.getElementById('chart'), box = e.getBoundingClientRect(); e.setPointerCapture = () => 0;
      const at = (kind, share) =>
        e.dispatchEvent(new PointerEvent(kind, {clientX: box.left + share * box.width, pointerId: 1}));
      at('pointermove', 0.6); const read = document.getElementById('read-out').textContent;
      at('pointerdown', 0.6); at('pointermove', 0.8); at('pointerup', 0.8); return [read, state.m];
    """
    read, m = opened.run(move)
    assert "bound 0." in read
    assert text_of(opened, "#read-out").startswith(f"m = {m / 1e6:g} million: bound ")  # at rest, of the setting
    assert "floor" in read
    assert m > 1e7
    assert m in content.FIELDS["m"].stops
    assert every(opened, "[data-here]", "Number(e.dataset.here)") == [m]


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("m", "many", "must be a number"),
        ("m", "5", "lies between 10 and 1 trillion"),
        ("T", "2.5", "must be a whole number"),
        ("depth", "5", "This file has checked values for 1, 2, 3"),
        ("heads", "3", "d must be a multiple"),
        ("gamma", "", "must be a number"),
    ],
)
def test_wrong_inputs_say_so(opened: Browser, name: str, typed: str, words: str) -> None:
    before = state(opened)
    if typed:
        opened.type(f"#n-{name}", typed)
    else:
        opened.run(f"const e = document.getElementById('n-{name}'); e.value = ''; e.dispatchEvent(new Event('input'))")
    assert words in text_of(opened, f"#w-{name}")
    assert every(opened, f"#n-{name}", "e.getAttribute('aria-invalid')") == ["true"]
    if name not in ("m", "T"):  # of "2.5" the first digit is a number
        assert state(opened) == before


def test_every_preset_shows_what_it_says(opened: Browser) -> None:
    for preset in content.PRESETS:
        opened.click(f"[data-preset='{preset['name']}']")
        assert text_of(opened, "#preset-text") == preset["text"]
        assert preset["set"].items() <= state(opened).items()
    opened.click("[data-preset='Toy model']")
    toy = evaluate(setting_at(state(opened)))
    assert toy.ratio is not None
    assert toy.ratio < 10
    assert (value(opened, "best") or 0) < 10 * (value(opened, "floor") or 0)
    usual = SETTING.but(n_train=10**8)
    growth = {C: evaluate(usual.but(C=C, depth=12)).gap / evaluate(usual.but(C=C, depth=1)).gap for C in (0.5, 1.0)}
    assert growth[0.5] < 1 < 10 < growth[1.0]


def test_measured_runs_are_there_from_the_start(opened: Browser) -> None:
    runs = content.measured_runs()
    drawn = every(opened, "[data-run]", "Number(e.dataset.run)")
    assert drawn == [m for m, error in runs["rows"] if error > 0] != []
    cells = sum(share > 0.01 for row in runs["network"]["attention"] for share in row)
    assert len(every(opened, "#heat .cell", "1")) == cells > 10
    assert len(every(opened, "#heat .true", "1")) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Browser, scheme: str) -> None:
    """As the page opens, with wrong input, vacuous, on a phone."""
    opened.prefer(scheme)
    assert axe.findings(opened, impacts=axe.ALL) == []
    opened.type("#n-m", "5")
    assert axe.findings(opened, impacts=axe.ALL) == []
    opened.resize(390, 800)
    opened.type("#n-m", "1000")
    assert axe.findings(opened, impacts=axe.ALL) == []
    assert opened.run(CONTRAST) == []


CONTRAST = """
  const part = x => x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4;
  const weights = [0.2126, 0.7152, 0.0722];
  const light = c => c.match(/[\\d.]+/g).slice(0, 3).reduce((sum, x, i) => sum + weights[i] * part(Number(x)), 0);
  const paper = light(getComputedStyle(document.querySelector('.vacuous')).fill), found = [];
  for (const t of document.querySelectorAll('svg text')) {
    const ink = light(getComputedStyle(t).fill), ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) found.push(`${t.textContent} ${ratio.toFixed(2)}`);
  }
  return found;
"""


def test_axe_would_find_what_cannot_be_heard_or_seen(browser: Browser, text: str, tmp_path: Path) -> None:
    """The control: fields without names, pale words, a picture without a text."""
    file = tmp_path / "worse.html"
    label = '<label for="axis">horizontal axis</label>'
    assert label in text
    worse = text.replace(label, "").replace("<main>", '<main><p id="pale">pale</p><img id="bare" src="data:,">')
    file.write_text(worse, encoding="utf-8")
    browser.prefer("light")
    browser.open(file.as_uri())
    browser.run("document.getElementById('pale').style.color = '#bbb'")
    found = axe.findings(browser)
    for rule in ("critical select-name: #axis", "serious color-contrast: #pale", "critical image-alt: #bare"):
        assert rule in found
    browser.forget()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_curves_have_the_names_and_colours_of_the_figures(opened: Browser, theme: str) -> None:
    opened.prefer(theme)
    opened.click("[data-preset='log T or not?']")
    keys = {
        "best": "path.best",
        "gap-floor": "path.floor",
        "edelman2022": "path.closed-0",
        "trauger2024": "path.closed-1",
    }
    for key, css in keys.items():
        wanted = names.look(key).colour if theme == "light" else names.dark_theme(names.look(key).colour)
        (seen,) = every(opened, css, "getComputedStyle(e).stroke")
        assert [int(part) for part in re.findall(r"\d+", seen)] == [int(wanted[k : k + 2], 16) for k in (1, 3, 5)], key
    shown = dict(every(opened, "[data-label]", "[e.dataset.label, e.textContent]"))
    assert (shown["best"], shown["floor"]) == (names.look("best").name, names.look("gap-floor").name)
    assert names.look("edelman2022").name.startswith(shown["closed-0"])


def test_a_phone_shows_plot_and_sliders_together(opened: Browser) -> None:
    opened.resize(390, 800)
    opened.run("document.getElementById('r-C').scrollIntoView({block: 'center'})")
    time.sleep(0.2)
    boxes = every(opened, "#chart, #r-C", "(b => [b.left, b.top, b.right, b.bottom])(e.getBoundingClientRect())")
    assert all(left >= 0 and top >= -1 and right <= 390 and bottom <= 800 for left, top, right, bottom in boxes)
    assert boxes[0][3] <= boxes[1][1] + 1 or boxes[1][3] <= boxes[0][1] + 1  # neither hides the other
    sizes = opened.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert sizes[0] <= sizes[1]
    assert min(every(opened, "#chart text", "e.getBoundingClientRect().height")) > 10


@pytest.mark.parametrize("width", [1200, 390])
def test_names_stand_apart_within_their_pictures(opened: Browser, width: int) -> None:
    opened.resize(width, 1000)
    box = "(b => [b.x, b.y, b.x + b.width, b.y + b.height])(e.getBBox())"
    for preset in content.PRESETS:
        opened.click(f"[data-preset='{preset['name']}']")
        assert len(every(opened, "[data-label]", "1")) >= 2 - (preset["name"] == "BERT-like")
        for picture in ("#chart", "#heat"):
            wide = every(opened, picture, "e.viewBox.baseVal.width")[0]
            boxes = every(opened, f"{picture} text", box)
            assert all(left >= 0 and right <= wide for left, _, right, _ in boxes), preset["name"]
            for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
                assert not (a < g and e < c and b + 3 < h and f + 3 < d), preset["name"]


def test_a_broken_formula_would_be_seen(browser: Browser, text: str, tmp_path: Path) -> None:
    """The control: a page whose formula is off fails the comparison, and one that calls out is seen."""
    start = text.index('"edelman2022": function')
    at = text.index("return ", start) + len("return ")
    off = text[:at] + "1.00001 * " + text[at:]
    policy = 'http-equiv="Content-Security-Policy"'
    calls = '"use strict"; fetch("http://127.0.0.1:9/x").catch(() => 0);'
    file = tmp_path / "broken.html"
    file.write_text(off.replace(policy, "hidden").replace('"use strict";', calls), encoding="utf-8")
    browser.forget()
    browser.open(file.as_uri())
    assert value(browser, "edelman2022") != pytest.approx(by_python("edelman2022", state(browser)), rel=1e-9)
    assert wait(lambda: "http://127.0.0.1:9/x" in browser.requests())
    kept = tmp_path / "kept.html"  # with its policy the changed script does not even start
    kept.write_text(off, encoding="utf-8")
    browser.open(kept.as_uri())
    assert any("Content Security Policy" in line for line in browser.complaints())


def test_served_every_point_is_the_engine_s(browser: Browser) -> None:
    server = Server(page.build(served=True))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.resize(1200, 1000)
        browser.forget()
        browser.open(server.url)
        before = value(browser, "best")
        browser.type("#n-m", "777777")
        assert before is not None
        assert (value(browser, "best") or 0) > before / 1.2 or wait(lambda: value(browser, "best") is not None)
        own = evaluate(SETTING.but(n_train=777777))
        assert wait(lambda: value(browser, "best") == pytest.approx(own.gap, rel=1e-9), 60)
        assert "checked at this setting" in text_of(browser, "#values")
        requested = browser.requests()
        assert requested
        assert all(url.startswith((server.url, "data:")) for url in requested)
        assert browser.complaints() == []
    finally:
        server.shutdown()
        server.server_close()
