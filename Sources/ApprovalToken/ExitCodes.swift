import ArgumentParser
import Boards
import Glibc
import MobileAuth
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

  init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }

  init(_ fault: TokenServerFault) {
    switch fault {
    case .unreachable, .rateLimited: self.init(.unavailable, "\(fault)")
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

/// Runs a command's body, says on standard error what went wrong, and ends with the right code.
func reporting(_ body: () async throws -> Void) async throws {
  let failure: CommandFailure
  do { return try await body() } catch let error as CommandFailure {
    failure = error
  } catch let error as TokenServerFault {
    failure = CommandFailure(error)
  } catch let error as CustodyFault {
    failure = CommandFailure(error)
  } catch let error as ActivationURI.Refusal {
    failure = CommandFailure(.badData, "\(error)")
  } catch let error as BoardCatalogue.Failure {
    failure = CommandFailure(.badData, "\(error)")
  }
  say("approval-token: \(failure.description)")
  throw ExitCode(failure.code.rawValue)
}

/// One line on standard error: progress and trouble go there, facts to standard output.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}
