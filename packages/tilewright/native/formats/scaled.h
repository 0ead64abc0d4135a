// SPDX-License-Identifier: Apache-2.0
//
// The block types that round the exact ratio of a value to its scale: OCP Microscaling and NVFP4. A type is an element
// encoding, a scale encoding and a number of elements per block. Only for the files compiled once for each instruction set.
//
// Everything works on the bits of float32, sixteen values at a time. float32 is enough: a power of two divides exactly,
// and a tie times a scale of a few bits is a float32 itself, so the rounded quotient of any other value is off the tie, on
// the side where the exact one is.
#pragma once

#include <array>

#include "copy/kernels.h"
#include "simd/words.h"

namespace tw::TW_ISA {
namespace {

constexpr uint32_t infinity = 0x7f800000u;
constexpr uint32_t largest_finite = 0x7f7fffffu;

// What the topmost codes of a small float mean: numbers; one NaN, the very last; infinity and NaN.
enum class Specials { none, nan, ieee };

template <int exponent_bits, int fraction_bits, Specials specials>
struct SmallFloat {
    static constexpr int mantissa_bits = fraction_bits;
    static constexpr int bits = 1 + exponent_bits + mantissa_bits;
    static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    static constexpr int top_exponent = (1 << exponent_bits) - 1 - bias - (specials == Specials::ieee);
    static constexpr bool has_nan = specials != Specials::none;
    static constexpr bool is_integer = false;
    static constexpr uint32_t last = (1u << (bits - 1)) - 1;
    static constexpr uint32_t first_special =
        specials == Specials::none ? last + 1 : specials == Specials::nan ? last : last + 1 - (1u << mantissa_bits);
    static constexpr uint32_t nan = specials == Specials::nan ? last : last + 1 - (1u << (mantissa_bits - 1));

    // Returns what magnitudes count for when the largest of a block is sought.
    static TW_INLINE Words counted(const Words &a) {
        if constexpr (specials == Specials::nan) return where_less(infinity, a, 0u, a);
        if constexpr (specials == Specials::ieee) return where_less(a, infinity, a, 0u);
        return a;
    }

    // Returns the codes of ratios: nearest even, the largest number if they are too large.
    static TW_INLINE Words encode(const Words &ratio) {
        const Words a = ratio & 0x7fffffffu;
        Words code = magnitude_codes(ratio);
        if constexpr (specials == Specials::ieee) code = where_equal(a, infinity, first_special, code);
        code = merge(last, code, ratio >> (32 - bits));
        if constexpr (has_nan) code = where_less(infinity, a, nan, code);
        return code;
    }

    // The same for finite ratios that are not negative.
    static TW_INLINE Words encode_magnitudes(const Words &ratio) { return magnitude_codes(ratio) & last; }

    // The same for finite ratios, a byte each.
    static TW_INLINE Line encode_bytes(const Words *ratios) {
        Words codes[4];
        for (int i = 0; i < 4; ++i) codes[i] = magnitude_codes(ratios[i]);
        return signed_bytes_of<bits>(codes, ratios);
    }

    // And as shorts, where `values` are what they are the ratios of, in bfloat16: the even ones and the odd ones of them.
    static TW_INLINE Words encode_shorts(const Words &even, const Words &odd, const Words &values) {
        const Words codes = shorts_of(magnitude_codes(even), magnitude_codes(odd));
        return codes | ((values >> (16 - bits)) & (0x00010001u << (bits - 1)));
    }

    // Returns the numbers of codes.
    static TW_INLINE Words decode(const Words &code) {
        const Words a = code & last;
        const Words normal = (a << (23 - mantissa_bits)) + (static_cast<uint32_t>(127 - bias) << 23);
        const Words tiny = times(as_floats(a), static_cast<uint32_t>(128 - bias - mantissa_bits) << 23);
        Words value = where_less(a, 1u << mantissa_bits, tiny, normal);
        if constexpr (specials == Specials::ieee) value = where_equal(a, first_special, infinity, value);
        if constexpr (has_nan) value = where_nan(a, quiet_nan, value);
        return value | ((code << (32 - bits)) & 0x80000000u);
    }

    // Returns the numbers of codes times a scale. Their own NaN wins over that of the scale, with its sign if that is wanted.
    template <bool signed_nan>
    static TW_INLINE Words scaled(const Words &code, uint32_t scale) {
        const Words number = decode(code);
        const Words product = times(number, scale);
        if constexpr (has_nan) return where_nan(code & last, signed_nan ? number : Words(quiet_nan), product);
        return product;
    }

private:
    static constexpr int cut = 23 - mantissa_bits;
    static constexpr uint32_t lowest = static_cast<uint32_t>(128 - bias) << 23;  // the smallest normal number
    static constexpr uint32_t largest = ((first_special - 1) << cut) + (static_cast<uint32_t>(127 - bias) << 23);

    // Returns, for an exponent, a number so much larger that adding it to a magnitude of that exponent rounds this to
    // steps of the element, and leaves the code at the bottom: the steps, and as many more as the exponents below have.
    static constexpr uint32_t magic(uint32_t exponent) {
        return ((exponent + cut) << 23) + ((exponent - (lowest >> 23)) << mantissa_bits);
    }

    // Returns words whose lower halves are the codes of magnitudes, of those with a sign too.
    static TW_INLINE Words magnitude_codes(const Words &ratio) {
        const Words a = magnitude_up_to(ratio, largest);
        return plus(a, above(a));
    }

