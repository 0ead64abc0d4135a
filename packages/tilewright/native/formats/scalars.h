// SPDX-License-Identifier: Apache-2.0
//
// What one element of each scalar type is and how it is converted. Every conversion goes through one of four wide
// types (float, double, int64_t, uint64_t) that hold the source exactly, so the rules are written once for each target.
//
//   to 16 and 8 bits        by way of float32, also from double and integers; every NaN is 0x7E00, 0x7FC0, 0x7F, 0x7E
//   to float8_e4m3          below 2^-6: zero with the sign; clamped to 448, infinities too
//   to float8_e5m2          clamped to 57344, infinities too; subnormals are made
//   to float16/32/64        IEEE nearest even; every NaN is the quiet one without sign (bfloat16 to float32: bits)
//   float to integer        truncated; out of range is the nearest end of the range; NaN is 0
//   integer to integer      the low bits
//   to bool                 1 unless zero (a NaN is 1)
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

TW_INLINE uint32_t bits_of(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    return u;
}
TW_INLINE float float_of(uint32_t u) {
    float x;
    std::memcpy(&x, &u, 4);
    return x;
}

constexpr uint32_t quiet_nan = 0x7fc00000u;

// Storage of the types that C++ does not have.
struct Half { uint16_t bits; };
struct Brain { uint16_t bits; };
struct E4m3 { uint8_t bits; };
struct E5m2 { uint8_t bits; };
struct Bool { uint8_t bits; };

TW_INLINE float widen(Brain x) { return float_of(uint32_t{x.bits} << 16); }
TW_INLINE float widen(Half x) {
    uint32_t sign = (x.bits & 0x8000u) << 16;
    uint32_t magnitude = x.bits & 0x7fffu;
    uint32_t normal = (magnitude << 13) + (112u << 23);
    // A subnormal is an integer times 2^-24; put it under the exponent of 2^-14 and take that away again.
    uint32_t tiny = bits_of(float_of((magnitude << 13) + (113u << 23)) - float_of(113u << 23));
    uint32_t finite = sign | (magnitude < 0x400u ? tiny : magnitude >= 0x7c00u ? 0x7f800000u : normal);
    return float_of(magnitude > 0x7c00u ? quiet_nan : finite);
}
TW_INLINE float widen(E4m3 x) {
    uint32_t sign = (x.bits & 0x80u) << 24;
    uint32_t magnitude = x.bits & 0x7fu;
    uint32_t normal = (magnitude << 20) + (120u << 23);
    uint32_t tiny = bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9f);
    return float_of(magnitude == 0x7f ? quiet_nan : sign | (magnitude < 8 ? tiny : normal));
}
TW_INLINE float widen(E5m2 x) { return widen(Half{static_cast<uint16_t>(x.bits << 8)}); }
TW_INLINE float widen(float x) { return x; }
TW_INLINE double widen(double x) { return x; }
TW_INLINE int64_t widen(int8_t x) { return x; }
TW_INLINE int64_t widen(int16_t x) { return x; }
TW_INLINE int64_t widen(int32_t x) { return x; }
TW_INLINE int64_t widen(int64_t x) { return x; }
TW_INLINE uint64_t widen(uint8_t x) { return x; }
TW_INLINE uint64_t widen(uint16_t x) { return x; }
TW_INLINE uint64_t widen(uint32_t x) { return x; }
TW_INLINE uint64_t widen(uint64_t x) { return x; }
TW_INLINE uint64_t widen(Bool x) { return x.bits != 0; }

TW_INLINE Half half_of(float x) {
    uint32_t u = bits_of(x);
    uint32_t sign = (u >> 16) & 0x8000u;
    uint32_t a = u & 0x7fffffffu;
    uint32_t normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1)) >> 13;
    // Adding 0.5 leaves exactly the bits of a subnormal at the bottom, rounded by the addition.
    uint32_t tiny = bits_of(float_of(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
    uint32_t finite = sign | (a < 0x38800000u ? tiny : a >= 0x47800000u ? 0x7c00u : normal);
    return {static_cast<uint16_t>(a > 0x7f800000u ? 0x7e00u : finite)};
}
TW_INLINE Brain brain_of(float x) {
    uint32_t u = bits_of(x);
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded)};
}
TW_INLINE E4m3 e4m3_of(float x) {
    uint32_t u = bits_of(x);
    uint32_t sign = (u >> 24) & 0x80u;
    uint32_t a = u & 0x7fffffffu;
    uint32_t clamped = a < 0x43e00000u ? a : 0x43e00000u;
    uint32_t rounded = ((clamped + 0x7ffffu + ((clamped >> 20) & 1)) >> 20) - (120u << 3);
    uint32_t code = sign | (a < 0x3c800000u ? 0u : rounded);
    return {static_cast<uint8_t>(a > 0x7f800000u ? 0x7fu : code)};
}
TW_INLINE E5m2 e5m2_of(float x) {
    uint32_t u = bits_of(x);
    uint32_t sign = (u >> 24) & 0x80u;
    uint32_t a = u & 0x7fffffffu;
    uint32_t clamped = a < 0x47600000u ? a : 0x47600000u;
    uint32_t normal = ((clamped + 0xfffffu + ((clamped >> 21) & 1)) >> 21) - (112u << 2);
    uint32_t tiny = bits_of(float_of(a < 0x38800000u ? a : 0u) + 128.0f) - 0x43000000u;
    uint32_t code = sign | (a < 0x38800000u ? tiny : normal);
    return {static_cast<uint8_t>(a > 0x7f800000u ? 0x7eu : code)};
}

template <class Int, class Float>
TW_INLINE Int truncated(Float x) {
    using Limits = std::numeric_limits<Int>;
    // One past the largest is a power of two and therefore exact in any float; the smallest is one too, or 0.
    constexpr Float over = static_cast<Float>(Limits::max() / 2 + 1) * 2;
    constexpr Float least = static_cast<Float>(Limits::min());
    if (!(x > least)) return x == x ? Limits::min() : Int{0};
    if (x >= over) return Limits::max();
    return static_cast<Int>(x);
}

// Converts a wide value to the target type.
template <class To, class Wide>
TW_INLINE To narrow(Wide x) {
    if constexpr (std::is_same_v<To, Half>) {
        return half_of(static_cast<float>(x));
    } else if constexpr (std::is_same_v<To, Brain>) {
        return brain_of(static_cast<float>(x));
    } else if constexpr (std::is_same_v<To, E4m3>) {
        return e4m3_of(static_cast<float>(x));
    } else if constexpr (std::is_same_v<To, E5m2>) {
        return e5m2_of(static_cast<float>(x));
    } else if constexpr (std::is_same_v<To, Bool>) {
        return {static_cast<uint8_t>(x != 0)};
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Wide>) {
        return truncated<To>(x);
    } else if constexpr (std::is_floating_point_v<To> && std::is_floating_point_v<Wide> && !std::is_same_v<To, Wide>) {
        return x == x ? static_cast<To>(x) : static_cast<To>(float_of(quiet_nan));
    } else {
        return static_cast<To>(x);
    }
}

}  // namespace
}  // namespace tw::TW_ISA
