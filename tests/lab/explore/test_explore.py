"""What the page is made of, the server behind it and the command, without a browser."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from boundcalc import Setting, evaluate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.explore import _checked as checked
from boundcalc.lab.explore import _content as content
from boundcalc.lab.explore import serve
from tests.examples.scripts import load

SETTING = Setting.of("edelman", margin=0.5)
COVERED = Setting.of("edelman", C=2.0)
QUESTION = "T=512&m=1000000&C=1&depth=2&d=64&heads=1&gamma=0.5"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[serve.Server]:
    made = serve.Server('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'"><p>page')
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def get(server: serve.Server, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    line = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    line.request(method, path, headers=headers)
    reply = line.getresponse()
    found = reply.status, reply.read().decode(), {name.lower(): value for name, value in reply.getheaders()}
    line.close()
    return found


def test_other_names_are_refused(server: serve.Server) -> None:
    """A web page elsewhere may point its own name at this machine: it is not answered."""
    assert get(server, "/", Host="evil.example")[0] == 403
    assert get(server, f"/value?{QUESTION}", Host=f"evil.example:{server.server_address[1]}")[0] == 403
    assert get(server, "/", Host=f"localhost:{server.server_address[1]}")[0] == 200


@pytest.mark.parametrize("number", ["%D9%A5%D9%A1", "5_12", "+512+", "0x10", "1e5e5", "infinity", "--5"])
def test_numbers_are_written_as_the_page_writes_them(number: str) -> None:
    with pytest.raises(InvalidSetting, match="T must be a number"):
        serve.asked(QUESTION.replace("T=512", f"T={number}"))
    assert serve.asked(QUESTION.replace("T=512", "T=5.12e%2B2")).architecture.seq_len == 512


def test_work_is_bounded(server: serve.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting at a time; who waits for long is told to come back."""
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(serve.Handler, "timeout", 0.5)

    def slow(setting: Setting) -> dict[str, Any]:
        begun.set()
        go_on.wait(20)
        return {"at": content.letters(setting)}

    monkeypatch.setattr(checked, "checked", slow)
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(get(server, f"/value?{QUESTION}")[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(20)
    for _ in range(200):
        if statuses.count(503) == 3:
            break
        threading.Event().wait(0.05)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert sorted(statuses) == [200] + [503] * 3


def test_a_checked_point_is_what_evaluate_says() -> None:
    value, point = evaluate(COVERED), checked.checked(COVERED)
    assert point["gap"] == pytest.approx(10**value.log10, rel=1e-12)
    assert point["strategy"] == value.strategy == "chain"
    assert sum(point["terms"]) == pytest.approx(point["gap"], rel=1e-9)
    assert point["pieces"] == value.of("gap").shares
    assert value.floor is not None
    assert point["floor"] == value.floor.value
    assert "gap" not in checked.checked(COVERED.but(n_train=1000))  # vacuous by every cover
    (row,) = checked.packed([point])["rows"]
    gap, floor = row[len(content.FIELDS) : len(content.FIELDS) + 2]
    assert point["gap"] <= gap <= point["gap"] * (1 + 1e-4)
    assert point["floor"] * (1 - 1e-4) <= floor <= point["floor"]
    compared = checked.checked(SETTING)
    assert compared["strategy"].startswith("comparison")
    assert sum(compared["terms"]) == pytest.approx(compared["gap"], rel=1e-9)


def test_stops_of_sliders_rise() -> None:
    for name, field in content.FIELDS.items():
        assert list(field.stops) == sorted(field.stops), name
        assert field.least <= field.stops[0] < field.stops[-1] <= field.most


def test_runs_are_those_of_the_figures() -> None:
    """What the package ships is what examples/edelman2022/page.py makes of figures/."""
    assert json.loads(json.dumps(load("edelman2022", "page").main()[1])) == content.measured_runs()
