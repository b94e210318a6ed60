// SPDX-License-Identifier: Apache-2.0
// Makes storage slow for one program: preloaded, it delays each wait for storage and counts the waits. Used by the
// benchmarks only.
//   BENCH_SYNC_MICROSECONDS  the delay of each fdatasync and fsync
//   BENCH_SYNC_COUNTER       an existing file of at least 16 bytes, which receives the number of waits that have
//                            begun, and of those that have ended (64 bits each)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t *counters;
static struct timespec delay;

__attribute__((constructor)) static void prepare(void) {
  const char *file = getenv("BENCH_SYNC_COUNTER"), *microseconds = getenv("BENCH_SYNC_MICROSECONDS");
  if (microseconds) {
    long value = atol(microseconds);
    delay = (struct timespec){value / 1000000, value % 1000000 * 1000};
  }
  int descriptor = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) return;
  void *memory = mmap(NULL, 2 * sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory != MAP_FAILED) counters = memory;
}

static int slowly(const char *name, int descriptor) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (counters) atomic_fetch_add(&counters[0], 1);
  if (delay.tv_sec || delay.tv_nsec) nanosleep(&delay, NULL);
  int result = real(descriptor);
  if (counters) atomic_fetch_add(&counters[1], 1);
  return result;
}

int fdatasync(int descriptor) { return slowly("fdatasync", descriptor); }

int fsync(int descriptor) { return slowly("fsync", descriptor); }
