"""The page with the engine behind it, on this machine alone: every point it asks for is evaluated and checked.

The server listens on the loopback interface only, answers GET of two addresses, refuses other hosts' names (so that no
web page reaches it through a name that is pointed here), checks every input against the limits of the page, evaluates
one setting at a time and remembers nothing.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.explore import _checked as checked
from boundcalc.lab.explore import _content as content
from boundcalc.setting import Setting

_HOST = "127.0.0.1"
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""As the page writes numbers: no blanks, no digits of other scripts, no words."""


class Server(ThreadingHTTPServer):
    """Serves one page and the engine behind it."""

    daemon_threads = True

    def __init__(self, page: str) -> None:
        self.page = page.encode("utf-8")
        self.policy = page.partition('Content-Security-Policy" content="')[2].partition('"')[0]
        self.engine = threading.Lock()
        super().__init__((_HOST, 0), Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{_HOST}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected; any other error is a mistake of this file, and shown."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Two addresses: the page, and the checked value of one setting."""

    server: Server  # type: ignore[assignment]
    protocol_version = "HTTP/1.1"
    server_version = "boundcalc"
    sys_version = ""
    timeout: float = 10  # type: ignore[assignment]

    def do_GET(self) -> None:
        """The page, or a value."""
        names, own = self.headers.get_all("Host", []), self.server.url.split("/")[2]
        path, _, query = self.path.partition("?")
        elsewhere = self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
        if names not in ([own], [own.replace(_HOST, "localhost")]) or (elsewhere and path != "/"):
            self.send_error(HTTPStatus.FORBIDDEN, "this page is for this machine alone")
        elif path == "/" and not query:
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif path == "/value":
            self._value(query)
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "there is / and /value")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What cannot be read or is not answered: with the same headers as anything else, and the connection ends."""
        self.close_connection = True
        self._answer(HTTPStatus(code), {"error": message or HTTPStatus(code).phrase})

    def _value(self, query: str) -> None:
        try:
            setting = asked(query)
        except BoundcalcError as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})
            return
        if not self.server.engine.acquire(timeout=self.timeout):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy: ask again"})
            return
        try:
            values = checked.packed([checked.checked(setting)])
        finally:
            self.server.engine.release()
        self._answer(HTTPStatus.OK, values)

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
            "Connection": "close" if self.close_connection else "keep-alive",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if getattr(self, "command", None) != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written down."""


def asked(query: str) -> Setting:
    """The setting of a question: exactly the page's letters, each within its limits."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=len(content.FIELDS))
    except ValueError:
        raise InvalidSetting("a question is letter=value joined by &") from None
    if sorted(name for name, _ in pairs) != sorted(content.FIELDS):
        raise InvalidSetting(f"a question has each of {', '.join(content.FIELDS)} once")
    for name, text in pairs:
        if not _NUMBER.fullmatch(text):
            raise InvalidSetting(f"{name} must be a number")
    return content.at({name: float(text) for name, text in pairs})
