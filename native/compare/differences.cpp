// SPDX-License-Identifier: Apache-2.0
//
// tw_differences: how many numbers differ, and by how much at most.
#include <bit>
#include <cmath>
#include <cstdint>

#include "tilewright.h"

namespace {

constexpr int64_t chunk = 4096;

float widen(float x) { return x; }
float widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Two loops, as the compiler vectorises each of them by itself.
template <class T>
int64_t count_differing(const T *a, const T *b, int64_t count) {
    int32_t differing = 0;
    for (int64_t i = 0; i < count; ++i) {
        const float x = widen(a[i]), y = widen(b[i]);
        differing += (x != y) & ((x == x) | (y == y));
    }
    return differing;
}

// Returns the largest finite distance.
template <class T>
float largest_distance(const T *a, const T *b, int64_t count) {
    constexpr float most = 3.402823466e+38f;
    float largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const float distance = std::fabs(widen(a[i]) - widen(b[i]));
        const float finite = distance <= most ? distance : 0.0f;
        largest = finite > largest ? finite : largest;
    }
    return largest;
}

template <class T>
int64_t differences(const void *first, const void *second, int64_t count, float *largest) {
    const T *a = static_cast<const T *>(first), *b = static_cast<const T *>(second);
    int64_t differing = 0;
    float most = 0;
    for (int64_t i = 0; i < count; i += chunk) {
        const int64_t some = count - i < chunk ? count - i : chunk;
        const int64_t here = count_differing(a + i, b + i, some);
        if (here == 0) continue;
        differing += here;
        const float distance = largest_distance(a + i, b + i, some);
        most = distance > most ? distance : most;
    }
    *largest = most;
    return differing;
}

}  // namespace

int64_t tw_differences(int32_t type, const void *a, const void *b, int64_t count, float *largest) noexcept {
    if (type == TW_F32) return differences<float>(a, b, count, largest);
    return type == TW_BF16 ? differences<uint16_t>(a, b, count, largest) : -1;
}
