// SPDX-License-Identifier: Apache-2.0
import Glibc
import Logging
import TokenServerCore

/// The limit of open file descriptors of this process.
enum DescriptorLimit {
  /// Reserved for the database, callbacks, the log, and connections that are being refused.
  private static let reserve = 512

  /// Raises the soft limit to the hard limit.
  /// - Returns: the number of connections that fit within it.
  static func raise(for limits: ServerConfiguration.Limits, log: Logger) -> Int {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return limits.connections }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
    getrlimit(resource, &limit)
    let room = max(16, Int(clamping: limit.rlim_cur) - reserve)
    if room < limits.connections {
      log.warning(
        "the limit of \(limit.rlim_cur) open files allows only \(room) connections, not \(limits.connections)"
      )
    }
    return room
  }
}
