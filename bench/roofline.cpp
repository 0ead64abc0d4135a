// SPDX-License-Identifier: Apache-2.0
//
// What a pipeline of tiles cannot beat on this machine: the same loops with nothing in between, as multiples of memcpy.
//
//     c++ -O3 -march=native -std=c++20 -pthread bench/roofline.cpp -o build/roofline && build/roofline
//
// 4096 x 4096 elements in tiles of 256 x 256: a tile is copied to a buffer, from there to another, which is the compute, and
// from there to the target with stores that go past the caches. Linux on x86-64; it wants two cores to itself.
#include <immintrin.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

constexpr int64_t side = 4096, tile = 256, across = side / tile, tiles = across * across;

void stay_on(unsigned core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// Returns memory with every page touched, in large pages where the system has them, as NumPy asks for them.
uint8_t *memory(int64_t bytes) {
    constexpr int64_t page = 2 << 20;
    const int64_t rounded = (bytes + page - 1) / page * page;
    void *found = std::aligned_alloc(page, static_cast<size_t>(rounded));
    if (!found) std::abort();
    madvise(found, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    std::memset(found, 1, static_cast<size_t>(rounded));
    return static_cast<uint8_t *>(found);
}

template <class Task>
double best(Task task) {
    double least = 1e9;
    for (int i = 0; i < 25; ++i) {
        const auto start = std::chrono::steady_clock::now();
        task();
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
}

struct Worker {
    uint8_t *in, *out;
};

struct Copying {
    int64_t size;  // bytes of an element
    uint8_t *source = memory(side * side * size), *target = memory(side * side * size);
    Worker worker[2] = {{buffer(), buffer()}, {buffer(), buffer()}};

    explicit Copying(int64_t bytes) : size(bytes) {}
    uint8_t *buffer() const { return memory(tile * tile * size); }
    int64_t row() const { return tile * size; }
    int64_t place(int64_t k) const { return (k / across * tile * side + k % across * tile) * size; }

    void import(int64_t k, uint8_t *in) const {
        const uint8_t *from = source + place(k);
        for (int64_t r = 0; r < tile; ++r, from += side * size) {
            for (int64_t i = 0; i < row(); i += 64) _mm_prefetch(from + 2 * side * size + i, _MM_HINT_T0);
            std::memcpy(in + r * row(), from, static_cast<size_t>(row()));
        }
    }
    void compute(const Worker &l) const { std::memcpy(l.out, l.in, static_cast<size_t>(tile * row())); }
    void leave(int64_t k, const uint8_t *out) const {
        uint8_t *to = target + place(k);
        for (int64_t r = 0; r < tile; ++r, to += side * size) {
            for (int64_t i = 0; i < row(); i += 16) {
                const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i *>(out + r * row() + i));
                _mm_stream_si128(reinterpret_cast<__m128i *>(to + i), v);
            }
        }
        _mm_sfence();
    }
};

void wait_for(const std::atomic<int64_t> &turn, int64_t least) {
    while (turn.load(std::memory_order_acquire) < least) _mm_pause();
}

// Every thread carries its own tiles; with turns, they compute one after another, as a Python compute must.
void in_lanes(const Copying &c, int count, bool turns) {
    std::atomic<int64_t> turn{0};
    auto carry = [&](int64_t first) {
        stay_on(static_cast<unsigned>(first));
        for (int64_t k = first; k < tiles; k += count) {
            c.import(k, c.worker[first].in);
            if (turns) wait_for(turn, k);
            c.compute(c.worker[first]);
            if (turns) turn.store(k + 1, std::memory_order_release);
            c.leave(k, c.worker[first].out);
        }
    };
    std::thread other;
    if (count > 1) other = std::thread(carry, 1);
    carry(0);
    if (count > 1) other.join();
}

// One thread transfers, the other computes: every tile crosses from core to core and back.
void apart(const Copying &c) {
    std::atomic<int64_t> imported{0}, computed{0};
    auto transfer = [&] {
        stay_on(1);
        for (int64_t k = 0; k < tiles + 2; ++k) {
            if (k >= 2) {
                wait_for(computed, k - 1);
                c.leave(k - 2, c.worker[k % 2].out);
            }
            if (k < tiles) c.import(k, c.worker[k % 2].in);
            imported.store(k + 1, std::memory_order_release);
        }
    };
    std::thread other(transfer);
    for (int64_t k = 0; k < tiles; ++k) {
        wait_for(imported, k + 1);
        c.compute(c.worker[k % 2]);
        computed.store(k + 1, std::memory_order_release);
    }
    other.join();
}

void report(int64_t size) {
    const Copying c(size);
    const double whole = best([&] { std::memcpy(c.target, c.source, static_cast<size_t>(side * side * size)); });
    const double one = best([&] { in_lanes(c, 1, false); }), free = best([&] { in_lanes(c, 2, false); });
    const double turns = best([&] { in_lanes(c, 2, true); }), crossing = best([&] { apart(c); });
    std::printf("| %lld | %.2f | %.2f | %.2f | %.2f | %.2f |\n", static_cast<long long>(size), 1e3 * whole, one / whole,
                free / whole, turns / whole, crossing / whole);
}

// Returns the seconds that a line takes from one core to the other.
double hand_over() {
    constexpr int64_t rounds = 20000;
    std::atomic<int64_t> turn{0};
    const double both = best([&] {
        turn = 0;
        std::thread other([&] {
            stay_on(1);
            for (int64_t i = 0; i < rounds; ++i) {
                while (turn.load(std::memory_order_acquire) != 2 * i + 1) {}
                turn.store(2 * i + 2, std::memory_order_release);
            }
        });
        for (int64_t i = 0; i < rounds; ++i) {
            turn.store(2 * i + 1, std::memory_order_release);
            while (turn.load(std::memory_order_acquire) != 2 * i + 2) {}
        }
        other.join();
    });
    return both / (2 * rounds);
}

}  // namespace

int main() {
    stay_on(0);
    std::printf("| bytes of an element | memcpy, ms | one core | two | two, computes in turns | transfers apart |\n"
                "|---|---|---|---|---|---|\n");
    report(4);
    report(1);
    std::printf("a line takes %.0f ns from core to core\n", 1e9 * hand_over());
}
