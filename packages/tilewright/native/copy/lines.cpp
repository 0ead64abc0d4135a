// SPDX-License-Identifier: Apache-2.0
#include "copy/lines.h"

#include "copy/line_stores.h"

namespace tw::TW_ISA {
namespace {

template <LineOp op>
struct Types {
    using From = float;
    using To = float;
};
template <>
struct Types<LineOp::f32_to_bf16> {
    using From = float;
    using To = Brain;
};
template <>
struct Types<LineOp::f32_to_f16> {
    using From = float;
    using To = Half;
};
template <>
struct Types<LineOp::bf16_to_f32> {
    using From = Brain;
    using To = float;
};
template <>
struct Types<LineOp::f16_to_f32> {
    using From = Half;
    using To = float;
};

TW_INLINE Line quarters(const uint8_t *s, int64_t step) {
    return line_of_quarters(s, s + step, s + 2 * step, s + 3 * step);
}

// Returns a line.
template <LineOp op, int pieces>
TW_INLINE Line make_line(const uint8_t *s, int64_t step) {
    using From = typename Types<op>::From;
    using To = typename Types<op>::To;
    if constexpr (op == LineOp::bits && pieces == 1) {
        return load_line(s);
    } else if constexpr (op == LineOp::bits && pieces == 2) {
        return line_of(load_half_line(s), load_half_line(s + step));
    } else if constexpr (op == LineOp::bits) {
        return quarters(s, step);
    } else if constexpr (std::is_same_v<To, float>) {
        return line_of(load_sixteen<From>(s));
    } else {
        if constexpr (pieces == 1) step = 64;
        return line_of(narrowed<To>(load_sixteen<float>(s)), narrowed<To>(load_sixteen<float>(s + step)));
    }
}

template <LineOp op, int pieces>
void run(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    const int64_t step = lines.piece_step, ahead = lines.ahead;
    const Place start{src, nullptr, dst, 0};
    with_put(lines, dst, [&](auto put) {
        if (pieces > 1 && lines.sweep) {
            // Pieces from one page defeat the hardware's prefetcher.
            auto next = reinterpret_cast<uintptr_t>(src) + 2048;
            for_each_place(lines.mode, lines.rank, start, [&](const Place &p) {
                prefetch(reinterpret_cast<const uint8_t *>(next));
                next += 64;
                put(p, make_line<op, pieces>(p.src, step));
            });
        } else if (ahead) {
            for_each_place(lines.mode, lines.rank, start, [&](const Place &p) {
                for (int i = 0; i < pieces; ++i) prefetch_near(p.src + i * step + ahead);
                put(p, make_line<op, pieces>(p.src, step));
            });
        } else {
            for_each_place(lines.mode, lines.rank, start,
                           [&](const Place &p) { put(p, make_line<op, pieces>(p.src, step)); });
        }
    });
}

template <LineOp op>
void run_narrowing(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    if (lines.pieces == 2) return run<op, 2>(lines, src, dst);
    return run<op, 1>(lines, src, dst);
}

}  // namespace

void copy_lines(const Lines &lines, const uint8_t *src, uint8_t *dst) {
    switch (lines.op) {
        case LineOp::bits:
            if (lines.pieces == 4) return run<LineOp::bits, 4>(lines, src, dst);
            return run_narrowing<LineOp::bits>(lines, src, dst);
        case LineOp::f32_to_bf16: return run_narrowing<LineOp::f32_to_bf16>(lines, src, dst);
        case LineOp::f32_to_f16: return run_narrowing<LineOp::f32_to_f16>(lines, src, dst);
        case LineOp::bf16_to_f32: return run<LineOp::bf16_to_f32, 1>(lines, src, dst);
        case LineOp::f16_to_f32: return run<LineOp::f16_to_f32, 1>(lines, src, dst);
    }
}

}  // namespace tw::TW_ISA
