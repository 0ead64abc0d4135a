// SPDX-License-Identifier: Apache-2.0
//
// float32 from quantised codes: small floats and integers times a scale that a group of them shares, and the commonest
// block types of ggml, which hold scales and codes together. The loops are written for the compiler to vectorise; every
// product and sum is rounded where the definition rounds it.
#include "formats/decode.h"

#include "formats/scaled.h"
#include "simd/split_codes.h"

namespace tw::TW_ISA {
namespace {

// What codes stand for, sixteen at a time and one at a time.
template <class Element>
struct FloatCode {
    static constexpr int bits = Element::bits;
    static TW_INLINE Words numbers(const Words &code) {
#if defined(__AVX512BW__)
        if constexpr (bits == 4) {
            static constexpr std::array<uint32_t, 16> table = {
                0x00000000, 0x3f000000, 0x3f800000, 0x3fc00000, 0x40000000, 0x40400000, 0x40800000, 0x40c00000,
                0x80000000, 0xbf000000, 0xbf800000, 0xbfc00000, 0xc0000000, 0xc0400000, 0xc0800000, 0xc0c00000};
            return look_up(table, code);
        }
#endif
        return Element::decode(code);
    }
    static TW_INLINE float number(uint32_t code) {
        uint32_t all[piece];
        store_words(all, Element::decode(code));
        return float_of(all[0]);
    }
};

using CodeE2M1 = FloatCode<E2M1>;
using CodeE4M3 = FloatCode<SmallFloat<4, 3, Specials::nan>>;
using CodeE5M2 = FloatCode<SmallFloat<5, 2, Specials::ieee>>;

struct CodeInt8 {
    static constexpr int bits = 8;
    static TW_INLINE Words numbers(const Words &code) {
        constexpr uint32_t magic = 150u << 23;  // 2^23: the code as a signed number and 128 above it, then without these
        return plus(((code + 128u) & 255u) | magic, magic | 128u | 0x80000000u);
    }
    static TW_INLINE float number(uint32_t code) { return static_cast<float>(static_cast<int8_t>(code)); }
};

template <int bits>
TW_INLINE Words load_codes(const uint8_t *codes) {
#if defined(__AVX2__)
    return words_of(split_codes<bits>(codes));
#else
    uint8_t apart[piece];
    split_codes<bits>(codes, apart);
    return words_of_bytes(apart);
#endif
}

template <class Code>
TW_INLINE void scale_piece(const uint8_t *codes, uint32_t scale, float *out) {
    const Words values = times(Code::numbers(load_codes<Code::bits>(codes)), scale);
    store_words(reinterpret_cast<uint32_t *>(out), values);
}

// Decodes one row, group after group.
template <class Code>
void scale_row(const tw_coding &coding, const uint8_t *codes, const float *scales, int64_t columns, float *out) {
    int64_t done = 0, left = coding.group_columns - coding.first_column;
    for (; done < columns; left = coding.group_columns, ++scales) {
        const int64_t end = left < columns - done ? done + left : columns;
        const uint32_t scale = bits_of(*scales);
        if (done * Code::bits % 8 == 0) {
            for (; done + piece <= end; done += piece) scale_piece<Code>(codes + done * Code::bits / 8, scale, out + done);
        }
        for (; done < end; ++done) {
            const int64_t at = done * Code::bits;
            const uint32_t code = codes[at / 8] >> (at % 8) & ((1u << Code::bits) - 1);
            out[done] = Code::number(code) * *scales;
        }
    }
}

template <class Code>
bool scale_rows(const tw_coding &coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                float *out) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *own = scales + (coding.first_row + r) / coding.group_rows * coding.scale_row;
        scale_row<Code>(coding, codes + r * coding.row_bytes, own, columns, out + r * columns);
    }
    return true;
}

// Block types of ggml.

TW_INLINE float half_at(const uint8_t *p) {
    Half x;
    std::memcpy(&x, p, 2);
    return widen(x);
}

struct Q8_0 {
    static constexpr int64_t elements = 32, bytes = 34;
    static TW_INLINE void decode(const uint8_t *block, float *out) {
        const uint32_t d = bits_of(half_at(block));
        for (int i = 0; i < 32; i += piece) scale_piece<CodeInt8>(block + 2 + i, d, out + i);
    }
};

// n(x): the low nibbles of bytes, then the high ones.
template <class Number>
TW_INLINE void each_nibble(const uint8_t *TW_RESTRICT bytes, float *TW_RESTRICT out, Number number) {
    for (int i = 0; i < 16; ++i) {
        out[i] = number(bytes[i] & 15, i);
        out[i + 16] = number(bytes[i] >> 4, i + 16);
    }
}

struct Q4_0 {
    static constexpr int64_t elements = 32, bytes = 18;
    static TW_INLINE void decode(const uint8_t *block, float *out) {
        const float d = half_at(block);
        each_nibble(block + 2, out, [d](int n, int) { return d * static_cast<float>(n - 8); });
    }
};

struct Q4_1 {
    static constexpr int64_t elements = 32, bytes = 20;
    static TW_INLINE void decode(const uint8_t *block, float *out) {
        const float d = half_at(block), m = half_at(block + 2);
        each_nibble(block + 4, out, [d, m](int n, int) { return d * static_cast<float>(n) + m; });
    }
};

