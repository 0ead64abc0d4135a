// SPDX-License-Identifier: Apache-2.0
#include "copy/threads.h"

#include <system_error>
#include <thread>

namespace tw {
namespace {

constexpr int most_threads = 64;
// Starting a thread costs some tens of microseconds; this many bytes take about a hundred. Builds for tests set it to a
// few bytes, so that small plans are shared out too.
#ifndef TW_BYTES_PER_THREAD
#  define TW_BYTES_PER_THREAD (1 << 20)
#endif
constexpr double bytes_per_thread = TW_BYTES_PER_THREAD;

}  // namespace

int worth_threads(int asked, double bytes) {
    const double worth = bytes / bytes_per_thread;
    if (worth < 2) return 1;  // without asking for the processors, which takes longer than a small copy
    const int n = asked > 0 ? asked : static_cast<int>(std::thread::hardware_concurrency());
    const int most = worth < most_threads ? static_cast<int>(worth) : most_threads;
    return n < 1 ? 1 : n < most ? n : most;
}

void on_threads(int count, void (*work)(void *context, int index), void *context) {
    if (count <= 1) return work(context, 0);
    std::thread helper[most_threads];
    int started = 0;
    for (int i = 1; i < count; ++i) {
        try {
            helper[i] = std::thread(work, context, i);
            started = i;
        } catch (const std::system_error &) {  // no more threads to be had: this one does the rest
            break;
        }
    }
    work(context, 0);
    for (int i = started + 1; i < count; ++i) work(context, i);
    for (int i = 1; i <= started; ++i) helper[i].join();
}

}  // namespace tw
