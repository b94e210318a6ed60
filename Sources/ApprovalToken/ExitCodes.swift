import ArgumentParser
import Boards
import Cryptography
import Glibc
import MobileAuth
import PingAMAdapter
import PrivacyIDEAAdapter
import ReferenceProtocol

/// A failure of a command: what to tell the person, and the code of sysexits(3) to end with.
struct CommandFailure: Error, CustomStringConvertible {
  enum Code: Int32 {
    case usage = 64
    case badData = 65
    case unavailable = 69
    case refused = 77
  }

  let code: Code
  let description: String
  /// No service runs: nothing has been done, and what needs none may go on.
  let isServiceMissing: Bool

  init(_ code: Code, _ description: String, isServiceMissing: Bool = false) {
    self.code = code
    self.description = description
    self.isServiceMissing = isServiceMissing
  }

  init(_ fault: TokenServerFault) {
    switch fault {
    case .unreachable, .rateLimited: self.init(.unavailable, "\(fault)")
    case .untrusted(let why):
      self.init(
        .refused,
        "\(why). If the server's certificate has an issuer of its own, name its file with --authorities, or under [tls] in "
          + "the configuration; or the server's key with --pin, which is in the URI for approvaltoken:")
    default: self.init(.refused, "\(fault)")
    }
  }

  init(_ fault: CustodyFault) {
    switch fault {
    case .storage: self.init(.unavailable, "\(fault)")
    case .damaged: self.init(.badData, "\(fault)")
    case .unknown: self.init(.usage, "\(fault)")
    }
  }
}

extension CommandFailure {
  private init(_ refusal: PushIngress.Refusal) {
    let code: Code =
      switch refusal {
      case .tooLarge, .malformed, .notHandleable: .badData
      case .unknownMechanism, .forged: .refused
      case .notKept: .unavailable
      }
    self.init(code, "\(refusal)")
  }

  private init(_ refusal: LockRefusal) {
    let code: Code =
      switch refusal {
      case .policyMissing, .policyNotAttached: .usage
      case .locked, .lockedAlready, .notLocked, .heldByPolicy: .refused
      }
    self.init(code, "\(refusal)")
  }

  /// Nil for an error that is none of a person's business: a cancelled task, an interrupted call.
  init?(explaining error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let fault as TokenServerFault: self.init(fault)
    case let fault as CustodyFault: self.init(fault)
    case let refusal as ActivationURI.Refusal: self.init(.badData, "\(refusal)")
    case let flaw as EnrolmentURI.Flaw: self.init(.badData, "\(flaw)")
    case let flaw as RegistrationURI.Flaw: self.init(.badData, "\(flaw)")
    case let refusal as PushIngress.Refusal: self.init(refusal)
    case let refusal as LockRefusal: self.init(refusal)
    case let refusal as MailboxRefusal: self.init(.usage, "\(refusal)")
    case let failure as BoardCatalogue.Failure: self.init(.badData, "\(failure)")
    case let error as WireError: self.init(.badData, "\(error)")
    case let ending as PanelDialogue.Ending: self.init(ending == .cancelled ? .refused : .unavailable, "\(ending)")
    case let error as CryptographyError: self.init(.unavailable, "\(error)")
    default: return nil
    }
  }
}

/// Runs a command's body, says on standard error what went wrong, and ends with the right code.
func reporting(_ body: () async throws -> Void) async throws {
  do { return try await body() } catch {
    guard let failure = CommandFailure(explaining: error) else { throw error }
    say("approval-token: \(failure.description)")
    throw ExitCode(failure.code.rawValue)
  }
}

/// Lines on standard error: progress and trouble go there, facts to standard output.
func say(_ line: String) {
  let bytes = Array((line.linesForPeople + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}
