// SPDX-License-Identifier: Apache-2.0
#include "copy/stages.h"

#include <cstring>
#include <new>
#include <type_traits>

namespace tw {
namespace {

// A run of this many bytes is worth a call of its own rather than collecting it with others first.
constexpr int64_t long_run = 256;

// A run of a block's elements at equal distances.
struct ElementRun {
    int first, count;
    int64_t offset, step;
};

// A run takes two elements at least, or one and an element after it that is not there.
constexpr int most_element_runs = TW_MAX_BLOCK / 2;

// Cuts the elements of the mask into runs. Returns how many.
int element_runs(const tw_nest &descriptor, int block_size, ElementRun *out) {
    int n = 0;
    for (int i = 0; i < block_size;) {
        if (!(descriptor.element_mask >> i & 1)) {
            ++i;
            continue;
        }
        ElementRun s{i, 1, descriptor.element_offset[i], 0};
        for (++i; i < block_size && (descriptor.element_mask >> i & 1); ++i) {
            int64_t step = descriptor.element_offset[i] - descriptor.element_offset[i - 1];
            if (s.count > 1 && step != s.step) break;
            s.step = step;
            ++s.count;
        }
        out[n++] = s;
    }
    return n;
}

// Where the elements of a box are staged: in target order, densely, except that a row (what is contiguous in the
// target) may be followed by a gap that keeps rows from falling onto each other in the cache.
struct Staging {
    int64_t step[max_modes] = {};  // elements
    int64_t row = 1;          // elements
    int64_t pitch = 1;        // elements
    int64_t rows = 1;
};

Staging staging_of(const Nest &box, int64_t dst_size, bool gaps) {
    Staging s;
    int i = 0;
    for (; i < box.rank && box.mode[i].dst == s.row * dst_size; ++i) {
        s.step[i] = s.row;
        s.row *= box.mode[i].extent;
    }
    for (int k = i; k < box.rank; ++k) s.rows *= box.mode[k].extent;
    s.pitch = s.row;
    if (gaps && s.rows > 1 && s.row * dst_size % 256 == 0) s.pitch += 64 / dst_size;
    int64_t step = s.pitch;
    for (; i < box.rank; ++i) {
        s.step[i] = step;
        step *= box.mode[i].extent;
    }
    return s;
}

// Calls visit(src, dst, staged) with the offsets of every element of modes [from, rank).
template <class Visit>
void for_each(const Nest &box, const Staging &staging, int from, Visit visit) {
    int64_t at[max_modes] = {};
    int64_t src = 0, dst = 0, aux = 0, staged = 0;
    while (true) {
        visit(src, dst, aux, staged);
        int i = from;
        for (; i < box.rank; ++i) {
            const Mode &m = box.mode[i];
            if (++at[i] < m.extent) {
                src += m.src;
                dst += m.dst;
                aux += m.aux;
                staged += staging.step[i];
                break;
            }
            at[i] = 0;
            src -= (m.extent - 1) * m.src;
            dst -= (m.extent - 1) * m.dst;
            aux -= (m.extent - 1) * m.aux;
            staged -= (m.extent - 1) * staging.step[i];
        }
        if (i >= box.rank) return;  // also when there is nothing from `from` on
    }
}

// Fills `bytes` bytes with copies of an element.
void repeat(const uint8_t *element, int64_t size, uint8_t *out, int64_t bytes) {
    std::memcpy(out, element, static_cast<size_t>(size));
    for (int64_t done = size; done < bytes; done *= 2) {
        std::memcpy(out + done, out, static_cast<size_t>(done < bytes - done ? done : bytes - done));
    }
}

// The stages for boxes of one shape.
struct Stages {
    uint64_t edge = 0;
    Nest box;
    Staging staging;
    int64_t elements = 0;  // or blocks
    bool straight = false;    // copy: no staging at all
    bool collected = false;   // the source is staged first
    bool stored = false;      // the result is staged before it is stored
    BitCopy collect[most_element_runs];  // from the source; one for each run of elements
    int collects = 0;
    BitCopy store[most_element_runs];    // to the target
    int stores = 0;
    BitCopy store_scales;
    Lines lines;
    Panel panel;
    Interleave interleave;
    Table table;
    Packing packing;
    Unpacking unpacking;
};

static_assert(std::is_trivially_destructible_v<Stages>);

class Runner {
public:
    Runner(const Job &job, const uint8_t *src, uint8_t *dst, const Kernels &kernels, Scratch *scratch)
        : job_(job), descriptor_(*job.descriptor), block_size_(job.kind.block_size), src_(src), dst_(dst), stream_(job.stream), k_(kernels),
          scratch_(scratch) {
        if (job.route != Route::staged) return;
        if (descriptor_.op == TW_FILL) repeat(descriptor_.fill, job.dst_size, scratch_->two, job.boxes.volume() * job.dst_size);
        if (descriptor_.op == TW_PACK) {
            run_count_ = element_runs(descriptor_, block_size_, runs_);
            std::memset(scratch_->one, 0, Scratch::capacity);  // elements that are not data are converted too
            if (run_count_ == 0) pack_filling();
        }
        if (descriptor_.op == TW_UNPACK) run_count_ = element_runs(descriptor_, block_size_, runs_);
        if (descriptor_.op == TW_COPY && job.convert) convert_ = k_.converter(descriptor_.src_type, descriptor_.dst_type);
        if (descriptor_.op == TW_PACK && descriptor_.src_type != TW_F32) convert_ = k_.converter(descriptor_.src_type, TW_F32);
        if (descriptor_.op == TW_UNPACK && descriptor_.dst_type != TW_F32) convert_ = k_.converter(TW_F32, descriptor_.dst_type);
    }

