# SPDX-License-Identifier: Apache-2.0
"""The laws of values: whatever the examples of the documentation make can be pickled and copied, before and after use.

The values are those that the docstrings' own examples make, so that every public class is here that has an example,
and a class that is added later comes by itself.
"""

import contextlib
import copy
import functools
import importlib
import inspect
import io
import pickle
import re
import sys
import tempfile
import warnings
from operator import index

import numpy as np
import pytest

import tilewright as tw
from tilewright import analysis, conversion, files, formats, memory, tiling, views

from .test_examples import doctests, module_names
from .test_surface import PACKAGES, public_names

# What belongs to one process: its memory, its threads, its files; or what is no value at all.
NOT_VALUES = {
    "BoundPlan",  # holds addresses
    *["Device", "DeviceBuffer", "DeviceContext", "MeshDevice"],  # the memory of whole chips
    "TransferEvent",  # a transfer that is going on
    *["ArrayLibrary", "FileKind", "Notation", "brackets"],  # hold functions
    *["Backend", "DeviceEngine"],  # interfaces
    "SourceFile",  # an open file
    "InlineQueue",
    "Integer",  # only answers isinstance
    "String",  # makes a str
    *["LayoutLike", "NumberFormat"],  # what all layouts, and all formats, have in common
    "Pipeline",  # holds the functions and arrays of one process
    "SceneOptions",  # the type of keyword arguments
    "SimulatedQueue",
    "Step",  # views of the buffers of one tile
    "ThreadQueue",
    "TileKernel",  # compiled for one device
    "event_t",
    *["int", "str"],
    *["duplex_buffering_t", "export_double_buffering_t", "import_double_buffering_t", "simplex_buffering_t"],
}
# Equal only to views of the same memory or the same open file, which a copy in another process is not.
VIEWS = {
    *["ConversionPlan", "Pointer", "StoredTensor", "TensorFile", "TilePlan", "Tiles", "pointer", "io_tensors_t"],
    *[
        f"{const}{where}_{what}_t"
        for const in ("", "const_")
        for where in ("ext", "int")
        for what in ("tensor", "sub_tensor")
    ],
}
ACTIONS = {"show", "write", "run", "save", "dump", "free", "close", "kernel", "execute"}
MAX_EXAMPLES = 4  # of each class
LARGE = 10_000
SIZES = ("size", "cosize", "num_pages", "count", "num_elements", "volume", "numel", "nbytes", "__len__")


def public_classes():
    """Return the public classes that are values."""
    offered = (
        getattr(importlib.import_module(package), name) for package in PACKAGES for name in public_names(package)
    )
    return {
        each
        for each in offered
        if inspect.isclass(each) and not issubclass(each, BaseException) and each.__name__ not in NOT_VALUES
    }


@functools.cache
def values():
    """Return values of every public class, as the examples in docstrings make them."""
    wanted = public_classes()
    found = {each: {} for each in wanted}

    def take(value):
        """Keep the smallest values of each class, whatever the order in which they come."""
        if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
            for part in value:
                take(part)
        elif type(value) in wanted and not is_on_device(value):
            text = re.sub(r" at 0x[0-9a-f]+", " at 0x", repr(value))
            held = found[type(value)]
            held.setdefault((is_large(value), len(text), text), value)
            if len(held) > MAX_EXAMPLES:
                del held[max(held)]

    for module in module_names():
        with contextlib.suppress(ModuleNotFoundError):  # of an extra
            importlib.import_module(module)
        for test in doctests(sys.modules[module]) if module in sys.modules else ():
            names = dict(test.globs)
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), _displaying(take):
                warnings.simplefilter("ignore")
                for example in test.examples:
                    with contextlib.suppress(Exception):  # examples of errors; test_examples.py judges them
                        exec(compile(example.source, test.name, "single"), names)  # noqa: S102
            for name, value in names.items():
                if name not in test.globs:
                    take(value)
    with tempfile.TemporaryDirectory() as folder:
        take(further_values(folder))
    for value in [value for held in found.values() for value in held.values()]:
        take(use(copy.copy(value)))  # and what they are made of
    return {each: list(held.values()) for each, held in found.items()}


