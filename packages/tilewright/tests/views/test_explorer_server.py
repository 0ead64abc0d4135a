# SPDX-License-Identifier: Apache-2.0
"""The explorer's server without a browser: who may ask, what is refused, and that everything is bounded."""

import http.client
import json
import socket
import threading
from contextlib import suppress
from time import perf_counter
from urllib.parse import urlencode

import pytest

from tilewright.explorer.server import HOST, KEY_HEADER, MAX_CONNECTIONS, MAX_FIELDS, MAX_TARGET, Explorer

SPEC = "shape=64x96&dtype=bfloat8_b&chip=wormhole_n150"


@pytest.fixture(scope="module")
def explorer():
    with Explorer(port=0) as server:
        server.start()
        yield server
        server.shutdown()


def ask(explorer, path, method="GET", key=True, body=None, **headers):
    """Return (status, headers, body) of one request."""
    connection = http.client.HTTPConnection(HOST, explorer.server_port, timeout=20)
    if key:
        headers[KEY_HEADER] = explorer.key if key is True else key
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def raw(explorer, data: bytes) -> bytes:
    """Return the start of the answer to bytes that no honest client would send."""
    with socket.create_connection((HOST, explorer.server_port), timeout=20) as connection:
        connection.sendall(data)
        return connection.recv(4096)


def test_it_listens_on_this_machine_only(explorer):
    assert explorer.server_address[0] == "127.0.0.1"
    assert len(explorer.key) >= 32
    with Explorer(port=0) as other:
        assert other.key != explorer.key


def test_the_page_holds_no_secret_and_everything_it_needs(explorer):
    status, headers, body = ask(explorer, "/", key=False)
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert explorer.key.encode() not in body
    text = body.decode()
    assert "http:" not in text.replace("http://www.w3.org", "")
    assert "https:" not in text
    for path in explorer.files:
        assert ask(explorer, path, key=False)[0] == 200


@pytest.mark.parametrize("path", ["/", "/main.js", f"/api/answer/placement?{SPEC}", "/nothing"])
def test_every_answer_has_strict_headers(explorer, path):
    _, headers, _ = ask(explorer, path)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in headers["Server"]
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("key", [False, "wrong", "", "\xff\xfe", "x" * 5000])
def test_questions_need_the_key(explorer, key):
    for path in (
        f"/api/answer/placement?{SPEC}",
        f"/api/picture/placement?{SPEC}",
        f"/api/export/placement.svg?{SPEC}",
    ):
        status, _, body = ask(explorer, path, key=key)
        assert status == 401
        assert explorer.key.encode() not in body


def test_questions_are_answered(explorer):
    status, _, body = ask(explorer, f"/api/answer/placement?{SPEC}")
    assert status == 200
    assert json.loads(body)["fit"]["fits"]
    assert json.loads(ask(explorer, f"/api/picture/placement?{SPEC}")[2])["panels"][0]["svg"].startswith("<svg")
    for kind, start in (("svg", b"<svg"), ("html", b"<!DOCTYPE html>"), ("json", b'{"title"')):
        status, _, body = ask(explorer, f"/api/export/placement.{kind}?{SPEC}")
        assert status == 200
        assert body.startswith(start)


HOSTS = ("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}")


@pytest.mark.parametrize("host", HOSTS)
def test_another_name_for_this_machine_is_refused(explorer, host):
    """A page of another site whose name was made to point here does not get through (DNS rebinding)."""
    status, _, _ = ask(explorer, "/", Host=host.format(port=explorer.server_port))
    assert status == 421


def test_no_host_or_two_hosts_are_refused(explorer):
    port = explorer.server_port
    assert b" 421 " in raw(explorer, b"GET / HTTP/1.1\r\n\r\n")
    two = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"
    assert b" 421 " in raw(explorer, two.encode())


