"""A network as a folder to hand over: libraries for several processors, a loader, an example."""
