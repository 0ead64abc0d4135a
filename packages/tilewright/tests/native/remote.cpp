// SPDX-License-Identifier: Apache-2.0
//
// Runs the native library in a process of its own, for remote.py: reads calls from standard input and answers on standard
// output. So a library of another processor can be tested, under an emulator, by the tests of this one.
//
//     remote path/to/_native.so
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tilewright.h"

namespace {

constexpr int64_t page = 4096;
constexpr int64_t guard = 256;  // bytes before and after what may be written
constexpr uint8_t poison = 0xa5;

void read_all(void *out, size_t count) {
    if (count != 0 && std::fread(out, 1, count, stdin) != count) std::exit(0);  // the caller has gone
}

int64_t read_number() {
    int64_t number;
    read_all(&number, sizeof(number));
    return number;
}

void write_all(const void *data, size_t count) { std::fwrite(data, 1, count, stdout); }

void write_number(int64_t number) { write_all(&number, sizeof(number)); }

// Memory as far past a page as the caller's, between two guards.
class Memory {
public:
    Memory(int64_t past, int64_t size) : size_(size), all_(static_cast<size_t>(size + 2 * guard + 2 * page), poison) {
        const auto base = reinterpret_cast<uintptr_t>(all_.data()) + guard;
        first_ = all_.data() + guard + (static_cast<uintptr_t>(past) - base) % page;
    }
    uint8_t *first() { return first_; }
    size_t size() const { return static_cast<size_t>(size_); }
    bool is_intact() const {
        for (int64_t i = 1; i <= guard; ++i) {
            if (first_[-i] != poison || first_[size_ + i - 1] != poison) return false;
        }
        return true;
    }

private:
    int64_t size_;
    std::vector<uint8_t> all_;
    uint8_t *first_;
};

// Memory that starts `low` bytes after the address that a call is given.
struct Span {
    int64_t low;
    Memory memory;

    explicit Span(int64_t past) : low(read_number()), memory(past, read_number()) {}
    uint8_t *base() { return memory.first() - low; }
};

void run(void *library, const char *name) {
    const auto call = reinterpret_cast<decltype(&tw_run)>(dlsym(library, name));
    const int64_t threads = read_number();
    std::vector<tw_nest> nests(static_cast<size_t>(read_number()));
    read_all(nests.data(), nests.size() * sizeof(tw_nest));
    std::vector<std::vector<int64_t>> tables;
    for (tw_nest &nest : nests) {
        for (const int64_t **table : {&nest.src_table, &nest.dst_table, &nest.aux_table}) {
            if (!*table) continue;
            tables.emplace_back(static_cast<size_t>(nest.table_count));
            read_all(tables.back().data(), tables.back().size() * sizeof(int64_t));
            *table = tables.back().data();
        }
    }
    Span src(read_number()), dst(read_number());
    read_all(src.memory.first(), src.memory.size());
    read_all(dst.memory.first(), dst.memory.size());
    const int32_t status = call(nests.data(), static_cast<int32_t>(nests.size()), src.base(), dst.base(),
                                static_cast<int32_t>(threads));
    const bool intact = src.memory.is_intact() && dst.memory.is_intact();
    write_number(intact ? status : -1000);
    write_all(dst.memory.first(), dst.memory.size());
}

// Runs tw_decode or tw_recode, which take the same arguments but for the type of what they write.
void decode(void *library, const char *name) {
    using Call = int32_t (*)(const tw_coding *, const uint8_t *, const float *, int64_t, int64_t, void *);
    const auto call = reinterpret_cast<Call>(dlsym(library, name));
    tw_coding coding;
    read_all(&coding, sizeof(coding));
    const int64_t rows = read_number(), columns = read_number();
    Memory codes(0, read_number()), scales(0, read_number()), out(0, read_number());
    read_all(codes.first(), codes.size());
    read_all(scales.first(), scales.size());
    const int32_t status =
        call(&coding, codes.first(), reinterpret_cast<const float *>(scales.first()), rows, columns, out.first());
    write_number(out.is_intact() ? status : -1000);
    write_all(out.first(), out.size());
}

void sha256_pair(void *library) {
    uint32_t state[16];
    read_all(state, sizeof(state));
    std::vector<uint8_t> data[2];
    for (auto &each : data) {
        each.resize(static_cast<size_t>(64 * read_number()));
        read_all(each.data(), each.size());
    }
    const auto call = reinterpret_cast<decltype(&tw_sha256_pair)>(dlsym(library, "tw_sha256_pair"));
    write_number(call(state, data[0].data(), static_cast<int64_t>(data[0].size() / 64), state + 8, data[1].data(),
                      static_cast<int64_t>(data[1].size() / 64)));
    write_all(state, sizeof(state));
}

void pair_sums(void *library) {
    std::vector<double> a(static_cast<size_t>(read_number())), b(a.size()), sums(7 * TW_MAGNITUDES);
    int64_t range[2];
    read_all(a.data(), a.size() * sizeof(double));
    read_all(b.data(), b.size() * sizeof(double));
    const auto call = reinterpret_cast<decltype(&tw_pair_sums)>(dlsym(library, "tw_pair_sums"));
    call(a.data(), b.data(), static_cast<int64_t>(a.size()), sums.data(), range);
    write_all(range, sizeof(range));
    write_all(sums.data(), sums.size() * sizeof(double));
}

}  // namespace

int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : nullptr;
    if (!library) {
        std::fprintf(stderr, "remote: %s\n", count == 2 ? dlerror() : "expected the path of a library");
        return 1;
    }
    while (true) {
        std::string name(static_cast<size_t>(read_number()), ' ');
        read_all(name.data(), name.size());
        if (name == "tw_run" || name == "tw_run_streaming") {
            run(library, name.c_str());
        } else if (name == "tw_decode" || name == "tw_recode") {
            decode(library, name.c_str());
        } else if (name == "tw_sha256_pair") {
            sha256_pair(library);
        } else if (name == "tw_pair_sums") {
            pair_sums(library);
        } else if (name == "tw_cpu_features") {
            const char *features = reinterpret_cast<decltype(&tw_cpu_features)>(dlsym(library, "tw_cpu_features"))();
            write_number(static_cast<int64_t>(std::strlen(features)));
            write_all(features, std::strlen(features));
        } else {
            return 2;
        }
        std::fflush(stdout);
    }
}
