// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

// plain_reach(shape, stride) of tilewright/layout/axes.py.
PyObject *plain_reach(PyObject *module, PyObject *const *given, Py_ssize_t count);
