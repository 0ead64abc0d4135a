// SPDX-License-Identifier: Apache-2.0
//
// Packing of the block types of scaled.h, eight blocks at a time: find their scales, then their codes, join these and write
// whole lines. A NaN that its element cannot say becomes the scale of its block, over codes of 0.
#include "formats/pack.h"

#include "formats/scaled.h"

namespace tw::TW_ISA {
namespace {

constexpr int at_once = 8;

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

// Writes the codes of the pieces that load(block, number) gives, under the scales of their blocks. `usual` says that there
// is neither NaN nor infinity.
template <class Type, bool usual, class Load>
TW_INLINE void encode_blocks(const Words &scale, uint8_t *out, Load load) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int bits = Element::bits, pieces = Type::block_size / piece;
    alignas(64) uint32_t factor[piece];
    store_words(factor, Scale::factor(scale));
    for (int b = 0; b < at_once; ++b) {
        for (int k = 0; k < pieces; ++k, out += 2 * bits) {
            const Words codes = Element::template encode<usual>(Scale::ratio(load(b, k), factor[b]));
            if constexpr (bits == 8) {
                store_bytes(out, codes);
            } else {
                alignas(16) uint8_t apart[piece];
                store_bytes(apart, codes);
                join_codes<bits>(apart, out);
            }
        }
    }
}

// Packs eight blocks of float32 that follow each other, in which anything may occur.
template <class Type>
TW_NOINLINE void pack_any(const uint32_t *values, uint8_t *out, uint8_t *scales) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int block_size = Type::block_size, size = block_size * Element::bits / 8;
    const auto load = [&](int b, int k) { return load_words(values + b * block_size + k * piece); };
    Words most[at_once];
    for (int b = 0; b < at_once; ++b) {
        most[b] = 0u;
        for (int k = 0; k < block_size / piece; ++k) most[b] = larger(most[b], Element::counted(load(b, k) & 0x7fffffffu));
    }
    const Words largest = maxima(most);
    const Words scale = Scale::template choose<Element>(smaller(largest, largest_finite));
    store_bytes(scales, scale);
    encode_blocks<Type, false>(scale, out, load);
    alignas(64) uint32_t found[piece];
    store_words(found, largest);
    for (int b = 0; b < at_once && !Element::has_nan; ++b) {
        if (found[b] <= infinity) continue;
        std::memset(out + b * size, 0, size);
        scales[b] = Scale::nan;
    }
}

template <class Type, class From>
struct Packer {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    static constexpr int block_size = Type::block_size, size = block_size * Element::bits / 8, pieces = block_size / piece;

    // Returns a piece of a block.
    static TW_INLINE Words load(const Packing &p, const uint8_t *values, int64_t b, int k) {
        return words_of(load_sixteen<From>(values + b * p.step + (k == 0 ? 0 : p.half)));
    }

    // Packs eight blocks into codes and scales that have space for sixteen bytes more.
    static TW_INLINE void pack(const Packing &p, const uint8_t *values, uint8_t *out, uint8_t *scales) {
#if defined(__AVX2__)
        Words most[at_once];
        for (int b = 0; b < at_once; ++b) {
            most[b] = load(p, values, b, 0) & 0x7fffffffu;
            if constexpr (pieces > 1) most[b] = larger(most[b], load(p, values, b, 1) & 0x7fffffffu);
        }
        const Words largest = maxima(most);
        if (!any_above(largest, largest_finite)) {
            const Words scale = Scale::template choose<Element>(largest);
            store_bytes(scales, scale);
            return encode_blocks<Type, true>(scale, out, [&](int b, int k) { return load(p, values, b, k); });
        }
#endif
        alignas(64) uint32_t wide[at_once * block_size];
        copy_blocks(p, values, at_once, wide);
        pack_any<Type>(wide, out, scales);
    }

    static TW_INLINE void copy_blocks(const Packing &p, const uint8_t *values, int64_t count, uint32_t *out) {
        for (int64_t b = 0; b < count; ++b) {
            for (int k = 0; k < pieces; ++k) store_words(out + b * block_size + k * piece, load(p, values, b, k));
        }
    }

    static void run(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
        alignas(64) uint8_t made[at_once * size + piece];
        uint8_t made_scales[piece];
        // Eight times the codes of a block are a number of lines.
        const bool streamed = p.stream && reinterpret_cast<uintptr_t>(codes) % line == 0 && p.codes_step % line == 0;
        int64_t i = 0;
        for (; i + at_once <= p.blocks; i += at_once) {
            for (int64_t r = 0; r < p.repeats; ++r) {
                const uint8_t *from = values + r * p.values_step + i * p.step;
                if (p.ahead != 0) fetch(p, from + p.ahead);
                pack(p, from, made, made_scales);
                std::memcpy(scales + r * p.scales_step + i, made_scales, at_once);
                uint8_t *to = codes + r * p.codes_step + i * size;
                if (streamed) {
                    for (int k = 0; k < at_once * size; k += line) stream_line(to + k, load_line(made + k));
                } else {
                    for (int k = 0; k < at_once * size; k += line) store_line(to + k, load_line(made + k));
                }
            }
        }
        if (i == p.blocks) return;
        // The last few, together with blocks of zeros.
        alignas(64) uint32_t wide[at_once * block_size] = {};
        for (int64_t r = 0; r < p.repeats; ++r) {
            copy_blocks(p, values + r * p.values_step + i * p.step, p.blocks - i, wide);
            pack_any<Type>(wide, made, made_scales);
            std::memcpy(scales + r * p.scales_step + i, made_scales, static_cast<size_t>(p.blocks - i));
            std::memcpy(codes + r * p.codes_step + i * size, made, static_cast<size_t>((p.blocks - i) * size));
        }
    }

    static TW_INLINE void fetch(const Packing &p, const uint8_t *values) {
        for (int b = 0; b < at_once; ++b) {
            for (int k = 0; k < pieces; ++k) prefetch_near(values + b * p.step + k * p.half);
        }
    }
};

using Pack = void (*)(const Packing &, const uint8_t *, uint8_t *, uint8_t *);

}  // namespace

void pack_scaled(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    const Pack pack = with_scaled(p.kind.type, [&](auto type) -> Pack {
        using Type = decltype(type);
        if (p.type == TW_BF16) return Packer<Type, Brain>::run;
        if (p.type == TW_F16) return Packer<Type, Half>::run;
        return Packer<Type, float>::run;
    });
    pack(p, values, codes, scales);
}

}  // namespace tw::TW_ISA
