// SPDX-License-Identifier: Apache-2.0
//
// tw_run: checks the nests, blocks them, and shares the boxes out among threads.
#include <new>

#include "copy/kernels.h"
#include "copy/stages.h"
#include "copy/threads.h"
#include "tilewright.h"

namespace tw {
namespace {

// Above this many target bytes, what is written would push itself out of the caches before anyone reads it.
constexpr double stream_from = 8 << 20;

struct Call {
    const Job *jobs;
    int count;
    const uint8_t *src;
    uint8_t *dst;
    bool stream;
    int threads;
    double cost;
    Scratch *scratch;
    const Kernels *kernels;
};

int64_t clamp(double x, int64_t high) {
    return x <= 0 ? 0 : x >= static_cast<double>(high) ? high : static_cast<int64_t>(x);
}

// Each thread takes the boxes that start in its share of the total cost, whichever nests they belong to.
void work(void *context, int index) {
    const Call &call = *static_cast<const Call *>(context);
    double low = call.cost / call.threads * index, high = call.cost / call.threads * (index + 1);
    double before = 0;
    for (int i = 0; i < call.count; ++i) {
        const Job &job = call.jobs[i];
        int64_t total = job.boxes.total;
        if (total == 0) continue;
        double each = job.elements * static_cast<double>(job.cost) / static_cast<double>(total);
        int64_t first = index == 0 ? 0 : clamp((low - before) / each, total);
        int64_t last = index + 1 == call.threads ? total : clamp((high - before) / each, total);
        run_boxes(job, first, last, call.src, call.dst, *call.kernels,
                  call.scratch ? call.scratch + index : nullptr);
        before += each * static_cast<double>(total);
    }
    if (call.stream) call.kernels->fence();
}

int32_t run(const tw_nest *nests, int32_t count, const uint8_t *src, uint8_t *dst, int32_t threads, bool stream) {
    if (count < 0) return -1;
    if (count == 0) return 0;
    Job *jobs = new (std::nothrow) Job[static_cast<size_t>(count)];
    if (!jobs) return -2;
    Call call{jobs, count, src, dst, false, 1, 0, nullptr, &best_kernels()};
    double written = 0;
    int32_t result = 0;
    for (int32_t i = 0; i < count && result == 0; ++i) {
        if (!check_nest(nests[i], jobs[i])) result = -1;
        call.cost += jobs[i].elements * static_cast<double>(jobs[i].cost);
        written += jobs[i].written;
    }
    if (result == 0 && call.cost > 0) {
        call.stream = stream || written >= stream_from;
        bool staging = false;
        for (int32_t i = 0; i < count; ++i) {
            choose_route(jobs[i], src, dst, call.stream);
            staging = staging || needs_scratch(jobs[i]);
        }
        call.threads = worth_threads(threads, call.cost);
        if (staging) call.scratch = new (std::nothrow) Scratch[static_cast<size_t>(call.threads)];
        if (staging && !call.scratch) {
            result = -2;
        } else {
            on_threads(call.threads, work, &call);
        }
        delete[] call.scratch;
    }
    delete[] jobs;
    return result;
}

}  // namespace

const char *cpu_features();

}  // namespace tw

const char *tw_cpu_features(void) noexcept { return tw::cpu_features(); }

int32_t tw_run(const tw_nest *nests, int32_t count, const uint8_t *src, uint8_t *dst, int32_t threads) noexcept {
    return tw::run(nests, count, src, dst, threads, false);
}

int32_t tw_run_streaming(const tw_nest *nests, int32_t count, const uint8_t *src, uint8_t *dst,
                         int32_t threads) noexcept {
    return tw::run(nests, count, src, dst, threads, true);
}
