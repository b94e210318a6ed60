// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

static inline int approval_mqtt_new_wake_up(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
