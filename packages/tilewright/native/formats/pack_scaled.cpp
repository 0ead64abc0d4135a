// SPDX-License-Identifier: Apache-2.0
//
// Packing of the block types of scaled.h, eight blocks at a time: find their scales, then their codes, join these and write
// whole lines. A NaN that its element cannot say becomes the scale of its block, over codes of 0.
#include "formats/pack.h"

#include "formats/brain_codes.h"
#include "formats/scaled.h"
#include "simd/block_maxima.h"
#include "simd/join_codes.h"

namespace tw::TW_ISA {
namespace {

// The pieces that are packed at a time: 8 blocks of two, or 16 of one.
constexpr int pieces_at_once = 16;

// Where pieces are: those of a block `half` bytes apart, blocks `step` bytes apart; the second half of them, `second` bytes
// after the first.
struct Pieces {
    const uint8_t *first;
    int64_t step, half, second;

    template <int per_block>
    TW_INLINE const uint8_t *at(int n) const {
        constexpr int each = pieces_at_once / 2;
        return first + n / each * second + n % each / per_block * step + (n % per_block == 0 ? 0 : half);
    }
};

// Calls put(line, number) with whole lines of codes that are made of bytes(number): lines of one code to a byte.
template <int bits, class Bytes, class Put>
TW_INLINE void join_pieces(Bytes bytes, Put put) {
    constexpr int joined = lines_joined<bits>, made = lines_made<bits>;
#if defined(__GNUC__) && (defined(__AVX2__) || !defined(__x86_64__))
#  pragma GCC unroll 4  // so that the places of pieces are known when this is compiled
#endif
    for (int i = 0; i < pieces_at_once / 4; i += joined) {
        Line apart[joined], lines[made];
        for (int k = 0; k < joined; ++k) apart[k] = bytes(i + k);
        join_codes<bits>(apart, lines);
        for (int k = 0; k < made; ++k) put(lines[k], i / joined * made + k);
    }
}

// Makes the codes of pieces that load(number) gives. `factors` are those of the scales of their blocks. `usual` says that
// there is neither NaN nor infinity.
template <class Type, bool usual, class From, class Load, class Put>
TW_INLINE void encode_pieces(const uint32_t *factors, Load load, Put put) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int per_block = Type::block_size / piece;
    const auto bytes = [&](int i) {
        Words four[4];
        for (int k = 0; k < 4; ++k) four[k] = Scale::template ratio<From>(load(4 * i + k), factors[(4 * i + k) / per_block]);
        if constexpr (usual) return Element::encode_bytes(four);
        for (Words &each : four) each = Element::encode(each);
        return bytes_of(four);
    };
    join_pieces<Element::bits>(bytes, put);
}

// What is known of blocks before they are encoded.
struct Scales {
    Words bytes;
    bool usual;
    alignas(64) uint32_t factors[16], limits[16];
    alignas(64) uint8_t wide[pieces_at_once * line];  // their values, where these are widened first
};

// How values are encoded when they are usual: by float32, or bfloat16 by integers.
enum class By { floats, exponents, ratios };

template <class Type, class From>
constexpr By by = !std::is_same_v<From, Brain>                              ? By::floats
                  : std::is_same_v<typename Type::Scale, PowerOfTwo> ? By::exponents
                  : width == line                                    ? By::ratios
                                                                     : By::floats;

// The same for usual pieces of bfloat16 at at(number), two by two. As float32, the upper halves of words are but for the
// lower halves, and these too when they are moved up.
template <class Type, class At, class Put>
TW_INLINE void encode_brains(const Scales &scales, At at, Put put) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int per_block = Type::block_size / piece;
    const auto bytes = [&](int i) {
        Shorts codes[2];
        for (int k = 0; k < 2; ++k) {
            const int n = 4 * i + 2 * k;
            const Words values = words_of(line_of(load_half_line(at(n)), load_half_line(at(n + 1))));
            const auto of_blocks = [&](const uint32_t *a) { return per_block > 1 ? Words(a[n / 2]) : halves_of(a, n); };
            const Words factor = of_blocks(scales.factors);
            if constexpr (by<Type, Brain> == By::exponents) {
                codes[k] = BrainCodes<Element>::encode(shorts_of(values), shorts_of(factor));
#if defined(__AVX512BW__)
            } else if constexpr (by<Type, Brain> == By::ratios) {
                codes[k] = BrainRatios::encode(shorts_of(values), shorts_of(of_blocks(scales.limits)), shorts_of(factor));
#endif
            } else {
                codes[k] = shorts_of(Element::encode_shorts(Scale::template ratio<Brain>(values << 16, factor),
                                                            Scale::template ratio<Brain>(values & 0xffff0000u, factor), values));
            }
        }
        return bytes_of(codes);
    };
    join_pieces<Element::bits>(bytes, put);
}