    void run(int64_t first, int64_t last) {
        Walk here(job_.boxes, descriptor_, first);
        Walk ahead = here;
        for (int64_t i = first; i < last; ++i) {
            const Stages &s = stages(here);
            int64_t distance = 0;
            if (i + 1 < last) {
                ahead.next();
                if (ahead.edge == here.edge) distance = ahead.src - here.src;
            }
            switch (job_.route) {
                case Route::lines: k_.lines(s.lines, src_ + here.src, dst_ + here.dst); break;
                case Route::rows: k_.copy(s.store[0], src_ + here.src, dst_ + here.dst, job_.lines.ahead); break;
                case Route::transpose:
                    k_.panel(s.panel, src_ + here.src, dst_ + here.dst, distance, scratch_ ? scratch_->panel : nullptr);
                    break;
                case Route::interleave: k_.interleave(s.interleave, src_ + here.src, dst_ + here.dst); break;
                case Route::table: k_.table(s.table, src_ + here.src, dst_ + here.dst); break;
                case Route::pack:
                    k_.pack(s.packing, src_ + here.src, dst_ + here.dst, dst_ + here.aux);
                    break;
                case Route::unpack: k_.unpack(s.unpacking, src_ + here.src, src_ + here.aux, dst_ + here.dst); break;
                case Route::staged: staged(s, here, distance); break;
            }
            here.next();
        }
    }

private:
    const Job &job_;
    const tw_nest &descriptor_;
    const int block_size_;  // of a block
    const uint8_t *src_;
    uint8_t *dst_;
    bool stream_;
    const Kernels &k_;
    Scratch *scratch_;  // only for routes that need it
    ConvertRun convert_ = nullptr;
    ElementRun runs_[most_element_runs];
    int run_count_ = 0;
    static constexpr int cached = 4;
    alignas(Stages) unsigned char storage_[cached][sizeof(Stages)];  // made when a box needs them: they are large
    Stages *cache_[cached] = {};
    Stages *latest_ = nullptr;
    int turn_ = 0;

    const Stages &stages(const Walk &walk) {
        if (latest_ && latest_->edge == walk.edge) return *latest_;
        for (Stages *s : cache_) {
            if (s && s->edge == walk.edge) return *(latest_ = s);
        }
        const int at = turn_++ % cached;
        latest_ = cache_[at] = new (storage_[at]) Stages;
        latest_->edge = walk.edge;
        latest_->box = walk.shape();
        prepare(*latest_);
        return *latest_;
    }

    // Returns the nest that copies the box between the source and staged elements of `size` bytes.
    Nest into_staging(const Nest &box, const Staging &staging, int64_t size) const {
        Nest n = box;
        for (int i = 0; i < n.rank; ++i) n.mode[i].dst = staging.step[i] * size;
        return n;
    }
    Nest out_of_staging(const Nest &box, const Staging &staging, int64_t size) const {
        Nest n = box;
        for (int i = 0; i < n.rank; ++i) n.mode[i].src = staging.step[i] * size;
        return n;
    }

    void staged(const Stages &s, const Walk &at, int64_t ahead) {
        switch (descriptor_.op) {
            case TW_COPY: return copy(s, at, ahead);
            case TW_FILL: return k_.copy(s.store[0], scratch_->two, dst_ + at.dst, 0);
            case TW_PACK: return pack(s, at, ahead);
            default: return unpack(s, at);
        }
    }

