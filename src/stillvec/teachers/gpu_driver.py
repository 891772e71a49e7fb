"""Starts the driver of a GPU before torch is imported; both take seconds, and neither needs the other."""

import ctypes
import threading


def start_driver() -> None:
    """Make the context of the first GPU, which torch then finds, in a thread; without a GPU nothing happens."""
    threading.Thread(target=_make_context, daemon=True).start()


def _make_context() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
