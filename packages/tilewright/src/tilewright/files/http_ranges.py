# SPDX-License-Identifier: Apache-2.0
"""Ranges of bytes of a file behind a URL: checked, retried, and continued where a connection dropped."""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache
from typing import IO
from urllib.parse import urlsplit

from ..errors import FileFormatError, TilewrightError, TransferError, UnreachableError
from ..logs import log_of

_log = log_of(__name__)

MAX_ATTEMPTS = 6
"""Attempts in a row that gain little."""

MIN_GAIN = 8
"""An attempt that gains at least 1 / MIN_GAIN of the missing bytes starts the count again."""

FIRST_WAIT = 0.5
"""Seconds before the second attempt; twice as many before each one after it."""

_MAX_WAIT = 60.0
_TIMEOUT = 60.0
_CHUNK = 1 << 20
_RETRIED_STATUS = (408, 425, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19})")
HUB = "https://huggingface.co"


class _SafeRedirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects to web servers, and sends no token to another host."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise FileFormatError(f"{req.full_url} redirects to {newurl[:200]!r}, which is not on a web server")
        result = super().redirect_request(req, fp, code, msg, headers, newurl)
        if result is not None and urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:  # scheme and host
            result.remove_header("Authorization")
        return result


@cache  # certificates take long to load
def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_SafeRedirect, urllib.request.HTTPSHandler(context=ssl.create_default_context()))


class FileRanges:
    """A file behind a URL: its `size`, a number that identifies its content, and reads of ranges, which are retried.

    Args:
        url: of the file.
        start_bytes: the first bytes that are read to find out size and identity; they are in `start`.
    """

    def __init__(self, url: str, start_bytes: int) -> None:
        self.url = url
        self.connect()
        self.size, self.tag = self._find()
        out = bytearray(start_bytes if self.size < 0 else min(start_bytes, self.size))
        self.start = bytes(out[: self.read_into(0, memoryview(out))])

    def connect(self) -> None:
        """Prepare for requests; none is sent yet."""

    def _find(self) -> tuple[int, str]:
        """Return the size and the tag of the file; -1 if the first answer has them."""
        return -1, ""

    def _request(self, offset: int, size: int) -> Iterator[bytes]:
        """Yield the bytes of a range as they arrive."""
        raise NotImplementedError

    def _judge(self, problem: Exception) -> Exception | None:
        """Return the error that ends the reading; None if another attempt may help."""
        return problem if isinstance(problem, FileNotFoundError) else None

    @property
    def identity(self) -> int:
        """A number that changes with the content; without a tag from the server, it never repeats."""
        tag = self.tag.encode() or os.urandom(16)
        return int.from_bytes(hashlib.sha256(tag).digest()[:7], "little")

    def read_into(self, offset: int, out: memoryview) -> int:
        """Read from `offset` on until `out` or the file ends; return the number of bytes."""
        done = failures = 0
        while not self._is_complete(offset, done, len(out)):
            before, problem = done, Exception("the connection closed early")
            try:
                for chunk in self._request(offset + done, len(out) - done):
                    if len(chunk) > len(out) - done:
                        raise FileFormatError(f"{self.url}: the server ignores ranges of bytes; download the file")
                    out[done : done + len(chunk)] = chunk
                    done += len(chunk)
            except TilewrightError:
                raise
            except (OSError, RuntimeError, http.client.HTTPException, ValueError) as caught:  # the last of bad names
                error = self._judge(caught)
                if error is not None:
                    raise error from None
                problem = caught
            if self._is_complete(offset, done, len(out)):
                break
            # what has arrived is not asked for again; a few bytes at a time would take for ever
            failures = 1 if MIN_GAIN * (done - before) >= len(out) - before else failures + 1
            if failures >= MAX_ATTEMPTS:
                raise UnreachableError(
                    f"{self.url}: {problem} at byte {offset + done}, after {failures} attempts; try again later"
                )
            wait = _find_wait(problem, failures)
            _log.warning("%s: %s at byte %d; trying again in %.1f s", self.url, problem, offset + done, wait)
            time.sleep(wait)
        return done

    def _is_complete(self, offset: int, done: int, count: int) -> bool:
        return done == count or 0 <= self.size <= offset + done


