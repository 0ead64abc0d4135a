// SPDX-License-Identifier: Apache-2.0
//
// Block floats: 16 values under one exponent, each a sign and a magnitude of 7, 3 or 1 bits. For the others see
// pack_scaled.cpp.
//
// The magnitude bits of a float32 order like the float, so the largest of them, shifted, is the shared exponent.
// Values are aligned to it by a plain right shift (what falls off is lost, not sticky) and then rounded to even.
#include "copy/walk.h"
#include "formats/pack.h"

#include "simd/maxima.h"
#include "simd/sixteen.h"

namespace tw::TW_ISA {
namespace {

constexpr int block_size = 16;
constexpr uint32_t hidden = 1u << 23;
constexpr uint32_t five_low = 112u << 23;           // the 5-bit exponent 0
constexpr uint32_t five_high = (144u << 23) - 1;    // the 5-bit exponent 31 with every fraction bit

#if defined(__AVX512BW__)

template <bool five>
TW_INLINE __m512i magnitude(__m512i x) {
    __m512i a = _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
    if constexpr (five) {
        a = _mm512_max_epu32(a, _mm512_set1_epi32(static_cast<int>(five_low)));
        a = _mm512_min_epu32(a, _mm512_set1_epi32(static_cast<int>(five_high)));
        a = _mm512_sub_epi32(a, _mm512_set1_epi32(static_cast<int>(five_low)));
    }
    return a;
}

// Stores a line of codes past the caches where that is possible.
TW_INLINE void put(uint8_t *p, __m512i v, bool streamed) {
    if (streamed) {
        _mm512_stream_si512(reinterpret_cast<__m512i *>(p), v);
    } else {
        _mm512_storeu_si512(p, v);
    }
}

// Returns 64 bytes of four vectors of 16 small integers: the packs work in 128-bit lanes, the permutation reorders.
TW_INLINE __m512i bytes_of(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i all = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    return _mm512_permutexvar_epi32(order, all);
}

// Makes the codes of n blocks, one byte each, by the definition.
template <int n, int bits, bool five, class From>
void codes_by_integers(const uint8_t *values, int64_t step, __m512i e, __m512i *bytes) {
    constexpr int m = bits - 1;
    alignas(64) uint32_t shared[block_size];
    _mm512_store_si512(shared, e);
    auto code = [&](int i) {
        __m512i x = load_sixteen<From>(values + i * step).v;
        __m512i b = magnitude<five>(x);
        __m512i shift = _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(shared[i])), _mm512_srli_epi32(b, 23));
        // (b & fraction) | hidden
        __m512i mantissa = _mm512_ternarylogic_epi32(b, _mm512_set1_epi32(0x7fffff),
                                                     _mm512_set1_epi32(static_cast<int>(hidden)), 0xea);
        __mmask16 alive = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x7f800000));  // neither zero nor denormal
        __m512i aligned = _mm512_maskz_srlv_epi32(alive, mantissa, shift);
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(aligned, 24 - m), _mm512_set1_epi32(1));
        __m512i up = _mm512_add_epi32(_mm512_add_epi32(aligned, _mm512_set1_epi32((1 << (23 - m)) - 1)), odd);
        __m512i q = _mm512_srli_epi32(up, 24 - m);
        return _mm512_mask_sub_epi32(q, _mm512_movepi32_mask(x), _mm512_setzero_si512(), q);
    };
    for (int i = 0; i < n / 4; ++i) bytes[i] = bytes_of(code(4 * i), code(4 * i + 1), code(4 * i + 2), code(4 * i + 3));
}

// The same in half the instructions: a power of two aligns exactly, truncation drops what the shift would, and the
// conversion rounds to even. All of it treats the signs alike.
template <int n, int bits>
TW_INLINE void codes_by_floats(const __m512i *values, __m512i e, __m512i *bytes) {
    constexpr int m = bits - 1;
    alignas(64) uint32_t power[block_size];
    _mm512_store_si512(power, _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(277), e), 23));  // 2^(150 - e)
#if defined(__GNUC__)
    __asm__ volatile("" : "+m"(power));  // broadcasts from memory cost nothing, from a register a shuffle
#endif
    const __m512 unit = _mm512_set1_ps(1.0f / static_cast<float>(1 << (24 - m)));
    auto code = [&](int i) {
        __m512 aligned = _mm512_mul_ps(_mm512_castsi512_ps(values[i]), _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(power[i]))));
        aligned = _mm512_roundscale_ps(aligned, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        return _mm512_cvt_roundps_epi32(_mm512_mul_ps(aligned, unit), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    };
    for (int i = 0; i < n / 4; ++i) bytes[i] = bytes_of(code(4 * i), code(4 * i + 1), code(4 * i + 2), code(4 * i + 3));
}

