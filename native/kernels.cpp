// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include "convert.h"
#include "lines.h"
#include "pack.h"
#include "panel_moves.h"
#include "puts.h"
#include "runs.h"
#include "table_moves.h"
#include "unpack.h"
#include "weave_moves.h"

namespace tw::TW_ISA {

extern const Kernels kernels = {move_bits, move_lines, move_panel,  move_weave,    move_table, fence,
                                converter, pack_blocks, unpack_blocks, shift_unit};

}  // namespace tw::TW_ISA
