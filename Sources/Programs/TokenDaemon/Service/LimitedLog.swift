// SPDX-License-Identifier: Apache-2.0
import Logging
import MobileAuth

/// Log lines that a token server, a broker or a sender of messages can cause, limited for each subject.
struct LimitedLog {
  /// The maximum number of lines in an hour about one subject.
  static let hourly = 60

  private let logger: Logger
  private let clock: any TokenClock
  private let limiter = HourlyLimiter<String>(limit: LimitedLog.hourly)

  init(_ logger: Logger, clock: any TokenClock) {
    self.logger = logger
    self.clock = clock
  }

  /// - Parameters:
  ///   - subject: not chosen by others, because the number of subjects is not limited.
  ///   - fields: for the journal.
  func report(
    _ line: String, at level: Logger.Level = .warning, about subject: String, fields: Logger.Metadata = [:]
  ) {
    switch limiter.take(subject, at: clock.now) {
    case .allowed(0): logger.log(level: level, "\(line)", metadata: fields)
    case .allowed(let omitted):
      logger.warning("\(omitted) more lines about \(subject) were omitted in the hour before")
      logger.log(level: level, "\(line)", metadata: fields)
    case .limitReached:
      logger.warning("more than \(Self.hourly) lines about \(subject) in an hour: the next ones are only counted")
    case .omitted: break
    }
  }

  func report(_ event: TokenEvent, at level: Logger.Level = .warning) {
    report("\(event)", at: level, about: event.subject, fields: event.fields)
  }
}

extension TokenEvent {
  /// What a warning is about, for `LimitedLog`.
  var subject: String {
    switch self {
    case .connected(let server), .disconnected(let server, _), .stopped(let server, _): "the connection to \(server)"
    case .step(let step): "the account \(step.account)"
    case .trouble(let account, _), .counted(let account, _), .accountLost(let account), .code(let account, _, _),
      .mailboxMoved(let account):
      "the account \(account)"
    case .retrying(let server, _, _): "requests of \(server) that are tried again"
    case .dropped: "dropped push messages"
    case .expiredUnannounced(let server, _): "expired requests of \(server)"
    case .stateStoreFailed: "the state store"
    case .audited, .rosterChanged: "the audit chain"
    }
  }
}
