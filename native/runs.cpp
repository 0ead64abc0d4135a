// SPDX-License-Identifier: Apache-2.0
//
// Moves of bits: contiguous runs, with ordinary or streaming stores, and single elements at any strides.
#include "runs.h"

#include "transpose.h"
#include "vectors.h"
#include "walk.h"

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
void fixed_runs(const Move &move, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    if (ahead) {
        for_each_piece(move.mode, move.rank, src, dst, [&](const uint8_t *s, uint8_t *d) {
            for (int64_t i = 0; i < run; i += line) prefetch(s + ahead + i);
            copy_fixed<run>(s, d);
        });
    } else {
        for_each_piece(move.mode, move.rank, src, dst, [&](const uint8_t *s, uint8_t *d) { copy_fixed<run>(s, d); });
    }
}

void any_runs(const Move &move, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    for_each_piece(move.mode, move.rank, src, dst, [&](const uint8_t *s, uint8_t *d) {
        if (ahead) {
            for (int64_t i = 0; i < move.run; i += line) prefetch(s + ahead + i);
        }
        copy_any(s, d, move.run);
    });
}

void streamed_runs(const Move &move, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    for_each_piece(move.mode, move.rank, src, dst, [&](const uint8_t *s, uint8_t *d) { copy_streamed(s, d, move.run, ahead); });
}

template <int size>
void strided(const Move &move, const uint8_t *src, uint8_t *dst) {
    for_each_piece(move.mode, move.rank, src, dst, [&](const uint8_t *s, uint8_t *d) { copy_fixed<size>(s, d); });
}

}  // namespace

void move_bits(const Move &move, const uint8_t *src, uint8_t *dst, int64_t ahead) {
    src += move.src;
    dst += move.dst;
    switch (move.kind) {
        case MoveKind::runs:
            if (move.stream) return streamed_runs(move, src, dst, ahead);
            switch (move.run) {
                case 1: return fixed_runs<1>(move, src, dst, ahead);
                case 2: return fixed_runs<2>(move, src, dst, ahead);
                case 4: return fixed_runs<4>(move, src, dst, ahead);
                case 8: return fixed_runs<8>(move, src, dst, ahead);
                case 16: return fixed_runs<16>(move, src, dst, ahead);
                case 32: return fixed_runs<32>(move, src, dst, ahead);
                case 64: return fixed_runs<64>(move, src, dst, ahead);
                case 128: return fixed_runs<128>(move, src, dst, ahead);
                default: return any_runs(move, src, dst, ahead);
            }
        case MoveKind::transpose:
            for_each_outer(move.mode, move.rank, 2, src, dst, [&](const uint8_t *s, uint8_t *d) {
                transpose(move.size, move.mode[0], move.mode[1], s, d);
            });
            return;
        case MoveKind::strided:
            switch (move.size) {
                case 1: return strided<1>(move, src, dst);
                case 2: return strided<2>(move, src, dst);
                case 4: return strided<4>(move, src, dst);
                default: return strided<8>(move, src, dst);
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
