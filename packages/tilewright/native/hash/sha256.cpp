// SPDX-License-Identifier: Apache-2.0
// SHA-256 of two streams at once. A round of the hash waits for the round before it, so one stream leaves half of the
// processor idle; two streams that know nothing of each other fill it.
#include "tilewright.h"

#include <cstring>

#if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
#  define TW_HAS_SHA 1
#  include <cpuid.h>
#  include <immintrin.h>
#else
#  define TW_HAS_SHA 0
#endif

namespace {

#if TW_HAS_SHA

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

bool has_sha() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool extended = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1u) != 0;
    return extended && __builtin_cpu_supports("sse4.1") != 0 && std::strcmp(tw_cpu_features(), "portable") != 0;
}

// The state as the instructions want it: {f, e, b, a} and {h, g, d, c}, lowest first.
struct State {
    __m128i abef, cdgh;
};

__attribute__((target("sha,sse4.1,ssse3"))) inline State load_state(const uint32_t *s) noexcept {
    return {_mm_set_epi32(int(s[0]), int(s[1]), int(s[4]), int(s[5])),
            _mm_set_epi32(int(s[2]), int(s[3]), int(s[6]), int(s[7]))};
}

__attribute__((target("sha,sse4.1,ssse3"))) inline void store_state(const State &hashes, uint32_t *s) noexcept {
    alignas(16) uint32_t abef[4], cdgh[4];
    _mm_store_si128(reinterpret_cast<__m128i *>(abef), hashes.abef);
    _mm_store_si128(reinterpret_cast<__m128i *>(cdgh), hashes.cdgh);
    s[0] = abef[3], s[1] = abef[2], s[4] = abef[1], s[5] = abef[0];
    s[2] = cdgh[3], s[3] = cdgh[2], s[6] = cdgh[1], s[7] = cdgh[0];
}

template <int Streams>
__attribute__((target("sha,sse4.1,ssse3"))) void compress(uint32_t *const (&state)[Streams],
                                                          const uint8_t *(&data)[Streams], int64_t blocks) noexcept {
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    State hashes[Streams];
    for (int k = 0; k < Streams; ++k) hashes[k] = load_state(state[k]);
    for (; blocks > 0; --blocks) {
        State before[Streams];
        __m128i words[Streams][4];
        for (int k = 0; k < Streams; ++k) before[k] = hashes[k];
#pragma GCC unroll 16
        for (int four = 0; four < 16; ++four) {  // rounds
            const __m128i key = _mm_load_si128(reinterpret_cast<const __m128i *>(kRound) + four);
#pragma GCC unroll 2
            for (int k = 0; k < Streams; ++k) {
                __m128i &now = words[k][four & 3];
                if (four < 4) {
                    now = _mm_loadu_si128(reinterpret_cast<const __m128i *>(data[k]) + four);
                    now = _mm_shuffle_epi8(now, big_endian);
                } else {
                    const __m128i last = words[k][(four + 3) & 3];
                    const __m128i seven = _mm_alignr_epi8(last, words[k][(four + 2) & 3], 4);
                    now = _mm_add_epi32(_mm_sha256msg1_epu32(now, words[k][(four + 1) & 3]), seven);
                    now = _mm_sha256msg2_epu32(now, last);
                }
                const __m128i fed = _mm_add_epi32(now, key);
                hashes[k].cdgh = _mm_sha256rnds2_epu32(hashes[k].cdgh, hashes[k].abef, fed);
                hashes[k].abef = _mm_sha256rnds2_epu32(hashes[k].abef, hashes[k].cdgh, _mm_shuffle_epi32(fed, 0x0E));
            }
        }
        for (int k = 0; k < Streams; ++k) {
            hashes[k].abef = _mm_add_epi32(hashes[k].abef, before[k].abef);
            hashes[k].cdgh = _mm_add_epi32(hashes[k].cdgh, before[k].cdgh);
            data[k] += 64;
        }
    }
    for (int k = 0; k < Streams; ++k) store_state(hashes[k], state[k]);
}

#endif

}  // namespace

int32_t tw_sha256_pair(uint32_t *state_a, const uint8_t *a, int64_t blocks_a, uint32_t *state_b,
                       const uint8_t *b, int64_t blocks_b) noexcept {
#if TW_HAS_SHA
    static const bool able = has_sha();
    if (!able) return -1;
    const int64_t both = blocks_a < blocks_b ? blocks_a : blocks_b;
    if (both > 0) {
        uint32_t *const states[2] = {state_a, state_b};
        const uint8_t *data[2] = {a, b};
        compress<2>(states, data, both);
        a = data[0], b = data[1];
    }
    uint32_t *const rest_state[1] = {blocks_a > both ? state_a : state_b};
    const uint8_t *rest[1] = {blocks_a > both ? a : b};
    compress<1>(rest_state, rest, (blocks_a > both ? blocks_a : blocks_b) - both);
    return 0;
#else
    (void)state_a, (void)a, (void)blocks_a, (void)state_b, (void)b, (void)blocks_b;
    return -1;
#endif
}
