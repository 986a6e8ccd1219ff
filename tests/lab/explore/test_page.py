"""The page in a real browser: its values against Python, its controls, its silence towards the network."""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boundcalc import Setting, evaluate
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.lab.explore import content, page
from boundcalc.lab.explore.serve import Server
from tests.lab.explore import axe, walk
from tests.lab.explore.browser import Browser
from tests.lab.explore.walk import choose

SETTING = Setting.of("edelman")
FEW = {"m": (1e3, 1e4, 1e6, 1e8), "depth": (1, 2, 4), "C": (1,), "T": (64, 512)}
POINTS = [{"axis": "m", "x": 100.0, "y": 0.2, "low": 0.1, "high": 0.3}, {"axis": "m", "x": 1000.0, "y": 0.05}]
FIRST_CURVE, MOVE = 2000.0, 50.0
"""Milliseconds allowed from the start of loading to the first curve, and for a move of a slider."""


@pytest.fixture(scope="module")
def text() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "GRID", FEW)
        patch.setattr(content, "COARSE", {**FEW, "m": (1e6,), "T": (512,)})
        return page.build(SETTING, points=POINTS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


@pytest.fixture
def opened(browser: Browser, text: str, tmp_path: Path) -> Iterator[Browser]:
    """The page from disk; afterwards the console must be empty, and nothing but the file may have been asked for."""
    file = tmp_path / "explore.html"
    file.write_text(text, encoding="utf-8")
    browser.resize(1200, 1000)
    browser.forget()
    browser.open(file.as_uri())
    yield browser
    assert browser.complaints() == []
    asked = [url for url in browser.requests() if not url.startswith(("data:image/", "blob:"))]
    assert {url.partition("#")[0] for url in asked} == {file.as_uri()}


def value(browser: Browser, name: str) -> float | None:
    found = browser.run("return document.getElementById('v-' + arguments[0]).dataset.value", name)
    return None if found is None else float(found)


def by_python(name: str, at: dict[str, float]) -> float:
    formula = THEOREMS[name].gap
    return formula.value(**{str(symbol): at[str(symbol)] for symbol in formula.inputs})


def wait(until: Callable[[], bool]) -> bool:
    """Whether something becomes true within ten seconds."""
    for _ in range(200):
        if until():
            return True
        time.sleep(0.05)
    return False


def every(browser: Browser, css: str, what: str) -> list[Any]:
    """`what` of each element `e` that a selector finds."""
    return browser.run(f"return [...document.querySelectorAll(arguments[0])].map(e => {what})", css)


def the_state(browser: Browser) -> dict[str, float]:
    return browser.run("return state")


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"T": 17, "m": 123456, "C": 0.73, "depth": 5, "d": 40, "heads": 3, "gamma": 2.5, "delta": 0.001},
        {"T": 1048576, "m": 1000000000000, "C": 2, "depth": 1, "d": 4096, "heads": 16, "gamma": 0.01, "delta": 1e-9},
    ],
)
def test_values_are_those_of_python(opened: Browser, where: dict[str, float]) -> None:
    for name, number in where.items():
        opened.type(f"#n-{name}", f"{number:.12g}")
    state = the_state(opened)
    assert {name: state[name] for name in where} == where
    for name in content.SHOWN:
        assert value(opened, name) == pytest.approx(by_python(name, state), rel=1e-9)


def test_the_checked_values_are_those_of_the_engine_and_are_drawn_as_dots(opened: Browser) -> None:
    shown = value(opened, "best")
    assert shown == pytest.approx(10 ** evaluate(SETTING).log10, rel=1e-12)
    drawn = every(opened, "[data-best]", "Number(e.dataset.best)")
    telling = [m for m in FEW["m"] if not evaluate(SETTING.but(n_train=int(m))).vacuous]
    assert drawn == telling != []
    opened.type("#n-m", "1000")
    assert "trivial" in opened.run("return document.getElementById('v-best').textContent")
    needed = evaluate(SETTING.but(n_train=1000)).needed
    assert needed is not None
    said = opened.run("return document.getElementById('why-text').textContent")
    assert "Vacuous" in said
    assert "would do" in said
    opened.type("#n-d", "65")
    assert "no checked value" in opened.run("return document.getElementById('v-best').textContent")
    opened.click("#nearest")
    assert the_state(opened)["d"] == 64
    assert "trivial" in opened.run("return document.getElementById('v-best').textContent")


