# SPDX-License-Identifier: Apache-2.0
"""What the command's exit status says, for every verb."""

from __future__ import annotations

OK = 0  # done; and where a question was asked, the answer is yes
NO = 1  # done, and the answer is no: files differ, a check failed, tensors do not fit
USAGE = 2  # the request is wrong: an option, a value, a placement that breaks a rule
INPUT = 3  # a file cannot be read: it is missing, damaged, or of no known format
OUTPUT = 4  # a file cannot be written: it exists, the disk is full, permission is missing
MISSING = 5  # something that is not installed is needed
BUG = 70  # tilewright failed in a way nobody foresaw; please report it
INTERRUPTED = 130  # Ctrl-C; what was finished is kept, nothing is half-written
BROKEN_PIPE = 141  # whoever read the output went away

MEANINGS = {
    OK: "done; where a question was asked, the answer is yes",
    NO: "done, and the answer is no: a difference, a failed check, no fit",
    USAGE: "the request is wrong: an option, a value, an illegal placement",
    INPUT: "a file cannot be read: missing, damaged, or of no known format",
    OUTPUT: "a file cannot be written: it exists, disk full, no permission",
    MISSING: "something that is not installed is needed",
    BUG: "a bug of tilewright: please report it, with what --debug prints",
    INTERRUPTED: "interrupted with Ctrl-C; nothing is half-written",
    BROKEN_PIPE: "whoever read the output went away",
}
"""The meaning of every exit status."""
