# SPDX-License-Identifier: Apache-2.0
"""The C of kernels: the preludes of its two dialects, OpenCL and CUDA, and expressions and statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import TransferError
from .thread_mapping import Digit, LoopAxis

INT_MAX = 2**31 - 1

_OPENCL = """\
#define KERNEL(threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void
#define GLOBAL __global
#define SHARED __local  // an array of the work-group
#define LOCAL __local   // what a pointer to it points to
#define RESTRICT restrict
#define INLINE static inline
#define RARE static inline  // a function that is seldom called
#define UNROLL {unroll}
#define GROUP ((u32)get_group_id(0))
#define THREAD ((u32)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOAD(type, place) (*(__global const type *)(place))
#define STORE(type, place, value) (*(__global type *)(place) = (value))

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef float f32;
typedef uint2 v8;
typedef uint4 v16;

INLINE v8 v8_of(u32 a, u32 b) {{ return (uint2)(a, b); }}
INLINE v16 v16_of(u32 a, u32 b, u32 c, u32 d) {{ return (uint4)(a, b, c, d); }}
INLINE f32 float_of(u32 bits) {{ return as_float(bits); }}
INLINE u32 bits_of(f32 x) {{ return as_uint(x); }}
INLINE u32 leading_zeros(u32 x) {{ return clz(x); }}
INLINE f32 truncated(f32 x) {{ return trunc(x); }}
INLINE f32 smaller(f32 x, f32 y) {{ return fmin(x, y); }}
INLINE f32 absolute(f32 x) {{ return fabs(x); }}
INLINE u32 larger(u32 x, u32 y) {{ return max(x, y); }}
INLINE u32 low_bytes(u32 a, u32 b, u32 c, u32 d) {{ return as_uint((uchar4)((u8)a, (u8)b, (u8)c, (u8)d)); }}
INLINE u32 top_bytes(u32 a, u32 b, u32 c, u32 d) {{ return low_bytes(a >> 24, b >> 24, c >> 24, d >> 24); }}
INLINE u32 byte_under(u32 top, u32 x, u32 k) {{ return top | ((x >> 8u * k) & 0xffu); }}
"""

_OPENCL_DOUBLES = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
INLINE f64 double_of(u64 bits) { return as_double(bits); }
INLINE u64 double_bits(f64 x) { return as_ulong(x); }
"""

_CUDA = """\
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define GLOBAL
#define SHARED __shared__
#define LOCAL
#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
#define RARE static __device__ __noinline__  // a function that is seldom called: shorter to compile
#define UNROLL _Pragma("unroll")
#define GROUP blockIdx.x
#define THREAD threadIdx.x
#define BARRIER __syncthreads()
#define LOAD(type, place) {load}((const type *)(place))
#define STORE(type, place, value) {store}

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef uint2 v8;
typedef uint4 v16;

INLINE v8 v8_of(u32 a, u32 b) {{ return make_uint2(a, b); }}
INLINE v16 v16_of(u32 a, u32 b, u32 c, u32 d) {{ return make_uint4(a, b, c, d); }}
INLINE f32 float_of(u32 bits) {{ return __uint_as_float(bits); }}
INLINE u32 bits_of(f32 x) {{ return __float_as_uint(x); }}
INLINE u32 leading_zeros(u32 x) {{ return __clz(x); }}
INLINE f32 truncated(f32 x) {{ return truncf(x); }}
INLINE f32 smaller(f32 x, f32 y) {{ return fminf(x, y); }}
INLINE f32 absolute(f32 x) {{ return fabsf(x); }}
INLINE u32 larger(u32 x, u32 y) {{ return x > y ? x : y; }}
INLINE u32 low_bytes(u32 a, u32 b, u32 c, u32 d) {{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}}
INLINE u32 top_bytes(u32 a, u32 b, u32 c, u32 d) {{
    return __byte_perm(__byte_perm(a, b, 0x0073), __byte_perm(c, d, 0x0073), 0x5410);
}}
INLINE u32 byte_under(u32 top, u32 x, u32 k) {{ return __byte_perm(x, top, 0x7440u | k); }}
INLINE u32 across(u32 x, u32 lane) {{ return __shfl_xor_sync(0xffffffffu, x, lane); }}
"""

_CUDA_DOUBLES = """\
typedef double f64;
INLINE f64 double_of(u64 bits) { return __longlong_as_double((i64)bits); }
INLINE u64 double_bits(f64 x) { return (u64)__double_as_longlong(x); }
"""