def test_three_questions_are_answered_by_the_page_alone(opened: Browser) -> None:
    """The script of docs/explore.md, walked: what one reads off the page is what the library says."""
    opened.resize(1000, 2800)
    walk.ask(opened, "grows")
    dots = every(opened, "[data-best]", "Number(e.getAttribute('cy'))")
    assert len(dots) == len(FEW["T"])
    assert max(dots) - min(dots) < 1  # not at all
    (rising,) = every(opened, "path[data-curve=edelman2022]", "e.getAttribute('d')")
    heights = [float(point.partition(",")[2]) for point in re.findall(r"[-\d.]+,[-\d.]+", rising)]
    assert heights[0] > heights[-1] + 2  # covers with log T: up the page
    said = walk.ask(opened, "vacuous")
    needed = evaluate(SETTING.but(n_train=10000)).needed
    assert needed is not None
    (m,) = re.findall(r"m = (\d+) would do", said)
    assert int(m) >= (needed.n_train or 0) >= int(m) * 0.999
    assert not evaluate(SETTING.but(n_train=int(m))).vacuous
    said = walk.ask(opened, "enough")
    model = SETTING.but(depth=int(walk.MODEL["depth"]), seq_len=int(walk.MODEL["T"]), C=float(walk.MODEL["C"]))
    first = next(m for m in FEW["m"] if evaluate(model.but(n_train=int(m))).gap <= 0.1)
    assert f"at m = {'10^8' if first == 1e8 else first}, the least that does of {len(FEW['m'])} values" in said


@pytest.mark.parametrize("name", walk.QUESTIONS)
def test_the_pictures_of_the_script_show_what_the_page_says(opened: Browser, name: str) -> None:
    """Their words are compared, not their pixels, which are those of a machine's letters; the page is not as large here."""
    file = walk.PICTURES / f"{name}.png"
    opened.resize(1000, 2800)
    now, then = walk.ask(opened, name), walk.words_of(file)
    count = re.compile(r" A gap of at most 0\.1 is checked at .*")  # of more values there
    assert count.sub("", now) == count.sub("", then) != ""
    shown = walk.picture(opened, walk.QUESTIONS[name][1])
    assert shown.height > 100
    page_text = (walk.PICTURES.parent / "explore.md").read_text(encoding="utf-8")
    (words,) = re.findall(rf"!\[([^\]]*(?:\[\d\][^\]]*)*)\]\(explore/{name}\.png\)", page_text)
    assert len(words) > 80
    assert file.stat().st_size < 130_000


def test_curves_are_drawn_where_they_say_something(opened: Browser) -> None:
    """Read off the picture: where the drawn curve crosses a place, its height is the value there."""
    (path,) = every(opened, "path[data-curve=zhang2022]", "e.getAttribute('d')")
    points = [tuple(map(float, p.split(","))) for p in re.findall(r"[-\d.]+,[-\d.]+", path)]
    assert len(points) > 20
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(points))  # falls with m: down the page
    first = min(points)  # the curve begins where the bound first is below 1, not on the band
    state = the_state(opened)
    field = content.FIELDS["m"]
    left, right = 58, opened.run("return document.getElementById('chart').viewBox.baseVal.width") - 12
    m = field[2] * (field[3] / field[2]) ** ((first[0] - left) / (right - left))
    assert by_python("zhang2022", {**state, "m": m * 0.9}) > 0.95
    assert by_python("zhang2022", {**state, "m": m * 1.01}) < 1.0


@pytest.mark.parametrize("axis", ["m", "T", "depth", "C"])
def test_no_curve_crosses_a_name(axis: str, opened: Browser) -> None:
    """Names stand beside their curves; a curve without room for its name has none."""
    opened.type("#n-m", "100000000")
    choose(opened, "axis", axis)
    boxes = every(opened, "[data-label]", "(b => [b.x, b.y, b.x + b.width, b.y + b.height])(e.getBBox())")
    assert len(boxes) >= 2
    paths = every(opened, "path[data-curve]", "e.getAttribute('d')")
    assert len(paths) >= len(boxes)
    for text in paths:
        points = [tuple(map(float, each.split(","))) for each in re.findall(r"[-\d.]+,[-\d.]+", text)]
        for left, top, right, bottom in boxes:
            for share in (0.25, 0.5, 0.75, 1.0):
                between = [
                    (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])) for a, b in itertools.pairwise(points)
                ]
                assert not any(left < x < right and top + 3 < y < bottom - 3 for x, y in between)
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
        assert not (a < g and e < c and b + 3 < h and f + 3 < d)


