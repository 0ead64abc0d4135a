// SPDX-License-Identifier: Apache-2.0
//
// Picks the kernels for the machine this runs on, or lesser ones that TILEWRIGHT_CPU names: avx2 or portable.
#include <cstdlib>
#include <cstring>

#include "copy/kernels.h"
#include "formats/recode.h"

#if defined(TW_X86)
#  if defined(_MSC_VER)
#    include <intrin.h>
#    include <immintrin.h>
#  else
#    include <cpuid.h>
#  endif
#endif

namespace tw {
namespace {

struct Choice {
    const Kernels *kernels;
    const char *features;
    RecodeBand recode;
};

#if defined(TW_X86)

struct Registers {
    unsigned a, b, c, d;
};

Registers cpuid(unsigned leaf) {
    Registers r{0, 0, 0, 0};
#  if defined(_MSC_VER)
    int out[4];
    __cpuid(out, 0);
    if (static_cast<unsigned>(out[0]) < leaf) return r;
    __cpuidex(out, static_cast<int>(leaf), 0);
    r = {static_cast<unsigned>(out[0]), static_cast<unsigned>(out[1]), static_cast<unsigned>(out[2]),
         static_cast<unsigned>(out[3])};
#  else
    if (!__get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d)) return {0, 0, 0, 0};
#  endif
    return r;
}

// Returns which registers the operating system saves.
unsigned long long saved_registers() {
#  if defined(_MSC_VER)
    return _xgetbv(0);
#  else
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low | static_cast<unsigned long long>(high) << 32;
#  endif
}

// Returns whether TILEWRIGHT_CPU leaves an instruction set out: "portable" all of them, "avx2" those above.
bool left_out(const char *level) {
    const char *most = std::getenv("TILEWRIGHT_CPU");
    if (!most) return false;
    return std::strcmp(most, "portable") == 0 || (std::strcmp(most, "avx2") == 0 && std::strcmp(level, "avx2") != 0);
}

bool has(unsigned word, int bit) { return word >> bit & 1; }

// Returns the kernel for processors that can look up bytes in a table of 128.
RecodeBand recoder([[maybe_unused]] bool vbmi) {
#  if defined(TW_VBMI)
    if (vbmi) return avx512vbmi::recode_band;
#  endif
    return nullptr;
}

Choice choose() {
    Registers one = cpuid(1), seven = cpuid(7);
    unsigned long long saved = has(one.c, 27) ? saved_registers() : 0;
    bool ymm = (saved & 0x06) == 0x06, zmm = (saved & 0xe6) == 0xe6;
    bool f16c = has(one.c, 29), avx2 = has(seven.b, 5), bmi2 = has(seven.b, 8);
    bool avx512 = has(seven.b, 16) && has(seven.b, 17) && has(seven.b, 30) && has(seven.b, 31);  // F DQ BW VL
    if (ymm && zmm && avx2 && f16c && bmi2 && avx512 && !left_out("avx512")) {
        return {&avx512::kernels, "avx512f avx512dq avx512bw avx512vl avx2 f16c bmi2", recoder(has(seven.c, 1))};
    }
    if (ymm && avx2 && f16c && bmi2 && !left_out("avx2")) return {&avx2::kernels, "avx2 f16c bmi2", nullptr};
    return {&portable::kernels, "portable", nullptr};
}

#else

Choice choose() { return {&portable::kernels, "portable", nullptr}; }

#endif

const Choice &choice() {
    static const Choice made = choose();  // what the machine can do, not state
    return made;
}

}  // namespace

const Kernels &best_kernels() { return *choice().kernels; }

RecodeBand best_recoder() { return choice().recode; }

const char *cpu_features() { return choice().features; }

}  // namespace tw
