// SPDX-License-Identifier: Apache-2.0
//
// Unpacking of block floats; see pack.cpp for what they are.
#include "formats/unpack.h"

#include "copy/line_stores.h"
#include "simd/split_codes.h"

namespace tw::TW_ISA {
namespace {

constexpr int block_size = 16;

// Any scale, also those that give subnormal, infinite or no numbers.
template <int bits, bool five>
TW_RARE void unpack_rare(const uint8_t *codes, uint32_t shared, uint8_t *values) {
    constexpr int m = bits - 1;
    constexpr int per_byte = 8 / bits;
    for (int i = 0; i < block_size; ++i) {
        uint32_t code = (uint32_t{codes[i / per_byte]} >> (i % per_byte * bits)) & ((1u << bits) - 1);
        uint32_t q = code & ((1u << m) - 1);
        uint32_t sign = (code >> m) << 31;
        uint32_t k = 0;
        while (q != 0 && ((q << k) >> (m - 1)) == 0) ++k;
        uint32_t exponent = shared - k + (five ? 112u : 0u);
        uint32_t value = sign | (exponent << 23) | (((q << k) - (1u << (m - 1))) << (24 - m));
        value = q == 0 ? sign : k > shared ? 0u : value;
        std::memcpy(values + 4 * i, &value, 4);
    }
}

// Returns whether every result is a normal number: magnitude times a power of two is exact then, and so is bfloat16.
template <int bits, bool five>
TW_INLINE bool is_usual(uint32_t shared) {
    return shared >= bits - 1 && shared + (five ? 112 : 0) <= 254;
}

// Returns the values of a block with a usual scale.
template <int bits, bool five>
TW_INLINE Sixteen unpack_usual(const uint8_t *codes, uint32_t shared) {
    constexpr uint32_t m = bits - 1;
    constexpr uint32_t bias = five ? 112 : 0;
    const float unit = float_of((shared + bias - (m - 1)) << 23);
#if defined(__AVX512BW__)
    __m512i c = _mm512_cvtepu8_epi32(split_codes<bits>(codes));
    __m512 q = _mm512_cvtepi32_ps(_mm512_and_si512(c, _mm512_set1_epi32((1 << m) - 1)));
    __m512i v = _mm512_castps_si512(_mm512_mul_ps(q, _mm512_set1_ps(unit)));
    // v | (sign & top)
    return {_mm512_ternarylogic_epi32(v, _mm512_slli_epi32(c, 31 - m), _mm512_set1_epi32(INT32_MIN), 0xf8)};
#elif defined(__AVX2__)
    const __m128i bytes = split_codes<bits>(codes);
    const auto eight = [&](__m128i part) {
        __m256i c = _mm256_cvtepu8_epi32(part);
        __m256 q = _mm256_cvtepi32_ps(_mm256_and_si256(c, _mm256_set1_epi32((1 << m) - 1)));
        __m256i v = _mm256_castps_si256(_mm256_mul_ps(q, _mm256_set1_ps(unit)));
        __m256i sign = _mm256_and_si256(_mm256_slli_epi32(c, 31 - m), _mm256_set1_epi32(INT32_MIN));
        return _mm256_or_si256(v, sign);
    };
    return {{eight(bytes), eight(_mm_unpackhi_epi64(bytes, bytes))}};
#else
    constexpr int per_byte = 8 / bits;
    Sixteen x;
    for (int i = 0; i < block_size; ++i) {
        uint32_t code = (uint32_t{codes[i / per_byte]} >> (i % per_byte * bits)) & ((1u << bits) - 1);
        float q = static_cast<float>(static_cast<int32_t>(code & ((1u << m) - 1))) * unit;
        x.v[i] = float_of(bits_of(q) | (code >> m) << 31);
    }
    return x;
#endif
}

// Returns the values of any block.
template <int bits, bool five>
TW_INLINE Sixteen unpack_one(const uint8_t *codes, uint32_t shared) {
    if (is_usual<bits, five>(shared)) return unpack_usual<bits, five>(codes, shared);
    alignas(64) uint8_t values[4 * block_size];
    unpack_rare<bits, five>(codes, shared, values);
    return load_sixteen<float>(values);
}

// Returns two blocks as bfloat16, or as float16.
template <int bits, bool five>
TW_INLINE Line two_blocks(bool brains, const uint8_t *codes, int64_t step, uint32_t shared, uint32_t next) {
    if (brains && is_usual<bits, five>(shared) && is_usual<bits, five>(next)) {
        return brain_line(unpack_usual<bits, five>(codes, shared), unpack_usual<bits, five>(codes + step, next));
    }
    const Sixteen a = unpack_one<bits, five>(codes, shared), b = unpack_one<bits, five>(codes + step, next);
    return brains ? line_of(narrowed<Brain>(a), narrowed<Brain>(b)) : line_of(narrowed<Half>(a), narrowed<Half>(b));
}

template <int bits, bool five, bool wide>
void unpack_to(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    const Lines &lines = u.lines;
    [[maybe_unused]] const bool brains = u.type == TW_BF16;
    with_put(lines, values, [&](auto put) {
        for_each_place(lines.mode, lines.rank, {codes, scales, values, 0}, [&](const Place &p) {
            if constexpr (wide) {
                put(p, line_of(unpack_one<bits, five>(p.src, *p.aux)));
            } else {
                put(p, two_blocks<bits, five>(brains, p.src, lines.piece_step, *p.aux, p.aux[u.piece_aux]));
            }
        });
    });
}

template <int bits, bool five>
void unpack_any(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    if (u.type == TW_F32) return unpack_to<bits, five, true>(u, codes, scales, values);
    return unpack_to<bits, five, false>(u, codes, scales, values);
}

template <int bits>
void unpack_of(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    if (u.kind.five) return unpack_any<bits, true>(u, codes, scales, values);
    return unpack_any<bits, false>(u, codes, scales, values);
}

}  // namespace

void unpack_blocks(const Unpacking &u, const uint8_t *codes, const uint8_t *scales, uint8_t *values) {
    if (u.kind.is_scaled()) return unpack_scaled(u, codes, scales, values);
    switch (u.kind.bits) {
        case 8: return unpack_of<8>(u, codes, scales, values);
        case 4: return unpack_of<4>(u, codes, scales, values);
        default: return unpack_of<2>(u, codes, scales, values);
    }
}

}  // namespace tw::TW_ISA
