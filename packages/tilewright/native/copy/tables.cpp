// SPDX-License-Identifier: Apache-2.0
#include "copy/tables.h"

#include <algorithm>
#include <new>

#include "copy/routes.h"

namespace tw {
namespace {

constexpr int64_t line = 64;
constexpr int64_t longest_piece = 2048;  // longer ones are quick on any route
constexpr int64_t most_entries = 1 << 14;

struct Entry {
    int64_t src, dst;
};

// Returns whether entries, in the order of the target, make up whole lines of it.
bool make_lines(const Table &table, const Nest &nest, const uint8_t *start) {
    for (int i = 0; i < nest.rank; ++i) {
        if (nest.mode[i].dst % line != 0) return false;
    }
    if (table.piece < line && line % table.piece != 0) return false;
    const int64_t group = table.piece < line ? line / table.piece : 1;
    if ((table.piece > line && table.piece % line != 0) || table.count % group != 0) return false;
    for (int64_t i = 0; i < table.count; i += group) {
        if (reinterpret_cast<uintptr_t>(start + table.dst[i]) % line != 0) return false;
        for (int64_t k = 1; k < group; ++k) {
            if (table.dst[i + k] != table.dst[i] + k * table.piece) return false;
        }
    }
    return true;
}

}  // namespace

bool make_table(Job &job, const uint8_t *dst, bool stream) {
    const tw_nest &descriptor = *job.descriptor;
    const int64_t count = descriptor.table_count;
    if (descriptor.op != TW_COPY || job.convert || count < 2 || count > most_entries || !descriptor.src_table || !descriptor.dst_table) {
        return false;
    }
    Nest nest = job.nest;
    Table &table = job.table;
    table.piece = job.src_size;
    if (nest.rank > 0 && nest.mode[0].src == job.src_size && nest.mode[0].dst == job.dst_size) {
        table.piece *= nest.mode[0].extent;
        for (int i = 1; i < nest.rank; ++i) nest.mode[i - 1] = nest.mode[i];
        --nest.rank;
    }
    if (table.piece > longest_piece) return false;
    job.offsets.reset(new (std::nothrow) int64_t[static_cast<size_t>(4 * count)]);
    if (!job.offsets) return false;
    // A walk through boxes adds the first entry to all places.
    auto *entries = reinterpret_cast<Entry *>(job.offsets.get() + 2 * count);
    for (int64_t i = 0; i < count; ++i) {
        entries[i] = {descriptor.src_table[i] - descriptor.src_table[0], descriptor.dst_table[i] - descriptor.dst_table[0]};
    }
    std::sort(entries, entries + count, [](const Entry &a, const Entry &b) { return a.dst < b.dst; });
    int64_t *from = job.offsets.get(), *to = from + count;
    for (int64_t i = 0; i < count; ++i) {
        from[i] = entries[i].src;
        to[i] = entries[i].dst;
    }
    table.count = count;
    table.src = from;
    table.dst = to;
    table.lines = make_lines(table, nest, dst + nest.dst + descriptor.dst_table[0]);
    table.stream = stream && table.lines;
    sort_by_source(nest.mode, nest.rank);
    job.boxes = make_strips(nest, table.piece * count, 1);
    job.stream = table.stream;
    job.route = Route::table;
    return true;
}

}  // namespace tw