// Codes are twice their numbers here, so that they are integers: -0 is 0. No exponent is NaN.
struct Mxfp4 {
    static constexpr int64_t elements = 32, bytes = 17;
    static TW_INLINE void decode(const uint8_t *block, float *out) {
        static constexpr int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
        const uint32_t e = block[0];
        const float scale = float_of(e < 2 ? 1u << (21 + e) : (e - 1) << 23);  // 2^(e - 128)
        each_nibble(block + 1, out, [scale](int n, int) { return static_cast<float>(doubled[n]) * scale; });
    }
};

// The six-bit scales and minima of Q4_K and Q5_K.
struct KScales {
    float scale[8], least[8];

    explicit KScales(const uint8_t *block) {
        const float d = half_at(block), dmin = half_at(block + 2);
        const uint8_t *b = block + 4;
        for (int i = 0; i < 8; ++i) {
            const int s = i < 4 ? b[i] & 63 : (b[i + 4] & 15) | (b[i - 4] >> 6) << 4;
            const int m = i < 4 ? b[i + 4] & 63 : (b[i + 4] >> 4) | (b[i] >> 6) << 4;
            scale[i] = d * static_cast<float>(s);
            least[i] = dmin * static_cast<float>(m);
        }
    }
};

struct Q4_K {
    static constexpr int64_t elements = 256, bytes = 144;
    static TW_INLINE void decode(const uint8_t *block, float *TW_RESTRICT out) {
        const KScales k(block);
        for (int g = 0; g < 8; ++g) {
            const uint8_t *q = block + 16 + g / 2 * 32;
            for (int i = 0; i < 32; ++i) {
                const int n = g % 2 == 0 ? q[i] & 15 : q[i] >> 4;
                out[32 * g + i] = k.scale[g] * static_cast<float>(n) - k.least[g];
            }
        }
    }
};

struct Q5_K {
    static constexpr int64_t elements = 256, bytes = 176;
    static TW_INLINE void decode(const uint8_t *block, float *TW_RESTRICT out) {
        const KScales k(block);
        for (int g = 0; g < 8; ++g) {
            const uint8_t *q = block + 48 + g / 2 * 32, *high = block + 16;
            for (int i = 0; i < 32; ++i) {
                const int n = (g % 2 == 0 ? q[i] & 15 : q[i] >> 4) | (high[i] >> g & 1) << 4;
                out[32 * g + i] = k.scale[g] * static_cast<float>(n) - k.least[g];
            }
        }
    }
};

struct Q6_K {
    static constexpr int64_t elements = 256, bytes = 210;
    static TW_INLINE void decode(const uint8_t *block, float *TW_RESTRICT out) {
        const float d = half_at(block + 208);
        for (int part = 0; part < 8; ++part) {
            const int h = part / 4, k = part % 4;
            const uint8_t *low = block + 64 * h + 32 * (k % 2), *high = block + 128 + 32 * h;
            int8_t n[32];
            for (int l = 0; l < 32; ++l) {
                n[l] = static_cast<int8_t>((((low[l] >> (k / 2 * 4)) & 15) | ((high[l] >> (2 * k)) & 3) << 4) - 32);
            }
            for (int i = 0; i < 2; ++i) {
                const float s = d * static_cast<float>(static_cast<int8_t>(block[192 + part * 2 + i]));
                scale_piece<CodeInt8>(reinterpret_cast<const uint8_t *>(n) + piece * i, bits_of(s), out + 32 * part + piece * i);
            }
        }
    }
};

template <class Block>
bool decode_blocks(const tw_coding &coding, const uint8_t *codes, int64_t rows, int64_t columns, float *out) {
    if (columns % Block::elements != 0) return false;
    for (int64_t r = 0; r < rows; ++r) {
        const uint8_t *block = codes + r * coding.row_bytes;
        for (int64_t c = 0; c < columns; c += Block::elements, block += Block::bytes) Block::decode(block, out + r * columns + c);
    }
    return true;
}

}  // namespace

bool decode_rows(const tw_coding &coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                 float *out) {
    switch (coding.element) {
        case TW_CODE_E2M1: return scale_rows<CodeE2M1>(coding, codes, scales, rows, columns, out);
        case TW_CODE_E4M3: return scale_rows<CodeE4M3>(coding, codes, scales, rows, columns, out);
        case TW_CODE_E5M2: return scale_rows<CodeE5M2>(coding, codes, scales, rows, columns, out);
        case TW_CODE_INT8: return scale_rows<CodeInt8>(coding, codes, scales, rows, columns, out);
        case TW_CODE_Q4_0: return decode_blocks<Q4_0>(coding, codes, rows, columns, out);
        case TW_CODE_Q4_1: return decode_blocks<Q4_1>(coding, codes, rows, columns, out);
        case TW_CODE_Q8_0: return decode_blocks<Q8_0>(coding, codes, rows, columns, out);
        case TW_CODE_Q4_K: return decode_blocks<Q4_K>(coding, codes, rows, columns, out);
        case TW_CODE_Q5_K: return decode_blocks<Q5_K>(coding, codes, rows, columns, out);
        case TW_CODE_Q6_K: return decode_blocks<Q6_K>(coding, codes, rows, columns, out);
        case TW_CODE_MXFP4: return decode_blocks<Mxfp4>(coding, codes, rows, columns, out);
        default: return false;
    }
}

}  // namespace tw::TW_ISA
