// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::TW_ISA {

// Counts the numbers that differ; see tw_differences.
int64_t count_differences(int32_t type, const void *a, const void *b, int64_t count, float *largest);

}  // namespace tw::TW_ISA
