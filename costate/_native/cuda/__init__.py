"""The engine on NVIDIA GPUs: kernels compiled at first use for one model, one thread per world."""
