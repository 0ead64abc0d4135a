// SPDX-License-Identifier: Apache-2.0
//
// A panel goes through the registers square by square, along the columns, while the lines a little further along are
// fetched into the second cache level. Where it is made of whole lines of the target they are written at once;
// elsewhere it is staged in target order, and written in long runs of which only the ends are not whole lines.
#include "panel_moves.h"

#include "spool.h"
#include "squares.h"
#include "walk.h"

namespace tw::TW_ISA {
namespace {

// How many lines of a row to fetch in advance.
constexpr int64_t lines_ahead = 4;

TW_INLINE int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// Lists the offsets of the positions of some modes.
int64_t list(const Mode *mode, int count, int64_t Mode::*stride, int64_t *out) {
    int64_t n = 1;
    out[0] = 0;
    for (int m = 0; m < count; ++m) {
        for (int64_t i = 1; i < mode[m].extent; ++i) {
            for (int64_t k = 0; k < n; ++k) out[i * n + k] = out[k] + i * mode[m].*stride;
        }
        n *= mode[m].extent;
    }
    return n;
}

// A panel with all that follows from its shape.
struct Plan {
    int64_t rows, columns;
    int64_t from[panel_side + line];  // bytes, for each row; the last one repeated for a line of bytes
    int64_t to[panel_side];           // bytes, for each column
    bool whole_lines;                 // all columns are whole lines of the target if the first starts on one
    int64_t run, per_run;             // bytes that follow each other in the target, and how many columns make them
    int64_t pitch;                    // bytes, of a column in the staging
};

void plan(const Panel &panel, Plan &p) {
    const Mode *columns = panel.mode + panel.row_modes;
    p.rows = list(panel.mode, panel.row_modes, &Mode::src, p.from);
    for (int64_t i = 0; i < line; ++i) p.from[p.rows + i] = p.from[p.rows - 1];
    p.columns = list(columns, panel.column_modes, &Mode::dst, p.to);
    p.run = p.rows * panel.size;
    int64_t all = p.run;
    for (int64_t k = 0; k < p.columns; ++k) all |= p.to[k];
    p.whole_lines = all % line == 0;
    p.per_run = 1;
    for (int m = 0; m < panel.column_modes && columns[m].dst == p.run; ++m) {
        p.run *= columns[m].extent;
        p.per_run *= columns[m].extent;
    }
    // Columns that are runs of their own start on a line, and not all on the same ones of the first cache level.
    p.pitch = p.rows * panel.size;
    if (p.per_run == 1) p.pitch = (p.pitch + line - 1) / line * line + line;
}

template <bool streamed>
void put_run(const uint8_t *src, uint8_t *dst, int64_t bytes) {
    int64_t done = put_lines<streamed>(src, dst, bytes);
    copy_short(src + done, dst + done, bytes - done);
}

// One line of each row of a square, column by column: put(k, vector) gets column k.
template <int size, class Row, class Put>
TW_INLINE void line_of_squares(int64_t columns, Row row, Put put) {
    using S = Square<size>;
    constexpr int64_t wide = line / size;
    if constexpr (S::columns < wide) {
        if (columns == wide) {
            // Several squares share these lines. They are read once, into a copy that cannot fall onto itself in the
            // cache as the rows of a matrix do.
            alignas(64) uint8_t copy[S::rows * line];
            for (int64_t i = 0; i < S::rows; ++i) {
                const uint8_t *s = row(i);
                for (int64_t k = 0; k < line; k += width) store(copy + i * line + k, load(s + k));
            }
            for (int64_t j = 0; j < wide; j += S::columns) {
                square<size>([&](int64_t i) { return copy + i * line + j * size; },
                             [&](int64_t k, Vec v) { put(j + k, v); });
            }
            return;
        }
    }
    int64_t j = 0;
    for (; j + S::columns <= columns; j += S::columns) {
        square<size>([&](int64_t i) { return row(i) + j * size; }, [&](int64_t k, Vec v) { put(j + k, v); });
    }
    if (j < columns) {
        square_part<size>(columns - j, [&](int64_t i) { return row(i) + j * size; },
                          [&](int64_t k, Vec v) { put(j + k, v); });
    }
}

// Fetches what is read a few lines after line l of the `count` rows from g on: of the same rows, of later ones, or of
// the panel that is `ahead`.
template <int count>
TW_INLINE void fetch_ahead(const Plan &p, const uint8_t *src, int64_t ahead, int64_t g, int64_t l, int64_t lines) {
    l += lines_ahead;
    for (; l >= lines && g < p.rows; g += count) l -= lines;
    if (g >= p.rows) {
        if (ahead == 0 || l >= lines) return;
        g = 0;
        src += ahead;
    }
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int64_t i = 0; i < count; ++i) prefetch_near(src + l * line + p.from[g + i]);
}

template <bool streamed>
TW_INLINE void put(uint8_t *p, Vec v) {
    if constexpr (streamed) {
        stream(p, v);
    } else {
        store(p, v);
    }
}

// The squares that share lines of the source and of the target. Vectors shorter than a line meet in a tile first: half
// lines would be written, or fetched, one by one.
template <int size, bool streamed, class Row, class Out>
TW_INLINE void whole_tile(int64_t columns, Row row, Out out) {
    if constexpr (width == line) {
        line_of_squares<size>(columns, row, [&](int64_t k, Vec v) { put<streamed>(out(k), v); });
    } else {
        alignas(64) uint8_t tile[line / size * line];
        for (int64_t r = 0; r < line / size; r += Square<size>::rows) {
            line_of_squares<size>(
                columns, [&](int64_t i) { return row(r + i); },
                [&](int64_t k, Vec v) { store(tile + k * line + r * size, v); });
        }
        for (int64_t k = 0; k < columns; ++k) {
            for (int64_t i = 0; i < line; i += width) put<streamed>(out(k) + i, load(tile + k * line + i));
        }
    }
}

// All squares of a panel: out(k) is where column k goes. Ragged rows are done twice rather than in part.
template <int size, bool streamed, class Out>
TW_INLINE void all_squares(const Plan &p, const uint8_t *src, int64_t ahead, Out out) {
    constexpr int64_t wide = line / size, tall = Square<size>::rows;
    const int64_t lines = (p.columns + wide - 1) / wide;
    const int64_t last = p.rows > tall ? p.rows - tall : 0;
    for (int64_t g = 0; g < p.rows; g += wide) {
        for (int64_t l = 0; l < lines; ++l) {
            fetch_ahead<wide>(p, src, ahead, g, l, lines);
            const uint8_t *here = src + l * line;
            const int64_t j = l * wide, columns = at_most(wide, p.columns - j);
            if (g + wide <= p.rows) {
                whole_tile<size, streamed>(columns, [&](int64_t i) { return here + p.from[g + i]; },
                                           [&](int64_t k) { return out(j + k) + g * size; });
                continue;
            }
            for (int64_t r = g; r < p.rows; r += tall) {
                const int64_t at = at_most(r, last);
                line_of_squares<size>(columns, [&](int64_t i) { return here + p.from[at + i]; },
                                      [&](int64_t k, Vec v) { store(out(j + k) + at * size, v); });
            }
        }
    }
}

// Returns whether all of a panel is whole lines.
bool on_lines(const Plan &p, const uint8_t *dst) {
    return p.whole_lines && reinterpret_cast<uintptr_t>(dst) % line == 0;
}

template <int size>
void one_panel(const Panel &panel, const Plan &p, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging) {
    const auto to_target = [&](int64_t k) { return dst + p.to[k]; };
    if (panel.stream && on_lines(p, dst)) return all_squares<size, true>(p, src, ahead, to_target);
    if (!panel.stream && p.rows >= Square<size>::rows) return all_squares<size, false>(p, src, ahead, to_target);
    if (panel.stream) {
        // Stores to lines that are not in the cache would wait for each other.
        for (int64_t k = 0; k < p.columns; k += p.per_run) {
            prefetch_near(dst + p.to[k]);
            prefetch_near(dst + p.to[k] + p.run - 1);
        }
    }
    all_squares<size, false>(p, src, ahead, [&](int64_t k) { return staging + k * p.pitch; });
    const auto write = panel.stream ? put_run<true> : put_run<false>;
    for (int64_t k = 0; k < p.columns; k += p.per_run) write(staging + k * p.pitch, dst + p.to[k], p.run);
}

template <int size>
void panels(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging) {
    Plan p;
    plan(panel, p);
    const int sides = panel.row_modes + panel.column_modes;
    if (panel.rank > sides) ahead = panel.mode[sides].src;
    for_each_outer(panel.mode, panel.rank, sides, src, dst, [&](const uint8_t *s, uint8_t *d) {
        one_panel<size>(panel, p, s, d, ahead, staging);
    });
}

}  // namespace

void move_panel(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging) {
    switch (panel.size) {
        case 1: return panels<1>(panel, src, dst, ahead, staging);
        case 2: return panels<2>(panel, src, dst, ahead, staging);
        case 4: return panels<4>(panel, src, dst, ahead, staging);
        default: return panels<8>(panel, src, dst, ahead, staging);
    }
}

}  // namespace tw::TW_ISA
