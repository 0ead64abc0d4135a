// SPDX-License-Identifier: Apache-2.0
//
// Block floats: 16 values under one exponent, each a sign and a magnitude of 7, 3 or 1 bits.
//
// The magnitude bits of a float32 order like the float, so the largest of them, shifted, is the shared exponent.
// Values are aligned to it by a plain right shift (what falls off is lost, not sticky) and then rounded to even.
#include "bfp.h"

#include "scalars.h"

namespace tw::TW_ISA {
namespace {

constexpr int lanes = 16;
constexpr uint32_t hidden = 1u << 23;
constexpr uint32_t five_low = 112u << 23;           // the 5-bit exponent 0
constexpr uint32_t five_high = (144u << 23) - 1;    // the 5-bit exponent 31 with every fraction bit

#if defined(__AVX512BW__)

// Returns the largest of the lanes of each of n vectors, vector i in lane i: a transpose that takes the maximum as it
// goes. With 8 vectors the upper half is a copy of something, which callers do not look at.
template <int n>
TW_INLINE __m512i maxima(const __m512i *a) {
    __m512i t[n / 2], u[n / 4], w[n / 8];
    for (int i = 0; i < n / 2; ++i) {
        t[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]));
    }
    for (int i = 0; i < n / 4; ++i) {
        u[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(t[2 * i], t[2 * i + 1]),
                                _mm512_unpackhi_epi64(t[2 * i], t[2 * i + 1]));
    }
    for (int i = 0; i < n / 8; ++i) {
        w[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0xdd));
    }
    const __m512i last = w[n / 8 - 1];
    return _mm512_max_epu32(_mm512_shuffle_i32x4(w[0], last, 0x88), _mm512_shuffle_i32x4(w[0], last, 0xdd));
}

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
template <bool streamed>
TW_INLINE void put(uint8_t *p, __m512i v) {
    if constexpr (streamed) {
        _mm512_stream_si512(reinterpret_cast<__m512i *>(p), v);
    } else {
        _mm512_storeu_si512(p, v);
    }
}

// Returns 64 bytes of four vectors of 16 small integers: the packs work in 128-bit lanes, the permutation reorders.
TW_INLINE __m512i narrowed(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i all = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    return _mm512_permutexvar_epi32(order, all);
}

// Makes the codes of n blocks, one byte each, by the definition.
template <int n, int bits, bool five>
void codes_by_integers(const uint8_t *values, int64_t step, __m512i e, __m512i *bytes) {
    constexpr int m = bits - 1;
    alignas(64) uint32_t shared[lanes];
    _mm512_store_si512(shared, e);
    auto code = [&](int i) {
        __m512i x = _mm512_loadu_si512(values + i * step);
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
    for (int i = 0; i < n / 4; ++i) bytes[i] = narrowed(code(4 * i), code(4 * i + 1), code(4 * i + 2), code(4 * i + 3));
}

// The same in half the instructions: a power of two aligns exactly, truncation drops what the shift would, and the
// conversion rounds to even. All of it treats the signs alike.
template <int n, int bits>
TW_INLINE void codes_by_floats(const __m512i *values, __m512i e, __m512i *bytes) {
    constexpr int m = bits - 1;
    alignas(64) uint32_t power[lanes];
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
    for (int i = 0; i < n / 4; ++i) bytes[i] = narrowed(code(4 * i), code(4 * i + 1), code(4 * i + 2), code(4 * i + 3));
}

// Packs 8 or 16 blocks at once.
template <int n, int bits, bool five, bool streamed>
TW_INLINE void pack_some(const uint8_t *values, int64_t step, uint8_t *codes, uint8_t *scales) {
    constexpr int m = bits - 1;
    __m512i x[n], a[n];
    for (int i = 0; i < n; ++i) {
        x[i] = _mm512_loadu_si512(values + i * step);
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
        codes_by_integers<n, bits, five>(values, step, e, bytes);
    }
    // From two's complement to sign and magnitude.
    for (int i = 0; i < n / 4; ++i) {
        __m512i q = _mm512_min_epu8(_mm512_abs_epi8(bytes[i]), _mm512_set1_epi8((1 << m) - 1));
        __m512i sign = m == 7 ? bytes[i] : _mm512_srli_epi16(bytes[i], 7 - m);
        bytes[i] = _mm512_ternarylogic_epi32(q, sign, _mm512_set1_epi8(static_cast<char>(1 << m)), 0xf8);
    }
    if constexpr (bits == 8) {
        for (int i = 0; i < n / 4; ++i) put<streamed>(codes + 64 * i, bytes[i]);
        return;
    }
    // Neighbouring codes become one byte, twice for 2 bits.
    __m512i pairs[n / 8];
    const __m512i weights = _mm512_set1_epi16(bits == 4 ? 0x1001 : 0x0401);
    for (int i = 0; i < n / 8; ++i) {
        __m256i low = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(bytes[2 * i], weights));
        __m256i high = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(bytes[2 * i + 1], weights));
        pairs[i] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        if constexpr (bits == 4) put<streamed>(codes + 64 * i, pairs[i]);
    }
    if constexpr (bits == 2) {
        for (int i = 0; i < n / 8; ++i) {
            __m256i fours = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(pairs[i], _mm512_set1_epi16(0x1001)));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(codes + 32 * i), fours);
        }
    }
}

