// SPDX-License-Identifier: Apache-2.0
#include "tilewright.h"

int32_t tw_abi_version(void) noexcept { return TW_ABI_VERSION; }
