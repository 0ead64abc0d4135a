// SPDX-License-Identifier: Apache-2.0
//
// A panel goes through the registers square by square, along the columns, while the lines a little further along are
// fetched into the second cache level. Where it is made of whole lines of the target they are written at once;
// elsewhere it is staged in target order, and written in long runs of which only the ends are not whole lines.
#include "copy/panel_kernels.h"

#include "copy/line_stream.h"
#include "copy/near_squares.h"
#include "copy/squares.h"
#include "copy/walk.h"

namespace tw::TW_ISA {
namespace {

// How many lines of a row to fetch in advance.
constexpr int64_t lines_ahead = 4;
// Lines this far apart share a set of the first cache level, which holds eight of them.
constexpr int64_t cache_way = 4096;

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
    int64_t staged[panel_side];       // bytes, for each column in the staging
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
    int64_t pitch = p.rows * panel.size;
    if (p.per_run == 1) pitch = (pitch + line - 1) / line * line + line;
    for (int64_t k = 0; k < p.columns; ++k) p.staged[k] = k * pitch;
}

template <bool streamed>
void put_run(const uint8_t *src, uint8_t *dst, int64_t bytes) {
    int64_t done = put_lines<streamed>(src, dst, bytes);
    copy_short(src + done, dst + done, bytes - done);
}

template <bool streamed>
TW_INLINE void put(uint8_t *p, Vec v) {
    if constexpr (streamed) {
        stream(p, v);
    } else {
        store(p, v);
    }
}

// Copies a line, or the first bytes of one, of as many rows as make a square: squares that share lines read them once,
// from where they cannot fall onto each other in the cache as the rows of a matrix do.
template <int rows>
void copy_rows(const uint8_t *src, const int64_t *from, int64_t bytes, uint8_t *copy) {
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t k = 0; k < line; k += width) {
            const uint8_t *s = src + from[i] + k;
            store(copy + i * line + k, bytes - k >= width ? load(s) : load_part(s, bytes > k ? bytes - k : 0));
        }
    }
}

