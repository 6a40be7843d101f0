# SPDX-License-Identifier: MIT
"""Compares python/opc/_library.py with the headers: members, offsets and sizes of every struct, enums, and the
arguments of every function. Arguments: the C compiler, a folder to work in, folders of headers."""
import ctypes
import os
import re
import subprocess
import sys

from opc import _library as mirror

compiler, work, *folders = sys.argv[1:]


def members(struct):
    return [name for name, _ in struct._fields_]


def initializer(kind):
    """What a member of this kind is initialised with."""
    return "{0}" if issubclass(kind, ctypes.Array) else "0"


def program():
    """C that prints sizes and offsets. It only compiles if each struct has as many members as its mirror
    (-Wextra finds fewer, the language more), and enums have these values."""
    lines = ["#include <opc/opc.h>", "#include <stdio.h>", "#define SIZE(s, m) sizeof(((struct s *)0)->m)"]
    for name, struct in mirror.STRUCTS.items():
        values = ", ".join(initializer(kind) for _, kind in struct._fields_)
        lines.append(f"extern const struct {name} all_of_{name}; const struct {name} all_of_{name} = {{{values}}};")
    equal = {f"OPC_{code.name}": code.value for code in mirror.Code}
    equal.update({f"OPC_PHASE_{name.upper()}": i for i, name in enumerate(mirror.PHASES)})
    equal.update({f"OPC_END_{name.upper()}": i for i, name in enumerate(mirror.ENDS)})
    equal.update(OPC_PHASES=len(mirror.PHASES), OPC_ENDS=len(mirror.ENDS), OPC_MEMBERS=mirror.MEMBERS,
                 OPC_USE_RESET=mirror.USE_RESET, OPC_USE_EXPLORE=mirror.USE_EXPLORE)
    lines += [f'_Static_assert((int){name} == {value}, "{name}");' for name, value in equal.items()]
    lines.append("int main(void) {")
    for name, struct in mirror.STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        lines += [f'printf("{name}.{m} %zu %zu\\n", offsetof(struct {name}, {m}), SIZE({name}, {m}));'
                  for m in members(struct)]
    return "\n".join(lines + ["return 0; }\n"])


def compiled(quiet=False):
    source, binary = os.path.join(work, "mirror.c"), os.path.join(work, "mirror")
    with open(source, "w") as file:
        file.write(program())
    subprocess.run([compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", *("-I" + f for f in folders), "-o", binary,
                    source], check=True, stderr=subprocess.DEVNULL if quiet else None)
    return subprocess.run([binary], check=True, stdout=subprocess.PIPE, text=True).stdout


def ours():
    """What the C program should have printed."""
    for name, struct in mirror.STRUCTS.items():
        yield f"{name} {ctypes.sizeof(struct)}"
        for m in members(struct):
            yield f"{name}.{m} {getattr(struct, m).offset} {getattr(struct, m).size}"


# ---- functions -----------------------------------------------------------------------------------

SCALARS = {"int": ctypes.c_int, "bool": ctypes.c_bool, "double": ctypes.c_double, "float": ctypes.c_float,
           "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "void": None}
FUNCTION_TYPES = {"opc_log_fn": mirror.LOG_FN}


def allowed(text):
    """The ctypes that stand for an argument or a result of this C type; `text` may have the argument's name."""
    words = re.findall(r"\w+|\*", text)
    stars = words.count("*")
    words = [word for word in words if word not in ("const", "*")]
    if words[0] == "enum":
        return [ctypes.c_int]
    name = words[1] if words[0] == "struct" else words[0]
    if stars == 0:
        return [mirror.STRUCTS[name] if words[0] == "struct" else SCALARS[name]]
    if name in FUNCTION_TYPES:
        return [FUNCTION_TYPES[name]]
    if stars == 2:
        return [mirror.OUT]
    if words[0] == "struct":  # a struct of ours, or an object of the library
        return [ctypes.POINTER(mirror.STRUCTS[name])] if name in POINTED else [ctypes.c_void_p]
    if name == "char":
        return [ctypes.c_char_p]
    return [ctypes.c_void_p] if name == "void" else [ctypes.POINTER(SCALARS[name])]


# Mirrored structs that Python allocates; opc_env and opc_predictor are objects of the library.
POINTED = set(mirror.STRUCTS) - {"opc_env", "opc_predictor"}


def declarations():
    """Name: (result, arguments) of every exported function, as text."""
    text = ""
    for folder in folders:
        folder = os.path.join(folder, "opc")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as file:
                text += re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    found = re.findall(r"OPC_API\s+([\w\s*]+?)(\w+)\(([^()]*)\)", text)
    return {name: (result, [] if arguments.strip() == "void" else arguments.split(","))
            for result, name, arguments in found}


def compare_functions():
    known = declarations()
    for name, (result, arguments) in mirror.FUNCTIONS.items():
        want_result, want = known[name]
        assert result in allowed(want_result), f"{name} returns {want_result}, not {result}"
        assert len(arguments) == len(want), f"{name} has {len(want)} arguments, not {len(arguments)}"
        for ours_, theirs in zip(arguments, want):
            assert ours_ in allowed(theirs), f"{name}: {theirs.strip()} is not {ours_}"


def main():
    got, want = compiled().splitlines(), list(ours())
    for a, b in zip(got, want):
        assert a == b, f"the header says {a}, the mirror {b}"
    assert len(got) == len(want)
    compare_functions()
    # The check checked: a mirror with a member less, and one with another size, are found.
    for wrong in (mirror.TrainPlan._fields_[:-1],
                  [("size", ctypes.c_int)] + mirror.TrainPlan._fields_[1:]):
        mirror.STRUCTS["opc_train_plan"] = type("Wrong", (ctypes.Structure,), {"_fields_": list(wrong)})
        try:
            found = compiled(quiet=True).splitlines() != list(ours())
        except subprocess.CalledProcessError:
            found = True
        assert found, wrong
    print(f"{len(mirror.STRUCTS)} structs and {len(mirror.FUNCTIONS)} functions are as in the headers")


main()
