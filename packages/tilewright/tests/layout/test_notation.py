# SPDX-License-Identifier: Apache-2.0
"""The text form: what is printed can be read back, and what cannot be read is refused with a reason."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, addr, bank, core, device
from tilewright.layout import InverseLayout, parse
from tilewright.mojo.layout.tile_layout import Layout as MojoLayout

from .strategies import injective_layouts, layouts, named_layouts, places, size_of, tilers

ALPHABET = "0123456789()[]{}<>:,@+- \tRSwoinverseandwhere.bankaddrcorx_\u0664\u00b2\u00e9"


@st.composite
def padded_layouts(draw):
    """Return layouts with guards: padded, cut into ragged tiles, and slices of these, which have offset guards."""
    layout = draw(layouts(kinds=("compact", "padded", "broadcast"), offsets=False, max_size=48))
    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    padded = tw.pad(layout, [size_of(mode) + draw(st.integers(0, 3)) for mode in modes])
    if not isinstance(padded, Layout):
        padded = layout
    if draw(st.booleans()):
        divided = tw.zipped_divide(padded, draw(tilers(padded)))
        if isinstance(divided, Layout):
            padded = divided if draw(st.booleans()) else divided(None, divided.mode(1).size - 1)
    return padded + draw(st.integers(-9, 9))


@st.composite
def replicated_layouts(draw):
    layout = draw(st.one_of(layouts(), named_layouts(), padded_layouts()))
    for _ in range(draw(st.integers(1, 2))):
        layout = tw.replicate(layout, draw(st.integers(1, 4)), draw(st.one_of(st.integers(-9, 9), places())))
    return layout


@st.composite
def swizzles(draw):
    bits = draw(st.integers(0, 4))
    shift = draw(st.integers(bits, 8)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 5)), shift)


@st.composite
def chains(draw):
    """Return compositions, as compose makes them and as they are put together by hand."""
    result = draw(st.one_of(layouts(max_size=24), padded_layouts()))
    for _ in range(draw(st.integers(1, 3))):
        result = ComposedLayout(draw(st.one_of(layouts(), padded_layouts(), swizzles())), result)
    return ComposedLayout(draw(named_layouts()), result) if draw(st.booleans()) else result


inverses = st.builds(InverseLayout, injective_layouts(negative=True, offsets=True, max_size=24))
strided = st.one_of(layouts(allow_zero=True, allow_empty=True), named_layouts(), padded_layouts(), replicated_layouts())
anything = st.one_of(strided, chains(), swizzles(), inverses)


# Both ways


@given(anything)
def test_what_is_printed_reads_back_equal(value):
    again = parse(str(value))
    assert type(again) is type(value)
    assert again == value
    assert str(again) == str(value)


@given(strided)
def test_padding_is_part_of_the_text(layout):
    again = tw.parse(str(layout))
    assert again == layout
    assert again.guards == layout.guards
    assert again.replicas == layout.replicas
    assert again.offset == layout.offset


@given(strided)
def test_blanks_do_not_matter(layout):
    text = str(layout)
    spaced = text.replace(",", " , ").replace(":", " : ").replace("(", " ( ")
    assert parse(f"  {spaced}\n") == layout
    assert parse(f"  {spaced}\n").guards == layout.guards


@given(padded_layouts())
def test_a_padded_layout_reads_back_as_the_same_function(layout):
    assert tw.functionally_equal(parse(str(layout)), layout)


def test_inverses_of_compositions_read_back():
    back = tw.left_inverse(tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2)))
    assert str(back) == "inverse((3,5):(5,1) o 6:2)"
    assert parse(str(back)) == back
    assert [parse(str(back))(place) for place in (0, 10, 6, 2, 12, 8)] == list(range(6))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4:1", Layout(4)),
        ("(4):(1)", Layout((4,))),
        ("(4,):(1,)", Layout((4,))),
        ("():()", Layout()),
        ("(4,2):(1,4)", Layout((4, 2))),
        ("((2,3),4):((1,2),6)", Layout(((2, 3), 4))),
        ("4:-1+3", Layout(4, -1) + 3),
        ("4:1-3", Layout(4) - 3),
        ("(12,100):(1@bank,2048@addr)+5@bank", Layout((12, 100), (1 @ bank, 2048 @ addr)) + 5 @ bank),
        ("4:{1@bank+64@addr}", Layout(4, 1 @ bank + 64 @ addr)),
        ("4:{1@bank-64@addr}", Layout(4, 1 @ bank - 64 @ addr)),
        ("4:{1@bank+3}", Layout(4, 1 @ bank + 3)),
        ("(8,8):(1@core.x,1@core.y)", Layout((8, 8), (1 @ core.x, 1 @ core.y))),
        ("4:2+R[2:1@device]", tw.replicate(Layout(4, 2), 2, 1 @ device)),
        ("4:2+R[2:100]+5", tw.replicate(Layout(4, 2), 2, 100) + 5),
        ("(32,4):(1,32) where (1,32)<100", tw.logical_divide(Layout(100), 32)),
        ("Sw<3,0,3>", Swizzle(3, 0, 3)),
        ("Sw<3,4,-3>", Swizzle(3, 4, -3)),
        ("Sw<2,0,2> o (4,4):(4,1)", tw.compose(Swizzle(2, 0, 2), tw.row_major(4, 4))),
        ("(3,5):(5,1) o 6:2", tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2))),
        ("inverse((2,2):(2,3))", tw.left_inverse(Layout((2, 2), (2, 3)))),
    ],
)
def test_known_texts(text, value):
    assert parse(text) == value
    assert getattr(parse(text), "guards", ()) == getattr(value, "guards", ())
    assert str(value) == text or text.startswith("(4,)")


# What cannot be read


@given(st.one_of(st.text(), st.text(ALPHABET, max_size=40)))
def test_any_text_is_read_or_refused_with_a_layout_error(text):
    try:
        value = parse(text)
    except LayoutError:
        return
    assert parse(str(value)) == value


@given(anything, st.data())
def test_damaged_text_is_read_or_refused_with_a_layout_error(value, data):
    text = str(value)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    piece = data.draw(st.text("0123456789()[]{}<>:,+- ", max_size=3))
    damaged = text[:at] + piece + text[at + cut :]
    assume(damaged != text)
    try:
        found = parse(damaged)
    except LayoutError:
        return
    assert parse(str(found)) == found


@given(anything, st.data())
def test_a_text_cut_short_never_reads_as_something_longer(value, data):
    text = str(value)
    short = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        found = parse(short)
    except LayoutError:
        return
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("4", 1),
        ("4:", 2),
        ("(4,8)", 5),
        ("(4,8:(1,4)", 4),
        ("4:1+", 4),
        ("4:1 o", 5),
        ("o 4:1", 0),
        ("4:1 4:1", 4),
        ("4;1", 1),
        ("4:1.5", 3),
        ("4:{}", 3),
        ("4:{1@bank 2}", 10),
        ("4:1@1", 4),
        ("4:1+R[2]", 7),
        ("4:1 where", 9),
        ("4:1 where 1", 11),
        ("(4 8):(1,4)", 3),
        ("Sw(2,0,2)", 2),
        ("Sw<2,0,2", 8),
        ("inverse 4:1", 8),
        ("inverse(4:1", 11),
        ("layout", 0),
    ],
)
def test_the_error_quotes_the_text_and_says_where(text, position):
    with pytest.raises(LayoutError) as caught:
        parse(text)
    assert repr(text) in str(caught.value)
    assert f"position {position}," in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-4:1", "nonnegative"),
        ("(4,8):(1)", "does not match shape"),
        ("4:(1)", "does not match shape"),
        ("4:1 where (1,2)<3", "does not match shape"),
        ("4:1+R[0:1]", "at least 1"),
        ("4:1@a..b", "cannot name an axis"),
        ("Sw<2,0>", "three numbers"),
        ("Sw<2,0,1>", "overlap"),
        ("4:1 o Sw<2,0,2>", "end with a layout"),
        ("9223372036854775809:1", "2^63"),
        ("(4294967296,4294967296):(1,4294967296)", "2^63"),
    ],
)
def test_text_that_reads_well_but_means_nothing_is_refused(text, words):
    with pytest.raises(LayoutError) as caught:
        parse(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("wrong", [None, 5, b"4:1", ["4:1"], Layout(4)])
def test_only_text_is_parsed(wrong):
    for read in (parse,):
        with pytest.raises(TypeError, match=f"got {type(wrong).__name__}"):
            read(wrong)


@pytest.mark.parametrize("opening", ["(", "{", "[", "<", "inverse(", "(4,", "-", "+", "4:", "Sw<", "4:1 o ", "4:1+R["])
def test_huge_nesting_is_refused_and_does_not_overflow_the_stack(opening):
    for text in (opening * 20_000, opening * 20_000 + "4:1" + ")" * 20_000):
        with pytest.raises(LayoutError):
            parse(text)


def test_nesting_is_read_down_to_64_levels():
    deepest = "(" * 64 + "4" + ")" * 64 + ":" + "(" * 64 + "1" + ")" * 64
    assert parse(deepest).depth == 64
    assert str(parse(deepest)) == deepest
    with pytest.raises(LayoutError, match="at most 64 levels"):
        parse(deepest.replace("4", "(4)").replace("1", "(1)"))


@pytest.mark.parametrize("digits", [41, 5000, 100_000])
@pytest.mark.parametrize(
    "form", ["{}:1", "4:{}", "4:-{}", "4:1+{}", "4:{}@bank", "Sw<{},0,1>", "4:1+R[{}:1]", "4:1 where 1<{}"]
)
def test_integers_far_beyond_64_bits_are_refused_quickly(digits, form):
    with pytest.raises(LayoutError, match="beyond 64 bits"):
        parse(form.format("9" * digits))


@given(st.integers(0, 2**63 - 1))
def test_every_integer_of_64_bits_is_read(number):
    assert parse(f"2:{number}").stride == number
    assert parse(f"2:-{number}").stride == -number


def test_a_layout_is_formatted_like_its_text_or_as_mojo_writes_it():
    layout = MojoLayout((4, (2, 3)), (6, (3, 1)))
    assert f"{layout}" == str(layout)
    assert f"{layout:>30}" == str(layout).rjust(30)
    assert f"{layout:mojo}" == "((4, (2, 3)):(6, (3, 1)))"
    assert f"{MojoLayout(4, 2):mojo}" == "((4):(2))"


def test_static_integers_of_cute_are_integers():
    assert parse("(_4,_8):(_8,_1)") == Layout((4, 8), (8, 1))
    assert parse("((_2,2),_8):((_1,_-4),_0)") == Layout(((2, 2), 8), ((1, -4), 0))
    assert parse("Sw<3,4,3> o (_8,_64):(_64,_1)") == parse("Sw<3,4,3> o (8,64):(64,1)")
    swizzled = parse("Sw<3,4,3> o _5 o (_8,_64):(_64,_1)")  # the offset is added before the swizzle
    assert swizzled == ComposedLayout(Swizzle(3, 4, 3), Layout((8, 64), (64, 1)) + 5)
    assert parse("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)") == parse("Sw<3,4,3> o (8,64):(64,1)")
    with pytest.raises(LayoutError, match="expected a layout after an offset"):
        parse("(8):(1) o _5 o Sw<3,4,3> o (8,64):(64,1)")
    for text in ("(_,4):(1,2)", "(__4):(1)", "(_x):(1)"):
        with pytest.raises(LayoutError, match="expected an integer"):
            parse(text)
