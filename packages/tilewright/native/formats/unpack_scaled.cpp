// SPDX-License-Identifier: Apache-2.0
//
// Unpacking of the block types of scaled.h, a line at a time.
#include "copy/line_stores.h"
#include "formats/scaled.h"
#include "simd/split_codes.h"
#include "formats/unpack.h"

namespace tw::TW_ISA {
namespace {

template <class Type, bool wide>
TW_INLINE Sixteen unpack_piece(const uint8_t *codes, uint32_t byte) {
    using Element = typename Type::Element;
#if defined(__AVX2__)
    const Words each = words_of(split_codes<Element::bits>(codes));
#else
    uint8_t apart[piece];
    split_codes<Element::bits>(codes, apart);
    const Words each = words_of_bytes(apart);
#endif
    return sixteen_of(Element::template scaled<wide>(each, Type::Scale::value(byte)));
}

// Returns two pieces as bfloat16, or as float16.
template <class Type>
TW_INLINE Line two_pieces(bool brains, const uint8_t *codes, int64_t step, uint32_t scale, uint32_t next) {
    const Sixteen a = unpack_piece<Type, false>(codes, scale), b = unpack_piece<Type, false>(codes + step, next);
    if (!brains) return line_of(narrowed<Half>(a), narrowed<Half>(b));
    // Numbers of a few bits, which bfloat16 holds exactly unless they are tiny.
    if (Type::Scale::is_usual(scale) && Type::Scale::is_usual(next)) return brain_line(a, b);
    return line_of(narrowed<Brain>(a), narrowed<Brain>(b));
}

template <class Type, bool wide>
void unpack_to(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    const Lines &lines = u.lines;
    [[maybe_unused]] const bool brains = u.type == TW_BF16;
    with_put(lines, values, [&](auto put) {
        for_each_place(lines.mode, lines.rank, {codes, scales, values, 0}, [&](const Place &p) {
            if constexpr (wide) {
                put(p, line_of(unpack_piece<Type, true>(p.src, *p.aux)));
            } else {
                put(p, two_pieces<Type>(brains, p.src, lines.piece_step, *p.aux, p.aux[u.piece_aux]));
            }
        });
    });
}

}  // namespace

void unpack_scaled(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    with_scaled(u.kind.type, [&](auto block) {
        using Type = decltype(block);
        if (u.type == TW_F32) return unpack_to<Type, true>(u, codes, scales, values);
        unpack_to<Type, false>(u, codes, scales, values);
    });
}

}  // namespace tw::TW_ISA
