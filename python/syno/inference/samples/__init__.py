"""Whether the samples of a batch meet in a network: where they lie in the tensors of its graph.

A network library computes each sample by itself. That is what the network does if no operation of
its graph, traced for a batch of any size, combines elements of two samples, and none computes with
the size of the batch. Both are shown here operation by operation; what is not known is refused.
"""
