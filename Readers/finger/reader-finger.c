/* SPDX-License-Identifier: Apache-2.0 */
/* reader-finger: one fingerprint reader, for one question of the service, over standard input and output (docs/authenticators.md).
   It keeps nothing, and ends with its answer. libfprint aborts the process on some damaged templates and USB data: that
   ends this process, not the service. */
#include <glib-unix.h>
#include <libfprint-2/fprint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plug_in.h"

/* How often a new finger is verified before it is registered: the images of an enrollment need not be of one finger. */
#define CONFIRMATIONS 2
/* How long the reader waits for a finger, in seconds. libfprint's model of its temperature ends a wait of 180 s, and
   then refuses the reader for 210 s. */
#define PATIENCE 60
/* How long a registration can take in all, in seconds. */
#define LONGEST 110
/* How long a sensor must be seen without a finger before one counts in an authentication, in milliseconds: a driver reports
   a finger that is there already only after it has begun to wait for one. */
#define EMPTY 500
/* The pause after a scan that does not count because a finger is there already, in milliseconds: a driver may report it
   at once, again and again. */
#define PAUSE 200
/* After this time the kernel ends the process, in seconds. */
#define DEADLINE (LONGEST + 10)

struct reader {
  GMainLoop *loop;
  FpContext *context;
  FpDevice *device;
  FpPrint *print;
  GCancellable *canceling;
  struct plug_in_question question;
  int confirmations;
  guint timer;
  gint64 end;
  /* Whether the user was not yet told to present the finger that the reader waits for. */
  bool is_unannounced;
  /* How long the sensor must be seen without a finger, in milliseconds, and the timer of that; 0 for none. */
  guint empty;
  guint emptying;
  /* Whether the sensor was seen without a finger since the use began: one that is there since before answers nothing. */
  bool was_empty;
  /* Whether the driver reports fingers, whether it reports one now, and whether the last one came before that. */
  bool reports_fingers;
  bool is_present;
  bool is_early;
  /* Whether the user was told to remove the finger that is there since before the use. */
  bool is_lift_announced;
  /* The number of good scans of a registration. */
  int scans;
  /* Whether the answer was written: there is exactly one. */
  bool is_answered;
  bool has_virtual_readers;
};

static void verify(struct reader *reader);
static void finger_status_changed(FpDevice *device, GParamSpec *property, gpointer data);

/* The service's end of the connection. Standard output is standard error: the libraries write to it, too. */
static FILE *service;

/* Writes one line. If it is not read, the process ends. */
static void say(const char *format, const char *value) {
  fprintf(service, format, value);
  putc('\n', service);
  if (fflush(service)) _exit(1);
}

/* Ends the process with an answer; the reader is closed by the kernel if the library does not do it in a second. */
static void answer(struct reader *reader, const char *format, const char *value) {
  if (reader->is_answered) return;
  reader->is_answered = true;
  say(format, value);
  g_cancellable_cancel(reader->canceling);
  g_main_loop_quit(reader->loop);
}

static void give_up(struct reader *reader, const char *reason) { answer(reader, "{\"cancel\":\"%s\"}", reason); }

static gboolean patience_ends(gpointer data) {
  struct reader *reader = data;
  reader->timer = 0;
  give_up(reader, "no finger within the time limit");
  return G_SOURCE_REMOVE;
}

/* Asks for the removal of a finger that is there since before the use, once: the token ends a use with many lines. */
static void announce_lift(struct reader *reader) {
  if (!reader->is_lift_announced) say("{\"retry\":\"%s\"}", "remove the finger");
  reader->is_lift_announced = true;
}

static gboolean sensor_is_empty(gpointer data) {
  struct reader *reader = data;
  reader->emptying = 0;
  reader->was_empty = true;
  finger_status_changed(reader->device, NULL, reader);
  return G_SOURCE_REMOVE;
}

/* Waits until the sensor was seen without a finger for long enough. */
static void wait_for_empty_sensor(struct reader *reader, FpFingerStatusFlags status) {
  if (reader->emptying) g_source_remove(reader->emptying);
  reader->emptying = 0;
  if (reader->is_present) return announce_lift(reader);
  if (status & FP_FINGER_STATUS_NEEDED) reader->emptying = g_timeout_add(reader->empty, sensor_is_empty, reader);
}

