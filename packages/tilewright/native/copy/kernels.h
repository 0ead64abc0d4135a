// SPDX-License-Identifier: Apache-2.0
//
// The functions that depend on the instruction set. Their files are compiled once for each instruction set, in a
// namespace of its name; dispatch.cpp picks one at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "copy/bit_copy.h"
#include "copy/panels.h"
#include "copy/tables.h"
#include "copy/interleave.h"

namespace tw {

using ConvertRun = void (*)(const uint8_t *src, uint8_t *dst, size_t count);

// The values that kernels read and write in one piece: a block, or half a block of 32.
constexpr int piece = 16;

// A block type: the number of elements in a block and the bits of a code. `five` is the 5-bit exponent of the A kinds of block floats.
struct BlockKind {
    int type = TW_BFP8B;
    int block_size = piece;
    int bits = 8;
    bool five = false;

    // Returns whether it is not one of the block floats, which have kernels of their own.
    bool is_scaled() const { return type > TW_BFP2A; }
    int code_bytes() const { return block_size * bits / 8; }
    int piece_bytes() const { return piece * bits / 8; }
};

// Blocks of float32, bfloat16 or float16 to pack. Mode 0 is blocks whose codes and scales are contiguous; the others
// repeat that, `src` on the values' side, `dst` on the codes' and `aux` on the scales'. The values of a block are contiguous,
// or those of its halves are, and these are `half` bytes apart.
struct Packing {
    BlockKind kind;
    int type;
    int64_t half;
    bool stream;
    int rank;
    Mode mode[max_modes];
};

// Blocks to unpack into lines of float32, bfloat16 or float16. A line takes one piece, or two of the 16-bit types. The
// loops go over lines; `src` is the codes' side and `aux` the scales'.
struct Unpacking {
    BlockKind kind;
    int type;
    int64_t piece_aux = 0;  // bytes from the scale of the first piece of a line to that of the second
    Lines lines;
};

constexpr int scalar_types = TW_BOOL + 1;

struct Kernels {
    // Copies bits. `ahead` is the distance in bytes to what will be read next, 0 for nothing to prefetch.
    void (*copy)(const BitCopy &copy, const uint8_t *src, uint8_t *dst, int64_t ahead);
    // Makes whole lines.
    void (*lines)(const Lines &lines, const uint8_t *src, uint8_t *dst);
    // Copies panels. `ahead` as for copy; `staging` holds one of them.
    void (*panel)(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging);
    // Interleaves or separates channels.
    void (*interleave)(const Interleave &interleave, const uint8_t *src, uint8_t *dst);
    // Copies pieces at offsets from a table.
    void (*table)(const Table &table, const uint8_t *src, uint8_t *dst);
    // Makes streamed stores visible before the call that follows.
    void (*fence)();
    // Returns the conversion of contiguous elements between two different types.
    ConvertRun (*converter)(int src_type, int dst_type);
    // Packs blocks.
    void (*pack)(const Packing &packing, const uint8_t *values, uint8_t *codes, uint8_t *scales);
    // Unpacks blocks.
    void (*unpack)(const Unpacking &unpacking, const uint8_t *codes, const uint8_t *scales, uint8_t *values);
    // Makes float32 of codes.
    bool (*decode)(const tw_coding &coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                   float *out);
    // Counts the numbers that differ.
    int64_t (*differences)(int32_t type, const void *a, const void *b, int64_t count, float *largest);
    // The least distance from a line, in bytes, that Put::shift can make up for; 0: it does not know how.
    int shift_unit;
};

namespace portable { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

// Returns the kernels for this machine.
const Kernels &best_kernels();

}  // namespace tw
