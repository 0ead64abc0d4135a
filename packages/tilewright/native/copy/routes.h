// SPDX-License-Identifier: Apache-2.0
//
// How a nest gets from source to target. The short routes go directly, in the order of the source, because that is what
// the hardware prefetches; each needs a certain inner shape. The staged route takes anything.
#pragma once

#include <memory>

#include "copy/boxes.h"
#include "copy/kernels.h"

namespace tw {

enum class Route {
    lines,      // COPY: whole target lines from pieces of the source
    rows,       // COPY: a few long runs, wherever they start
    transpose,  // COPY: panels transposed in registers
    interleave,      // COPY: a few channels joined or split
    table,      // COPY: short pieces at places that a table gives
    pack,       // PACK: pieces contiguous in the source, codes and scales contiguous in the target
    unpack,     // UNPACK: pieces contiguous in the target, whole lines of them
    staged,     // box by box through scratch memory
};

// One nest of a call, checked and blocked.
struct Job {
    const tw_nest *descriptor = nullptr;
    Route route = Route::staged;
    Nest nest;                       // in normal form
    Boxes boxes;
    int src_size = 1, dst_size = 1;  // bytes of a scalar; of the codes of a block on the packed side
    bool convert = false;
    BlockKind kind;                  // PACK and UNPACK: of the packed side
    int64_t half = 0;                // for those routes: bytes from the first piece of a block to the second
    int64_t unit = 1;                // bytes of scratch for an element or block
    int64_t cost = 1;                // bytes read and written for an element or block
    bool stream = false;
    Lines lines;                     // for that route and unpack: everything but the loops
    int64_t piece_aux = 0;           // unpack: from a line's first scale to its second
    Panel panel;                     // for transpose: likewise
    Interleave interleave;                     // for interleave: likewise
    Table table;                     // for table: likewise
    std::unique_ptr<int64_t[]> offsets;  // of that table
    double elements = 0;             // or blocks
    double written = 0;              // bytes
};

// Sorts modes by source stride, the order in which memory is prefetched.
void sort_by_source(Mode *mode, int count);

// Checks a nest and fills in all but the route. Returns false when the nest is not supported.
bool check_nest(const tw_nest &descriptor, Job &job);

// Returns whether the route of a job takes scratch memory.
inline bool needs_scratch(const Job &job) {
    if (job.route == Route::transpose) return job.stream || !job.panel.has_lines;
    return job.route == Route::staged;
}

// Chooses the route and the boxes. `stream` says that the target is too large for the caches.
void choose_route(Job &job, const uint8_t *src, const uint8_t *dst, bool stream);

}  // namespace tw
