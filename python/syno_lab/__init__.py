"""The laboratory of Syno: experiments, benchmarks of search methods, and the paper's figures.

What a network needs is in `syno`, which uses nothing of this package.
"""
