# SPDX-License-Identifier: Apache-2.0
"""Equal parts, and aligned parts of which the last may be short or empty, as Mojo recorded them."""

from .golden import assert_view, replay, tensor_of


def parts_of(t, args):
    if "split_alignment" in args:
        part = t.split[args["axis"], args["split_alignment"]]
        return [part(args["count"], k) for k in range(args["count"])]
    return t.split[args["count"], args["axis"]]()


@replay("split")
def test_split(case):
    t = tensor_of(case)
    for result in case["results"]:
        parts = parts_of(t, result["args"])
        assert len(parts) == len(result["views"])
        for part, record in zip(parts, result["views"], strict=True):
            assert_view(part, record)
            assert part.mut
