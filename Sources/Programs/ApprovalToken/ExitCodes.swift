// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Boards
import Cryptography
import Glibc
import MobileAuth
import ReferenceProtocol
import ServerBackends

/// A command's error: a message for the user, and the exit code of sysexits(3).
struct CommandError: Error, CustomStringConvertible {
  enum Code: Int32 {
    case usage = 64
    case badData = 65
    case unavailable = 69
    case refused = 77
  }

  let code: Code
  let description: String
  /// Error number for programs, printed with `--json` only: of the table in docs/handling-loop.md, or of PingAM's vendor
  /// (docs/pingam.md). Nil for errors without a number.
  let number: Int?
  /// No service runs: nothing has been done, and a command that works without the service may continue.
  let isServiceMissing: Bool

  init(_ code: Code, _ description: String, number: Int? = nil, isServiceMissing: Bool = false) {
    self.code = code
    self.description = description
    self.number = number
    self.isServiceMissing = isServiceMissing
  }

  /// - Parameter error: its description ends with the number in parentheses, which is left out of the message.
  private init(_ code: Code, numbered error: some CustomStringConvertible, _ number: Int) {
    let (text, suffix) = ("\(error)", " (\(number))")
    self.init(code, text.hasSuffix(suffix) ? String(text.dropLast(suffix.count)) : text, number: number)
  }

  init(_ fault: TokenServerError) {
    switch fault {
    case .unreachable, .rateLimited: self.init(.unavailable, numbered: fault, fault.number)
    case .untrusted(let why):
      self.init(
        .refused,
        "\(why). If the certificate's issuer is a private authority, give its PEM file with --authorities, or under "
          + "[tls] in the configuration; or give the hash of the server's key with --pin (a URI of approvaltoken: "
          + "contains it)",
        number: fault.number)
    default: self.init(.refused, numbered: fault, fault.number)
    }
  }

  init(_ fault: StateStoreError) {
    switch fault {
    case .io, .conflict(_, .changedMeanwhile): self.init(.unavailable, "\(fault)")
    case .corrupt: self.init(.badData, "\(fault)")
    case .notFound, .conflict: self.init(.usage, "\(fault)")
    }
  }
}

extension CommandError {
  /// The message for a command that needs an account's name, with the accounts to choose from.
  static func nameOne(of accounts: [AccountRecord]) -> String {
    accounts.isEmpty
      ? "no active account; run `approval-token enroll` first"
      : "there are several accounts; name one of: \(accounts.map(\.id.text).sorted().joined(separator: ", "))"
  }

  private init(_ error: any ReportedError) {
    let code: Code =
      switch error.category {
      case .usage: .usage
      case .badData: .badData
      case .unavailable: .unavailable
      case .refused: .refused
      }
    if let number = error.number { self.init(code, numbered: error, number) } else { self.init(code, "\(error)") }
  }

  /// Nil for an error that is not reported to the user: a canceled task, an interrupted call.
  init?(explaining error: any Error) {
    switch error {
    case let failure as CommandError: self = failure
    case let fault as TokenServerError: self.init(fault)
    case let fault as StateStoreError: self.init(fault)
    case let error as any ReportedError: self.init(error)
    case let failure as BoardCatalog.CatalogError: self.init(.badData, "\(failure)")
    case let error as WireError: self.init(.badData, "\(error)")
    case PanelDialog.EntryError.canceled: self.init(.refused, numbered: PanelDialog.EntryError.canceled, 9006)
    case let ending as PanelDialog.EntryError: self.init(.unavailable, "\(ending)")
    case let error as CryptographyError: self.init(.unavailable, "\(error)")
    default: return nil
    }
  }
}

extension ControlFailure {
  init(_ failure: CommandError) {
    self.init(error: failure.description, code: failure.code.rawValue, number: failure.number)
  }
}

/// Runs a command's body, prints its error on standard error, and exits with the code of the error.
/// - Parameter json: whether the error is printed as JSON: `error`, `code` and, if it has one, `number`.
func reporting(_ json: JSONOption? = nil, _ body: () async throws -> Void) async throws {
  do { return try await body() } catch {
    guard let failure = CommandError(explaining: error) else { throw error }
    say(
      json?.isWanted == true
        ? String(decoding: JSON.encode(ControlFailure(failure)), as: UTF8.self).escapedForDisplay
        : "approval-token: \(failure.description)")
    throw ExitCode(failure.code.rawValue)
  }
}

/// Prints a line on standard error. Progress and errors go to standard error, results to standard output.
func say(_ line: String) {
  let bytes = Array((line.sanitizedLines + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}
