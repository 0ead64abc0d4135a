// SPDX-License-Identifier: Apache-2.0
//
// tw_run_transfers: what a worker of a pipeline does between two computes, in one call. Workers compute in turns; a worker
// that has computed says so here, when it no longer holds anything that the next one needs.
#include <atomic>
#include <chrono>
#include <thread>

#include "tilewright.h"

#if defined(__linux__)
#  include <sched.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#  include <immintrin.h>
#endif

namespace tw {
namespace {

// A sleeper wakes up late, and often on the core that woke it, where it then competes with the worker there. Most waits
// are shorter than this.
constexpr std::chrono::milliseconds watch_for{2};

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#endif
}

// Raises the turn to `done`: it never goes back, so that a worker can stop all others with the largest number.
void announce(std::atomic_ref<int64_t> turn, int64_t done) {
    int64_t now = turn.load(std::memory_order_relaxed);
    while (now < done && !turn.compare_exchange_weak(now, done, std::memory_order_acq_rel)) {
    }
    turn.notify_all();
}

void await(std::atomic_ref<int64_t> turn, int64_t least) {
    if (turn.load(std::memory_order_acquire) >= least) return;
    if (std::thread::hardware_concurrency() > 1) {
        const auto until = std::chrono::steady_clock::now() + watch_for;
        do {
            for (int i = 0; i < 200; ++i) {
                if (turn.load(std::memory_order_acquire) >= least) return;
                pause();
            }
            std::this_thread::yield();  // whom we wait for may want this core
        } while (std::chrono::steady_clock::now() < until);
    }
    for (int64_t now = turn.load(std::memory_order_acquire); now < least;) {
        turn.wait(now, std::memory_order_acquire);
        now = turn.load(std::memory_order_acquire);
    }
}

int32_t run_all(const tw_transfer *transfers, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
        const tw_transfer &m = transfers[i];
        auto run = m.streaming ? tw_run_streaming : tw_run;
        int32_t status = run(m.nests, m.count, m.src, m.dst, 1);
        if (status != 0) return status;
    }
    return 0;
}

}  // namespace
}  // namespace tw

int32_t tw_run_transfers(int64_t *turn, int64_t done, const tw_transfer *exports, int32_t export_count, const tw_transfer *imports,
                 int32_t import_count, int64_t awaited) noexcept {
    std::atomic_ref<int64_t> shared(*turn);
    tw::announce(shared, done);
    int32_t status = tw::run_all(exports, export_count);
    if (status == 0) status = tw::run_all(imports, import_count);
    if (status == 0) tw::await(shared, awaited);
    return status;
}

int32_t tw_current_core(void) noexcept {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}