// Transposes a line of each of `rows` rows, or the first columns of one; column k goes to dst + to[k]. Vectors shorter
// than a line meet in a tile first: half lines would be written, or fetched, one by one.
template <int size, bool streamed>
void tile(const uint8_t *src, const int64_t *from, int64_t rows, int64_t columns, uint8_t *dst, const int64_t *to) {
    using S = Square<size>;
    constexpr int64_t wide = line / size;
    if constexpr (width == line && S::columns == wide) {
        if (columns == wide) {
            return square<size>([&](int64_t i) { return src + from[i]; },
                                [&](int64_t k, Vec v) { put<streamed>(dst + to[k], v); });
        }
    }
    alignas(64) uint8_t copy[S::rows * line];
    alignas(64) uint8_t made[wide * line];
    for (int64_t r = 0; r < rows; r += S::rows) {
        copy_rows<S::rows>(src, from + r, columns * size, copy);
        for (int64_t j = 0; j < columns; j += S::columns) {
            square<size>([&](int64_t i) { return copy + i * line + j * size; }, [&](int64_t k, Vec v) {
                if constexpr (width < line) {
                    store(made + (j + k) * line + r * size, v);
                } else if (j + k < columns) {
                    put<streamed>(dst + to[j + k], v);
                }
            });
        }
    }
    if constexpr (width < line) {
        for (int64_t k = 0; k < columns; ++k) {
            for (int64_t i = 0; i < line; i += width) put<streamed>(dst + to[k] + i, load(made + k * line + i));
        }
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
    const int64_t *from = p.from + g;
    src += l * line;
    for (int64_t i = 0; i < count; i += 8) {  // by eight: there are 8 at least
        prefetch_near(src + from[i]);
        prefetch_near(src + from[i + 1]);
        prefetch_near(src + from[i + 2]);
        prefetch_near(src + from[i + 3]);
        prefetch_near(src + from[i + 4]);
        prefetch_near(src + from[i + 5]);
        prefetch_near(src + from[i + 6]);
        prefetch_near(src + from[i + 7]);
    }
}

// All of a panel: column k goes to dst + to[k]. Ragged rows are done twice rather than in part; fewer than a tile has
// are followed by bytes that mean nothing.
template <int size, bool streamed>
void all_tiles(const Plan &p, const uint8_t *src, int64_t ahead, uint8_t *dst, const int64_t *to) {
    constexpr int64_t wide = line / size;
    const int64_t lines = (p.columns + wide - 1) / wide;
    const int64_t last = p.rows > wide ? p.rows - wide : 0;
    for (int64_t g = 0; g < p.rows; g += wide) {
        const int64_t at = at_most(g, last);
        for (int64_t l = 0; l < lines; ++l) {
            fetch_ahead<wide>(p, src, ahead, g, l, lines);
            const int64_t j = l * wide;
            tile<size, streamed>(src + l * line, p.from + at, at_most(wide, p.rows), at_most(wide, p.columns - j),
                                 dst + at * size, to + j);
        }
    }
}

// Lists the first multiples of a distance.
template <int64_t count>
void list_steps(int64_t step, int64_t *out) {
    for (int64_t i = 0; i < count; ++i) out[i] = i * step;
}

// Transposes a line of each of as many rows as make one, `from` bytes apart, when all of it is in the caches. Column k goes
// to dst + k * to.
template <int size>
TW_INLINE void near_tile(const uint8_t *src, int64_t from, uint8_t *dst, int64_t to) {
    constexpr int64_t wide = line / size;
#if defined(__AVX2__)
    // Rows that fall onto each other in the first cache level push each other out between two pieces of a line. Where small
    // elements have too many such rows these are copied first; where others are pages apart, or half of one, whole lines
    // are read at once.
    constexpr int64_t far = width == line ? 2048 : 4096;
    if constexpr (size < 4) {
        if (wide * at_most(from & -from, cache_way) <= 4 * cache_way) {
            return near_square<size>(src, from, dst, to);
        }
        alignas(64) uint8_t copy[wide * line];
        for (int64_t i = 0; i < wide; ++i) store_line(copy + i * line, load_line(src + i * from));
        return near_square<size>(copy, line, dst, to);
    } else if (from % far != 0) {
        return near_square<size>(src, from, dst, to);
    }
#endif
    int64_t rows[wide], columns[wide];
    list_steps<wide>(from, rows);
    list_steps<wide>(to, columns);
    tile<size, false>(src, rows, wide, wide, dst, columns);
}

// A panel of one mode each way that is in the caches, along the rows of the target. There is a line of rows at least.
template <int size>
void near_panel(const Panel &panel, const uint8_t *src, uint8_t *dst) {
    constexpr int64_t wide = line / size;
    const Mode &across = panel.mode[0], &along = panel.mode[1];
    for (int64_t j = 0; j < along.extent; j += wide) {
        const int64_t left = along.extent - j;
        for (int64_t g = 0; g < across.extent; g += wide) {
            const int64_t at = at_most(g, across.extent - wide);  // ragged rows are done twice rather than in part
            const uint8_t *s = src + at * across.src + j * size;
            uint8_t *d = dst + at * size + j * along.dst;
            if (left >= wide) {
                near_tile<size>(s, across.src, d, along.dst);
                continue;
            }
            int64_t rows[wide], columns[wide];
            list_steps<wide>(across.src, rows);
            list_steps<wide>(along.dst, columns);
            tile<size, false>(s, rows, wide, left, d, columns);
        }
    }
}

// Returns whether all of a panel is whole lines.
bool on_lines(const Plan &p, const uint8_t *dst) {
    return p.whole_lines && reinterpret_cast<uintptr_t>(dst) % line == 0;
}

template <int size>
void one_panel(const Panel &panel, const Plan &p, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging) {
    if (panel.stream && on_lines(p, dst)) return all_tiles<size, true>(p, src, ahead, dst, p.to);
    if (!panel.stream && p.rows >= line / size) return all_tiles<size, false>(p, src, ahead, dst, p.to);
    if (panel.stream) {
        // Stores to lines that are not in the cache would wait for each other.
        for (int64_t k = 0; k < p.columns; k += p.per_run) {
            prefetch_near(dst + p.to[k]);
            prefetch_near(dst + p.to[k] + p.run - 1);
        }
    }
    all_tiles<size, false>(p, src, ahead, staging, p.staged);
    const auto write = panel.stream ? put_run<true> : put_run<false>;
    for (int64_t k = 0; k < p.columns; k += p.per_run) write(staging + p.staged[k], dst + p.to[k], p.run);
}

template <int size>
void panels(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging) {
    const int sides = panel.row_modes + panel.column_modes;
    if (!panel.stream && panel.row_modes == 1 && panel.column_modes == 1 && panel.mode[0].extent >= line / size) {
        return for_each_outer(panel.mode, panel.rank, sides, src, dst, [&](const uint8_t *s, uint8_t *d) {
            near_panel<size>(panel, s, d);
        });
    }
    Plan p;
    plan(panel, p);
    if (panel.rank > sides) ahead = panel.mode[sides].src;
    for_each_outer(panel.mode, panel.rank, sides, src, dst, [&](const uint8_t *s, uint8_t *d) {
        one_panel<size>(panel, p, s, d, ahead, staging);
    });
}

}  // namespace

void copy_panel(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging) {
    switch (panel.size) {
        case 1: return panels<1>(panel, src, dst, ahead, staging);
        case 2: return panels<2>(panel, src, dst, ahead, staging);
        case 4: return panels<4>(panel, src, dst, ahead, staging);
        default: return panels<8>(panel, src, dst, ahead, staging);
    }
}

}  // namespace tw::TW_ISA
