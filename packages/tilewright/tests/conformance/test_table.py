# SPDX-License-Identifier: Apache-2.0
"""Every statement of the original documents has one test, and where it differs its dictionary says so."""

import re

import pytest

from ..docs.pages import DOCS
from .statements import DOCUMENTS, PAGE, read_statements, write_page

FEWEST_LITERAL = 366  # all others are wrong or dated in the documents, or differ on purpose, as their marks say


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.letter)
def test_every_statement_has_a_test(document):
    assert not set(document.row_names) - set(read_statements())


def test_no_statement_is_marked_twice_or_unknown():
    known = {row for document in DOCUMENTS for row in document.row_names}
    assert not set(read_statements()) - known
    assert not [row for row, marked in read_statements().items() if len(marked) > 1]


def test_nearly_all_hold_as_written():
    assert sum(not marked[0].differs for marked in read_statements().values()) >= FEWEST_LITERAL


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.letter)
def test_what_differs_stands_in_the_dictionary(document):
    text = (DOCS / "dictionaries" / f"{document.dictionary}.md").read_text(encoding="utf-8")
    differing = [row for row in document.row_names if read_statements()[row][0].differs]
    assert not [row for row in differing if not re.search(rf"\b{row}\b", text)]


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == write_page(), "run python -m tests.conformance.statements"
