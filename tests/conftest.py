"""Shared by all tests: the --slow and --full options, Ctrl-C, and the same random numbers in every run."""

import random
import signal
import threading

import numpy as np
import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")
    parser.addoption("--full", action="store_true", help="also run the tests marked full")


def pytest_configure(config):
    """Ctrl-C interrupts, which tests rely on, also where a shell started them in the background: there it is ignored."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    for mark in ("slow", "full"):
        if config.getoption(f"--{mark}"):
            continue
        skip = pytest.mark.skip(reason=f"{mark}: needs --{mark}")
        for item in items:
            if mark in item.keywords:
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def seed():
    """Seed every generator, so that a test's numbers do not depend on which tests ran before it."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
