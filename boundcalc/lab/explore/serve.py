"""The page with the engine behind it, on this machine alone: every point it asks for is evaluated and checked.

The server listens on the loopback interface only, answers GET of two addresses, refuses other hosts' names (so that no
web page reaches it through a name that is pointed here), checks every input against the limits of the page, evaluates
one setting at a time and remembers nothing.
"""

from __future__ import annotations

import io
import json
import math
import re
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.explore import checked, content
from boundcalc.setting import Setting

HOST = "127.0.0.1"
MOST_QUERY = 400
"""Characters of a question; those of the page have some 100."""
MOST_WAITING = 8
"""Questions at a time; more get status 503."""
MOST_CONNECTIONS = 32
"""At a time; a browser has six. More are closed unheard."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""As the page writes numbers: no blanks, no digits of other scripts, no words."""


class Server(ThreadingHTTPServer):
    """Serves one page and the engine behind it."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(self, page: str, setting: Setting) -> None:
        self.page = page.encode("utf-8")
        self.policy = page.partition('Content-Security-Policy" content="')[2].partition('"')[0]
        self.setting = setting
        self.engine = threading.Lock()
        self.waiting = threading.BoundedSemaphore(MOST_WAITING)
        self.connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((HOST, 0), Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, if there are not too many."""
        if self.connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """That thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected; any other error is a mistake of this file, and shown."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def hosts(self) -> set[str]:
        """The names by which a browser on this machine calls it."""
        port = self.server_address[1]
        return {f"{name}:{port}" for name in (HOST, "localhost")}


class _Timed(socket.SocketIO):
    """Bytes of a connection until a deadline, for all reads together."""

    until = 0.0

    def readinto(self, b: Any) -> int | None:
        """As of a socket, with the time that is left."""
        self._sock.settimeout(max(1e-3, self.until - time.monotonic()))  # type: ignore[attr-defined]
        return super().readinto(b)


class Handler(BaseHTTPRequestHandler):
    """Two addresses: the page, and the checked value of one setting."""

    server: Server  # type: ignore[assignment]
    protocol_version = "HTTP/1.1"
    server_version = "boundcalc"
    sys_version = ""
    timeout = 10

    def setup(self) -> None:
        """Read requests by a deadline."""
        super().setup()
        self.input = _Timed(self.connection, "rb")
        self.rfile = io.BufferedReader(self.input)

    def handle_one_request(self) -> None:
        """A head that is not whole within `timeout` seconds ends the connection, however steadily it trickles in."""
        self.input.until = time.monotonic() + (self.timeout or 0)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the rest of the head; the answer then has a time of its own."""
        whole = super().parse_request()
        self.connection.settimeout(self.timeout)
        return whole

    def do_GET(self) -> None:
        """The page, or a value."""
        names = self.headers.get_all("Host", [])
        path, _, query = self.path.partition("?")
        elsewhere = self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
        if len(names) != 1 or names[0] not in self.server.hosts() or (elsewhere and path != "/"):
            self.send_error(HTTPStatus.FORBIDDEN, "this page is for this machine alone")
        elif "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.send_error(HTTPStatus.BAD_REQUEST, "a question has no body")
        elif path == "/" and not query:
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif path == "/value":
            self._value(query)
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "there is / and /value"})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What cannot be read or is not answered: with the same headers as anything else, and the connection ends."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._answer(status, {"error": message or status.phrase})

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
                values = checked.packed([checked.checked(setting)])
        finally:
            self.server.waiting.release()
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
        }.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if getattr(self, "command", None) != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written down."""


def asked(start: Setting, query: str) -> Setting:
    """The setting of a question: exactly the page's letters, each within its limits."""
    if len(query) > MOST_QUERY:
        raise InvalidSetting(f"a question has at most {MOST_QUERY} characters")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=len(content.FIELDS))
    except ValueError:
        raise InvalidSetting("a question is letter=value joined by &") from None
    by_name = dict(pairs)
    if by_name.keys() != content.FIELDS.keys() or len(pairs) != len(content.FIELDS):
        raise InvalidSetting(f"a question has each of {', '.join(content.FIELDS)} once")
    values: dict[str, float] = {}
    for name, text in by_name.items():
        values[name] = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(values[name]):
            raise InvalidSetting(f"{name} must be a number")
    return content.at(start, values)
