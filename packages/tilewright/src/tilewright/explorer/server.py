# SPDX-License-Identifier: Apache-2.0
"""The server of the explorer: local, bounded; every query needs a key.

The files of the page hold nothing secret. Queries need the key, which is in the fragment of the printed address:
browsers do not send fragments, so the key is in no request line, log or referrer. The page sends it as a header, which
other sites cannot do.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from socketserver import TCPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from ..version import __version__
from .answers import Reply, answer_query, encode_json, handle_errors, refuse
from .file_tab import MAX_BYTES, describe_file, start_of_file
from .form import FieldError, FormFields, parse_integer

HOST = "127.0.0.1"
PORT = 8654  # tried first, so that links keep working from one run to the next
KEY_HEADER = "X-Tilewright-Key"
MAX_TARGET = 8192  # characters of a request's path and query
MAX_QUERY = 1 << 16  # bytes of a query that is too long for the request's path
MAX_FIELDS = 60
MAX_CONNECTIONS = 32
MAX_AT_ONCE = 2  # queries answered at a time: they are CPU-bound
TIMEOUT = 15.0  # seconds of silence that end a connection, and for a query to have its turn

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by path, each with its content type.

    >>> sorted(page_files())[:2]
    ['/', '/bank_contents.js']
    """
    folder = resources.files(__package__).joinpath("page")
    views = resources.files(__package__.rpartition(".")[0]).joinpath("views")
    shared = [views.joinpath(name) for name in ("marks.js", "player.js")]  # the same as in saved pages
    files = [file for file in (*folder.iterdir(), *shared) if Path(file.name).suffix in _KINDS]
    contents = {f"/{file.name}": (file.read_bytes(), _KINDS[Path(file.name).suffix]) for file in files}
    return {"/": contents.pop("/index.html"), **contents}


Request: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"  # a pair over UDP, which this server never has


class RequestRefusedError(Exception):
    """A request that is refused, with its status and the reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Explorer(ThreadingHTTPServer):
    """The explorer on a local `port` (0 for any free one); run it with `start` or `serve_forever`.

    >>> with Explorer(port=0) as explorer:
    ...     explorer.url.startswith("http://127.0.0.1:"), len(explorer.key) >= 32
    (True, True)
    """

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would let another program take over the port
    request_queue_size = 64  # more than all connections, so that a burst is not delayed

    def __init__(self, port: int = PORT) -> None:
        self.key = secrets.token_urlsafe(32)
        self.files = page_files()
        self.working = threading.BoundedSemaphore(MAX_AT_ONCE)
        self._lock = threading.Lock()
        self._waiting: dict[Any, None] = {}  # connections without a complete request, oldest first
        self._answering: set[Any] = set()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError:
            if port != PORT:  # the user chose it
                raise
            super().__init__((HOST, 0), _Handler)

    def server_bind(self) -> None:
        """Bind the port without looking up the host name, as the base class would."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page, without the key.

        >>> with Explorer(port=0) as explorer:
        ...     explorer.url == f"http://127.0.0.1:{explorer.server_port}/"
        True
        """
        return f"http://{HOST}:{self.server_port}/"

    def link(self, fragment: str = "") -> str:
        """Return the address of the page with the key and the initial `fragment`.

        >>> with Explorer(port=0) as explorer:
        ...     explorer.link("shape=4x8").endswith(f"#key={explorer.key}&shape=4x8")
        True
        """
        return f"{self.url}#key={self.key}" + (f"&{fragment}" if fragment else "")

    def start(self) -> threading.Thread:
        """Start serving in a thread and return it; `shutdown` stops it.

        >>> with Explorer(port=0) as explorer:
        ...     thread = explorer.start()
        ...     explorer.shutdown()
        ...     thread.join()
        """
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        return thread

    def process_request(self, request: Request, client_address: object) -> None:
        """Serve a connection in its own thread; if there are too many, close the one that has waited longest.

        A browser sends its request at once, so slow clients are closed first.
        """
        with self._lock:
            full = len(self._waiting) + len(self._answering) >= MAX_CONNECTIONS
            oldest = next(iter(self._waiting), None) if full else None
            if oldest is not None:
                del self._waiting[oldest]
            if not full or oldest is not None:
                self._waiting[request] = None
        if oldest is not None:
            _close_connection(oldest)  # its thread notices, and ends
        if full and oldest is None:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def process_request_thread(self, request: Request, client_address: object) -> None:
        """Serve a connection and remove it at its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._waiting.pop(request, None)
                self._answering.discard(request)

    @contextmanager
    def mark_busy(self, request: Request) -> Iterator[None]:
        """Mark a connection as busy while its request is answered."""
        with self._lock:
            self._waiting.pop(request, None)
            self._answering.add(request)
        try:
            yield
        finally:
            with self._lock:
                self._answering.discard(request)
                self._waiting[request] = None

    def handle_error(self, request: Request, client_address: object) -> None:
        """Ignore errors of connections: a browser may disconnect at any time."""


