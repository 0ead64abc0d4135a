// SPDX-License-Identifier: Apache-2.0
//
// The block types that round the exact ratio of a value to its scale: OCP Microscaling and NVFP4. A type is an element
// encoding, a scale encoding and a number of lanes. Only for the files compiled once for each instruction set.
//
// Everything works on the bits of float32, without branches, so that a loop over a block becomes vector instructions.
// float32 is enough: elements and scales have at most 7 bits, so no quotient and no product comes near a tie without
// being on it.
#pragma once

#include "kernels.h"
#include "scalars.h"

namespace tw::TW_ISA {
namespace {

constexpr uint32_t infinity = 0x7f800000u;
constexpr uint32_t largest_finite = 0x7f7fffffu;

// Returns one or the other. Written so, compilers do not make a branch of it, which would keep a loop from becoming
// vector instructions.
TW_INLINE uint32_t pick(bool first, uint32_t one, uint32_t other) {
    const uint32_t mask = 0u - static_cast<uint32_t>(first);
    return (one & mask) | (other & ~mask);
}

// What the topmost codes of a small float mean: numbers; one NaN, the very last; infinity and NaN.
enum class Specials { none, nan, ieee };

template <int exponent_bits, int mantissa_bits, Specials specials>
struct SmallFloat {
    static constexpr int bits = 1 + exponent_bits + mantissa_bits;
    static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    static constexpr int top_exponent = (1 << exponent_bits) - 1 - bias - (specials == Specials::ieee);
    static constexpr bool has_nan = specials != Specials::none;
    static constexpr uint32_t last = (1u << (bits - 1)) - 1;
    static constexpr uint32_t first_special =
        specials == Specials::none ? last + 1 : specials == Specials::nan ? last : last + 1 - (1u << mantissa_bits);
    static constexpr uint32_t nan = specials == Specials::nan ? last : last + 1 - (1u << (mantissa_bits - 1));

    // Returns what a magnitude counts for when the largest of a block is sought.
    static TW_INLINE uint32_t counted(uint32_t a) {
        if constexpr (specials == Specials::nan) return pick(a > infinity, 0u, a);
        if constexpr (specials == Specials::ieee) return pick(a >= infinity, 0u, a);
        return a;
    }

    // Returns the code of a ratio: nearest even, the largest number if it is too large.
    static TW_INLINE uint32_t encode(uint32_t ratio) {
        constexpr int cut = 23 - mantissa_bits;
        constexpr uint32_t lowest = static_cast<uint32_t>(128 - bias) << 23;  // the smallest normal number
        // Adding this leaves exactly the bits of a subnormal at the bottom, rounded by the addition.
        constexpr uint32_t magic = static_cast<uint32_t>(128 - bias + cut) << 23;
        const uint32_t a = ratio & 0x7fffffffu;
        const uint32_t normal = ((a + ((1u << (cut - 1)) - 1) + (a >> cut & 1)) >> cut) -
                                (static_cast<uint32_t>(127 - bias) << mantissa_bits);
        const uint32_t tiny = bits_of(float_of(a) + float_of(magic)) - magic;
        uint32_t code = pick(a < lowest, tiny, normal);
        code = code < first_special ? code : first_special - 1;
        if constexpr (specials == Specials::ieee) code = pick(a == infinity, first_special, code);
        code |= ratio >> 31 << (bits - 1);
        if constexpr (has_nan) code = pick(a > infinity, nan, code);
        return code;
    }

    // Returns the bits of the number of a code.
    static TW_INLINE uint32_t decode(uint32_t code) {
        const uint32_t a = code & last;
        const uint32_t sign = code >> (bits - 1) << 31;
        const uint32_t normal = (a << (23 - mantissa_bits)) + (static_cast<uint32_t>(127 - bias) << 23);
        constexpr float step = 2.0f / static_cast<float>(1 << (bias + mantissa_bits));
        const uint32_t tiny = bits_of(static_cast<float>(static_cast<int32_t>(a)) * step);
        uint32_t value = pick(a < (1u << mantissa_bits), tiny, normal);
        if constexpr (specials == Specials::ieee) value = pick(a == first_special, infinity, value);
        if constexpr (has_nan) value = pick(is_nan(a), quiet_nan, value);
        return value | sign;
    }

