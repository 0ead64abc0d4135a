# SPDX-License-Identifier: Apache-2.0
"""The files that the fuzzer of parsers starts from are sound, and it can give them to every parser."""

from ..cases import all_cases
from ..fuzz.files import PARSERS, converted_in, seeds, tried
from ..fuzz.frames import dictionary


@all_cases(("parser", list(PARSERS)))
def test_every_parser_takes_its_seeds(parser, tmp_path):
    folder = tmp_path / parser
    if parser == "manifest":
        converted_in(folder)
    else:
        folder.mkdir()
    files = seeds(parser)
    assert files
    assert dictionary(files)
    for data in files:
        tried(parser, folder, data)
        tried(parser, folder, data[: len(data) // 2])
