// SPDX-License-Identifier: Apache-2.0
//
// Unpacking of the block types of scaled.h, a line at a time.
#include "copy/line_stores.h"
#include "formats/scaled.h"
#include "simd/split_codes.h"
#include "formats/unpack.h"

namespace tw::TW_ISA {
namespace {

// Makes a line of one piece, or of two whose codes are `step` bytes apart.
using MakeLine = Line (*)(const uint8_t *codes, int64_t step, uint32_t scale, uint32_t next);

template <class Type>
TW_INLINE Sixteen unpack_piece(const uint8_t *codes, uint32_t byte) {
    using Element = typename Type::Element;
#if defined(__AVX2__)
    const Words each = words_of(split_codes<Element::bits>(codes));
#else
    uint8_t apart[piece];
    split_codes<Element::bits>(codes, apart);
    const Words each = words_of_bytes(apart);
#endif
    return sixteen_of(Element::scaled(each, Type::Scale::value(byte)));
}

template <class Type, class To>
Line make_line(const uint8_t *codes, [[maybe_unused]] int64_t step, uint32_t scale, [[maybe_unused]] uint32_t next) {
    if constexpr (std::is_same_v<To, float>) {
        return line_of(unpack_piece<Type>(codes, scale));
    } else {
        return line_of(narrowed<To>(unpack_piece<Type>(codes, scale)), narrowed<To>(unpack_piece<Type>(codes + step, next)));
    }
}

MakeLine line_maker(int block_type, int type) {
    return with_scaled(block_type, [&](auto block) -> MakeLine {
        using Type = decltype(block);
        if (type == TW_BF16) return make_line<Type, Brain>;
        if (type == TW_F16) return make_line<Type, Half>;
        return make_line<Type, float>;
    });
}

}  // namespace

void unpack_scaled(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    const Lines &lines = u.lines;
    const MakeLine make = line_maker(u.kind.type, u.type);
    with_put(lines, values, [&](auto put) {
        for_each_place(lines.mode, lines.rank, {codes, scales, values, 0}, [&](const Place &p) {
            put(p, make(p.src, lines.piece_step, *p.aux, p.aux[u.piece_aux]));
        });
    });
}

}  // namespace tw::TW_ISA
