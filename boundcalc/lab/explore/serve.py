"""The page with the engine behind it, on this machine alone: every point it asks for is evaluated and checked.

The server listens on the loopback interface only, answers GET of two addresses, refuses other hosts' names (so that no
web page reaches it through a name that is pointed here), checks every input against the limits of the page, evaluates
one setting at a time and remembers nothing.
"""

from __future__ import annotations

import json
import math
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.explore import content
from boundcalc.setting import Setting

HOST = "127.0.0.1"
MOST_QUERY = 400
"""Characters of a question; those of the page have some 100."""
MOST_WAITING = 8
"""Questions at a time; more are told to come back."""


class Server(ThreadingHTTPServer):
    """Serves one page and the engine behind it."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, page: str, setting: Setting) -> None:
        self.page = page.encode("utf-8")
        self.policy = page.partition('Content-Security-Policy" content="')[2].partition('"')[0]
        self.setting = setting
        self.engine = threading.Lock()
        self.waiting = threading.BoundedSemaphore(MOST_WAITING)
        super().__init__((HOST, port), Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def hosts(self) -> set[str]:
        """The names by which a browser on this machine calls it."""
        port = self.server_address[1]
        return {f"{name}:{port}" for name in (HOST, "localhost")}


class Handler(BaseHTTPRequestHandler):
    """Two addresses: the page, and the checked value of one setting."""

    server: Server  # type: ignore[assignment]
    protocol_version = "HTTP/1.1"
    server_version = "boundcalc"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """The page, or a value."""
        if self.headers.get("Host") not in self.server.hosts():
            self._answer(HTTPStatus.FORBIDDEN, {"error": "this page is for this machine alone"})
            return
        address = urlsplit(self.path)
        if address.path == "/" and not address.query:
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif address.path == "/value":
            self._value(address.query)
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "there is / and /value"})

    def _value(self, query: str) -> None:
        try:
            setting = asked(self.server.setting, query)
        except BoundcalcError as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})
            return
        if not self.server.waiting.acquire(blocking=False):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy: ask again"})
            return
        try:
            with self.server.engine:
                found = content.checked(setting)
        except BoundcalcError as error:
            found = {"refused": str(error)}
        finally:
            self.server.waiting.release()
        self._answer(HTTPStatus.OK, found)

    def _answer(self, status: HTTPStatus, data: dict[str, Any]) -> None:
        self._send(status, json.dumps(data, allow_nan=False).encode("utf-8"), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": self.server.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written down."""


def asked(start: Setting, query: str) -> Setting:
    """The setting of a question: exactly the page's letters and a style, each within its limits."""
    if len(query) > MOST_QUERY:
        raise InvalidSetting(f"a question has at most {MOST_QUERY} characters")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=len(content.FIELDS) + 1)
    except ValueError:
        raise InvalidSetting("a question is letter=value joined by &") from None
    given = dict(pairs)
    needed = {*content.FIELDS, "style"}
    if given.keys() != needed or len(pairs) != len(needed):
        raise InvalidSetting(f"a question has each of {', '.join(sorted(needed))} once")
    style = given.pop("style")
    if style not in content.STYLES:
        raise InvalidSetting(f"style is one of {', '.join(content.STYLES)}")
    values: dict[str, float] = {}
    for name, text in given.items():
        try:
            values[name] = float(text)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]):
            raise InvalidSetting(f"{name} must be a number")
    return content.at(start.but(style=style), values)
