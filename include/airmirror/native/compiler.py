"""``python -m airmirror.native.compiler``: the inner loops as an object file for this machine, written to standard output.

numba makes LLVM's representation of each loop, with a wrapper of C's calling convention; LLVM puts them together, leaves out
what raises Python's errors (no loop does), and makes the code. The file needs nothing of numba or Python where it is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

import llvmlite.binding as llvm
from numba import cfunc, types

from airmirror.native import loops, scanning
from airmirror.native.code import ARGUMENTS, target_machine

_pointer: Any = types.CPointer
TYPES = {"b": _pointer(types.uint8), "n": types.int64, "N": _pointer(types.int64)}
_OF_C = frozenset({"memcpy", "memmove", "memset", "memcmp", "bcmp"})  # LLVM may write such loops as calls of these


def compile_loops() -> bytes:
    """The object file. Raises RuntimeError where a loop would call into Python."""
    machine = target_machine()
    module = llvm.parse_assembly("")
    for name, arguments in ARGUMENTS.items():
        loop = getattr(loops, name, None) or getattr(scanning, name)
        callback = cfunc(types.int64(*(TYPES[kind] for kind in arguments)), error_model="numpy")(loop)
        part = llvm.parse_assembly(callback.inspect_llvm())
        for value in (*part.functions, *part.global_variables):
            if not value.is_declaration:
                value.linkage = "internal"
        wrapper = part.get_function(callback.native_name)
        wrapper.linkage, wrapper.name = "external", name
        module.link_in(part)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    module.verify()
    foreign = {each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm.")}
    if foreign - _OF_C:
        raise RuntimeError(f"the loops call {', '.join(sorted(foreign - _OF_C))}")
    return bytes(machine.emit_object(module))


if __name__ == "__main__":
    sys.stdout.buffer.write(compile_loops())