#endif

template <int bits, bool five>
void pack_one(const uint8_t *values, uint8_t *codes, uint8_t *scale) {
    constexpr int m = bits - 1;
    uint32_t a[lanes];
    uint32_t alive[lanes];
    uint32_t sign[lanes];
    uint32_t largest = 0;
    for (int i = 0; i < lanes; ++i) {
        uint32_t u;
        std::memcpy(&u, values + 4 * i, 4);
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
    uint8_t code[lanes];
    for (int i = 0; i < lanes; ++i) {
        uint32_t shift = shared - (a[i] >> 23);
        uint32_t mantissa = ((a[i] & (hidden - 1)) | hidden) & alive[i];
        uint32_t aligned = shift > 31 ? 0u : mantissa >> (shift & 31);
        uint32_t q = (aligned + ((1u << (23 - m)) - 1) + ((aligned >> (24 - m)) & 1)) >> (24 - m);
        q = q < (1u << m) ? q : (1u << m) - 1;
        code[i] = static_cast<uint8_t>(q == 0 ? 0 : q | sign[i]);
    }
    *scale = static_cast<uint8_t>(shared);
    constexpr int per_byte = 8 / bits;
    for (int i = 0; i < lanes / per_byte; ++i) {
        unsigned byte = 0;
        for (int k = 0; k < per_byte; ++k) byte |= static_cast<unsigned>(code[i * per_byte + k]) << (k * bits);
        codes[i] = static_cast<uint8_t>(byte);
    }
}

template <int bits, bool five, bool streamed>
void pack_repeated(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    int64_t i = 0;
#if defined(__AVX512BW__)
    const int64_t step = p.step;
    for (; i + 8 <= p.blocks; i += 8) {
        for (int64_t r = 0; r < p.repeats; ++r) {
            pack_some<8, bits, five, streamed>(values + r * p.values_step + i * step, step,
                                               codes + r * p.codes_step + i * bits * 2, scales + r * p.scales_step + i);
        }
    }
#endif
    for (; i < p.blocks; ++i) {
        for (int64_t r = 0; r < p.repeats; ++r) {
            pack_one<bits, five>(values + r * p.values_step + i * p.step, codes + r * p.codes_step + i * bits * 2,
                                 scales + r * p.scales_step + i);
        }
    }
}

template <int bits, bool five>
void pack_all(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    if (p.stream && reinterpret_cast<uintptr_t>(codes) % 64 == 0 && p.codes_step % 64 == 0) {
        pack_repeated<bits, five, true>(p, values, codes, scales);
    } else {
        pack_repeated<bits, five, false>(p, values, codes, scales);
    }
}

#if defined(__AVX2__)

// Returns the codes of a block, one byte each.
template <int bits>
TW_INLINE __m128i split_codes(const uint8_t *codes) {
    if constexpr (bits == 8) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i *>(codes));
    } else if constexpr (bits == 4) {
        __m128i w = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(codes)));
        return _mm_and_si128(_mm_or_si128(w, _mm_slli_epi16(w, 4)), _mm_set1_epi8(15));
    } else {
        int32_t four;
        std::memcpy(&four, codes, 4);
        __m128i w = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
        w = _mm_or_si128(w, _mm_slli_epi32(w, 6));
        return _mm_and_si128(_mm_or_si128(w, _mm_slli_epi32(w, 12)), _mm_set1_epi8(3));
    }
}

#endif

