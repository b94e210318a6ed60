// SPDX-License-Identifier: Apache-2.0
import Testing

/// Both programs as processes over real TLS sockets, with curl as the portal. Every test has its own directories, ports
/// and processes, so that several can run at the same time.
@Suite(.timeLimit(.minutes(20)), .timed) struct EndToEnd {}
