// SPDX-License-Identifier: Apache-2.0
#pragma once
// One interface for libgpiod 1.6 and 2.x, which have only gpiod_chip_open in common. Errors are NULL or -1 with errno.
#include <errno.h>
#include <fcntl.h>
#include <gpiod.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

/// GPIO_MAX_NAME_SIZE of linux/gpio.h, including the final zero.
#define APPROVAL_GPIO_NAME_SIZE 32

struct approval_gpio_line_info {
  char name[APPROVAL_GPIO_NAME_SIZE];
  char consumer[APPROVAL_GPIO_NAME_SIZE];
  bool is_used;
  bool is_output;
};

struct approval_gpio_edge {
  uint64_t nanoseconds;  // CLOCK_MONOTONIC
  bool is_active;
  unsigned long sequence;  // of this line, from 1; 0 if the library does not count
};

enum approval_gpio_bias {
  approval_gpio_bias_as_is,
  approval_gpio_bias_disabled,
  approval_gpio_bias_pull_up,
  approval_gpio_bias_pull_down
};

static inline void approval_gpio_copy_name(char *target, const char *name) {
  strncpy(target, name ? name : "", APPROVAL_GPIO_NAME_SIZE - 1);
  target[APPROVAL_GPIO_NAME_SIZE - 1] = 0;
}

#ifdef GPIOD_LINE_BULK_MAX_LINES  // 1.x

typedef struct gpiod_line approval_gpio_line;

static inline int approval_gpio_describe_chip(struct gpiod_chip *chip, char *label) {
  approval_gpio_copy_name(label, gpiod_chip_label(chip));
  return (int)gpiod_chip_num_lines(chip);
}

static inline int approval_gpio_describe_line(struct gpiod_chip *chip, unsigned int offset,
                                              struct approval_gpio_line_info *info) {
  struct gpiod_line *line = gpiod_chip_get_line(chip, offset);
  if (!line) return -1;
  approval_gpio_copy_name(info->name, gpiod_line_name(line));
  approval_gpio_copy_name(info->consumer, gpiod_line_consumer(line));
  info->is_used = gpiod_line_is_used(line);
  info->is_output = gpiod_line_direction(line) == GPIOD_LINE_DIRECTION_OUTPUT;
  return 0;
}

static inline approval_gpio_line *approval_gpio_request_input(struct gpiod_chip *chip, unsigned int offset,
                                                              const char *consumer, bool is_active_low,
                                                              enum approval_gpio_bias bias) {
  static const int bias_flags[] = {0, GPIOD_LINE_REQUEST_FLAG_BIAS_DISABLE, GPIOD_LINE_REQUEST_FLAG_BIAS_PULL_UP,
                                   GPIOD_LINE_REQUEST_FLAG_BIAS_PULL_DOWN};
  int flags = bias_flags[bias] | (is_active_low ? GPIOD_LINE_REQUEST_FLAG_ACTIVE_LOW : 0);
  struct gpiod_line *line = gpiod_chip_get_line(chip, offset);
  return line && gpiod_line_request_both_edges_events_flags(line, consumer, flags) == 0 ? line : NULL;
}

static inline approval_gpio_line *approval_gpio_request_output(struct gpiod_chip *chip, unsigned int offset,
                                                               const char *consumer, bool is_active_low, bool is_on) {
  int flags = is_active_low ? GPIOD_LINE_REQUEST_FLAG_ACTIVE_LOW : 0;
  struct gpiod_line *line = gpiod_chip_get_line(chip, offset);
  return line && gpiod_line_request_output_flags(line, consumer, flags, is_on) == 0 ? line : NULL;
}

static inline void approval_gpio_release(approval_gpio_line *line) { gpiod_line_release(line); }

static inline int approval_gpio_event_descriptor(approval_gpio_line *line) { return gpiod_line_event_get_fd(line); }

static inline int approval_gpio_value(approval_gpio_line *line, unsigned int offset) {
  (void)offset;
  return gpiod_line_get_value(line);
}

static inline int approval_gpio_set_value(approval_gpio_line *line, unsigned int offset, bool is_on) {
  (void)offset;
  return gpiod_line_set_value(line, is_on);
}

static inline int approval_gpio_read_edge(approval_gpio_line *line, struct approval_gpio_edge *edge) {
  struct gpiod_line_event event;
  if (gpiod_line_event_read(line, &event) != 0) return -1;
  edge->nanoseconds = (uint64_t)event.ts.tv_sec * 1000000000u + (uint64_t)event.ts.tv_nsec;
  edge->is_active = event.event_type == GPIOD_LINE_EVENT_RISING_EDGE;
  edge->sequence = 0;
  return 0;
}

#else  // 2.x

typedef struct gpiod_line_request approval_gpio_line;

static inline int approval_gpio_describe_chip(struct gpiod_chip *chip, char *label) {
  struct gpiod_chip_info *info = gpiod_chip_get_info(chip);
  if (!info) return -1;
  approval_gpio_copy_name(label, gpiod_chip_info_get_label(info));
  int lines = (int)gpiod_chip_info_get_num_lines(info);
  gpiod_chip_info_free(info);
  return lines;
}

