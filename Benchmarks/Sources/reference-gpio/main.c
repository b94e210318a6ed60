// SPDX-License-Identifier: Apache-2.0

// reference-gpio LABEL OFFSET WINDOW: measures the latency of a button's release in a separate program with libgpiod.
// Prints CLOCK_MONOTONIC in nanoseconds, one line each time the line has gone up and stayed up for WINDOW microseconds.
#define _GNU_SOURCE
#include <gpiod.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BILLION = 1000000000 };

// A change of the line: whether it is up, and when, on CLOCK_MONOTONIC in nanoseconds.
struct edge {
  int is_up;
  int64_t at;
};

static int64_t now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * BILLION + now.tv_nsec;
}

static int failed(const char *call) {
  perror(call);
  return 1;
}

#ifdef GPIOD_LINE_BULK_MAX_LINES  // libgpiod 1

static struct gpiod_line *line;

static int request(const char *label, unsigned int offset) {
  struct gpiod_chip *chip = gpiod_chip_open_by_label(label);
  line = chip ? gpiod_chip_get_line(chip, offset) : NULL;
  return line && gpiod_line_request_both_edges_events_flags(
                     line, "reference", GPIOD_LINE_REQUEST_FLAG_BIAS_PULL_UP) == 0;
}

// Returns 1 with the next edge, 0 if none comes for `patience` nanoseconds, -1 on failure; a negative patience means no
// limit.
static int next_edge(struct edge *edge, int64_t patience) {
  struct timespec timeout = {patience / BILLION, patience % BILLION};
  int count = gpiod_line_event_wait(line, patience < 0 ? NULL : &timeout);
  if (count != 1) return count;
  struct gpiod_line_event event;
  if (gpiod_line_event_read(line, &event) != 0) return -1;
  edge->is_up = event.event_type == GPIOD_LINE_EVENT_RISING_EDGE;
  edge->at = (int64_t)event.ts.tv_sec * BILLION + event.ts.tv_nsec;
  return 1;
}

#else  // libgpiod 2

static struct gpiod_line_request *lines;
static struct gpiod_edge_event_buffer *events;

static struct gpiod_chip *open_by_label(const char *label) {
  for (int number = 0; number < 64; number++) {
    char path[32];
    snprintf(path, sizeof path, "/dev/gpiochip%d", number);
    struct gpiod_chip *chip = gpiod_chip_open(path);
    if (!chip) continue;
    struct gpiod_chip_info *info = gpiod_chip_get_info(chip);
    int is_it = info && strcmp(gpiod_chip_info_get_label(info), label) == 0;
    gpiod_chip_info_free(info);
    if (is_it) return chip;
    gpiod_chip_close(chip);
  }
  return NULL;
}

static int request(const char *label, unsigned int offset) {
  struct gpiod_chip *chip = open_by_label(label);
  struct gpiod_line_settings *settings = gpiod_line_settings_new();
  struct gpiod_line_config *config = gpiod_line_config_new();
  events = gpiod_edge_event_buffer_new(1);
  if (!chip || !settings || !config || !events) return 0;
  gpiod_line_settings_set_edge_detection(settings, GPIOD_LINE_EDGE_BOTH);
  gpiod_line_settings_set_bias(settings, GPIOD_LINE_BIAS_PULL_UP);
  gpiod_line_config_add_line_settings(config, &offset, 1, settings);
  lines = gpiod_chip_request_lines(chip, NULL, config);
  return lines != NULL;
}

// Returns 1 with the next edge, 0 if none comes for `patience` nanoseconds, -1 on failure; a negative patience means no
// limit.
static int next_edge(struct edge *edge, int64_t patience) {
  int count = gpiod_line_request_wait_edge_events(lines, patience < 0 ? -1 : patience);
  if (count != 1) return count;
  if (gpiod_line_request_read_edge_events(lines, events, 1) != 1) return -1;
  struct gpiod_edge_event *event = gpiod_edge_event_buffer_get_event(events, 0);
  edge->is_up = gpiod_edge_event_get_event_type(event) == GPIOD_EDGE_EVENT_RISING_EDGE;
  edge->at = (int64_t)gpiod_edge_event_get_timestamp_ns(event);
  return 1;
}

#endif

int main(int count, char **arguments) {
  if (count != 4) return 64;
  int64_t window = atoll(arguments[3]) * 1000;
  if (!request(arguments[1], (unsigned int)atoi(arguments[2]))) return failed("request");
  puts("ready");
  fflush(stdout);
  struct edge edge;
  while (next_edge(&edge, -1) == 1) {
    // An edge within the window starts the window again.
    for (int more = window > 0; more == 1;) {
      int64_t left = edge.at + window - now();
      more = left > 0 ? next_edge(&edge, left) : 0;
      if (more < 0) return failed("event");
    }
    if (!edge.is_up) continue;
    printf("%lld\n", (long long)now());
    fflush(stdout);
  }
  return failed("event");
}