def test_sliders_move_by_keys_and_are_quick(opened: Browser) -> None:
    before = the_state(opened)["T"]
    opened.press("#r-T", "\ue014")  # arrow right
    after = the_state(opened)["T"]
    assert after > before
    assert value(opened, "edelman2022") == pytest.approx(by_python("edelman2022", the_state(opened)), rel=1e-9)
    timing = """
      const times = [];
      for (let i = 0; i < 20; i++) { const r = document.getElementById('r-m'); r.value = 300 + 20 * i;
        const t = performance.now(); r.dispatchEvent(new Event('input')); times.push(performance.now() - t); }
      return times.sort((a, b) => a - b)[10];
    """
    assert opened.run(timing) < MOVE
    assert float(opened.run("return document.documentElement.dataset.ready")) < FIRST_CURVE


def test_the_view_is_in_the_address(opened: Browser) -> None:
    opened.type("#n-T", "99")
    opened.click("#s-zhang2022")
    choose(opened, "axis", "depth")
    time.sleep(0.3)
    address = opened.run("return location.href")
    state = the_state(opened)
    opened.open("about:blank")
    opened.requests()
    opened.open(address)
    assert the_state(opened) == state
    assert state["axis"] == "depth"
    assert "zhang2022" not in state["shown"]  # type: ignore[operator]
    for wrong in ("#T=abc&m=-3&style=none&shown=x,best&axis=q", "#C=1e999", "#%%%"):
        opened.run("location.hash = arguments[0]", wrong)
        time.sleep(0.05)
        assert math.isfinite(float(the_state(opened)["C"]))
    opened.open(address.partition("#")[0] + "#T=64")


def test_formula_parts_and_steps(opened: Browser) -> None:
    assert opened.run("return document.querySelectorAll('#formula pre').length") == 1
    assert opened.run("return document.getElementById('steps-text').innerHTML") == ""  # on demand
    opened.click("#steps summary")
    time.sleep(0.2)
    assert opened.run("return document.querySelectorAll('#steps-text pre').length") == 1
    parts = dict(every(opened, "#parts dd", "[e.dataset.part, Number(e.dataset.value)]"))
    state = the_state(opened)
    assert parts["gap"] == pytest.approx(by_python("edelman2022", state), rel=1e-9)
    assert parts["r"] == pytest.approx(state["C"] ** 2 * state["heads"] * (state["C"] + math.sqrt(state["C"] ** 2 + 1)))
    assert {"G", "S_1", "S_T", "C_F", "k"} <= parts.keys()


def test_what_is_taken_along(opened: Browser) -> None:
    opened.type("#n-depth", "3")

    def copied(kind: str) -> str:
        opened.click(f"[data-copy={kind}]")
        return opened.run("return document.getElementById('copied').value")

    assert copied("command") == (
        "boundcalc eval --style edelman --depth 3 --T 512 --m 1000000 --C 1 --d 64 --heads 1 --gamma 0.12 --delta 0.05"
    )
    assert r"\sqrt" in copied("latex")
    space: dict[str, Any] = {}
    code = copied("python").replace("print(", "found = (")
    exec(code, space)
    assert space["found"] == pytest.approx(value(opened, "edelman2022"), rel=1e-9)
    drawing = copied("svg")
    assert drawing.startswith("<svg")
    assert "data-curve" in drawing
    assert copied("link").startswith("file:")
    opened.click("#png")
    size = "return Number(document.getElementById('png').dataset.bytes || 0)"
    assert wait(lambda: opened.run(size) > 5000)


def test_a_reader_hears_every_control_and_the_answer(opened: Browser) -> None:
    tree = opened.tree()
    controls = [n for n in tree if n["role"] in ("slider", "spinbutton", "combobox", "checkbox", "button", "textbox")]
    assert len(controls) > 30
    assert [n for n in controls if not n["name"]] == []
    assert any(n["role"] == "status" for n in tree)
    assert sum(n["role"] in ("image", "img") and bool(n["name"]) for n in tree) >= 2
    levels = every(opened, "h1,h2,h3,h4,h5", "Number(e.tagName[1])")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))  # no level is left out
    ids = every(opened, "[id]", "e.id")
    assert len(ids) == len(set(ids))
    contrast = opened.run(CONTRAST)
    assert contrast == []


CONTRAST = """
  const part = x => x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4;
  const light = c => {
    const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = e => {
    for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  const judge = (e, ink, paper) => {
    const [a, b] = [light(ink), light(paper)], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${e.tagName} ${e.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  };
  for (const e of document.querySelectorAll('h1,h2,h3,p,label,legend,th,td,button,summary,dd,dt'))
    judge(e, getComputedStyle(e).color, ground(e));
  for (const t of document.querySelectorAll('svg text')) judge(t, getComputedStyle(t).fill, 'rgb(255, 255, 255)');
  return found;
"""


