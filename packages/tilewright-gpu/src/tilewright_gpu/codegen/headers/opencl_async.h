// SPDX-License-Identifier: Apache-2.0
// Copies of words from global to shared memory; here they are done at once.
#define COPY_ASYNC_4(to, from) (*(LOCAL u32 *)(to) = *(GLOBAL const u32 *)(from))
#define COPY_ASYNC_8(to, from) (*(LOCAL v8 *)(to) = *(GLOBAL const v8 *)(from))
#define COPY_ASYNC_16(to, from) (*(LOCAL v16 *)(to) = *(GLOBAL const v16 *)(from))
#define STARTED
#define ARRIVED(waiting)
