// SPDX-License-Identifier: Apache-2.0
#include "copy/table_kernels.h"

#include "copy/line_stores.h"

namespace tw::TW_ISA {
namespace {

// Returns a line of the pieces at some offsets.
template <int64_t piece>
TW_INLINE Line gather(const uint8_t *src, const int64_t *from) {
    if constexpr (piece == 32) {
        return line_of(load_half_line(src + from[0]), load_half_line(src + from[1]));
    } else if constexpr (piece == 16) {
        return line_of_quarters(src + from[0], src + from[1], src + from[2], src + from[3]);
    } else {
        alignas(line) uint8_t bytes[line];
        for (int64_t i = 0; i < line / piece; ++i) std::memcpy(bytes + i * piece, src + from[i], piece);
        return load_line(bytes);
    }
}

template <bool streamed>
TW_INLINE void write(uint8_t *dst, const Line &made) {
    if constexpr (streamed) {
        stream_line(dst, made);
    } else {
        store_line(dst, made);
    }
}

// Lines made of several pieces.
template <int64_t piece, bool streamed>
void gathered(const Table &table, const uint8_t *src, uint8_t *dst) {
    constexpr int64_t group = line / piece;
    for_each_outer(table.mode, table.rank, 0, src, dst, [&](const uint8_t *s, uint8_t *d) {
        for (int64_t i = 0; i < table.count; i += group) {
            write<streamed>(d + table.dst[i], gather<piece>(s, table.src + i));
        }
    });
}

// Pieces of one or more lines.
template <bool streamed>
void whole(const Table &table, const uint8_t *src, uint8_t *dst) {
    for_each_outer(table.mode, table.rank, 0, src, dst, [&](const uint8_t *s, uint8_t *d) {
        for (int64_t i = 0; i < table.count; ++i) {
            for (int64_t at = 0; at < table.piece; at += line) {
                write<streamed>(d + table.dst[i] + at, load_line(s + table.src[i] + at));
            }
        }
    });
}

template <bool streamed>
void lines(const Table &table, const uint8_t *src, uint8_t *dst) {
    switch (table.piece) {
        case 1: return gathered<1, streamed>(table, src, dst);
        case 2: return gathered<2, streamed>(table, src, dst);
        case 4: return gathered<4, streamed>(table, src, dst);
        case 8: return gathered<8, streamed>(table, src, dst);
        case 16: return gathered<16, streamed>(table, src, dst);
        case 32: return gathered<32, streamed>(table, src, dst);
        default: return whole<streamed>(table, src, dst);
    }
}

// Pieces that do not make up lines.
template <int64_t piece>
void scattered(const Table &table, const uint8_t *src, uint8_t *dst) {
    for_each_outer(table.mode, table.rank, 0, src, dst, [&](const uint8_t *s, uint8_t *d) {
        for (int64_t i = 0; i < table.count; ++i) std::memcpy(d + table.dst[i], s + table.src[i], piece);
    });
}

}  // namespace

void copy_by_table(const Table &table, const uint8_t *src, uint8_t *dst) {
    if (table.lines) return table.stream ? lines<true>(table, src, dst) : lines<false>(table, src, dst);
    switch (table.piece) {
        case 1: return scattered<1>(table, src, dst);
        case 2: return scattered<2>(table, src, dst);
        case 4: return scattered<4>(table, src, dst);
        case 8: return scattered<8>(table, src, dst);
        case 16: return scattered<16>(table, src, dst);
        case 32: return scattered<32>(table, src, dst);
        case 64: return scattered<64>(table, src, dst);
        default: break;
    }
    for_each_outer(table.mode, table.rank, 0, src, dst, [&](const uint8_t *s, uint8_t *d) {
        for (int64_t i = 0; i < table.count; ++i) {
            std::memcpy(d + table.dst[i], s + table.src[i], static_cast<size_t>(table.piece));
        }
    });
}

}  // namespace tw::TW_ISA
