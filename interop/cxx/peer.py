"""A C++ Transfer Engine driven over stdin and stdout; package cxx runs it.

One JSON object a line. Request: {"id": 1, "call": "transfer", "args": {...}}; answer: {"id": 1, "value": ...} or
{"id": 1, "error": "..."} when Python raised. Requests run side by side and are answered as they finish. The end of stdin
ends the process at once, whatever a call inside the engine is waiting for.
"""

import concurrent.futures
import ctypes
import hashlib
import json
import mmap
import os
import resource
import sys
import threading
import traceback

# The engine's library and Python print where they like, so that stdout proper is kept for answers alone.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from mooncake.engine import TransferEngine, TransferNotify, TransferOpcode  # noqa: E402

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an expected result, and leaves no file

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PROT_NONE = 0

engine = TransferEngine()
opcodes = {"read": TransferOpcode.Read, "write": TransferOpcode.Write}


def initialize(host, metadata):
    code = engine.initialize(host, metadata, "tcp", "")
    return {"code": code, "port": engine.get_rpc_port() if code == 0 else 0}


def map_memory(size):
    """Zeroed pages between two pages that nothing may touch: an access beyond them is a fault, not silent damage."""
    page = mmap.PAGESIZE
    inner = -(-size // page) * page
    start = libc.mmap(None, inner + 2 * page, PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if start in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    if libc.mprotect(start + page, inner, mmap.PROT_READ | mmap.PROT_WRITE) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    return start + page


def view(addr, length):
    return memoryview((ctypes.c_char * length).from_address(addr)).cast("B")


def write_memory(addr, text):
    data = bytes.fromhex(text)
    view(addr, len(data))[:] = data


def load_file(addr, path, limit):
    with open(path, "rb") as f:
        data = f.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"{path} is longer than {limit} bytes")
    view(addr, len(data))[:] = data
    return len(data)


def fill(addr, length, seed):
    """The same bytes as Go package pattern."""
    view(addr, length)[:] = hashlib.shake_128(seed.to_bytes(8, "little")).digest(length)


def zero(addr, length):
    ctypes.memset(addr, 0, length)


def notify_of(name_and_text):
    return TransferNotify(*name_and_text) if name_and_text else None


def transfer(op, target, local, remote, length, notify):
    return engine.transfer_sync(target, local, remote, length, opcodes[op], notify_of(notify))


def batch(op, target, local_addrs, remote_addrs, lengths, notify):
    return engine.batch_transfer_sync(target, local_addrs, remote_addrs, lengths, opcodes[op], notify_of(notify))


def submit_batch(op, target, local_addrs, remote_addrs, lengths):
    return engine.batch_transfer_async(target, local_addrs, remote_addrs, lengths, opcodes[op])


def wait_batches(ids):
    if 0 in ids:
        raise ValueError("0 names no batch, and the engine would crash on it")
    return engine.get_batch_transfer_status(ids)


def parallel(batches, rounds):
    """Every batch in a thread of its own, rounds times over, all starting together; the first bad code of each."""
    start = threading.Barrier(len(batches))

    def submitter(b):
        start.wait()
        for _ in range(rounds):
            code = batch(**b)
            if code != 0:
                return code
        return 0

    with concurrent.futures.ThreadPoolExecutor(len(batches)) as threads:
        return list(threads.map(submitter, batches))


calls = {
    "initialize": initialize,
    "map": map_memory,
    "register": engine.register_memory,
    "register_batch": engine.batch_register_memory,
    "unregister": engine.unregister_memory,
    "write_memory": write_memory,
    "read_memory": lambda addr, length: view(addr, length).hex(),
    "load_file": load_file,
    "fill": fill,
    "zero": zero,
    "checksum": lambda addr, length: hashlib.sha256(view(addr, length)).hexdigest(),
    "transfer": transfer,
    "batch": batch,
    "submit_batch": submit_batch,
    "wait_batches": wait_batches,
    "parallel": parallel,
    "notifies": lambda: [[n.name, n.msg] for n in engine.get_notifies()],
    "probe": engine.send_probe,
    "first_buffer": engine.get_first_buffer_address,
}

answering = threading.Lock()


def serve(request):
    answer = {"id": request["id"]}
    try:
        args = request["args"]
        call = calls[request["call"]]
        answer["value"] = call(**args) if isinstance(args, dict) else call(*args)
    except Exception as e:
        traceback.print_exc()
        answer["error"] = f"{type(e).__name__}: {e}"
    with answering:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main():
    workers = concurrent.futures.ThreadPoolExecutor(32)
    for line in sys.stdin:
        workers.submit(serve, json.loads(line))
    os._exit(0)


main()