// Packs 8 or 16 blocks at once.
template <int n, int bits, bool five, class From>
TW_INLINE void pack_some(const uint8_t *values, int64_t step, uint8_t *codes, uint8_t *scales, bool streamed) {
    constexpr int m = bits - 1;
    __m512i x[n], a[n];
    for (int i = 0; i < n; ++i) {
        x[i] = load_sixteen<From>(values + i * step).v;
        a[i] = magnitude<five>(x[i]);
    }
    __m512i e = _mm512_srli_epi32(maxima<n>(a), 23);
    const __m128i scale_bytes = _mm512_cvtepi32_epi8(e);
    if constexpr (n == 16) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(scales), scale_bytes);
    } else {
        _mm_storel_epi64(reinterpret_cast<__m128i *>(scales), scale_bytes);
    }
    __m512i bytes[n / 4];
    // Scales outside this range would over- or underflow below; denormals under one inside it shift out by themselves.
    const __m512i above = _mm512_sub_epi32(e, _mm512_set1_epi32(24));
    constexpr __mmask16 all = n == 16 ? 0xffff : 0xff;
    if (!five && (_mm512_cmple_epu32_mask(above, _mm512_set1_epi32(254 - 24)) & all) == all) {
        codes_by_floats<n, bits>(x, e, bytes);
    } else {
        codes_by_integers<n, bits, five, From>(values, step, e, bytes);
    }
    // From two's complement to sign and magnitude.
    for (int i = 0; i < n / 4; ++i) {
        __m512i q = _mm512_min_epu8(_mm512_abs_epi8(bytes[i]), _mm512_set1_epi8((1 << m) - 1));
        __m512i sign = m == 7 ? bytes[i] : _mm512_srli_epi16(bytes[i], 7 - m);
        bytes[i] = _mm512_ternarylogic_epi32(q, sign, _mm512_set1_epi8(static_cast<char>(1 << m)), 0xf8);
    }
    if constexpr (bits == 8) {
        for (int i = 0; i < n / 4; ++i) put(codes + 64 * i, bytes[i], streamed);
        return;
    }
    // Neighbouring codes become one byte, twice for 2 bits.
    __m512i pairs[n / 8];
    const __m512i weights = _mm512_set1_epi16(bits == 4 ? 0x1001 : 0x0401);
    for (int i = 0; i < n / 8; ++i) {
        __m256i low = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(bytes[2 * i], weights));
        __m256i high = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(bytes[2 * i + 1], weights));
        pairs[i] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        if constexpr (bits == 4) put(codes + 64 * i, pairs[i], streamed);
    }
    if constexpr (bits == 2) {
        for (int i = 0; i < n / 8; ++i) {
            __m256i fours = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(pairs[i], _mm512_set1_epi16(0x1001)));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(codes + 32 * i), fours);
        }
    }
}

template <int bits, bool five, class From>
TW_INLINE void pack_eight(const uint8_t *values, int64_t step, uint8_t *codes, uint8_t *scales, bool streamed) {
    pack_some<8, bits, five, From>(values, step, codes, scales, streamed);
}

#elif defined(__AVX2__)

template <bool five>
TW_INLINE __m256i magnitude(__m256i x) {
    __m256i a = _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff));
    if constexpr (five) {
        a = _mm256_max_epu32(a, _mm256_set1_epi32(static_cast<int>(five_low)));
        a = _mm256_min_epu32(a, _mm256_set1_epi32(static_cast<int>(five_high)));
        a = _mm256_sub_epi32(a, _mm256_set1_epi32(static_cast<int>(five_low)));
    }
    return a;
}

// Returns the codes of eight values under an exponent, by the definition.
template <int m, bool five>
TW_INLINE __m256i codes_by_integers(__m256i x, uint32_t shared) {
    const __m256i b = magnitude<five>(x), exponents = _mm256_set1_epi32(0x7f800000);
    const __m256i shift = _mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(shared)), _mm256_srli_epi32(b, 23));
    const __m256i fraction = _mm256_and_si256(b, _mm256_set1_epi32(0x7fffff));
    const __m256i mantissa = _mm256_or_si256(fraction, _mm256_set1_epi32(static_cast<int>(hidden)));
    const __m256i dead = _mm256_cmpeq_epi32(_mm256_and_si256(x, exponents), _mm256_setzero_si256());
    const __m256i aligned = _mm256_andnot_si256(dead, _mm256_srlv_epi32(mantissa, shift));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(aligned, 24 - m), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(aligned, _mm256_set1_epi32((1 << (23 - m)) - 1)), odd);
    return _mm256_sign_epi32(_mm256_srli_epi32(up, 24 - m), _mm256_or_si256(x, _mm256_set1_epi32(1)));
}

