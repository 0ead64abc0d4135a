// SPDX-License-Identifier: Apache-2.0
//
// Ways to write the lines that a kernel makes: ordinary stores, streaming stores, and streaming stores to a target that
// does not lie on lines. Only for the files compiled once for each instruction set.
//
// In the last case a line that is made covers the end of one line of the target and the start of the next. Lines are
// made in the order of the target along each of a few rows of it; what the last one of a row left over is kept, and
// makes whole lines together with the one that follows.
#pragma once

#include "copy/bit_copy.h"
#include "simd/sixteen.h"
#include "copy/walk.h"

namespace tw::TW_ISA {
namespace {

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

// Puts lines together that do not lie on lines of the target but `past` bytes after them.
#if defined(__AVX512BW__)

constexpr int shift_unit = 2;

struct Joint {
    __m512i from;

    Joint() = default;
    TW_INLINE explicit Joint(int64_t past) {
        const __m512i up = _mm512_setr_epi32(0x210020, 0x230022, 0x250024, 0x270026, 0x290028, 0x2b002a, 0x2d002c,
                                             0x2f002e, 0x310030, 0x330032, 0x350034, 0x370036, 0x390038, 0x3b003a,
                                             0x3d003c, 0x3f003e);
        from = _mm512_sub_epi16(up, _mm512_set1_epi16(static_cast<short>(past / 2)));
    }
    // Returns the last `past` bytes of a and then the first of b.
    TW_INLINE Line join(const Line &a, const Line &b) const {
        return {{{_mm512_permutex2var_epi16(a.v[0].v, from, b.v[0].v)}}};
    }
};

#elif defined(__AVX2__)

constexpr int shift_unit = 4;

// Each half comes from two neighbours of a.0, a.1, b.0, b.1, rotated by the same number of elements.
struct Joint {
    __m256i from, before;
    bool far;

    Joint() = default;
    TW_INLINE explicit Joint(int64_t past) : far(past > 32) {
        const __m256i up = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const auto count = static_cast<int>(past / 4);
        from = _mm256_sub_epi32(up, _mm256_set1_epi32(count));
        before = _mm256_cmpgt_epi32(_mm256_set1_epi32(far ? count - 8 : count), up);
    }
    TW_INLINE Line join(const Line &a, const Line &b) const {
        const __m256i x = _mm256_permutevar8x32_epi32(far ? a.v[0].v : a.v[1].v, from);
        const __m256i y = _mm256_permutevar8x32_epi32(far ? a.v[1].v : b.v[0].v, from);
        const __m256i z = _mm256_permutevar8x32_epi32(far ? b.v[0].v : b.v[1].v, from);
        return {{{_mm256_blendv_epi8(y, x, before)}, {_mm256_blendv_epi8(z, y, before)}}};
    }
};

#else

constexpr int shift_unit = 0;

#endif

TW_INLINE int64_t past_line(const uint8_t *p) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) & (line - 1));
}

#if defined(__AVX2__)

// Lines come in the order of the target along each row. A row that ends where the next one starts, in the order of their
// numbers, shares a line with it: the starts are kept back until all rows are done.
class Shifting {
public:
    Shifting(const Lines &lines, const uint8_t *dst) {
        for (auto &bits : fresh_) bits = ~uint64_t{0};
        joint_[0] = Joint(past_line(dst));
        for (int i = 0; i < lines.rank; ++i) {
            if (lines.mode[i].row_step != 0 && lines.mode[i].dst % line != 0) own_ = ~int64_t{0};
        }
    }

    TW_INLINE void put(const Place &p, const Line &a) {
        const int64_t row = p.row;
        uint64_t &fresh = fresh_[row / 64];
        if ((fresh >> (row % 64) & 1) == 0) {
            stream_line(p.dst - past_line(p.dst), joint_[row & own_].join(end_[row], a));
        } else {
            fresh &= ~(uint64_t{1} << (row % 64));
            joint_[row & own_] = Joint(past_line(p.dst));
            start_[row] = a;
        }
        end_[row] = a;
    }

    // Writes the ends of rows.
    void finish(const Lines &lines, uint8_t *dst) {
        Mode rows[max_modes];
        int count = 0;
        int64_t length = line;
        for (int i = 0; i < lines.rank; ++i) {
            const Mode &m = lines.mode[i];
            if (m.row_step == 0) {
                length *= m.extent;
                continue;
            }
            int at = count++;
            for (; at > 0 && m.row_step < rows[at - 1].row_step; --at) rows[at] = rows[at - 1];
            rows[at] = {m.extent, 0, m.dst, 0, m.row_step};
        }
        uint8_t *end = nullptr;
        int64_t before = 0;
        for_each_place(rows, count, {nullptr, nullptr, dst, 0}, [&](const Place &p) {
            const int64_t past = past_line(p.dst);
            if (p.dst == end) {
                stream_line(p.dst - past, joint_[p.row & own_].join(end_[before], start_[p.row]));
            } else {
                close(end, before);
                store_between(p.dst, start_[p.row], 0, line - past);
            }
            end = p.dst + length;
            before = p.row;
        });
        close(end, before);
    }

private:
    int64_t own_ = 0;  // all bits set when rows lie at distances of their own from lines
    uint64_t fresh_[most_rows / 64];  // rows that have not begun
    Line start_[most_rows], end_[most_rows];
    Joint joint_[most_rows];

    // Writes what reaches into the last line of a row that ends at `end`.
    void close(uint8_t *end, int64_t row) {
        const int64_t past = past_line(end);
        if (end && past != 0) store_between(end - line, end_[row], line - past, line);
    }
};

#endif

// Calls make(put) with the way of writing that is wanted, where put(place, line) writes one.
template <class Make>
TW_INLINE void with_put(const Lines &lines, [[maybe_unused]] uint8_t *dst, Make make) {
#if defined(__AVX512BW__)
    if (lines.put == Put::store) return make([](const Place &p, const Line &a) { store_line(p.dst, a); });
    if (lines.put == Put::stream) return make([](const Place &p, const Line &a) { stream_line(p.dst, a); });
#else  // only there are lines made so fast that a branch for each can be felt; one instance is compiled sooner
    if (const bool streamed = lines.put == Put::stream; streamed || lines.put == Put::store) {
        return make([=](const Place &p, const Line &a) { return streamed ? stream_line(p.dst, a) : store_line(p.dst, a); });
    }
#endif
#if defined(__AVX2__)
    Shifting shifting(lines, dst);
    make([&](const Place &p, const Line &a) { shifting.put(p, a); });
    shifting.finish(lines, dst);
#endif
}

}  // namespace
}  // namespace tw::TW_ISA
