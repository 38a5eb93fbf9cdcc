"""Runs a program to which the kernel refuses io_uring: without_uring.py PROGRAM [ARGUMENT...]

For programs whose command line cannot choose an I/O engine: they fall back to epoll, as they do on kernels without io_uring.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
IO_URING_SETUP = 425  # The number of the system call, the same on all architectures.
# Of linux/seccomp.h and linux/filter.h.
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def refuse_uring():
    steps = [(LOAD_WORD, 0, 0, 0),  # The number of the system call is the first word of what a filter sees.
             (JUMP_IF_EQUAL, 0, 1, IO_URING_SETUP),
             (RETURN, 0, 0, FAIL | errno.ENOSYS),
             (RETURN, 0, 0, ALLOW)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Program(len(steps), ctypes.cast(text, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*call) != 0:
            sys.exit("prctl: %s" % os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    refuse_uring()
    os.execvp(sys.argv[1], sys.argv[1:])
