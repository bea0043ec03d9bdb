/* The network @FILE@ on zeros. In this folder:

       cc -O2 example.c -o example -L. -l:lib@FILE@.so -Wl,-rpath,'$ORIGIN'
       ./example */
#include "@FILE@.h"

#include <stdio.h>
#include <stdlib.h>

static long elements(const long* shape, int rank) {
  long count = 1;
  for (int i = 0; i < rank; ++i) count *= shape[i];
  return count;
}

int main(int argc, char** argv) {
  struct @NAME@_network* const network = @NAME@_create(argc > 1 ? argv[1] : "@FILE@.bin");
  if (!network) {
    fprintf(stderr, "%s\n", @NAME@_error());
    return 1;
  }
  const long batch = 1;
  const int threads = 1;
@MEMORY@
  if (@NAME@_run(network, @PLACES@, batch, threads) != 0) {
    fprintf(stderr, "%s\n", @NAME@_error());
    return 1;
  }
  printf("computed for %s:", @NAME@_processor());
  for (long i = 0; i < y0_count && i < 10; ++i) printf(" %g", y0[i]);
  printf("\n");
  @NAME@_destroy(network);
@FREE@
  return 0;
}