// The same by floats; see above.
template <int m>
TW_INLINE __m256i codes_by_floats(__m256i x, float power) {
    __m256 aligned = _mm256_mul_ps(_mm256_castsi256_ps(x), _mm256_set1_ps(power));
    aligned = _mm256_round_ps(aligned, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256 q = _mm256_mul_ps(aligned, _mm256_set1_ps(1.0f / static_cast<float>(1 << (24 - m))));
    return _mm256_cvttps_epi32(_mm256_round_ps(q, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// Makes the codes of four blocks, one byte each in two's complement, and their scales.
template <int bits, bool five, class From>
TW_INLINE void codes_of_four(const uint8_t *values, int64_t step, __m256i *bytes, uint8_t *scales) {
    constexpr int m = bits - 1;
    Sixteen x[4];
    __m256i a[4], words[4];
    for (int i = 0; i < 4; ++i) {
        x[i] = load_sixteen<From>(values + i * step);
        a[i] = _mm256_max_epu32(magnitude<five>(x[i].v[0]), magnitude<five>(x[i].v[1]));
    }
    const __m128i e = _mm_srli_epi32(maxima(a), 23);
    const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(_mm_packs_epi32(e, e), e));
    std::memcpy(scales, &four, 4);
    const __m128i usual = _mm_and_si128(_mm_cmpgt_epi32(e, _mm_set1_epi32(23)), _mm_cmpgt_epi32(_mm_set1_epi32(255), e));
    if (!five && _mm_movemask_epi8(usual) == 0xffff) {
        alignas(16) float power[4];
        const __m128i raised = _mm_slli_epi32(_mm_sub_epi32(_mm_set1_epi32(277), e), 23);  // 2^(150 - e)
        _mm_store_ps(power, _mm_castsi128_ps(raised));
        for (int i = 0; i < 4; ++i) {
            words[i] = _mm256_packs_epi32(codes_by_floats<m>(x[i].v[0], power[i]), codes_by_floats<m>(x[i].v[1], power[i]));
        }
    } else {
        alignas(16) uint32_t shared[4];
        _mm_store_si128(reinterpret_cast<__m128i *>(shared), e);
        for (int i = 0; i < 4; ++i) {
            words[i] = _mm256_packs_epi32(codes_by_integers<m, five>(x[i].v[0], shared[i]),
                                          codes_by_integers<m, five>(x[i].v[1], shared[i]));
        }
    }
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // the packs work in 128-bit lanes
    bytes[0] = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words[0], words[1]), order);
    bytes[1] = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words[2], words[3]), order);
}

// Returns the bytes made of pairs of neighbouring ones: low + weight * high.
TW_INLINE __m256i paired(__m256i a, __m256i b, int weight) {
    const __m256i weights = _mm256_set1_epi16(static_cast<short>(weight << 8 | 1));
    const __m256i both = _mm256_packus_epi16(_mm256_maddubs_epi16(a, weights), _mm256_maddubs_epi16(b, weights));
    return _mm256_permute4x64_epi64(both, 0xd8);
}

template <int bits, bool five, class From>
TW_INLINE void pack_eight(const uint8_t *values, int64_t step, uint8_t *codes, uint8_t *scales, bool streamed) {
    constexpr int m = bits - 1;
    __m256i bytes[4];
    codes_of_four<bits, five, From>(values, step, bytes, scales);
    codes_of_four<bits, five, From>(values + 4 * step, step, bytes + 2, scales + 4);
    // From two's complement to sign and magnitude.
    for (auto &b : bytes) {
        const __m256i q = _mm256_min_epu8(_mm256_abs_epi8(b), _mm256_set1_epi8((1 << m) - 1));
        const __m256i sign = m == 7 ? b : _mm256_srli_epi16(b, 7 - m);
        b = _mm256_or_si256(q, _mm256_and_si256(sign, _mm256_set1_epi8(static_cast<char>(1 << m))));
    }
    if constexpr (bits < 8) {
        bytes[0] = paired(bytes[0], bytes[1], 1 << bits);
        bytes[1] = paired(bytes[2], bytes[3], 1 << bits);
    }
    if constexpr (bits == 2) bytes[0] = paired(bytes[0], bytes[1], 16);
    for (int i = 0; i < bits / 2; ++i) {
        if (streamed && bits > 2) {  // of 2 bits, it is half a line
            stream(codes + 32 * i, {bytes[i]});
        } else {
            store(codes + 32 * i, {bytes[i]});
        }
    }
}