/* Whether the finger that was scanned came after the sensor was seen without one. A driver that reports no fingers is
   trusted if they are drawn over its sensor: one that rests there gives no image. */
static bool counts(const struct reader *reader) {
  if (reader->was_empty) return !reader->is_early;
  return !reader->reports_fingers && fp_device_get_scan_type(reader->device) == FP_SCAN_TYPE_SWIPE;
}

/* Asks for a finger once the reader waits for one and the last one is lifted. */
static void finger_status_changed(FpDevice *device, GParamSpec *property, gpointer data) {
  (void)property;
  struct reader *reader = data;
  if (reader->is_answered) return;
  FpFingerStatusFlags status = fp_device_get_finger_status(device);
  bool is_present = status & FP_FINGER_STATUS_PRESENT;
  if (is_present && !reader->is_present) reader->is_early = !reader->was_empty;
  reader->is_present = is_present;
  if (status != FP_FINGER_STATUS_NONE) reader->reports_fingers = true;
  if (!reader->was_empty) return wait_for_empty_sensor(reader, status);
  if (!reader->is_unannounced || status != FP_FINGER_STATUS_NEEDED) return;
  reader->is_unannounced = false;
  char text[64] = "finger";
  if (reader->question.step == plug_in_register) {
    int all = fp_device_get_nr_enroll_stages(device) + CONFIRMATIONS;
    snprintf(text, sizeof text, "finger, scan %d of %d", reader->scans + 1, all);
  }
  say("{\"waiting\":\"%s\"}", text);
}

/* Waits for a finger, for a limited time. */
static void wait_for_finger(struct reader *reader) {
  gint64 left = (reader->end - g_get_monotonic_time()) / G_USEC_PER_SEC;
  if (reader->timer) g_source_remove(reader->timer);
  reader->timer = g_timeout_add_seconds((guint)CLAMP(left, 0, PATIENCE), patience_ends, reader);
  reader->is_unannounced = true;
  finger_status_changed(reader->device, NULL, reader);
}

static void report_retry(const GError *error) {
  static const char *const reasons[] = {"not recognized", "too short", "not centered", "remove the finger"};
  guint code = error->code < 0 || error->code >= (int)G_N_ELEMENTS(reasons) ? 0 : (guint)error->code;
  say("{\"retry\":\"%s\"}", reasons[code]);
}

static const char *reason(const GError *error) {
  if (g_error_matches(error, FP_DEVICE_ERROR, FP_DEVICE_ERROR_REMOVED)) return "the reader was removed";
  if (g_error_matches(error, FP_DEVICE_ERROR, FP_DEVICE_ERROR_TOO_HOT)) return "the reader is too hot";
  if (g_error_matches(error, FP_DEVICE_ERROR, FP_DEVICE_ERROR_BUSY)) return "the reader is in use";
  if (g_error_matches(error, FP_DEVICE_ERROR, FP_DEVICE_ERROR_DATA_INVALID)) return "the registration is of another reader";
  return "the reader failed";
}

static void fail(struct reader *reader, const GError *error) {
  fprintf(stderr, "reader-finger: %s\n", error->message);
  give_up(reader, reason(error));
}

static void register_print(struct reader *reader) {
  g_autofree guchar *data = NULL;
  gsize length = 0;
  g_autoptr(GError) error = NULL;
  if (!fp_print_serialize(reader->print, &data, &length, &error)) return fail(reader, error);
  if (length > plug_in_largest_registration) return give_up(reader, "the registration is too large");
  g_autofree gchar *text = g_base64_encode(data, length);
  answer(reader, "{\"data\":\"\",\"registration\":\"%s\"}", text);
}

static gboolean verify_again(gpointer data) {
  struct reader *reader = data;
  if (!reader->is_answered) verify(reader);
  return G_SOURCE_REMOVE;
}

