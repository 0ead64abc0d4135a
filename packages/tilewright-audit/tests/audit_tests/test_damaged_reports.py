# SPDX-License-Identifier: Apache-2.0
"""Nine kinds of damage to each recorded report and database: every one is found, and named."""

import json
from collections import Counter

import pytest

import tilewright as tw

from .damages import INDEX, KINDS, REPORTS, damages
from .database_damages import database_damages
from .report_databases import write_database

pytestmark = pytest.mark.slow

EVERY = 7  # one damage in so many is tried of each kind and report, beside the first; the rest are alike


def chosen(seen, kind):
    """Return whether to try the next damage of a kind in a report."""
    seen[kind] += 1
    return seen[kind] == 1 or seen[kind] % EVERY == 0


def test_every_damage_to_a_report_is_named(tmp_path):
    path, total = tmp_path / "report.json", Counter()
    for entry in INDEX:
        report, seen = json.loads((REPORTS / entry["file"]).read_text()), Counter()
        for kind, place in damages(report):
            if not chosen(seen, kind):
                continue
            path.write_text(json.dumps(report))
            answer = tw.audit(path)
            kinds = {finding.kind for finding in answer.findings}
            assert kind in kinds, f"{entry['file']}: {kind} at {place} is not among {kinds}"
            assert answer.exit_status == 1
            total[kind] += 1
    assert set(total) == set(KINDS)
    assert min(total.values()) >= 16


def test_every_damage_to_a_database_is_named(tmp_path):
    copy, made, total = tmp_path / "damaged.sqlite", tmp_path / "made.sqlite", Counter()
    wholes = sorted(REPORTS.glob("*.sqlite"))
    write_database(json.loads((REPORTS / "blackhole_p150.odd_rows.normal.json").read_text()), made)
    for whole in (*wholes, made):
        seen = Counter()
        for kind, place in database_damages(whole, copy):
            if not chosen(seen, kind):
                continue
            kinds = {finding.kind for finding in tw.audit(copy).findings}
            assert kind in kinds, f"{whole.name}: {kind} at {place} is not among {kinds}"
            total[kind] += 1
    assert set(total) == set(KINDS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda report: report["buffer_pages_by_address"]["1466368"][0]["pages"][3].update(core_x=5),
            "buffer 35 at 1466368: page 3 is at (5, 0) 1472512, the model says (0, 0) 1472512",
        ),
        (
            lambda report: report["graph"][17]["params"].update(size=131104),
            "buffer 17 at 1482752: size is 131104, the model says 131072",
        ),
    ],
)
def test_a_finding_names_the_node_the_place_and_both_numbers(tmp_path, change, said):
    report = json.loads((REPORTS / "wormhole_n150.sharded_eltwise.normal.json").read_text())
    change(report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    answer = tw.audit(path)
    assert said in [finding.message for finding in answer.findings]
    finding = answer.findings[0]
    assert finding.reason
    assert finding.remedy
    assert finding.tensor.startswith("tensor ")