def test_localhost_is_this_machine(explorer):
    assert ask(explorer, "/", Host=f"localhost:{explorer.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_only_reading_is_allowed(explorer, method):
    status, headers, _ = ask(explorer, f"/api/answer/placement?{SPEC}", method=method)
    assert status == 405
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_head_has_no_body(explorer):
    status, headers, body = ask(explorer, "/", method="HEAD")
    assert status == 200
    assert int(headers["Content-Length"]) > 0
    assert body == b""


def test_bodies_are_refused_before_they_are_read(explorer):
    status, _, _ = ask(explorer, f"/api/answer/placement?{SPEC}", body=b"x" * 100)
    assert status == 413
    host = f"Host: 127.0.0.1:{explorer.server_port}\r\n".encode()
    assert b" 413 " in raw(explorer, b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 99999999999\r\n\r\n")
    assert b" 413 " in raw(explorer, b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n")


def test_long_requests_and_many_fields_are_refused(explorer):
    assert ask(explorer, "/api/answer/placement?shape=" + "1" * MAX_TARGET)[0] == 414
    assert ask(explorer, "/api/answer/placement?" + "&".join(f"f{k}=1" for k in range(MAX_FIELDS + 1)))[0] == 400
    assert b" 414 " in raw(explorer, b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n")


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/%2e%2e/server.py",
        "/..%2fserver.py",
        "//etc/passwd",
        "/page/../index.html",
        "/index.html/..",
        "/api/export/../placement.svg",
        "/api/export/placement.svg/../../x",
        "/api/answer/__class__",
        "/api/answer/",
        "/api/picture/placement.svg",
        "/api/export/placement",
        "/api/export/placement.exe",
        "/main.js%00.css",
        "\\..\\..\\x",
    ],
)
def test_there_is_nothing_else_to_find(explorer, path):
    status, _, body = ask(explorer, path)
    assert status in (400, 404)
    assert b"root:" not in body
    assert b"import" not in body


def test_another_site_may_not_ask(explorer):
    for site in ("cross-site", "same-site"):
        assert ask(explorer, f"/api/answer/placement?{SPEC}", **{"Sec-Fetch-Site": site})[0] == 403
    mine = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert ask(explorer, f"/api/answer/placement?{SPEC}", **mine)[0] == 200
    # a link to the page itself may stand anywhere
    assert ask(explorer, "/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("shape=4xfoo", "shape", "4xfoo"),
        ("shape=", "shape", "the shape is missing"),
        ("shape=4x4&dtype=float99", "dtype", "unknown format"),
        ("shape=4x4&chip=abacus", "chip", "unknown chip"),
        ("shape=4x4&tile=7x7", "tile", "chips have no tiles of 7 x 7"),
        ("shape=4x4&memory=block_sharded&grid=0x8", "grid", "columns x rows as 8x4"),
        ("shape=4x4&memory=cloud", "memory", "choose one of"),
        ("shape=" + "1x" * 20 + "1", "shape", "expected at most"),
        ("shape=1" + "0" * 30, "shape", "too large"),
        ("shape=4x4&memory=height_sharded&grid=9999x9999", "grid", "cores"),
    ],
)
def test_bad_fields_are_named_with_the_remedy(explorer, query, field, words):
    status, _, body = ask(explorer, f"/api/answer/placement?{query}")
    told = json.loads(body)
    assert status == 422
    assert told["field"] == field
    assert words in told["error"]


def test_an_illegal_spec_comes_with_what_would_be_legal(explorer):
    query = "shape=100x64&memory=height_sharded&buffer=l1&grid=4x1&shard=25x64&chip=wormhole_n150"
    found = json.loads(ask(explorer, f"/api/answer/placement?{query}")[2])
    assert found["spec"] is None
    assert "shard height 25 is not a multiple of the tile height 32" in found["fit"]["problems"][0]
    words = found["fit"]["alternatives"][0]["words"]
    again = "&".join(f"{name}={value}" for name, value in words.items())
    assert json.loads(ask(explorer, f"/api/answer/placement?{again}")[2])["fit"]["fits"]


def test_huge_tensors_are_answered_without_a_table_of_their_pages(explorer):
    query = "shape=99999999x99999999&dtype=bfloat16&chip=wormhole_n150"
    found = json.loads(ask(explorer, f"/api/answer/placement?{query}")[2])
    assert not found["fit"]["fits"]
    for shape in ("99999999x99999999", "152064x8192"):
        status, _, body = ask(explorer, f"/api/picture/placement?shape={shape}&dtype=bfloat16&chip=wormhole_n150")
        assert status == 200
        assert "The first 64 x 64 of" in json.loads(body)["note"]
    for picture in ("tiles", "schedule"):
        assert ask(explorer, f"/api/picture/{picture}?{query}&tile_moved=1x1")[0] == 200
    way = json.loads(ask(explorer, f"/api/answer/element?{query}&at=99999998,5")[2])
    assert way["at"] == [99999998, 5]
    assert "does not fit" in way["note"]


def test_circular_buffers_are_sizes(explorer):
    for text, size in (("64KiB", 65536), ("65536", 65536), ("1.5 KiB", 1536)):
        query = urlencode({"shape": "64x64", "circular": text})
        found = json.loads(ask(explorer, f"/api/answer/placement?{query}")[2])
        assert found["fit"]["circular"] == size
    for text in ("64 apples", "-1", "9" * 14, "1e5"):
        status, _, body = ask(explorer, f"/api/answer/placement?{urlencode({'shape': '64x64', 'circular': text})}")
        assert (status, json.loads(body)["field"]) == (422, "circular")


def test_shards_without_a_grid_take_all_cores_or_the_row_of_banks(explorer):
    for memory, grid in (("buffer=l1", "8x8"), ("buffer=dram", "12x1")):
        query = f"shape=512x512&memory=width_sharded&chip=wormhole_n150&{memory}"
        found = json.loads(ask(explorer, f"/api/answer/placement?{query}")[2])
        assert found["fit"]["fits"]
        assert found["spec"]["words"]["grid"] == grid


def test_who_drips_bytes_makes_way(explorer):
    """Connections without a whole request are closed for new ones, longest first; whoever asks is answered."""
    dripping = [socket.create_connection((HOST, explorer.server_port), timeout=20) for _ in range(MAX_CONNECTIONS + 8)]
    try:
        for connection in dripping:
            with suppress(OSError):  # it was closed already
                connection.sendall(b"G")
        assert all(ask(explorer, f"/api/answer/placement?{SPEC}")[0] == 200 for _ in range(5))
    finally:
        for connection in dripping:
            connection.close()


def test_answers_on_an_open_connection_come_at_once(explorer):
    """Not 40 ms later, when the other side has acknowledged the headers."""
    connection = http.client.HTTPConnection(HOST, explorer.server_port, timeout=20)
    times = []
    for _ in range(20):
        start = perf_counter()
        connection.request("GET", "/api/answer/choices", headers={KEY_HEADER: explorer.key})
        connection.getresponse().read()
        times.append(perf_counter() - start)
    connection.close()
    assert sorted(times)[len(times) // 2] < 0.02


def test_many_at_once_are_all_answered(explorer):
    found = []

    def one():
        found.append(ask(explorer, f"/api/picture/placement?{SPEC}")[0])

    threads = [threading.Thread(target=one) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 16


def test_a_slow_client_does_not_stop_the_others(explorer):
    with socket.create_connection((HOST, explorer.server_port), timeout=20) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert ask(explorer, "/")[0] == 200


def test_hostile_words_stay_words(explorer):
    status, headers, body = ask(explorer, "/api/answer/placement?shape=%3Cscript%3Ealert(1)%3C/script%3E")
    assert status == 422
    assert headers["Content-Type"] == "application/json"
    assert "<script>" in json.loads(body)["error"]  # as data: the page only ever writes it as text
    for name in ("svg", "html"):
        path = f"/api/export/layout.{name}?notation=%3Cscript%3E"
        assert ask(explorer, path)[0] == 422


def test_long_queries_come_in_the_body_and_are_bounded(explorer):
    source = urlencode({"language": "mojo", "source": "# " + "x" * 9000 + "\ndef main():\n    print(6 * 7)"})
    status, _, body = ask(explorer, "/api/answer/kernel", method="POST", body=source)
    assert (status, json.loads(body)["output"]) == (200, "42\n")
    for path in ("/api/answer/kernel", "/api/file?name=x.npy", "/"):
        assert ask(explorer, path, method="POST", body=b"x" * 10, key="wrong")[0] == (405 if path == "/" else 401)
    assert ask(explorer, "/api/answer/layout", body=b"notation=4:1")[0] == 413  # GET has no body
    port = explorer.server_port
    for length in ("70000", "-1", "9" * 30, "0x10"):
        head = f"POST /api/answer/kernel HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n\r\n"
        assert raw(explorer, head.encode())[9:12] in (b"413", b"400"), length
    status, _, body = ask(explorer, "/api/answer/kernel?language=python&source=print(1)")
    assert status == 422
    assert json.loads(body)["field"] == "language"


def test_a_file_is_known_by_its_start(explorer, tmp_path):
    head = json.dumps({"w": {"dtype": "F32", "shape": [1 << 20, 1 << 10], "data_offsets": [0, 1 << 32]}}).encode()
    start = len(head).to_bytes(8, "little") + head
    size = len(start) + (1 << 32)
    status, _, body = ask(explorer, f"/api/file?name=model.safetensors&size={size}", method="POST", body=start)
    found = json.loads(body)
    assert (status, found["tensors"][0]["shape"], found["bytes"]) == (200, "1048576x1024", 1 << 32)
    refused = {
        "name=model.safetensors&size=3": start,  # shorter than what was sent
        "name=model.safetensors&size=999999999999999": start,
        "name=../../etc/passwd&size=99": start[:99],
        "name=a.pt&size=99": start[:99],
        "name=model.safetensors": b"",
        "name=model.gguf&size=64": b"GGUF" + bytes(60),
        "name=model.tensorbin&size=64": b"\xff" * 64,
    }
    for query, data in refused.items():
        status, _, body = ask(explorer, f"/api/file?{query}", method="POST", body=data)
        assert status == 422, (query, body)
        assert b"/tmp" not in body, query
