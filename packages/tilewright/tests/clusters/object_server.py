# SPDX-License-Identifier: Apache-2.0
"""A real S3 server on this machine (moto's) that counts requests, answers late, and drops connections on demand."""

import logging
import socket
import threading
import time
from collections import Counter

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


class ObjectServer:
    """Serves objects to any number of processes; `requests` counts what was asked for, by method and kind of object.

    Args:
        latency: seconds before each answer.

    `dropped`: the connection of one in so many requests for a chunk is closed without an answer.
    `outages`: the same for the next so many requests for an object, by its name.
    """

    def __init__(self, latency: float = 0.0) -> None:
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self.latency, self.dropped = latency, 0
        self.outages: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, environ, start_response):
        is_chunk = "/c/" in environ["PATH_INFO"]
        name = f"{environ['REQUEST_METHOD']} {'chunk' if is_chunk else 'other'}"
        with self._lock:
            self.requests[name] += 1
            is_out = self.outages[environ["PATH_INFO"]] > 0
            self.outages[environ["PATH_INFO"]] -= is_out
            is_dropped = is_out or (is_chunk and self.dropped and self.requests[name] % self.dropped == 0)
            self.requests["dropped"] += bool(is_dropped)
        time.sleep(self.latency)
        if is_dropped:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError("dropped on purpose")
        return self._application(environ, start_response)

    def __enter__(self) -> "ObjectServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
