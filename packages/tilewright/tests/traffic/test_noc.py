# SPDX-License-Identifier: Apache-2.0
"""The network: positions, routes and links, against a walk from node to node."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Chip, CoreCoord, MemoryConfigError
from tilewright.traffic import NocMap

WORMHOLE, BLACKHOLE = NocMap.of("wormhole_n150"), NocMap.of("blackhole_p150")


def walk(size, noc, source, target):
    """Return the nodes and directions on the way, step by step."""
    width, height = size
    (x, y), steps = source, []
    if noc == 0:
        while x != target[0]:
            steps.append((x, y, "+x"))
            x = (x + 1) % width
        while y != target[1]:
            steps.append((x, y, "+y"))
            y = (y + 1) % height
        return steps
    while y != target[1]:
        steps.append((x, y, "-y"))
        y = (y - 1) % height
    while x != target[0]:
        steps.append((x, y, "-x"))
        x = (x - 1) % width
    return steps


@given(st.sampled_from([WORMHOLE, BLACKHOLE]), st.integers(0, 1), st.data())
def test_routes(noc_map, noc, data):
    source, target = (data.draw(st.sampled_from(noc_map.endpoints)) for _ in range(2))
    expected = walk(noc_map.size, noc, noc_map.position(source, noc), noc_map.position(target, noc))
    links = noc_map.route(noc, source, target)
    assert [(link.x, link.y, link.direction) for link in links] == expected
    assert {link.noc for link in links} <= {f"NOC_{noc}"}


@given(st.sampled_from([WORMHOLE, BLACKHOLE]), st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), max_size=20))
def test_links_of_many_flows(noc_map, flows):
    total = len(noc_map.endpoints)
    rows = [(noc % 2, source % total, target % total) for noc, source, target in flows]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    flow, link = noc_map.links_between(*columns)
    for number, (noc, source, target) in enumerate(rows):
        expected = noc_map.route(noc, noc_map.endpoints[source], noc_map.endpoints[target])
        assert [noc_map.link(each) for each in link[flow == number].tolist()] == expected


def test_positions_of_wormhole():
    assert WORMHOLE.position((3, 4)) == (4, 5)
    assert WORMHOLE.position((4, 5)) == (6, 7)
    assert WORMHOLE.position((7, 7)) == (9, 9)
    assert [WORMHOLE.position(bank) for bank in (1, 8)] == [(0, 1), (5, 8)]


def test_every_endpoint_has_a_place_of_its_own():
    for noc_map in (WORMHOLE, BLACKHOLE):
        for positions in noc_map.positions.tolist():
            places = {tuple(place) for place in positions}
            assert len(places) == len(noc_map.endpoints)
            assert all(0 <= x < noc_map.size[0] and 0 <= y < noc_map.size[1] for x, y in places)
            assert [noc_map.places[place] for place in map(tuple, positions)] == list(noc_map.endpoints)


def test_each_network_has_its_own_port_of_a_bank():
    assert [[BLACKHOLE.port(bank, noc) for bank in range(8)] for noc in (0, 1)] == [[2, 0, 0, 0, 2, 2, 2, 2], [1] * 8]
    assert [BLACKHOLE.position(4, noc) for noc in (0, 1)] == [(9, 11), (9, 1)]
    assert len(BLACKHOLE.places) == 11 * 10 + 8 * 3
    assert [link.y for link in BLACKHOLE.route(1, (0, 0), 0)] == [2, 1]  # up to the port in row 1, then left
    assert [WORMHOLE.position(4, noc) for noc in (0, 1)] == [(5, 1)] * 2


def test_numbers_of_banks():
    for noc_map in (WORMHOLE, BLACKHOLE, NocMap.of("grayskull"), NocMap.of("quasar_q1")):
        numbers = np.arange(len(noc_map.endpoints))
        banks = noc_map.banks(numbers)
        for number, bank in zip(numbers.tolist(), banks.tolist(), strict=True):
            endpoint = noc_map.endpoints[number]
            if isinstance(endpoint, CoreCoord):
                assert noc_map.chip.core_of(bank, "l1") == endpoint
            else:
                assert endpoint == bank


def test_what_is_not_known_is_refused():
    with pytest.raises(MemoryConfigError, match="routes of quasar_q1 are not known"):
        NocMap.of("quasar_q1").position((0, 0))
    with pytest.raises(MemoryConfigError, match=r"DRAM banks 0 to 11, got \(9, 9\)"):
        WORMHOLE.position((9, 9))
    unknown = NocMap.of(replace(Chip.named("blackhole_p100"), noc_dram=()))
    with pytest.raises(MemoryConfigError, match="where 3 of blackhole_p100 is on the network is not known"):
        unknown.position(3)
    with pytest.raises(MemoryConfigError, match="where 3 of blackhole_p100"):
        unknown.links_between(np.array([0]), np.array([113]), np.array([0]))