    void prepare(Stages &s) {
        s.elements = s.box.count();
        if (job_.route == Route::lines) {
            s.lines = lines_of(s.box);
            return;
        }
        if (job_.route == Route::rows) {
            s.store[0] = make_bit_copy(s.box, job_.src_size, false, Order::by_target);
            return;
        }
        if (job_.route == Route::unpack) {
            s.unpacking = {job_.kind, descriptor_.dst_type, job_.piece_aux, lines_of(s.box)};
            return;
        }
        if (job_.route == Route::pack) {
            s.packing = packing_of(s.box);
            return;
        }
        if (job_.route == Route::transpose) {
            s.panel = panel_of(job_.panel, s.box, stream_);
            return;
        }
        if (job_.route == Route::interleave) {
            s.interleave = interleave_of(job_.interleave, s.box, stream_);
            return;
        }
        if (job_.route == Route::table) {
            s.table = job_.table;
            s.table.rank = s.box.rank;
            for (int i = 0; i < s.box.rank; ++i) s.table.mode[i] = s.box.mode[i];
            return;
        }
        if (job_.route != Route::staged) return;
        switch (descriptor_.op) {
            case TW_COPY: return prepare_copy(s);
            case TW_FILL: return prepare_fill(s);
            case TW_PACK: return prepare_pack(s);
            default: return prepare_unpack(s);
        }
    }

    // Returns the packing of a box.
    Packing packing_of(const Nest &box) const {
        Packing packing{job_.kind, descriptor_.src_type, job_.half, stream_, box.rank, {}};
        for (int i = 0; i < box.rank; ++i) packing.mode[i] = box.mode[i];
        return packing;
    }

    // Returns the job's lines with the loops of a box.
    Lines lines_of(Nest box) const {
        Lines lines = job_.lines;
        fuse_in_order(box);
        lines.rank = box.rank;
        for (int i = 0; i < box.rank; ++i) lines.mode[i] = box.mode[i];
        return lines;
    }

    void prepare_fill(Stages &s) {
        s.staging = staging_of(s.box, job_.dst_size, false);
        s.store[0] = make_bit_copy(out_of_staging(s.box, s.staging, job_.dst_size), job_.dst_size, stream_, Order::by_target);
    }

    void prepare_copy(Stages &s) {
        const int in = job_.src_size, out = job_.dst_size;
        s.staging = staging_of(s.box, out, true);
        const bool lines = stream_ && s.staging.row * out >= 64;
        if (!job_.convert) {
            BitCopy direct = make_bit_copy(s.box, in, lines, lines ? Order::by_target : Order::by_source);
            s.straight = !lines || (direct.kind == BitCopyKind::runs && direct.run >= long_run);
            if (s.straight) {
                s.store[0] = direct;
                return;
            }
            s.collected = s.stored = true;
        } else {
            const Mode *inner = s.box.rank > 0 ? &s.box.mode[0] : nullptr;
            bool long_runs = inner && inner->src == in && inner->dst == out && inner->extent * in >= long_run;
            s.collected = !long_runs;
            s.stored = lines || s.staging.row * out < long_run;
        }
        s.collect[0] = make_bit_copy(into_staging(s.box, s.staging, in), in, false, Order::by_source);
        s.store[0] = make_bit_copy(out_of_staging(s.box, s.staging, out), out, lines, Order::by_target);
    }

    void copy(const Stages &s, const Walk &at, int64_t ahead) {
        const uint8_t *src = src_ + at.src;
        uint8_t *dst = dst_ + at.dst;
        if (s.straight) return k_.copy(s.store[0], src, dst, ahead);
        if (s.collected) k_.copy(s.collect[0], src, scratch_->one, ahead);
        if (job_.convert) {
            const int64_t in = job_.src_size, out = job_.dst_size;
            if (s.collected && s.stored && s.staging.pitch == s.staging.row) {
                convert_(scratch_->one, scratch_->two, static_cast<size_t>(s.elements));
            } else if (s.collected) {
                int from = first_outside_row(s);
                for_each(s.box, s.staging, from, [&](int64_t, int64_t d, int64_t, int64_t e) {
                    convert_(scratch_->one + e * in, s.stored ? scratch_->two + e * out : dst + d,
                             static_cast<size_t>(s.staging.row));
                });
            } else {
                for_each(s.box, s.staging, 1, [&](int64_t a, int64_t d, int64_t, int64_t e) {
                    convert_(src + a, s.stored ? scratch_->two + e * out : dst + d,
                             static_cast<size_t>(s.box.mode[0].extent));
                });
            }
        }
        if (s.stored) k_.copy(s.store[0], job_.convert ? scratch_->two : scratch_->one, dst, 0);
    }

    // Returns the first mode that is not part of a row.
    static int first_outside_row(const Stages &s) {
        int from = 0;
        for (int64_t n = 1; n < s.staging.row; ++from) n *= s.box.mode[from].extent;
        return from;
    }

