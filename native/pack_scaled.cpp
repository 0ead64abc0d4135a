// SPDX-License-Identifier: Apache-2.0
//
// Packing of the block types of scaled.h, eight blocks at a time: read them as float32, find scales and codes, join the
// codes, write whole lines. A NaN that its element cannot say becomes the scale of its block, over codes of 0.
#include "pack.h"

#include "scaled.h"
#include "sixteen.h"

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
            store_line(reinterpret_cast<uint8_t *>(out + i * p.kind.lanes + k), line_of(load_sixteen<From>(from)));
        }
    }
}

Load loader(int type) {
    if (type == TW_BF16) return load_blocks<Brain>;
    if (type == TW_F16) return load_blocks<Half>;
    return load_blocks<float>;
}

// Joins `count` codes, one byte each.
template <int bits, int count>
TW_INLINE void join_codes(const uint8_t *TW_RESTRICT codes, uint8_t *TW_RESTRICT out) {
    if constexpr (bits == 4) {
        for (int i = 0; i < count / 2; ++i) out[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    } else {
        static_assert(bits == 6);
        for (int i = 0; i < count / 4; ++i) {
            const unsigned a = codes[4 * i], b = codes[4 * i + 1], c = codes[4 * i + 2], d = codes[4 * i + 3];
            out[3 * i] = static_cast<uint8_t>(a | b << 6);
            out[3 * i + 1] = static_cast<uint8_t>(b >> 2 | c << 4);
            out[3 * i + 2] = static_cast<uint8_t>(c >> 4 | d << 2);
        }
    }
}

template <class Type>
void encode_blocks(const uint32_t *TW_RESTRICT values, uint8_t *TW_RESTRICT out, uint8_t *TW_RESTRICT scales) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int lanes = Type::lanes, bits = Element::bits;
    alignas(64) uint8_t apart[bits == 8 ? 1 : at_once * lanes];
    uint8_t *codes = bits == 8 ? out : apart;
    uint32_t largest[at_once];
    for (int b = 0; b < at_once; ++b) {
        uint32_t most = 0;
        for (int i = 0; i < lanes; ++i) {
            const uint32_t a = Element::counted(values[b * lanes + i] & 0x7fffffffu);
            most = a > most ? a : most;
        }
        largest[b] = most;
    }
    for (int b = 0; b < at_once; ++b) {
        const uint32_t finite = largest[b] < infinity ? largest[b] : largest_finite;
        const uint32_t scale = Scale::template choose<Element>(finite);
        const float factor = Scale::factor(scale);
        for (int i = 0; i < lanes; ++i) {
            const float ratio = Scale::ratio(float_of(values[b * lanes + i]), factor);
            codes[b * lanes + i] = static_cast<uint8_t>(Element::encode(bits_of(ratio)));
        }
        scales[b] = static_cast<uint8_t>(scale);
    }
    if constexpr (!Element::has_nan) {
        for (int b = 0; b < at_once; ++b) {
            if (largest[b] <= infinity) continue;
            std::memset(codes + b * lanes, 0, lanes);
            scales[b] = Scale::nan;
        }
    }
    if constexpr (bits < 8) join_codes<bits, at_once * lanes>(apart, out);
}

}  // namespace

void pack_scaled(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    const Load load = loader(p.type);
    const Encode encode = with_scaled(p.kind.type, [](auto type) -> Encode { return encode_blocks<decltype(type)>; });
    alignas(64) uint32_t wide[at_once * most_lanes] = {};
    alignas(64) uint8_t made[at_once * most_lanes];
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