#endif

template <int bits, bool five, class From>
void pack_one(const uint8_t *values, uint8_t *codes, uint8_t *scale) {
    constexpr int m = bits - 1;
    uint32_t a[block_size];
    uint32_t alive[block_size];
    uint32_t sign[block_size];
    uint32_t largest = 0;
    for (int i = 0; i < block_size; ++i) {
        From x;
        std::memcpy(&x, values + static_cast<size_t>(i) * sizeof(From), sizeof(From));
        const uint32_t u = bits_of(widen(x));
        uint32_t b = u & 0x7fffffffu;
        alive[i] = b >= hidden ? ~0u : 0u;
        sign[i] = (u >> 31) << m;
        if (five) {
            b = b < five_low ? five_low : b;
            b = b > five_high ? five_high : b;
            b -= five_low;
        }
        a[i] = b;
        largest = b > largest ? b : largest;
    }
    uint32_t shared = largest >> 23;
    uint8_t code[block_size];
    for (int i = 0; i < block_size; ++i) {
        uint32_t shift = shared - (a[i] >> 23);
        uint32_t mantissa = ((a[i] & (hidden - 1)) | hidden) & alive[i];
        uint32_t aligned = shift > 31 ? 0u : mantissa >> (shift & 31);
        uint32_t q = (aligned + ((1u << (23 - m)) - 1) + ((aligned >> (24 - m)) & 1)) >> (24 - m);
        q = q < (1u << m) ? q : (1u << m) - 1;
        code[i] = static_cast<uint8_t>(q == 0 ? 0 : q | sign[i]);
    }
    *scale = static_cast<uint8_t>(shared);
    constexpr int per_byte = 8 / bits;
    for (int i = 0; i < block_size / per_byte; ++i) {
        unsigned byte = 0;
        for (int k = 0; k < per_byte; ++k) byte |= static_cast<unsigned>(code[i * per_byte + k]) << (k * bits);
        codes[i] = static_cast<uint8_t>(byte);
    }
}

template <int bits, bool five, class From>
void pack_from(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    [[maybe_unused]] const bool streamed = streams_lines(p, codes);
    const bool widens = p.type == TW_F16;  // first, a few blocks at a time
    const Mode blocks = p.mode[0], again = p.rank > 1 ? p.mode[1] : Mode{1, 0, 0, 0};
    const Mode *outer = p.mode + (p.rank > 1 ? 2 : 1);
    for_each_at(outer, p.rank - static_cast<int>(outer - p.mode), values, codes, scales, [&](auto v, auto c, auto s) {
        alignas(64) uint8_t wide[8 * line];
        // Calls pack(values, step, codes, scales) for `count` blocks from block i on, in each repeat.
        const auto repeat = [&](int64_t i, int64_t count, auto pack) {
            for (int64_t r = 0; r < again.extent; ++r) {
                const uint8_t *from = v + r * again.src + i * blocks.src;
                if (widens) widen_halves(from, blocks.src, count, wide);
                pack(widens ? wide : from, widens ? line : blocks.src, c + r * again.dst + i * bits * 2, s + r * again.aux + i);
            }
        };
        int64_t i = 0;
#if defined(__AVX2__)
        for (; i + 8 <= blocks.extent; i += 8) {
            repeat(i, 8, [&](auto from, int64_t step, auto to, auto scale) {
                pack_eight<bits, five, From>(from, step, to, scale, streamed);
            });
        }
#endif
        for (; i < blocks.extent; ++i) {
            repeat(i, 1, [](auto from, int64_t, auto to, auto scale) { pack_one<bits, five, From>(from, to, scale); });
        }
    });
}

template <int bits, bool five>
void pack_any(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    if (p.type == TW_BF16) return pack_from<bits, five, Brain>(p, values, codes, scales);
    return pack_from<bits, five, float>(p, values, codes, scales);
}

template <int bits>
void pack_of(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    if (p.kind.five) return pack_any<bits, true>(p, values, codes, scales);
    return pack_any<bits, false>(p, values, codes, scales);
}

}  // namespace

void pack_blocks(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    if (p.kind.is_scaled()) return pack_scaled(p, values, codes, scales);
    switch (p.kind.bits) {
        case 8: return pack_of<8>(p, values, codes, scales);
        case 4: return pack_of<4>(p, values, codes, scales);
        default: return pack_of<2>(p, values, codes, scales);
    }
}

}  // namespace tw::TW_ISA
