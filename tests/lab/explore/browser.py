"""A real headless Chromium, driven over WebDriver by plain HTTP; tests skip where it is not installed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 1000) -> None:
        chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
        if chromium is None or driver is None:
            pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        options = {
            "binary": chromium,
            "args": [
                "--headless=new",
                "--no-sandbox",  # containers run as root
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                f"--user-data-dir={folder}",
                f"--window-size={width},{height}",
            ],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        for _ in range(100):
            try:
                session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        else:
            self.driver.terminate()
            raise RuntimeError("chromedriver did not answer")
        self.base += f"/session/{session['sessionId']}"

    def _call(self, method: str, path: str, data: Any = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(self.base + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.loads(reply.read())["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:400]) from None

    def open(self, url: str) -> None:
        self._call("POST", "/url", {"url": url})

    def run(self, code: str, *arguments: Any) -> Any:
        """What `code`, a function's body, returns."""
        return self._call("POST", "/execute/sync", {"script": code, "args": list(arguments)})

    def element(self, css: str) -> str:
        return self._call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css: str) -> None:
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", css)
        self._call("POST", f"/element/{self.element(css)}/click", {})

    def type(self, css: str, text: str) -> None:
        """Select what is there and type over it, key by key."""
        self.run("document.querySelector(arguments[0]).select()", css)
        self._call("POST", f"/element/{self.element(css)}/value", {"text": text})

    def press(self, css: str, key: str) -> None:
        self._call("POST", f"/element/{self.element(css)}/value", {"text": key})

    def key(self, key: str) -> None:
        """Press a key wherever the focus is."""
        steps = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": steps}]})

    def drag(self, css: str, right: int) -> None:
        """Take an element with the pointer, and move it so many pixels to the right."""
        origin = {ELEMENT: self.element(css)}
        steps = [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": right, "y": 0, "origin": "pointer", "duration": 50},
            {"type": "pointerUp", "button": 0},
        ]
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def prefer(self, scheme: str) -> None:
        """Light or dark, as the system's setting says."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the last look."""
        return [
            entry["message"]
            for entry in self._call("POST", "/se/log", {"type": "browser"})
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def requests(self) -> list[str]:
        """Every address asked for since the last look."""
        addresses: list[str] = []
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                addresses.append(message["params"]["request"]["url"])
        return addresses

    def forget(self) -> None:
        """What was logged so far."""
        self.complaints()
        self.requests()

    def close(self) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(10)
