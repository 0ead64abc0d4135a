# SPDX-License-Identifier: Apache-2.0
"""The second wall around a stranger's program: the process gives up rights that a program never needs.

The Mojo front end lets a program reach nothing of Python. If it has a hole, the process behind it still cannot read the
user's files, write any, start another process or use the network: Linux takes these away for good (resource limits,
Landlock, a seccomp filter). `raise_fence` returns the rights it could not take away, for the page to show.
`tilewright run` stands behind the same wall, without the limits.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

MAX_MEMORY = 2 << 30  # bytes
MAX_FILES = 64  # open at a time: modules that are still to be imported
SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
PACKAGES = ("tilewright", "tilewright_mojo", "numpy", "ml_dtypes")
_NO_NEW_PRIVILEGES, _SECCOMP = 38, 22  # of prctl
_READ = 1 << 2 | 1 << 3  # files and folders, in Landlock's terms
_THREAD = 0x10000  # a new thread, in clone's terms
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # of the filter, and the column below
# What other processes, files and networks are reached by; -1 where an architecture does not have it.
_DENIED = {
    "accept": (43, 202), "accept4": (288, 242), "add_key": (248, 217), "bind": (49, 200), "bpf": (321, 280),
    "chmod": (90, -1), "chown": (92, -1), "chroot": (161, 51), "connect": (42, 203), "execve": (59, 221),
    "execveat": (322, 281), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "fchown": (93, 55),
    "fchownat": (260, 54), "file_setattr": (469, 469), "fork": (57, -1), "fremovexattr": (199, 16),
    "fsetxattr": (190, 7), "futimesat": (261, -1), "io_uring_setup": (425, 425), "ioprio_set": (251, 30),
    "kcmp": (312, 272), "keyctl": (250, 219), "kill": (62, 129), "lchown": (94, -1), "listen": (50, 201),
    "lremovexattr": (198, 15), "lsetxattr": (189, 6), "memfd_create": (319, 279), "migrate_pages": (256, 238),
    "mount": (165, 40), "move_pages": (279, 239), "mq_open": (240, 180), "mq_unlink": (241, 181), "msgctl": (71, 187),
    "msgget": (68, 186), "msgrcv": (70, 188), "msgsnd": (69, 189), "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pivot_root": (155, 41), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "ptrace": (101, 117), "removexattr": (197, 14), "removexattrat": (466, 466), "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "semctl": (66, 191),
    "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "sendmsg": (46, 211), "sendto": (44, 206),
    "setns": (308, 268), "setpriority": (141, 140), "setxattr": (188, 5), "setxattrat": (463, 463),
    "shmat": (30, 196), "shmctl": (31, 195), "shmget": (29, 194), "socket": (41, 198), "socketpair": (53, 199),
    "tgkill": (234, 131), "tkill": (200, 130), "truncate": (76, 45), "umount2": (166, 39), "unshare": (272, 97),
    "userfaultfd": (323, 282), "utime": (132, -1), "utimensat": (280, 88), "utimes": (235, -1), "vfork": (58, -1),
}  # fmt: skip
_CLONE, _CLONE3, _LIMITS = (56, 220), 435, (302, 261)


def raise_fence(folders: Iterable[str] = (), limited: bool = True) -> list[str]:
    """Give up, for good, the rights of this process that a program does not need; return the remaining ones.

    Files of Python, of the packages that the library needs and of the system's libraries can still be read.

    Args:
        folders: more folders with files that can be read.
        limited: whether memory, the number of open files and the size of files are limited as well.
    """
    packages = [Path(str(sys.modules[name].__file__)).parent for name in PACKAGES if name in sys.modules]
    readable = [*SYSTEM_LIBRARIES, sys.prefix, sys.base_prefix, *map(str, packages), *folders]
    walls: dict[str, Callable[[], bool]] = {
        "the user's files": lambda: _restrict_files(readable),
        "other processes and the network": _filter_calls,
    }
    if limited:
        walls = {"memory, processes and the size of files": _limit_resources, **walls}
    left = []
    for what, build in walls.items():
        try:
            stands = build()
        except (OSError, ValueError, AttributeError, ImportError):  # refused, or a system without it
            stands = False
        if not stands:
            left.append(what)
    return left


def _limit_resources() -> bool:
    import resource  # which Windows and browsers do not have

    limits = {"AS": MAX_MEMORY, "NPROC": 0, "FSIZE": 0, "CORE": 0, "NOFILE": MAX_FILES}
    for name, most in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    return True


def _call(number: int, *arguments: object) -> int:
    """Call the kernel; raise OSError if it refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    result = library.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses")
    return int(result)


def _give_up_privileges() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges cannot be given up")


def _restrict_files(readable: Iterable[str]) -> bool:
    """Let Landlock refuse all files, except that files below `readable` can be read."""
    if sys.platform != "linux":
        return False
    _give_up_privileges()
    version = _call(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    rights = (1 << (13 + (version > 1) + (version > 2) + (version > 4))) - 1
    fields = [rights, *([3] if version > 3 else []), *([3] if version > 5 else [])]  # files; ports; sockets and signals
    rules = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _call(444, rules, ctypes.c_size_t(len(rules)), ctypes.c_uint32(0))
    try:
        for folder in {str(Path(entry).resolve()) for entry in readable if entry}:
            _allow_reading(ruleset, folder)
        _call(446, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return True


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # an entry of sys.path that does not exist
        return
    try:
        rights = _READ if os.path.isdir(path) else 1 << 2
        _call(445, ctypes.c_int(ruleset), ctypes.c_int(1), struct.pack("=Qi", rights, descriptor), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _filter_calls() -> bool:
    """Let a seccomp filter refuse the calls that reach other processes and the network; threads can be started."""
    architecture = _ARCHITECTURES.get(platform.machine())
    if sys.platform != "linux" or architecture is None:
        return False
    _give_up_privileges()
    identity, column = architecture
    load, equal, at_least, has_bits, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, absent = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # allowed; not permitted; not implemented
    denied = [numbers[column] for numbers in _DENIED.values() if numbers[column] >= 0]
    program = [
        (load, 0, 0, 4), (equal, 1, 0, identity), (answer, 0, 0, refuse),  # of another architecture
        (load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (answer, 0, 0, refuse),  # of the x32 interface
        (equal, 0, 1, _CLONE3), (answer, 0, 0, absent),  # its flags cannot be seen; libraries then use clone
        *[entry for number in denied for entry in ((equal, 0, 1, number), (answer, 0, 0, refuse))],
        (equal, 0, 4, _LIMITS[column]), (load, 0, 0, 16), (equal, 0, 1, 0),  # another process's are not its own
        (answer, 0, 0, allow), (answer, 0, 0, refuse),
        (equal, 0, 3, _CLONE[column]), (load, 0, 0, 16), (has_bits, 1, 0, _THREAD), (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *entry) for entry in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    if ctypes.CDLL(None, use_errno=True).prctl(_SECCOMP, 2, ctypes.byref(header), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter is refused")
    return True
