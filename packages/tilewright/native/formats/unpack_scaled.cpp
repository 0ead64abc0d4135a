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

template <class Type, class To>
TW_INLINE Line two_pieces(const uint8_t *codes, int64_t step, uint32_t scale, uint32_t next) {
    const Sixteen a = unpack_piece<Type, false>(codes, scale), b = unpack_piece<Type, false>(codes + step, next);
    if constexpr (std::is_same_v<To, Brain>) {  // numbers of a few bits, which bfloat16 holds exactly unless they are tiny
        if (Type::Scale::is_usual(scale) && Type::Scale::is_usual(next)) return brain_line(a, b);
    }
    return line_of(narrowed<To>(a), narrowed<To>(b));
}

template <class Type, class To>
void unpack_to(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    const Lines &lines = u.lines;
    with_put(lines, values, [&](auto put) {
        for_each_place(lines.mode, lines.rank, {codes, scales, values, 0}, [&](const Place &p) {
            if constexpr (std::is_same_v<To, float>) {
                put(p, line_of(unpack_piece<Type, true>(p.src, *p.aux)));
            } else {
                put(p, two_pieces<Type, To>(p.src, lines.piece_step, *p.aux, p.aux[u.piece_aux]));
            }
        });
    });
}

}  // namespace

void unpack_scaled(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    with_scaled(u.kind.type, [&](auto block) {
        using Type = decltype(block);
        if (u.type == TW_BF16) return unpack_to<Type, Brain>(u, codes, scales, values);
        if (u.type == TW_F16) return unpack_to<Type, Half>(u, codes, scales, values);
        unpack_to<Type, float>(u, codes, scales, values);
    });
}

}  // namespace tw::TW_ISA
