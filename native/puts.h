// SPDX-License-Identifier: Apache-2.0
//
// Ways to write the lines that a kernel makes: ordinary stores, streaming stores, and streaming stores to a target that
// does not lie on lines. Only for the files compiled once for each instruction set.
//
// In the last case a line that is made covers the end of one line of the target and the start of the next. Lines are
// made in the order of the target along each of a few rows of it; what the last one of a row left over is kept, and
// makes whole lines together with the one that follows.
#pragma once

#include "move.h"
#include "sixteen.h"
#include "walk.h"

namespace tw::TW_ISA {
namespace {

struct Storing {
    TW_INLINE void put(const Place &p, const Line &a) { store_line(p.dst, a); }
    void finish(const Mode *, int, uint8_t *) {}
};

struct Streaming {
    TW_INLINE void put(const Place &p, const Line &a) { stream_line(p.dst, a); }
    void finish(const Mode *, int, uint8_t *) {}
};

// Stores bytes [from, to) of a line at p.
TW_INLINE void store_between(uint8_t *p, const Line &a, int64_t from, int64_t to) {
#if defined(__AVX512BW__)
    const __mmask64 mask = first(to) & ~first(from);
    _mm512_mask_storeu_epi8(p, mask, a.v[0].v);
#else
    alignas(64) uint8_t bytes[line];
    store_line(bytes, a);
    std::memcpy(p + from, bytes + from, static_cast<size_t>(to - from));
#endif
}

// The least distance in bytes by which lines can be shifted; 0: not at all.
#if defined(__AVX512BW__)
constexpr int shift_unit = 2;
#elif defined(__AVX2__)
constexpr int shift_unit = 4;
#else
constexpr int shift_unit = 0;
#endif

// Returns the last `past` bytes of a and then the first of b. `past` is a multiple of `unit`.
template <int unit>
TW_INLINE Line joined(const Line &a, const Line &b, int64_t past) {
#if defined(__AVX512BW__)
    if constexpr (unit == 4) {
        const __m512i up = _mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
        const __m512i from = _mm512_sub_epi32(up, _mm512_set1_epi32(static_cast<int>(past / 4)));
        return {{{_mm512_permutex2var_epi32(a.v[0].v, from, b.v[0].v)}}};
    } else {
        const __m512i up = _mm512_setr_epi32(0x210020, 0x230022, 0x250024, 0x270026, 0x290028, 0x2b002a, 0x2d002c,
                                             0x2f002e, 0x310030, 0x330032, 0x350034, 0x370036, 0x390038, 0x3b003a,
                                             0x3d003c, 0x3f003e);
        const __m512i from = _mm512_sub_epi16(up, _mm512_set1_epi16(static_cast<short>(past / 2)));
        return {{{_mm512_permutex2var_epi16(a.v[0].v, from, b.v[0].v)}}};
    }
#elif defined(__AVX2__)
    // Each half comes from two neighbours of a.0, a.1, b.0, b.1, rotated by the same number of elements.
    const bool far = past > 32;
    const __m256i up = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i from = _mm256_sub_epi32(up, _mm256_set1_epi32(static_cast<int>(past / 4)));
    const __m256i low = far ? a.v[0].v : a.v[1].v, middle = far ? a.v[1].v : b.v[0].v, high = far ? b.v[0].v : b.v[1].v;
    const __m256i x = _mm256_permutevar8x32_epi32(low, from), y = _mm256_permutevar8x32_epi32(middle, from);
    const __m256i z = _mm256_permutevar8x32_epi32(high, from);
    const __m256i border = _mm256_set1_epi32(static_cast<int>(far ? past / 4 - 8 : past / 4));
    const __m256i before = _mm256_cmpgt_epi32(border, up);
    return {{{_mm256_blendv_epi8(y, x, before)}, {_mm256_blendv_epi8(z, y, before)}}};
#else
    (void)past;
    return unit > 0 ? b : a;
#endif
}

template <int unit>
struct Shifting {
    uint64_t fresh = ~uint64_t{0};  // rows that have not begun
    alignas(64) uint8_t left[most_rows * line];

    TW_INLINE void put(const Place &p, const Line &a) {
        const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.dst) & (line - 1));
        uint8_t *kept = left + p.carry;
        const Line before = load_line(kept);
        store_line(kept, a);
        const uint64_t row = uint64_t{1} << (p.carry / line);
        if ((fresh & row) == 0) {
            stream_line(p.dst - past, joined<unit>(before, a, past));
        } else {
            fresh &= ~row;
            store_between(p.dst, a, 0, line - past);
        }
    }

    // Writes what the rows have left over.
    void finish(const Mode *mode, int rank, uint8_t *dst) {
        Mode rows[max_modes];
        int count = 0;
        for (int i = 0; i < rank; ++i) {
            dst += mode[i].carry == 0 ? (mode[i].extent - 1) * mode[i].dst : 0;
            if (mode[i].carry != 0) rows[count++] = {mode[i].extent, 0, mode[i].dst, 0, mode[i].carry};
        }
        for_each_place(rows, count, {nullptr, nullptr, dst, 0}, [&](const Place &p) {
            const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.dst) & (line - 1));
            if (past != 0) store_between(p.dst, load_line(left + p.carry), line - past, line);
        });
    }
};

// Calls make(put) with the way of writing that is wanted, where put(place, line) writes one.
template <class Make>
TW_INLINE void with_put(const Lines &lines, uint8_t *dst, Make make) {
    const auto run = [&](auto way) {
        make([&](const Place &p, const Line &a) { way.put(p, a); });
        way.finish(lines.mode, lines.rank, dst);
    };
    if (lines.put == Put::store) return run(Storing{});
    if (lines.put == Put::stream) return run(Streaming{});
    if constexpr (shift_unit > 0) {
        if (lines.shift_unit >= 4) return run(Shifting<4>{});
        if constexpr (shift_unit == 2) return run(Shifting<2>{});
    }
}

}  // namespace
}  // namespace tw::TW_ISA
