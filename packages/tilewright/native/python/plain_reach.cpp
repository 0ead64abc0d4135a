// SPDX-License-Identifier: Apache-2.0
#include "python/calls.h"

namespace {

constexpr int most_depth = 64;  // MAX_DEPTH of tilewright/layout/tuples.py

// Adds the distances between the offsets of two trees; false where these are not plain, or the sum has over 63 bits.
bool add_reach(PyObject *shape, PyObject *stride, int depth, long long &reach) {
    if (PyLong_CheckExact(shape) && PyLong_CheckExact(stride)) {
        int too_large, too_far;
        const long long extent = PyLong_AsLongLongAndOverflow(shape, &too_large);
        const long long step = PyLong_AsLongLongAndOverflow(stride, &too_far);
        long long distance;
        return !too_large && !too_far && extent > 0 && !__builtin_mul_overflow(extent - 1, step, &distance) &&
               !(distance < 0 && __builtin_sub_overflow(0, distance, &distance)) &&
               !__builtin_add_overflow(reach, distance, &reach);
    }
    if (!PyTuple_CheckExact(shape) || !PyTuple_CheckExact(stride) || depth == most_depth) return false;
    const Py_ssize_t size = PyTuple_Size(shape);
    if (PyTuple_Size(stride) != size) return false;
    for (Py_ssize_t k = 0; k < size; ++k)
        if (!add_reach(PyTuple_GetItem(shape, k), PyTuple_GetItem(stride, k), depth + 1, reach)) return false;
    return true;
}

}  // namespace

PyObject *plain_reach(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "plain_reach takes 2 arguments, got %zd", count);
    long long reach = 0;
    return PyLong_FromLongLong(add_reach(given[0], given[1], 0, reach) ? reach : -1);
}
