/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C ABI of the native library. Nothing else is exported.
 *
 * Rules for every function here: plain C types of stated width, no exception leaves, no memory is handed over,
 * no global state. A change to an existing signature or its meaning raises TW_ABI_VERSION, and with it ABI_VERSION
 * in src/tilewright/copying/native.py; a new function does not need to.
 */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#define TW_ABI_VERSION 5

#define TW_MAX_RANK 24
#define TW_MAX_BLOCK 32
#define TW_MAGNITUDES 2100

#if defined(_WIN32)
#  if defined(TW_BUILDING)
#    define TW_EXPORT __declspec(dllexport)
#  else
#    define TW_EXPORT __declspec(dllimport)
#  endif
#else
#  define TW_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#  define TW_NOEXCEPT noexcept
extern "C" {
#else
#  define TW_NOEXCEPT
#endif

/* What a loop nest does. */
enum { TW_COPY = 0, TW_FILL = 1, TW_PACK = 2, TW_UNPACK = 3 };

/* Scalar types, from 0. */
enum {
    TW_F64, TW_F32, TW_F16, TW_BF16, TW_F8E4M3, TW_F8E5M2,
    TW_I8, TW_I16, TW_I32, TW_I64, TW_U8, TW_U16, TW_U32, TW_U64, TW_BOOL
};

/*
 * Block types. BFP: 16 codes of 8, 4 or 2 bits under one scale byte with an 8-bit (B) or 5-bit (A) exponent. MX: 32 codes
 * under a power of two (OCP Microscaling). NVFP4: 16 codes under an E4M3 float.
 */
enum {
    TW_BFP8B = 100, TW_BFP4B, TW_BFP2B, TW_BFP8A, TW_BFP4A, TW_BFP2A,
    TW_MXFP8E4M3, TW_MXFP8E5M2, TW_MXFP6E2M3, TW_MXFP6E3M2, TW_MXFP4, TW_MXINT8, TW_NVFP4
};

/*
 * One loop nest of a plan, outermost mode first; any order of modes is correct. Strides are in bytes and may be
 * 0 or negative. The target elements of one call must be distinct, within a nest and between nests: nests run in
 * no particular order. Source and target must not overlap.
 *
 * COPY    target element = the source element, converted (same type: the same bits).
 * FILL    target element = fill. The source is not read.
 * PACK    the nest enumerates blocks. The scalars at source + element_offset[i] (float32 fill where bit i of element_mask is
 *         clear) become float32 and are packed: the codes go to the target address, the scale byte to the aux address,
 *         which is in the target.
 * UNPACK  the nest enumerates blocks. Codes are at the source address, the scale byte at the aux address, which is in
 *         the source; the values go to target + element_offset[i] for the elements in element_mask.
 */
typedef struct {
    int32_t op, rank, src_type, dst_type;
    int64_t extent[TW_MAX_RANK], src_stride[TW_MAX_RANK], dst_stride[TW_MAX_RANK], aux_stride[TW_MAX_RANK];
    int64_t src_offset, dst_offset, aux_offset;       /* bytes */
    int64_t element_offset[TW_MAX_BLOCK];                /* PACK/UNPACK: byte offset of each element of a block, scalar side */
    uint32_t element_mask;                               /* PACK: elements that are data; UNPACK: elements that are written */
    int32_t block;                                    /* elements per block: 32 for the MX types, 16 for all others */
    uint8_t fill[16];                                 /* FILL: one element of dst_type; PACK: one float32 */
    int64_t table_count;                              /* 0: no table; else the nest runs once for each entry, */
    const int64_t *src_table, *dst_table, *aux_table; /* with these byte offsets added; aux_table may be null */
} tw_nest;

/* Returns the TW_ABI_VERSION the library was built with. */
TW_EXPORT int32_t tw_abi_version(void) TW_NOEXCEPT;

/*
 * Runs the nests. threads <= 0 means all cores; small jobs stay on the calling thread.
 * Returns 0 when done, a negative number when an op, a type or a size is not supported (-1) or there was no memory for
 * the scratch (-2); nothing is written then.
 */
TW_EXPORT int32_t tw_run(const tw_nest *nests, int32_t count, const uint8_t *src, uint8_t *dst,
                         int32_t threads) TW_NOEXCEPT;

/*
 * The same, for nests that write to a target larger than the caches although the nests are not: what is written bypasses
 * the caches where that is possible.
 */
TW_EXPORT int32_t tw_run_streaming(const tw_nest *nests, int32_t count, const uint8_t *src, uint8_t *dst,
                                   int32_t threads) TW_NOEXCEPT;

/*
 * What quantised codes are: small floats and integers, whose scales are apart; E2M1 has two to a byte, the low nibble first.
 * Or block types of ggml, which hold their scales.
 */
enum {
    TW_CODE_E2M1, TW_CODE_E4M3, TW_CODE_E5M2, TW_CODE_INT8,
    TW_CODE_Q4_0, TW_CODE_Q4_1, TW_CODE_Q8_0, TW_CODE_Q4_K, TW_CODE_Q5_K, TW_CODE_Q6_K, TW_CODE_MXFP4
};

/*
 * Rows of codes, row_bytes apart, with a scale for each group of group_rows x group_columns; rows of scales are scale_row
 * floats apart. The first code is at (first_row, first_column) of its group. Block types ignore all but row_bytes.
 */
typedef struct {
    int32_t element, bits; /* bits: those of a code */
    int64_t row_bytes, scale_row, group_rows, group_columns, first_row, first_column;
} tw_coding;

/*
 * Makes float32 of codes, row after row: number x scale, or as the block type defines. Returns 0, or -1 for an unknown
 * element, or columns that are not whole blocks.
 */
TW_EXPORT int32_t tw_decode(const tw_coding *coding, const uint8_t *codes, const float *scales, int64_t rows,
                            int64_t columns, float *out) TW_NOEXCEPT;

/*
 * Makes tiles of bfloat8_b of codes, those that packing the float32 of tw_decode makes: 32 x 32 elements each, 64 scale bytes
 * and then the codes of four faces; the tiles follow each other row after row. Returns 0, or -1 for an unknown element, or
 * rows and columns that are not whole tiles and blocks.
 */
TW_EXPORT int32_t tw_recode(const tw_coding *coding, const uint8_t *codes, const float *scales, int64_t rows,
                            int64_t columns, uint8_t *tiles) TW_NOEXCEPT;

/* A copy that a worker of a pipeline runs; see tw_run_transfers. */
typedef struct {
    const tw_nest *nests;
    const uint8_t *src;
    uint8_t *dst;
    int32_t count, streaming; /* streaming: as tw_run_streaming */
} tw_transfer;

/*
 * What a worker of a pipeline does between two computes: raises *turn to `done` (it is never lowered), exports one tile,
 * imports another, all on the calling thread, and waits until *turn is at least `awaited`. *turn is shared by all workers,
 * and touched by this function alone. Returns 0, or the negative number of tw_run for the first transfer that failed; it
 * does not wait then.
 */
TW_EXPORT int32_t tw_run_transfers(int64_t *turn, int64_t done, const tw_transfer *exports, int32_t export_count,
                           const tw_transfer *imports, int32_t import_count, int64_t awaited) TW_NOEXCEPT;

/* Returns the number of the core that the caller runs on, or -1 where the system does not say. */
TW_EXPORT int32_t tw_current_core(void) TW_NOEXCEPT;

/*
 * Continues two SHA-256 hashes, each over a number of whole blocks of 64 bytes: 8 words of state each, as the standard
 * starts them. Both at once take little longer than one. Returns 0, or -1 where the processor has no instructions for it;
 * nothing is changed then.
 */
TW_EXPORT int32_t tw_sha256_pair(uint32_t *state_a, const uint8_t *a, int64_t blocks_a, uint32_t *state_b,
                                 const uint8_t *b, int64_t blocks_b) TW_NOEXCEPT;

/*
 * Reads `count` runs of `size` bytes from an open file, those at the offsets `starts`, one after the other into `out`.
 * Returns how many were read: fewer where the file ends, a read fails, or the system has no such reads.
 */
TW_EXPORT int64_t tw_read_runs(int32_t handle, const int64_t *starts, int64_t count, int64_t size,
                               uint8_t *out) TW_NOEXCEPT;

/*
 * Sums over pairs of finite numbers, separately for each magnitude, that of the larger of the two: bin 0 is for zeros, bin
 * e + 1075 for those with exponent e as of frexp. `sums` is 7 rows of TW_MAGNITUDES bins: count, mean of a, mean
 * of b, and the sums of da * da, db * db, da * db and (a - b)^2, where da and db are the distances from the means of the
 * bin. Only bins range[0] to range[1] - 1 are written.
 */
TW_EXPORT void tw_pair_sums(const double *a, const double *b, int64_t count, double *sums, int64_t *range) TW_NOEXCEPT;

/*
 * Returns how many of `count` pairs of float32 or bfloat16 differ, where a NaN equals a NaN; -1 for other types. Writes two
 * numbers: the largest finite difference, and the largest magnitude of a, a NaN if there is one.
 */
TW_EXPORT int64_t tw_differences(int32_t type, const void *a, const void *b, int64_t count, float *largest) TW_NOEXCEPT;

/*
 * Returns the instruction sets used on this machine, e.g. "avx512bw avx512vl avx2", or "portable". The environment
 * variable TILEWRIGHT_CPU, set to avx2 or portable before the first call, holds them back to that.
 */
TW_EXPORT const char *tw_cpu_features(void) TW_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
