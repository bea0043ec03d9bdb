"""Workers of a search: processes of this machine, or actors on a Ray cluster.

Nothing here imports PyTorch: these modules run in processes that only watch workers.
"""
