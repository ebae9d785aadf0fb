"""The engine of all canisters, here and in the process that compiles large modules."""

from functools import cache

import wasmtime


@cache
def engine(*, parallel: bool = False) -> wasmtime.Engine:
    """Return the engine of all canisters.

    It is configured so that every execution is deterministic: the same NaNs, no threads, and fuel
    instead of time limits. References to objects on a heap, and references with the type of their
    function, are switched off: they could not be saved, and such a heap has no limit. With
    `parallel`, it compiles with all processors, which takes longer for small modules.
    """
    config = wasmtime.Config()
    # If another library has taken the signal, a trap would end the process.
    config.signals_based_traps = False
    config.consume_fuel = True
    config.parallel_compilation = parallel
    config.cranelift_nan_canonicalization = True
    config.wasm_memory64 = True
    config.wasm_threads = False
    config.wasm_relaxed_simd = False
    config.wasm_multi_memory = False
    config.wasm_exceptions = False
    config.wasm_function_references = False
    config.wasm_gc = False
    config.wasm_stack_switching = False
    config.wasm_custom_page_sizes = False
    config.wasm_wide_arithmetic = False
    return wasmtime.Engine(config)
