// SPDX-License-Identifier: Apache-2.0
//
// tw_pair_sums: sums over pairs of numbers, separately for each magnitude.
#include <bit>
#include <cstring>

#include "tilewright.h"

namespace tw {
namespace {

constexpr uint64_t no_sign = ~uint64_t{0} >> 1;

// Returns the bits of the larger magnitude; those of magnitudes are in the same order as the magnitudes.
uint64_t larger(double a, double b) {
    const uint64_t x = std::bit_cast<uint64_t>(a) & no_sign, y = std::bit_cast<uint64_t>(b) & no_sign;
    return x > y ? x : y;
}

// Returns the bin of a magnitude: 0 for zero, else the exponent of frexp plus 1075.
int64_t bin_of(uint64_t bits) {
    const auto exponent = static_cast<int64_t>(bits >> 52);
    if (exponent > 0) return exponent + 53;
    return bits == 0 ? 0 : std::bit_width(bits) + 1;
}

}  // namespace
}  // namespace tw

void tw_pair_sums(const double *a, const double *b, int64_t count, double *sums, int64_t *range) noexcept {
    using namespace tw;
    if (count <= 0) {
        range[0] = range[1] = 0;
        return;
    }
    uint64_t least = no_sign, most = 0;
    for (int64_t i = 0; i < count; ++i) {
        const uint64_t x = larger(a[i], b[i]);
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    const int64_t low = bin_of(least), high = bin_of(most) + 1;
    range[0] = low;
    range[1] = high;
    double *const row[7] = {sums, sums + TW_MAGNITUDES, sums + 2 * TW_MAGNITUDES, sums + 3 * TW_MAGNITUDES,
                            sums + 4 * TW_MAGNITUDES, sums + 5 * TW_MAGNITUDES, sums + 6 * TW_MAGNITUDES};
    for (double *each : row) std::memset(each + low, 0, static_cast<size_t>(high - low) * sizeof(double));
    double *const number = row[0], *const mean_a = row[1], *const mean_b = row[2];
    for (int64_t i = 0; i < count; ++i) {
        const int64_t bin = bin_of(larger(a[i], b[i]));
        number[bin] += 1.0;
        mean_a[bin] += a[i];
        mean_b[bin] += b[i];
    }
    for (int64_t bin = low; bin < high; ++bin) {
        if (number[bin] == 0.0) continue;
        mean_a[bin] /= number[bin];
        mean_b[bin] /= number[bin];
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t bin = bin_of(larger(a[i], b[i]));
        const double da = a[i] - mean_a[bin], db = b[i] - mean_b[bin], error = a[i] - b[i];
        row[3][bin] += da * da;
        row[4][bin] += db * db;
        row[5][bin] += da * db;
        row[6][bin] += error * error;
    }
}
