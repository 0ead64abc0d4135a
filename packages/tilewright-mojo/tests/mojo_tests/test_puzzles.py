# SPDX-License-Identifier: Apache-2.0
"""The puzzles of the explorer: solutions are right and clean, exercises are wrong, and the page lists them all."""

import re
from pathlib import Path

import pytest

from tilewright.explorer import FieldError
from tilewright_mojo.explorer import answer_kernel, kernel_programs
from tilewright_mojo.explorer.kernel_programs import PUZZLES, list_kernel_choices, read_example
from tilewright_mojo.explorer.kernel_tab import describe_kernel

FOLDER = Path(kernel_programs.__file__).with_name("puzzles")
PAGE = Path(__file__).parents[4] / "docs" / "puzzles.md"


def test_every_file_is_a_puzzle_and_the_page_lists_them_all():
    assert sorted(PUZZLES) == sorted(path.stem for path in FOLDER.iterdir())
    assert [puzzle["name"] for puzzle in list_kernel_choices()["puzzles"]] == list(PUZZLES)
    if not PAGE.is_file():
        pytest.skip("not in a checkout")
    assert tuple(re.findall(r"/playground/#example=(\w+)\)", PAGE.read_text(encoding="utf-8"))) == PUZZLES


@pytest.mark.parametrize("name", PUZZLES)
def test_the_solution_is_right_and_the_exercise_is_not(name):
    puzzle = read_example(name)
    right, wrong = (describe_kernel({"source": puzzle[part]}) for part in ("solution", "source"))
    assert right["output"].endswith("Right.\n")
    assert right["error"] is None
    assert all(report["clean"] for report in right["reports"])
    assert "Right." not in wrong["output"]
    assert wrong["error"].startswith("AssertionError")  # the program is whole: it runs, and finds a wrong number
    assert "# your part: " in puzzle["source"]
    assert "end of your part" not in puzzle["source"] + puzzle["solution"]


@pytest.mark.parametrize(
    ("name", "line", "instead", "found"),
    [
        ("guard", "    if i < SIZE:", "    if True:", "out of bounds"),
        ("shared_memory", "    barrier()", "", "race"),
        ("prefix_sum", "        barrier()\n        sums[i] += other", "        sums[i] += other", "race"),
        ("convolution", "            part[mine + THREADS] = 0", "            pass", "uninitialised"),
        ("dot_product", "        barrier()\n        half", "        half", "race"),
    ],
)
def test_a_mistake_is_named(name, line, instead, found):
    solution = read_example(name)["solution"]
    assert line in solution
    result = describe_kernel({"source": solution.replace(line, instead, 1)})
    kinds = " ".join(defect["kind"] for report in result["reports"] for defect in report["defects"])
    assert found in kinds, (kinds, result["error"])


def test_an_example_that_is_not_there_is_refused():
    assert answer_kernel({"example": "map"})["source"] == read_example("map")["source"]
    for name in ("../kernel_tab", "", "nothing"):
        with pytest.raises(FieldError, match="unknown example"):
            answer_kernel({"example": name})