    void prepare_pack(Stages &s) {
        const int codes = job_.dst_size;
        s.staging = staging_of(s.box, codes, false);
        for (int i = 0; i < run_count_; ++i) {
            const ElementRun &t = runs_[i];
            Nest n = into_staging(s.box, s.staging, int64_t{block_size_} * job_.src_size);
            n.src += t.offset;
            n.dst += t.first * int64_t{job_.src_size};
            n.push({t.count, t.step, job_.src_size, 0});
            s.collect[s.collects++] = make_bit_copy(n, job_.src_size, false, Order::by_source);
        }
        // Codes are copied as whole blocks; scales one byte each.
        Nest out = out_of_staging(s.box, s.staging, codes);
        out.push({codes, 1, 1, 0});
        s.store[0] = make_bit_copy(out, 1, stream_, Order::by_target);
        Nest scales = out_of_staging(s.box, s.staging, 1);
        for (int i = 0; i < scales.rank; ++i) scales.mode[i].dst = s.box.mode[i].aux;
        s.store_scales = make_bit_copy(scales, 1, stream_, Order::by_target);
    }

    // Packs blocks that are all filling once for all boxes.
    void pack_filling() {
        const int64_t blocks = job_.boxes.volume();
        repeat(descriptor_.fill, 4, scratch_->one, blocks * block_size_ * 4);
        pack_singles(scratch_->one, blocks);
    }

    // Packs blocks of float32 that follow each other.
    void pack_singles(const uint8_t *values, int64_t blocks) {
        Packing packing{job_.kind, TW_F32, piece * 4, false, 1, {}};
        packing.mode[0] = {blocks, block_size_ * 4, job_.dst_size, 1};
        k_.pack(packing, values, scratch_->three, scales());
    }

    uint8_t *scales() const { return scratch_->three + Scratch::capacity / 2; }

    void pack(const Stages &s, const Walk &at, int64_t ahead) {
        for (int i = 0; i < s.collects; ++i) k_.copy(s.collect[i], src_ + at.src, scratch_->one, ahead);
        if (run_count_ > 0) pack_collected(s.elements);
        k_.copy(s.store[0], scratch_->three, dst_ + at.dst, 0);
        k_.copy(s.store_scales, scales(), dst_ + at.aux, 0);
    }

    void pack_collected(int64_t blocks) {
        uint8_t *values = scratch_->one;
        if (convert_) {
            convert_(scratch_->one, scratch_->two, static_cast<size_t>(blocks * block_size_));
            values = scratch_->two;
        }
        for (int i = 0; i < block_size_; ++i) {
            if (descriptor_.element_mask >> i & 1) continue;
            for (int64_t b = 0; b < blocks; ++b) std::memcpy(values + (b * block_size_ + i) * 4, descriptor_.fill, 4);
        }
        pack_singles(values, blocks);
    }

    void prepare_unpack(Stages &s) {
        const int64_t out = job_.dst_size;
        s.staging = staging_of(s.box, out * block_size_, false);
        s.unpacking.kind = job_.kind;
        s.unpacking.type = TW_F32;
        s.unpacking.lines.rank = s.box.rank;
        for (int i = 0; i < s.box.rank; ++i) {
            const Mode &m = s.box.mode[i];
            s.unpacking.lines.mode[i] = {m.extent, m.src, s.staging.step[i] * block_size_ * 4, m.aux};
        }
        if (block_size_ > piece) {
            for (int i = s.box.rank; i > 0; --i) s.unpacking.lines.mode[i] = s.unpacking.lines.mode[i - 1];
            s.unpacking.lines.mode[0] = {block_size_ / piece, job_.kind.piece_bytes(), piece * 4, 0};
            ++s.unpacking.lines.rank;
        }
        for (int i = 0; i < run_count_; ++i) {
            const ElementRun &t = runs_[i];
            Nest n = out_of_staging(s.box, s.staging, block_size_ * out);
            n.src += t.first * out;
            n.dst += t.offset;
            n.push({t.count, out, t.step, 0});
            s.store[s.stores++] = make_bit_copy(n, static_cast<int>(out), stream_, Order::by_target);
        }
    }

    void unpack(const Stages &s, const Walk &at) {
        k_.unpack(s.unpacking, src_ + at.src, src_ + at.aux, scratch_->one);
        const uint8_t *staged = scratch_->one;
        if (convert_) {
            convert_(scratch_->one, scratch_->two, static_cast<size_t>(s.elements * block_size_));
            staged = scratch_->two;
        }
        for (int i = 0; i < s.stores; ++i) k_.copy(s.store[i], staged, dst_ + at.dst, 0);
    }
};

}  // namespace

void run_boxes(const Job &job, int64_t first, int64_t last, const uint8_t *src, uint8_t *dst, const Kernels &kernels,
               Scratch *scratch) {
    if (first < last) Runner(job, src, dst, kernels, scratch).run(first, last);
}

}  // namespace tw
