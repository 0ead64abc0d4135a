# SPDX-License-Identifier: Apache-2.0
"""The stand-in for NumPy gives what NumPy gives: every operation that the library uses, on random arrays."""

import ast
import ctypes
import doctest
import functools
import importlib.util
import math
import operator
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright
import tilewright_mojo
from tests.sources import parse_source
from tilewright.errors import MissingPackage

STAND_IN = Path(__file__).resolve().parents[4] / "playground" / "stand_in" / "numpy"
if not STAND_IN.is_dir():
    pytest.skip("not in a checkout", allow_module_level=True)


def load_stand_in():
    """Return the stand-in beside NumPy, under another name."""
    spec = importlib.util.spec_from_file_location("stand_in_numpy", STAND_IN / "__init__.py")
    module = sys.modules["stand_in_numpy"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sn = load_stand_in()

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's, where numbers overflow
    pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="types as in NumPy 2"),
]

TYPES = ("int64", "int32", "uint8", "int8", "float64", "float32", "bool")
SMALL_FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


def elements(kind):
    if kind == "bool":
        return st.booleans()
    if kind.startswith("float"):
        return st.integers(-60, 60).map(lambda n: n / 4)
    return st.integers(0 if kind.startswith("u") else -100, 100)


@st.composite
def arrays(draw, kinds=TYPES, shape=None, rank=3):
    """Return an array of NumPy, and the same of the stand-in, as views of other arrays at times."""
    kind = draw(st.sampled_from(kinds))
    extents = draw(st.lists(st.integers(1, 4), max_size=rank)) if shape is None else list(shape)
    values = draw(st.lists(elements(kind), min_size=math.prod(extents), max_size=math.prod(extents)))
    pair = [library.array(values, dtype=kind).reshape(extents) for library in (np, sn)]
    if shape is None and extents and draw(st.booleans()):
        view = draw(st.sampled_from([lambda a: a.T, lambda a: a[::-1], lambda a: a[..., ::2], lambda a: a[None]]))
        pair = [view(each) for each in pair]
    return pair


def plain(value):
    """Return a result as Python's numbers, with its type and shape where it has them."""
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, sn.ndarray)):
        return [str(value.dtype), list(value.shape), value.tolist()]
    return value.item() if hasattr(value, "item") else value


