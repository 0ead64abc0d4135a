// SPDX-License-Identifier: Apache-2.0
// Every import and export of a pipeline needs an event; one without rows to copy gets that of a copied spare byte.
#pragma OPENCL FP_CONTRACT OFF
#define THREADS ((u32)get_local_size(0))
#define GROUPS ((u32)get_num_groups(0))
