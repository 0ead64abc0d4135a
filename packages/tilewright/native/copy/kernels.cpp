// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels.h"

#include "compare/difference_kernels.h"

#include "formats/convert.h"
#include "formats/decode.h"
#include "copy/lines.h"
#include "formats/pack.h"
#include "copy/panel_kernels.h"
#include "copy/line_stores.h"
#include "copy/runs.h"
#include "copy/table_kernels.h"
#include "formats/unpack.h"
#include "copy/interleave_kernels.h"

namespace tw::TW_ISA {

extern const Kernels kernels = {copy_bits, copy_lines, copy_panel,  copy_interleaved,    copy_by_table, fence,
                                converter, pack_blocks, unpack_blocks, decode_rows, count_differences, shift_unit};

}  // namespace tw::TW_ISA