def _close_connection(request: Request) -> None:
    assert isinstance(request, socket.socket)
    with suppress(OSError):  # it is gone already
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    timeout = TIMEOUT
    disable_nagle_algorithm = True  # otherwise a response waits 40 ms for its headers to be acknowledged
    wbufsize = -1  # headers and body go out together
    protocol_version = "HTTP/1.1"
    server_version, sys_version = f"tilewright/{__version__}", ""

    def do_GET(self) -> None:
        """Answer a request."""
        with self.server.mark_busy(self.request):
            try:
                self._validate_request()
                self._route_request()
            except RequestRefusedError as refused:
                self.close_connection = True
                self._send_problem(refused.status, refused.reason)

    do_HEAD = do_GET  # noqa: N815  (the base class has these names)
    do_POST = do_GET  # noqa: N815  (a query whose fields, or start of a file, are too long for the path)

    def _validate_request(self) -> None:
        """Refuse requests that a browser showing our page would not send."""
        hosts = {f"{HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}"}
        values = self.headers.get_all("Host") or []
        # Refuse other host names that resolve to this machine (DNS rebinding).
        if len(values) != 1 or values[0].strip().lower() not in hosts:
            raise RequestRefusedError(HTTPStatus.MISDIRECTED_REQUEST, f"unknown host; use {self.server.url}")
        if len(self.path) > MAX_TARGET:
            raise RequestRefusedError(
                HTTPStatus.REQUEST_URI_TOO_LONG, f"the request is longer than {MAX_TARGET} characters"
            )
        if self.headers.get("Transfer-Encoding") or self._body_length() > self._max_bytes():
            raise RequestRefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request body has at most {self._max_bytes()} bytes here"
            )
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self._is_navigation():
            raise RequestRefusedError(HTTPStatus.FORBIDDEN, "requests from other sites are refused")

    def _is_navigation(self) -> bool:
        """Return whether the request follows a link to the page, which any site may have."""
        return self.headers.get("Sec-Fetch-Mode") == "navigate" and urlsplit(self.path).path == "/"

    def _body_length(self) -> int:
        length = self.headers.get("Content-Length", "0").strip()
        if not (length.isascii() and length.isdigit() and len(length) < 12):
            raise RequestRefusedError(HTTPStatus.BAD_REQUEST, "the Content-Length is not a number")
        return int(length)

    def _max_bytes(self) -> int:
        """Return how many bytes the body may have: only queries have one."""
        if self.command != "POST":
            return 0
        return MAX_BYTES if urlsplit(self.path).path == "/api/file" else MAX_QUERY

    def _route_request(self) -> None:
        target = urlsplit(self.path)
        if self.command == "POST" and not target.path.startswith("/api/"):
            raise RequestRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only queries are posted")
        if target.path in self.server.files:
            self._send_response(HTTPStatus.OK, *self.server.files[target.path])
            return
        if not target.path.startswith("/api/"):
            raise RequestRefusedError(HTTPStatus.NOT_FOUND, "not found")
        key = self.headers.get(KEY_HEADER, "")
        if not hmac.compare_digest(key.encode("utf-8", "replace"), self.server.key.encode()):
            raise RequestRefusedError(
                HTTPStatus.UNAUTHORIZED, "the key is missing or outdated; open the address that the terminal shows"
            )
        body = self.rfile.read(self._body_length())
        path = target.path.removeprefix("/api/")
        if not self.server.working.acquire(timeout=TIMEOUT):
            raise RequestRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many queries at once; try again")
        try:
            fields = self._parse_query(target.query)
            if path == "file":
                reply = handle_errors(lambda: _answer_file(fields, body))
            else:
                reply = answer_query(path, fields | self._parse_query(body.decode("latin-1")))
        finally:
            self.server.working.release()
        self._send_response(reply.status, reply.body.encode("utf-8"), reply.kind)

    def _parse_query(self, query: str) -> dict[str, str]:
        try:
            pairs = parse_qsl(query, max_num_fields=MAX_FIELDS, errors="strict")
        except (ValueError, UnicodeDecodeError):
            reason = f"the query cannot be parsed, or has more than {MAX_FIELDS} fields"
            raise RequestRefusedError(HTTPStatus.BAD_REQUEST, reason) from None
        return dict(pairs)

    def _send_problem(self, status: HTTPStatus, reason: str) -> None:
        """Answer with a reason."""
        self._send_response(status, refuse(status, reason).body.encode("utf-8"), "application/json")

    def _send_response(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer requests that the base class refuses, such as unknown methods, with our headers."""
        self.close_connection = True
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:  # the base class's answer to unknown methods
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self._send_problem(status, message or status.phrase)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's name)
        """Do not log requests to the terminal."""


def _answer_file(fields: FormFields, start: bytes) -> Reply:
    """Return the header of a file, from the start of the file that the page has sent."""
    if not start:
        raise FieldError("file", "the file is empty")
    with start_of_file(fields.get("name", ""), parse_integer(fields, "size", len(start)), start) as path:
        return Reply(HTTPStatus.OK, encode_json(describe_file(path)))
