# SPDX-License-Identifier: Apache-2.0
"""A web server with ranges of bytes that can be told to fail: to drop connections, to refuse, to lie."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RangeServer:
    """Files by path, faults that the next requests meet, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: list[str] = []  # one for each request to come
        self.every: str | None = None  # one for all of them
        self.requests: list[tuple[str, str | None, str | None]] = []
        self.sent = 0
        self.redirects: dict[str, str] = {}
        self.tags = True
        self.url = ""

    def tag(self, path: str) -> str:
        return f'"{hash(self.files[path])}"'


@contextmanager
def serve() -> Iterator[RangeServer]:
    """Yield a server that runs in a thread."""
    state = RangeServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.requests.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
            fault = state.faults.pop(0) if state.faults else state.every
            if self.path in state.redirects:
                self.send_response(302)
                self.send_header("Location", state.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fault is not None and fault.isdecimal():
                self.send_response(int(fault))
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fault == "close":
                return
            if self.path not in state.files:
                self.send_error(404)
                return
            data = state.files[self.path]
            if fault == "whole":
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                return
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            first, last = int(first), min(int(last), len(data) - 1)
            if first >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            part = data[first : last + 1]
            self.send_response(206)
            shift = 1 if fault == "shift" else 0
            self.send_header("Content-Range", f"bytes {first + shift}-{last + shift}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            if state.tags:
                self.send_header("ETag", state.tag(self.path))
            self.end_headers()
            if fault == "drop":
                part = part[: len(part) // 2]
            elif fault == "fifth":
                part = part[: max(1, len(part) // 5)]
            elif fault is not None and fault.startswith("few"):
                part = part[: int(fault.removeprefix("few "))]
            state.sent += len(part)
            self.wfile.write(part)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_):
            pass  # clients that close early are part of the tests

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
