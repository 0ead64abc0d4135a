// SPDX-License-Identifier: Apache-2.0
//
// Packing of the block types of scaled.h, eight blocks at a time: read them as float32, find scales and codes, join the
// codes, write whole lines. A NaN that its element cannot say becomes the scale of its block, over codes of 0.
#include "pack.h"

#include "scaled.h"

namespace tw::TW_ISA {
namespace {

constexpr int most_lanes = 32;
constexpr int at_once = 8;

using Load = void (*)(const Packing &p, const uint8_t *values, int64_t blocks, uint32_t *out);
using Encode = void (*)(const uint32_t *values, uint8_t *codes, uint8_t *scales);

template <class From>
void load_blocks(const Packing &p, const uint8_t *values, int64_t blocks, uint32_t *out) {
    for (int64_t i = 0; i < blocks; ++i) {
        for (int k = 0; k < p.kind.lanes; k += piece) {
            const uint8_t *from = values + i * p.step + (k == 0 ? 0 : p.half);
            if (p.ahead != 0) prefetch(from + p.ahead);
            store_line(reinterpret_cast<uint8_t *>(out + i * p.kind.lanes + k), line_of(load_sixteen<From>(from)));
        }
    }
}

Load loader(int type) {
    if (type == TW_BF16) return load_blocks<Brain>;
    if (type == TW_F16) return load_blocks<Half>;
    return load_blocks<float>;
}

// Joins sixteen codes, one byte each. May write up to 16 bytes.
template <int bits>
TW_INLINE void join_codes(const uint8_t *codes, uint8_t *out) {
#if defined(__AVX2__)
    // Neighbours become one number, twice for 6 bits: low + weight * high.
    __m128i w = _mm_maddubs_epi16(load16(codes), _mm_set1_epi16(static_cast<short>(256 << bits | 1)));
    if constexpr (bits == 4) {
        w = _mm_packus_epi16(w, w);
    } else {
        w = _mm_madd_epi16(w, _mm_set1_epi32(1 << (16 + 2 * bits) | 1));
        w = _mm_shuffle_epi8(w, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out), w);
#else
    if constexpr (bits == 4) {
        for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    } else {
        for (int i = 0; i < 4; ++i) {
            const unsigned a = codes[4 * i], b = codes[4 * i + 1], c = codes[4 * i + 2], d = codes[4 * i + 3];
            out[3 * i] = static_cast<uint8_t>(a | b << 6);
            out[3 * i + 1] = static_cast<uint8_t>(b >> 2 | c << 4);
            out[3 * i + 2] = static_cast<uint8_t>(c >> 4 | d << 2);
        }
    }
#endif
}

template <class Type>
void encode_blocks(const uint32_t *values, uint8_t *out, uint8_t *scales) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int lanes = Type::lanes, bits = Element::bits;
    Words most[at_once];
    for (int b = 0; b < at_once; ++b) {
        most[b] = Element::counted(load_words(values + b * lanes) & 0x7fffffffu);
        if constexpr (lanes > piece) {
            most[b] = larger(most[b], Element::counted(load_words(values + b * lanes + piece) & 0x7fffffffu));
        }
    }
    const Words largest = maxima(most);
    const Words scale = Scale::template choose<Element>(smaller(largest, largest_finite));
    alignas(64) uint32_t factor[piece], found[piece];
    uint8_t chosen[piece];
    store_words(factor, Scale::factor(scale));
    store_words(found, largest);
    store_bytes(chosen, scale);
    std::memcpy(scales, chosen, at_once);
    for (int b = 0; b < at_once; ++b) {
        for (int i = b * lanes; i < (b + 1) * lanes; i += piece) {
            const Words codes = Element::encode(Scale::ratio(load_words(values + i), factor[b]));
            if constexpr (bits == 8) {
                store_bytes(out + i, codes);
            } else {
                alignas(16) uint8_t apart[piece];
                store_bytes(apart, codes);
                join_codes<bits>(apart, out + i / 8 * bits);
            }
        }
    }
    if constexpr (!Element::has_nan) {
        for (int b = 0; b < at_once; ++b) {
            if (found[b] <= infinity) continue;
            std::memset(out + b * lanes / 8 * bits, 0, lanes / 8 * bits);
            scales[b] = Scale::nan;
        }
    }
}

}  // namespace

void pack_scaled(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    const Load load = loader(p.type);
    const Encode encode = with_scaled(p.kind.type, [](auto type) -> Encode { return encode_blocks<decltype(type)>; });
    alignas(64) uint32_t wide[at_once * most_lanes] = {};
    alignas(64) uint8_t made[at_once * most_lanes + piece];
    uint8_t made_scales[at_once];
    const int64_t size = p.kind.code_bytes();  // eight times that is a number of lines
    const bool streamed = p.stream && reinterpret_cast<uintptr_t>(codes) % line == 0 && p.codes_step % line == 0;
    for (int64_t i = 0; i < p.blocks; i += at_once) {
        const int64_t count = p.blocks - i < at_once ? p.blocks - i : at_once;
        for (int64_t r = 0; r < p.repeats; ++r) {
            load(p, values + r * p.values_step + i * p.step, count, wide);
            encode(wide, made, made_scales);
            std::memcpy(scales + r * p.scales_step + i, made_scales, static_cast<size_t>(count));
            uint8_t *to = codes + r * p.codes_step + i * size;
            if (streamed && count == at_once) {
                for (int64_t k = 0; k < at_once * size; k += line) stream_line(to + k, load_line(made + k));
            } else {
                std::memcpy(to, made, static_cast<size_t>(count * size));
            }
        }
    }
}

}  // namespace tw::TW_ISA
