// SPDX-License-Identifier: Apache-2.0
// The size of a launch.
#define THREADS blockDim.x
#define GROUPS gridDim.x