// Any scale, also those that give subnormal, infinite or no numbers.
template <int bits, bool five>
void unpack_rare(const uint8_t *codes, uint32_t shared, uint8_t *values) {
    constexpr int m = bits - 1;
    constexpr int per_byte = 8 / bits;
    for (int i = 0; i < lanes; ++i) {
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

template <int bits, bool five, bool streamed>
TW_INLINE void unpack_one(const uint8_t *codes, uint32_t shared, uint8_t *values) {
    constexpr uint32_t m = bits - 1;
    constexpr uint32_t bias = five ? 112 : 0;
    // Where every result is a normal number, magnitude times a power of two is exact.
    if (shared < m || shared + bias > 254) {
        unpack_rare<bits, five>(codes, shared, values);
        return;
    }
    float unit = float_of((shared + bias - (m - 1)) << 23);
#if defined(__AVX512BW__)
    __m512i c = _mm512_cvtepu8_epi32(split_codes<bits>(codes));
    __m512 q = _mm512_cvtepi32_ps(_mm512_and_si512(c, _mm512_set1_epi32((1 << m) - 1)));
    __m512i v = _mm512_castps_si512(_mm512_mul_ps(q, _mm512_set1_ps(unit)));
    // v | (sign & top)
    put<streamed>(values, _mm512_ternarylogic_epi32(v, _mm512_slli_epi32(c, 31 - m), _mm512_set1_epi32(INT32_MIN), 0xf8));
#elif defined(__AVX2__)
    __m128i bytes = split_codes<bits>(codes);
    for (int i = 0; i < 2; ++i) {
        __m256i c = _mm256_cvtepu8_epi32(i ? _mm_unpackhi_epi64(bytes, bytes) : bytes);
        __m256 q = _mm256_cvtepi32_ps(_mm256_and_si256(c, _mm256_set1_epi32((1 << m) - 1)));
        __m256i v = _mm256_castps_si256(_mm256_mul_ps(q, _mm256_set1_ps(unit)));
        __m256i sign = _mm256_and_si256(_mm256_slli_epi32(c, 31 - m), _mm256_set1_epi32(INT32_MIN));
        Vec made{_mm256_or_si256(v, sign)};
        if constexpr (streamed) {
            stream(values + 32 * i, made);
        } else {
            store(values + 32 * i, made);
        }
    }
#else
    constexpr int per_byte = 8 / bits;
    for (int i = 0; i < lanes; ++i) {
        uint32_t code = (uint32_t{codes[i / per_byte]} >> (i % per_byte * bits)) & ((1u << bits) - 1);
        float q = static_cast<float>(static_cast<int32_t>(code & ((1u << m) - 1))) * unit;
        uint32_t value = bits_of(q) | (code >> m) << 31;
        std::memcpy(values + 4 * i, &value, 4);
    }
#endif
}

template <int bits, bool five, bool streamed>
void unpack_run(const uint8_t *codes, int64_t codes_step, const uint8_t *scales, int64_t scales_step, uint8_t *values,
                int64_t values_step, int64_t blocks) {
    for (int64_t i = 0; i < blocks; ++i) {
        unpack_one<bits, five, streamed>(codes + i * codes_step, scales[i * scales_step], values + i * values_step);
    }
}

template <int bits, bool five>
void unpack_all(const uint8_t *codes, int64_t codes_step, const uint8_t *scales, int64_t scales_step, uint8_t *values,
                int64_t values_step, int64_t blocks, bool stream) {
    if (stream && reinterpret_cast<uintptr_t>(values) % 64 == 0 && values_step % 64 == 0) {
        unpack_run<bits, five, true>(codes, codes_step, scales, scales_step, values, values_step, blocks);
    } else {
        unpack_run<bits, five, false>(codes, codes_step, scales, scales_step, values, values_step, blocks);
    }
}

}  // namespace

void pack_blocks(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    auto *pack = pack_all<8, false>;
    if (p.kind.bits == 8) pack = p.kind.five ? pack_all<8, true> : pack_all<8, false>;
    if (p.kind.bits == 4) pack = p.kind.five ? pack_all<4, true> : pack_all<4, false>;
    if (p.kind.bits == 2) pack = p.kind.five ? pack_all<2, true> : pack_all<2, false>;
    pack(p, values, codes, scales);
}

void unpack_blocks(BlockKind kind, const uint8_t *codes, int64_t codes_step, const uint8_t *scales, int64_t scales_step,
                   uint8_t *values, int64_t values_step, int64_t blocks, bool stream) {
    auto *unpack = unpack_all<8, false>;
    if (kind.bits == 8) unpack = kind.five ? unpack_all<8, true> : unpack_all<8, false>;
    if (kind.bits == 4) unpack = kind.five ? unpack_all<4, true> : unpack_all<4, false>;
    if (kind.bits == 2) unpack = kind.five ? unpack_all<2, true> : unpack_all<2, false>;
    unpack(codes, codes_step, scales, scales_step, values, values_step, blocks, stream);
}

}  // namespace tw::TW_ISA
