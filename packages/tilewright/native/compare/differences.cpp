// SPDX-License-Identifier: Apache-2.0
//
// tw_differences: how many numbers differ, and by how much at most.
#include "copy/kernels.h"
#include "tilewright.h"

int64_t tw_differences(int32_t type, const void *a, const void *b, int64_t count, float *largest) noexcept {
    return tw::best_kernels().differences(type, a, b, count, largest);
}