def same(a, b):
    """Return whether two results are equal; floats may differ in their last bits, as sums and logarithms do."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12) or (a != a and b != b)
    return type(a) is type(b) and a == b


def agree(name, call, pair, *more):
    """Assert that a call gives the same for both libraries; where NumPy raises, the stand-in may do anything."""
    with np.errstate(all="ignore"):
        try:
            expected = call(np, pair[0], *[each[0] for each in more])
        except (ValueError, IndexError, TypeError, OverflowError):
            return
    found = call(sn, pair[1], *[each[1] for each in more])
    where = f"{name} of {pair[0]!r}, {[each[0] for each in more]!r}"
    assert same(plain(found), plain(expected)), f"{where}: {plain(found)} is not {plain(expected)}"


UNARY = {
    "copy": lambda m, a: a.copy(),
    "T": lambda m, a: a.T,
    "ravel": lambda m, a: a.reshape(-1),
    "ravel F": lambda m, a: a.reshape(-1, order="F"),
    "reversed": lambda m, a: a[::-1],
    "new axis": lambda m, a: a[None, ..., None],
    "bytes": lambda m, a: a.view(m.uint8) if a.ndim and a.flags.c_contiguous else None,
    "contiguous": lambda m, a: [a.flags.c_contiguous, m.ascontiguousarray(a)],
    "tobytes": lambda m, a: a.tobytes(),
    "sums": lambda m, a: [a.sum(), a.sum(axis=0), a.sum(axis=-1, keepdims=True), a.sum(axis=(0, -1))],
    "extremes": lambda m, a: [a.min(), a.max(axis=0), a.argmin(), a.argmax(axis=-1), m.max(a, initial=3)],
    "truths": lambda m, a: [a.any(), a.all(axis=0), m.count_nonzero(a), m.nonzero(a), m.flatnonzero(a), m.argwhere(a)],
    "means": lambda m, a: [a.mean(), a.var(), a.prod(axis=-1)] if a.dtype.kind == "f" else None,
    "cumsum": lambda m, a: [a.cumsum(), a.cumsum(axis=0)],
    "sorted": lambda m, a: [m.sort(a), m.argsort(a, axis=0, kind="stable"), m.sort(a.reshape(-1))],
    "unique": lambda m, a: m.unique(a.reshape(-1), return_index=True, return_inverse=True, return_counts=True),
    "unique rows": lambda m, a: m.unique(a.reshape(len(a), -1), axis=0),
    "diff": lambda m, a: [m.diff(a.reshape(-1)), m.diff(a.reshape(-1), prepend=a.reshape(-1)[0]), m.diff(a)],
    "clip": lambda m, a: a.clip(1, 3),
    "where": lambda m, a: [m.where(a > 0, a, 0), m.where(a > 0, 1.5, a)],
    "signs": lambda m, a: [m.abs(a), m.sign(a), m.signbit(a)],
    "negative": lambda m, a: [-a, a**2],
    "inverse": lambda m, a: ~a,
    "floats": lambda m, a: [m.sqrt(m.abs(a * 1.0)), m.exp(a * 1.0), m.isfinite(a), m.rint(a * 1.0), m.trunc(a * 1.0)],
    "floors": lambda m, a: [m.floor(a * 1.0), m.ceil(a * 1.0), m.log(a * 1.0), m.log2(m.abs(a * 1.0))],
    "frexp": lambda m, a: m.frexp(a * 1.0),
    "hyperbolic": lambda m, a: [m.arcsinh(a * 1.0), m.arccosh(a * 1.0), m.arctanh(a * 0.25), m.hypot(a * 1.0, 2.0)],
    "roots": lambda m, a: m.round(m.cbrt(a * 1.0), 12),
    "bits": lambda m, a: [m.unpackbits(a.astype(m.uint8)), m.packbits(a.reshape(-1) > 0)],
    "roll": lambda m, a: [m.roll(a, 2), m.tile(a, 2), m.tile(a, (2, 1)), m.repeat(a, 2), m.repeat(a, 2, axis=0)],
    "pad": lambda m, a: m.pad(a, 1, constant_values=1),
    "joined": lambda m, a: [m.concatenate([a, a]), m.concatenate([a, a], axis=-1), m.stack([a, a], axis=-1)],
    "appended": lambda m, a: [m.append(a, 3), m.append(a, a, axis=0)],
    "inserted": lambda m, a: [m.insert(a.reshape(-1), [0, 1], a.reshape(-1)[0]), m.insert(a, [0, 1, 1], 1, axis=0)],
    "rows inserted": lambda m, a: m.insert(a, m.array([1, 0]), a[[0, 0]], axis=0),
    "split": lambda m, a: m.split(a.reshape(-1), [1, 2]),
    "broadcast": lambda m, a: [m.broadcast_to(a, (2, *a.shape)), m.moveaxis(a, 0, -1), m.atleast_1d(a)],
    "indices": lambda m, a: [m.indices(a.shape), m.unravel_index(m.arange(a.size), a.shape)],
    "types": lambda m, a: [a.astype(kind) for kind in ("int8", "uint16", "int64", "float32", "bool")],
    "scalars": lambda m, a: [a.reshape(-1)[0] + 1, a.reshape(-1)[-1] * 2.5, a.item(0), len(a), a[0]],
    "columns": lambda m, a: m.column_stack([a.reshape(-1), a.reshape(-1)]),
    "ix": lambda m, a: a[m.ix_([0, 1], [1, 0])],
    "reduceat": lambda m, a: [m.add.reduceat(a.reshape(-1), [0, 1]), m.maximum.reduceat(a, [0], axis=0)],
    "gcd": lambda m, a: m.gcd.reduce(a.reshape(-1)) if a.dtype.kind == "i" else None,
    "nan": lambda m, a: [m.isnan(a), m.nanmax(m.where(a > 0, m.nan, a))],
    "round": lambda m, a: m.round(a * 0.37, 1),
    "full": lambda m, a: [m.full(a.shape, 2), m.zeros_like(a), m.ones(a.shape, dtype=a.dtype)],
}  # fmt: skip

OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.and_, operator.or_, operator.xor),
)

BINARY = {
    **{operate.__name__: lambda m, a, b, operate=operate: operate(a, b) for operate in OPERATORS},
    "shifts": lambda m, a, b: [a << (b & 3), a >> (b & 3)] if a.dtype.kind in "iu" and b.dtype.kind in "iu" else None,
    "extremes": lambda m, a, b: [m.minimum(a, b), m.maximum(a, b)],
    "divmod": lambda m, a, b: divmod(a, b),
    "outer": lambda m, a, b: [m.add.outer(a, b), m.outer(a, b)],
    "where": lambda m, a, b: m.where(a > b, a, b),
    "members": lambda m, a, b: [m.isin(a, b), m.union1d(a, b), m.setdiff1d(a, b), m.array_equal(a, b)],
    "found": lambda m, a, b: [m.searchsorted(m.sort(a.reshape(-1)), b, side) for side in ("left", "right")],
    "close": lambda m, a, b: [m.isclose(a, b), m.allclose(a, b)] if a.dtype.kind == "f" else None,
    "matmul": lambda m, a, b: a @ b,
    "copysign": lambda m, a, b: m.copysign(a * 1.0, b * 1.0),
    "type": lambda m, a, b: m.can_cast(a.dtype, b.dtype, "same_kind"),
}

SCALAR = (0, 1, -3, 2.5, True)


@settings(max_examples=60)
@given(arrays())
def test_functions_of_one_array(pair):
    for name, call in UNARY.items():
        agree(name, call, pair)
    for number in SCALAR:
        for operate in OPERATORS[:-3]:
            name = f"{operate.__name__} {number}"
            agree(name, lambda m, a, f=operate, n=number: [f(a, n), f(n, a)], pair)


@settings(max_examples=150)
@given(st.data())
def test_functions_of_two_arrays(data):
    a, b = data.draw(arrays(rank=2)), data.draw(arrays(rank=2))
    for name, call in BINARY.items():
        agree(name, call, a, b)


@settings(max_examples=150)
@given(st.data())
def test_indexing_reads_and_writes(data):
    pair = data.draw(arrays(kinds=("int64", "float32"), rank=3))
    entry = st.one_of(
        st.integers(-4, 3),
        st.none(),
        st.just(Ellipsis),
        st.builds(slice, *[st.none() | st.integers(-4, 4)] * 2, st.sampled_from([None, 1, 2, -1])),
        st.lists(st.integers(-2, 1), min_size=1, max_size=3),
        st.lists(st.booleans(), min_size=1, max_size=4),
    )
    index = tuple(data.draw(st.lists(entry, max_size=3)))
    if sum(each is Ellipsis for each in index) > 1:
        return
    agree(f"[{index}]", lambda m, a: a[tuple(m.array(e) if isinstance(e, list) else e for e in index)], pair)
    agree(f"a > 0 [{index}]", lambda m, a: a[a > 0], pair)

    def assign(m, a):
        b = a.copy()
        b[index] = 7
        b[b == 1] = m.arange(int(m.count_nonzero(b == 1)))
        return b

    agree(f"[{index}] = 7", assign, pair)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.integers(1, 4))
def test_functions_of_lists(numbers, count):
    def use(m, a):
        table = m.zeros(11, dtype=m.int64)
        m.add.at(table, a + 5, 2)
        m.maximum.at(table, a + 5, 3)
        rows = m.stack([a, -a], axis=1)
        return [
            *(table, m.bincount(a + 5, minlength=3), m.bincount(a + 5, weights=a * 0.5), m.lexsort((a, a % 3))),
            *(rows[:, ::-1], m.arange(count, 9, 2), m.arange(count), m.linspace(0, 1, count), a.take([0, -1])),
            *(m.ravel_multi_index((a + 5, a + 5), (11, 11)), m.repeat(a, m.abs(a)), a.repeat(count)),
            *(rows.transpose(1, 0), rows.swapaxes(0, 1), m.frombuffer(bytes(8 * count), dtype=m.int32)),
            *(
                m.lib.stride_tricks.as_strided(a, (2, len(numbers)), (0, 8)),
                m.sort(a).searchsorted(3),
                m.diff(rows, axis=0),
            ),
        ]

    agree("lists", use, [library.array(numbers, dtype="int64") for library in (np, sn)])


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=20))
def test_small_floats_round_as_ml_dtypes_does(values):
    for name in SMALL_FLOATS:
        kind = np.float16 if name == "float16" else getattr(ml_dtypes, name)
        with np.errstate(all="ignore"):
            codes = np.array(values, dtype=np.float32).astype(kind)
            word = f"u{codes.itemsize}"
            expected = codes.view(word).tolist()
        found = sn.array(values, dtype="float32").astype(name)
        numbers = codes.astype(np.float64)
        known = ~np.isnan(numbers)  # which NaN it is does not matter
        assert np.array(found.view(word).tolist())[known].tolist() == np.array(expected)[known].tolist(), name
        assert same(found.tolist(), numbers.tolist()), name


def test_all_codes_of_small_floats_have_their_value():
    for name in SMALL_FLOATS:
        kind = np.dtype(np.float16 if name == "float16" else getattr(ml_dtypes, name))
        codes = np.arange(1 << (8 * kind.itemsize), dtype=f"u{kind.itemsize}")
        expected = codes.view(kind).astype(np.float64).tolist()
        found = sn.array(codes.tolist(), dtype=f"u{kind.itemsize}").view(name).tolist()
        assert [str(each) for each in found] == [str(each) for each in expected], name


def test_scalars_calculate_in_their_type():
    cases = {
        "wraps": lambda m: m.array([250], m.uint8)[0] + m.array([10], m.uint8)[0],
        "rounds": lambda m: float(m.float32(0.1) + m.float32(0.2)),
        "divides": lambda m: float(m.float32(1) / m.float32(3)),
        "text": lambda m: [str(m.float32(0.1)), str(m.float32(1e20)), str(m.int8(-3)), f"{m.float32(0.1):.3f}"],
        "item": lambda m: [m.int64(5).item(), m.float32(2.5).item(), m.float32(0.5).dtype.name],
        "types": lambda m: [isinstance(m.int8(1), m.integer), issubclass(m.float32, m.generic), m.dtype("<i4").name],
        "dtypes": lambda m: [m.dtype(">f4").isnative, m.dtype("u2").str, m.dtype(bool).name, m.iinfo("int16").max],
        "positional": lambda m: [
            m.format_float_positional(m.float32(x), unique=True, trim="0") for x in (0.1, 3, 12.5)
        ],
    }
    for name, call in cases.items():
        assert same(plain(call(sn)), plain(call(np))), name


def test_what_is_missing_says_so():
    with pytest.raises(MissingPackage, match=r"this needs numpy\.fft, and NumPy is not installed; install numpy"):
        _ = sn.fft
    for call in (lambda: sn.arange(1 << 40), lambda: sn.broadcast_to(sn.zeros(1), (1 << 40,)) + 1):
        with pytest.raises(MissingPackage, match="an array of 1099511627776 elements needs NumPy"):
            call()


def numpy_names(path):
    """Yield what a module uses of NumPy, such as "add.reduceat"."""
    for node in ast.walk(parse_source(path)):
        name, value = [], node
        while isinstance(value, ast.Attribute):
            name.append(value.attr)
            value = value.value
        if name and isinstance(value, ast.Name) and value.id == "np":
            yield name[::-1]


def test_what_the_packages_of_a_page_use_is_there():
    names = set()
    library, companion = Path(tilewright.__file__).parent, Path(tilewright_mojo.__file__).parent
    packages = ("layout", "formats", "memory", "tensor", "notation", "traffic", "analysis", "views", "mojo")
    for folder in (companion, *[library / package for package in packages]):
        for path in folder.rglob("*.py"):
            names |= {tuple(name) for name in numpy_names(path)}
    assert len(names) > 150
    for name in names:
        functools.reduce(getattr, name, sn)


def test_buffers_at_an_address_are_found():
    for source in (bytearray(range(8)), bytes(range(8))):
        array = sn.frombuffer(source, dtype="uint8")[2:]
        address = array.__array_interface__["data"][0]
        again = sn.frombuffer((ctypes.c_uint8 * 4).from_address(address + 1), dtype="uint8")
        assert again.tolist() == [3, 4, 5, 6]


def test_docstring_examples():
    attempted = 0
    for path in sorted(STAND_IN.glob("*.py")):
        module = sn if path.stem == "__init__" else importlib.import_module(f"stand_in_numpy.{path.stem}")
        result = doctest.testmod(module)
        assert not result.failed, path.name
        attempted += result.attempted
    assert attempted