class HttpRanges(FileRanges):
    """A file on a web server that knows ranges."""

    def _judge(self, problem: Exception) -> Exception | None:
        if isinstance(problem, urllib.error.HTTPError):
            problem.close()
            return None if problem.code in _RETRIED_STATUS else self._translate(problem)
        return self._describe_absence(problem) if self.size < 0 and not _may_pass(problem) else None

    def _describe_absence(self, problem: Exception) -> UnreachableError:
        """Return the error for a server that cannot be reached."""
        reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
        cause = getattr(reason, "strerror", None) or str(reason)
        return UnreachableError(
            f"{self.url}: {urlsplit(self.url).hostname!r} cannot be reached ({cause}); check the address, the network"
            " and its proxy, or download the files elsewhere and name their folder"
        )

    def _request(self, offset: int, size: int) -> Iterator[bytes]:
        headers = {"Range": f"bytes={offset}-{offset + size - 1}", "Accept-Encoding": "identity"}
        headers["User-Agent"] = "tilewright"
        token = os.environ.get("HF_TOKEN")
        if token and urlsplit(self.url).netloc == urlsplit(hub_endpoint()).netloc:
            headers["Authorization"] = f"Bearer {token}"
        try:
            response = _opener().open(urllib.request.Request(self.url, headers=headers), timeout=_TIMEOUT)
        except urllib.error.HTTPError as problem:
            if problem.code != 416 or offset or not self._is_empty(problem):
                raise
            problem.close()
            self.size = 0
            return
        with response:
            if response.status != 206:
                raise FileFormatError(
                    f"{self.url}: the server ignores ranges of bytes (it answers {response.status}, not 206); download"
                    " the file"
                )
            self._check(response, offset)
            left = size
            while left and (chunk := response.read(min(_CHUNK, left))):
                left -= len(chunk)
                yield chunk

    def _is_empty(self, problem: urllib.error.HTTPError) -> bool:
        matched = _CONTENT_RANGE.fullmatch(problem.headers.get("Content-Range", ""))
        return self.size <= 0 and matched is not None and matched[3] == "0"

    def _check(self, response: http.client.HTTPResponse, offset: int) -> None:
        """Raise if an answer is for another range, or for a file that has changed."""
        matched = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if matched is None or matched[1] is None or int(matched[1]) != offset:
            got = str(response.headers.get("Content-Range"))[:80]
            raise FileFormatError(f"{self.url}: expected bytes from {offset} on, got the range {got!r}")
        size = int(matched[3])
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        if self.size < 0:
            self.size, self.tag = size, tag
        elif (self.size, self.tag) != (size, tag):
            raise FileFormatError(f"{self.url} has changed since it was opened; open it again")

    def _translate(self, problem: urllib.error.HTTPError) -> Exception:
        if problem.code in (404, 410):
            return FileNotFoundError(2, "No such file on the server", self.url)
        if problem.code in (401, 403):
            return PermissionError(13, "the server refuses access; for a gated model set HF_TOKEN", self.url)
        if problem.code in (412, 416):
            return FileFormatError(f"{self.url} has changed since it was opened; open it again")
        return TransferError(f"{self.url}: the server answers {problem.code} {problem.reason}")


def _may_pass(problem: Exception) -> bool:
    """Return whether the first request to a server may succeed when it is repeated."""
    reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
    passing = (TimeoutError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ssl.SSLEOFError)
    return isinstance(reason, (*passing, http.client.BadStatusLine, http.client.IncompleteRead))


def hub_endpoint() -> str:
    """Return the address of the Hugging Face hub: HF_ENDPOINT of the environment, if it is set.

    >>> hub_endpoint().startswith("http")
    True
    """
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def _find_wait(problem: Exception, failures: int) -> float:
    """Return the seconds to wait before another attempt; the server may ask for some."""
    retry_after = str(problem.headers.get("Retry-After", "")) if isinstance(problem, urllib.error.HTTPError) else ""
    if retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 6:
        return min(float(retry_after), _MAX_WAIT)
    wait: float = FIRST_WAIT * 2 ** (failures - 1) * (1 + random.random() / 4)
    return min(wait, _MAX_WAIT)
