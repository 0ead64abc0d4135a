// SPDX-License-Identifier: Apache-2.0
#include "copy/routes.h"

#include "copy/row_boxes.h"

namespace tw {
namespace {

constexpr int64_t line = 64;
constexpr int64_t page = 4096;

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int scalar_size(int type) {
    switch (type) {
        case TW_F64: case TW_I64: case TW_U64: return 8;
        case TW_F32: case TW_I32: case TW_U32: return 4;
        case TW_F16: case TW_BF16: case TW_I16: case TW_U16: return 2;
        case TW_F8E4M3: case TW_F8E5M2: case TW_I8: case TW_U8: case TW_BOOL: return 1;
        default: return 0;
    }
}

bool is_integer(int type) { return type >= TW_I8 && type <= TW_U64; }

bool is_block(int type) { return type >= TW_BFP8B && type <= TW_NVFP4; }

BlockKind block_kind(int type) {
    if (type <= TW_BFP2A) return {type, 16, 8 >> ((type - TW_BFP8B) % 3), type >= TW_BFP8A};
    switch (type) {
        case TW_MXFP6E2M3: case TW_MXFP6E3M2: return {type, 32, 6};
        case TW_MXFP4: return {type, 32, 4};
        case TW_NVFP4: return {type, 16, 4};
        default: return {type, 32, 8};
    }
}

// Returns whether the elements of a block are all there and those of each piece next to each other.
bool whole_pieces(Job &job, int64_t size) {
    const tw_nest &descriptor = *job.descriptor;
    for (int i = 0; i < job.kind.block_size; ++i) {
        const int first = i - i % piece;
        if (!(descriptor.element_mask >> i & 1) || descriptor.element_offset[i] != descriptor.element_offset[first] + (i - first) * size) return false;
    }
    job.half = job.kind.block_size > piece ? descriptor.element_offset[piece] - descriptor.element_offset[0] : 0;
    return true;
}

// Returns how far past a line of the target every copy of the nest starts, or -1 when they differ.
int64_t past_a_line(const Job &job, const uint8_t *dst, int64_t more) {
    auto base = reinterpret_cast<uintptr_t>(dst) + static_cast<uintptr_t>(job.nest.dst + more);
    const tw_nest &descriptor = *job.descriptor;
    if (descriptor.table_count > 0 && descriptor.dst_table) {
        base += static_cast<uintptr_t>(descriptor.dst_table[0]);
        for (int64_t i = 1; i < descriptor.table_count; ++i) {
            if ((descriptor.dst_table[i] - descriptor.dst_table[0]) % line != 0) return -1;
        }
    }
    return static_cast<int64_t>(base % line);
}

int64_t entries(const Job &job) { return job.descriptor->table_count > 0 ? job.descriptor->table_count : 1; }

bool line_op(const Job &job, LineOp &op) {
    int from = job.descriptor->src_type, to = job.descriptor->dst_type;
    op = LineOp::bits;
    if (!job.convert) return true;
    if (from == TW_F32 && to == TW_BF16) op = LineOp::f32_to_bf16;
    if (from == TW_F32 && to == TW_F16) op = LineOp::f32_to_f16;
    if (from == TW_BF16 && to == TW_F32) op = LineOp::bf16_to_f32;
    if (from == TW_F16 && to == TW_F32) op = LineOp::f16_to_f32;
    return op != LineOp::bits;
}

// Returns whether the nest reads one range of the source, each byte once.
bool reads_densely(const Nest &nest, int64_t size) {
    Nest n = nest;
    sort_by_source(n.mode, n.rank);
    for (int i = 0; i < n.rank; ++i) {
        if (n.mode[i].src != size) return false;
        size *= n.mode[i].extent;
    }
    return true;
}

// Returns whether every position of a nest of lines is a line of the target.
bool on_lines(const Job &job, const Nest &nest, const uint8_t *dst, int64_t more) {
    if (past_a_line(job, dst, more) != 0) return false;
    for (int i = 0; i < nest.rank; ++i) {
        if (nest.mode[i].dst % line != 0) return false;
    }
    return true;
}

// Makes boxes of a nest of lines that are to be shifted.
bool try_shift(Job &job, const Nest &nest, const uint8_t *dst) {
    const int unit = best_kernels().shift_unit;
    if (unit == 0) return false;
    // All that a distance from a line may consist of.
    auto any = reinterpret_cast<uintptr_t>(dst) | static_cast<uintptr_t>(nest.dst);
    for (int i = 0; i < nest.rank; ++i) any |= static_cast<uintptr_t>(nest.mode[i].dst);
    for (int64_t i = 0; i < job.descriptor->table_count && job.descriptor->dst_table; ++i) {
        any |= static_cast<uintptr_t>(job.descriptor->dst_table[i]);
    }
    if (any % static_cast<uintptr_t>(unit) != 0) return false;
    return make_row_boxes(nest, entries(job), job.boxes, job.lines);
}

// Turns a nest of elements into one of lines, each made of a few pieces of the source.
bool make_lines(Job &job, Nest &nest) {
    Lines &lines = job.lines;
    const int64_t in = job.src_size, out = job.dst_size;
    if (!line_op(job, lines.op) || nest.rank == 0 || nest.mode[0].src != in || nest.mode[0].dst != out) return false;
    Mode &run = nest.mode[0];
    int64_t bytes = run.extent * out;
    if (bytes % line == 0) {
        lines.pieces = 1;
        run = {bytes / line, line / out * in, line, 0};
        return true;
    }
    // Several runs that follow each other in the target make a line.
    bool half = bytes == 32, quarter = bytes == 16 && lines.op == LineOp::bits;
    if ((!half && !quarter) || nest.rank < 2) return false;
    if (half && lines.op != LineOp::bits && out != 2) return false;
    lines.pieces = half ? 2 : 4;
    Mode &next = nest.mode[1];
    if (next.dst != bytes || next.extent % lines.pieces != 0) return false;
    lines.piece_step = next.src;
    lines.sweep = magnitude(next.src) < page && reads_densely(nest, in);
    run = {next.extent / lines.pieces, next.src * lines.pieces, line, 0};
    for (int i = 1; i + 1 < nest.rank; ++i) nest.mode[i] = nest.mode[i + 1];
    --nest.rank;
    return true;
}

// Returns how far to fetch ahead of runs. The hardware's prefetcher needs a few lines to see where a run goes, and short
// runs are over by then.
int64_t ahead_of_runs(int64_t bytes, int64_t stride) {
    return bytes <= page / 2 && magnitude(stride) >= page / 2 ? 2 * stride : 0;
}

bool try_lines(Job &job, const uint8_t *dst, bool stream) {
    Nest nest = job.nest;
    Lines &lines = job.lines;
    if (!make_lines(job, nest)) return false;
    job.route = Route::lines;
    lines.put = stream ? Put::stream : Put::store;
    if (stream && !on_lines(job, nest, dst, 0)) return try_shift(job, nest, dst);
    // A few lines that are neighbours in the target go together when each comes from a page of its own: that many
    // streams are prefetched side by side. All else follows the source.
    int grouped = 0;
    for (int i = 0; i < nest.rank && nest.rank < max_modes; ++i) {
        Mode m = nest.mode[i];
        if (m.dst != line || magnitude(m.src) < page) continue;
        int64_t group = 8 / lines.pieces;
        while (m.extent % group != 0) --group;
        if (group == 1) break;
        for (int k = i; k > 0; --k) nest.mode[k] = nest.mode[k - 1];
        nest.mode[0] = {group, m.src, m.dst, 0};
        grouped = 1;
        if (group < m.extent) nest.push({m.extent / group, m.src * group, m.dst * group, 0});
        break;
    }
    sort_by_source(nest.mode + grouped, nest.rank - grouped);
    if (stream && grouped) lines.ahead = 1024;  // that many streams are more than some prefetchers follow
    if (!stream && !grouped && lines.pieces == 1 && nest.rank > 1) {
        lines.ahead = ahead_of_runs(nest.mode[0].extent * line, nest.mode[1].src);
    }
    job.boxes = make_strips(nest, line, entries(job));
    return true;
}

// Takes rows that are contiguous on both sides as they are.
bool try_rows(Job &job, bool stream) {
    const Nest &nest = job.nest;
    const int64_t size = job.src_size;
    if (stream || job.convert || nest.rank == 0 || nest.rank > 2) return false;
    const Mode &run = nest.mode[0];
    if (run.src != size || run.dst != size || run.extent * size < line) return false;
    job.route = Route::rows;
    job.lines.ahead = nest.rank > 1 ? ahead_of_runs(run.extent * size, nest.mode[1].src) : 0;
    job.boxes = make_strips(nest, size, entries(job));
    return true;
}

// Returns `past` if all rows of a side start as far past a line, whole elements, and -1 otherwise.
int64_t rows_past_a_line(const BitCopy &copy, int64_t Mode::*stride, int64_t past) {
    for (int i = 0; i < copy.rank; ++i) {
        if (copy.mode[i].*stride != copy.size && copy.mode[i].*stride % line != 0) return -1;
    }
    return past % copy.size == 0 ? past : -1;
}

bool try_transpose(Job &job, const uint8_t *src, const uint8_t *dst) {
    if (job.convert) return false;
    BitCopy copy = make_bit_copy(job.nest, job.src_size, false, Order::by_target);
    if (copy.kind != BitCopyKind::transpose) return false;
    Nest nest;
    nest.src = copy.src;
    nest.dst = copy.dst;
    for (int i = 0; i < copy.rank; ++i) nest.push(copy.mode[i]);
    if (make_interleave(nest, copy.size, entries(job), job.boxes, job.interleave)) {
        job.route = Route::interleave;
        return true;
    }
    const auto from = reinterpret_cast<uintptr_t>(src) + static_cast<uintptr_t>(nest.src);
    const int64_t from_past = rows_past_a_line(copy, &Mode::src, static_cast<int64_t>(from % line));
    const int64_t to_past = rows_past_a_line(copy, &Mode::dst, past_a_line(job, dst, 0));
    if (!make_panels(nest, copy.size, from_past, to_past, entries(job), job.boxes, job.panel)) return false;
    job.route = Route::transpose;
    return true;
}

bool sixteen_bits(int type) { return type == TW_BF16 || type == TW_F16; }

bool try_pack(Job &job) {
    const tw_nest &descriptor = *job.descriptor;
    const Nest &nest = job.nest;
    if (descriptor.src_type != TW_F32 && !sixteen_bits(descriptor.src_type)) return false;
    if (!whole_pieces(job, job.src_size) || nest.rank == 0) return false;
    const Mode &inner = nest.mode[0];
    if (inner.dst != job.dst_size || inner.aux != 1) return false;
    if (inner.extent % 8 != 0 && inner.extent < 64) return false;  // mostly what is left over
    Nest ordered = nest;
    ordered.src += descriptor.element_offset[0];
    // As for lines: at most eight streams side by side.
    const int64_t together = job.kind.is_scaled() && job.kind.bits != 6 ? 128 / job.kind.block_size : 8;
    if (magnitude(inner.src) >= page && inner.extent > together && inner.extent % together == 0) {
        ordered.mode[0].extent = together;
        ordered.push({inner.extent / together, inner.src * together, inner.dst * together, inner.aux * together});
    }
    sort_by_source(ordered.mode + 1, ordered.rank - 1);
    job.route = Route::pack;
    job.boxes = make_strips(ordered, int64_t{job.kind.block_size} * job.src_size, entries(job));
    return true;
}

// Turns a nest of pieces into one of lines: of one piece, or of two that follow each other in the target.
bool make_lines_of_pieces(Job &job, Nest &nest) {
    if (job.descriptor->dst_type == TW_F32) return true;
    if (nest.rank == 0 || nest.mode[0].dst != line / 2 || nest.mode[0].extent % 2 != 0) return false;
    Mode &m = nest.mode[0];
    job.lines.pieces = 2;
    job.lines.piece_step = m.src;
    job.piece_aux = m.aux;
    m = {m.extent / 2, m.src * 2, m.dst * 2, m.aux * 2};
    return true;
}

bool try_unpack(Job &job, const uint8_t *dst, bool stream) {
    const tw_nest &descriptor = *job.descriptor;
    if (descriptor.dst_type != TW_F32 && !sixteen_bits(descriptor.dst_type)) return false;
    if (!whole_pieces(job, job.dst_size)) return false;
    Nest nest = job.nest;
    if (job.kind.block_size > piece) {
        nest.push({2, job.kind.piece_bytes(), job.half, 0});
        normalise(nest);
    }
    if (!make_lines_of_pieces(job, nest)) return false;
    nest.dst += descriptor.element_offset[0];
    const int64_t moved = nest.dst - job.nest.dst;
    job.route = Route::unpack;
    job.lines.put = stream ? Put::stream : Put::store;
    if (stream && !on_lines(job, nest, dst, moved)) return try_shift(job, nest, dst);
    sort_by_source(nest.mode, nest.rank);
    job.boxes = make_strips(nest, line, entries(job));
    return true;
}

bool try_short_routes(Job &job, const uint8_t *src, const uint8_t *dst, bool stream) {
    switch (job.descriptor->op) {
        case TW_COPY:
            return make_table(job, dst, stream) || try_lines(job, dst, stream) || try_rows(job, stream) ||
                   try_transpose(job, src, dst);
        case TW_PACK: return try_pack(job);
        case TW_UNPACK: return try_unpack(job, dst, stream);
        default: return false;
    }
}

// Returns whether what is contiguous on both sides covers many lines.
bool has_long_runs(const Job &job) {
    if (job.descriptor->op != TW_COPY || job.nest.rank == 0) return false;
    const Mode &m = job.nest.mode[0];
    return m.src == job.src_size && m.dst == job.dst_size && m.extent * job.dst_size >= 16 * line;
}

}  // namespace

void sort_by_source(Mode *mode, int count) {
    for (int i = 1; i < count; ++i) {
        Mode m = mode[i];
        int at = i;
        for (; at > 0 && magnitude(m.src) < magnitude(mode[at - 1].src); --at) mode[at] = mode[at - 1];
        mode[at] = m;
    }
}

bool check_nest(const tw_nest &descriptor, Job &job) {
    if (descriptor.rank < 0 || descriptor.rank > TW_MAX_RANK || descriptor.table_count < 0) return false;
    job.descriptor = &descriptor;
    switch (descriptor.op) {
        case TW_COPY:
            job.src_size = scalar_size(descriptor.src_type);
            job.dst_size = scalar_size(descriptor.dst_type);
            if (!job.src_size || !job.dst_size) return false;
            job.convert = descriptor.src_type != descriptor.dst_type;
            // Integers of one size differ only in how the bits are read.
            if (is_integer(descriptor.src_type) && is_integer(descriptor.dst_type) && job.src_size == job.dst_size) {
                job.convert = false;
            }
            job.unit = job.src_size > job.dst_size ? job.src_size : job.dst_size;
            job.cost = job.src_size + job.dst_size;
            break;
        case TW_FILL:
            job.dst_size = scalar_size(descriptor.dst_type);
            if (!job.dst_size) return false;
            job.src_size = job.dst_size;
            job.unit = job.cost = job.dst_size;
            break;
        case TW_PACK:
            job.src_size = scalar_size(descriptor.src_type);
            if (!job.src_size || !is_block(descriptor.dst_type)) return false;
            job.kind = block_kind(descriptor.dst_type);
            if (descriptor.block != job.kind.block_size) return false;
            job.dst_size = job.kind.code_bytes();
            job.unit = job.kind.block_size * (job.src_size > 4 ? job.src_size : 4);
            job.cost = job.kind.block_size * job.src_size + job.dst_size;
            break;
        case TW_UNPACK:
            job.dst_size = scalar_size(descriptor.dst_type);
            if (!job.dst_size || !is_block(descriptor.src_type)) return false;
            job.kind = block_kind(descriptor.src_type);
            if (descriptor.block != job.kind.block_size) return false;
            job.src_size = job.kind.code_bytes();
            job.unit = job.kind.block_size * (job.dst_size > 4 ? job.dst_size : 4);
            job.cost = job.kind.block_size * job.dst_size + job.src_size;
            break;
        default: return false;
    }
    job.nest = nest_of(descriptor);
    if (!job.nest.empty) {
        job.elements = static_cast<double>(descriptor.table_count > 0 ? descriptor.table_count : 1);
        for (int i = 0; i < job.nest.rank; ++i) job.elements *= static_cast<double>(job.nest.mode[i].extent);
    }
    job.written = job.elements * job.dst_size * (descriptor.op == TW_UNPACK ? job.kind.block_size : 1);
    return true;
}

void choose_route(Job &job, const uint8_t *src, const uint8_t *dst, bool stream) {
    job.stream = stream;
    if (!job.nest.empty) {
        if (try_short_routes(job, src, dst, stream)) return;
        // A target that does not start on a line: the short routes with ordinary stores still beat staging, which
        // could stream only between the ends of its runs. Long runs have few ends, and are better off there.
        if (stream && job.descriptor->op != TW_FILL && !has_long_runs(job) && try_short_routes(job, src, dst, false)) {
            job.stream = false;
            return;
        }
    }
    job.route = Route::staged;
    job.boxes = make_boxes(job.nest, job.unit, entries(job));
}

}  // namespace tw
