// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/tables.h"

namespace tw::TW_ISA {

void copy_by_table(const Table &table, const uint8_t *src, uint8_t *dst);

}  // namespace tw::TW_ISA
