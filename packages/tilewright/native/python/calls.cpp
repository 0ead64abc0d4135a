// SPDX-License-Identifier: Apache-2.0
// The module tilewright._calls, and its `remember`: a function that repeats what an earlier call has prepared, without
// running Python. It is of Python's stable ABI, and reads NumPy's arrays by the part of their struct, and of their table
// of functions, that every NumPy since 1.7 has; both are tried once before they are used.
#include "python/calls.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace {

struct Array {
    PyObject_HEAD
    char *data;
    int rank;
    Py_ssize_t *extents, *strides;
    PyObject *base, *dtype;
    int flags;
};

// NumPy's flags of an array.
constexpr int writeable = 0x0400, warns_when_written = 1 << 31, plain = 0x0501;  // plain: in C order, aligned, writeable
using NewArray = PyObject *(*)(PyTypeObject *, PyObject *dtype, int rank, const Py_ssize_t *extents,
                               const Py_ssize_t *strides, void *data, int flags, PyObject *like);
using SetBase = int (*)(Array *, PyObject *);

PyTypeObject *array_type;
PyObject *byte_type;  // the dtype uint8
NewArray new_array;
SetBase set_base;

constexpr int most_axes = 8, most_words = 64, slot_count = 512, probes = 8;
constexpr Py_ssize_t cache_line = 64;
constexpr Py_ssize_t held_bytes = 1 << 17;  // copies of fewer bytes are over before another thread gets the interpreter

// What a call depends on: its options, the signatures of its arrays, and the environment.
struct Key {
    int count = 0;
    uint64_t words[most_words];

    bool add(uint64_t word) {
        if (count == most_words) return false;
        words[count++] = word;
        return true;
    }
    bool add(const PyObject *object) { return add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object))); }
    bool operator==(const Key &other) const {
        return count == other.count && !memcmp(words, other.words, sizeof(*words) * static_cast<size_t>(count));
    }
    size_t slot() const {
        uint64_t hash = 0;
        for (int k = 0; k < count; ++k) hash = (hash ^ words[k] ^ hash >> 29) * 0x9E3779B97F4A7C15u;
        return hash >> 40;
    }
};

// Integers, floats and tuples are told apart by their values, what else there is by its address: addresses are even. With
// `immutable`, types, it has to be of one of them.
bool add_option(Key &key, PyObject *option, PyObject *immutable) {
    if (PyLong_CheckExact(option)) {
        int overflow;
        const long long value = PyLong_AsLongLongAndOverflow(option, &overflow);
        return !overflow && key.add(1) && key.add(static_cast<uint64_t>(value));
    }
    if (PyFloat_CheckExact(option)) {
        const double value = PyFloat_AsDouble(option);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return key.add(3) && key.add(bits);
    }
    if (!PyTuple_CheckExact(option))
        return (!immutable || PyObject_IsInstance(option, immutable) == 1) && key.add(option);
    const Py_ssize_t size = PyTuple_Size(option);
    if (!key.add(5) || !key.add(static_cast<uint64_t>(size))) return false;
    for (Py_ssize_t k = 0; k < size; ++k)
        if (!add_option(key, PyTuple_GetItem(option, k), immutable)) return false;
    return true;
}

bool add_array(Key &key, const Array &array) {
    if (array.rank > most_axes || !key.add(array.dtype) || !key.add(static_cast<uint64_t>(array.rank))) return false;
    for (int k = 0; k < array.rank; ++k)
        if (!key.add(static_cast<uint64_t>(array.extents[k])) || !key.add(static_cast<uint64_t>(array.strides[k])))
            return false;
    return true;
}

bool add_variable(Key &key, const char *name) {
    uint64_t words[2] = {};
    const char *value = getenv(name);
    if (value && strlen(value) >= sizeof words) return false;
    if (value) memcpy(words, value, strlen(value));
    return key.add(words[0]) && key.add(words[1]);
}

// Makes the key of a call (source, target or None, option ...); false for a call that is not remembered.
bool make_key(Key &key, PyObject *const *given, Py_ssize_t count, PyObject *immutable = nullptr) {
    if (count < 2 || Py_TYPE(given[0]) != array_type) return false;
    if (!add_array(key, *reinterpret_cast<Array *>(given[0]))) return false;
    if (given[1] == Py_None) {
        if (!key.add(uint64_t{0})) return false;
    } else if (Py_TYPE(given[1]) != array_type || !add_array(key, *reinterpret_cast<Array *>(given[1]))) {
        return false;
    }
    for (Py_ssize_t k = 2; k < count; ++k)
        if (!add_option(key, given[k], immutable)) return false;
    return add_variable(key, "TILEWRIGHT_ENGINE") && add_variable(key, "TILEWRIGHT_THREADS");
}

