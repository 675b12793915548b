/* The wall clock of a process that loads this before its libraries: as far off as the file AIRMIRROR_CLOCK says, in seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile const double *off;
static int (*real)(clockid_t, struct timespec *);

static void __attribute__((constructor)) begin(void) {
  int file = open(getenv("AIRMIRROR_CLOCK"), O_RDONLY);
  void *mapped = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
  real = dlsym(RTLD_NEXT, "clock_gettime");
  if (mapped != MAP_FAILED) off = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
  if (real == NULL) real = dlsym(RTLD_NEXT, "clock_gettime");
  int answer = real(clock, found);
  if (answer == 0 && clock == CLOCK_REALTIME && off != NULL) found->tv_sec += (time_t)*off;
  return answer;
}
