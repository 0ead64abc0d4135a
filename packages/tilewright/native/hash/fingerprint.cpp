// SPDX-License-Identifier: Apache-2.0
#include "tilewright.h"

namespace {

constexpr uint64_t offset_basis = 0xcbf29ce484222325;
constexpr uint64_t prime = 0x00000100000001b3;

}  // namespace

int32_t tw_abi_version(void) noexcept { return TW_ABI_VERSION; }

uint64_t tw_fingerprint(const uint8_t *data, size_t count) noexcept {
    uint64_t hash = offset_basis;
    for (size_t i = 0; i < count; ++i) {
        hash = (hash ^ data[i]) * prime;
    }
    return hash;
}
