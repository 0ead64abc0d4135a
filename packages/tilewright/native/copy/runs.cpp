// SPDX-License-Identifier: Apache-2.0
//
// Bit copies: contiguous runs, with ordinary or streaming stores, and single elements at any strides.
#include "copy/runs.h"

#include "copy/transpose.h"
#include "simd/vectors.h"
#include "copy/walk.h"

namespace tw::TW_ISA {
namespace {

// Copies a run whose length the compiler knows.
template <int64_t run>
TW_INLINE void copy_fixed(const uint8_t *src, uint8_t *dst) {
    if constexpr (run >= width) {
        Vec v[run / width];
        for (int64_t i = 0; i < run / width; ++i) v[i] = load(src + i * width);
        for (int64_t i = 0; i < run / width; ++i) store(dst + i * width, v[i]);
    } else {
        uint8_t bytes[run];
        std::memcpy(bytes, src, run);
        std::memcpy(dst, bytes, run);
    }
}

// Copies a run of any length.
TW_INLINE void copy_any(const uint8_t *src, uint8_t *dst, int64_t run) {
    int64_t i = 0;
    for (; i + line <= run; i += line) copy_fixed<line>(src + i, dst + i);
    if constexpr (width < line) {
        for (; i + width <= run; i += width) store(dst + i, load(src + i));
    }
    if (i < run) {
        if (run >= width) {  // overlap the last whole vector with the one before: no partial access
            store(dst + run - width, load(src + run - width));
        } else {
            store_part(dst + i, load_part(src + i, run - i), run - i);
        }
    }
}

// Copies a run with streaming stores: whole aligned lines go past the caches, the ends are ordinary stores.
TW_INLINE void copy_streamed(const uint8_t *src, uint8_t *dst, int64_t run, int64_t ahead) {
    int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) & (line - 1));
    if (head > run) head = run;
    if (head) copy_any(src, dst, head);
    int64_t i = head;
    for (; i + line <= run; i += line) {
        if (ahead) prefetch(src + i + ahead);
        Vec v[line / width];
        for (int64_t k = 0; k < line / width; ++k) v[k] = load(src + i + k * width);
        for (int64_t k = 0; k < line / width; ++k) stream(dst + i + k * width, v[k]);
    }
    if (i < run) copy_any(src + i, dst + i, run - i);
}

template <int64_t run>
void fixed_runs(const BitCopy &copy, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    if (ahead) {
        for_each_piece(copy.mode, copy.rank, src, dst, [&](const uint8_t *s, uint8_t *d) {
            for (int64_t i = 0; i < run; i += line) prefetch(s + ahead + i);
            copy_fixed<run>(s, d);
        });
    } else {
        for_each_piece(copy.mode, copy.rank, src, dst, [&](const uint8_t *s, uint8_t *d) { copy_fixed<run>(s, d); });
    }
}

void any_runs(const BitCopy &copy, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    for_each_piece(copy.mode, copy.rank, src, dst, [&](const uint8_t *s, uint8_t *d) {
        if (ahead) {
            for (int64_t i = 0; i < copy.run; i += line) prefetch(s + ahead + i);
        }
        copy_any(s, d, copy.run);
    });
}

void streamed_runs(const BitCopy &copy, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    for_each_piece(copy.mode, copy.rank, src, dst, [&](const uint8_t *s, uint8_t *d) { copy_streamed(s, d, copy.run, ahead); });
}

template <int size>
void strided(const BitCopy &copy, const uint8_t *src, uint8_t *dst) {
    for_each_piece(copy.mode, copy.rank, src, dst, [&](const uint8_t *s, uint8_t *d) { copy_fixed<size>(s, d); });
}

}  // namespace

void copy_bits(const BitCopy &copy, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    src += copy.src;
    dst += copy.dst;
    switch (copy.kind) {
        case BitCopyKind::runs:
            if (copy.stream) return streamed_runs(copy, src, dst, ahead);
            switch (copy.run) {
                case 1: return fixed_runs<1>(copy, src, dst, ahead);
                case 2: return fixed_runs<2>(copy, src, dst, ahead);
                case 4: return fixed_runs<4>(copy, src, dst, ahead);
                case 8: return fixed_runs<8>(copy, src, dst, ahead);
                case 16: return fixed_runs<16>(copy, src, dst, ahead);
                case 32: return fixed_runs<32>(copy, src, dst, ahead);
                case 64: return fixed_runs<64>(copy, src, dst, ahead);
                case 128: return fixed_runs<128>(copy, src, dst, ahead);
                default: return any_runs(copy, src, dst, ahead);
            }
        case BitCopyKind::transpose:
            for_each_outer(copy.mode, copy.rank, 2, src, dst, [&](const uint8_t *s, uint8_t *d) {
                transpose(copy.size, copy.mode[0], copy.mode[1], s, d);
            });
            return;
        case BitCopyKind::strided:
            switch (copy.size) {
                case 1: return strided<1>(copy, src, dst);
                case 2: return strided<2>(copy, src, dst);
                case 4: return strided<4>(copy, src, dst);
                default: return strided<8>(copy, src, dst);
            }
    }
}

void fence() {
#if defined(__AVX2__)
    _mm_sfence();
#elif defined(__SSE2__) && !defined(TW_PORTABLE)
    _mm_sfence();
#endif
}

}  // namespace tw::TW_ISA
