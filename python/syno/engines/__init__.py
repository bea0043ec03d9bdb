"""Inference engines: a network as each of them runs it, and their times in one run.

`engine.py` says what an engine is and knows all of them by name; `pytorch.py`, `onnx.py`, `tvm.py`
and `own.py` hold them. `compare.py` measures networks with them in turns.
"""
