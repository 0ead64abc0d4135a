// SPDX-License-Identifier: Apache-2.0
// Many short reads of a file in one call: a column of a matrix that is stored row by row.
#include "tilewright.h"

#if defined(__unix__) || defined(__APPLE__)
#  include <cerrno>
#  include <unistd.h>
#  define TW_HAS_PREAD 1
#else
#  define TW_HAS_PREAD 0
#endif

int64_t tw_read_runs(int32_t handle, const int64_t *starts, int64_t count, int64_t size, uint8_t *out) noexcept {
#if TW_HAS_PREAD
    for (int64_t k = 0; k < count; ++k) {
        for (int64_t done = 0; done < size;) {
            const ssize_t got = pread(handle, out + k * size + done, static_cast<size_t>(size - done), starts[k] + done);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return k;
            done += got;
        }
    }
    return count;
#else
    (void)handle, (void)starts, (void)count, (void)size, (void)out;
    return 0;
#endif
}