_STORES = {"stream": "__stcs((type *)(place), (value))", "plain": "(*(type *)(place) = (value))"}
_LOADS = {"cached": "__ldg", "stream": "__ldcs"}


@dataclass(frozen=True, slots=True)
class CDialect:
    """A dialect of C: its prelude, whether threads can exchange registers (`shuffles`), and whether arguments have
    start offsets (`starts`).

    >>> c_dialect("cuda").shuffles, c_dialect("opencl").starts
    (True, True)
    """

    name: str
    prelude: str
    doubles: str
    shuffles: bool
    starts: bool


def c_dialect(name: str, load: str = "cached", store: str = "stream", unroll: bool = True) -> CDialect:
    """Return the dialect "opencl" or "cuda", with hints for loads and stores, and loops unrolled or not.

    >>> c_dialect("opencl").name
    'opencl'
    """
    if name == "opencl":
        prelude = _OPENCL.format(unroll='_Pragma("unroll")' if unroll else "")
        return CDialect(name, prelude, _OPENCL_DOUBLES, shuffles=False, starts=True)
    if name == "cuda":
        prelude = _CUDA.format(load=_LOADS[load], store=_STORES[store])
        return CDialect(name, prelude, _CUDA_DOUBLES, shuffles=True, starts=False)
    raise TransferError(f"unknown dialect {name!r}; use 'opencl' or 'cuda'")


class Literals:
    """Numbers that depend on a shape, written in a kernel as literals that the compiler can use.

    >>> Literals().unsigned(12), Literals().signed(-4)
    ('12u', '-4')
    """

    always_guarded = False

    def unsigned(self, value: int) -> str:
        """Return an unsigned number."""
        return f"{value}u"

    def signed(self, value: int) -> str:
        """Return a signed number of bytes."""
        return str(value)


class Arguments(Literals):
    """The same as arguments of the kernel, so that similar shapes share one compiled program.

    >>> numbers = Arguments()
    >>> numbers.unsigned(12), numbers.signed(-4), numbers.values
    ('n0', 'n1', [('u32', 12), ('i32', -4)])
    """

    always_guarded = True

    def __init__(self) -> None:
        self.values: list[tuple[str, int]] = []

    def unsigned(self, value: int) -> str:
        """Return an unsigned number."""
        return self._named("u32", value)

    def signed(self, value: int) -> str:
        """Return a signed number of bytes."""
        return self._named("i32" if abs(value) <= INT_MAX else "i64", value)

    def _named(self, kind: str, value: int) -> str:
        self.values.append((kind, value))
        return f"n{len(self.values) - 1}"


LITERALS = Literals()


@dataclass(frozen=True, slots=True)
class NamedDigit:
    """A digit and its C expression.

    >>> NamedDigit(Digit(0, 4, 1), "t0").digit.count
    4
    """

    digit: Digit
    name: str


def digit_expressions(index: str, digits: Sequence[Digit]) -> list[NamedDigit]:
    """Return the expression of each digit of an index, the first digit fastest.

    >>> [digit.name for digit in digit_expressions("i", [Digit(0, 4, 1), Digit(1, 3, 1), Digit(0, 5, 4)])]
    ['i % 4u', 'i / 4u % 3u', 'i / 12u']
    """
    found, below = [], 1
    for k, digit in enumerate(digits):
        text = index if below == 1 else f"{index} / {below}u"
        found.append(NamedDigit(digit, text if k == len(digits) - 1 else f"{text} % {digit.count}u"))
        below *= digit.count
    return found


def declare_digits(
    index: str, digits: Sequence[Digit], prefix: str, numbers: Literals = LITERALS
) -> tuple[list[str], list[NamedDigit]]:
    """Return declarations of variables for the digits of an index, and the digits with these names.

    >>> declare_digits("thread", [Digit(0, 4, 1), Digit(1, 8, 1)], "t")[0]
    ['const u32 t0 = thread % 4u, t1 = thread / 4u;']
    >>> declare_digits("group", [Digit(0, 4, 1), Digit(1, 8, 1)], "g", Arguments())[0]
    ['const u32 g_from1 = group / n0, g0 = group - g_from1 * n0, g1 = g_from1;']
    """
    if not digits:
        return [], []
    names = [NamedDigit(digit, f"{prefix}{k}") for k, digit in enumerate(digits)]
    if not isinstance(numbers, Arguments):
        declarations = [f"{prefix}{k} = {digit.name}" for k, digit in enumerate(digit_expressions(index, digits))]
        return [f"const u32 {', '.join(declarations)};"], names
    declarations, rest = [], index  # as few divisions as possible, since the divisors are not known
    for k, digit in enumerate(digits[:-1]):
        count, above = numbers.unsigned(digit.count), f"{prefix}_from{k + 1}"
        declarations += [f"{above} = {rest} / {count}", f"{prefix}{k} = {rest} - {above} * {count}"]
        rest = above
    return [f"const u32 {', '.join([*declarations, f'{prefix}{len(digits) - 1} = {rest}'])};"], names


