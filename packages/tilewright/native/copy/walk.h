// SPDX-License-Identifier: Apache-2.0
//
// Loops over the outer modes of a copy. Only for the files compiled once for each instruction set.
#pragma once

#include "simd/vectors.h"
#include "copy/nest.h"

namespace tw::TW_ISA {
namespace {

// Calls inner(src, dst) for every position of modes [from, rank).
template <class Inner>
TW_INLINE void for_each_outer(const Mode *mode, int rank, int from, const uint8_t *src, uint8_t *dst, Inner inner) {
    if (rank <= from) {
        inner(src, dst);
        return;
    }
    int64_t at[max_modes] = {};
    while (true) {
        inner(src, dst);
        int i = from;
        for (; i < rank; ++i) {
            const Mode &m = mode[i];
            if (++at[i] < m.extent) {
                src += m.src;
                dst += m.dst;
                break;
            }
            at[i] = 0;
            src -= (m.extent - 1) * m.src;
            dst -= (m.extent - 1) * m.dst;
        }
        if (i == rank) return;
    }
}

// Calls inner(src, dst, aux) for every position of the modes.
template <class Inner>
TW_INLINE void for_each_at(const Mode *mode, int rank, const uint8_t *src, uint8_t *dst, uint8_t *aux, Inner inner) {
    int64_t at[max_modes] = {};
    int i;
    do {
        inner(src, dst, aux);
        for (i = 0; i < rank; ++i) {
            const bool on = ++at[i] < mode[i].extent;
            const int64_t steps = on ? 1 : 1 - mode[i].extent;
            src += steps * mode[i].src;
            dst += steps * mode[i].dst;
            aux += steps * mode[i].aux;
            if (on) break;
            at[i] = 0;
        }
    } while (i < rank);
}

// The same for all modes, with the two innermost loops written out: short pieces cannot pay for the general walk.
template <class Piece>
TW_INLINE void for_each_piece(const Mode *mode, int rank, const uint8_t *src, uint8_t *dst, Piece piece) {
    const Mode one = rank > 0 ? mode[0] : Mode{1, 0, 0, 0};
    const Mode two = rank > 1 ? mode[1] : Mode{1, 0, 0, 0};
    for_each_outer(mode, rank, 2, src, dst, [&](const uint8_t *s, uint8_t *d) {
        for (int64_t j = 0; j < two.extent; ++j) {
            const uint8_t *a = s + j * two.src;
            uint8_t *b = d + j * two.dst;
#if defined(__GNUC__)
#  pragma GCC unroll 8
#endif
            for (int64_t i = 0; i < one.extent; ++i) piece(a + i * one.src, b + i * one.dst);
        }
    });
}

// A position of a nest on all sides.
struct Place {
    const uint8_t *src;
    const uint8_t *aux;
    uint8_t *dst;
    int64_t row;

    TW_INLINE Place at(int64_t i, const Mode &m) const {
        return {src + i * m.src, aux + i * m.aux, dst + i * m.dst, row + i * m.row_step};
    }
};

// The same for what needs to know more than source and target.
template <class Visit>
TW_INLINE void for_each_place(const Mode *mode, int rank, Place place, Visit visit) {
    const Mode one = rank > 0 ? mode[0] : Mode{1, 0, 0, 0};
    const Mode two = rank > 1 ? mode[1] : Mode{1, 0, 0, 0};
    int64_t at[max_modes] = {};
    while (true) {
        for (int64_t j = 0; j < two.extent; ++j) {
            const Place here = place.at(j, two);
            for (int64_t i = 0; i < one.extent; ++i) visit(here.at(i, one));
        }
        int k = 2;
        for (; k < rank; ++k) {
            const bool on = ++at[k] < mode[k].extent;
            place = place.at(on ? 1 : 1 - mode[k].extent, mode[k]);
            if (on) break;
            at[k] = 0;
        }
        if (k >= rank) return;
    }
}

}  // namespace
}  // namespace tw::TW_ISA
