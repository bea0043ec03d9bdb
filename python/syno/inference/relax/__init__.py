"""Networks in TVM: graphs of Relax, with operators as the TensorIR that the emitter `tvm` writes.

`program.py` traces a network, `module.py` makes a module of Relax of it, `build.py` compiles that
for a target, and `files.py` writes the result as a library.
"""
