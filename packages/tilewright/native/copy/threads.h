// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw {

// Returns how many threads a job of this many bytes is worth, given how many were asked for (<= 0: all cores).
int worth_threads(int asked, double bytes);

// Calls work(context, i) for i in [0, count), each on a thread of its own, and waits for all of them.
// Threads live for one call only: a pool would be global state, and would not survive a fork.
void on_threads(int count, void (*work)(void *context, int index), void *context);

}  // namespace tw