static void verified(GObject *source, GAsyncResult *result, gpointer data) {
  struct reader *reader = data;
  g_autoptr(GError) error = NULL;
  gboolean matches = FALSE;
  bool is_scanned = fp_device_verify_finish(FP_DEVICE(source), result, &matches, NULL, &error);
  if (reader->is_answered) return;
  if (!is_scanned && error->domain != FP_DEVICE_RETRY) return fail(reader, error);
  if (!counts(reader)) {
    announce_lift(reader);
    g_timeout_add(PAUSE, verify_again, reader);
    return;
  }
  if (!is_scanned) {
    report_retry(error);
    return verify(reader);
  }
  if (reader->question.step == plug_in_authenticate) {
    if (matches) return answer(reader, "{\"data\":\"%s\"}", "");
    return give_up(reader, "no match");
  }
  if (!matches) return give_up(reader, "not the same finger each time");
  reader->scans++;
  if (++reader->confirmations == CONFIRMATIONS) return register_print(reader);
  verify(reader);
}

static void verify(struct reader *reader) {
  wait_for_finger(reader);
  fp_device_verify(reader->device, reader->print, reader->canceling, NULL, NULL, NULL, verified, reader);
}

static void enrolled(GObject *source, GAsyncResult *result, gpointer data) {
  struct reader *reader = data;
  g_autoptr(GError) error = NULL;
  FpPrint *print = fp_device_enroll_finish(FP_DEVICE(source), result, &error);
  if (reader->is_answered) return;
  if (!print) return fail(reader, error);
  g_clear_object(&reader->print);
  reader->print = print;
  verify(reader);
}

static void enrolls(FpDevice *device, gint completed, FpPrint *print, gpointer data, GError *error) {
  (void)print;
  struct reader *reader = data;
  if (reader->is_answered) return;
  if (error) report_retry(error);
  reader->scans = completed;
  if (completed < fp_device_get_nr_enroll_stages(device)) wait_for_finger(reader);
}

static void opened(GObject *source, GAsyncResult *result, gpointer data) {
  struct reader *reader = data;
  g_autoptr(GError) error = NULL;
  if (!fp_device_open_finish(FP_DEVICE(source), result, &error)) {
    if (!reader->is_answered) fail(reader, error);
    return;
  }
  if (reader->is_answered) return;
  if (reader->question.step == plug_in_authenticate) return verify(reader);
  reader->print = g_object_ref_sink(fp_print_new(reader->device));
  wait_for_finger(reader);
  fp_device_enroll(reader->device, reader->print, reader->canceling, enrolls, reader, NULL, enrolled, reader);
}

static void removed(FpDevice *device, gpointer data) {
  (void)device;
  give_up(data, "the reader was removed");
}

/* The first reader that keeps no registrations itself: they would be outside of the service's vault. */
static FpDevice *find(struct reader *reader, const char **why) {
  GPtrArray *devices = fp_context_get_devices(reader->context);
  *why = "there is no fingerprint reader";
  for (guint i = 0; devices && i < devices->len; i++) {
    FpDevice *device = g_ptr_array_index(devices, i);
    if (g_str_has_prefix(fp_device_get_driver(device), "virtual_") && !reader->has_virtual_readers) continue;
    if (!fp_device_has_feature(device, FP_DEVICE_FEATURE_STORAGE) &&
        fp_device_has_feature(device, FP_DEVICE_FEATURE_VERIFY))
      return device;
    *why = "the fingerprint reader keeps the registrations itself";
  }
  return NULL;
}

static gboolean begin(gpointer data) {
  struct reader *reader = data;
  const char *why;
  reader->context = fp_context_new();
  FpDevice *device = find(reader, &why);
  if (!device) {
    give_up(reader, why);
    return G_SOURCE_REMOVE;
  }
  if (reader->question.step == plug_in_authenticate) {
    g_autoptr(GError) error = NULL;
    /* Without any byte, libfprint aborts. */
    if (reader->question.registration_size > 0)
      reader->print =
          fp_print_deserialize(reader->question.registration, reader->question.registration_size, &error);
    if (!reader->print || !fp_print_compatible(reader->print, device)) {
      give_up(reader, "the registration is of another reader");
      return G_SOURCE_REMOVE;
    }
    g_object_ref_sink(reader->print);
  }
  reader->device = g_object_ref(device);
  g_signal_connect(reader->device, "removed", G_CALLBACK(removed), reader);
  g_signal_connect(reader->device, "notify::finger-status", G_CALLBACK(finger_status_changed), reader);
  fp_device_open(reader->device, reader->canceling, opened, reader);
  return G_SOURCE_REMOVE;
}