    // Returns the bits of the number of a code times a scale. Its own NaN wins, with its sign, over that of the scale.
    static TW_INLINE uint32_t scaled(uint32_t code, float scale) {
        const uint32_t number = decode(code);
        const uint32_t product = bits_of(float_of(number) * scale);
        if constexpr (has_nan) return pick(is_nan(code & last), number, product);
        return product;
    }

private:
    static TW_INLINE bool is_nan(uint32_t a) {
        return specials == Specials::nan ? a == first_special : a > first_special;
    }
};

// An 8-bit integer in two's complement that counts steps of 2^-6; -128 is read but never made.
struct SmallInteger {
    static constexpr int bits = 8;
    static constexpr int top_exponent = 0;
    static constexpr bool has_nan = false;

    static TW_INLINE uint32_t counted(uint32_t a) { return a; }

    static TW_INLINE uint32_t encode(uint32_t ratio) {
        const uint32_t steps = bits_of(float_of(ratio & 0x7fffffffu) * 64.0f);
        const uint32_t most = bits_of(127.0f);
        const uint32_t clamped = steps < most ? steps : most;
        const uint32_t whole = bits_of(float_of(clamped) + 0x1p23f);  // rounded by the addition
        const uint32_t negative = 0u - (ratio >> 31);
        return ((whole ^ negative) - negative) & 0xffu;
    }

    static TW_INLINE uint32_t scaled(uint32_t code, float scale) {
        const int32_t steps = static_cast<int32_t>(code ^ 128u) - 128;
        return bits_of(static_cast<float>(steps) * 0x1p-6f * scale);
    }
};

// A scale 2^(byte - 127): the largest magnitude of a block lands on the top exponent of its elements.
struct PowerOfTwo {
    static constexpr uint8_t nan = 255;

    template <class Element>
    static TW_INLINE uint32_t choose(uint32_t largest) {
        const uint32_t exponent = largest >> 23;
        return exponent > Element::top_exponent ? exponent - Element::top_exponent : 0u;
    }
    // Returns what `ratio` needs of a scale.
    static TW_INLINE float factor(uint32_t byte) {
        return float_of(byte < 254 ? (254 - byte) << 23 : 1u << 22);  // 2^-127 is subnormal
    }
    static TW_INLINE float ratio(float x, float factor) { return x * factor; }
    static TW_INLINE float value(uint32_t byte) {
        return float_of(byte == nan ? quiet_nan : byte == 0 ? 1u << 22 : byte << 23);
    }
};

// A scale that is a small float: the largest magnitude of a block lands on the largest element, nearly. Only blocks of
// zeros have scale 0.
struct FloatScale {
    using Float = SmallFloat<4, 3, Specials::nan>;
    static constexpr uint8_t nan = Float::nan;

    template <class Element>
    static TW_INLINE uint32_t choose(uint32_t largest) {
        const uint32_t code = Float::encode(bits_of(float_of(largest) / float_of(Element::decode(Element::last))));
        return code == 0 && largest != 0 ? 1u : code;
    }
    static TW_INLINE float factor(uint32_t byte) { return byte == 0 ? 1.0f : float_of(Float::decode(byte)); }
    static TW_INLINE float ratio(float x, float factor) { return x / factor; }
    static TW_INLINE float value(uint32_t byte) { return float_of(Float::decode(byte)); }
};

template <class ElementEncoding, class ScaleEncoding, int block>
struct Scaled {
    using Element = ElementEncoding;
    using Scale = ScaleEncoding;
    static constexpr int lanes = block;
};

using E2M1 = SmallFloat<2, 1, Specials::none>;

// Calls visit(Scaled<...>{}) with the block type of a code.
template <class Visit>
TW_INLINE auto with_scaled(int type, Visit visit) {
    switch (type) {
        case TW_MXFP8E4M3: return visit(Scaled<SmallFloat<4, 3, Specials::nan>, PowerOfTwo, 32>{});
        case TW_MXFP8E5M2: return visit(Scaled<SmallFloat<5, 2, Specials::ieee>, PowerOfTwo, 32>{});
        case TW_MXFP6E2M3: return visit(Scaled<SmallFloat<2, 3, Specials::none>, PowerOfTwo, 32>{});
        case TW_MXFP6E3M2: return visit(Scaled<SmallFloat<3, 2, Specials::none>, PowerOfTwo, 32>{});
        case TW_MXFP4: return visit(Scaled<E2M1, PowerOfTwo, 32>{});
        case TW_MXINT8: return visit(Scaled<SmallInteger, PowerOfTwo, 32>{});
        default: return visit(Scaled<E2M1, FloatScale, 16>{});
    }
}

}  // namespace
}  // namespace tw::TW_ISA
