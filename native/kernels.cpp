// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include "convert.h"
#include "lines.h"
#include "pack.h"
#include "puts.h"
#include "runs.h"
#include "unpack.h"

namespace tw::TW_ISA {

extern const Kernels kernels = {move_bits, move_lines, fence, converter, pack_blocks, unpack_blocks,
                                shift_unit};

}  // namespace tw::TW_ISA
