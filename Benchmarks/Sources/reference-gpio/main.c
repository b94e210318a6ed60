// reference-gpio LABEL OFFSET: what a program of its own takes to hear a button's release through libgpiod. Prints
// CLOCK_MONOTONIC in nanoseconds, a line each time the line goes up, the moment it has read the edge.
#include <gpiod.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
  fflush(stdout);
}

static int failed(const char *call) {
  perror(call);
  return 1;
}

#ifdef GPIOD_LINE_BULK_MAX_LINES  // libgpiod 1

int main(int count, char **arguments) {
  if (count != 3) return 64;
  struct gpiod_chip *chip = gpiod_chip_open_by_label(arguments[1]);
  if (!chip) return failed(arguments[1]);
  struct gpiod_line *line = gpiod_chip_get_line(chip, (unsigned int)atoi(arguments[2]));
  if (!line ||
      gpiod_line_request_both_edges_events_flags(line, "reference", GPIOD_LINE_REQUEST_FLAG_BIAS_PULL_UP) != 0) {
    return failed("request");
  }
  puts("ready");
  fflush(stdout);
  struct gpiod_line_event event;
  while (gpiod_line_event_wait(line, NULL) == 1 && gpiod_line_event_read(line, &event) == 0) {
    if (event.event_type == GPIOD_LINE_EVENT_RISING_EDGE) print_now();
  }
  return failed("event");
}

#else  // libgpiod 2

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

int main(int count, char **arguments) {
  if (count != 3) return 64;
  struct gpiod_chip *chip = open_by_label(arguments[1]);
  if (!chip) return failed(arguments[1]);
  unsigned int offset = (unsigned int)atoi(arguments[2]);
  struct gpiod_line_settings *settings = gpiod_line_settings_new();
  struct gpiod_line_config *lines = gpiod_line_config_new();
  struct gpiod_edge_event_buffer *events = gpiod_edge_event_buffer_new(16);
  if (!settings || !lines || !events) return failed("memory");
  gpiod_line_settings_set_edge_detection(settings, GPIOD_LINE_EDGE_BOTH);
  gpiod_line_settings_set_bias(settings, GPIOD_LINE_BIAS_PULL_UP);
  gpiod_line_config_add_line_settings(lines, &offset, 1, settings);
  struct gpiod_line_request *request = gpiod_chip_request_lines(chip, NULL, lines);
  if (!request) return failed("request");
  puts("ready");
  fflush(stdout);
  while (gpiod_line_request_wait_edge_events(request, -1) == 1) {
    int read = gpiod_line_request_read_edge_events(request, events, 16);
    for (int index = 0; index < read; index++) {
      struct gpiod_edge_event *event = gpiod_edge_event_buffer_get_event(events, (unsigned long)index);
      if (gpiod_edge_event_get_event_type(event) == GPIOD_EDGE_EVENT_RISING_EDGE) print_now();
    }
  }
  return failed("event");
}

#endif