/* The service has closed the connection, or sent more than one line: there is no answer. */
static gboolean hung_up(gint descriptor, GIOCondition condition, gpointer data) {
  (void)descriptor, (void)condition;
  struct reader *reader = data;
  reader->is_answered = true;
  g_cancellable_cancel(reader->canceling);
  g_main_loop_quit(reader->loop);
  return G_SOURCE_REMOVE;
}

/* Ends the connection, and then what the reader still does, so that it is dark and cold, for two seconds at most. */
static void close_reader(struct reader *reader) {
  fclose(service);
  /* A service manager that accepted the connection keeps a descriptor until the process has ended. */
  shutdown(STDIN_FILENO, SHUT_WR);
  close(STDIN_FILENO);
  if (!reader->device) return;
  alarm(2);
  for (int i = 0; i < 20 && fp_device_is_open(reader->device); i++) {
    g_autoptr(GError) error = NULL;
    if (fp_device_close_sync(reader->device, NULL, &error) || !g_error_matches(error, FP_DEVICE_ERROR, FP_DEVICE_ERROR_BUSY))
      return;
    while (g_main_context_iteration(NULL, FALSE)) {}
    g_usleep(50000);
  }
}

/* Messages of the libraries must not get into standard output. Those for debugging contain the scores of the matcher, for
   tests.
   - Parameter data: the reader. */
static GLogWriterOutput log_to_errors(GLogLevelFlags level, const GLogField *fields, gsize count, gpointer data) {
  struct reader *reader = data;
  if (level & (G_LOG_LEVEL_DEBUG | G_LOG_LEVEL_INFO) && !reader->has_virtual_readers) return G_LOG_WRITER_HANDLED;
  for (gsize i = 0; i < count; i++) {
    if (!strcmp(fields[i].key, "MESSAGE")) fprintf(stderr, "%s\n", (const char *)fields[i].value);
  }
  return G_LOG_WRITER_HANDLED;
}

/* A template must not be in a core dump, and the environment must not choose drivers: libfprint has virtual ones, to
   which other programs can send images. */
static void protect(bool has_virtual_readers) {
  struct rlimit none = {0, 0};
  prctl(PR_SET_DUMPABLE, 0);
  setrlimit(RLIMIT_CORE, &none);
  if (!has_virtual_readers) clearenv();
  signal(SIGPIPE, SIG_IGN);
  alarm(DEADLINE);
}

int main(int count, char **arguments) {
  static struct reader reader;
  /* For tests: accepts also libfprint's virtual readers, which the environment configures, and another time than EMPTY. */
  reader.has_virtual_readers = (count == 2 || count == 3) && !strcmp(arguments[1], "--virtual-readers");
  if (count > 1 && !reader.has_virtual_readers) {
    fprintf(stderr, "usage: reader-finger [--virtual-readers [MILLISECONDS]]\n");
    return 64;
  }
  reader.empty = count == 3 ? (guint)strtoul(arguments[2], NULL, 10) : EMPTY;
  service = fdopen(dup(STDOUT_FILENO), "w");
  if (!service || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 71;
  protect(reader.has_virtual_readers);
  g_log_set_writer_func(log_to_errors, &reader, NULL);
  if (!plug_in_read(&reader.question)) {
    say("{\"cancel\":\"%s\"}", "the request is not valid");
    return 65;
  }
  /* The readers that are accepted keep nothing. */
  if (reader.question.step == plug_in_deregister) {
    say("{\"data\":\"%s\"}", "");
    return 0;
  }
  /* The scans of a registration are compared with each other. */
  reader.was_empty = reader.question.step == plug_in_register || reader.empty == 0;
  reader.loop = g_main_loop_new(NULL, FALSE);
  reader.canceling = g_cancellable_new();
  reader.end = g_get_monotonic_time() + LONGEST * G_USEC_PER_SEC;
  /* libfprint works in the thread of the default context only, so that all calls are made from it. */
  g_idle_add(begin, &reader);
  g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, hung_up, &reader);
  g_main_loop_run(reader.loop);
  close_reader(&reader);
  return 0;
}