    // Returns such numbers for magnitudes up to the largest. Subnormals have the steps of the lowest exponent; when
    // rounding carries, the sum moves on to the next exponent by itself.
    static TW_INLINE Words above(const Words &a) {
        const Words normal = larger(a, lowest);
#if defined(__AVX512BW__)
        static constexpr auto magics = [] {
            std::array<uint32_t, (exponent_bits > 4 ? 32 : 16)> table{};
            constexpr uint32_t first = lowest >> 23;
            for (uint32_t i = 0; i < table.size(); ++i) table[(first + i) % table.size()] = magic(first + i);
            return table;
        }();
        return look_up(magics, normal >> 23);
#else
        const Words exponent = normal & infinity;
        return exponent + (exponent >> cut) + magic(0);
#endif
    }

    static TW_INLINE Words where_nan(const Words &a, const Words &yes, const Words &no) {
        constexpr uint32_t numbers = specials == Specials::nan ? first_special - 1 : first_special;  // and infinity
        return where_less(numbers, a, yes, no);
    }
};

// An 8-bit integer in two's complement that counts steps of 2^-6; -128 is read but never made.
struct SmallInteger {
    static constexpr int bits = 8;
    static constexpr int mantissa_bits = 6;
    static constexpr int bias = 1;  // as if 64 were the first normal number
    static constexpr int top_exponent = 0;
    static constexpr bool has_nan = false;
    static constexpr bool is_integer = true;
    static constexpr uint32_t first_special = 128;

    static TW_INLINE Words counted(const Words &a) { return a; }

    static TW_INLINE Words encode(const Words &ratio) {
        constexpr uint32_t sixty_four = 133u << 23, most = 0x42fe0000u /* 127 */;
        return rounded(within(times(ratio, sixty_four), most)) & 255u;
    }

    static TW_INLINE Line encode_bytes(const Words *ratios) {
        Words codes[4];
        for (int i = 0; i < 4; ++i) codes[i] = encode(ratios[i]);
        return bytes_of(codes);
    }

    template <bool>
    static TW_INLINE Words scaled(const Words &code, uint32_t scale) {
        // The code as a signed number and 128, above 2^23; then without these two.
        constexpr uint32_t magic = 150u << 23;
        const Words steps = plus(((code + 128u) & 255u) | magic, magic | 128u | 0x80000000u);
        return times(times(steps, 121u << 23), scale);
    }
};

// A scale 2^(byte - 127): the largest magnitude of a block lands on the top exponent of its elements.
struct PowerOfTwo {
    static constexpr uint8_t nan = 255;

    // Returns scales for the largest magnitudes of blocks, which are finite.
    template <class Element, class From>
    static TW_INLINE Words choose(const Words &largest) {
        constexpr uint32_t top = Element::top_exponent;
        return larger(largest >> 23, top) - top;
    }
    // Returns what `ratio` needs of scales.
    template <class From>
    static TW_INLINE Words factor(const Words &byte) {
        return where_less(byte, 254u, (Words(254u) - byte) << 23, 1u << 22);  // 2^-127 is subnormal
    }
    template <class From>
    static TW_INLINE Words ratio(const Words &x, const Words &factor) { return times(x, factor); }
    // Returns whether products with elements are normal numbers, zero or infinity.
    static TW_INLINE bool is_usual(uint32_t byte) { return byte >= 24 && byte != nan; }
    static TW_INLINE uint32_t value(uint32_t byte) { return byte == nan ? quiet_nan : byte == 0 ? 1u << 22 : byte << 23; }
};

// A scale that is a small float: the largest magnitude of a block lands on the largest element, nearly. Only blocks of
// zeros have scale 0.
struct FloatScale {
    template <class From>
    static constexpr bool is_short = sizeof(From) == 2;
    using Float = SmallFloat<4, 3, Specials::nan>;
    static constexpr uint8_t nan = Float::nan;

    template <class Element, class From>
    static TW_INLINE Words choose(const Words &largest) {
        static_assert(std::is_same_v<Element, SmallFloat<2, 1, Specials::none>>);
        constexpr uint32_t six = 0x40c00000u, sixth = 0x3e2aaaabu;
        const Words code = Float::encode_magnitudes(ratio<From>(largest, is_short<From> ? sixth + 1 : six));
        return larger(code, smaller(largest, 1u));
    }
    // Returns the scales to divide by.
    static TW_INLINE Words divisor(const Words &byte) { return where_equal(byte, 0u, 127u << 23, Float::decode(byte)); }
    template <class From>
    static TW_INLINE Words factor(const Words &byte) {
        if constexpr (is_short<From>) return over(127u << 23, divisor(byte)) + 1u;
        return divisor(byte);
    }
    // A quotient need not be exact, only on the same side of every tie. A tie times a scale has 7 bits, and so has a tie of
    // scales times 6; a value of at most 11 bits that is not one differs from it by 2^-11 at least. The inverse is too large,
    // by 2^-22 at most, so a product with it may be cut off after 16 bits: a tie becomes exact then, and nothing else
    // becomes one.
    template <class From>
    static TW_INLINE Words ratio(const Words &x, const Words &factor) {
        if constexpr (is_short<From>) return times(x, factor) & 0xffffff00u;
        return over(x, factor);
    }
    static TW_INLINE bool is_usual(uint32_t byte) { return (byte & 0x7f) != nan; }
    static TW_INLINE uint32_t value(uint32_t byte) {
        const E4m3 scale{static_cast<uint8_t>(byte)};
        return bits_of(widen(scale)) | (byte >> 7 << 31);  // a NaN has its sign here
    }
};

template <class ElementEncoding, class ScaleEncoding, int block>
struct Scaled {
    using Element = ElementEncoding;
    using Scale = ScaleEncoding;
    static constexpr int block_size = block;
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