static inline int approval_gpio_describe_line(struct gpiod_chip *chip, unsigned int offset,
                                              struct approval_gpio_line_info *info) {
  struct gpiod_line_info *line = gpiod_chip_get_line_info(chip, offset);
  if (!line) return -1;
  approval_gpio_copy_name(info->name, gpiod_line_info_get_name(line));
  approval_gpio_copy_name(info->consumer, gpiod_line_info_get_consumer(line));
  info->is_used = gpiod_line_info_is_used(line);
  info->is_output = gpiod_line_info_get_direction(line) == GPIOD_LINE_DIRECTION_OUTPUT;
  gpiod_line_info_free(line);
  return 0;
}

/// Takes ownership of `settings`, which may be NULL.
static inline approval_gpio_line *approval_gpio_request(struct gpiod_chip *chip, unsigned int offset,
                                                        const char *consumer, struct gpiod_line_settings *settings) {
  struct gpiod_line_config *lines = gpiod_line_config_new();
  struct gpiod_request_config *config = gpiod_request_config_new();
  approval_gpio_line *request = NULL;
  if (settings && lines && config && gpiod_line_config_add_line_settings(lines, &offset, 1, settings) == 0) {
    gpiod_request_config_set_consumer(config, consumer);
    request = gpiod_chip_request_lines(chip, config, lines);
  }
  int error = errno;
  gpiod_request_config_free(config);
  gpiod_line_config_free(lines);
  gpiod_line_settings_free(settings);
  errno = error;
  return request;
}

static inline approval_gpio_line *approval_gpio_request_input(struct gpiod_chip *chip, unsigned int offset,
                                                              const char *consumer, bool is_active_low,
                                                              enum approval_gpio_bias bias) {
  static const enum gpiod_line_bias biases[] = {GPIOD_LINE_BIAS_AS_IS, GPIOD_LINE_BIAS_DISABLED,
                                                GPIOD_LINE_BIAS_PULL_UP, GPIOD_LINE_BIAS_PULL_DOWN};
  struct gpiod_line_settings *settings = gpiod_line_settings_new();
  if (settings) {
    gpiod_line_settings_set_direction(settings, GPIOD_LINE_DIRECTION_INPUT);
    gpiod_line_settings_set_edge_detection(settings, GPIOD_LINE_EDGE_BOTH);
    gpiod_line_settings_set_event_clock(settings, GPIOD_LINE_CLOCK_MONOTONIC);
    gpiod_line_settings_set_bias(settings, biases[bias]);
    gpiod_line_settings_set_active_low(settings, is_active_low);
  }
  return approval_gpio_request(chip, offset, consumer, settings);
}

static inline approval_gpio_line *approval_gpio_request_output(struct gpiod_chip *chip, unsigned int offset,
                                                               const char *consumer, bool is_active_low, bool is_on) {
  struct gpiod_line_settings *settings = gpiod_line_settings_new();
  if (settings) {
    gpiod_line_settings_set_direction(settings, GPIOD_LINE_DIRECTION_OUTPUT);
    gpiod_line_settings_set_active_low(settings, is_active_low);
    gpiod_line_settings_set_output_value(settings, is_on ? GPIOD_LINE_VALUE_ACTIVE : GPIOD_LINE_VALUE_INACTIVE);
  }
  return approval_gpio_request(chip, offset, consumer, settings);
}

static inline void approval_gpio_release(approval_gpio_line *line) { gpiod_line_request_release(line); }

static inline int approval_gpio_event_descriptor(approval_gpio_line *line) { return gpiod_line_request_get_fd(line); }

static inline int approval_gpio_value(approval_gpio_line *line, unsigned int offset) {
  return gpiod_line_request_get_value(line, offset);
}

static inline int approval_gpio_set_value(approval_gpio_line *line, unsigned int offset, bool is_on) {
  return gpiod_line_request_set_value(line, offset, is_on ? GPIOD_LINE_VALUE_ACTIVE : GPIOD_LINE_VALUE_INACTIVE);
}

static inline int approval_gpio_read_edge(approval_gpio_line *line, struct approval_gpio_edge *edge) {
  struct gpiod_edge_event_buffer *buffer = gpiod_edge_event_buffer_new(1);
  if (!buffer) return -1;
  int count = gpiod_line_request_read_edge_events(line, buffer, 1);
  if (count == 1) {
    struct gpiod_edge_event *event = gpiod_edge_event_buffer_get_event(buffer, 0);
    edge->nanoseconds = gpiod_edge_event_get_timestamp_ns(event);
    edge->is_active = gpiod_edge_event_get_event_type(event) == GPIOD_EDGE_EVENT_RISING_EDGE;
    edge->sequence = gpiod_edge_event_get_line_seqno(event);
  }
  int error = errno;
  gpiod_edge_event_buffer_free(buffer);
  errno = error;
  return count == 1 ? 0 : -1;
}

#endif

// Wrappers for what glibc declares as variadic or as macros, which Swift cannot call.

static inline int approval_gpio_set_nonblocking(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}
// glibc declares it only for _GNU_SOURCE, which would give this module another fd_set than the module Glibc.
int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
/// poll(2) has a resolution of milliseconds; a debounce window needs a finer one.
static inline int approval_gpio_poll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout) {
  return ppoll(descriptors, count, timeout, NULL);
}
static inline int approval_gpio_new_wake_up(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
/// Readable when a device node is created, removed, or changes its owner; -1 if inotify is not available.
static inline int approval_gpio_watch_device_nodes(void) {
  int descriptor = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (descriptor < 0) return -1;
  if (inotify_add_watch(descriptor, "/dev", IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR) >= 0) return descriptor;
  close(descriptor);
  return -1;
}
