// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that sets back only the wall clock: by SECONDS_BACK, or as the environment says. libfaketime
// also changes the timers that a program sleeps with, which a wrong wall clock does not do.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef SECONDS_BACK
static long seconds_back(void) {
  const char *back = getenv("WALL_CLOCK_SECONDS_BACK");
  return back ? strtol(back, NULL, 10) : 0;
}
#define SECONDS_BACK seconds_back()
#endif

int clock_gettime(clockid_t clock, struct timespec *now) {
  long code = syscall(SYS_clock_gettime, clock, now);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= SECONDS_BACK;
  return (int)code;
}

time_t time(time_t *copy) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (copy) *copy = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec fine;
  int code = clock_gettime(CLOCK_REALTIME, &fine);
  *now = (struct timeval){fine.tv_sec, fine.tv_nsec / 1000};
  return code;
}