// A copy whose plan is ready: from the lowest byte of the source, `source_low` from its first element, to the target's.
struct ReadyCopy {
    int32_t (*run)(const void *nests, int32_t count, const char *source, char *target, int32_t threads) = nullptr;
    const void *nests = nullptr;
    int32_t count = 0, threads = 0;
    Py_ssize_t source_low = 0, target_low = 0, source_bytes = 0, target_bytes = 0;
    int rank = 0;
    Py_ssize_t extents[most_axes] = {};  // of a new target
    PyObject *dtype = nullptr;           // of a new target, else None
};

struct Entry {
    Key key;
    ReadyCopy ready;
    PyObject *kept;  // what both point to
};

struct Memory {
    PyObject *prepare, *immutable;
    Entry *entries[slot_count] = {};
};

constexpr char capsule_name[] = "tilewright._calls.memory";

void forget(Entry *entry) {
    if (!entry) return;
    Py_DECREF(entry->kept);
    delete entry;
}

void delete_memory(PyObject *capsule) {
    Memory *memory = static_cast<Memory *>(PyCapsule_GetPointer(capsule, capsule_name));
    for (Entry *entry : memory->entries) forget(entry);
    Py_DECREF(memory->prepare);
    Py_DECREF(memory->immutable);
    delete memory;
}

// Returns where the entry of a key is or belongs: a place of its own, an empty one, or that of another.
Entry *&find(Memory &memory, const Key &key) {
    const size_t home = key.slot();
    for (size_t k = 0; k < probes; ++k) {
        Entry *&entry = memory.entries[(home + k) % slot_count];
        if (!entry || entry->key == key) return entry;
    }
    return memory.entries[home % slot_count];
}

// Returns an array that starts at a cache line: a view of one that is a line longer.
Array *new_aligned(const ReadyCopy &ready) {
    Py_ssize_t size = ready.target_bytes + cache_line;
    Py_INCREF(byte_type);  // dtypes, and the base below, are taken over
    PyObject *bytes = new_array(array_type, byte_type, 1, &size, nullptr, nullptr, 0, nullptr);
    if (!bytes) return nullptr;
    char *data = reinterpret_cast<Array *>(bytes)->data;
    data += -reinterpret_cast<uintptr_t>(data) % cache_line;
    Py_INCREF(ready.dtype);
    PyObject *view = new_array(array_type, ready.dtype, ready.rank, ready.extents, nullptr, data, plain, nullptr);
    Array *array = reinterpret_cast<Array *>(view);
    if (!view) {
        Py_DECREF(bytes);
    } else if (set_base(array, bytes)) {
        Py_DECREF(view);
        return nullptr;
    }
    return array;
}

// Returns the result of a remembered call; null without an error where the arrays have to be examined.
PyObject *repeat(const ReadyCopy &ready, PyObject *const *given) {
    const char *source = reinterpret_cast<Array *>(given[0])->data + ready.source_low;
    Array *target = reinterpret_cast<Array *>(given[1]);
    if (given[1] != Py_None) {
        const char *low = target->data + ready.target_low;
        const bool overlap = source < low + ready.target_bytes && low < source + ready.source_bytes;
        if (overlap || (target->flags & (writeable | warns_when_written)) != writeable) return nullptr;
        Py_INCREF(given[1]);
    } else if (!(target = new_aligned(ready))) {
        return nullptr;
    }
    char *low = target->data + ready.target_low;
    const bool releases = ready.source_bytes + ready.target_bytes >= held_bytes;
    PyThreadState *state = releases ? PyEval_SaveThread() : nullptr;
    const int32_t status = ready.run(ready.nests, ready.count, source, low, ready.threads);
    if (releases) PyEval_RestoreThread(state);
    PyObject *result = reinterpret_cast<PyObject *>(target);
    if (status) Py_CLEAR(result);
    return result;
}

// Stores a call under its key, with what `prepare` returned for it; false with an error set if that is not one.
bool store(Memory &memory, const Key &key, PyObject *call, PyObject *prepared) {
    std::unique_ptr<Entry> entry(new (std::nothrow) Entry);
    if (!entry) return true;  // the next call prepares again
    entry->key = key;
    ReadyCopy &ready = entry->ready;
    unsigned long long run, nests;
    PyObject *shape, *owner;
    if (!PyArg_ParseTuple(prepared, "KKiinnnnO!OO", &run, &nests, &ready.count, &ready.threads, &ready.source_low,
                          &ready.target_low, &ready.source_bytes, &ready.target_bytes, &PyTuple_Type, &shape,
                          &ready.dtype, &owner))
        return false;
    ready.run = reinterpret_cast<decltype(ready.run)>(static_cast<uintptr_t>(run));
    ready.nests = reinterpret_cast<const void *>(static_cast<uintptr_t>(nests));
    if (PyTuple_Size(shape) > most_axes) return true;
    for (; ready.rank < PyTuple_Size(shape); ++ready.rank)
        ready.extents[ready.rank] = PyLong_AsSsize_t(PyTuple_GetItem(shape, ready.rank));
    if (PyErr_Occurred()) return false;

    PyObject *source = PyTuple_GetItem(call, 0), *target = PyTuple_GetItem(call, 1);
    PyObject *options = PyTuple_GetSlice(call, 2, PyTuple_Size(call));
    if (!options) return false;
    entry->kept = PyTuple_Pack(4, prepared, options, reinterpret_cast<Array *>(source)->dtype,
                               target == Py_None ? Py_None : reinterpret_cast<Array *>(target)->dtype);
    Py_DECREF(options);
    if (!entry->kept) return false;
    forget(std::exchange(find(memory, key), entry.release()));
    return true;
}

PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    Memory &memory = *static_cast<Memory *>(PyCapsule_GetPointer(self, capsule_name));
    Key key;
    const bool has_key = make_key(key, given, count);
    if (has_key) {
        const Entry *entry = find(memory, key);
        if (entry && entry->key == key) {
            const ReadyCopy ready = entry->ready;  // another thread may replace the entry while this one copies
            PyObject *kept = entry->kept;
            Py_INCREF(kept);
            PyObject *result = repeat(ready, given);
            Py_DECREF(kept);
            if (result || PyErr_Occurred()) return result;
        }
    }
    PyObject *arguments = PyTuple_New(count);
    if (!arguments) return nullptr;
    for (Py_ssize_t k = 0; k < count; ++k) {
        Py_INCREF(given[k]);
        PyTuple_SetItem(arguments, k, given[k]);
    }
    PyObject *pair = PyObject_CallObject(memory.prepare, arguments), *result = nullptr, *prepared;
    if (pair && PyArg_ParseTuple(pair, "OO", &result, &prepared)) {
        Key again;  // of the arrays as they are now
        Py_INCREF(result);
        const bool lasts = has_key && prepared != Py_None && make_key(again, given, count, memory.immutable);
        PyErr_Clear();  // of an option that does not say what it is
        if (lasts && again == key && !store(memory, key, arguments, prepared)) Py_CLEAR(result);
    }
    Py_XDECREF(pair);
    Py_DECREF(arguments);
    return result;
}

PyMethodDef call_method = {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
                           nullptr};

// Finds NumPy's functions, and tries them: an array made with them has to be the one that was asked for.
bool find_numpy() {
    PyObject *capsule = nullptr;
    for (const char *name : {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
        PyErr_Clear();
        PyObject *core = PyImport_ImportModule(name);
        capsule = core ? PyObject_GetAttrString(core, "_ARRAY_API") : nullptr;
        Py_XDECREF(core);
        if (capsule) break;
    }
    void **functions = capsule ? static_cast<void **>(PyCapsule_GetPointer(capsule, nullptr)) : nullptr;
    Py_XDECREF(capsule);
    if (!functions) return false;
    array_type = static_cast<PyTypeObject *>(functions[2]);
    byte_type = reinterpret_cast<PyObject *(*)(int)>(functions[45])(2);
    new_array = reinterpret_cast<NewArray>(functions[94]);
    set_base = reinterpret_cast<SetBase>(functions[282]);
    if (!byte_type) return false;

    Array *made = new_aligned({.target_bytes = 6, .rank = 2, .extents = {2, 3}, .dtype = byte_type});
    if (!made) return false;
    const bool expected = Py_TYPE(made) == array_type && made->rank == 2 && made->extents[1] == 3 &&
                          made->strides[0] == 3 && made->dtype == byte_type && (made->flags & plain) == plain &&
                          reinterpret_cast<uintptr_t>(made->data) % cache_line == 0 && Py_TYPE(made->base) == array_type;
    Py_DECREF(made);
    if (!expected) PyErr_SetString(PyExc_ImportError, "NumPy's arrays are not what this module takes them for");
    return expected;
}

PyObject *remember(PyObject *, PyObject *arguments) {
    if (!byte_type && !find_numpy()) {  // the caller does without
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *prepare, *immutable;
    if (!PyArg_ParseTuple(arguments, "OO!", &prepare, &PyTuple_Type, &immutable)) return nullptr;
    Memory *memory = new Memory{prepare, immutable};
    PyObject *capsule = PyCapsule_New(memory, capsule_name, delete_memory);
    if (!capsule) return nullptr;
    Py_INCREF(prepare);
    Py_INCREF(immutable);
    PyObject *function = PyCFunction_New(&call_method, capsule);
    Py_DECREF(capsule);
    return function;
}

// Returns the environment of a copy: a tenth of the time of os.environ.
PyObject *environment(PyObject *, PyObject *) {
    return Py_BuildValue("(yy)", getenv("TILEWRIGHT_ENGINE"), getenv("TILEWRIGHT_THREADS"));
}

PyMethodDef functions[] = {
    {"environment", environment, METH_NOARGS, nullptr},
    {"remember", remember, METH_VARARGS, nullptr},
    {"plain_reach", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plain_reach)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef_Slot slots[] = {{0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_calls", nullptr, 0, functions, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__calls() { return PyModuleDef_Init(&definition); }
