// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of words from global to shared memory, whose addresses are multiples of their size.
#if __CUDA_ARCH__ >= 800
INLINE u32 shared_place(const void *place) { return (u32)__cvta_generic_to_shared(place); }
INLINE u64 global_place(const void *place) { return (u64)__cvta_generic_to_global(place); }
#define COPY_ASYNC(cache, bytes, to, from) \
    asm volatile("cp.async." cache ".shared.global [%0], [%1], %2;" \
                 :: "r"(shared_place(to)), "l"(global_place(from)), "n"(bytes) : "memory")
#define COPY_ASYNC_4(to, from) COPY_ASYNC("ca", 4, to, from)
#define COPY_ASYNC_8(to, from) COPY_ASYNC("ca", 8, to, from)
#define COPY_ASYNC_16(to, from) COPY_ASYNC("cg", 16, to, from)
#define STARTED asm volatile("cp.async.commit_group;" ::: "memory")
#define ARRIVED(waiting) asm volatile("cp.async.wait_group %0;" :: "n"(waiting) : "memory")
#else  // devices that copy through registers
#define COPY_ASYNC_4(to, from) (*(u32 *)(to) = *(const u32 *)(from))
#define COPY_ASYNC_8(to, from) (*(v8 *)(to) = *(const v8 *)(from))
#define COPY_ASYNC_16(to, from) (*(v16 *)(to) = *(const v16 *)(from))
#define STARTED
#define ARRIVED(waiting)
#endif