// Packs pieces of float32 that follow each other, in which anything may occur.
template <class Type>
TW_RARE void pack_any(const uint32_t *values, uint8_t *out, uint8_t *scales) {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    constexpr int per_block = Type::block_size / piece, at_once = pieces_at_once / per_block;
    constexpr int size = Type::block_size * Element::bits / 8;
    const auto load = [&](int n) { return load_words(values + n * piece); };
    Words most[at_once];
    for (int b = 0; b < at_once; ++b) {
        most[b] = 0u;
        for (int k = 0; k < per_block; ++k) {
            most[b] = larger(most[b], Element::counted(load(b * per_block + k) & 0x7fffffffu));
        }
    }
    const Words largest = maxima<at_once>(most);
    const Words scale = Scale::template choose<Element, float>(smaller(largest, largest_finite));
    store_halves<at_once>(scales, at_once / 2, scale);
    uint32_t factors[16], found[16];
    store_words(factors, Scale::template factor<float>(scale));
    encode_pieces<Type, false, float>(factors, load, [&](const Line &a, int i) { store_line(out + i * line, a); });
    store_words(found, largest);
    for (int b = 0; b < at_once && !Element::has_nan; ++b) {
        if (found[b] <= infinity) continue;
        std::memset(out + b * size, 0, size);
        scales[b] = Scale::nan;
    }
}

template <class Type, class From>
struct Packer {
    using Element = typename Type::Element;
    using Scale = typename Type::Scale;
    static constexpr int block_size = Type::block_size, size = block_size * Element::bits / 8;
    static constexpr int per_block = block_size / piece, at_once = pieces_at_once / per_block;
    // Pieces that are further apart than this are on pages of their own, or may fall onto each other in the cache.
    static constexpr int64_t apart = 512;

    const Packing &p;
    const bool widens;    // float16 becomes float32 first
    const bool paired;    // half of the blocks come from the next repeat: fewer rows, and more of each
    const bool streamed;  // whole lines of codes go past the caches
    const int64_t taken;  // blocks of mode 0
    const int64_t codes_second, scales_second;

    Packer(const Packing &packing, const uint8_t *codes)
        : p(packing),
          widens(p.type == TW_F16),
          paired(is_apart(p.mode[0].src) && p.mode[0].extent % (at_once / 2) == 0 && p.rank > 1 &&
                 p.mode[1].extent % 2 == 0 && half_codes % line == 0),
          streamed(streams_lines(p, codes) && 2 * half_codes % line == 0),
          taken(paired ? at_once / 2 : at_once),
          codes_second(paired ? p.mode[1].dst : half_codes),
          scales_second(paired ? p.mode[1].aux : at_once / 2) {}

    // Where some blocks are read and written.
    struct Place {
        const uint8_t *values;
        uint8_t *codes, *scales;

        TW_INLINE void move(const Mode &by) {
            values += by.src;
            codes += by.dst;
            scales += by.aux;
        }
    };

    // The way from place to place, along mode 0 last: how often to go on along each mode, and how far it is from there,
    // back to the start of those before it.
    struct Path {
        int rank;
        int64_t left[max_modes], count[max_modes];
        Mode step[max_modes];

        explicit Path(const Packer &packer) : rank(packer.p.rank) {
            Mode back{0, 0, 0, 0};
            for (int n = 1; n <= rank; ++n) {
                const int i = n % rank;
                const Mode &m = packer.p.mode[i];
                const int64_t by = i == 0 ? packer.taken : i == 1 && packer.paired ? 2 : 1;
                left[i] = count[i] = m.extent / by;
                step[i] = {0, by * m.src - back.src, by * m.dst - back.dst, by * m.aux - back.aux};
                const int64_t most = (count[i] - 1) * by;
                back = {0, back.src + most * m.src, back.dst + most * m.dst, back.aux + most * m.aux};
            }
        }
        TW_INLINE const Mode &next() {
            for (int i = 1; i < rank; ++i) {
                if (--left[i] > 0) return step[i];
                left[i] = count[i];
            }
            return step[0];
        }
        int64_t repeats() const {
            int64_t n = 1;
            for (int i = 1; i < rank; ++i) n *= count[i];
            return n;
        }
    };

    TW_INLINE Pieces pieces_of(const Place &at) const {
        int64_t step = p.mode[0].src, half = p.half;
#if defined(__GNUC__)
        // Where each piece is, is worked out every time: all their distances at once do not fit the registers.
        __asm__ volatile("" : "+r"(step), "+r"(half));
#endif
        return {at.values, step, half, paired ? p.mode[1].src : at_once / 2 * step};
    }

    // The same where they are widened, and no more of them than there are.
    TW_INLINE Pieces widened(const Pieces &from, uint8_t *wide, int count) const {
        for (int n = 0; n < count; ++n) store_line(wide + n * line, line_of(load_sixteen<Half>(from.at<per_block>(n))));
        return widened(wide);
    }
    static TW_INLINE Pieces widened(const uint8_t *wide) { return {wide, per_block * line, line, pieces_at_once / 2 * line}; }

