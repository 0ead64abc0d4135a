// SPDX-License-Identifier: Apache-2.0
//
// The codes of bfloat16 under a power of two, in integers of 16 bits. Only for the files compiled once for each
// instruction set.
//
// A magnitude is an exponent and a fraction in one integer, and a scale an exponent to subtract from it. What is left
// counts from half of the smallest code on. The code is a convex function of it, made of straight pieces: each exponent
// is twice as steep as the one before, until numbers are normal.
#pragma once

#include <array>

#include "simd/shorts.h"

namespace tw::TW_ISA {
namespace {

template <class Element>
struct BrainCodes {
    // The largest magnitudes of blocks from which on subnormal values become 0.
    static constexpr uint32_t lowest = (Element::bias + Element::mantissa_bits + 1 + Element::top_exponent) << 23;

    // Returns what `encode` subtracts under scales, in both halves of each word. A block of zeros may have any.
    static TW_INLINE Words base(const Words &scale) {
        constexpr uint32_t least = Element::bias + Element::mantissa_bits;
        const Words exponent = (larger(scale, least) - least) << 7;
        return exponent | (exponent << 16);
    }

    // Returns the codes of finite values of blocks that are not below the lowest.
    static TW_INLINE Shorts encode(const Shorts &values, const Shorts &base) {
        const Shorts codes = magnitude_codes(excess(values & 0x7fff, base));
        if constexpr (!Element::is_integer) return with_sign(codes, values) >> cut;
        const Shorts negative = Shorts(0) - (values >> 15);
        return (((codes >> cut) + negative) ^ negative) & 0xff;
    }

private:
    static constexpr int cut = 16 - Element::bits;  // codes are made in the upper bits, below the sign
    static constexpr uint32_t half = 1u << (cut - 1);
    static constexpr uint32_t largest = (Element::first_special - 1) << cut;
    static constexpr int steepest = Element::mantissa_bits + 1;  // how often it gets twice as steep

    // Returns the code before rounding at the start of piece i, and how steep it is.
    static constexpr uint32_t start(int i) { return half << (i < steepest ? i : steepest); }
    static constexpr uint32_t slope(int i) { return start(i) >> 7; }

    static TW_INLINE Shorts magnitude_codes(const Shorts &a) {
#if defined(__AVX512BW__)
        if constexpr (Element::bits == 4) return a + look_up(offsets_of_quarters, a >> 5);
#endif
        // The larger half of a step is added. A tie becomes the last number before the next code, which an odd one is added to.
        return rounded_by<cut>(smaller(straight(a), static_cast<uint16_t>(largest + half - 1)));
    }

    // Returns codes before rounding, and half a step less one.
    static TW_INLINE Shorts straight(const Shorts &a) {
#if defined(__AVX512BW__)
        constexpr int exponents = Element::bias + Element::mantissa_bits + Element::top_exponent + 1;
        const Shorts piece = exponents > 32 ? smaller(a >> 7, 31) : a >> 7;
        return a * look_up(slopes, piece) + look_up(offsets, piece);
#else
        Shorts sum = excess(a, steepest << 7);
        for (int i = steepest - 1; i > 0; --i) sum = sum + sum + excess(a, static_cast<uint16_t>(i << 7));
        sum = sum + a;
        for (uint32_t steps = 1; steps < slope(0); steps += steps) sum = sum + sum;
        return sum + static_cast<uint16_t>(half + half - 1);
#endif
    }

#if defined(__AVX512BW__)
    static constexpr auto slopes = [] {
        std::array<uint16_t, 32> table{};
        for (int i = 0; i < 32; ++i) table[i] = static_cast<uint16_t>(slope(i));
        return table;
    }();
    // With its slope, what continues a piece down to 0, but for multiples of 2^16.
    static constexpr auto offsets = [] {
        std::array<uint16_t, 32> table{};
        for (int i = 0; i < 32; ++i) {
            table[i] = static_cast<uint16_t>(start(i) - (i < steepest ? i : steepest) * 128 * slope(i) + half - 1);
        }
        return table;
    }();
    // For 2 bits of the fraction, which decide together with whether anything follows: the sum with what they are taken
    // from is the code, and overflows into the next one if only more than these bits has that.
    static constexpr auto offsets_of_quarters = [] {
        std::array<uint16_t, 32> table{};
        for (uint32_t i = 0; i < 32; ++i) {
            const uint32_t piece = i / 4 < steepest ? i / 4 : steepest, at = 32 * i;
            const uint32_t exact = start(static_cast<int>(piece)) + (at - 128 * piece) * slope(static_cast<int>(piece));
            const auto rounded = [](uint32_t a) {
                const uint32_t code = a + half - 1 + (a >> cut & 1);
                return code < largest ? code >> cut << cut : largest;
            };
            const bool last = rounded(exact) != rounded(exact + slope(static_cast<int>(piece)));
            table[i] = static_cast<uint16_t>(rounded(exact) - at + (last ? (1u << cut) - 1 : 0));
        }
        return table;
    }();
#endif
};

#if defined(__AVX512BW__)

// The codes of bfloat16 as E2M1 under a scale with a fraction of 3 bits. Values are multiples of 2^-12 of the power of two
// in the scale, and their product with the inverse of its fraction is the ratio in multiples of 2^-11. Any value from the
// first tie on, 1/4, is exact, and ties are then; the inverse is a little too large, by less than a multiple, and values
// next to a tie are two of them away.
struct BrainRatios {
    static TW_INLINE Words twice(const Words &a) { return a | (a << 16); }

    // Returns the largest magnitudes that `encode` distinguishes under scales, and the inverses of the fractions of these,
    // both in both halves of each word.
    static TW_INLINE Words limit(const Words &scale) { return twice((((scale >> 23) + 3u) << 7) | 127u); }
    static TW_INLINE Words inverse(const Words &scale) { return twice(look_up(inverses, scale >> 20)); }

    static TW_INLINE Shorts encode(const Shorts &values, const Shorts &limit, const Shorts &inverse) {
        const Shorts a = smaller(values & 0x7fff, limit);
        const Shorts steps = ((a << 8) | 0x8000) >> ((limit - a) >> 7);
        const Shorts ratio = smaller(upper_product(steps, inverse), (32 << 9) - 1);
        return with_sign(ratio + look_up(offsets, ratio >> 9), values) >> 12;
    }

private:
    static constexpr auto inverses = [] {
        std::array<uint32_t, 16> table{};
        for (uint32_t i = 0; i < 16; ++i) table[i] = ((8u << 15) + 7 + i % 8) / (8 + i % 8);
        return table;
    }();
    // For each quarter of a ratio, as offsets_of_quarters above.
    static constexpr auto offsets = [] {
        constexpr uint32_t ties[] = {1, 3, 5, 7, 10, 14, 20};  // in quarters; every other one belongs to the code above
        std::array<uint16_t, 32> table{};
        for (uint32_t i = 0; i < 32; ++i) {
            uint32_t code = 0;
            bool last = false;
            for (uint32_t k = 0; k < 7; ++k) {
                last |= i == ties[k] && k % 2 == 0;
                code += i > ties[k] || (i == ties[k] && k % 2 == 1);
            }
            table[i] = static_cast<uint16_t>((code << 12) - (i << 9) + (last ? 4095 : 0));
        }
        return table;
    }();
};

#endif

}  // namespace
}  // namespace tw::TW_ISA
