// SPDX-License-Identifier: Apache-2.0
//
// Sixteen bytes of each of k channels, and the same elements interleaved, are k lanes of a register, and each byte has
// its place in one of them: k shuffles make a lane, whatever the size of an element. All lanes of a register do the same.
// What is streamed is spooled, so that whole lines are written wherever the target starts.
#include "copy/interleave_kernels.h"

#include "copy/line_stream.h"
#include "copy/walk.h"

namespace tw::TW_ISA {
namespace {

constexpr int64_t lane = 16;
// What is spooled of a channel before it is written: all channels together fit the first cache level.
constexpr int64_t portion = 1024;

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// Where channels are: `apart` bytes from one to the next, and along each `step` bytes from an element to the next.
struct Side {
    int64_t apart, step;
};

template <int size>
void scalars_of(int k, int64_t count, const uint8_t *src, Side from, uint8_t *dst, Side to) {
    for (int64_t i = 0; i < count; ++i) {
        for (int c = 0; c < k; ++c) {
            std::memcpy(dst + c * to.apart + i * to.step, src + c * from.apart + i * from.step, size);
        }
    }
}

// The elements that no register is filled with, one by one.
TW_APART void scalars(int size, int k, int64_t count, const uint8_t *src, Side from, uint8_t *dst, Side to) {
    switch (size) {
        case 1: return scalars_of<1>(k, count, src, from, dst, to);
        case 2: return scalars_of<2>(k, count, src, from, dst, to);
        case 4: return scalars_of<4>(k, count, src, from, dst, to);
        default: return scalars_of<8>(k, count, src, from, dst, to);
    }
}

#if defined(__AVX2__)

// Which byte of lane j goes to each byte of lane i; none where the highest bit is set.
template <int k>
struct Shuffles {
    Vec pick[k][k];
};

template <int k>
void set_shuffles(Shuffles<k> &s, int size, bool join) {
    alignas(64) uint8_t byte[k][k][width];
    std::memset(byte, 0x80, sizeof byte);
    for (int c = 0; c < k; ++c) {
        for (int b = 0; b < lane; ++b) {  // byte b of a channel and where it is among the interleaved ones
            const int joined = (b / size * k + c) * size + b % size;
            const int part = joined / lane, place = joined % lane;
            for (int64_t l = 0; l < width; l += lane) {
                if (join) {
                    byte[part][c][l + place] = static_cast<uint8_t>(b);
                } else {
                    byte[c][part][l + b] = static_cast<uint8_t>(place);
                }
            }
        }
    }
    for (int i = 0; i < k; ++i) {
        for (int j = 0; j < k; ++j) s.pick[i][j] = load(byte[i][j]);
    }
}

template <int k>
TW_INLINE Vec make_lanes(const Shuffles<k> &s, int i, const Vec *in) {
    Vec v = shuffle_lanes(in[0], s.pick[i][0]);
#if defined(__GNUC__)
#  pragma GCC unroll 8
#endif
    for (int j = 1; j < k; ++j) v = either(v, shuffle_lanes(in[j], s.pick[i][j]));
    return v;
}

// Weaves registers of the channels while there are whole ones. Returns how many bytes of each channel are done.
template <int k>
int64_t join_vectors(const Shuffles<k> &s, int64_t bytes, const uint8_t *src, int64_t apart, uint8_t *out) {
    int64_t i = 0;
    for (; i + width <= bytes; i += width) {
        Vec in[k];
#if defined(__GNUC__)
#  pragma GCC unroll 8
#endif
        for (int c = 0; c < k; ++c) in[c] = load(src + c * apart + i);
#if defined(__GNUC__)
#  pragma GCC unroll 8
#endif
        for (int p = 0; p < k; ++p) store_lanes(out + i * k + p * lane, k * lane, make_lanes<k>(s, p, in));
    }
    return i;
}

// The same the other way: channel c goes to to[c].
template <int k>
int64_t split_vectors(const Shuffles<k> &s, int64_t bytes, const uint8_t *src, uint8_t *const *to) {
    int64_t i = 0;
    for (; i + width <= bytes; i += width) {
        Vec in[k];
#if defined(__GNUC__)
#  pragma GCC unroll 8
#endif
        for (int p = 0; p < k; ++p) in[p] = load_lanes(src + i * k + p * lane, k * lane);
#if defined(__GNUC__)
#  pragma GCC unroll 8
#endif
        for (int c = 0; c < k; ++c) store(to[c] + i, make_lanes<k>(s, c, in));
    }
    return i;
}

#else

template <int k>
struct Shuffles {};

template <int k>
void set_shuffles(Shuffles<k> &, int, bool) {}

template <int k>
int64_t join_vectors(const Shuffles<k> &, int64_t, const uint8_t *, int64_t, uint8_t *) {
    return 0;
}

template <int k>
int64_t split_vectors(const Shuffles<k> &, int64_t, const uint8_t *, uint8_t *const *) {
    return 0;
}

#endif

// Joins `bytes` of each channel at the address given.
template <int k>
TW_APART void join_at(int size, const Shuffles<k> &s, int64_t bytes, const uint8_t *src, int64_t apart, uint8_t *dst) {
    int64_t done = join_vectors<k>(s, bytes, src, apart, dst);
    scalars(size, k, (bytes - done) / size, src + done, {apart, size}, dst + done * k, {size, k * size});
}

// Splits into `bytes` of each channel, channel c at to[c].
template <int k>
TW_APART void split_at(int size, const Shuffles<k> &s, int64_t bytes, const uint8_t *src, uint8_t *const *to) {
    int64_t done = split_vectors<k>(s, bytes, src, to);
    for (int c = 0; c < k; ++c) {
        scalars(size, 1, (bytes - done) / size, src + done * k + c * size, {0, k * size}, to[c] + done, {0, size});
    }
}

template <int k>
void join(const Interleave &interleave, const Shuffles<k> &s, const uint8_t *src, uint8_t *dst) {
    const int64_t apart = interleave.mode[0].src, total = interleave.mode[1].extent * interleave.size;
    if (!interleave.stream) return join_at<k>(interleave.size, s, total, src, apart, dst);
    alignas(64) uint8_t buffer[k * portion + 2 * line];
    LineStream stream_out{buffer, dst, 0};
    for (int64_t i = 0; i < total; i += portion) {
        const int64_t bytes = at_most(total - i, portion);
        join_at<k>(interleave.size, s, bytes, src + i, apart, stream_out.end());
        stream_out.put(bytes * k);
    }
    stream_out.finish();
}

template <int k>
void split(const Interleave &interleave, const Shuffles<k> &s, const uint8_t *src, uint8_t *dst) {
    const int64_t total = interleave.mode[1].extent * interleave.size;
    constexpr int64_t pitch = portion + 3 * line;  // not all on the same lines of the first cache level
    alignas(64) uint8_t buffer[k * pitch];
    LineStream stream_out[k];
    uint8_t *to[k];
    for (int c = 0; c < k; ++c) {
        to[c] = dst + c * interleave.mode[0].dst;
        stream_out[c] = {buffer + c * pitch, to[c], 0};
    }
    if (!interleave.stream) return split_at<k>(interleave.size, s, total, src, to);
    for (int64_t i = 0; i < total; i += portion) {
        const int64_t bytes = at_most(total - i, portion);
        for (int c = 0; c < k; ++c) to[c] = stream_out[c].end();
        split_at<k>(interleave.size, s, bytes, src + i * k, to);
        for (int c = 0; c < k; ++c) stream_out[c].put(bytes);
    }
    for (int c = 0; c < k; ++c) stream_out[c].finish();
}

template <int k>
void weaves(const Interleave &interleave, const uint8_t *src, uint8_t *dst) {
    Shuffles<k> s;
    set_shuffles<k>(s, interleave.size, interleave.join);
    for_each_outer(interleave.mode, interleave.rank, 2, src, dst, [&](const uint8_t *a, uint8_t *b) {
        if (interleave.join) {
            join<k>(interleave, s, a, b);
        } else {
            split<k>(interleave, s, a, b);
        }
    });
}

}  // namespace

void copy_interleaved(const Interleave &interleave, const uint8_t *src, uint8_t *dst) {
    switch (interleave.mode[0].extent) {
        case 2: return weaves<2>(interleave, src, dst);
        case 3: return weaves<3>(interleave, src, dst);
        case 4: return weaves<4>(interleave, src, dst);
        case 5: return weaves<5>(interleave, src, dst);
        case 6: return weaves<6>(interleave, src, dst);
        case 7: return weaves<7>(interleave, src, dst);
        default: return weaves<8>(interleave, src, dst);
    }
}

}  // namespace tw::TW_ISA
