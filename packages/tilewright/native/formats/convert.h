// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/kernels.h"

namespace tw::TW_ISA {

// Returns the conversion of contiguous elements between two different scalar types.
ConvertRun converter(int src_type, int dst_type);

}  // namespace tw::TW_ISA
