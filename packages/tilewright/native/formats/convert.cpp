// SPDX-License-Identifier: Apache-2.0
//
// Conversion of contiguous elements. Two loops in a row (widen, narrow) over a chunk that stays in the first-level
// cache stand in for 225 loops; a type that is its own wide type needs only one of them.
#include "formats/convert.h"

#include <tuple>

#include "formats/scalars.h"

namespace tw::TW_ISA {
namespace {

// In the order of the TW_ enumeration.
using Types = std::tuple<double, float, Half, Brain, E4m3, E5m2, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                         uint32_t, uint64_t, Bool>;
static_assert(std::tuple_size_v<Types> == scalar_types);

template <class T>
using Wide = decltype(widen(T{}));

constexpr size_t chunk = 256;

template <class T>
TW_INLINE T read(const uint8_t *p) {
    T x;
    std::memcpy(&x, p, sizeof(T));
    return x;
}
template <class T>
TW_INLINE void write(uint8_t *p, T x) {
    std::memcpy(p, &x, sizeof(T));
}

template <class From, class To>
TW_APART void one_loop(const uint8_t *TW_RESTRICT src, uint8_t *TW_RESTRICT dst, size_t count) {
    size_t i = 0;
#if defined(__F16C__) && defined(__AVX2__)
    // The instructions keep what a NaN carries; ours is always the same one.
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
        const __m256 nan = _mm256_set1_ps(float_of(quiet_nan));
        for (; i + 8 <= count; i += 8) {
            __m256 x = _mm256_loadu_ps(reinterpret_cast<const float *>(src + i * 4));
            x = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
            _mm_storeu_si128(reinterpret_cast<__m128i *>(dst + i * 2), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
        }
    }
    if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
        const __m256 nan = _mm256_set1_ps(float_of(quiet_nan));
        for (; i + 8 <= count; i += 8) {
            __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(src + i * 2)));
            x = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
            _mm256_storeu_ps(reinterpret_cast<float *>(dst + i * 4), x);
        }
    }
#endif
    for (; i < count; ++i) write(dst + i * sizeof(To), narrow<To>(widen(read<From>(src + i * sizeof(From)))));
}

template <class From, class To>
void two_loops(const uint8_t *src, uint8_t *dst, size_t count) {
    alignas(64) uint8_t wide[chunk * sizeof(Wide<From>)];
    for (size_t i = 0; i < count; i += chunk) {
        size_t n = count - i < chunk ? count - i : chunk;
        one_loop<From, Wide<From>>(src + i * sizeof(From), wide, n);
        one_loop<Wide<From>, To>(wide, dst + i * sizeof(To), n);
    }
}

template <class From, class To>
constexpr ConvertRun pick() {
    if constexpr (std::is_same_v<From, Wide<From>> || std::is_same_v<To, Wide<From>>) return one_loop<From, To>;
    // Common enough, from images and indices, for a loop of its own.
    constexpr bool small = std::is_integral_v<From> && sizeof(From) <= 4;
    if constexpr (small && (std::is_same_v<To, float> || std::is_same_v<To, Brain>)) return one_loop<From, To>;
    return two_loops<From, To>;
}

template <class From, class... To>
constexpr ConvertRun pick_to(int to, std::tuple<To...> *) {
    constexpr ConvertRun all[] = {pick<From, To>()...};
    return all[to];
}

template <class... From>
ConvertRun pick_from(int from, int to, std::tuple<From...> *types) {
    using Row = ConvertRun (*)(int, Types *);
    constexpr Row all[] = {pick_to<From>...};
    return all[from](to, types);
}

}  // namespace

ConvertRun converter(int src_type, int dst_type) {
    return pick_from(src_type, dst_type, static_cast<Types *>(nullptr));
}

}  // namespace tw::TW_ISA