def test_axe_finds_nothing(opened: Browser) -> None:
    """In every state of the page: as it opens, with steps and curves above 1, vacuous, without curves, on a phone."""
    assert axe.findings(opened, impacts=axe.ALL) == []
    opened.click("#steps summary")
    opened.click("#uncapped")
    assert axe.findings(opened, impacts=axe.ALL) == []
    opened.resize(390, 800)
    opened.type("#n-m", "1000")
    choose(opened, "style", "pre")
    assert axe.findings(opened, impacts=axe.ALL) == []


def test_axe_would_find_what_cannot_be_heard_or_seen(browser: Browser, text: str, tmp_path: Path) -> None:
    """The control: fields without names, pale words, a picture without a text."""
    file = tmp_path / "worse.html"
    label = '<label for="axis">along</label>'
    worse = text.replace(label, "").replace("<main>", '<main><p id="pale">pale</p><img id="bare" src="data:,">')
    file.write_text(worse, encoding="utf-8")
    browser.open(file.as_uri())
    browser.run("document.getElementById('pale').style.color = '#bbb'")
    found = axe.findings(browser)
    assert label in text
    for rule in ("critical select-name: #axis", "serious color-contrast: #pale", "critical image-alt: #bare"):
        assert rule in found
    browser.forget()


def test_it_fits_a_phone(opened: Browser) -> None:
    opened.resize(390, 800)
    time.sleep(0.2)
    sizes = opened.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert sizes[0] <= sizes[1]
    (chart,) = every(opened, "#chart", "[e.getBoundingClientRect().left, e.getBoundingClientRect().right]")
    assert chart[0] >= 0
    assert chart[1] <= sizes[1]
    assert min(every(opened, "#chart text", "e.getBoundingClientRect().height")) > 10


def test_styles_without_closed_forms_say_so(opened: Browser) -> None:
    choose(opened, "style", "pre")
    assert opened.run("return document.querySelectorAll('[data-curve]').length") == 0
    assert "none is drawn" in opened.run("return document.getElementById('chart-text').textContent")
    assert value(opened, "best") == pytest.approx(10 ** evaluate(SETTING.but(style="pre")).log10, rel=1e-12)


def test_measured_points_lie_under_the_curves(opened: Browser) -> None:
    assert every(opened, "[data-measured]", "Number(e.dataset.measured)") == [100, 1000]


def test_a_broken_formula_would_be_seen(browser: Browser, text: str, tmp_path: Path) -> None:
    """The control: a page whose formula is off in the eighth digit fails the comparison, and one that calls out is seen."""
    off = text.replace("10853/10000", "10853.001/10000")
    assert off != text
    policy = 'http-equiv="Content-Security-Policy"'
    calls = '"use strict"; fetch("http://127.0.0.1:9/x").catch(() => 0);'
    broken = off.replace(policy, "hidden").replace('"use strict";', calls)
    file = tmp_path / "broken.html"
    file.write_text(broken, encoding="utf-8")
    browser.forget()
    browser.open(file.as_uri())
    assert value(browser, "edelman2022") != pytest.approx(by_python("edelman2022", the_state(browser)), rel=1e-9)
    time.sleep(0.3)
    assert "http://127.0.0.1:9/x" in browser.requests()
    assert browser.complaints() != []
    kept = tmp_path / "kept.html"  # with its policy the changed script does not even start
    kept.write_text(off, encoding="utf-8")
    browser.open(kept.as_uri())
    assert any("Content Security Policy" in line for line in browser.complaints())


def test_served_every_point_is_the_engine_s(browser: Browser) -> None:
    server = Server(page.build(SETTING, served=True), SETTING)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.resize(1200, 1000)
        browser.forget()
        browser.open(server.url)
        browser.type("#n-d", "48")
        browser.type("#n-m", "777777")
        own = evaluate(SETTING.but(d=48, n_train=777777))
        wait(lambda: (value(browser, "best") or 0) == pytest.approx(10**own.log10, rel=1e-12))
        assert value(browser, "best") == pytest.approx(10**own.log10, rel=1e-12)
        assert "checked" in browser.run("return document.getElementById('values').textContent")
        asked = browser.requests()
        assert asked
        assert all(url.startswith(server.url) or url.startswith("data:") for url in asked)
        assert [line for line in browser.complaints() if "favicon" not in line] == []
    finally:
        server.shutdown()
        server.server_close()


def test_the_page_is_small(text: str) -> None:
    assert len(text.encode()) < 500_000  # a page that is mailed stays below this
    assert json.loads(text.partition('id="data">')[2].partition("</script>")[0])["closed"] is True
    assert not re.search(r"https?://(?!www\.w3\.org/(2000/svg|1998/Math))", text)  # nothing to fetch, no library