    TW_INLINE void scan(const Place &at, Scales &out) const {
        Pieces pieces = pieces_of(at);
        if (!is_apart(pieces.step)) fetch_ahead(pieces);
        if (widens) pieces = widened(pieces, out.wide, pieces_at_once);
        const Words largest = block_maxima<From, at_once, per_block>([&](int n) { return pieces.at<per_block>(n); });
        out.usual = !any_above(largest, largest_finite);
        out.bytes = Scale::template choose<Element, From>(largest);
        if constexpr (by<Type, From> == By::exponents) {
            out.usual &= !any_above(where_less(largest, BrainCodes<Element>::lowest, largest, 0u), 0u);
            store_words(out.factors, BrainCodes<Element>::base(out.bytes));
#if defined(__AVX512BW__)
        } else if constexpr (by<Type, From> == By::ratios) {
            const Words divisor = Scale::divisor(out.bytes);
            store_words(out.factors, BrainRatios::inverse(divisor));
            store_words(out.limits, BrainRatios::limit(divisor));
#endif
        } else {
            store_words(out.factors, Scale::template factor<From>(out.bytes));
        }
    }

    // Fetches what follows further on: the hardware follows a single stream only up to the end of its page.
    static TW_INLINE void fetch_ahead(const Pieces &pieces) {
        constexpr int64_t ahead = 6144;
        constexpr int pieces_of_line = line / piece / static_cast<int>(sizeof(From));
        for (int n = 0; n < pieces_at_once; n += pieces_of_line) prefetch_near(pieces.at<per_block>(n) + ahead);
    }

    static TW_INLINE Words load(const Pieces &pieces, int n) { return words_of(load_sixteen<From>(pieces.at<per_block>(n))); }

    TW_INLINE void encode(const Place &at, const Scales &scales) const {
        const Pieces pieces = widens ? widened(scales.wide) : pieces_of(at);
        if (!scales.usual) return encode_any(at, pieces, at_once);
        store_halves<at_once>(at.scales, scales_second, scales.bytes);
        // Both kinds of stores in one place: this is compiled for every type, and a line costs far more than the branch.
        const auto put = [&](const Line &a, int i) {
            uint8_t *to = at.codes + i * line + (i < half_codes / line ? 0 : codes_second - half_codes);
            return streamed ? stream_line(to, a) : store_line(to, a);
        };
        if constexpr (std::is_same_v<From, Brain>) {
            encode_brains<Type>(scales, [&](int n) { return pieces.at<per_block>(n); }, put);
        } else {
            encode_pieces<Type, true, From>(scales.factors, [&](int n) { return load(pieces, n); }, put);
        }
    }

    TW_RARE void encode_any(const Place &at, const Pieces &pieces, int64_t count) const {
        alignas(64) uint32_t wide[at_once * block_size] = {};
        alignas(64) uint8_t made[at_once * size];
        uint8_t scales[at_once];
        for (int n = 0; n < count * per_block; ++n) store_words(wide + n * piece, load(pieces, n));
        pack_any<Type>(wide, made, scales);
        for (int64_t b = 0; b < count; ++b) {
            const bool second = b >= at_once / 2;
            std::memcpy(at.codes + b * size + (second ? codes_second - half_codes : 0), made + b * size, size);
            at.scales[b + (second ? scales_second - at_once / 2 : 0)] = scales[b];
        }
    }

    static void run(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
        const Packer packer(p, codes);
        Path path(packer);
        const int64_t repeats = path.repeats(), whole = p.mode[0].extent / packer.taken * repeats;
        Place here{values, codes, scales};
        // The scales of the blocks that follow are found before these are encoded, which would have to wait for them.
        Scales found[2];
        Place next = here;
        for (int64_t i = 0; i <= whole; ++i) {
            if (i < whole) packer.scan(next, found[i % 2]);
            if (i > 0) packer.encode(here, found[(i - 1) % 2]);
            here = next;
            if (i < whole) next.move(path.next());
        }
        const int64_t rest = p.mode[0].extent % packer.taken;
        for (int64_t i = 0; i < repeats && rest > 0; ++i, here.move(path.next())) {
            const Pieces pieces = packer.pieces_of(here);
            uint8_t *wide = found[0].wide;
            packer.encode_any(here, packer.widens ? packer.widened(pieces, wide, rest * per_block) : pieces, rest);
        }
    }

private:
    static constexpr int64_t half_codes = at_once / 2 * size;
    static bool is_apart(int64_t step) { return step >= apart || step <= -apart; }
};

using Pack = void (*)(const Packing &, const uint8_t *, uint8_t *, uint8_t *);

}  // namespace

void pack_scaled(const Packing &p, const uint8_t *values, uint8_t *codes, uint8_t *scales) {
    const Pack pack = with_scaled(p.kind.type, [&](auto type) -> Pack {
        using Type = decltype(type);
        if (p.type == TW_BF16) return Packer<Type, Brain>::run;
        return Packer<Type, float>::run;
    });
    pack(p, values, codes, scales);
}

}  // namespace tw::TW_ISA
