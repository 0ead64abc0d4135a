# SPDX-License-Identifier: Apache-2.0
"""The files that the fuzzer of parsers starts from are sound, and it can give them to every parser."""

from tools.fuzz.files import PARSERS, prepare_folder, seeds, tried
from tools.fuzz.frames import dictionary

from ..cases import all_cases


@all_cases(("parser", list(PARSERS)))
def test_every_parser_takes_its_seeds(parser, tmp_path):
    (tmp_path / parser).mkdir()
    folder = prepare_folder(parser, tmp_path / parser)
    files = seeds(parser)
    assert files
    assert dictionary(files)
    for data in files:
        tried(parser, folder, data)
        tried(parser, folder, data[: len(data) // 2])