def further_values(folder):
    """Return values of classes that the examples make only in passing."""
    spec = tw.TensorSpec((1, 4, 60, 90), "bfloat8_b", "tile", memory=tw.block_sharded((8, 8)), chip="wormhole_n150")
    nested = tw.TensorSpec((4, 64, 64), "float32", "tile", memory=tw.nd_sharded((1, 32, 32), (4, 4)))
    array, cores = np.zeros((8, 8), np.float32), tw.CoreRangeSet([tw.CoreRange((0, 0), (1, 1))])
    plan = tw.plan_tiles(array, array.copy(), tile=(4, 4))
    return [
        *[spec, nested, nested.memory.nd_shard_spec, spec.where(0, 2, 33, 17), cores, tw.ShardSpec(cores, (32, 32))],
        *[analysis.bank_conflicts(np.arange(32)), analysis.coalescing(np.arange(32)), analysis.balance([1, 2])],
        *[analysis.contiguous_runs(tw.row_major(4, 8))],
        *[
            tw.memory.CoreGrid(x=8, y=8),
            tw.block_sharded((8, 8)),
            memory.AddressContent("gap", 3, 4),
            files.inspect(_a_file(folder)).tensors[0],
        ],
        *[tiling.Input(array, tw.Tiler((8, 8), (4, 4))), tiling.Output(array, tw.Tiler((8, 8), (4, 4)))],
        *[tiling.Schedule("double", 5), views.Outline(0, 0, 2, 2), conversion.Verdict("w", 4, None)],
        conversion.ProgressEvent("start", None, 0, 40, 0, 4),
        *[
            conversion.VerifyReport("out", "npy", True, ()),
            formats.TwosComplement(8, 6),
            plan,
            plan.run(_copy),
            tw.TileTensor(array).tiles[4, 4](),
        ],
    ]


def _a_file(folder):
    np.save(f"{folder}/a.npy", np.arange(6))
    return f"{folder}/a.npy"


def _copy(x, out):
    out[...] = x


@contextlib.contextmanager
def _displaying(take):
    usual, sys.displayhook = sys.displayhook, take
    try:
        yield
    finally:
        sys.displayhook = usual


def is_on_device(value):
    """Return whether a value holds the memory of a whole chip, gigabytes that a copy would touch."""
    with contextlib.suppress(Exception):
        device = getattr(value, "device", None)
        return type(device() if callable(device) else device).__name__ in NOT_VALUES
    return False


def is_large(value):
    """Return whether the tables of a value, or of a part of it, may be large."""
    for whole in ("", "layout", "memory_layout", "spec", "tiler", "plan"):
        for name in SIZES:
            with contextlib.suppress(Exception):
                size = getattr(getattr(value, whole) if whole else value, name)
                if index(size() if callable(size) else size) > LARGE:
                    return True
    return False


def use(value):
    """Return the answers to everything that a value can be asked without an argument."""
    answers: list = []
    if is_large(value):
        return answers
    for name in dir(type(value)):
        if name.startswith("_") or name in ACTIONS:
            continue
        with contextlib.suppress(Exception):
            member = getattr(value, name)
            if callable(member) and not inspect.isclass(member):
                parameters = inspect.signature(member).parameters.values()
                if any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
                    continue
                member = member()
            answers.append(member)
    return answers


def same(one, other):
    """Return whether two values are the same: equal, where they can be compared, else alike in their text."""
    if type(one) is not type(other):
        return False
    if type(one).__eq__ is object.__eq__ or hasattr(one, "to_numpy") or type(one).__name__ in VIEWS:
        return " at 0x" in repr(one) or repr(one) == repr(other)
    equal = one == other
    return bool(equal.all()) if isinstance(equal, np.ndarray) else bool(equal)


def test_every_public_class_has_a_value_among_the_examples():
    own = {each for each in values() if each.__module__.split(".")[1] not in ("mojo", "ttl", "ttnn")}
    missing = sorted(each.__name__ for each in own if not values()[each])
    assert not missing, (
        f"{missing}: no example makes one: add a docstring example, or say in NOT_VALUES why it is no value"
    )


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
def test_values_can_be_pickled_and_copied_before_and_after_use(how):
    by_pickle = lambda value: pickle.loads(pickle.dumps(value))  # noqa: E731, S301  (our own bytes)
    transfer = {"pickle": by_pickle, "copy": copy.copy, "deepcopy": copy.deepcopy}
    wrong = []
    for each, held in values().items():
        for value in held:
            for when in ("before", "after"):
                try:
                    if not same(transfer[how](value), value):
                        wrong.append(f"{each.__name__}: {how} {when} use gives another value: {value!r}"[:200])
                except Exception as problem:
                    wrong.append(f"{each.__name__}: {how} {when} use: {type(problem).__name__}: {problem}"[:200])
                use(value)
    assert not wrong, "\n".join(wrong)


def test_equal_values_have_equal_hashes_and_texts():
    wrong = []
    for held in values().values():
        for value in held:
            twin = copy.deepcopy(value)
            if type(value).__eq__ is object.__eq__ or hasattr(value, "to_numpy") or type(value).__name__ in VIEWS:
                continue
            try:
                hashes = {hash(twin), hash(value)} if type(value).__hash__ is not None else set()
            except TypeError as problem:
                wrong.append(f"{type(value).__name__} says that it can be hashed: {problem}")
                continue
            if len(hashes) > 1:
                wrong.append(f"{value!r}: hashes differ")
            if repr(twin) != repr(value) and " at 0x" not in repr(value):
                wrong.append(f"{value!r} and {twin!r} are equal")
    assert not wrong, "\n".join(wrong)