def product_term(name: str, step: int, wide: bool, numbers: Literals = LITERALS) -> str:
    """Return the product of an index and a step, as a signed integer.

    >>> product_term("t0", -16, False), product_term("g1", 4096, True)
    ('(i32)(t0) * -16', '(i64)(g1) * 4096')
    """
    return f"({'i64' if wide else 'i32'})({name}) * {numbers.signed(step)}"


def offset_expression(
    named: Iterable[NamedDigit], axes: Sequence[LoopAxis], side: int, constant: int = 0, numbers: Literals = LITERALS
) -> str:
    """Return the offset in bytes of digits on one side, in 64 bits only if 32 are too few.

    >>> offset_expression([NamedDigit(Digit(0, 4, 2), "t0")], [LoopAxis(8, (4, 64))], 0)
    '(i32)(t0) * 8'
    >>> offset_expression([NamedDigit(Digit(0, 4, 2**30), "g0")], [LoopAxis(2**32, (4, 64))], 0, 64)
    '(i64)(g0) * 4294967296 + 64'
    """
    terms = [(digit, (axes[digit.digit.axis].steps[side] or 0) * digit.digit.radix) for digit in named]
    reach = abs(constant) + sum((digit.digit.count - 1) * abs(step) for digit, step in terms)
    texts = [product_term(digit.name, step, reach > INT_MAX, numbers) for digit, step in terms if step]
    if constant or not texts:
        texts.append(str(constant))
    return " + ".join(texts)


def index_expression(named: Iterable[NamedDigit], axis: int, numbers: Literals = LITERALS) -> str:
    """Return the index along one axis.

    >>> index_expression(
    ...     [NamedDigit(Digit(0, 4, 1), "t0"), NamedDigit(Digit(1, 4, 1), "t1"), NamedDigit(Digit(0, 5, 4), "g0")], 0
    ... )
    't0 + (g0) * 4u'
    """
    texts = [
        digit.name if digit.digit.radix == 1 else f"({digit.name}) * {numbers.unsigned(digit.digit.radix)}"
        for digit in named
        if digit.digit.axis == axis
    ]
    return " + ".join(texts) or "0u"


def guard_expression(named: Sequence[NamedDigit], axes: Sequence[LoopAxis], numbers: Literals = LITERALS) -> str:
    """Return the condition that all indices are inside their axes; empty if they always are.

    >>> guard_expression([NamedDigit(Digit(0, 4, 1), "t0"), NamedDigit(Digit(0, 2, 4), "g0")], [LoopAxis(7, (4, 4))])
    't0 + (g0) * 4u < 7u'
    """
    conditions = []
    for k, axis in enumerate(axes):
        own = [digit for digit in named if digit.digit.axis == k]
        last = sum((digit.digit.count - 1) * digit.digit.radix for digit in own)
        if last >= axis.extent or (numbers.always_guarded and len(own) > 1):
            conditions.append(f"{index_expression(own, k, numbers)} < {numbers.unsigned(axis.extent)}")
    return " && ".join(conditions)


def indent(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Return indented lines.

    >>> indent(["a"])
    ['    a']
    """
    return ["    " * depth + line for line in lines]


def unrolled_loop(name: str, count: int, body: Sequence[str]) -> list[str]:
    """Return an unrolled loop, or only its body if it runs once.

    >>> unrolled_loop("r", 2, ["go(r);"])
    ['UNROLL', 'for (u32 r = 0; r < 2u; ++r) {', '    go(r);', '}']
    """
    if count == 1:
        return ["{", *indent([f"const u32 {name} = 0;", *body]), "}"]
    return ["UNROLL", f"for (u32 {name} = 0; {name} < {count}u; ++{name}) {{", *indent(body), "}"]


def conditional(condition: str, body: Sequence[str]) -> list[str]:
    """Return statements under a condition, or alone if the condition is empty.

    >>> conditional("", ["go();"]), conditional("ok", ["go();"])
    (['go();'], ['if (ok) {', '    go();', '}'])
    """
    return [f"if ({condition}) {{", *indent(body), "}"] if condition else list(body)
