"""A network as one C++ library with a C interface and a file of weights."""
