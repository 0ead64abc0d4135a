# SPDX-License-Identifier: Apache-2.0
"""The library's log messages, such as repeated attempts: to Python's `logging`, as "tilewright".

Nothing is printed unless a program asks for it, as the command line does.
"""

import logging

logging.getLogger("tilewright").addHandler(logging.NullHandler())


def log_of(module: str) -> logging.Logger:
    """Return the logger of a `module`, given its `__name__`.

    >>> log_of("tilewright.files.remote_file").parent.name
    'tilewright'
    """
    return logging.getLogger(module)
