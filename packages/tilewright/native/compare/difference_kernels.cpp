// SPDX-License-Identifier: Apache-2.0
//
// How many numbers differ, and by how much at most, sixteen at a time. The largest distance and magnitude are sought
// among the bits of them, which order like them; those of a NaN come last.
#include "compare/difference_kernels.h"

#include <algorithm>

#include "simd/words.h"
#include "tilewright.h"

namespace tw::TW_ISA {
namespace {

constexpr int64_t sixteen = 16;
constexpr int64_t chunk = int64_t{1} << 24;  // numbers of which 32 bits hold the count
constexpr uint32_t magnitude = 0x7fffffffu, endless = 0x7f800000u;

struct Differences {
    Words count = 0u, most = 0u, top = 0u;

    TW_INLINE void add(const Words &x, const Words &y) {
        const Words distance = plus(x, y + 0x80000000u) & magnitude;
        most = larger(most, where_less(distance, endless, distance, 0u));
        top = larger(top, x & magnitude);
        const Words unequal = where_equal(x, y, 0u, 1u);
        const Words not_zeros = where_equal((x | y) & magnitude, 0u, 0u, unequal);
        count = count + where_less(endless, smaller(x & magnitude, y & magnitude), 0u, not_zeros);  // of two NaNs, none
    }
};

template <class From>
int64_t count_all(const uint8_t *a, const uint8_t *b, int64_t count, float *largest) {
    int64_t differing = 0;
    uint32_t most = 0, top = 0;
    for (int64_t start = 0; start < count; start += chunk) {
        const int64_t end = std::min(count, start + chunk);
        Differences found;
        int64_t i = start;
        for (; i + sixteen <= end; i += sixteen) {
            const auto at = static_cast<size_t>(i) * sizeof(From);
            found.add(words_of(load_sixteen<From>(a + at)), words_of(load_sixteen<From>(b + at)));
        }
        if (i < end) {
            alignas(64) uint8_t rest[2][sixteen * sizeof(From)] = {};
            for (int k = 0; k < 2; ++k) {
                std::memcpy(rest[k], (k == 0 ? a : b) + static_cast<size_t>(i) * sizeof(From),
                            static_cast<size_t>(end - i) * sizeof(From));
            }
            found.add(words_of(load_sixteen<From>(rest[0])), words_of(load_sixteen<From>(rest[1])));
        }
        uint32_t counts[sixteen], distances[sixteen], tops[sixteen];
        store_words(counts, found.count);
        store_words(distances, found.most);
        store_words(tops, found.top);
        for (int k = 0; k < sixteen; ++k) {
            differing += counts[k];
            most = std::max(most, distances[k]);
            top = std::max(top, tops[k]);
        }
    }
    largest[0] = float_of(most);
    largest[1] = float_of(top);
    return differing;
}

}  // namespace

int64_t count_differences(int32_t type, const void *a, const void *b, int64_t count, float *largest) {
    const auto *x = static_cast<const uint8_t *>(a), *y = static_cast<const uint8_t *>(b);
    if (type == TW_F32) return count_all<float>(x, y, count, largest);
    return type == TW_BF16 ? count_all<Brain>(x, y, count, largest) : -1;
}

}  // namespace tw::TW_ISA
