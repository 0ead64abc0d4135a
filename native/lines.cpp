// SPDX-License-Identifier: Apache-2.0
#include "lines.h"

#include "scalars.h"
#include "walk.h"

namespace tw::TW_ISA {
namespace {

#if defined(__AVX512BW__)

TW_INLINE __m256i brain16(__m512i u) {
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan = _mm512_cmp_ps_mask(_mm512_castsi512_ps(u), _mm512_castsi512_ps(u), _CMP_UNORD_Q);
    __m512i r = _mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), nan, _mm512_set1_epi32(0x7fc0));
    return _mm512_cvtepi32_epi16(r);
}
TW_INLINE __m256i load32(const uint8_t *p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)); }

// Returns x with every NaN replaced by the one without sign and payload.
TW_INLINE __m512 plain_nan(__m512 x) {
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_ps(float_of(quiet_nan)));
}

// Returns half a line made of 16 elements.
template <LineOp op>
TW_INLINE __m256i half(const uint8_t *s) {
    if constexpr (op == LineOp::f32_to_bf16) return brain16(_mm512_loadu_si512(s));
    if constexpr (op == LineOp::f32_to_f16) return _mm512_cvtps_ph(plain_nan(_mm512_loadu_ps(s)), _MM_FROUND_TO_NEAREST_INT);
    return load32(s);
}

// Returns a line.
template <LineOp op, int pieces>
TW_INLINE Vec make_line(const uint8_t *s, int64_t step) {
    if constexpr (op == LineOp::bf16_to_f32 && pieces == 1) {
        return {_mm512_slli_epi32(_mm512_cvtepu16_epi32(load32(s)), 16)};
    } else if constexpr (op == LineOp::f16_to_f32 && pieces == 1) {
        return {_mm512_castps_si512(plain_nan(_mm512_cvtph_ps(load32(s))))};
    } else if constexpr (op == LineOp::bits && pieces == 1) {
        return load(s);
    } else if constexpr (pieces == 4) {
        __m512i v = _mm512_castsi128_si512(load16(s));
        v = _mm512_inserti32x4(v, load16(s + step), 1);
        v = _mm512_inserti32x4(v, load16(s + 2 * step), 2);
        return {_mm512_inserti32x4(v, load16(s + 3 * step), 3)};
    } else {
        if constexpr (pieces == 1) step = 64;
        return {_mm512_inserti64x4(_mm512_castsi256_si512(half<op>(s)), half<op>(s + step), 1)};
    }
}

template <bool streamed, LineOp op, int pieces>
TW_INLINE void put_line(const uint8_t *s, int64_t step, uint8_t *d) {
    Vec v = make_line<op, pieces>(s, step);
    if constexpr (streamed) {
        stream(d, v);
    } else {
        store(d, v);
    }
}

#else

template <class From, class To>
TW_INLINE void convert_piece(const uint8_t *TW_RESTRICT s, uint8_t *TW_RESTRICT to, int count) {
    for (int i = 0; i < count; ++i) {
        From x;
        std::memcpy(&x, s + i * sizeof(From), sizeof(From));
        To y = narrow<To>(widen(x));
        std::memcpy(to + i * sizeof(To), &y, sizeof(To));
    }
}

template <bool streamed, LineOp op, int pieces>
TW_INLINE void put_line(const uint8_t *s, int64_t step, uint8_t *d) {
    constexpr int bytes = 64 / pieces;
    alignas(64) uint8_t made[64];
    for (int i = 0; i < pieces; ++i) {
        const uint8_t *from = s + i * step;
        if constexpr (op == LineOp::bits) std::memcpy(made + i * bytes, from, bytes);
        if constexpr (op == LineOp::f32_to_bf16) convert_piece<float, Brain>(from, made + i * bytes, bytes / 2);
        if constexpr (op == LineOp::f32_to_f16) convert_piece<float, Half>(from, made + i * bytes, bytes / 2);
        if constexpr (op == LineOp::bf16_to_f32) convert_piece<Brain, float>(from, made + i * bytes, bytes / 4);
        if constexpr (op == LineOp::f16_to_f32) convert_piece<Half, float>(from, made + i * bytes, bytes / 4);
    }
    for (int64_t i = 0; i < 64; i += width) {
        if constexpr (streamed) {
            stream(d + i, load(made + i));
        } else {
            store(d + i, load(made + i));
        }
    }
}

#endif

template <bool streamed, LineOp op, int pieces>
void run(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    const int64_t step = lines.piece_step;
    if (pieces > 1 && lines.sweep) {
        // Pieces from one page defeat the hardware's prefetcher.
        auto next = reinterpret_cast<uintptr_t>(src) + 2048;
        for_each_piece(lines.mode, lines.rank, src, dst, [&](const uint8_t *s, uint8_t *d) {
            prefetch(reinterpret_cast<const uint8_t *>(next));
            next += 64;
            put_line<streamed, op, pieces>(s, step, d);
        });
        return;
    }
    for_each_piece(lines.mode, lines.rank, src, dst,
                   [&](const uint8_t *s, uint8_t *d) { put_line<streamed, op, pieces>(s, step, d); });
}

template <LineOp op, int pieces>
void run_either(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    if (lines.stream) return run<true, op, pieces>(lines, src, dst);
    return run<false, op, pieces>(lines, src, dst);
}

template <LineOp op>
void run_narrowing(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    if (lines.pieces == 2) return run_either<op, 2>(lines, src, dst);
    return run_either<op, 1>(lines, src, dst);
}

}  // namespace

void move_lines(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    switch (lines.op) {
        case LineOp::bits:
            if (lines.pieces == 4) return run_either<LineOp::bits, 4>(lines, src, dst);
            return run_narrowing<LineOp::bits>(lines, src, dst);
        case LineOp::f32_to_bf16: return run_narrowing<LineOp::f32_to_bf16>(lines, src, dst);
        case LineOp::f32_to_f16: return run_narrowing<LineOp::f32_to_f16>(lines, src, dst);
        case LineOp::bf16_to_f32: return run_either<LineOp::bf16_to_f32, 1>(lines, src, dst);
        case LineOp::f16_to_f32: return run_either<LineOp::f16_to_f32, 1>(lines, src, dst);
    }
}

}  // namespace tw::TW_ISA
